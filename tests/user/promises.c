/*
 * promises: what calls do to Committed_AS, and what the limits refuse. Every line must be equal on
 * every kernel; needs root, and a machine where nobody else does anything. Near the limit of mode 2
 * numbers are large, since Linux counts in batches there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/user/show.h"

#define PAGE         SHOW_PAGE
#define BASE         0x200000000ul
#define P(n)         ((void *)(BASE + (unsigned long)(n)*PAGE))
#define B(n)         ((unsigned long)(n)*PAGE)
#define RW           (PROT_READ | PROT_WRITE)
#define ANON         (MAP_PRIVATE | MAP_ANONYMOUS)
#define SHARED_ANON  (MAP_SHARED | MAP_ANONYMOUS)
#define CAP_IPC_LOCK 14
#define CAP_VERSION  0x20080522u

static int meminfo;

/* ---- What is promised ---- */

/* kB / 4, by a descriptor that is open all the time; without stdio, which could take memory. */
static long meminfo_pages(const char *name)
{
    static char text[8192];
    ssize_t len = pread(meminfo, text, sizeof(text) - 1, 0);
    const char *line;

    text[len > 0 ? len : 0] = '\0';
    line = strstr(text, name);
    return line ? strtol(line + strlen(name), NULL, 10) / 4 : -1;
}

static long promised(void)
{
    return meminfo_pages("Committed_AS:");
}

/* How far the promise went up by the call; the call's result. */
#define PROMISE(call)                                                                \
    do {                                                                             \
        long before_ = promised(), result_, after_;                                  \
        errno = 0;                                                                   \
        result_ = (long)(call);                                                      \
        int error_ = errno;                                                          \
        after_ = promised();                                                         \
        printf("%s: %s, %+ld\n", #call, result_ == -1 ? show_errno(error_) : "done", \
               after_ - before_);                                                    \
    } while (0)

static void *map(int at, int pages, int prot, int flags)
{
    return mmap(P(at), B(pages), prot, flags | MAP_FIXED, -1, 0);
}

static void *map_file(int at, int pages, int prot, int flags, int fd)
{
    return mmap(P(at), B(pages), prot, flags | MAP_FIXED, fd, 0);
}

static long touch(int at, int pages)
{
    for (int i = at; i < at + pages; i++)
        *(volatile char *)P(i) = 1;
    return 0;
}

static void set_knob(const char *name, long value)
{
    char path[128], text[32];
    int fd, len = snprintf(text, sizeof(text), "%ld\n", value);

    snprintf(path, sizeof(path), "/proc/sys/vm/%s", name);
    fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, text, (size_t)len) != len)
        printf("%s %ld: %s\n", name, value, show_errno(errno));
    close(fd);
}

static void private_memory(void)
{
    PROMISE(map(0, 100, RW, ANON));
    PROMISE(map(200, 100, PROT_READ, ANON));
    PROMISE(map(400, 100, RW, ANON | MAP_NORESERVE));
    PROMISE(map(600, 100, PROT_WRITE, ANON));
    PROMISE(munmap(P(0), B(50)));
    PROMISE(munmap(P(0), B(50)));
    PROMISE(map(600, 40, PROT_READ, ANON));
    PROMISE(map(600, 100, RW, ANON));
    PROMISE(mprotect(P(200), B(30), RW));
    PROMISE(mprotect(P(200), B(30), PROT_READ));
    PROMISE(mprotect(P(200), B(30), RW));
    PROMISE(touch(200, 1));
    PROMISE(mprotect(P(200), B(30), PROT_READ));
    PROMISE(mprotect(P(200), B(30), PROT_NONE));
    PROMISE(mprotect(P(200), B(100), RW));
    PROMISE(mprotect(P(400), B(100), PROT_READ));
    PROMISE(mprotect(P(400), B(100), RW));
    PROMISE(mprotect(P(400), B(200), RW)); /* over a hole */
    PROMISE(madvise(P(200), B(100), MADV_DONTNEED));
    PROMISE(munmap(P(0), B(1000)));
}

