/*
 * procfuzz: the calls of processes, signals, timers, names, pipes, waiting, locks and the terminal
 * with arguments that are good, nearly good and wild. Use: procfuzz SEED BATCHES, as process 1 of a
 * machine of its own: it kills whatever else there is.
 *
 * Every batch is a process, every second one with a second thread, in a directory of its own in
 * /tmp. Whatever becomes of it, it must end when it is killed, with all that it started, and leave
 * nothing behind. The same batches run twice: what memory the second time costs has leaked.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE            4096UL
#define USER_END        0x7ffffffff000UL
#define ZONE            0x100000000000UL /* all that calls may overwrite */
#define ZONE_PAGES      32
#define CALLS_PER_BATCH 250
#define BATCH_MS        700   /* then it waits for something that never comes */
#define END_MS          20000 /* so long a killed process may take */
#define WORK            "/tmp/work"
#define COUNT(a)        (sizeof(a) / sizeof((a)[0]))
#define ONE_OF(table)   (table)[below(COUNT(table))]

static uint64_t state;       /* two threads draw from it: the worse for repeating, no other harm */
static uint64_t *calls_made; /* shared with all batches */

static uint64_t draw(void)
{
    uint64_t z = __atomic_add_fetch(&state, 0x9e3779b97f4a7c15UL, __ATOMIC_RELAXED);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9UL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebUL;
    return z ^ z >> 31;
}

static uint64_t below(uint64_t n)
{
    return draw() % n;
}

/* A call whose child, where it makes one, ends at once and needs no stack. */
static long call(long number, const uint64_t *a)
{
    register uint64_t r10 __asm__("r10") = a[3];
    register uint64_t r8 __asm__("r8") = a[4];
    register uint64_t r9 __asm__("r9") = a[5];
    uint64_t is_clone = number == SYS_clone || number == SYS_vfork || number == SYS_fork;
    long result;

    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "test %[is_clone], %[is_clone]\n\t"
                     "jz 1f\n\t"
                     "mov $60, %%eax\n\t"
                     "xor %%edi, %%edi\n\t"
                     "syscall\n"
                     "1:"
                     : "=a"(result)
                     : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8),
                       "r"(r9), [is_clone] "r"(is_clone)
                     : "rcx", "r11", "memory", "cc");
    return result;
}

/* ---- Arguments ---- */

static uint64_t wild(void)
{
    static const uint64_t values[] = {
        0,
        1,
        2,
        4,
        8,
        64,
        65,
        0xff,
        PAGE,
        0x7fffffff,
        0x80000000,
        ~0UL,
        0xffffffff,
        1UL << 32,
        ~0UL >> 1,
        1UL << 63,
        ~0UL - 99,
        ~0UL - 4095,
        USER_END,
        1UL << 47,
        1000000000,
        0x3fffffff,
        0xffff800000000000,
    };
    return below(4) ? ONE_OF(values) : draw();
}

static uint64_t small(void)
{
    return below(8) ? below(12) : wild();
}

static uint64_t zero_or_wild(void)
{
    return below(3) ? 0 : wild();
}

static uint64_t bad_pointer(void)
{
    static const uint64_t bad[] = {
        0,
        8,
        PAGE - 1,
        USER_END,
        USER_END - 1,
        1UL << 47,
        0xffff800000000000,
        0xffffffff80200000,
        0xffffc00000004000,
        ~0UL,
        ~0UL - 7,
        ZONE + ZONE_PAGES * PAGE - 8,
        ZONE + ZONE_PAGES * PAGE,
    };
    return ONE_OF(bad);
}

static uint64_t descriptor(void)
{
    return below(12) ? below(20) : wild();
}

static uint64_t process(void)
{
    static const uint64_t others[] = {0, 0, 1, ~0UL, 2, 3, 4, 5, 6, 7, 8};

    switch (below(4)) {
    case 0: return getpid();
    case 1: return below(4) ? ONE_OF(others) : wild();
    case 2: return getpid() + below(4);
    default: return below(4) ? 0 : -(uint64_t)getpid();
    }
}

/* A structure of words that often make sense: times, descriptors, masks, addresses. */
static uint64_t structure(void)
{
    if (below(6) == 0)
        return bad_pointer();
    uint64_t *at = (uint64_t *)(ZONE + below(ZONE_PAGES) * PAGE + below(PAGE / 8) * 8);
    uint64_t *end = (uint64_t *)(ZONE + ZONE_PAGES * PAGE);

    for (size_t i = 0; i < 24 && at + i < end; i++) {
        switch (below(6)) {
        case 0:
        case 1: at[i] = 0; break;
        case 2: at[i] = below(20); break;
        case 3: at[i] = below(20) | below(64) << 32; break; /* struct pollfd, struct flock */
        case 4: at[i] = ZONE + below(ZONE_PAGES * PAGE); break;
        default: at[i] = wild();
        }
    }
    return (uint64_t)at + (below(16) ? 0 : below(8));
}

