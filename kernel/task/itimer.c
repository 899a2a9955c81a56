/*
 * setitimer: one alarm by the clock, two by the time that the process uses.
 *
 * There is no periodic tick. The clock's alarm is a timer. For the other two a timer is armed for the earliest moment at
 * which the time could be used up (all threads running), then looks at what was used and is armed again for the rest;
 * never sooner than PERIOD_MIN_NS, which bounds what a program can make the kernel do.
 *
 * Timer callbacks run in interrupts and take signal_process.lock; under it timers are armed and cancelled but never
 * waited for. A callback that comes late finds its deadline gone or moved and does nothing.
 */
#include "kernel/cpu/clock.h"
#include "kernel/task/process.h"
#include "kernel/task/signal.h"

#define PERIOD_MIN_NS 100000ul

static const u8 itimer_signals[ITIMER_COUNT] = {
    [ITIMER_REAL] = SIGALRM, [ITIMER_VIRTUAL] = SIGVTALRM, [ITIMER_PROF] = SIGPROF};

/* ---- Time used ------------------------------------------------------------------------------- */

/* Of a task that may be running elsewhere: up to now, but for what its CPU writes at this moment. */
static u64 used_by_task(const struct task *task, bool with_system, u64 now)
{
    bool in_user = READ_ONCE(task->in_user);
    u64 since = READ_ONCE(task->time_stamp_ns);
    u64 used = READ_ONCE(task->user_ns) + (with_system ? READ_ONCE(task->system_ns) : 0);
    if (READ_ONCE(task->on_cpu) && (in_user || with_system) && now > since)
        used += now - since;
    return used;
}

static u64 used_locked(struct signal_process *shared, bool with_system, u64 now)
{
    const struct process_usage *gone = &shared->process->usage;
    u64 used = READ_ONCE(gone->user_ns) + (with_system ? READ_ONCE(gone->system_ns) : 0);
    struct signal_thread *thread;
    list_for_each (thread, &shared->threads, link) {
        if (thread->thread->task)
            used += used_by_task(thread->thread->task, with_system, now);
    }
    return used;
}

/* What the timer's own clock shows. */
static u64 time_locked(struct signal_process *shared, u32 which)
{
    u64 now = clock_ns();
    return which == ITIMER_REAL ? now : used_locked(shared, which == ITIMER_PROF, now);
}

/* ---- Running --------------------------------------------------------------------------------- */

static void arm_locked(struct signal_process *shared)
{
    u64 now = clock_ns(), soonest = ~0ul;
    if (shared->itimers[ITIMER_REAL].deadline_ns)
        timer_arm(&shared->real_timer, shared->itimers[ITIMER_REAL].deadline_ns);
    else
        timer_cancel(&shared->real_timer);
    for (u32 which = ITIMER_VIRTUAL; which <= ITIMER_PROF; which++) {
        u64 deadline = shared->itimers[which].deadline_ns, used = time_locked(shared, which);
        if (deadline)
            soonest =
                MIN(soonest, deadline > used ? (deadline - used) / MAX(shared->n_threads, 1u) : 0);
    }
    if (soonest != ~0ul)
        timer_arm(&shared->cpu_timer, now + MAX(soonest, PERIOD_MIN_NS));
    else
        timer_cancel(&shared->cpu_timer);
}

/* => whether it went off; then it is set for its next time */
static bool expire_locked(struct signal_process *shared, u32 which)
{
    struct signal_itimer *itimer = &shared->itimers[which];
    u64 now = time_locked(shared, which);
    if (!itimer->deadline_ns || now < itimer->deadline_ns)
        return false;
    if (itimer->interval_ns)
        itimer->deadline_ns = MAX(itimer->deadline_ns + itimer->interval_ns, now + PERIOD_MIN_NS);
    else
        itimer->deadline_ns = 0;
    return true;
}

static void expire(struct signal_process *shared, u32 first, u32 last)
{
    u32 due = 0;
    bool irqs = spin_lock_irq(&shared->lock);
    for (u32 which = first; which <= last; which++)
        due |= expire_locked(shared, which) ? 1u << which : 0;
    arm_locked(shared);
    spin_unlock_irq(&shared->lock, irqs);
    for (u32 which = first; which <= last; which++)
        if (due & 1u << which)
            signal_send_process(shared->process, itimer_signals[which]);
}

static void real_timer_fired(struct timer *timer)
{
    expire(container_of(timer, struct signal_process, real_timer), ITIMER_REAL, ITIMER_REAL);
}

static void cpu_timer_fired(struct timer *timer)
{
    expire(container_of(timer, struct signal_process, cpu_timer), ITIMER_VIRTUAL, ITIMER_PROF);
}

void itimer_init(struct signal_process *shared)
{
    timer_init(&shared->real_timer, real_timer_fired);
    timer_init(&shared->cpu_timer, cpu_timer_fired);
    list_init(&shared->posix_timers);
}

void itimer_destroy(struct signal_process *shared)
{
    bool irqs = spin_lock_irq(&shared->lock);
    for (u32 which = 0; which < ITIMER_COUNT; which++)
        shared->itimers[which] = (struct signal_itimer){0};
    arm_locked(shared);
    spin_unlock_irq(&shared->lock, irqs);
    timer_cancel_sync(&shared->real_timer);
    timer_cancel_sync(&shared->cpu_timer);
    posix_timers_destroy(shared);
}

/* ---- Setting --------------------------------------------------------------------------------- */

void itimer_change(u32 which, const struct signal_itimer *new, struct signal_itimer *old)
{
    struct signal_process *shared = process_current()->signals;
    bool irqs = spin_lock_irq(&shared->lock);
    struct signal_itimer *itimer = &shared->itimers[which];
    u64 now = time_locked(shared, which);
    *old = *itimer;
    if (old->deadline_ns) /* one that is just going off has a moment left */
        old->deadline_ns = old->deadline_ns > now ? old->deadline_ns - now : 1;
    if (new) {
        *itimer = *new;
        if (new->deadline_ns)
            itimer->deadline_ns = now + new->deadline_ns;
        arm_locked(shared);
    }
    spin_unlock_irq(&shared->lock, irqs);
}
