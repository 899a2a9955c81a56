/*
 * accounting: what each of a row of small steps counts, by getrusage and /proc/vmstat. A line for
 * each step, as in tests/data/accounting-*.txt but for perf's columns:
 *
 *     ACT name   ret=R errno=E sig=S/CODE  maj=N min=N | vmstat pgfault=N pgmajfault=N
 *
 * Use: accounting FILE SCRATCH            every step but those with a bad sector
 *      accounting FILE SCRATCH bad        those: the sectors of FILE's page 50 are unreadable
 *      accounting FILE SCRATCH bad DISK FIRST LAST
 *                                         the same; DISK (/sys/block/...) is told by its gate
 *
 * FILE has at least 8,192 pages on a disk; SCRATCH is made and lies on a tmpfs. It must run alone,
 * since vmstat is the whole system's. The same program runs on Linux.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/lib/knobs.h"
#include "user/lib/pretouch.h"
#include "user/lib/resident.h"
#include "user/lib/text.h"

#define PAGE            4096UL
#define FILE_PAGES      8192
#define READ_WRITE      (PROT_READ | PROT_WRITE)
#define LINUX_DEBUG     "/sys/kernel/debug"
#define BAD_PAGE        50
#define COLD_STORE_PAGE 4000
#define COLD_WRITE_PAGE 4500
#define POPULATE_PAGE   5000

struct counts {
    long major, minor;
    uint64_t pgfault, pgmajfault;
};

static int vmstat_fd;
static char vmstat_text[16384];
static struct counts before;
static sigjmp_buf back;
static volatile sig_atomic_t signal_number, signal_code;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* ---- Counting ---- */

static uint64_t vmstat_value(const char *line_start)
{
    const char *at = strstr(vmstat_text, line_start);
    uint64_t value;

    if (!at)
        return 0;
    at += strlen(line_start);
    return text_take_number(&at, &value) ? value : 0;
}

static struct counts now(void)
{
    struct rusage usage;
    ssize_t got = pread(vmstat_fd, vmstat_text, sizeof(vmstat_text) - 1, 0);

    vmstat_text[got < 0 ? 0 : got] = '\0';
    getrusage(RUSAGE_SELF, &usage);
    return (struct counts){usage.ru_majflt, usage.ru_minflt, vmstat_value("\npgfault "),
                           vmstat_value("\npgmajfault ")};
}

static void begin(void)
{
    signal_number = signal_code = 0;
    errno = 0;
    before = now();
}

static void end(const char *name, long result)
{
    int error = result == -1 ? errno : 0;
    struct counts after = now();

    printf("ACT %-26s ret=%ld errno=%d sig=%d/%d  maj=%ld min=%ld | vmstat pgfault=%ld "
           "pgmajfault=%ld\n",
           name, result, error, signal_number, signal_code, after.major - before.major,
           after.minor - before.minor, (long)(after.pgfault - before.pgfault),
           (long)(after.pgmajfault - before.pgmajfault));
}

static void caught(int number, siginfo_t *info, void *context)
{
    (void)context;
    signal_number = number;
    signal_code = info->si_code;
    siglongjmp(back, 1);
}

static void load(const char *at)
{
    if (sigsetjmp(back, 1) == 0)
        (void)*(const volatile char *)at;
}

static void store(char *at)
{
    if (sigsetjmp(back, 1) == 0)
        *(volatile char *)at = 1;
}

static void step_load(const char *name, const char *at)
{
    begin();
    load(at);
    end(name, 0);
}

static void step_store(const char *name, char *at)
{
    begin();
    store(at);
    end(name, 0);
}

/* ---- Memory and files ---- */

static char *map(size_t pages, int protection, int flags, int fd)
{
    void *at = mmap(NULL, pages * PAGE, protection, flags, fd, 0);

    if (at == MAP_FAILED)
        die("mmap");
    return at;
}

