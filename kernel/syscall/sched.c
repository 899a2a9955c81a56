/*
 * System calls about scheduling: yielding, CPUs, and policies, of which there is one.
 */
#include "kernel/sched/affinity.h"
#include "kernel/syscall/syscall.h"

enum {
    SCHED_OTHER = 0,
    SCHED_FIFO = 1,
    SCHED_RR = 2,
    SCHED_BATCH = 3,
    SCHED_IDLE = 5,
    SCHED_DEADLINE = 6
};
#define RT_PRIORITY_MAX 99
#define NICE_OF_ALL     20 /* getpriority: 20 - nice */

s64 sys_sched_yield(const u64 *a)
{
    (void)a;
    sched_yield();
    return 0;
}

/* => the thread (thread_put), NULL: none */
static struct thread *thread_of(u64 tid)
{
    return thread_find(NULL, (u32)tid ? (u32)tid : thread_current()->tid);
}

/* sched_getaffinity(tid, bytes, mask) */
s64 sys_sched_getaffinity(const u64 *a)
{
    cpumask_t mask;
    if ((u32)a[1] < sizeof(mask) || (u32)a[1] % sizeof(u64))
        return -EINVAL;
    struct thread *thread = thread_of(a[0]);
    if (!thread)
        return -ESRCH;
    mask = sched_allowed_cpus(thread->task);
    thread_put(thread);
    return copy_to_user(a[2], &mask, sizeof(mask)) ? -EFAULT : (s64)sizeof(mask);
}

/* sched_setaffinity(tid, bytes, mask) */
s64 sys_sched_setaffinity(const u64 *a)
{
    cpumask_t mask = 0;
    if (copy_from_user(&mask, a[2], MIN((u32)a[1], sizeof(mask))))
        return -EFAULT;
    struct thread *thread = thread_of(a[0]);
    if (!thread)
        return -ESRCH;
    int error = sched_set_affinity(thread->task, mask);
    thread_put(thread);
    return error;
}

static s64 check_thread(u64 tid)
{
    struct thread *thread = (s32)tid < 0 ? NULL : thread_of(tid);
    if (!thread)
        return (s32)tid < 0 ? -EINVAL : -ESRCH;
    thread_put(thread);
    return 0;
}

s64 sys_sched_getscheduler(const u64 *a)
{
    s64 error = check_thread(a[0]);
    return error ? error : SCHED_OTHER;
}

s64 sys_sched_getparam(const u64 *a)
{
    const s32 priority = 0;
    s64 error = a[1] ? check_thread(a[0]) : -EINVAL;
    return error ? error : copy_to_user(a[1], &priority, sizeof(priority));
}

static bool is_realtime(u32 policy)
{
    return policy == SCHED_FIFO || policy == SCHED_RR;
}

static bool is_ordinary(u32 policy)
{
    return policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE;
}

/* sched_setscheduler(tid, policy, param): real-time policies do not exist here. */
s64 sys_sched_setscheduler(const u64 *a)
{
    s32 priority;
    u32 policy = a[1];
    if (!a[2] || (s32)a[0] < 0 || (s32)policy < 0)
        return -EINVAL;
    if (copy_from_user(&priority, a[2], sizeof(priority)))
        return -EFAULT;
    s64 error = check_thread(a[0]);
    if (error)
        return error;
    if (is_realtime(policy))
        return priority >= 1 && priority <= RT_PRIORITY_MAX ? -EPERM : -EINVAL;
    return is_ordinary(policy) && priority == 0 ? 0 : -EINVAL;
}

s64 sys_sched_get_priority_max(const u64 *a)
{
    u32 policy = a[0];
    if (is_realtime(policy))
        return RT_PRIORITY_MAX;
    return is_ordinary(policy) || policy == SCHED_DEADLINE ? 0 : -EINVAL;
}

s64 sys_sched_get_priority_min(const u64 *a)
{
    u32 policy = a[0];
    if (is_realtime(policy))
        return 1;
    return is_ordinary(policy) || policy == SCHED_DEADLINE ? 0 : -EINVAL;
}

/* ---- Niceness, which has no effect ---- */

enum { PRIO_PROCESS = 0, PRIO_PGRP = 1, PRIO_USER = 2 };

static void do_nothing(struct process *process, void *ctx)
{
    (void)process, (void)ctx;
}

/* Whom getpriority and setpriority name: 0 is the caller, his group, and the only user. => 0, -EINVAL, -ESRCH */
static s64 check_whom(u32 kind, u32 id)
{
    unsigned n;
    switch (kind) {
    case PRIO_PROCESS: return (s32)id < 0 ? -ESRCH : check_thread(id);
    case PRIO_PGRP:
        spin_lock(&process_tree_lock);
        n = process_for_each_in_group_locked(id ? id : process_current()->pgid, do_nothing, NULL);
        spin_unlock(&process_tree_lock);
        return n ? 0 : -ESRCH;
    case PRIO_USER: return id ? -ESRCH : 0;
    default: return -EINVAL;
    }
}

/* All are equal: the number that says "nice 0". */
s64 sys_getpriority(const u64 *a)
{
    s64 error = check_whom(a[0], a[1]);
    return error ? error : NICE_OF_ALL;
}

/* Accepted, and without effect. */
s64 sys_setpriority(const u64 *a)
{
    return check_whom(a[0], a[1]);
}