static uint64_t maybe(void)
{
    return below(2) ? 0 : structure();
}

static uint64_t word(void)
{
    return below(4) ? ZONE + below(4) * 4 : structure();
}

static uint64_t path(void)
{
    static const char *const paths[] = {
        "a",
        "b",
        "c",
        "d",
        "e",
        "d/a",
        "d/b",
        "e/a",
        "a/",
        "d/",
        ".",
        "..",
        "d/..",
        "d/../e",
        "",
        "/",
        WORK,
        WORK "/a",
        WORK "/d",
        "l",
        "l/a",
        "f",
        "/tmp",
        "/dev/shm/x",
        "/dev/null",
        "/dev/zero",
        "/dev/tty",
        "/proc/self",
        "/proc/self/fd/4",
        "/proc/self/exe",
        "/data/small.txt",
        "/data",
        "/proc/self/maps",
        "/dev/full",
        "//",
        "d//a",
        "/proc/self/cwd/a",
        "none/a",
    };
    return below(16) ? (uint64_t)ONE_OF(paths) : structure();
}

static uint64_t program(void)
{
    static const char *const paths[] = {"/tests/hello", "/data/small.txt", "a",
                                        "/tests",       "/dev/null",       "/tests/status"};
    return (uint64_t)ONE_OF(paths);
}

static uint64_t open_flags(void)
{
    static const uint64_t flags[] = {
        O_RDONLY,
        O_RDWR,
        O_WRONLY,
        O_RDWR | O_CREAT,
        O_RDWR | O_CREAT,
        O_WRONLY | O_CREAT | O_EXCL,
        O_RDWR | O_TRUNC,
        O_DIRECTORY,
        O_PATH,
        O_RDWR | O_NONBLOCK,
        O_WRONLY | O_NONBLOCK,
        O_RDWR | O_APPEND | O_CREAT,
        O_NOFOLLOW | O_PATH,
        O_TMPFILE | O_RDWR,
        3,
    };
    return below(16) ? ONE_OF(flags) : wild();
}

static uint64_t length(void)
{
    static const uint64_t sizes[] = {0,     1,         8,         16,        100,   PAGE,
                                     65536, 1UL << 47, ~0UL >> 1, 1UL << 63, 65537, 3 * PAGE};
    return ONE_OF(sizes);
}

/* Of files: not so long that memory runs out. */
static uint64_t size(void)
{
    static const uint64_t sizes[] = {0,         1,         PAGE - 1,  PAGE,      65536,
                                     1UL << 20, 1UL << 40, ~0UL >> 1, 1UL << 63, ~0UL};
    return ONE_OF(sizes);
}

static uint64_t signal_number(void)
{
    static const uint64_t often[] = {0,        SIGUSR1, SIGCHLD, SIGCONT, SIGALRM,
                                     SIGWINCH, SIGURG,  34,      64,      65};

    return below(16) ? ONE_OF(often) : below(66);
}

static uint64_t clone_flags(void)
{
    static const uint64_t often[] = {
        SIGCHLD,
        SIGCHLD,
        CLONE_VM | CLONE_VFORK | SIGCHLD,
        CLONE_VM | SIGCHLD,
        CLONE_FILES | SIGCHLD,
        CLONE_FS | CLONE_FILES,
        CLONE_VM | CLONE_SIGHAND | CLONE_FS | CLONE_FILES | CLONE_THREAD,
        CLONE_VM | CLONE_SIGHAND,
        CLONE_PARENT | SIGCHLD,
        CLONE_THREAD,
        CLONE_NEWPID,
        255,
    };
    static const uint64_t more[] = {0, CLONE_PARENT_SETTID, CLONE_CHILD_SETTID,
                                    CLONE_CHILD_CLEARTID, CLONE_SETTLS};
    return below(16) ? ONE_OF(often) | ONE_OF(more) : wild();
}

static uint64_t futex_operation(void)
{
    return below(16) ? below(14) | (below(2) ? 128 : 0) | (below(8) ? 0 : 256) : wild();
}

