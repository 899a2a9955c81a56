/*
 * hugemap: memory in pages of 2 MiB (MAP_HUGETLB): the pool and what it promises, the calls on such
 * areas, faults and forks. Every line must be equal on every kernel. Needs to be root, 8 huge pages
 * and nobody else who uses them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/user/show.h"

#define PAGE       SHOW_PAGE
#define HUGE       (2UL << 20)
#define READ_WRITE (PROT_READ | PROT_WRITE)
#define PRIVATE    (MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB)
#define SHARED     (MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB)
#define SIZE(log)  ((log) << 26)
#define POOL       8
#define PLACE      ((char *)0x600000000000UL)
#define ELSEWHERE  ((char *)0x610000000000UL)

#ifndef MADV_COLD
#define MADV_COLD    20
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* ---- The pool -------------------------------------------------------------------------------- */

static long read_number(const char *path)
{
    char text[64];
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, text, sizeof(text) - 1);

    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0 ? atol(text) : -1;
}

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    int error = errno;

    if (fd >= 0)
        close(fd);
    errno = error;
    return n < 0 ? -1 : 0;
}

#define PROC_SIZE "/proc/sys/vm/nr_hugepages"
#define PROC_MORE "/proc/sys/vm/nr_overcommit_hugepages"
#define SYS       "/sys/kernel/mm/hugepages/hugepages-2048kB/"

static long meminfo(const char *name)
{
    static char text[16384];
    int fd = open("/proc/meminfo", O_RDONLY);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    const char *at;

    close(fd);
    text[n > 0 ? n : 0] = '\0';
    at = strstr(text, name);
    return at ? atol(at + strlen(name)) : -1;
}

static void show_pool(const char *when)
{
    printf("%s: total %ld free %ld promised %ld surplus %ld\n", when, meminfo("HugePages_Total:"),
           meminfo("HugePages_Free:"), meminfo("HugePages_Rsvd:"), meminfo("HugePages_Surp:"));
}

static void show_sys(const char *when)
{
    printf("%s: size %ld, in /sys %ld free %ld promised %ld surplus %ld more %ld\n", when,
           read_number(PROC_SIZE), read_number(SYS "nr_hugepages"),
           read_number(SYS "free_hugepages"), read_number(SYS "resv_hugepages"),
           read_number(SYS "surplus_hugepages"), read_number(SYS "nr_overcommit_hugepages"));
}

/* ---- Touching -------------------------------------------------------------------------------- */

static sigjmp_buf behind;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    siglongjmp(behind, number * 100 + info->si_code);
}

static long minor_faults(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/* Where: 0 all well, else signal * 100 + code. */
static int touch(volatile char *at, int value)
{
    int signal = sigsetjmp(behind, 1);

    if (signal)
        return signal;
    if (value >= 0)
        *at = (char)value;
    else
        (void)*at;
    return 0;
}

/* What measuring itself touches is there already, in a child of a fork too. */
static void warm_up(void)
{
    static char own;

    touch(&own, 1);
    (void)minor_faults();
}

static void show_store(const char *name, char *at, int value)
{
    warm_up();
    long before = minor_faults();
    int signal = touch(at, value);
    long faults = minor_faults() - before;

    if (signal)
        printf("%s: signal %d code %d\n", name, signal / 100, signal % 100);
    else
        printf("%s: %ld faults\n", name, faults);
}

static void show_load(const char *name, char *at)
{
    warm_up();
    long before = minor_faults();
    int signal = touch(at, -1);
    long faults = minor_faults() - before;

    if (signal)
        printf("%s: signal %d code %d\n", name, signal / 100, signal % 100);
    else
        printf("%s: %d, %ld faults\n", name, *at, faults);
}

static char *map_at(char *at, size_t pages, int prot, int flags)
{
    return mmap(at, pages * HUGE, prot, flags | MAP_FIXED, -1, 0);
}

/* The areas of [PLACE, PLACE + 16 huge pages) as the kernel sees them. */
static void show_areas(const char *when)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");

    printf("%s:", when);
    while (maps && fgets(line, sizeof(line), maps)) {
        unsigned long start, end, offset;
        char prot[5], dev[16], path[64] = "";

        if (sscanf(line, "%lx-%lx %4s %lx %15s %*u %63[^\n]", &start, &end, prot, &offset, dev,
                   path) < 5)
            continue;
        if (start < (uintptr_t)PLACE || start >= (uintptr_t)PLACE + 16 * HUGE)
            continue;
        printf(" [%lu,%lu)%s+%lu%s", (start - (uintptr_t)PLACE) / PAGE,
               (end - (uintptr_t)PLACE) / PAGE, prot, offset / PAGE, path);
    }
    printf("\n");
    if (maps)
        fclose(maps);
}