static void moved_memory(void)
{
    PROMISE(map(0, 100, RW, ANON));
    PROMISE(mremap(P(0), B(100), B(120), 0));
    PROMISE(mremap(P(0), B(120), B(60), 0));
    PROMISE(mremap(P(0), B(60), B(70), MREMAP_MAYMOVE | MREMAP_FIXED, P(500)));
    PROMISE(mremap(P(500), B(70), B(70), MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, P(700)));
    PROMISE(mremap(P(700), B(70), B(30), MREMAP_MAYMOVE | MREMAP_FIXED, P(900)));
    PROMISE(map(600, 50, RW, ANON | MAP_NORESERVE));
    PROMISE(mremap(P(600), B(50), B(60), 0));
    PROMISE(mprotect(P(500), B(70), PROT_READ));
    PROMISE(mremap(P(500), B(70), B(80), 0));
    PROMISE(munmap(P(0), B(1000)));
}

static void files(void)
{
    int fd = open("/tmp/promises", O_RDWR | O_CREAT, 0600), memory = memfd_create("promises", 0);

    PROMISE(ftruncate(fd, (long)B(100)));
    PROMISE(map_file(0, 100, RW, MAP_PRIVATE, fd));
    PROMISE(map_file(200, 100, RW, MAP_SHARED, fd));
    PROMISE(map_file(400, 100, PROT_READ, MAP_PRIVATE, fd));
    PROMISE(mprotect(P(400), B(50), RW));
    PROMISE(mprotect(P(400), B(50), PROT_READ));
    PROMISE(munmap(P(0), B(1000)));
    PROMISE(ftruncate(memory, (long)B(100)));
    PROMISE(map_file(0, 100, RW, MAP_SHARED, memory));
    PROMISE(touch(0, 10));
    PROMISE(fallocate(memory, 0, 0, (long)B(20)));
    PROMISE(ftruncate(memory, (long)B(5)));
    PROMISE(close(memory));
    PROMISE(munmap(P(0), B(100)));
    PROMISE(map(0, 100, RW, SHARED_ANON));
    PROMISE(map(200, 100, PROT_READ, SHARED_ANON));
    PROMISE(map(400, 100, RW, SHARED_ANON | MAP_NORESERVE));
    PROMISE(touch(0, 10));
    PROMISE(touch(400, 10));
    PROMISE(munmap(P(0), B(50)));
    PROMISE(mremap(P(50), B(50), B(80), 0));
    PROMISE(munmap(P(0), B(200)));
    PROMISE(munmap(P(200), B(100)));
    PROMISE(munmap(P(400), B(100)));
    PROMISE(close(fd));
    PROMISE(unlink("/tmp/promises"));
}

static long grow_heap(long pages)
{
    long old = syscall(SYS_brk, 0), new = old + pages *(long)PAGE;

    errno = ENOMEM; /* the call itself only tells the end that holds */
    return syscall(SYS_brk, new) == new ? 0 : -1;
}

static void heap_and_stack(void)
{
    PROMISE(grow_heap(50));
    PROMISE(grow_heap(-20));
    PROMISE(grow_heap(-30));
    PROMISE(map(5000, 1, RW, ANON | MAP_GROWSDOWN));
    PROMISE(touch(4960, 1));
    PROMISE(mlock(P(4960), B(41)));
    PROMISE(munmap(P(4960), B(41)));
}

/* => what a child finds promised more than before the fork */
static long child_promise(void)
{
    int ends[2];
    long seen = 0, before;

    if (pipe(ends))
        return -1;
    before = promised();
    pid_t pid = fork();
    if (pid == 0) {
        seen = promised() - before;
        _exit(write(ends[1], &seen, sizeof(seen)) != sizeof(seen));
    }
    if (pid < 0 || read(ends[0], &seen, sizeof(seen)) != sizeof(seen))
        seen = -1;
    close(ends[0]);
    close(ends[1]);
    waitpid(pid, NULL, 0);
    return seen;
}

