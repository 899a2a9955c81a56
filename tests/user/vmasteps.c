/*
 * vmasteps: the steps of the `VMA` lines of tests/data/vma.txt, as a program makes them. What it
 * prints is these lines, one for one and in their order, on every kernel that splits and merges
 * areas as Linux 6.12 does; a test compares them. So a line without its step is a failure.
 *
 * A line shows what the call returned (addresses in pages from the window's base), the errno, and
 * the areas of the window as /proc/self/maps has them: `[first,end)prot+sharing` and `+f` with the
 * file's page, or `0` for anonymous memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE           4096ul
#define BASE           0x200000000ul
#define MANY_BASE      0x300000000ul
#define WINDOW         64ul
#define AT(n)          ((void *)(BASE + (n)*PAGE))
#define RW             (PROT_READ | PROT_WRITE)
#define ANON           (MAP_PRIVATE | MAP_ANONYMOUS)
#define ORACLE_AREAS   15 /* that the measured program had */
#define TRIES_MAX      100000
#define FILE_PAGES     64
#define LINE_MAX_BYTES 512

static int rw_file, ro_file, wo_file;

/* ---- One line ---- */

static void put_area(const char *line)
{
    unsigned long start, end, offset, inode;
    char prot[5];

    if (sscanf(line, "%lx-%lx %4s %lx %*s %lu", &start, &end, prot, &offset, &inode) != 5 ||
        end <= BASE || start >= BASE + WINDOW * PAGE)
        return;
    printf(" [%lu,%lu)%s", (start - BASE) / PAGE, (end - BASE) / PAGE, prot);
    if (inode)
        printf("+f%lu", offset / PAGE);
    else
        printf("0");
}

static void put_window(void)
{
    char line[LINE_MAX_BYTES];
    FILE *maps = fopen("/proc/self/maps", "r");

    while (maps && fgets(line, sizeof(line), maps))
        put_area(line);
    if (maps)
        fclose(maps);
}

static void step(const char *name, long result)
{
    int error = errno;

    if (result >= (long)BASE)
        result = (result - (long)BASE) / (long)PAGE;
    printf("VMA %-34s r=%ld e=%d |", name, result, result == -1 ? error : 0);
    put_window();
    printf("\n");
}

/* ---- Calls ---- */

static long map(unsigned long first, unsigned long pages, int prot)
{
    return (long)mmap(AT(first), pages * PAGE, prot, ANON | MAP_FIXED, -1, 0);
}

static long map_file(int fd, unsigned long first, unsigned long pages, int prot, int type,
                     long page)
{
    return (long)mmap(AT(first), pages * PAGE, prot, type | MAP_FIXED, fd, page * (long)PAGE);
}

static void clear(void)
{
    munmap(AT(0), WINDOW * PAGE);
}

static void touch(unsigned long first, unsigned long pages)
{
    for (unsigned long i = first; i < first + pages; i++)
        *(volatile char *)AT(i) = 1;
}

static long protect(unsigned long first, unsigned long pages, int prot)
{
    return mprotect(AT(first), pages * PAGE, prot);
}

static long unmap(unsigned long first, unsigned long pages)
{
    return munmap(AT(first), pages * PAGE);
}

static long advise(unsigned long first, unsigned long pages, int advice)
{
    return madvise(AT(first), pages * PAGE, advice);
}

static long remap(unsigned long first, unsigned long old, unsigned long new, int flags,
                  unsigned long to)
{
    return (long)mremap(AT(first), old * PAGE, new *PAGE, flags, AT(to));
}

/* ---- Accesses that may be refused ---- */

static sigjmp_buf back;
static volatile int last_code;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    last_code = info->si_code;
    siglongjmp(back, number);
}

/* => the signal that the access ended in, or 0 */
static int try_access(volatile char *byte, int write)
{
    int number = sigsetjmp(back, 1);

    if (number == 0) {
        if (write)
            *byte = 1;
        else
            (void)*byte;
    }
    return number;
}

/* ---- The scenarios ---- */

