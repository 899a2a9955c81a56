/*
 * System calls about scheduling: yielding, CPUs, and policies, of which there is one.
 */
#include "kernel/sched/affinity.h"
#include "kernel/syscall/syscall.h"

enum { SCHED_OTHER = 0, SCHED_FIFO = 1, SCHED_RR = 2, SCHED_BATCH = 3, SCHED_IDLE = 5 };
#define RT_PRIORITY_MAX 99
#define NICE_OF_ALL 20 /* getpriority: 20 - nice */

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
    if (a[1] < sizeof(mask) || a[1] % sizeof(u64))
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
    if (copy_from_user(&mask, a[2], MIN(a[1], sizeof(mask))))
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

/* sched_setscheduler(tid, policy, param): real-time policies do not exist here. */
s64 sys_sched_setscheduler(const u64 *a)
{
    s32 priority;
    s64 error = a[2] ? check_thread(a[0]) : -EINVAL;
    if (error)
        return error;
    if (copy_from_user(&priority, a[2], sizeof(priority)))
        return -EFAULT;
    switch ((u32)a[1]) {
    case SCHED_OTHER:
    case SCHED_BATCH:
    case SCHED_IDLE:
        return priority == 0 ? 0 : -EINVAL;
    case SCHED_FIFO:
    case SCHED_RR:
        return -EPERM;
    default:
        return -EINVAL;
    }
}

s64 sys_sched_get_priority_max(const u64 *a)
{
    bool is_rt = a[0] == SCHED_FIFO || a[0] == SCHED_RR;
    return a[0] > SCHED_IDLE ? -EINVAL : is_rt ? RT_PRIORITY_MAX : 0;
}

s64 sys_sched_get_priority_min(const u64 *a)
{
    bool is_rt = a[0] == SCHED_FIFO || a[0] == SCHED_RR;
    return a[0] > SCHED_IDLE ? -EINVAL : is_rt;
}

/* All are equal: the number that says "nice 0". */
s64 sys_getpriority(const u64 *a)
{
    return a[0] > 2 ? -EINVAL : NICE_OF_ALL;
}

/* Accepted, and without effect. */
s64 sys_setpriority(const u64 *a)
{
    return a[0] > 2 ? -EINVAL : 0;
}
