/*
 * System calls: the Linux x86-64 interface. A call is a function of its six argument registers that returns
 * the result, or a negative errno; the table in table.c gives it its number.
 *
 * Every pointer is the program's: it is touched only through mm/user_memory.h, with no lock held. Source for
 * numbers, layouts and errors: man-pages section 2.
 */
#ifndef KERNEL_SYSCALL_SYSCALL_H
#define KERNEL_SYSCALL_SYSCALL_H

#include "kernel/cpu/trap.h"
#include "kernel/task/process.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "mm/user_memory.h"

typedef s64 (*syscall_fn)(const u64 *a);

void syscall_init(void);
u64 syscall_count(void); /* calls made since boot, all CPUs */

/* The open file of argument `fd` with a reference, or NULL (-EBADF). */
static inline struct file *syscall_file(u64 fd)
{
    return fd_get(process_current()->files, (int)fd);
}

/* A path from the program into a kmalloc'd buffer. => 0, -EFAULT, -ENAMETOOLONG, -ENOMEM */
int syscall_path(u64 user_path, char **out);

/* Where a relative path of an *at call starts. Takes a reference on *base (inode_put). => 0, -EBADF, -ENOTDIR */
int syscall_base(int dirfd, const char *path, struct inode **base, const char **base_path);

/* io.c */
s64 sys_read(const u64 *a);
s64 sys_write(const u64 *a);
s64 sys_readv(const u64 *a);
s64 sys_writev(const u64 *a);
s64 sys_pread64(const u64 *a);
s64 sys_pwrite64(const u64 *a);
s64 sys_preadv(const u64 *a);
s64 sys_lseek(const u64 *a);
s64 sys_ioctl(const u64 *a);
s64 sys_fadvise64(const u64 *a);
s64 sys_readahead(const u64 *a);
s64 sys_cachestat(const u64 *a);
s64 sys_fsync(const u64 *a);
s64 sys_sync(const u64 *a);

/* files.c */
s64 sys_open(const u64 *a);
s64 sys_openat(const u64 *a);
s64 sys_close(const u64 *a);
s64 sys_dup(const u64 *a);
s64 sys_dup2(const u64 *a);
s64 sys_dup3(const u64 *a);
s64 sys_fcntl(const u64 *a);
s64 sys_stat(const u64 *a);
s64 sys_lstat(const u64 *a);
s64 sys_fstat(const u64 *a);
s64 sys_newfstatat(const u64 *a);
s64 sys_access(const u64 *a);
s64 sys_faccessat(const u64 *a);
s64 sys_readlink(const u64 *a);
s64 sys_readlinkat(const u64 *a);
s64 sys_getcwd(const u64 *a);
s64 sys_chdir(const u64 *a);
s64 sys_getdents64(const u64 *a);
s64 sys_statfs(const u64 *a);
s64 sys_fstatfs(const u64 *a);
s64 sys_umask(const u64 *a);

/* memory.c */
s64 sys_mmap(const u64 *a);
s64 sys_munmap(const u64 *a);
s64 sys_mprotect(const u64 *a);
s64 sys_brk(const u64 *a);
s64 sys_madvise(const u64 *a);
s64 sys_mincore(const u64 *a);

/* process.c */
s64 sys_exit(const u64 *a);
s64 sys_getpid(const u64 *a);
s64 sys_gettid(const u64 *a);
s64 sys_set_tid_address(const u64 *a);
s64 sys_arch_prctl(const u64 *a);
s64 sys_sched_yield(const u64 *a);
s64 sys_sched_getaffinity(const u64 *a);
s64 sys_getrusage(const u64 *a);
s64 sys_times(const u64 *a);
s64 sys_prlimit64(const u64 *a);
s64 sys_getrlimit(const u64 *a);
s64 sys_getppid(const u64 *a);
s64 sys_zero(const u64 *a); /* getuid and its like: always root */

/* reboot.c */
s64 sys_reboot(const u64 *a);

/* info.c */
s64 sys_uname(const u64 *a);
s64 sys_sysinfo(const u64 *a);
s64 sys_getrandom(const u64 *a);
s64 sys_clock_gettime(const u64 *a);
s64 sys_clock_getres(const u64 *a);
s64 sys_gettimeofday(const u64 *a);
s64 sys_time(const u64 *a);
s64 sys_getcpu(const u64 *a);

/* signal.c */
s64 sys_rt_sigaction(const u64 *a);
s64 sys_rt_sigprocmask(const u64 *a);
s64 sys_rt_sigpending(const u64 *a);
s64 sys_rt_sigreturn(const u64 *a);
s64 sys_sigaltstack(const u64 *a);
s64 sys_kill(const u64 *a);
s64 sys_tkill(const u64 *a);
s64 sys_tgkill(const u64 *a);
s64 sys_rt_sigqueueinfo(const u64 *a);
s64 sys_rt_tgsigqueueinfo(const u64 *a);
s64 sys_pause(const u64 *a);
s64 sys_rt_sigsuspend(const u64 *a);
s64 sys_rt_sigtimedwait(const u64 *a);
s64 sys_restart_syscall(const u64 *a);

/* timers.c */
s64 sys_nanosleep(const u64 *a);
s64 sys_clock_nanosleep(const u64 *a);
s64 sys_setitimer(const u64 *a);
s64 sys_getitimer(const u64 *a);
s64 sys_alarm(const u64 *a);
s64 sys_timer_create(const u64 *a);
s64 sys_timer_settime(const u64 *a);
s64 sys_timer_gettime(const u64 *a);
s64 sys_timer_getoverrun(const u64 *a);
s64 sys_timer_delete(const u64 *a);

#endif
