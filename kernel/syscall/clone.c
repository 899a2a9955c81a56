/*
 * System calls that make processes and threads, put other programs in their place, and end them.
 */
#include "kernel/syscall/path.h"

#define CLONE_SIGNAL_MASK 0xfful

s64 sys_fork(const u64 *a)
{
    (void)a;
    return process_clone(&(struct clone_arguments){.exit_signal = SIGCHLD});
}

s64 sys_vfork(const u64 *a)
{
    (void)a;
    return process_clone(
        &(struct clone_arguments){.flags = CLONE_VM | CLONE_VFORK, .exit_signal = SIGCHLD});
}

/* clone(flags, stack, parent_tid, child_tid, tls) */
s64 sys_clone(const u64 *a)
{
    u32 exit_signal = a[0] & CLONE_SIGNAL_MASK;
    if (exit_signal > SIGNAL_MAX)
        return -EINVAL;
    return process_clone(&(struct clone_arguments){.flags = (u32)a[0] & ~CLONE_SIGNAL_MASK,
                                                   .exit_signal = exit_signal,
                                                   .stack = a[1],
                                                   .parent_tid = a[2],
                                                   .child_tid = a[3],
                                                   .tls = a[4]});
}

static s64 exec_at(u64 dirfd, u64 path, u64 argv, u64 envp)
{
    struct syscall_at at;
    s64 result = syscall_at_begin(&at, dirfd, path);
    if (result)
        return result;
    result = process_exec(at.dir, at.dir_path, at.path, argv, envp);
    syscall_at_end(&at);
    return result;
}

s64 sys_execve(const u64 *a)
{
    return exec_at((u64)AT_FDCWD, a[0], a[1], a[2]);
}

/* execveat(dirfd, path, argv, envp, flags): without flags. */
s64 sys_execveat(const u64 *a)
{
    return a[4] ? -EINVAL : exec_at(a[0], a[1], a[2], a[3]);
}

s64 sys_exit(const u64 *a)
{
    thread_exit(a[0]);
}

s64 sys_exit_group(const u64 *a)
{
    process_exit(a[0]);
}

s64 sys_set_tid_address(const u64 *a)
{
    struct thread *me = thread_current();
    me->clear_child_tid = a[0];
    return me->tid;
}
