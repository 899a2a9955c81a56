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
static inline struct file *syscall_file_or_path(u64 fd)
{
    return fd_get(process_current()->files, (int)fd);
}

/* The same for calls that want more than a name: one opened with O_PATH is -EBADF, too. */
static inline struct file *syscall_file(u64 fd)
{
    struct file *file = syscall_file_or_path(fd);
    if (!file || !(file->flags & O_PATH))
        return file;
    file_put(file);
    return NULL;
}

/* A path from the program into a kmalloc'd buffer. => 0, -EFAULT, -ENAMETOOLONG, -ENOMEM */
int syscall_path(u64 user_path, char **out);

/* Two open files (their references are used up) become descriptors, which are stored at user_fds;
 * flags: O_CLOEXEC or 0. => 0; -EMFILE, -ENOMEM, -EFAULT: neither is open */
s64 syscall_install_pair(struct file *ends[2], u32 flags, u64 user_fds);

/* socket.c */
s64 sys_socketpair(const u64 *a);
s64 sys_shutdown(const u64 *a);
s64 sys_sendto(const u64 *a);
s64 sys_recvfrom(const u64 *a);

/* io.c */
s64 sys_read(const u64 *a);
s64 sys_write(const u64 *a);
s64 sys_readv(const u64 *a);
s64 sys_writev(const u64 *a);
s64 sys_pread64(const u64 *a);
s64 sys_pwrite64(const u64 *a);
s64 sys_preadv(const u64 *a);
s64 sys_pwritev(const u64 *a);
s64 sys_preadv2(const u64 *a);
s64 sys_pwritev2(const u64 *a);
s64 sys_vmsplice(const u64 *a);
s64 sys_lseek(const u64 *a);
s64 sys_ioctl(const u64 *a);
s64 sys_fadvise64(const u64 *a);
s64 sys_readahead(const u64 *a);
s64 sys_cachestat(const u64 *a);
s64 sys_fsync(const u64 *a);
s64 sys_sync(const u64 *a);

/* remote.c */
s64 sys_process_vm_readv(const u64 *a);
s64 sys_process_vm_writev(const u64 *a);

/* files.c */
s64 sys_open(const u64 *a);
s64 sys_openat(const u64 *a);
s64 sys_creat(const u64 *a);
s64 sys_close(const u64 *a);
s64 sys_close_range(const u64 *a);
s64 sys_dup(const u64 *a);
s64 sys_dup2(const u64 *a);
s64 sys_dup3(const u64 *a);
s64 sys_fcntl(const u64 *a);
s64 sys_flock(const u64 *a);
s64 sys_memfd_create(const u64 *a);
s64 sys_pipe(const u64 *a);
s64 sys_pipe2(const u64 *a);

/* directory.c */
s64 sys_getcwd(const u64 *a);
s64 sys_chdir(const u64 *a);
s64 sys_fchdir(const u64 *a);
s64 sys_umask(const u64 *a);
s64 sys_getdents64(const u64 *a);

/* stat.c */
s64 sys_stat(const u64 *a);
s64 sys_lstat(const u64 *a);
s64 sys_fstat(const u64 *a);
s64 sys_newfstatat(const u64 *a);
s64 sys_statx(const u64 *a);
s64 sys_access(const u64 *a);
s64 sys_faccessat(const u64 *a);
s64 sys_faccessat2(const u64 *a);
s64 sys_readlink(const u64 *a);
s64 sys_readlinkat(const u64 *a);
s64 sys_statfs(const u64 *a);
s64 sys_fstatfs(const u64 *a);

/* names.c */
s64 sys_mkdir(const u64 *a);
s64 sys_mkdirat(const u64 *a);
s64 sys_mknod(const u64 *a);
s64 sys_mknodat(const u64 *a);
s64 sys_symlink(const u64 *a);
s64 sys_symlinkat(const u64 *a);
s64 sys_unlink(const u64 *a);
s64 sys_rmdir(const u64 *a);
s64 sys_unlinkat(const u64 *a);
s64 sys_link(const u64 *a);
s64 sys_linkat(const u64 *a);
s64 sys_rename(const u64 *a);
s64 sys_renameat(const u64 *a);
s64 sys_renameat2(const u64 *a);

