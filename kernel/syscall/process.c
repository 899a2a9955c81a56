/*
 * System calls about the process itself: its numbers, its group and session, its thread pointer, its name.
 */
#include "kernel/cpu/context.h"
#include "kernel/syscall/syscall.h"

s64 sys_getpid(const u64 *a)
{
    (void)a;
    return process_current()->pid;
}

s64 sys_gettid(const u64 *a)
{
    (void)a;
    return thread_current()->tid;
}

s64 sys_getppid(const u64 *a)
{
    (void)a;
    spin_lock(&process_tree_lock);
    const struct process *parent = process_current()->parent;
    s64 pid = parent ? parent->pid : 0;
    spin_unlock(&process_tree_lock);
    return pid;
}

s64 sys_zero(const u64 *a)
{
    (void)a;
    return 0;
}

enum { ARCH_SET_GS = 0x1001, ARCH_SET_FS = 0x1002, ARCH_GET_FS = 0x1003, ARCH_GET_GS = 0x1004 };

s64 sys_arch_prctl(const u64 *a)
{
    u64 value;
    int code = a[0];
    switch (code) {
    case ARCH_SET_FS:
    case ARCH_SET_GS:
        if (a[1] >= USER_ADDRESS_END)
            return -EPERM;
        if (code == ARCH_SET_FS)
            cpu_fs_base_write(a[1]);
        else
            cpu_user_gs_base_write(a[1]);
        return 0;
    case ARCH_GET_FS:
    case ARCH_GET_GS:
        value = code == ARCH_GET_FS ? cpu_fs_base_read() : cpu_user_gs_base_read();
        return copy_to_user(a[1], &value, sizeof(value));
    default: return -EINVAL;
    }
}

/* ---- Groups and sessions ---- */

/* The process that pid names, 0: the caller's. NULL: none. process_tree_lock held */
static struct process *process_of_locked(u64 pid)
{
    return (u32)pid == 0 ? process_current() : process_find_locked(pid);
}

static s64 number_of(u64 pid, bool wants_session)
{
    spin_lock(&process_tree_lock);
    const struct process *process = process_of_locked(pid);
    s64 result = -ESRCH;
    if (process)
        result = wants_session ? process->sid : process->pgid;
    spin_unlock(&process_tree_lock);
    return result;
}

s64 sys_getpgid(const u64 *a)
{
    return number_of(a[0], false);
}

s64 sys_getpgrp(const u64 *a)
{
    (void)a;
    return number_of(0, false);
}

s64 sys_getsid(const u64 *a)
{
    return number_of(a[0], true);
}

static void note_session(struct process *process, void *sid)
{
    *(u32 *)sid = process->sid;
}

/* Is there a group `pgid` in the session? process_tree_lock held */
static bool group_is_in_session_locked(u32 pgid, u32 sid)
{
    u32 found = 0;
    return process_for_each_in_group_locked(pgid, note_session, &found) > 0 && found == sid;
}

/* setpgid(2)'s rules. process_tree_lock held */
static s64 set_group_locked(struct process *process, u32 pgid)
{
    struct process *me = process_current();
    if (!process || (process != me && process->parent != me))
        return -ESRCH;
    if (process != me && process->sid != me->sid)
        return -EPERM;
    if (process != me && process->has_execed)
        return -EACCES;
    if (process->is_session_leader)
        return -EPERM;
    if (pgid != process->pid && !group_is_in_session_locked(pgid, me->sid))
        return -EPERM;
    process->pgid = pgid;
    return 0;
}

s64 sys_setpgid(const u64 *a)
{
    if ((s32)a[1] < 0 || ((s32)a[1] == 0 && (s32)a[0] < 0))
        return -EINVAL;
    spin_lock(&process_tree_lock);
    struct process *process = process_of_locked(a[0]);
    u32 pgid = (u32)a[1] ? (u32)a[1] : process ? process->pid : 0;
    s64 result = set_group_locked(process, pgid);
    spin_unlock(&process_tree_lock);
    return result;
}

static void do_nothing(struct process *process, void *ctx)
{
    (void)process, (void)ctx;
}

s64 sys_setsid(const u64 *a)
{
    (void)a;
    struct process *me = process_current();
    s64 result = -EPERM;
    spin_lock(&process_tree_lock);
    if (process_for_each_in_group_locked(me->pid, do_nothing, NULL) == 0) {
        me->sid = me->pgid = me->pid;
        me->is_session_leader = true;
        result = me->pid;
    }
    spin_unlock(&process_tree_lock);
    return result;
}

/* ---- prctl ---- */

enum {
    PR_GET_DUMPABLE = 3,
    PR_SET_DUMPABLE = 4,
    PR_SET_NAME = 15,
    PR_GET_NAME = 16,
    PR_SET_NO_NEW_PRIVS = 38,
    PR_GET_NO_NEW_PRIVS = 39,
};

static s64 set_name(u64 user)
{
    struct task *me = task_current();
    char name[TASK_NAME_SIZE] = {0};
    ssize_t n = copy_string_from_user(name, user, sizeof(name));
    if (n == -EFAULT)
        return n;
    name[TASK_NAME_SIZE - 1] = '\0'; /* a longer one is cut */
    memcpy(me->name, name, sizeof(name));
    if (thread_current()->tid == process_current()->pid)
        memcpy(process_current()->name, name, sizeof(name));
    return 0;
}

s64 sys_prctl(const u64 *a)
{
    switch ((u32)a[0]) {
    case PR_SET_NAME: return set_name(a[1]);
    case PR_GET_NAME: return copy_to_user(a[1], task_current()->name, TASK_NAME_SIZE);
    case PR_GET_DUMPABLE: return 1;
    case PR_SET_DUMPABLE: return a[1] > 1 ? -EINVAL : 0;
    case PR_SET_NO_NEW_PRIVS: /* there are no others to gain */
        return a[1] == 1 && !a[2] && !a[3] && !a[4] ? 0 : -EINVAL;
    case PR_GET_NO_NEW_PRIVS: return a[1] || a[2] || a[3] || a[4] ? -EINVAL : 0;
    default: return -EINVAL;
    }
}
