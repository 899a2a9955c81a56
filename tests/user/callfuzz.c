/*
 * callfuzz: system calls with arguments that are good, nearly good and wild. No call may end the
 * program or change its own memory; everything else is allowed. Use: callfuzz SEED CALLS
 *
 * The same calls are made twice, and everything is given back after each time: what memory the
 * second time costs has leaked. Prints how many calls there were, how many succeeded, and that
 * difference in pages.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGE       4096UL
#define USER_END   0x7ffffffff000UL
#define ZONE       0x100000000000UL /* here anything may be mapped, unmapped and overwritten */
#define ZONE_BYTES (64UL << 20)
#define N_MAPS     32
#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))

enum { SET_FS = 0x1002, GET_FS = 0x1003 }; /* arch_prctl(2) */

static long call(long number, const uint64_t *a)
{
    register uint64_t r10 __asm__("r10") = a[3];
    register uint64_t r8 __asm__("r8") = a[4];
    register uint64_t r9 __asm__("r9") = a[5];
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* ---- Arguments ---- */

static uint64_t state;

static uint64_t draw(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15UL;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9UL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebUL;
    return z ^ z >> 31;
}

static uint64_t below(uint64_t n)
{
    return draw() % n;
}

#define ONE_OF(table) (table)[below(COUNT(table))]

static uint64_t wild(void)
{
    static const uint64_t values[] = {
        0,
        1,
        2,
        8,
        0x7f,
        0xff,
        0xfff,
        PAGE,
        PAGE + 1,
        0x7fffffff,
        0x80000000,
        0xffffffff,
        0x100000000,
        0x7fffffffffffffff,
        0x8000000000000000,
        ~0UL,
        ~0UL - 1,
        ~0xfffUL,
        USER_END - PAGE,
        USER_END,
        USER_END + PAGE,
        1UL << 47,
        0xffff800000000000,
        0xffffffff80000000,
        0xffffffff80100000,
        0xffffc00000000000,
    };
    switch (below(4)) {
    case 0: return draw();
    case 1: return ONE_OF(values) + below(17) - 8;
    default: return ONE_OF(values);
    }
}

/* An address where nothing can be mapped. */
static uint64_t bad_pointer(void)
{
    static const uint64_t bad[] = {
        0,
        8,
        PAGE - 1,
        USER_END,
        USER_END + PAGE,
        1UL << 47,
        0xffff7fffffffffff,
        0xffff800000000000,
        0xffffffff80000000,
        0xffffffff80200000,
        0xffffc00000004000,
        ~0UL,
        ~0UL - 7,
        0xffffffffff600000,
    };
    return ONE_OF(bad);
}

/* An address that is no place of the program's own. */
static uint64_t pointer(void)
{
    static const uint64_t edges[] = {USER_END - 1, 0xfee00000, ZONE + ZONE_BYTES - 8};

    if (below(4) == 0)
        return bad_pointer();
    if (below(16) == 0)
        return ONE_OF(edges);
    uint64_t at = ZONE + below(ZONE_BYTES / PAGE) % 64 * PAGE;
    return below(3) ? at : at + below(PAGE);
}

/* Of bytes to be moved: not so many that memory runs out. */
static uint64_t length(void)
{
    static const uint64_t sizes[] = {0,         1,        7,           24,        100,
                                     144,       255,      512,         PAGE - 1,  PAGE,
                                     PAGE + 1,  3 * PAGE, 65536,       1UL << 47, 1UL << 62,
                                     ~0UL >> 1, ~0UL,     ~0UL - PAGE, 1UL << 63};
    return ONE_OF(sizes);
}

/* Of address space. */
static uint64_t span(void)
{
    static const uint64_t spans[] = {0,         1,         PAGE,      2 * PAGE,        5 * PAGE - 1,
                                     16 * PAGE, 64 * PAGE, 1UL << 21, 1UL << 30,       1UL << 46,
                                     USER_END,  1UL << 47, ~0UL,      ~0UL - PAGE + 1, ~0UL - PAGE,
                                     1UL << 63};
    return below(3) ? (1 + below(8)) * PAGE : ONE_OF(spans);
}

/* Never the console: it would print, or wait for somebody to type. */
static uint64_t descriptor(void)
{
    uint64_t fd = below(8) == 0 ? wild() : 3 + below(24);

    return (int)fd >= 0 && (int)fd < 3 ? ~0UL : fd | (below(8) == 0 ? 1UL << 40 : 0);
}

static uint64_t offset(void)
{
    static const uint64_t offsets[] = {0,
                                       1,
                                       4095,
                                       4096,
                                       8192,
                                       1UL << 20,
                                       1UL << 31,
                                       1UL << 32,
                                       1UL << 40,
                                       (1UL << 63) - 1,
                                       (1UL << 63) - PAGE,
                                       1UL << 63,
                                       ~0UL,
                                       ~0UL - PAGE};
    return ONE_OF(offsets);
}

static const char *const paths[] = {
    "/",
    "",
    ".",
    "..",
    "/proc",
    "/sys",
    "/dev",
    "/data",
    "/data/small.txt",
    "/data/medium.bin",
    "/data/sparse.bin",
    "/tests",
    "/dev/zero",
    "/dev/null",
    "/dev/full",
    "/dev/urandom",
    "/dev/vda",
    "/proc/self",
    "/proc/self/maps",
    "/proc/self/faults",
    "/proc/meminfo",
    "/proc/vmstat",
    "/proc/self/fd",
    "/proc/self/exe",
    "/proc/self/cwd",
    "/proc/self/cwd/data",
    "/proc/self/root",
    "/proc/readahead_log",
    "/proc/1",
    "/proc/99999/maps",
    "/proc/self/fd/5",
    "/proc/self/fdinfo/5",
    "/proc/../proc/./self//maps",
    "/data/small.txt/",
    "/data/small.txt/x",
    "//data//",
    "/../../..",
    "nothing/at/all",
    "/sys/block/vda/queue/read_ahead_kb",
    "/sys/block/vda/stat",
    "/proc/sys/vm",
    "/proc/cpuinfo",
    "/proc/mounts",
    "/proc/self/stat",
    "/proc/self/status",
    "/proc/self/smaps",
    "/proc/self/pagemap",
};

static char text[8192];

static uint64_t path(void)
{
    if (below(16) == 0)
        return pointer(); /* may be a path all the same */
    if (below(32) == 0) {
        memset(text, "/.ax"[below(4)], 4096);
        text[4094 + below(3)] = '\0';
        return (uint64_t)text;
    }
    return (uint64_t)ONE_OF(paths);
}

static uint64_t open_flags(void)
{
    static const uint64_t flags[] = {O_RDONLY,
                                     O_RDONLY,
                                     O_RDONLY,
                                     O_WRONLY,
                                     O_RDWR,
                                     3,
                                     O_RDONLY | O_DIRECTORY,
                                     O_PATH,
                                     O_CREAT,
                                     O_CREAT | O_EXCL,
                                     O_TRUNC,
                                     O_NOFOLLOW,
                                     O_PATH | O_NOFOLLOW,
                                     O_NONBLOCK,
                                     O_CLOEXEC};
    return below(8) ? ONE_OF(flags) : wild();
}

static uint64_t small(void)
{
    return below(4) ? below(32) : wild();
}

/* Not in the zone: what is there may be read from a file that knows the program's addresses. */
static uint64_t vector(void)
{
    static struct iovec pieces[1024];

    if (below(6) == 0)
        return bad_pointer();
    for (size_t i = 0; i < 12; i++)
        pieces[i] = (struct iovec){(void *)pointer(), below(4) ? below(5000) : length()};
    return (uint64_t)pieces;
}

static uint64_t vector_count(void)
{
    return below(4) ? below(13) : wild();
}

/* Never one that waits long. */
static uint64_t short_time(void)
{
    static const struct timespec times[] = {{0, 0},  {0, 1000},       {-1, 0},
                                            {0, -1}, {0, 1000000000}, {0, INT64_MAX}};
    static const uint64_t bad[] = {0, USER_END, 0xffffffff80000000, ~0UL};
    return below(3) ? (uint64_t)&ONE_OF(times) : ONE_OF(bad);
}

static uint64_t protection(void)
{
    return below(8) ? below(8) : wild();
}

static uint64_t map_flags(void)
{
    static const uint64_t more[] = {0,
                                    0,
                                    0,
                                    MAP_FIXED,
                                    MAP_FIXED,
                                    MAP_FIXED_NOREPLACE,
                                    MAP_32BIT,
                                    MAP_GROWSDOWN,
                                    MAP_NORESERVE,
                                    MAP_STACK,
                                    MAP_HUGETLB};
    return (below(8) ? 1 + below(3) : 0) | (below(3) ? MAP_ANONYMOUS : 0) | ONE_OF(more) |
           (below(64) ? 0 : wild());
}

static uint64_t advice(void)
{
    static const uint64_t numbers[] = {0, 1, 2, 3, 4, 8, 14, 15, 16, 17, 20, 21, 22, 23, 100};
    return below(16) ? ONE_OF(numbers) : wild();
}

/* ---- The calls ---- */

static const struct kind {
    long number;
    uint64_t (*arguments[6])(void);
} kinds[] = {
    {SYS_read, {descriptor, pointer, length}},
    {SYS_write, {descriptor, pointer, length}},
    {SYS_pread64, {descriptor, pointer, length, offset}},
    {SYS_pwrite64, {descriptor, pointer, length, offset}},
    {SYS_readv, {descriptor, vector, vector_count}},
    {SYS_writev, {descriptor, vector, vector_count}},
    {SYS_preadv, {descriptor, vector, vector_count, offset, small}},
    {SYS_open, {path, open_flags, small}},
    {SYS_open, {path, open_flags, small}},
    {SYS_openat, {descriptor, path, open_flags, small}},
    {SYS_close, {descriptor}},
    {SYS_close, {descriptor}},
    {SYS_stat, {path, pointer}},
    {SYS_lstat, {path, pointer}},
    {SYS_fstat, {descriptor, pointer}},
    {SYS_newfstatat, {descriptor, path, pointer, wild}},
    {SYS_lseek, {descriptor, offset, small}},
    {SYS_mmap, {pointer, span, protection, map_flags, descriptor, offset}},
    {SYS_mmap, {pointer, span, protection, map_flags, descriptor, offset}},
    {SYS_mmap, {pointer, span, protection, map_flags, descriptor, offset}},
    {SYS_munmap, {pointer, span}},
    {SYS_mprotect, {pointer, span, protection}},
    {SYS_madvise, {pointer, span, advice}},
    {SYS_mincore, {pointer, span, pointer}},
    {SYS_brk, {wild}},
    {SYS_ioctl, {descriptor, wild, pointer}},
    {SYS_access, {path, small}},
    {SYS_faccessat, {descriptor, path, small}},
    {SYS_dup, {descriptor}},
    {SYS_dup2, {descriptor, descriptor}},
    {SYS_dup3, {descriptor, descriptor, wild}},
    {SYS_fcntl, {descriptor, small, small}},
    {SYS_fcntl, {descriptor, small, wild}},
    {SYS_getdents64, {descriptor, pointer, length}},
    {SYS_readlink, {path, pointer, length}},
    {SYS_readlinkat, {descriptor, path, pointer, length}},
    {SYS_getcwd, {pointer, length}},
    {SYS_chdir, {path}},
    {SYS_statfs, {path, pointer}},
    {SYS_fstatfs, {descriptor, pointer}},
    {SYS_fsync, {descriptor}},
    {SYS_readahead, {descriptor, offset, length}},
    {SYS_fadvise64, {descriptor, offset, offset, small}},
    {451 /* cachestat */, {descriptor, pointer, pointer, small}},
    {SYS_uname, {pointer}},
    {SYS_sysinfo, {pointer}},
    {SYS_times, {pointer}},
    {SYS_time, {pointer}},
    {SYS_gettimeofday, {pointer, pointer}},
    {SYS_clock_gettime, {small, pointer}},
    {SYS_clock_getres, {small, pointer}},
    {SYS_nanosleep, {short_time, pointer}},
    {SYS_clock_nanosleep, {small, wild, short_time, pointer}},
    {SYS_getrandom, {pointer, length, small}},
    {SYS_getrusage, {wild, pointer}},
    {SYS_getrlimit, {small, pointer}},
    {SYS_prlimit64, {small, small, pointer, pointer}},
    {SYS_sched_getaffinity, {small, length, pointer}},
    {SYS_sched_yield, {0}},
    {SYS_getcpu, {pointer, pointer}},
    {SYS_rt_sigprocmask, {small, 0, pointer, small}},
    {SYS_arch_prctl, {small, pointer}},
    {SYS_umask, {wild}},
};

/* Would the call change what lies in [start, start + bytes) outside the zone? */
static int harms(uint64_t start, uint64_t bytes)
{
    uint64_t end = start + bytes;

    if (start >= USER_END || end < start)
        return 0; /* refused, or it should be */
    return start < ZONE || end > ZONE + ZONE_BYTES;
}

static int reads_in(const uint64_t *a, int is_populate)
{
    return is_populate && a[1] > 64 * PAGE && a[1] < USER_END;
}

static int is_allowed(long number, const uint64_t *a)
{
    switch (number) {
    case SYS_mmap:
        if ((a[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE)) && harms(a[0], a[1]))
            return 0;
        return !reads_in(a, (a[3] & (MAP_POPULATE | MAP_LOCKED)) != 0);
    case SYS_madvise: {
        int number_of_advice = (int)a[2];
        return !harms(a[0], a[1]) && !reads_in(a, number_of_advice == 22 || number_of_advice == 23);
    }
    case SYS_munmap:
    case SYS_mprotect: return !harms(a[0], a[1]);
    case SYS_arch_prctl: return (int)a[0] != SET_FS;          /* change_fs() does that */
    case SYS_prlimit64: return a[2] == 0 || a[2] >= USER_END; /* no limits that hurt */
    default: return 1;
    }
}

/* What mmap chose by itself, to be given back. */
static struct {
    uint64_t start, bytes;
} maps[N_MAPS];

static void unmap(size_t slot)
{
    if (maps[slot].bytes)
        call(SYS_munmap, (uint64_t[6]){maps[slot].start, maps[slot].bytes});
    maps[slot].bytes = 0;
}

static void note_map(uint64_t start, uint64_t bytes)
{
    size_t slot = below(N_MAPS);

    if (start >= ZONE && start < ZONE + ZONE_BYTES)
        return;
    unmap(slot);
    maps[slot].start = start;
    maps[slot].bytes = bytes;
}

static int one_call(void)
{
    const struct kind *kind = &ONE_OF(kinds);
    uint64_t a[6] = {0};

    for (size_t i = 0; i < COUNT(a); i++)
        if (kind->arguments[i])
            a[i] = kind->arguments[i]();
    if (!is_allowed(kind->number, a))
        return 0;
    long result = call(kind->number, a);
    if (kind->number == SYS_mmap && result >= 0)
        note_map(result, a[1]);
    return result >= 0;
}

/* The base of thread-local storage: changed, read, and put back before anybody needs it. */
static void change_fs(void)
{
    uint64_t saved = 0;

    call(SYS_arch_prctl, (uint64_t[6]){GET_FS, (uint64_t)&saved});
    call(SYS_arch_prctl, (uint64_t[6]){SET_FS, wild()});
    call(SYS_arch_prctl, (uint64_t[6]){GET_FS, pointer()});
    call(SYS_sched_yield, (uint64_t[6]){0});
    call(SYS_arch_prctl, (uint64_t[6]){SET_FS, saved});
}

/* No signal that ends somebody, and calls that do not exist. */
static void send_nothing(void)
{
    static const uint64_t signals[] = {0, 65, 1000, 0x80000000, ~0UL, 1UL << 32};

    call(SYS_kill, (uint64_t[6]){below(2) ? (uint64_t)getpid() : wild(), ONE_OF(signals)});
    call(SYS_tgkill, (uint64_t[6]){getpid(), getpid(), ONE_OF(signals)});
    call(600 + (long)below(1UL << 40), (uint64_t[6]){wild(), wild(), wild(), wild(), wild()});
    call(-(long)below(1000) - 1, (uint64_t[6]){wild()});
}

static void write_knob(void)
{
    static const char *const files[] = {
        "/proc/sys/vm/fault_retry",           "/proc/sys/vm/fault_pin", "/proc/sys/vm/readahead",
        "/proc/sys/vm/map_around_bytes",      "/proc/sys/vm/account",   "/proc/sys/vm/drop_caches",
        "/sys/block/vda/queue/read_ahead_kb", "/proc/meminfo",          "/sys/block/vda/size",
    };
    static const char *const values[] = {
        "once",
        "hold",
        "none",
        "around",
        "ondemand",
        "0",
        "1",
        "1\n",
        "4096",
        "65536",
        "1048576",
        "1048577",
        "128",
        "4095",
        "4096\n\n",
        "-1",
        "+1",
        " 1",
        "1 ",
        "0x10",
        "1e3",
        "\n",
        "",
        "18446744073709551616",
        "18446744073709551615x",
        "faultline",
        "linux-2009",
        "linux-6.12",
        "oncee",
        "onc",
        "%s%s%n",
        "\xff\xfe",
        "\0once",
    };
    const char *file = ONE_OF(files), *value = ONE_OF(values);
    int fd = open(file, below(4) ? O_WRONLY : O_RDWR);
    size_t bytes = below(8) ? strlen(value) : below(8) == 0 ? 4097 : strlen(value) + 1;

    if (fd < 0)
        return;
    memset(text, 'x', sizeof(text));
    strcpy(text, value);
    call(SYS_write, (uint64_t[6]){fd, below(16) ? (uint64_t)text : pointer(), bytes});
    close(fd);
}

static void give_all_back(void)
{
    for (int fd = 3; fd < 4096; fd++)
        close(fd);
    for (size_t i = 0; i < N_MAPS; i++)
        unmap(i);
    munmap((void *)ZONE, ZONE_BYTES);
    if (chdir("/"))
        exit(3);
    call(SYS_brk, (uint64_t[6]){(uint64_t)sbrk(0)});
}

/* => how many succeeded */
static long round_of_calls(uint64_t seed, long n)
{
    long succeeded = 0;

    state = seed;
    mmap((void *)ZONE, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
         -1, 0);
    for (long i = 0; i < n; i++) {
        succeeded += one_call();
        if (i % 64 == 0)
            change_fs();
        if (i % 64 == 16)
            send_nothing();
        if (i % 64 == 32)
            write_knob();
    }
    give_all_back();
    return succeeded;
}

static long number_behind(const char *words, const char *name)
{
    const char *at = strstr(words, name);

    return at ? atol(at + strlen(name)) : 0;
}

/* Memory that is free, or would be if somebody wanted it, in pages. */
static long pages_left(void)
{
    static char words[4096];
    int fd = open("/proc/meminfo", O_RDONLY);
    ssize_t n = read(fd, words, sizeof(words) - 1);

    close(fd);
    words[n > 0 ? n : 0] = '\0';
    return (number_behind(words, "\nMemFree:") + number_behind(words, "\nBuffers:") +
            number_behind(words, "\nCached:")) /
           4;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
    long n = argc > 2 ? atol(argv[2]) : 10000;

    round_of_calls(seed, n);
    long before = pages_left();
    long succeeded = round_of_calls(seed, n);
    long after = pages_left();
    printf("callfuzz: seed %lu, %ld calls, %ld succeeded, %ld pages lost\n", seed, n, succeeded,
           before - after);
    return 0;
}