/* attributes.c */
s64 sys_truncate(const u64 *a);
s64 sys_ftruncate(const u64 *a);
s64 sys_fallocate(const u64 *a);
s64 sys_chmod(const u64 *a);
s64 sys_fchmodat(const u64 *a);
s64 sys_fchmod(const u64 *a);
s64 sys_chown(const u64 *a);
s64 sys_lchown(const u64 *a);
s64 sys_fchownat(const u64 *a);
s64 sys_fchown(const u64 *a);
s64 sys_utimensat(const u64 *a);
s64 sys_utimes(const u64 *a);
s64 sys_futimesat(const u64 *a);
s64 sys_utime(const u64 *a);

/* poll.c */
s64 sys_poll(const u64 *a);
s64 sys_ppoll(const u64 *a);
s64 sys_select(const u64 *a);
s64 sys_pselect6(const u64 *a);

/* transfer.c */
s64 sys_sendfile(const u64 *a);
s64 sys_copy_file_range(const u64 *a);

/* memory.c */
s64 sys_mmap(const u64 *a);
s64 sys_munmap(const u64 *a);
s64 sys_mprotect(const u64 *a);
s64 sys_brk(const u64 *a);
s64 sys_madvise(const u64 *a);
s64 sys_mincore(const u64 *a);
s64 sys_mremap(const u64 *a);
s64 sys_msync(const u64 *a);
s64 sys_mlock(const u64 *a);
s64 sys_mlock2(const u64 *a);
s64 sys_munlock(const u64 *a);
s64 sys_mlockall(const u64 *a);
s64 sys_munlockall(const u64 *a);

/* capability.c */
s64 sys_capget(const u64 *a);
s64 sys_capset(const u64 *a);

/* process.c */
s64 sys_getpid(const u64 *a);
s64 sys_gettid(const u64 *a);
s64 sys_getppid(const u64 *a);
s64 sys_getpgid(const u64 *a);
s64 sys_getpgrp(const u64 *a);
s64 sys_getsid(const u64 *a);
s64 sys_setpgid(const u64 *a);
s64 sys_setsid(const u64 *a);
s64 sys_arch_prctl(const u64 *a);
s64 sys_prctl(const u64 *a);
s64 sys_zero(const u64 *a); /* getuid and its like: always root */

/* clone.c */
s64 sys_fork(const u64 *a);
s64 sys_vfork(const u64 *a);
s64 sys_clone(const u64 *a);
s64 sys_execve(const u64 *a);
s64 sys_execveat(const u64 *a);
s64 sys_exit(const u64 *a);
s64 sys_exit_group(const u64 *a);
s64 sys_set_tid_address(const u64 *a);

/* wait.c */
s64 sys_wait4(const u64 *a);
s64 sys_waitid(const u64 *a);
s64 sys_getrusage(const u64 *a);
s64 sys_times(const u64 *a);

/* futex.c */
s64 sys_futex(const u64 *a);
s64 sys_set_robust_list(const u64 *a);
s64 sys_get_robust_list(const u64 *a);

/* sched.c */
s64 sys_sched_yield(const u64 *a);
s64 sys_sched_getaffinity(const u64 *a);
s64 sys_sched_setaffinity(const u64 *a);
s64 sys_sched_getscheduler(const u64 *a);
s64 sys_sched_setscheduler(const u64 *a);
s64 sys_sched_getparam(const u64 *a);
s64 sys_sched_get_priority_max(const u64 *a);
s64 sys_sched_get_priority_min(const u64 *a);
s64 sys_getpriority(const u64 *a);
s64 sys_setpriority(const u64 *a);

/* limits.c */
s64 sys_getrlimit(const u64 *a);
s64 sys_setrlimit(const u64 *a);
s64 sys_prlimit64(const u64 *a);

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