static void anonymous(void)
{
    step("anon 0..3", map(0, 4, RW));
    step("anon 4..7 adj merge", map(4, 4, RW));
    step("anon 8..9 RO no merge", map(8, 2, PROT_READ));
    step("mprotect 8..9 RW merge", protect(8, 2, RW));
    step("mprotect 3..4 RO split3", protect(3, 2, PROT_READ));
    step("mprotect 3..4 RW rejoin", protect(3, 2, RW));
    step("munmap 4 split2", unmap(4, 1));
    step("refill 4 joins 3", map(4, 1, RW));
    step("munmap hole ok", unmap(20, 4));
    step("munmap span", unmap(2, 4));
    step("mprotect over hole", protect(0, 10, PROT_READ));
    clear();
}

static void with_pages(void)
{
    map(0, 8, RW);
    touch(0, 8);
    step("touched then adj map", map(8, 4, RW));
    touch(8, 4);
    map(12, 2, RW);
    step("after touch", 0);
    clear();
    map(0, 2, RW);
    touch(0, 2);
    map(4, 2, RW);
    touch(4, 2);
    step("bridge 2..3 between 2 faulted", map(2, 2, RW));
    clear();
}

static void files(void)
{
    step("file 0..3 off0 sh", map_file(rw_file, 0, 4, PROT_READ, MAP_SHARED, 0));
    step("file 4..5 off4 merges", map_file(rw_file, 4, 2, PROT_READ, MAP_SHARED, 4));
    step("file 6..7 off0 no merge", map_file(rw_file, 6, 2, PROT_READ, MAP_SHARED, 0));
    step("file 8..9 priv off2 no", map_file(rw_file, 8, 2, PROT_READ, MAP_PRIVATE, 2));
    step("munmap 1", unmap(1, 1));
    clear();
}

static void advice(void)
{
    map_file(rw_file, 0, 8, RW, MAP_SHARED, 0);
    step("madvise RANDOM 2..3", advise(2, 2, MADV_RANDOM));
    step("madvise NORMAL 2..3", advise(2, 2, MADV_NORMAL));
    step("madvise SEQ all", advise(0, 8, MADV_SEQUENTIAL));
    step("madvise over hole", advise(0, 12, MADV_NORMAL));
    step("madvise bad", advise(0, 1, 9999));
    step("madvise unaligned", madvise((char *)AT(0) + 1, PAGE, MADV_NORMAL));
    clear();
}

static void locks(void)
{
    map(0, 8, RW);
    step("mlock 2", mlock(AT(2), PAGE));
    step("munlock 2", munlock(AT(2), PAGE));
    step("mlock over hole", mlock(AT(0), 12 * PAGE));
    clear();
}

static void moves(void)
{
    map(0, 4, RW);
    step("mremap grow inplace", remap(0, 4, 6, 0, 0));
    map(6, 1, PROT_READ);
    step("mremap grow blocked", remap(0, 6, 8, 0, 0));
    step("mremap shrink", remap(0, 6, 2, 0, 0));
    step("mremap MAYMOVE|FIXED to 20", remap(0, 2, 4, MREMAP_MAYMOVE | MREMAP_FIXED, 20));
    step("mremap overlap", remap(20, 4, 4, MREMAP_MAYMOVE | MREMAP_FIXED, 22));
    step("mremap unmapped", remap(50, 1, 2, MREMAP_MAYMOVE, 0));
    step("mremap old0 anon priv", remap(20, 0, 1, MREMAP_MAYMOVE, 0));
    map(30, 2, RW);
    map(32, 2, PROT_READ);
    step("mremap across 2 vmas", remap(30, 4, 6, MREMAP_MAYMOVE, 0));
    clear();
}