static uint64_t fcntl_command(void)
{
    static const uint64_t commands[] = {0,    1,    2,    3,    4,    5,    6,    7,
                                        8,    9,    10,   11,   16,   36,   37,   38,
                                        1024, 1025, 1026, 1030, 1031, 1032, 1033, 1034};
    return below(16) ? ONE_OF(commands) : wild();
}

static uint64_t terminal_request(void)
{
    static const uint64_t requests[] = {
        0x5401, 0x5402, 0x5403, 0x5404, 0x5409, 0x540a, 0x540b, 0x540e, 0x540f, 0x5410,     0x5411,
        0x5413, 0x5414, 0x541b, 0x5421, 0x5422, 0x5429, 0x5450, 0x5451, 0x5452, 0x802c542a,
    };
    return below(16) ? ONE_OF(requests) : wild();
}

static uint64_t mask_bytes(void)
{
    return below(8) ? 8 : wild();
}

static uint64_t protection(void)
{
    return below(8);
}

static uint64_t zone_address(void)
{
    return ZONE + below(ZONE_PAGES) * PAGE;
}

static uint64_t zone_bytes(void)
{
    return below(4) * PAGE;
}

static uint64_t map_flags(void)
{
    static const uint64_t flags[] = {MAP_SHARED | MAP_ANONYMOUS, MAP_PRIVATE | MAP_ANONYMOUS,
                                     MAP_SHARED, MAP_PRIVATE};
    return ONE_OF(flags);
}

static uint64_t forever(void)
{
    return below(2) ? ~0UL : below(4);
}

/* ---- The calls ---- */