/* The lines of smaps for the area at `at` that speak of sizes. */
static void show_smaps(const char *when, char *at)
{
    static const char *const names[] = {
        "Size:", "KernelPageSize:", "MMUPageSize:",    "Rss:",
        "Pss:",  "Anonymous:",      "Shared_Hugetlb:", "Private_Hugetlb:"};
    char line[512], start[32];
    FILE *smaps = fopen("/proc/self/smaps", "r");
    int is_it = 0;

    snprintf(start, sizeof(start), "%lx-", (unsigned long)at);
    while (smaps && fgets(line, sizeof(line), smaps)) {
        if (strchr(line, '-') && strchr(line, '-') < strchr(line, ' '))
            is_it = strncmp(line, start, strlen(start)) == 0;
        for (size_t i = 0; is_it && i < sizeof(names) / sizeof(names[0]); i++)
            if (strncmp(line, names[i], strlen(names[i])) == 0)
                printf("%s: %s %ld\n", when, names[i], atol(line + strlen(names[i])));
        if (is_it && strncmp(line, "VmFlags:", 8) == 0) {
            char *dirty = strstr(line, " sd"); /* kept by some kernels */
            if (dirty)
                memmove(dirty, dirty + 3, strlen(dirty + 3) + 1);
            printf("%s: %s", when, line);
        }
    }
    if (smaps)
        fclose(smaps);
}

static long status_kib(const char *name)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    long value = -1;

    while (status && fgets(line, sizeof(line), status))
        if (strncmp(line, name, strlen(name)) == 0)
            value = atol(line + strlen(name));
    if (status)
        fclose(status);
    return value;
}

/* ---- mmap ------------------------------------------------------------------------------------ */

static void size_of_pool(void)
{
    SHOW("resize to 8", write_text(PROC_SIZE, "8\n"));
    show_pool("pool of 8");
    show_sys("pool of 8");
    printf("page size %ld, all %ld KiB\n", meminfo("Hugepagesize:"), meminfo("Hugetlb:"));
    SHOW("resize to nonsense", write_text(PROC_SIZE, "many\n"));
    SHOW("resize to a negative size", write_text(PROC_SIZE, "-1\n"));
    SHOW("resize in /sys to nonsense", write_text(SYS "nr_hugepages", "x\n"));
    SHOW("resize in /sys", write_text(SYS "nr_hugepages", "6\n"));
    show_pool("pool of 6");
    SHOW("write free_hugepages", write_text(SYS "free_hugepages", "1\n"));
    SHOW("resize again", write_text(PROC_SIZE, "8"));
    show_pool("pool of 8");
}

