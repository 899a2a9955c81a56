/*
 * System calls about the process itself: its end, its identity, what it has used, its limits.
 */
#include "kernel/cpu/clock.h"
#include "kernel/cpu/context.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/timespec.h"

s64 sys_exit(const u64 *a)
{
    process_exit(a[0]);
}

s64 sys_getpid(const u64 *a)
{
    (void)a;
    return process_current()->pid;
}

s64 sys_gettid(const u64 *a)
{
    (void)a;
    return task_current()->pid;
}

s64 sys_getppid(const u64 *a)
{
    (void)a;
    return 0;
}

s64 sys_zero(const u64 *a)
{
    (void)a;
    return 0;
}

s64 sys_set_tid_address(const u64 *a)
{
    (void)a; /* cleared and woken at a thread's exit; there is one thread, whose exit ends the process */
    return task_current()->pid;
}

enum { ARCH_SET_GS = 0x1001, ARCH_SET_FS = 0x1002, ARCH_GET_FS = 0x1003, ARCH_GET_GS = 0x1004 };

s64 sys_arch_prctl(const u64 *a)
{
    u64 value;
    switch (a[0]) {
    case ARCH_SET_FS:
    case ARCH_SET_GS:
        if (a[1] >= USER_ADDRESS_END)
            return -EPERM;
        if (a[0] == ARCH_SET_FS)
            cpu_fs_base_write(a[1]);
        else
            cpu_user_gs_base_write(a[1]);
        return 0;
    case ARCH_GET_FS:
    case ARCH_GET_GS:
        value = a[0] == ARCH_GET_FS ? cpu_fs_base_read() : cpu_user_gs_base_read();
        return copy_to_user(a[1], &value, sizeof(value));
    default:
        return -EINVAL;
    }
}

s64 sys_sched_yield(const u64 *a)
{
    (void)a;
    sched_yield();
    return 0;
}

s64 sys_sched_getaffinity(const u64 *a)
{
    cpumask_t mask = cpu_online_mask();
    if (a[1] < sizeof(mask) || a[1] % sizeof(u64))
        return -EINVAL;
    return copy_to_user(a[2], &mask, sizeof(mask)) ? -EFAULT : (s64)sizeof(mask);
}

/* struct rusage of Linux x86-64. */
struct rusage {
    struct timeval user, system;
    s64 maxrss_kb, ixrss, idrss, isrss, minflt, majflt, nswap, inblock, oublock, msgsnd, msgrcv, nsignals,
        nvcsw, nivcsw;
};
_Static_assert(sizeof(struct rusage) == 144, "struct rusage of x86-64");

enum { RUSAGE_SELF = 0, RUSAGE_CHILDREN = -1, RUSAGE_THREAD = 1 };

s64 sys_getrusage(const u64 *a)
{
    int who = a[0];
    struct rusage usage = {0};
    if (who != RUSAGE_SELF && who != RUSAGE_THREAD && who != RUSAGE_CHILDREN)
        return -EINVAL;
    if (who != RUSAGE_CHILDREN) {
        struct task *task = task_current();
        u64 user_ns, system_ns;
        task_times(task, &user_ns, &system_ns);
        usage.user = timeval_of(user_ns);
        usage.system = timeval_of(system_ns);
        usage.minflt = task->faults.shown_minor;
        usage.majflt = task->faults.shown_major;
        struct mm *mm = process_current()->mm;
        usage.maxrss_kb = (mm->rss_anon + mm->rss_file) * PAGE_SIZE / 1024;
    }
    return copy_to_user(a[1], &usage, sizeof(usage));
}

#define TICKS_PER_SECOND 100
#define NS_PER_TICK (NS_PER_SECOND / TICKS_PER_SECOND)

s64 sys_times(const u64 *a)
{
    u64 user_ns, system_ns;
    task_times(task_current(), &user_ns, &system_ns);
    s64 ticks[4] = {user_ns / NS_PER_TICK, system_ns / NS_PER_TICK, 0, 0};
    if (a[0] && copy_to_user(a[0], ticks, sizeof(ticks)))
        return -EFAULT;
    return clock_ns() / NS_PER_TICK;
}

enum { RLIMIT_STACK = 3, RLIMIT_NOFILE = 7, RLIMIT_COUNT = 16 };
#define RLIM_INFINITY (~0ul)

struct rlimit {
    u64 soft, hard;
};

/* The limits that hold; the others are not limited. */
static int get_limit(u64 resource, struct rlimit *limit)
{
    if (resource >= RLIMIT_COUNT)
        return -EINVAL;
    *limit = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
    if (resource == RLIMIT_STACK)
        limit->soft = process_current()->mm->stack_limit_bytes;
    else if (resource == RLIMIT_NOFILE)
        *limit = (struct rlimit){FD_MAX, FD_MAX};
    return 0;
}

s64 sys_getrlimit(const u64 *a)
{
    struct rlimit limit;
    int error = get_limit(a[0], &limit);
    return error ? error : copy_to_user(a[1], &limit, sizeof(limit));
}

/* prlimit64(pid, resource, new, old): of this process only; limits are fixed but for the stack's. */
s64 sys_prlimit64(const u64 *a)
{
    struct rlimit old, new;
    if (a[0] != 0 && a[0] != process_current()->pid)
        return -ESRCH;
    int error = get_limit(a[1], &old);
    if (!error && a[2])
        error = copy_from_user(&new, a[2], sizeof(new));
    if (!error && a[3])
        error = copy_to_user(a[3], &old, sizeof(old));
    if (error || !a[2])
        return error;
    if (new.soft > new.hard)
        return -EINVAL;
    if (a[1] != RLIMIT_STACK)
        return new.soft == old.soft ? 0 : -EPERM;
    process_current()->mm->stack_limit_bytes = new.soft;
    return 0;
}
