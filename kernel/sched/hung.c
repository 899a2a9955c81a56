/*
 * Tasks that wait for too long. See hung.h.
 *
 * A timer looks round, on the CPU that armed it, with interrupts off: it takes the list's lock only if
 * it is free, and reads what belongs to others without their locks. The task may wake up while it is
 * reported; then the report is of a wait that has just ended.
 */
#include "kernel/sched/hung.h"

#include "kernel/cpu/clock.h"
#include "kernel/cpu/trap.h"
#include "kernel/cpu/uaccess.h"
#include "kernel/log/report.h"
#include "kernel/sched/run_queue.h"
#include "kernel/sched/timer.h"
#include "kernel/sched/wait.h"
#include "lib/errno.h"
#include "lib/format.h"

#define NS_PER_SECOND     1000000000ul
#define NS_PER_MS         1000000ul
#define LOOKS_PER_TIMEOUT 4
#define REPORTS_PER_LOOK  4 /* interrupts are off meanwhile, and the task list locked */
#define TIMEOUT_MAX_SECS  1000000ul
/* What context_switch() leaves on a stack: five registers, rbp, the return address. */
#define SAVED_RBP 5
#define SAVED_RIP 6

struct look {
    u64 limit_ns;
    unsigned n; /* reported */
};

static u64 timeout_secs; /* 0: off */
static struct timer timer;
static LOCK_CLASS(setting_lock_class, "hung task timeout");
static struct spinlock setting_lock = SPINLOCK_INIT(&setting_lock_class); /* of who sets it */

static bool is_hung(const struct task *task, u64 limit_ns)
{
    /* Until it has left its CPU, the time is that of the wait before, and its stack is in use. */
    bool has_left = !atomic_load(&task->on_cpu);
    u64 since = READ_ONCE(task->wait_since_ns);

    return has_left && READ_ONCE(task->state) == TASK_SLEEPING && READ_ONCE(task->wait_reason) &&
           !READ_ONCE(task->wait_may_last) && task->hung_since_ns != since &&
           clock_ns() - since > limit_ns;
}

/* Where a sleeping task will go on. */
static struct trap_frame frame_of(const struct task *task)
{
    struct trap_frame frame = {.rsp = READ_ONCE(task->saved_rsp), .cs = KERNEL_CS};

    if (kernel_probe_read(frame.rsp + SAVED_RBP * sizeof(u64), &frame.rbp) ||
        kernel_probe_read(frame.rsp + SAVED_RIP * sizeof(u64), &frame.rip))
        frame.rbp = frame.rip = 0;
    return frame;
}

static void report_if_hung(struct task *task, void *ctx)
{
    struct look *look = ctx;
    char waits_for[128], reason[256];

    if (look->n == REPORTS_PER_LOOK || !is_hung(task, look->limit_ns))
        return;
    task->hung_since_ns = task->wait_since_ns;
    look->n++;
    u64 waited_ms = (clock_ns() - task->wait_since_ns) / NS_PER_MS;
    u64 since_ms = task->wait_since_ns / NS_PER_MS;
    task_format_wait(task, waits_for, sizeof(waits_for));
    format_to(reason, sizeof(reason),
              "%u \"%s\" waits for %s, for %lu.%03lu s, since %lu.%03lu s after boot", task->pid,
              task->name, waits_for, waited_ms / 1000, waited_ms % 1000, since_ms / 1000,
              since_ms % 1000);
    struct trap_frame frame = frame_of(task);
    struct report report = {
        .kind = REPORT_HUNG_TASK,
        .reason = reason,
        .frame = &frame,
        .task = task,
        .heading = report_log_heading,
        .line = report_log_line,
    };
    report_print(&report);
}

unsigned hung_task_check(u64 limit_ns)
{
    struct look look = {limit_ns, 0};

    task_for_each_if_free(report_if_hung, &look);
    return look.n;
}

static void arm(u64 seconds)
{
    timer_arm(&timer, clock_ns() + seconds * NS_PER_SECOND / LOOKS_PER_TIMEOUT);
}

static void look_round(struct timer *unused)
{
    u64 seconds = READ_ONCE(timeout_secs);

    (void)unused;
    if (!seconds)
        return;
    /* Reports look at what waits for a grace period, and none waits for an idle CPU: this one is not, for now. */
    atomic_and(&sched_idle_mask, ~(1ul << cpu_index()));
    hung_task_check(seconds * NS_PER_SECOND);
    arm(seconds);
}

u64 hung_task_timeout_secs(void)
{
    return READ_ONCE(timeout_secs);
}

int hung_task_set_timeout_secs(u64 seconds)
{
    if (seconds > TIMEOUT_MAX_SECS)
        return -EINVAL;
    spin_lock(&setting_lock);
    if (!timer.fn)
        timer_init(&timer, look_round);
    WRITE_ONCE(timeout_secs, 0);
    timer_cancel_sync(&timer);
    WRITE_ONCE(timeout_secs, seconds);
    if (seconds)
        arm(seconds);
    spin_unlock(&setting_lock);
    return 0;
}
