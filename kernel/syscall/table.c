/*
 * The table of system calls, and the door that programs come in by.
 */
#include "kernel/log/log.h"
#include "kernel/sync/counter.h"
#include "kernel/syscall/syscall.h"

#define SYSCALL_MAX 462

struct syscall {
    const char *name;
    syscall_fn fn; /* NULL: known by name only */
};

static const struct syscall table[SYSCALL_MAX] = {
    [0] = {"read", sys_read},
    [1] = {"write", sys_write},
    [2] = {"open", sys_open},
    [3] = {"close", sys_close},
    [4] = {"stat", sys_stat},
    [5] = {"fstat", sys_fstat},
    [6] = {"lstat", sys_lstat},
    [7] = {"poll", NULL},
    [8] = {"lseek", sys_lseek},
    [9] = {"mmap", sys_mmap},
    [10] = {"mprotect", sys_mprotect},
    [11] = {"munmap", sys_munmap},
    [12] = {"brk", sys_brk},
    [13] = {"rt_sigaction", sys_rt_sigaction},
    [14] = {"rt_sigprocmask", sys_rt_sigprocmask},
    [15] = {"rt_sigreturn", sys_rt_sigreturn},
    [16] = {"ioctl", sys_ioctl},
    [17] = {"pread64", sys_pread64},
    [18] = {"pwrite64", sys_pwrite64},
    [19] = {"readv", sys_readv},
    [20] = {"writev", sys_writev},
    [21] = {"access", sys_access},
    [24] = {"sched_yield", sys_sched_yield},
    [25] = {"mremap", NULL},
    [26] = {"msync", NULL},
    [27] = {"mincore", sys_mincore},
    [28] = {"madvise", sys_madvise},
    [32] = {"dup", sys_dup},
    [33] = {"dup2", sys_dup2},
    [34] = {"pause", sys_pause},
    [35] = {"nanosleep", sys_nanosleep},
    [36] = {"getitimer", sys_getitimer},
    [37] = {"alarm", sys_alarm},
    [38] = {"setitimer", sys_setitimer},
    [39] = {"getpid", sys_getpid},
    [56] = {"clone", NULL},
    [57] = {"fork", NULL},
    [58] = {"vfork", NULL},
    [59] = {"execve", NULL},
    [60] = {"exit", sys_exit},
    [61] = {"wait4", NULL},
    [62] = {"kill", sys_kill},
    [63] = {"uname", sys_uname},
    [72] = {"fcntl", sys_fcntl},
    [74] = {"fsync", sys_fsync},
    [75] = {"fdatasync", sys_fsync},
    [79] = {"getcwd", sys_getcwd},
    [80] = {"chdir", sys_chdir},
    [89] = {"readlink", sys_readlink},
    [95] = {"umask", sys_umask},
    [96] = {"gettimeofday", sys_gettimeofday},
    [97] = {"getrlimit", sys_getrlimit},
    [98] = {"getrusage", sys_getrusage},
    [99] = {"sysinfo", sys_sysinfo},
    [100] = {"times", sys_times},
    [102] = {"getuid", sys_zero},
    [104] = {"getgid", sys_zero},
    [107] = {"geteuid", sys_zero},
    [108] = {"getegid", sys_zero},
    [110] = {"getppid", sys_getppid},
    [127] = {"rt_sigpending", sys_rt_sigpending},
    [128] = {"rt_sigtimedwait", sys_rt_sigtimedwait},
    [129] = {"rt_sigqueueinfo", sys_rt_sigqueueinfo},
    [130] = {"rt_sigsuspend", sys_rt_sigsuspend},
    [131] = {"sigaltstack", sys_sigaltstack},
    [137] = {"statfs", sys_statfs},
    [138] = {"fstatfs", sys_fstatfs},
    [149] = {"mlock", NULL},
    [157] = {"prctl", NULL},
    [158] = {"arch_prctl", sys_arch_prctl},
    [162] = {"sync", sys_sync},
    [169] = {"reboot", sys_reboot},
    [186] = {"gettid", sys_gettid},
    [187] = {"readahead", sys_readahead},
    [200] = {"tkill", sys_tkill},
    [201] = {"time", sys_time},
    [202] = {"futex", NULL},
    [204] = {"sched_getaffinity", sys_sched_getaffinity},
    [217] = {"getdents64", sys_getdents64},
    [218] = {"set_tid_address", sys_set_tid_address},
    [219] = {"restart_syscall", sys_restart_syscall},
    [221] = {"fadvise64", sys_fadvise64},
    [222] = {"timer_create", sys_timer_create},
    [223] = {"timer_settime", sys_timer_settime},
    [224] = {"timer_gettime", sys_timer_gettime},
    [225] = {"timer_getoverrun", sys_timer_getoverrun},
    [226] = {"timer_delete", sys_timer_delete},
    [228] = {"clock_gettime", sys_clock_gettime},
    [229] = {"clock_getres", sys_clock_getres},
    [230] = {"clock_nanosleep", sys_clock_nanosleep},
    [231] = {"exit_group", sys_exit},
    [234] = {"tgkill", sys_tgkill},
    [257] = {"openat", sys_openat},
    [262] = {"newfstatat", sys_newfstatat},
    [267] = {"readlinkat", sys_readlinkat},
    [269] = {"faccessat", sys_faccessat},
    [273] = {"set_robust_list", NULL},
    [292] = {"dup3", sys_dup3},
    [295] = {"preadv", sys_preadv},
    [297] = {"rt_tgsigqueueinfo", sys_rt_tgsigqueueinfo},
    [302] = {"prlimit64", sys_prlimit64},
    [309] = {"getcpu", sys_getcpu},
    [318] = {"getrandom", sys_getrandom},
    [334] = {"rseq", NULL},
    [439] = {"faccessat2", sys_faccessat},
    [451] = {"cachestat", sys_cachestat},
};

static COUNTER(calls);
static u8 was_logged[SYSCALL_MAX]; /* one line for each unknown number; a race costs a second line */

u64 syscall_count(void)
{
    return counter_sum(calls);
}

static s64 unknown(u64 number)
{
    bool is_listed = number < SYSCALL_MAX;
    if (is_listed && was_logged[number])
        return -ENOSYS;
    if (is_listed)
        was_logged[number] = 1;
    const char *name = is_listed && table[number].name ? table[number].name : "unknown";
    log_info("process %u (%s): system call %lu (%s) does not exist here: ENOSYS", process_current()->pid,
             process_current()->name, number, name);
    return -ENOSYS;
}

/* Registers of the call: rax number; rdi, rsi, rdx, r10, r8, r9 arguments (AMD64 ABI, A.2.1). */
static void syscall_trap(struct trap_frame *frame)
{
    const u64 arguments[6] = {frame->rdi, frame->rsi, frame->rdx, frame->r10, frame->r8, frame->r9};
    u64 number = frame->error;
    counter_inc(calls);
    thread_current()->frame = frame;
    frame->rax = number < SYSCALL_MAX && table[number].fn ? (u64)table[number].fn(arguments)
                                                           : (u64)unknown(number);
}

void syscall_init(void)
{
    trap_set_syscall(syscall_trap);
}
