/*
 * Timers: one sorted list for each CPU, and the device armed for the first deadline or the end of
 * the running task's slice, whichever comes first. With neither the device is off, so an idle CPU
 * is left alone.
 *
 * A timer that expires is taken off the list, marked as `running`, and called with no lock held.
 * `running` is cleared as the last thing that touches the timer or its callback, which is what
 * timer_cancel_sync waits for: afterwards the timer's memory may go.
 */
#include "kernel/sched/timer.h"

#include "kernel/cpu/clock.h"
#include "kernel/sched/run_queue.h"
#include "kernel/sync/atomic.h"

struct timer_queue {
    struct spinlock lock;
    struct list timers;    /* by rising deadline; guarded by lock */
    struct timer *running; /* its callback runs; written by its own CPU */
    u64 slice_ns;          /* own CPU: end of the slice, 0 = none */
    u64 programmed_ns;     /* own CPU: what the device is armed for, 0 = off */
    bool is_ready;
};

static LOCK_CLASS(timer_queue_class, "timer queue");
static PERCPU(struct timer_queue, timer_queue);
static const struct timer_device *device;

void timer_init_cpu(void)
{
    struct timer_queue *queue = percpu_this(timer_queue);

    spin_init(&queue->lock, &timer_queue_class);
    list_init(&queue->timers);
    queue->is_ready = true;
}

/* Arms the device of this CPU for what comes first. Interrupts off. */
static void program_device(struct timer_queue *queue)
{
    u64 next = queue->slice_ns;

    if (!list_is_empty(&queue->timers)) {
        u64 first = list_first(&queue->timers, struct timer, link)->deadline_ns;

        next = next ? MIN(next, first) : first;
    }
    if (!device || next == queue->programmed_ns)
        return;
    queue->programmed_ns = next;
    device->set_next(next);
}

void timer_set_slice(u64 deadline_ns)
{
    struct timer_queue *queue = percpu_this(timer_queue);

    if (queue->slice_ns == deadline_ns)
        return;
    spin_lock(&queue->lock);
    queue->slice_ns = deadline_ns;
    program_device(queue);
    spin_unlock(&queue->lock);
}

void timer_set_device(const struct timer_device *new_device)
{
    bool irqs = irq_save_disable();

    device = new_device;
    if (percpu_this(timer_queue)->is_ready)
        program_device(percpu_this(timer_queue));
    irq_restore(irqs);
}

void timer_init(struct timer *timer, void (*fn)(struct timer *timer))
{
    *timer = (struct timer){.fn = fn};
    list_init(&timer->link);
}

static void insert_locked(struct timer_queue *queue, struct timer *timer)
{
    struct timer *other;

    list_for_each (other, &queue->timers, link) {
        if (other->deadline_ns > timer->deadline_ns)
            break;
    }
    list_add_tail(&other->link, &timer->link); /* before `other`, or at the end */
    timer->is_armed = true;
}

bool timer_cancel(struct timer *timer)
{
    for (;;) {
        u32 cpu = READ_ONCE(timer->cpu);
        struct timer_queue *queue = percpu_of(timer_queue, cpu);
        bool irqs = spin_lock_irq(&queue->lock);
        bool is_here = timer->cpu == cpu;
        bool was_armed = is_here && timer->is_armed;

        if (was_armed) {
            list_del(&timer->link);
            timer->is_armed = false;
        }
        /* On another CPU the device stays armed: one interrupt with nothing to do. */
        if (was_armed && cpu == cpu_index())
            program_device(queue);
        spin_unlock_irq(&queue->lock, irqs);
        if (is_here)
            return was_armed;
    }
}

void timer_arm(struct timer *timer, u64 deadline_ns)
{
    bool irqs = irq_save_disable();
    struct timer_queue *queue = percpu_this(timer_queue);

    timer_cancel(timer);
    spin_lock(&queue->lock);
    timer->cpu = cpu_index();
    timer->deadline_ns = MAX(deadline_ns, 1); /* 0 means "none" to the device */
    insert_locked(queue, timer);
    program_device(queue);
    spin_unlock(&queue->lock);
    irq_restore(irqs);
}

bool timer_cancel_sync(struct timer *timer)
{
    bool was_armed = timer_cancel(timer);

    for (;;) {
        struct timer_queue *queue = percpu_of(timer_queue, READ_ONCE(timer->cpu));

        while (atomic_load(&queue->running) == timer)
            cpu_pause();
        if (!READ_ONCE(timer->is_armed))
            return was_armed;
        was_armed |= timer_cancel(timer); /* the callback had armed it again */
    }
}

/* Takes the first timer that is due off the list. lock held. => NULL: none */
static struct timer *take_due_locked(struct timer_queue *queue)
{
    if (list_is_empty(&queue->timers))
        return NULL;
    struct timer *timer = list_first(&queue->timers, struct timer, link);

    if (timer->deadline_ns > clock_ns())
        return NULL;
    list_del(&timer->link);
    timer->is_armed = false;
    return timer;
}

void timer_interrupt(void)
{
    struct timer_queue *queue = percpu_this(timer_queue);

    spin_lock(&queue->lock);
    queue->programmed_ns = 0; /* it has fired */
    for (;;) {
        struct timer *timer = take_due_locked(queue);

        atomic_store(&queue->running, timer);
        if (!timer)
            break;
        spin_unlock(&queue->lock);
        timer->fn(timer);
        spin_lock(&queue->lock);
    }
    if (queue->slice_ns && clock_ns() >= queue->slice_ns) {
        queue->slice_ns = 0;
        sched_timer_tick();
    }
    program_device(queue);
    spin_unlock(&queue->lock);
}