static void mmap_arguments(void)
{
    int fd = open("/proc/self/exe", O_RDONLY);
    char *map;

    SHOW_MAP("length 0", mmap(NULL, 0, READ_WRITE, PRIVATE, -1, 0));
    SHOW_MAP("length that wraps",
             (void *)syscall(SYS_mmap, NULL, ~0UL, READ_WRITE, PRIVATE, -1, 0L));
    SHOW_MAP("length of half the space",
             (void *)syscall(SYS_mmap, NULL, 1UL << 47, READ_WRITE, PRIVATE, -1, 0L));
    SHOW_MAP("more than the pool has", mmap(NULL, 9 * HUGE, READ_WRITE, PRIVATE, -1, 0));
    SHOW_MAP("more, shared", mmap(NULL, 9 * HUGE, READ_WRITE, SHARED, -1, 0));
    SHOW_MAP("1 GiB pages", mmap(NULL, HUGE, READ_WRITE, PRIVATE | SIZE(30), -1, 0));
    SHOW_MAP("64 KiB pages", mmap(NULL, HUGE, READ_WRITE, PRIVATE | SIZE(16), -1, 0));
    SHOW_MAP("huge size code", mmap(NULL, HUGE, READ_WRITE, PRIVATE | (int)SIZE(63u), -1, 0));
    SHOW_MAP("no sharing flag", mmap(NULL, HUGE, READ_WRITE, MAP_ANONYMOUS | MAP_HUGETLB, -1, 0));
    SHOW_MAP("growing down", mmap(NULL, HUGE, READ_WRITE, PRIVATE | MAP_GROWSDOWN, -1, 0));
    SHOW_MAP("a file", mmap(NULL, HUGE, PROT_READ, MAP_PRIVATE | MAP_HUGETLB, fd, 0));
    SHOW_MAP("a bad descriptor", mmap(NULL, HUGE, PROT_READ, MAP_PRIVATE | MAP_HUGETLB, 999, 0));
    SHOW_MAP("an odd offset", (void *)syscall(SYS_mmap, NULL, HUGE, READ_WRITE, PRIVATE, -1, PAGE));
    SHOW_MAP("fixed in the middle of a page",
             mmap(PLACE + PAGE, HUGE, READ_WRITE, PRIVATE | MAP_FIXED, -1, 0));
    SHOW_MAP("fixed beyond the end",
             mmap((void *)(1UL << 56), HUGE, READ_WRITE, PRIVATE | MAP_FIXED, -1, 0));
    show_pool("after errors");
    map = mmap(NULL, 1, READ_WRITE, PRIVATE | SIZE(21), -1, 0);
    SHOW_TRUE("any place is aligned", (uintptr_t)map % HUGE == 0);
    SHOW("its one byte is a page", munmap(map, HUGE));
    map = mmap(PLACE + 4 * PAGE, PAGE, READ_WRITE, PRIVATE, -1, 0);
    printf("hint inside a page: %ld pages away\n", (long)(map - PLACE) / (long)PAGE);
    show_areas("hint");
    SHOW_MAP("noreplace on something",
             mmap(PLACE, HUGE, READ_WRITE, PRIVATE | MAP_FIXED_NOREPLACE, -1, 0));
    SHOW_MAP("noreplace beside it",
             mmap(PLACE + HUGE, HUGE, READ_WRITE, PRIVATE | MAP_FIXED_NOREPLACE, -1, 0));
    show_areas("two");
    show_pool("two");
    SHOW("munmap both", munmap(PLACE, 2 * HUGE));
    SHOW_MAP("an offset of a page",
             (void *)syscall(SYS_mmap, PLACE, HUGE, READ_WRITE, PRIVATE | MAP_FIXED, -1, HUGE));
    show_areas("offset");
    show_store("store behind the offset", PLACE, 1);
    SHOW("munmap it", munmap(PLACE, HUGE));
    SHOW_MAP("shared, validated",
             map_at(PLACE, 1, READ_WRITE, MAP_SHARED_VALIDATE | MAP_ANONYMOUS | MAP_HUGETLB));
    SHOW("munmap it", munmap(PLACE, HUGE));
    show_pool("at the end");
    close(fd);
}

/* ---- Promises -------------------------------------------------------------------------------- */

