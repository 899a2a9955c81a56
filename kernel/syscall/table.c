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
    [7] = {"poll", sys_poll},
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
    [22] = {"pipe", sys_pipe},
    [23] = {"select", sys_select},
    [24] = {"sched_yield", sys_sched_yield},
    [25] = {"mremap", sys_mremap},
    [26] = {"msync", sys_msync},
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
    [40] = {"sendfile", sys_sendfile},
    [44] = {"sendto", sys_sendto},
    [45] = {"recvfrom", sys_recvfrom},
    [48] = {"shutdown", sys_shutdown},
    [53] = {"socketpair", sys_socketpair},
    [56] = {"clone", sys_clone},
    [57] = {"fork", sys_fork},
    [58] = {"vfork", sys_vfork},
    [59] = {"execve", sys_execve},
    [60] = {"exit", sys_exit},
    [61] = {"wait4", sys_wait4},
    [62] = {"kill", sys_kill},
    [63] = {"uname", sys_uname},
    [72] = {"fcntl", sys_fcntl},
    [73] = {"flock", sys_flock},
    [74] = {"fsync", sys_fsync},
    [75] = {"fdatasync", sys_fsync},
    [76] = {"truncate", sys_truncate},
    [77] = {"ftruncate", sys_ftruncate},
    [79] = {"getcwd", sys_getcwd},
    [80] = {"chdir", sys_chdir},
    [81] = {"fchdir", sys_fchdir},
    [82] = {"rename", sys_rename},
    [83] = {"mkdir", sys_mkdir},
    [84] = {"rmdir", sys_rmdir},
    [85] = {"creat", sys_creat},
    [86] = {"link", sys_link},
    [87] = {"unlink", sys_unlink},
    [88] = {"symlink", sys_symlink},
    [89] = {"readlink", sys_readlink},
    [90] = {"chmod", sys_chmod},
    [91] = {"fchmod", sys_fchmod},
    [92] = {"chown", sys_chown},
    [93] = {"fchown", sys_fchown},
    [94] = {"lchown", sys_lchown},
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
    [109] = {"setpgid", sys_setpgid},
    [110] = {"getppid", sys_getppid},
    [111] = {"getpgrp", sys_getpgrp},
    [112] = {"setsid", sys_setsid},
    [121] = {"getpgid", sys_getpgid},
    [124] = {"getsid", sys_getsid},
    [125] = {"capget", sys_capget},
    [126] = {"capset", sys_capset},
    [127] = {"rt_sigpending", sys_rt_sigpending},
    [128] = {"rt_sigtimedwait", sys_rt_sigtimedwait},
    [129] = {"rt_sigqueueinfo", sys_rt_sigqueueinfo},
    [130] = {"rt_sigsuspend", sys_rt_sigsuspend},
    [131] = {"sigaltstack", sys_sigaltstack},
    [132] = {"utime", sys_utime},
    [133] = {"mknod", sys_mknod},
    [137] = {"statfs", sys_statfs},
    [138] = {"fstatfs", sys_fstatfs},
    [140] = {"getpriority", sys_getpriority},
    [141] = {"setpriority", sys_setpriority},
    [143] = {"sched_getparam", sys_sched_getparam},
    [144] = {"sched_setscheduler", sys_sched_setscheduler},
    [145] = {"sched_getscheduler", sys_sched_getscheduler},
    [146] = {"sched_get_priority_max", sys_sched_get_priority_max},
    [147] = {"sched_get_priority_min", sys_sched_get_priority_min},
    [149] = {"mlock", sys_mlock},
    [150] = {"munlock", sys_munlock},
    [151] = {"mlockall", sys_mlockall},
    [152] = {"munlockall", sys_munlockall},
    [157] = {"prctl", sys_prctl},
    [158] = {"arch_prctl", sys_arch_prctl},
    [160] = {"setrlimit", sys_setrlimit},
    [162] = {"sync", sys_sync},
    [169] = {"reboot", sys_reboot},
    [186] = {"gettid", sys_gettid},
    [187] = {"readahead", sys_readahead},
    [200] = {"tkill", sys_tkill},
    [201] = {"time", sys_time},
    [202] = {"futex", sys_futex},
    [203] = {"sched_setaffinity", sys_sched_setaffinity},
    [204] = {"sched_getaffinity", sys_sched_getaffinity},
    [216] = {"remap_file_pages", NULL},
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
    [231] = {"exit_group", sys_exit_group},
    [234] = {"tgkill", sys_tgkill},
    [235] = {"utimes", sys_utimes},
    [247] = {"waitid", sys_waitid},
    [257] = {"openat", sys_openat},
    [258] = {"mkdirat", sys_mkdirat},
    [259] = {"mknodat", sys_mknodat},
    [260] = {"fchownat", sys_fchownat},
    [261] = {"futimesat", sys_futimesat},
    [262] = {"newfstatat", sys_newfstatat},
    [263] = {"unlinkat", sys_unlinkat},
    [264] = {"renameat", sys_renameat},
    [265] = {"linkat", sys_linkat},
    [266] = {"symlinkat", sys_symlinkat},
    [267] = {"readlinkat", sys_readlinkat},
    [268] = {"fchmodat", sys_fchmodat},
    [269] = {"faccessat", sys_faccessat},
    [270] = {"pselect6", sys_pselect6},
    [271] = {"ppoll", sys_ppoll},
    [273] = {"set_robust_list", sys_set_robust_list},
    [274] = {"get_robust_list", sys_get_robust_list},
    [278] = {"vmsplice", sys_vmsplice},
    [280] = {"utimensat", sys_utimensat},
    [285] = {"fallocate", sys_fallocate},
    [292] = {"dup3", sys_dup3},
    [293] = {"pipe2", sys_pipe2},
    [295] = {"preadv", sys_preadv},
    [296] = {"pwritev", sys_pwritev},
    [297] = {"rt_tgsigqueueinfo", sys_rt_tgsigqueueinfo},
    [302] = {"prlimit64", sys_prlimit64},
    [309] = {"getcpu", sys_getcpu},
    [310] = {"process_vm_readv", sys_process_vm_readv},
    [311] = {"process_vm_writev", sys_process_vm_writev},
    [316] = {"renameat2", sys_renameat2},
    [318] = {"getrandom", sys_getrandom},
    [319] = {"memfd_create", sys_memfd_create},
    [322] = {"execveat", sys_execveat},
    [325] = {"mlock2", sys_mlock2},
    [326] = {"copy_file_range", sys_copy_file_range},
    [327] = {"preadv2", sys_preadv2},
    [328] = {"pwritev2", sys_pwritev2},
    [332] = {"statx", sys_statx},
    [334] = {"rseq", NULL},
    [435] = {"clone3", NULL},
    [436] = {"close_range", sys_close_range},
    [439] = {"faccessat2", sys_faccessat2},
    [451] = {"cachestat", sys_cachestat},
};