static char *map_anonymous(size_t pages)
{
    return map(pages, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* Comes back when the page's read is over; by a descriptor of its own, so that the readahead state
 * of the mapped one stays as it is. */
static void wait_for_page(const char *path, off_t page)
{
    int fd = open(path, O_RDONLY);
    char byte;

    if (fd < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM) ||
        pread(fd, &byte, 1, page * (off_t)PAGE) != 1)
        die(path);
    close(fd);
}

/* ---- Steps ---- */

static void anonymous_steps(void)
{
    char *at = map_anonymous(4);

    begin();
    end("nop", 0);
    load(at);
    step_store("anon write after read", at);
    step_store("anon write again", at);
}

/* Leaves `shared` mapped: what it maps stays in the cache when the rest is dropped. */
static void file_steps(const char *path)
{
    int fd = open(path, O_RDONLY);
    char *shared = map(FILE_PAGES, PROT_READ, MAP_SHARED, fd);
    char *own = map(FILE_PAGES, READ_WRITE, MAP_PRIVATE, fd);

    step_load("file read cold", shared);
    wait_for_page(path, 31);
    step_load("file read warm", shared + PAGE);
    step_load("file read on marker pg24", shared + 24 * PAGE);
    wait_for_page(path, 63);
    step_load("private read warm", own + 2 * PAGE);
    step_store("private write after read", own + 2 * PAGE);
    step_store("private write cold (cow)", own + COLD_STORE_PAGE * PAGE);
}

static void bad_access_steps(const char *scratch)
{
    char *at = map_anonymous(2);
    int fd = open(scratch, O_RDWR | O_CREAT | O_TRUNC, 0600);

    munmap(at, PAGE);
    step_load("segv unmapped", at);
    mprotect(at + PAGE, PAGE, PROT_READ);
    step_store("segv write to RO (absent)", at + PAGE);
    step_store("shm first write", map(2, READ_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1));

    if (fd < 0 || ftruncate(fd, PAGE) < 0)
        die(scratch);
    at = map(2, READ_WRITE, MAP_SHARED, fd);
    step_store("sigbus past EOF write", at + PAGE);
    store(at);
    if (ftruncate(fd, 0) < 0)
        die(scratch);
    step_load("sigbus after truncate", at);
    close(fd);
    unlink(scratch);
}

static void call_steps(const char *path)
{
    int fd = open(path, O_RDONLY), ends[2];
    char *at = map_anonymous(16), *file = map(FILE_PAGES, PROT_READ, MAP_SHARED, fd);
    long result;

    if (pipe(ends) < 0)
        die("pipe");
    begin();
    result = pread(fd, at, 4 * PAGE, 0);
    end("read() into absent 4 pages", result);

    munmap(at + 6 * PAGE, PAGE);
    begin();
    result = pread(fd, at + 6 * PAGE, PAGE, 0);
    end("read() into unmapped", result);

    mprotect(at + 8 * PAGE, PAGE, PROT_NONE);
    begin();
    result = pread(fd, at + 8 * PAGE, PAGE, 0);
    end("read() into PROT_NONE", result);

    begin();
    result = pread(fd, at + 5 * PAGE, 2 * PAGE, 0);
    end("read() partial then hole", result);

    begin();
    result = write(ends[1], file + COLD_WRITE_PAGE * PAGE, 100);
    end("write() from cold file map", result);
}

/*
 * Page POPULATE_PAGE + 8, where the first window will leave its mark, is cached beforehand, so that
 * it gets none: page 16 is missed, too, and then the marks on 24 and 32 are met.
 */
static void populate_steps(const char *path)
{
    int fd = open(path, O_RDONLY);
    char *at;

    begin();
    at = mmap(NULL, 16 * PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    end("MAP_POPULATE 16 anon", at != MAP_FAILED);

    wait_for_page(path, POPULATE_PAGE + 8);
    begin();
    at = mmap(NULL, 64 * PAGE, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, POPULATE_PAGE * PAGE);
    end("MAP_POPULATE 64p file cold", at != MAP_FAILED);

    at = map_anonymous(16);
    begin();
    long result = mlock(at, 16 * PAGE);
    end("mlock 16 anon", result);
}

static void own_memory_steps(void)
{
    int fd = open("/proc/self/mem", O_RDWR);
    char *read_only = map(1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1), *at = map_anonymous(1);
    long result;
    pid_t child;

    begin();
    result = pwrite(fd, "x", 1, (off_t)read_only);
    end("/proc/self/mem wr RO priv", result);

    store(at);
    child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    pretouch_program(); /* the rest of what the fork has made read-only */
    step_store("cow break after fork exit", at);

    mprotect(at, PAGE, PROT_READ);
    mprotect(at, PAGE, READ_WRITE);
    step_store("mprotect ro->rw write", at);
}

/* The first signal here is the first to use its stack: one minor fault of that step. */
static void use_fresh_signal_stack(void)
{
    stack_t stack = {.ss_sp = map_anonymous(4), .ss_size = 4 * PAGE};

    if (sigaltstack(&stack, NULL) < 0)
        die("sigaltstack");
}

static void bad_sector_steps(const char *path)
{
    int fd = open(path, O_RDONLY), ends[2];
    char *at = map(FILE_PAGES, PROT_READ, MAP_SHARED, fd);
    static char buffer[4 * PAGE];
    long result;

    if (pipe(ends) < 0)
        die("pipe");
    pretouch_buffer(buffer, sizeof(buffer));
    use_fresh_signal_stack();
    step_load("ioerr read-around ok page", at + (BAD_PAGE - 10) * PAGE);
    step_load("ioerr touch bad page 50", at + BAD_PAGE * PAGE);
    step_load("ioerr neighbour 55", at + (BAD_PAGE + 5) * PAGE);
    step_load("ioerr neighbour 51", at + (BAD_PAGE + 1) * PAGE);
    begin();
    result = pread(fd, buffer, PAGE, BAD_PAGE * PAGE);
    end("ioerr pread bad", result);
    begin();
    result = pread(fd, buffer, 4 * PAGE, (BAD_PAGE - 2) * PAGE);
    end("ioerr pread 4p spanning", result);
    begin();
    result = write(ends[1], at + BAD_PAGE * PAGE, 100);
    end("ioerr write() from bad map", result);
}

static void make_sectors_bad(const char *disk, const char *first, const char *last)
{
    char path[128], range[64];
    int error;

    snprintf(path, sizeof(path), "%s/gate/fail", disk);
    snprintf(range, sizeof(range), "%s %s", first, last);
    error = text_write_file(path, range);
    if (error) {
        errno = -error;
        die(path);
    }
}

static void prepare(const char *path)
{
    static char output[16384];
    struct sigaction action = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    static struct knobs knobs;
    int fd = open(path, O_RDONLY);

    setvbuf(stdout, output, _IOFBF, sizeof(output));
    vmstat_fd = open("/proc/vmstat", O_RDONLY);
    if (fd < 0 || vmstat_fd < 0)
        die(path);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    if (knobs_set(&knobs, KNOB_MAP_AROUND, "4096")) {
        mount("debugfs", LINUX_DEBUG, "debugfs", 0, NULL);
        knobs_set(&knobs, LINUX_DEBUG "/fault_around_bytes", "4096");
    }
    if (resident_drop(fd, 0, 0, 500) > 0)
        printf("%s: could not be dropped\n", path);
    close(fd);
    pretouch_program();
    begin();
    end("warm-up", 0);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4 && argc != 7) {
        printf("use: accounting FILE SCRATCH [bad [DISK FIRST LAST]]\n");
        return 1;
    }
    prepare(argv[1]);
    if (argc > 3) {
        if (argc == 7)
            make_sectors_bad(argv[4], argv[5], argv[6]);
        bad_sector_steps(argv[1]);
        return 0;
    }
    anonymous_steps();
    file_steps(argv[1]);
    bad_access_steps(argv[2]);
    call_steps(argv[1]);
    populate_steps(argv[1]);
    own_memory_steps();
    return 0;
}