static void promises(void)
{
    map_at(PLACE, 6, READ_WRITE, PRIVATE);
    show_pool("6 of 8 mapped");
    SHOW_MAP("3 more", map_at(ELSEWHERE, 3, READ_WRITE, PRIVATE));
    SHOW_MAP("3 more without promise", map_at(ELSEWHERE, 3, READ_WRITE, PRIVATE | MAP_NORESERVE));
    show_store("first", ELSEWHERE, 1);
    show_store("second", ELSEWHERE + HUGE, 1);
    show_store("third", ELSEWHERE + 2 * HUGE, 1);
    show_load("third", ELSEWHERE + 2 * HUGE);
    SHOW("populate it", madvise(ELSEWHERE, 3 * HUGE, MADV_POPULATE_WRITE));
    show_pool("all promised or taken");
    show_store("promised", PLACE, 1);
    show_pool("one more taken");
    SHOW("munmap the middle", munmap(PLACE + 2 * HUGE, 2 * HUGE));
    show_pool("two promises back");
    show_store("third", ELSEWHERE + 2 * HUGE, 1);
    SHOW("munmap the rest", munmap(PLACE, 6 * HUGE));
    SHOW("and the others", munmap(ELSEWHERE, 3 * HUGE));
    show_pool("nothing mapped");
    map_at(PLACE, 8, READ_WRITE, PRIVATE);
    show_store("store", PLACE, 5);
    SHOW_MAP("all of it again", map_at(PLACE, 8, READ_WRITE, PRIVATE));
    show_pool("replaced");
    show_load("new", PLACE);
    SHOW_MAP("too much over it", map_at(PLACE, 9, READ_WRITE, PRIVATE));
    show_areas("then");
    show_pool("then");
    munmap(PLACE, 16 * HUGE);
}