static const struct kind {
    long number;
    uint64_t (*arguments[6])(void);
} kinds[] = {
    {SYS_fork, {0}},
    {SYS_vfork, {0}},
    {SYS_clone, {clone_flags, structure, word, word, structure}},
    {SYS_clone, {clone_flags, 0, word, word, structure}},
    {SYS_execve, {path, structure, structure}},
    {SYS_execveat, {descriptor, path, structure, structure, wild}},
    {SYS_wait4, {process, maybe, small, maybe}},
    {SYS_wait4, {process, maybe, wild, maybe}},
    {SYS_waitid, {small, process, maybe, wild, maybe}},
    {SYS_waitid, {small, process, maybe, small, maybe}},
    {SYS_set_tid_address, {word}},
    {SYS_set_robust_list, {structure, 0}},
    {SYS_get_robust_list, {process, structure, structure}},
    {SYS_futex, {word, futex_operation, small, maybe, word, small}},
    {SYS_futex, {word, futex_operation, small, small, word, wild}},
    {SYS_sched_setaffinity, {process, length, structure}},
    {SYS_sched_getaffinity, {process, length, structure}},
    {SYS_sched_setscheduler, {process, small, structure}},
    {SYS_sched_getscheduler, {process}},
    {SYS_sched_getparam, {process, structure}},
    {SYS_getpriority, {small, process}},
    {SYS_setpriority, {small, process, wild}},
    {SYS_getpgid, {process}},
    {SYS_getsid, {process}},
    {SYS_setpgid, {process, process}},
    {SYS_setsid, {0}},
    {SYS_prctl, {small, structure, wild}},
    {SYS_prlimit64, {process, small, maybe, structure}},
    {SYS_setrlimit, {small, structure}},
    {SYS_getrusage, {wild, structure}},
    {SYS_rt_sigaction, {signal_number, structure, maybe, mask_bytes}},
    {SYS_rt_sigprocmask, {small, structure, maybe, mask_bytes}},
    {SYS_rt_sigpending, {structure, mask_bytes}},
    {SYS_rt_sigtimedwait, {structure, maybe, maybe, mask_bytes}},
    {SYS_rt_sigsuspend, {structure, mask_bytes}},
    {SYS_rt_sigqueueinfo, {process, signal_number, structure}},
    {SYS_rt_tgsigqueueinfo, {process, process, signal_number, structure}},
    {SYS_sigaltstack, {maybe, maybe}},
    {SYS_kill, {process, signal_number}},
    {SYS_tkill, {process, signal_number}},
    {SYS_tgkill, {process, process, signal_number}},
    {SYS_pause, {0}},
    {SYS_restart_syscall, {0}},
    {SYS_setitimer, {small, structure, maybe}},
    {SYS_getitimer, {small, structure}},
    {SYS_alarm, {zero_or_wild}},
    {SYS_timer_create, {small, maybe, structure}},
    {SYS_timer_create, {small, 0, structure}},
    {SYS_timer_settime, {small, small, structure, maybe}},
    {SYS_timer_gettime, {small, structure}},
    {SYS_timer_getoverrun, {small}},
    {SYS_timer_delete, {small}},
    {SYS_nanosleep, {structure, maybe}},
    {SYS_clock_nanosleep, {small, small, structure, maybe}},
    {SYS_open, {path, open_flags, wild}},
    {SYS_openat, {descriptor, path, open_flags, wild}},
    {SYS_close, {descriptor}},
    {SYS_dup2, {descriptor, descriptor}},
    {SYS_close_range, {descriptor, descriptor, small}},
    {SYS_pipe, {structure}},
    {SYS_pipe2, {structure, open_flags}},
    {SYS_memfd_create, {path, small}},
    {SYS_read, {descriptor, structure, length}},
    {SYS_write, {descriptor, structure, length}},
    {SYS_readv, {descriptor, structure, small}},
    {SYS_writev, {descriptor, structure, small}},
    {SYS_pwritev2, {descriptor, structure, small, size, zero_or_wild, small}},
    {SYS_preadv2, {descriptor, structure, small, size, zero_or_wild, small}},
    {SYS_pwrite64, {descriptor, structure, length, size}},
    {SYS_lseek, {descriptor, size, small}},
    {SYS_sendfile, {descriptor, descriptor, maybe, length}},
    {SYS_copy_file_range, {descriptor, maybe, descriptor, maybe, length, zero_or_wild}},
    {SYS_mkdir, {path, wild}},
    {SYS_mkdirat, {descriptor, path, wild}},
    {SYS_mknod, {path, wild, wild}},
    {SYS_symlink, {path, path}},
    {SYS_link, {path, path}},
    {SYS_linkat, {descriptor, path, descriptor, path, zero_or_wild}},
    {SYS_unlink, {path}},
    {SYS_rmdir, {path}},
    {SYS_rename, {path, path}},
    {SYS_rename, {path, path}},
    {SYS_renameat2, {descriptor, path, descriptor, path, small}},
    {SYS_truncate, {path, size}},
    {SYS_ftruncate, {descriptor, size}},
    {SYS_fallocate, {descriptor, small, size, size}},
    {SYS_chmod, {path, wild}},
    {SYS_chown, {path, wild, wild}},
    {SYS_fchown, {descriptor, wild, wild}},
    {SYS_utimensat, {descriptor, path, maybe, zero_or_wild}},
    {SYS_utimes, {path, maybe}},
    {SYS_utime, {path, maybe}},
    {SYS_chdir, {path}},
    {SYS_fchdir, {descriptor}},
    {SYS_statx, {descriptor, path, zero_or_wild, wild, structure}},
    {SYS_getdents64, {descriptor, structure, length}},
    {SYS_readlink, {path, structure, length}},
    {SYS_fcntl, {descriptor, fcntl_command, structure}},
    {SYS_fcntl, {descriptor, fcntl_command, small}},
    {SYS_flock, {descriptor, small}},
    {SYS_ioctl, {descriptor, terminal_request, structure}},
    {SYS_ioctl, {descriptor, terminal_request, small}},
    {SYS_poll, {structure, small, forever}},
    {SYS_ppoll, {structure, small, maybe, maybe, mask_bytes}},
    {SYS_select, {small, maybe, maybe, maybe, maybe}},
    {SYS_pselect6, {small, maybe, maybe, maybe, maybe, maybe}},
    {SYS_mmap, {zone_address, zone_bytes, protection, map_flags, descriptor, 0}},
    {SYS_munmap, {zone_address, zone_bytes}},
    {SYS_madvise, {zone_address, zone_bytes, small}},
    {SYS_sysinfo, {structure}},
    {SYS_times, {structure}},
};

static void nothing(int signal)
{
    (void)signal;
}

/* Whatever waits is woken in a moment; unless a call before has seen to it that it is not. */
static void wake_soon(void)
{
    static const uint64_t moment[4] = {0, 0, 0, 700};
    static const uint64_t alarm_only = 1UL << (SIGALRM - 1);

    call(SYS_rt_sigprocmask, (uint64_t[6]){SIG_UNBLOCK, (uint64_t)&alarm_only, 0, 8});
    call(SYS_setitimer, (uint64_t[6]){ITIMER_REAL, (uint64_t)moment});
}