static void forks(void)
{
    long plain = child_promise(), before = promised();

    map(0, 100, RW, ANON);
    map(200, 100, PROT_READ, ANON);
    map(400, 100, RW, ANON | MAP_NORESERVE);
    printf("a child of 100 pages more: %+ld\n", child_promise() - plain);
    madvise(P(0), B(60), MADV_DONTFORK);
    printf("of 60 of them not for it: %+ld\n", child_promise() - plain);
    munmap(P(0), B(1000));
    printf("afterwards: %+ld\n", promised() - before);
}

/* ---- Modes ---- */

#define BIG (1l << 40)

static void modes(void)
{
    PROMISE(mmap(P(0), BIG, RW, ANON | MAP_FIXED, -1, 0));
    PROMISE(mmap(P(0), BIG, RW, SHARED_ANON | MAP_FIXED, -1, 0));
    set_knob("overcommit_memory", 1);
    PROMISE(mmap(P(0), BIG, RW, ANON | MAP_FIXED, -1, 0));
    PROMISE(munmap(P(0), BIG));
    PROMISE(mmap(P(0), BIG, RW, ANON | MAP_FIXED | MAP_NORESERVE, -1, 0));
    PROMISE(munmap(P(0), BIG));
    map(0, 100, RW, ANON | MAP_NORESERVE);
    set_knob("overcommit_kbytes", (promised() + 10000) * 4);
    set_knob("user_reserve_kbytes", 0);
    set_knob("overcommit_memory", 2);
    printf("limit less promised: %ld\n", meminfo_pages("CommitLimit:") - promised());
    PROMISE(map(20000, 12000, RW, ANON));
    PROMISE(map(20000, 8000, RW, ANON));
    PROMISE(map(40000, 4000, RW, ANON | MAP_NORESERVE));
    PROMISE(mprotect(P(0), B(100), PROT_READ));
    PROMISE(mprotect(P(0), B(100), RW)); /* from the time when nothing was reserved */
    PROMISE(mremap(P(20000), B(8000), B(12000), 0));
    PROMISE(mremap(P(20000), B(8000), B(12000), MREMAP_MAYMOVE));
    PROMISE(munmap(P(20000), B(4000)));
    PROMISE(map(40000, 4000, RW, ANON | MAP_NORESERVE));
    PROMISE(grow_heap(4000));
    PROMISE(map(50000, 4000, RW, SHARED_ANON));
    PROMISE(map(50000, 4000, PROT_READ, ANON));
    PROMISE(mprotect(P(50000), B(4000), RW));
    PROMISE(fork());
    PROMISE(munmap(P(0), B(60000)));
    set_knob("overcommit_memory", 0);
    set_knob("overcommit_ratio", 50);
    set_knob("overcommit_memory", 3);
    set_knob("overcommit_memory", -1);
}

/* ---- Limits of the process ---- */

static void limit(int what, unsigned long bytes)
{
    struct rlimit new = {bytes, RLIM_INFINITY};

    if (setrlimit(what, &new))
        perror("setrlimit");
}

static unsigned long size_pages(int column)
{
    unsigned long columns[7] = {0};
    FILE *file = fopen("/proc/self/statm", "r");

    if (file && fscanf(file, "%lu %lu %lu %lu %lu %lu", &columns[0], &columns[1], &columns[2],
                       &columns[3], &columns[4], &columns[5]) != 6)
        columns[column] = 0;
    if (file)
        fclose(file);
    return columns[column];
}

static void address_space(void)
{
    map(0, 50, PROT_NONE, ANON);
    limit(RLIMIT_AS, B(size_pages(0) + 100));
    PROMISE(map(200, 101, PROT_READ, ANON));
    PROMISE(map(200, 100, PROT_READ, ANON));
    PROMISE(map(400, 1, PROT_READ, ANON));
    PROMISE(map(200, 100, RW, ANON));
    PROMISE(mremap(P(200), B(100), B(101), 0));
    PROMISE(mremap(P(200), B(100), B(100), MREMAP_MAYMOVE | MREMAP_FIXED, P(600)));
    PROMISE(mremap(P(600), B(100), B(100), MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0));
    PROMISE(grow_heap(1));
    limit(RLIMIT_AS, 0);
    PROMISE(munmap(P(0), B(1)));
    PROMISE(mprotect(P(10), B(10), PROT_READ));
    limit(RLIMIT_AS, RLIM_INFINITY);
    munmap(P(0), B(1000));
}