static COUNTER(calls);
/* One line for each unknown number, one for all beyond the table; a race costs a second line. */
static u8 was_logged[SYSCALL_MAX + 1];

u64 syscall_count(void)
{
    return counter_sum(calls);
}

static s64 unknown(u64 number)
{
    u64 slot = MIN(number, SYSCALL_MAX);
    if (was_logged[slot])
        return -ENOSYS;
    was_logged[slot] = 1;
    const char *name = slot < SYSCALL_MAX && table[slot].name ? table[slot].name : "unknown";
    log_info("process %u (%s): system call %lu (%s) does not exist here: ENOSYS",
             process_current()->pid, process_current()->name, number, name);
    return -ENOSYS;
}

/* Registers of the call: rax number; rdi, rsi, rdx, r10, r8, r9 arguments (AMD64 ABI, A.2.1). */
static void syscall_trap(struct trap_frame *frame)
{
    const u64 arguments[6] = {frame->rdi, frame->rsi, frame->rdx, frame->r10, frame->r8, frame->r9};
    u32 number = frame->error; /* of rax, Linux looks at the low half */
    counter_inc(calls);
    thread_current()->frame = frame;
    frame->rax = number < SYSCALL_MAX && table[number].fn ? (u64)table[number].fn(arguments)
                                                          : (u64)unknown(number);
}

void syscall_init(void)
{
    trap_set_syscall(syscall_trap);
}
