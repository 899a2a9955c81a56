/*
 * wait4 and waitid, and what processes have used: getrusage, times.
 */
#include "kernel/cpu/clock.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/timespec.h"

/* struct rusage of Linux x86-64. */
struct rusage {
    struct timeval user, system;
    s64 maxrss_kb, ixrss, idrss, isrss, minflt, majflt, nswap, inblock, oublock, msgsnd, msgrcv,
        nsignals, nvcsw, nivcsw;
};
_Static_assert(sizeof(struct rusage) == 144, "struct rusage of x86-64");

static struct rusage rusage_of(const struct process_usage *usage)
{
    return (struct rusage){.user = timeval_of(usage->user_ns),
                           .system = timeval_of(usage->system_ns),
                           .maxrss_kb = usage->max_rss_pages * PAGE_SIZE / 1024,
                           .minflt = usage->minor_faults,
                           .majflt = usage->major_faults};
}

static int copy_rusage(u64 user, const struct process_usage *usage)
{
    struct rusage rusage = rusage_of(usage);
    return user ? copy_to_user(user, &rusage, sizeof(rusage)) : 0;
}

/* ---- wait4 ---- */

#define WAIT4_OPTIONS \
    (WNOHANG | WUNTRACED | WCONTINUED | WAIT_NO_THREADS | WAIT_ALL_KINDS | (u32)WAIT_CLONES)
#define WAITID_OPTIONS (WAIT4_OPTIONS | WEXITED | WNOWAIT)

/* wait4(pid, status, options, rusage) */
s64 sys_wait4(const u64 *a)
{
    s32 pid = a[0];
    struct wait_request request = {.options = (u32)a[2] | WEXITED};
    struct wait_result result;
    if ((u32)a[2] & ~WAIT4_OPTIONS)
        return -EINVAL;
    if (pid == (s32)0x80000000) /* -pid would be no number */
        return -ESRCH;
    if (pid != -1) {
        request.kind = pid > 0 ? WAIT_FOR_PID : WAIT_FOR_GROUP;
        request.id = pid > 0 ? (u32)pid : pid == 0 ? READ_ONCE(process_current()->pgid) : (u32)-pid;
    }
    s64 found = process_wait_child(&request, &result);
    if (found <= 0)
        return found;
    if (a[1] && copy_to_user(a[1], &result.status, sizeof(result.status)))
        return -EFAULT;
    return copy_rusage(a[3], &result.usage) ? -EFAULT : found;
}

/* ---- waitid ---- */

/* The part of siginfo_t that waitid fills in. */
struct child_info {
    s32 signal, error, code, pad;
    u32 pid, uid;
    s32 status;
};
_Static_assert(sizeof(struct child_info) == 28, "siginfo_t of x86-64");

/* waitid(kind, id, info, options, rusage) */
s64 sys_waitid(const u64 *a)
{
    struct wait_request request = {.kind = a[0], .id = a[1], .options = a[3]};
    struct wait_result result;
    struct child_info info = {0};
    if (((u32)a[3] & ~WAITID_OPTIONS) || !((u32)a[3] & (WEXITED | WSTOPPED | WCONTINUED)))
        return -EINVAL;
    if ((u32)a[0] > WAIT_FOR_GROUP || ((u32)a[0] == WAIT_FOR_PID && (s32)a[1] <= 0) ||
        ((u32)a[0] == WAIT_FOR_GROUP && (s32)a[1] < 0))
        return -EINVAL;
    if (request.kind == WAIT_FOR_GROUP && request.id == 0)
        request.id = READ_ONCE(process_current()->pgid);
    s64 found = process_wait_child(&request, &result);
    if (found > 0)
        info = (struct child_info){.signal = SIGCHLD,
                                   .code = result.code,
                                   .pid = result.pid,
                                   .status = result.code_status};
    if (a[2] && copy_to_user(a[2], &info, sizeof(info)))
        return -EFAULT;
    return found > 0 && copy_rusage(a[4], &result.usage) ? -EFAULT : MIN(found, 0l);
}

/* ---- getrusage, times ---- */

enum { RUSAGE_SELF = 0, RUSAGE_CHILDREN = -1, RUSAGE_THREAD = 1 };

static void usage_of_process(struct process_usage *usage)
{
    const struct mm *mm = task_current()->mm;
    process_usage_get(process_current(), usage);
    usage->max_rss_pages = MAX(usage->max_rss_pages, mm_rss_peak(mm));
}

static void usage_of_children(struct process_usage *usage)
{
    spin_lock(&process_tree_lock);
    *usage = process_current()->children_usage;
    spin_unlock(&process_tree_lock);
}

static void usage_of_thread(struct process_usage *usage)
{
    const struct task *task = task_current();
    usage_of_process(usage);
    usage->minor_faults = task->faults.shown_minor;
    usage->major_faults = task->faults.shown_major;
    task_times(task, &usage->user_ns, &usage->system_ns);
}

s64 sys_getrusage(const u64 *a)
{
    struct process_usage usage = {0};
    switch ((int)a[0]) {
    case RUSAGE_SELF: usage_of_process(&usage); break;
    case RUSAGE_CHILDREN: usage_of_children(&usage); break;
    case RUSAGE_THREAD: usage_of_thread(&usage); break;
    default: return -EINVAL;
    }
    struct rusage rusage = rusage_of(&usage);
    return copy_to_user(a[1], &rusage, sizeof(rusage));
}

#define TICKS_PER_SECOND 100
#define NS_PER_TICK      (NS_PER_SECOND / TICKS_PER_SECOND)

s64 sys_times(const u64 *a)
{
    struct process_usage self, children;
    usage_of_process(&self);
    usage_of_children(&children);
    s64 ticks[4] = {self.user_ns / NS_PER_TICK, self.system_ns / NS_PER_TICK,
                    children.user_ns / NS_PER_TICK, children.system_ns / NS_PER_TICK};
    if (a[0] && copy_to_user(a[0], ticks, sizeof(ticks)))
        return -EFAULT;
    return clock_ns() / NS_PER_TICK;
}
