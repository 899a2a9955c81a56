/*
 * memsizes: what /proc/self/status, statm, smaps_rollup, pagemap and getrusage say about sizes, as
 * differences around steps that touch a known number of pages. Prints the same on every kernel that
 * does it right.
 *
 * Use: memsizes FILE: a file of at least 64 pages
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/lib/pretouch.h"
#include "user/lib/text.h"

#define PAGE       4096UL
#define READ_WRITE (PROT_READ | PROT_WRITE)
#define NAMES      10

static const char *const names[NAMES] = {"VmPeak",  "VmSize",  "VmLck",    "VmHWM",  "VmRSS",
                                         "RssAnon", "RssFile", "RssShmem", "VmData", "VmStk"};

struct sample {
    uint64_t kib[NAMES];
    uint64_t statm[7]; /* pages */
};

static char text[16384];
static struct sample before, after;

static uint64_t number_in(const char *label)
{
    const char *at = strstr(text, label);
    uint64_t value;

    if (!at)
        return 0;
    at += strlen(label);
    at += strspn(at, ": \t");
    return text_take_number(&at, &value) ? value : 0;
}

static void take(struct sample *sample)
{
    const char *at = text;

    text_read_file("/proc/self/status", text, sizeof(text));
    for (int i = 0; i < NAMES; i++)
        sample->kib[i] = number_in(names[i]);
    text_read_file("/proc/self/statm", text, sizeof(text));
    for (int i = 0; i < 7; i++)
        if (!text_take_number(&at, &sample->statm[i]))
            sample->statm[i] = 0;
}

static void begin(void)
{
    take(&before);
}

/* What has changed, in pages. */
static void end(const char *step)
{
    static const char *const fields[] = {"size", "resident", "shared", "text", "lib", "data", "dt"};

    take(&after);
    printf("%s:", step);
    for (int i = 0; i < NAMES; i++)
        if (after.kib[i] != before.kib[i])
            printf(" %s%+ld", names[i], (long)(after.kib[i] - before.kib[i]) / 4);
    for (int i = 0; i < 7; i++)
        if (after.statm[i] != before.statm[i])
            printf(" %s%+ld", fields[i], (long)(after.statm[i] - before.statm[i]));
    printf("\n");
}

