/*
 * Wait queues. Contract and rules in wait.h.
 *
 * A waiter is on its task's stack. It belongs to the queue's lock until it is off the list and, for
 * a grant, `granted` is set: that store is the last time a waker touches it. The task itself stays
 * valid for a waker without a reference: task structs are freed after a grace period, and wakers
 * run with interrupts off.
 */
#include "kernel/sched/wait.h"

#include "kernel/cpu/clock.h"
#include "kernel/sched/timer.h"
#include "kernel/sync/atomic.h"
#include "lib/errno.h"

LOCK_CLASS(wait_queue_class, "wait queue");

void wait_queue_init(struct wait_queue *queue)
{
    spin_init(&queue->lock, &wait_queue_class);
    list_init(&queue->waiters);
}

static void waiter_init(struct wait_queue *queue, struct waiter *w, const void *key,
                        const char *reason, u64 a, u64 b)
{
    *w = (struct waiter){
        .task = task_current(), .queue = queue, .key = key, .reason = reason, .args = {a, b}};
    list_init(&w->link);
}

void wait_begin_key(struct wait_queue *queue, struct waiter *w, const void *key, bool wants_handoff,
                    const char *reason, u64 a, u64 b)
{
    waiter_init(queue, w, key, reason, a, b);
    w->wants_handoff = wants_handoff;
    sched_sleep_prepare();
    bool irqs = spin_lock_irq(&queue->lock);

    list_add_tail(&queue->waiters, &w->link);
    spin_unlock_irq(&queue->lock, irqs);
    /* Queue, then test: the caller's look at its condition must not move up before the list's
     * change is seen. */
    atomic_fence();
}

void wait_begin(struct wait_queue *queue, struct waiter *w, const char *reason, u64 a, u64 b)
{
    wait_begin_key(queue, w, NULL, false, reason, a, b);
}

/* Sleeps until some wake-up, showing the reason meanwhile; prepared again afterwards. */
static void sleep_with_reason(struct waiter *w)
{
    struct task *me = w->task;

    me->wait_args[0] = w->args[0];
    me->wait_args[1] = w->args[1];
    me->wait_may_last = w->may_last;
    me->wait_object = w->object;
    me->wait_holder = w->holder;
    WRITE_ONCE(me->wait_reason, w->reason);
    sched_sleep();
    WRITE_ONCE(me->wait_reason, NULL);
    sched_sleep_prepare();
}

/* A woken waiter whose condition is still false goes back to the front. => whether it had been
 * woken */
static bool requeue_if_woken(struct waiter *w)
{
    struct wait_queue *queue = w->queue;
    bool irqs = spin_lock_irq(&queue->lock);
    bool was_woken = list_is_empty(&w->link) && !w->granted;

    if (was_woken)
        list_add_head(&queue->waiters, &w->link);
    spin_unlock_irq(&queue->lock, irqs);
    if (was_woken) {
        sched_sleep_prepare();
        atomic_fence();
    }
    return was_woken;
}

void wait_sleep(struct waiter *w)
{
    if (!requeue_if_woken(w) && !atomic_load(&w->granted))
        sleep_with_reason(w);
}

struct wake_timer {
    struct timer timer;
    struct task *task;
};

static void wake_by_timer(struct timer *timer)
{
    sched_wake(container_of(timer, struct wake_timer, timer)->task);
}

/* What may end a sleep before its condition holds. */
typedef bool (*end_early_fn)(const struct task *task);

static int sleep_unless(struct waiter *w, u64 deadline_ns, end_early_fn must_end)
{
    if (requeue_if_woken(w) || atomic_load(&w->granted))
        return 0;
    if (must_end(w->task))
        return -EINTR;
    if (!deadline_ns) {
        sleep_with_reason(w);
        return 0;
    }
    if (clock_ns() >= deadline_ns)
        return -ETIMEDOUT;
    struct wake_timer alarm = {.task = w->task};

    timer_init(&alarm.timer, wake_by_timer);
    timer_arm(&alarm.timer, deadline_ns);
    sleep_with_reason(w);
    timer_cancel_sync(&alarm.timer);
    return 0;
}

int wait_sleep_killable(struct waiter *w, u64 deadline_ns)
{
    w->may_last |= deadline_ns != 0;
    return sleep_unless(w, deadline_ns, task_kill_is_pending);
}

int wait_sleep_interruptible(struct waiter *w, u64 deadline_ns)
{
    w->may_last = true;
    return sleep_unless(w, deadline_ns, task_signal_is_pending);
}

void wait_end(struct wait_queue *queue, struct waiter *w)
{
    bool irqs = spin_lock_irq(&queue->lock);

    if (!list_is_empty(&w->link))
        list_del(&w->link);
    spin_unlock_irq(&queue->lock, irqs);
    sched_sleep_cancel();
}

