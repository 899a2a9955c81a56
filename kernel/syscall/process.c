/*
 * System calls about the process itself: its end, its identity, what it has used, its limits.
 */
#include "kernel/cpu/clock.h"
#include "kernel/cpu/context.h"
#include "kernel/syscall/syscall.h"

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
    s32 pid = a[0];
    if ((u32)a[1] < sizeof(mask) || (u32)a[1] % sizeof(u64))
        return -EINVAL;
    if (pid != 0 && pid != (s32)process_current()->pid)
        return -ESRCH;
    return copy_to_user(a[2], &mask, sizeof(mask)) ? -EFAULT : (s64)sizeof(mask);
}

#define NS_PER_US 1000ul
#define NS_PER_SECOND 1000000000ul

struct timeval {
    s64 sec, usec;
};

static struct timeval timeval_of(u64 ns)
{
    return (struct timeval){ns / NS_PER_SECOND, ns % NS_PER_SECOND / NS_PER_US};
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
static int get_limit(u32 resource, struct rlimit *limit)
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
    struct rlimit old, new = {0};
    u32 pid = a[0], resource = a[1];
    if (a[2] && copy_from_user(&new, a[2], sizeof(new)))
        return -EFAULT;
    if (pid != 0 && pid != process_current()->pid)
        return -ESRCH;
    int error = get_limit(resource, &old);
    if (error)
        return error;
    if (a[2] && new.soft > new.hard)
        return -EINVAL;
    if (a[2] && resource != RLIMIT_STACK && new.soft != old.soft)
        return -EPERM;
    if (a[2] && resource == RLIMIT_STACK)
        process_current()->mm->stack_limit_bytes = new.soft;
    return a[3] ? copy_to_user(a[3], &old, sizeof(old)) : 0;
}

enum {
    SIGCHLD = 17, SIGCONT = 18, SIGSTOP = 19, SIGTSTP = 20, SIGTTIN = 21, SIGTTOU = 22, SIGURG = 23,
    SIGWINCH = 28, SIGNAL_MAX = 64,
};

/* By default ignored; or they stop a process, and there is nobody who could continue it. */
#define HARMLESS_SIGNALS                                                                           \
    (1ul << SIGCHLD | 1ul << SIGCONT | 1ul << SIGSTOP | 1ul << SIGTSTP | 1ul << SIGTTIN |          \
     1ul << SIGTTOU | 1ul << SIGURG | 1ul << SIGWINCH)

/* Without handlers a signal to oneself does what its default is: the fatal ones end the process. */
static s64 signal_self(u32 pid, u32 signal)
{
    if (pid != process_current()->pid)
        return -ESRCH;
    if (signal > SIGNAL_MAX)
        return -EINVAL;
    if (signal == 0 || (signal < SIGNAL_MAX && (HARMLESS_SIGNALS >> signal & 1)))
        return 0;
    process_exit_signal(signal);
}

/* Process 0 is the caller's group, in which it is alone. */
s64 sys_kill(const u64 *a)
{
    u32 pid = a[0];
    return signal_self(pid ? pid : process_current()->pid, a[1]);
}

s64 sys_tkill(const u64 *a)
{
    return (s32)a[0] <= 0 ? -EINVAL : signal_self(a[0], a[1]);
}

s64 sys_tgkill(const u64 *a)
{
    if ((s32)a[0] <= 0 || (s32)a[1] <= 0)
        return -EINVAL;
    return (u32)a[0] == process_current()->pid ? signal_self(a[1], a[2]) : -ESRCH;
}

enum { SIG_BLOCK = 0, SIG_SETMASK = 2 };

/* No signal is ever delivered, so a mask has nothing to hold back; the old one reads as empty. */
s64 sys_rt_sigprocmask(const u64 *a)
{
    u64 set;
    s32 how = a[0];
    if (a[3] != sizeof(set))
        return -EINVAL;
    if (a[1] && copy_from_user(&set, a[1], sizeof(set)))
        return -EFAULT;
    if (a[1] && (how < SIG_BLOCK || how > SIG_SETMASK))
        return -EINVAL;
    return a[2] ? clear_user(a[2], sizeof(set)) : 0;
}