static void make_zone(void)
{
    mmap((void *)ZONE, ZONE_PAGES * PAGE, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void one_call(void)
{
    const struct kind *kind = &ONE_OF(kinds);
    uint64_t a[6] = {0};

    for (size_t i = 0; i < COUNT(a); i++)
        if (kind->arguments[i])
            a[i] = kind->arguments[i]();
    if (kind->number == SYS_execve && below(2)) /* one that works ends the batch */
        a[0] = below(4) ? (uint64_t) "a" : program();
    if (kind->number == SYS_mmap && a[0] + a[1] > ZONE + ZONE_PAGES * PAGE)
        return;
    if (kind->number == SYS_mmap && a[1])
        a[3] |= MAP_FIXED;
    wake_soon();
    call(kind->number, a);
    __atomic_add_fetch(calls_made, 1, __ATOMIC_RELAXED);
    if (kind->number == SYS_munmap || kind->number == SYS_mmap)
        make_zone();
}

static int many_calls(void *unused)
{
    (void)unused;
    for (int i = 0; i < CALLS_PER_BATCH; i++)
        one_call();
    return 0;
}

static void limit(int what, rlim_t most)
{
    setrlimit(what, &(struct rlimit){most, most});
}

/* What a batch starts with: pipes, a FIFO, files, the terminal, a handler. */
static void batch(uint64_t seed, int has_thread)
{
    static char stack[65536] __attribute__((aligned(16)));
    int ends[2];

    state = seed;
    limit(RLIMIT_NPROC, 24);
    limit(RLIMIT_NOFILE, 64);
    limit(RLIMIT_AS, 256UL << 20);
    make_zone();
    if (chdir(WORK) || setsid() < 0)
        _exit(3);
    for (int fd = 0; fd < 3; fd++)
        if (open("/dev/null", O_RDWR) >= 0)
            dup2(3, fd), close(3);
    open("/dev/console", O_RDWR | O_NONBLOCK | O_NOCTTY);
    mknod("f", S_IFIFO | 0600, 0);
    open("f", O_RDWR | O_NONBLOCK);
    open("a", O_RDWR | O_CREAT, 0600);
    open("d", O_RDONLY);
    if (pipe(ends) || pipe2(ends, O_NONBLOCK))
        _exit(3);
    signal(SIGALRM, nothing);
    if (has_thread)
        clone(many_calls, stack + sizeof(stack),
              CLONE_VM | CLONE_SIGHAND | CLONE_FS | CLONE_FILES | CLONE_THREAD, NULL);
    many_calls(NULL);
    _exit(0);
}

/* ---- The watch ---- */

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* => whether the child has ended by then */
static int ends_within(pid_t child, long ms)
{
    long deadline = now_ms() + ms;

    do {
        int status;
        pid_t found = waitpid(-1, &status, WNOHANG);
        if (found == child || (found < 0 && errno == ECHILD))
            return 1;
        if (found == 0)
            sleep_ms(1);
    } while (now_ms() < deadline);
    return 0;
}

static void stuck(const char *what, int number)
{
    printf("procfuzz: batch %d: %s does not end\n", number, what);
    exit(4);
}

static int forget(const char *name, const struct stat *info, int type, struct FTW *where)
{
    (void)info, (void)type, (void)where;
    return remove(name), 0;
}

static int run_batch(uint64_t seed, int number)
{
    mkdir(WORK, 0700);
    mkdir(WORK "/d", 0700);
    mkdir(WORK "/e", 0700);
    pid_t child = fork();
    if (child == 0)
        batch(seed * 1000003 + number, number % 2);
    if (child < 0)
        stuck("fork", number);
    int was_killed = !ends_within(child, BATCH_MS);
    if (was_killed && (kill(child, SIGKILL) || !ends_within(child, END_MS)))
        stuck("a killed batch", number);
    kill(-1, SIGKILL);
    if (!ends_within(-1, END_MS))
        stuck("what a batch has started", number);
    nftw(WORK, forget, 16, FTW_DEPTH | FTW_PHYS);
    unlink("/dev/shm/x");
    return was_killed;
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
            number_behind(words, "\nCached:") - number_behind(words, "\nShmem:")) /
           4;
}

static int run_all(uint64_t seed, int n)
{
    int killed = 0;

    for (int i = 0; i < n; i++)
        killed += run_batch(seed, i);
    return killed;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
    int n = argc > 2 ? atoi(argv[2]) : 20;

    if (getpid() != 1)
        return 2; /* it would kill the machine that it is to test */
    calls_made = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    run_all(seed, n);
    long before = pages_left();
    int killed = run_all(seed, n);
    printf("procfuzz: seed %lu, %d batches, %lu calls, %d had to be killed, %ld pages lost\n", seed,
           n, *calls_made, killed, before - pages_left());
    return 0;
}