static void refused(void)
{
    step("no PRIVATE/SHARED", (long)mmap(AT(0), PAGE, RW, MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    step("off unaligned",
         syscall(SYS_mmap, AT(0), PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, rw_file, 100));
    step("FIXED unaligned", (long)mmap((char *)AT(0) + 1, PAGE, RW, ANON | MAP_FIXED, -1, 0));
    step("badfd", map_file(999, 0, 1, PROT_READ, MAP_PRIVATE, 0));
    step("shared W on RO fd", map_file(ro_file, 0, 1, RW, MAP_SHARED, 0));
    map_file(ro_file, 0, 1, RW, MAP_PRIVATE, 0);
    step("R on WO fd", map_file(wo_file, 2, 1, PROT_READ, MAP_SHARED, 0));
    map_file(ro_file, 2, 1, PROT_READ, MAP_SHARED, 0);
    step("sh RO fd then mprotect W", protect(2, 1, RW));
    clear();
}

static void hints(void)
{
    map(4, 1, RW);
    step("NOREPLACE overlap", (long)mmap(AT(4), 2 * PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0));
    step("NOREPLACE free", (long)mmap(AT(8), PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0));
    map(12, 1, PROT_READ);
    void *elsewhere = mmap(AT(4), PAGE, PROT_READ, ANON, -1, 0);
    step("hint taken->elsewhere", elsewhere != MAP_FAILED && elsewhere != AT(4));
    munmap(elsewhere, PAGE);
    clear();
}

static void residency(void)
{
    unsigned char vec[2] = {9, 9};

    step("msync hole", msync(AT(0), 2 * PAGE, MS_SYNC));
    map(0, 2, RW);
    touch(0, 1);
    step("mincore anon", mincore(AT(0), 2 * PAGE, vec));
    printf("VMA   mincore vec %d %d\n", vec[0] & 1, vec[1] & 1);
}

/* On [0,2) of before. */
static void protections(void)
{
    int number;

    protect(0, 1, PROT_NONE);
    number = try_access(AT(0), 0);
    printf("VMA   read NONE sig=%d/%d\n", number, last_code);
    step("mprotect W only", protect(0, 1, PROT_WRITE));
    printf("VMA   read W-only sig=%d\n", try_access(AT(0), 0));
    protect(0, 1, PROT_EXEC);
    number = try_access(AT(0), 0);
    printf("VMA   read X-only sig=%d/0\n", number); /* the code is not meant */
    clear();
}

static void places(void)
{
    char *a = mmap(NULL, PAGE, RW, ANON, -1, 0), *b = mmap(NULL, PAGE, PROT_READ, ANON, -1, 0);
    char *c = mmap(NULL, 4 * PAGE, RW, ANON, -1, 0), *d;

    printf("VMA topdown a-b=%ld b-c=%ld\n", (a - b) / (long)PAGE, (b - c) / (long)PAGE);
    munmap(b, PAGE);
    d = mmap(NULL, PAGE, PROT_READ, ANON, -1, 0);
    printf("VMA hole reuse highest-fit d==b:%d\n", d == b);
    munmap(a, PAGE);
    munmap(d, PAGE);
    munmap(c, 4 * PAGE);
}

static void growth(void)
{
    step("growsdown at 40", (long)mmap(AT(40), PAGE, RW, ANON | MAP_GROWSDOWN | MAP_FIXED, -1, 0));
    printf("VMA touch 30 sig=%d\n", try_access(AT(30), 1));
    clear();
}

/* All of /proc/self/maps but the kernel's own page. */
static int count_areas(void)
{
    char line[LINE_MAX_BYTES];
    FILE *maps = fopen("/proc/self/maps", "r");
    int n = 0;

    while (maps && fgets(line, sizeof(line), maps))
        n += strstr(line, "[vsyscall]") == NULL;
    if (maps)
        fclose(maps);
    return n;
}

/* As many as if this program had had as many areas as the measured one. */
static void number_of_areas(void)
{
    int own = count_areas(), n = 0;
    void *area = NULL;

    while (n < TRIES_MAX) {
        area = mmap((void *)(MANY_BASE + 2 * PAGE * (unsigned long)n), PAGE, PROT_READ,
                    ANON | MAP_FIXED, -1, 0);
        if (area == MAP_FAILED)
            break;
        n++;
    }
    printf("VMA map count limit hit at %d errno=%d\n", n + own - ORACLE_AREAS, errno);
    printf("VMA munmap at limit r=%d\n", munmap((void *)MANY_BASE, PAGE));
    munmap((void *)MANY_BASE, 2 * PAGE * TRIES_MAX);
}

static void make_file(const char *path)
{
    rw_file = open(path, O_RDWR | O_CREAT, 0600);
    ro_file = open(path, O_RDONLY);
    wo_file = open(path, O_WRONLY);
    if (wo_file < 0 || ro_file < 0 || ftruncate(rw_file, FILE_PAGES * (long)PAGE)) {
        perror(path);
        exit(EXIT_FAILURE);
    }
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};

    sigaction(SIGSEGV, &action, NULL);
    make_file("/tmp/vmasteps");
    setvbuf(stdout, malloc(PAGE), _IOFBF, PAGE);
    anonymous();
    with_pages();
    files();
    advice();
    locks();
    moves();
    refused();
    hints();
    residency();
    protections();
    places();
    growth();
    number_of_areas();
    unlink("/tmp/vmasteps");
    return 0;
}