/* ---- Waking -------------------------------------------------------------------------------- */

static unsigned wake_up_to(struct wait_queue *queue, unsigned max, const void *key)
{
    struct waiter *w, *next;
    unsigned n = 0;
    bool irqs = spin_lock_irq(&queue->lock);

    list_for_each_safe (w, next, &queue->waiters, link) {
        if (n == max)
            break;
        if (key && w->key != key)
            continue;
        list_del(&w->link);
        sched_wake(w->task);
        n++;
    }
    spin_unlock_irq(&queue->lock, irqs);
    return n;
}

unsigned wait_wake_all(struct wait_queue *queue)
{
    return wake_up_to(queue, ~0u, NULL);
}

unsigned wait_wake_one(struct wait_queue *queue)
{
    return wake_up_to(queue, 1, NULL);
}

unsigned wait_wake_key(struct wait_queue *queue, const void *key)
{
    return wake_up_to(queue, ~0u, key);
}

bool wait_queue_is_empty(struct wait_queue *queue)
{
    bool irqs = spin_lock_irq(&queue->lock);
    bool is_empty = list_is_empty(&queue->waiters);

    spin_unlock_irq(&queue->lock, irqs);
    return is_empty;
}

/* ---- Hand-off ------------------------------------------------------------------------------ */

void wait_grant_locked(struct waiter *w)
{
    struct task *task = w->task;

    list_del(&w->link);
    atomic_store(&w->granted, true); /* from here on the waiter may be gone */
    sched_wake(task);
}

bool wait_hand_off(struct wait_queue *queue, const void *key, void (*release)(const void *key))
{
    struct waiter *w, *next;
    bool is_given = false;
    bool irqs = spin_lock_irq(&queue->lock);

    list_for_each_safe (w, next, &queue->waiters, link) {
        if (w->key != key || (w->wants_handoff && is_given))
            continue;
        if (w->wants_handoff) {
            is_given = true;
            wait_grant_locked(w);
        } else {
            list_del(&w->link);
            sched_wake(w->task);
        }
    }
    if (!is_given)
        release(key);
    spin_unlock_irq(&queue->lock, irqs);
    return is_given;
}

void wait_enqueue_locked(struct wait_queue *queue, struct waiter *w, const void *key,
                         const char *reason, u64 a, u64 b)
{
    waiter_init(queue, w, key, reason, a, b);
    sched_sleep_prepare();
    list_add_tail(&queue->waiters, &w->link);
}

struct waiter *wait_first_locked(struct wait_queue *queue)
{
    return list_is_empty(&queue->waiters) ? NULL : list_first(&queue->waiters, struct waiter, link);
}

void wait_until_granted(struct waiter *w)
{
    while (!atomic_load(&w->granted))
        sleep_with_reason(w);
    sched_sleep_cancel();
}

/* => whether the waiter left the queue without having been granted */
static bool give_up(struct waiter *w)
{
    struct wait_queue *queue = w->queue;
    bool irqs = spin_lock_irq(&queue->lock);
    bool gave_up = !w->granted;

    if (gave_up)
        list_del(&w->link);
    spin_unlock_irq(&queue->lock, irqs);
    return gave_up;
}

int wait_until_granted_killable(struct waiter *w)
{
    int error = 0;

    while (!error && !atomic_load(&w->granted)) {
        if (!task_kill_is_pending(w->task))
            sleep_with_reason(w);
        else if (give_up(w))
            error = -EINTR;
    }
    sched_sleep_cancel();
    return error;
}

/* ---- Sleeping by the clock ----------------------------------------------------------------- */

static bool never(const struct task *task)
{
    (void)task;
    return false;
}

static int sleep_by_clock(u64 deadline_ns, end_early_fn must_end)
{
    struct wait_queue nobody_wakes = WAIT_QUEUE_INIT(nobody_wakes);
    struct waiter w;
    struct wake_timer alarm = {.task = task_current()};
    int error = 0;

    timer_init(&alarm.timer, wake_by_timer);
    wait_begin(&nobody_wakes, &w, "the clock to reach %lu ns", deadline_ns, 0);
    wait_may_last(&w);
    while (!error && clock_ns() < deadline_ns) {
        timer_arm(&alarm.timer, deadline_ns);
        error = sleep_unless(&w, 0, must_end);
    }
    wait_end(&nobody_wakes, &w);
    timer_cancel_sync(&alarm.timer);
    return error;
}

void sleep_until_ns(u64 deadline_ns)
{
    sleep_by_clock(deadline_ns, never);
}

int sleep_until_ns_killable(u64 deadline_ns)
{
    return sleep_by_clock(deadline_ns, task_kill_is_pending);
}

int sleep_until_ns_interruptible(u64 deadline_ns)
{
    return sleep_by_clock(deadline_ns, task_signal_is_pending);
}
