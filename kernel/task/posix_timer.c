/*
 * Timers of timer_create. A signal that is still pending when its timer goes off again is not sent twice: it counts an
 * overrun (signal_queue.c). A period shorter than PERIOD_MIN_NS goes off that often and counts the rest as overruns, so
 * that no program can drown a CPU in timer interrupts.
 *
 * The list and everything in a timer is guarded by signal_process.lock. A timer is taken off the list before it is
 * waited for and freed.
 */
#include "kernel/task/posix_timer.h"

#include "kernel/cpu/clock.h"
#include "kernel/task/process.h"
#include "lib/errno.h"
#include "mm/core/slab.h"

#define PERIOD_MIN_NS      100000ul
#define TIMERS_PER_PROCESS 256
#define OVERRUN_MAX        0x7fffffff

struct posix_timer {
    struct timer timer;
    struct list link;
    struct signal_process *shared;
    s32 id;
    struct posix_timer_event event;
    struct signal_itimer setting;
    s32 overrun; /* of the signal taken last */
};

static struct posix_timer *find_locked(struct signal_process *shared, s32 id)
{
    struct posix_timer *timer;
    list_for_each (timer, &shared->posix_timers, link) {
        if (timer->id == id)
            return timer;
    }
    return NULL;
}

/* ---- Going off ------------------------------------------------------------------------------- */

/* Sets it for its next time. => how many times went by unseen */
static s32 advance_locked(struct posix_timer *timer, u64 now)
{
    struct signal_itimer *setting = &timer->setting;
    u64 late = now - setting->deadline_ns;
    if (!setting->interval_ns) {
        setting->deadline_ns = 0;
        return 0;
    }
    u64 missed = late / setting->interval_ns;
    setting->deadline_ns += (missed + 1) * setting->interval_ns;
    timer_arm(&timer->timer, MAX(setting->deadline_ns, now + PERIOD_MIN_NS));
    return MIN(missed, (u64)OVERRUN_MAX);
}

static void send_locked(struct posix_timer *timer, s32 missed)
{
    const struct posix_timer_event *event = &timer->event;
    struct signal_info info = {
        .signal = event->signal,
        .code = SI_TIMER,
        .timer = {.id = timer->id, .overrun = missed, .value = event->value}};
    if (event->notify != SIGEV_NONE)
        signal_send_timer_locked(timer->shared, event->notify == SIGEV_THREAD_ID ? event->tid : 0,
                                 &info);
}

static void fired(struct timer *t)
{
    struct posix_timer *timer = container_of(t, struct posix_timer, timer);
    bool irqs = spin_lock_irq(&timer->shared->lock);
    u64 now = clock_ns();
    bool is_due = timer->setting.deadline_ns && now >= timer->setting.deadline_ns;
    if (is_due)
        send_locked(timer, advance_locked(timer, now));
    spin_unlock_irq(&timer->shared->lock, irqs);
}

void posix_timer_note_taken_locked(struct signal_process *shared, const struct signal_info *info)
{
    struct posix_timer *timer = find_locked(shared, info->timer.id);
    if (timer)
        timer->overrun = info->timer.overrun;
}

/* ---- The calls ------------------------------------------------------------------------------- */

static bool has_thread_locked(struct signal_process *shared, u32 tid)
{
    struct signal_thread *thread;
    list_for_each (thread, &shared->threads, link) {
        if (thread->thread->tid == tid)
            return true;
    }
    return false;
}

static int add_locked(struct signal_process *shared, struct posix_timer *timer)
{
    struct posix_timer *other;
    unsigned n = 0;
    list_for_each (other, &shared->posix_timers, link)
        n++;
    if (n >= TIMERS_PER_PROCESS)
        return -EAGAIN;
    if (timer->event.notify == SIGEV_THREAD_ID && !has_thread_locked(shared, timer->event.tid))
        return -EINVAL;
    do
        timer->id = shared->next_timer_id++ & 0x7fffffff;
    while (find_locked(shared, timer->id));
    if (!timer->event.has_value)
        timer->event.value = timer->id;
    list_add_tail(&shared->posix_timers, &timer->link);
    return timer->id;
}

int posix_timer_create(const struct posix_timer_event *event)
{
    struct signal_process *shared = process_current()->signals;
    struct posix_timer *timer = kzalloc(sizeof(*timer));
    if (!timer)
        return -ENOMEM;
    timer->shared = shared;
    timer->event = *event;
    timer_init(&timer->timer, fired);
    bool irqs = spin_lock_irq(&shared->lock);
    int id = add_locked(shared, timer);
    spin_unlock_irq(&shared->lock, irqs);
    if (id < 0)
        kfree(timer);
    return id;
}

int posix_timer_change(s32 id, const struct signal_itimer *new, struct signal_itimer *old)
{
    struct signal_process *shared = process_current()->signals;
    bool irqs = spin_lock_irq(&shared->lock);
    struct posix_timer *timer = find_locked(shared, id);
    if (timer) {
        u64 now = clock_ns();
        *old = timer->setting;
        if (old->deadline_ns)
            old->deadline_ns = old->deadline_ns > now ? old->deadline_ns - now : 1;
        if (new) {
            timer->setting = *new;
            timer->overrun = 0;
            timer_cancel(&timer->timer);
            if (new->deadline_ns)
                timer_arm(&timer->timer, new->deadline_ns);
        }
    }
    spin_unlock_irq(&shared->lock, irqs);
    return timer ? 0 : -EINVAL;
}

int posix_timer_is_wall(s32 id)
{
    struct signal_process *shared = process_current()->signals;
    bool irqs = spin_lock_irq(&shared->lock);
    struct posix_timer *timer = find_locked(shared, id);
    int is_wall = timer ? timer->event.clock_is_wall : -EINVAL;
    spin_unlock_irq(&shared->lock, irqs);
    return is_wall;
}

int posix_timer_overrun(s32 id)
{
    struct signal_process *shared = process_current()->signals;
    bool irqs = spin_lock_irq(&shared->lock);
    struct posix_timer *timer = find_locked(shared, id);
    int overrun = timer ? timer->overrun : -EINVAL;
    spin_unlock_irq(&shared->lock, irqs);
    return overrun;
}

/* id < 0: any. => NULL: none. It does not go off any more. */
static struct posix_timer *take_off(struct signal_process *shared, s32 id)
{
    bool irqs = spin_lock_irq(&shared->lock);
    struct posix_timer *timer = NULL;
    if (id >= 0)
        timer = find_locked(shared, id);
    else if (!list_is_empty(&shared->posix_timers))
        timer = list_first(&shared->posix_timers, struct posix_timer, link);
    if (timer) {
        list_del(&timer->link);
        timer->setting = (struct signal_itimer){0};
    }
    spin_unlock_irq(&shared->lock, irqs);
    return timer;
}

static void discard(struct posix_timer *timer)
{
    timer_cancel_sync(&timer->timer);
    kfree(timer);
}

int posix_timer_delete(s32 id)
{
    struct posix_timer *timer = id < 0 ? NULL : take_off(process_current()->signals, id);
    if (!timer)
        return -EINVAL;
    discard(timer);
    return 0;
}

void posix_timers_destroy(struct signal_process *shared)
{
    struct posix_timer *timer;
    while ((timer = take_off(shared, -1)))
        discard(timer);
}