static void surplus(void)
{
    SHOW("shrink to 2", write_text(PROC_SIZE, "2"));
    SHOW("allow 2 more", write_text(PROC_MORE, "2"));
    show_sys("2 and 2");
    SHOW_MAP("5", map_at(PLACE, 5, READ_WRITE, PRIVATE));
    show_pool("after it");
    SHOW_MAP("4", map_at(PLACE, 4, READ_WRITE, PRIVATE));
    show_pool("4 mapped");
    show_store("one", PLACE, 1);
    show_pool("one taken");
    SHOW("DONTNEED it", madvise(PLACE, HUGE, MADV_DONTNEED));
    show_pool("given back");
    SHOW("munmap 3", munmap(PLACE + HUGE, 3 * HUGE));
    show_pool("3 unmapped");
    SHOW("munmap all", munmap(PLACE, HUGE));
    show_pool("all unmapped");
    SHOW("allow none", write_text(PROC_MORE, "0"));
    SHOW("allow nonsense", write_text(PROC_MORE, "-"));
    map_at(PLACE, 2, READ_WRITE, PRIVATE);
    show_store("one", PLACE, 1);
    SHOW("shrink to 0", write_text(PROC_SIZE, "0"));
    show_pool("in use");
    show_sys("in use");
    SHOW("grow to 1", write_text(PROC_SIZE, "1"));
    show_pool("one wanted");
    SHOW("munmap", munmap(PLACE, 2 * HUGE));
    show_pool("free");
    SHOW("grow to 8", write_text(PROC_SIZE, "8"));
    show_pool("as before");
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void faults(void)
{
    map_at(PLACE, 3, READ_WRITE, PRIVATE);
    show_load("private load", PLACE + 1000);
    show_store("then a store", PLACE + 5 * PAGE, 1);
    show_store("and another", PLACE + 9 * PAGE, 1);
    show_store("private store", PLACE + HUGE, 2);
    show_load("last byte", PLACE + 2 * HUGE - 1);
    show_smaps("private", PLACE);
    printf("status: %ld KiB in huge pages\n", status_kib("HugetlbPages:"));
    munmap(PLACE, 3 * HUGE);
    map_at(PLACE, 2, READ_WRITE, SHARED);
    show_load("shared load", PLACE);
    show_store("then a store", PLACE, 3);
    show_smaps("shared", PLACE);
    show_areas("shared");
    show_pool("shared");
    SHOW("munmap its first page", munmap(PLACE, HUGE));
    show_pool("half of it");
    SHOW("munmap its second", munmap(PLACE + HUGE, HUGE));
    show_pool("none of it");
    map_at(PLACE, 1, PROT_READ, PRIVATE);
    show_load("read-only", PLACE);
    show_store("store to it", PLACE, 1);
    munmap(PLACE, HUGE);
    map_at(PLACE, 1, PROT_NONE, PRIVATE);
    show_load("none", PLACE);
    munmap(PLACE, HUGE);
    map_at(PLACE, 2, READ_WRITE, PRIVATE | MAP_POPULATE);
    show_pool("populated");
    show_store("no fault", PLACE + HUGE, 1);
    munmap(PLACE, 2 * HUGE);
}

static void unmap_and_protect(void)
{
    map_at(PLACE, 4, READ_WRITE, PRIVATE);
    for (int i = 0; i < 4; i++)
        PLACE[i * HUGE] = (char)(i + 1);
    SHOW("munmap a small page", munmap(PLACE, PAGE));
    SHOW("munmap from within", munmap(PLACE + PAGE, HUGE));
    SHOW("munmap to within", munmap(PLACE, HUGE + PAGE));
    SHOW("mprotect a small page", mprotect(PLACE, PAGE, PROT_READ));
    SHOW("mprotect from within", mprotect(PLACE + HUGE + PAGE, HUGE - PAGE, PROT_READ));
    show_areas("uncut");
    SHOW("mprotect one", mprotect(PLACE + HUGE, HUGE, PROT_READ));
    show_areas("read-only");
    show_store("store", PLACE + HUGE, 9);
    SHOW("back", mprotect(PLACE + HUGE, HUGE, READ_WRITE));
    show_areas("unmerged");
    show_load("load", PLACE + HUGE);
    show_store("store", PLACE + HUGE, 9);
    SHOW("none", mprotect(PLACE, 2 * HUGE, PROT_NONE));
    show_load("load", PLACE);
    show_smaps("none", PLACE);
    SHOW("all", mprotect(PLACE, 4 * HUGE, READ_WRITE | PROT_EXEC));
    show_load("load", PLACE);
    show_store("store", PLACE, 4);
    SHOW_MAP("small page over it",
             mmap(PLACE + PAGE, PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    SHOW_MAP("small pages over one",
             mmap(PLACE + HUGE, HUGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    show_load("small", PLACE + HUGE);
    show_areas("mixed");
    show_pool("mixed");
    SHOW("munmap all", munmap(PLACE, 4 * HUGE));
    map_at(PLACE, 1, READ_WRITE, SHARED);
    show_store("shared store", PLACE, 1);
    SHOW("read-only", mprotect(PLACE, HUGE, PROT_READ));
    SHOW("and back", mprotect(PLACE, HUGE, READ_WRITE));
    show_store("store", PLACE, 2);
    munmap(PLACE, HUGE);
    show_pool("at the end");
}

static void advice(void)
{
    map_at(PLACE, 4, READ_WRITE, PRIVATE);
    for (int i = 0; i < 4; i++)
        PLACE[i * HUGE] = (char)(i + 1);
    SHOW("DONTNEED from within", madvise(PLACE + PAGE, HUGE, MADV_DONTNEED));
    SHOW("DONTNEED less than a page", madvise(PLACE, HUGE - PAGE, MADV_DONTNEED));
    show_load("still there", PLACE);
    SHOW("DONTNEED a page and a bit", madvise(PLACE, HUGE + PAGE, MADV_DONTNEED));
    show_pool("one given up");
    show_load("zeros", PLACE);
    show_load("the bit", PLACE + HUGE);
    SHOW("FREE", madvise(PLACE, HUGE, MADV_FREE));
    SHOW("COLD", madvise(PLACE, HUGE, MADV_COLD));
    SHOW("PAGEOUT", madvise(PLACE, HUGE, MADV_PAGEOUT));
    SHOW("WILLNEED", madvise(PLACE, HUGE, MADV_WILLNEED));
    SHOW("REMOVE of private", madvise(PLACE, HUGE, MADV_REMOVE));
    SHOW("SEQUENTIAL within", madvise(PLACE, PAGE, MADV_SEQUENTIAL));
    SHOW("SEQUENTIAL", madvise(PLACE, HUGE, MADV_SEQUENTIAL));
    SHOW("WIPEONFORK", madvise(PLACE, HUGE, MADV_WIPEONFORK));
    SHOW("KEEPONFORK", madvise(PLACE, HUGE, MADV_KEEPONFORK));
    SHOW("DONTDUMP", madvise(PLACE, HUGE, MADV_DONTDUMP));
    SHOW("DODUMP", madvise(PLACE, HUGE, MADV_DODUMP));
    SHOW("DONTFORK", madvise(PLACE, HUGE, MADV_DONTFORK));
    SHOW("DOFORK", madvise(PLACE, HUGE, MADV_DOFORK));
    SHOW("POPULATE_READ", madvise(PLACE, 4 * HUGE, MADV_POPULATE_READ));
    show_areas("advised");
    munmap(PLACE, 4 * HUGE);
    map_at(PLACE, 2, READ_WRITE, SHARED);
    show_store("shared store", PLACE, 7);
    show_store("shared store", PLACE + HUGE, 8);
    SHOW("DONTNEED of shared", madvise(PLACE, HUGE, MADV_DONTNEED));
    show_pool("kept");
    show_load("the same", PLACE);
    SHOW("REMOVE of a part", madvise(PLACE + HUGE + PAGE, PAGE, MADV_REMOVE));
    show_load("before it", PLACE + HUGE);
    SHOW("REMOVE from there", madvise(PLACE + HUGE, PAGE, MADV_REMOVE));
    show_load("cleared", PLACE + HUGE);
    SHOW("REMOVE of shared", madvise(PLACE, HUGE, MADV_REMOVE));
    show_pool("removed");
    show_load("zeros", PLACE);
    show_pool("again");
    munmap(PLACE, 2 * HUGE);
    show_pool("at the end");
}

static void moving(void)
{
    const int move = MREMAP_MAYMOVE | MREMAP_FIXED;

    /* Touched and whole: Linux loses count of promises that move. */
    map_at(PLACE, 2, READ_WRITE, PRIVATE);
    PLACE[0] = 1;
    PLACE[HUGE] = 2;
    SHOW_MAP("grow", mremap(PLACE, 2 * HUGE, 3 * HUGE, 0));
    SHOW_MAP("grow elsewhere", mremap(PLACE, 2 * HUGE, 3 * HUGE, MREMAP_MAYMOVE));
    SHOW_MAP("from within", mremap(PLACE + PAGE, HUGE, HUGE, move, ELSEWHERE));
    SHOW_MAP("to within", mremap(PLACE, HUGE, HUGE, move, ELSEWHERE + PAGE));
    SHOW_MAP("leaving it", mremap(PLACE, HUGE, HUGE, MREMAP_MAYMOVE | 4, 0));
    SHOW_MAP("length 0", mremap(PLACE, 0, HUGE, MREMAP_MAYMOVE, 0));
    SHOW_MAP("move two", mremap(PLACE, 2 * HUGE, 2 * HUGE, move, ELSEWHERE));
    show_load("first", ELSEWHERE);
    show_load("second", ELSEWHERE + HUGE);
    show_load("old", PLACE);
    show_pool("moved");
    SHOW_MAP("shrink to a bit", mremap(ELSEWHERE, 2 * HUGE, PAGE, 0));
    show_pool("shrunk");
    SHOW_MAP("move back one", mremap(ELSEWHERE, HUGE, HUGE, move, PLACE));
    show_load("back", PLACE);
    show_areas("back");
    SHOW("munmap", munmap(PLACE, 4 * HUGE));
    show_pool("at the end");
}

static void residency(void)
{
    unsigned char vec[1024];
    int sum = 0;

    map_at(PLACE, 2, READ_WRITE, PRIVATE);
    PLACE[HUGE] = 1;
    SHOW("mincore", mincore(PLACE, 2 * HUGE, vec));
    for (int i = 0; i < 1024; i++)
        sum += vec[i] & 1;
    printf("resident: %d, first %d, last %d\n", sum, vec[0] & 1, vec[1023] & 1);
    SHOW("mincore within", mincore(PLACE + HUGE + PAGE, PAGE, vec));
    SHOW("mlock", mlock(PLACE, PAGE));
    show_pool("locked");
    show_areas("locked");
    SHOW("munlock", munlock(PLACE, 2 * HUGE));
    SHOW("msync", msync(PLACE, 2 * HUGE, MS_SYNC));
    munmap(PLACE, 2 * HUGE);
}

/* ---- Other ways in --------------------------------------------------------------------------- */

static void other_ways(void)
{
    char buf[16] = "abcdefghijklmno";
    int fd = open("/proc/self/mem", O_RDWR), pagemap = open("/proc/self/pagemap", O_RDONLY);
    uint64_t entries[2] = {0, 0};
    int pipes[2];

    map_at(PLACE, 2, READ_WRITE, PRIVATE);
    SHOW("pipe", pipe(pipes));
    SHOW("write", write(pipes[1], buf, 16));
    SHOW("read across pages", read(pipes[0], PLACE + HUGE - 8, 16));
    printf("read: %.16s\n", PLACE + HUGE - 8);
    SHOW("mem", pwrite(fd, "XY", 2, (off_t)(uintptr_t)PLACE + (off_t)HUGE - 1));
    printf("mem: %.16s\n", PLACE + HUGE - 8);
    SHOW("pagemap", pread(pagemap, entries, 16, (off_t)((uintptr_t)PLACE / PAGE * 8)));
    printf("present %d, neighbours %s\n", (int)(entries[0] >> 63),
           (entries[1] & ((1UL << 55) - 1)) == (entries[0] & ((1UL << 55) - 1)) + 1 ? "yes" : "no");
    printf("exclusive %d, of a file %d\n", (int)(entries[0] >> 56 & 1),
           (int)(entries[0] >> 61 & 1));
    munmap(PLACE, 2 * HUGE);
    close(fd);
    close(pagemap);
    close(pipes[0]);
    close(pipes[1]);
}

/* ---- Fork ------------------------------------------------------------------------------------ */

static void wait_for(pid_t pid)
{
    int status = 0;

    waitpid(pid, &status, 0);
    printf("child: %s %d\n", WIFSIGNALED(status) ? "signal" : "exit",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

#define IN_CHILD(...)        \
    do {                     \
        fflush(stdout);      \
        pid_t pid_ = fork(); \
        if (pid_ == 0) {     \
            __VA_ARGS__;     \
            fflush(stdout);  \
            _exit(0);        \
        }                    \
        wait_for(pid_);      \
    } while (0)

static void fork_private(void)
{
    map_at(PLACE, 3, READ_WRITE, PRIVATE);
    PLACE[0] = 1;
    PLACE[HUGE] = 2;
    IN_CHILD(show_load("child loads", PLACE); show_store("child stores", PLACE, 50);
             show_load("child loads", PLACE); show_pool("child has a copy");
             show_store("untouched by the parent", PLACE + 2 * HUGE, 3); show_pool("another"));
    show_pool("child gone");
    show_load("parent's", PLACE);
    show_store("in place", PLACE, 9);
    munmap(PLACE, 3 * HUGE);
    map_at(PLACE, 8, READ_WRITE, PRIVATE);
    PLACE[0] = 1;
    IN_CHILD(show_load("shared still", PLACE); show_store("no page for a copy", PLACE, 2);
             show_load("the other is promised", PLACE + HUGE); show_pool("child"));
    munmap(PLACE, 8 * HUGE);
    show_pool("all back");
}

static void child_of_robber(int from_parent, int to_parent)
{
    char byte;

    if (read(from_parent, &byte, 1) != 1)
        _exit(9);
    show_load("child's page was taken", PLACE);
    show_load("another is there", PLACE + HUGE);
    show_load("never touched, and one is free", PLACE + 7 * HUGE);
    show_pool("child");
    fflush(stdout);
    if (write(to_parent, "x", 1) != 1)
        _exit(9);
    _exit(0);
}

static void fork_and_take(void)
{
    int to_child[2], to_parent[2];
    char byte;

    if (pipe(to_child) || pipe(to_parent))
        return;
    map_at(PLACE, 8, READ_WRITE, PRIVATE);
    for (int i = 0; i < 7; i++)
        PLACE[i * HUGE] = (char)(i + 1);
    show_pool("7 taken, one promised");
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        child_of_robber(to_child[0], to_parent[1]);
    show_store("parent stores without a page", PLACE, 100);
    SHOW("munmap one", munmap(PLACE + 2 * HUGE, HUGE));
    SHOW("munmap the last", munmap(PLACE + 7 * HUGE, HUGE));
    show_pool("the child has it");
    fflush(stdout);
    if (write(to_child[1], "x", 1) != 1 || read(to_parent[0], &byte, 1) != 1)
        printf("no child\n");
    wait_for(pid);
    show_load("parent's", PLACE);
    munmap(PLACE, 8 * HUGE);
    show_pool("all back");
    close(to_child[0]);
    close(to_child[1]);
    close(to_parent[0]);
    close(to_parent[1]);
}

/* Who asked for no promise has no right to the page either. */
static void fork_without_promise(void)
{
    map_at(PLACE, 7, READ_WRITE, PRIVATE);
    map_at(PLACE + 7 * HUGE, 1, READ_WRITE, PRIVATE | MAP_NORESERVE);
    PLACE[7 * HUGE] = 1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    show_store("parent without a promise", PLACE + 7 * HUGE, 100);
    show_load("still there", PLACE + 7 * HUGE);
    kill(pid, SIGKILL);
    wait_for(pid);
    show_store("then alone", PLACE + 7 * HUGE, 100);
    munmap(PLACE, 8 * HUGE);
    show_pool("all back");
}

static void fork_shared(void)
{
    map_at(PLACE, 2, READ_WRITE, SHARED);
    PLACE[0] = 1;
    IN_CHILD(show_load("child loads", PLACE); show_store("child stores", PLACE, 50);
             show_store("child stores first", PLACE + HUGE, 51); show_smaps("child", PLACE));
    show_load("parent's", PLACE);
    show_load("child's", PLACE + HUGE);
    show_pool("shared");
    munmap(PLACE, 2 * HUGE);
    show_pool("all back");
}

/* A futex in a shared huge page: the child waits, the parent wakes. */
static void futex_meets(void)
{
    int *word;

    map_at(PLACE, 1, READ_WRITE, SHARED);
    word = (int *)(PLACE + 1234 * 4);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        while (*(volatile int *)word == 0)
            syscall(SYS_futex, word, 0, 0, NULL);
        _exit(*word);
    }
    while (syscall(SYS_futex, word, 1, 1) == 0)
        sched_yield();
    *word = 7;
    syscall(SYS_futex, word, 1, 1);
    wait_for(pid);
    munmap(PLACE, HUGE);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_NODEFER};

    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    show_pool("begin"); /* warms up */
    size_of_pool();
    mmap_arguments();
    promises();
    surplus();
    faults();
    unmap_and_protect();
    advice();
    moving();
    residency();
    other_ways();
    fork_private();
    fork_and_take();
    fork_without_promise();
    fork_shared();
    futex_meets();
    SHOW("empty the pool", write_text(PROC_SIZE, "0"));
    show_pool("end");
    return 0;
}