static char *map(size_t pages, int protection, int flags, int fd)
{
    void *at = mmap(NULL, pages * PAGE, protection, flags, fd, 0);

    if (at == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return at;
}

static void store(char *at, size_t pages)
{
    for (size_t i = 0; i < pages; i++)
        *(volatile char *)(at + i * PAGE) = 1;
}

static void load(const char *at, size_t pages)
{
    for (size_t i = 0; i < pages; i++)
        (void)*(const volatile char *)(at + i * PAGE);
}

/* Leaves [at, at + 4096 pages) unmapped. The peaks rise above all that came before. */
static void anonymous_steps(void)
{
    char *at;

    begin();
    at = map(4096, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    end("map 4096 private");
    begin();
    load(at, 10);
    end("read 10: the zero page");
    begin();
    store(at, 1000);
    end("write 1000");
    begin();
    madvise(at, 600 * PAGE, MADV_DONTNEED);
    end("dontneed 600: the peak stays");
    begin();
    store(at, 100);
    end("write 100 below the peak");
    begin();
    mprotect(at + 2048 * PAGE, 1024 * PAGE, PROT_READ);
    end("protect 1024: no data");
    begin();
    mlock(at, 50 * PAGE);
    end("lock 50 that are there");
    begin();
    munmap(at, 4096 * PAGE);
    end("unmap all");
}

static void shared_steps(const char *path)
{
    int fd = open(path, O_RDONLY);
    char *at = map(64, READ_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1), *file;

    begin();
    store(at, 20);
    end("write 20 of shared memory");
    file = map(1, PROT_READ, MAP_PRIVATE, fd);
    munmap(file, PAGE);
    begin();
    file = map(32, READ_WRITE, MAP_PRIVATE | MAP_POPULATE, fd); /* copies: it is writable */
    end("populate 32 private of a file");
    munmap(file, 32 * PAGE);
    begin();
    file = map(32, PROT_READ, MAP_SHARED | MAP_POPULATE, fd);
    end("populate 32 shared of a file");
    begin();
    munmap(file, 32 * PAGE);
    munmap(at, 64 * PAGE);
    end("unmap both");
}

static long max_rss_pages(int who)
{
    struct rusage usage;

    getrusage(who, &usage);
    return usage.ru_maxrss / 4;
}

static void peak_steps(void)
{
    long peak = max_rss_pages(RUSAGE_SELF);

    take(&after);
    printf("getrusage agrees with VmHWM: %d\n", peak == (long)after.kib[3] / 4);
    text_write_file("/proc/self/clear_refs", "5");
    take(&after);
    printf("reset: VmHWM is VmRSS: %d; getrusage too: %d\n", after.kib[3] == after.kib[4],
           max_rss_pages(RUSAGE_SELF) == (long)after.kib[4] / 4);
    if (fork() == 0) {
        store(map(2000, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1), 2000);
        _exit(0);
    }
    wait(NULL);
    printf("a child's peak: %d\n", max_rss_pages(RUSAGE_CHILDREN) > 2000);
}

static long referenced_pages(void)
{
    text_read_file("/proc/self/smaps_rollup", text, sizeof(text));
    return (long)number_in("Referenced") / 4;
}

static void reference_steps(void)
{
    char *at = map(500, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    long cleared;

    store(at, 500);
    printf("clear_refs takes: %d", text_write_file("/proc/self/clear_refs", "1"));
    cleared = referenced_pages();
    printf(", few are left: %d", cleared < 100);
    load(at, 200);
    cleared = referenced_pages() - cleared;
    printf(", those read again count: %d\n", cleared >= 200 && cleared < 300);
    printf("bad: %d %d %d\n", text_write_file("/proc/self/clear_refs", "0"),
           text_write_file("/proc/self/clear_refs", "9"),
           text_write_file("/proc/self/clear_refs", "x"));
}

static uint64_t pagemap_of(int fd, const char *at)
{
    uint64_t entry = 0;

    if (pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)at / PAGE * 8)) != sizeof(entry))
        perror("pagemap");
    return entry;
}

static void show_bits(const char *what, uint64_t entry)
{
    printf("%s: present %d, swapped %d, file or shared %d, exclusive %d\n", what,
           (int)(entry >> 63 & 1), (int)(entry >> 62 & 1), (int)(entry >> 61 & 1),
           (int)(entry >> 56 & 1));
}

static void pagemap_steps(const char *path)
{
    int fd = open("/proc/self/pagemap", O_RDONLY), file_fd = open(path, O_RDONLY), ends[2];
    char *own = map(4, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    char *shared = map(4, READ_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    char *file = map(4, READ_WRITE, MAP_PRIVATE, file_fd), byte = 0;

    show_bits("untouched", pagemap_of(fd, own));
    store(own, 1);
    show_bits("private", pagemap_of(fd, own));
    store(shared, 1);
    show_bits("shared", pagemap_of(fd, shared));
    load(file, 1);
    show_bits("file", pagemap_of(fd, file) & ~(1UL << 56)); /* others may map it */
    store(file, 1);
    show_bits("copy of a file's page", pagemap_of(fd, file));
    if (pipe(ends) < 0)
        perror("pipe");
    pid_t child = fork();
    if (child == 0) {
        if (read(ends[0], &byte, 1) < 0)
            _exit(1);
        _exit(0);
    }
    show_bits("private, with a child", pagemap_of(fd, own));
    printf("frame number shown to root: %d\n", (pagemap_of(fd, own) & ((1UL << 55) - 1)) != 0);
    if (write(ends[1], &byte, 1) < 0)
        perror("write");
    waitpid(child, NULL, 0);
    show_bits("private again", pagemap_of(fd, own));
}

int main(int argc, char **argv)
{
    static char output[8192];

    if (argc != 2) {
        printf("use: memsizes FILE\n");
        return 1;
    }
    setvbuf(stdout, output, _IOFBF, sizeof(output));
    printf("%s", "");
    pretouch_program();
    take(&before);
    take(&after);
    anonymous_steps();
    shared_steps(argv[1]);
    peak_steps();
    reference_steps();
    pagemap_steps(argv[1]);
    return 0;
}