static void data(void)
{
    map(0, 50, PROT_READ, ANON);
    limit(RLIMIT_DATA, 1);
    PROMISE(map(200, 1, PROT_READ, ANON));
    PROMISE(map(300, 1, RW, ANON));
    PROMISE(map(400, 1, RW, SHARED_ANON));
    PROMISE(map(6000, 1, RW, ANON | MAP_GROWSDOWN));
    PROMISE(mprotect(P(0), B(1), RW));
    PROMISE(grow_heap(1));
    limit(RLIMIT_DATA, 0);
    PROMISE(map(300, 1, RW, ANON)); /* none: the hard limit holds */
    PROMISE(grow_heap(1));
    limit(RLIMIT_DATA, RLIM_INFINITY);
    munmap(P(0), B(7000));
}

static int give_up_lock_capability(void)
{
    struct {
        unsigned version;
        int pid;
    } header = {CAP_VERSION, 0};
    unsigned words[6];

    if (syscall(SYS_capget, &header, words))
        return -1;
    words[0] &= ~(1u << CAP_IPC_LOCK); /* effective */
    return (int)syscall(SYS_capset, &header, words);
}

static void locked(void)
{
    map(0, 50, RW, ANON);
    limit(RLIMIT_MEMLOCK, B(20) + 5);
    PROMISE(mlock(P(0), B(30))); /* root may */
    PROMISE(munlockall());
    PROMISE(give_up_lock_capability());
    PROMISE(mlock(P(0), B(21)));
    PROMISE(mlock(P(0), B(20)));
    PROMISE(mlock(P(10), B(10)));
    PROMISE(mlock(P(10), B(11)));
    PROMISE(mlock2(P(40), B(1), MLOCK_ONFAULT));
    PROMISE(map(200, 1, RW, ANON | MAP_LOCKED));
    PROMISE(mremap(P(0), B(20), B(20), MREMAP_MAYMOVE | MREMAP_FIXED, P(300)));
    PROMISE(mremap(P(300), B(20), B(21), MREMAP_MAYMOVE));
    PROMISE(munlock(P(300), B(5)));
    PROMISE(map(200, 5, RW, ANON | MAP_LOCKED));
    PROMISE(mlockall(MCL_CURRENT));
    PROMISE(mlockall(MCL_FUTURE));
    PROMISE(map(400, 1, RW, ANON));
    PROMISE(grow_heap(1));
    PROMISE(munlockall());
    limit(RLIMIT_MEMLOCK, 0);
    PROMISE(mlock(P(0), B(1)));
    PROMISE(munlock(P(200), B(1)));
    PROMISE(mlockall(MCL_CURRENT));
    PROMISE(mlockall(MCL_FUTURE));
    PROMISE(map(500, 1, RW, ANON | MAP_LOCKED));
    limit(RLIMIT_MEMLOCK, RLIM_INFINITY);
    PROMISE(mlockall(MCL_CURRENT));
    munlockall();
    munmap(P(0), B(1000));
}

static void areas(void)
{
    int n = 0;

    set_knob("max_map_count", 100);
    while (n < 200 && map(2 * n, 1, PROT_READ, ANON) != MAP_FAILED)
        n++;
    printf("areas stop at %s\n", n > 60 && n < 100 ? "about a hundred" : "another number");
    PROMISE(mprotect(P(0), B(1), PROT_NONE));
    PROMISE(munmap(P(0), B(1)));
    PROMISE(munmap(P(2), B(20)));
    PROMISE(map(0, 20, PROT_READ, ANON));
    PROMISE(mprotect(P(5), B(5), PROT_NONE));
    set_knob("max_map_count", 65530);
    munmap(P(0), B(1000));
}

int main(void)
{
    meminfo = open("/proc/meminfo", O_RDONLY);
    setvbuf(stdout, malloc(1 << 16), _IOFBF, 1 << 16);
    promised();
    private_memory();
    moved_memory();
    files();
    heap_and_stack();
    forks();
    modes();
    address_space();
    data();
    locked();
    areas();
    return 0;
}
