/*
 * The mutex. Owner and waiters are guarded by the queue's lock; an unlock passes ownership to the
 * first waiter before that one runs, so a lock with waiters is never free and cannot be snatched.
 */
#include "kernel/sched/mutex.h"

#include "kernel/log/log.h"

#define CALLER ((u64)__builtin_return_address(0))

void mutex_init(struct mutex *m, struct lock_class *class)
{
    wait_queue_init(&m->queue);
    m->owner = NULL;
    m->class = class;
}

static void print_owner(const void *object, void (*line)(const char *fmt, ...))
{
    const struct task *owner = READ_ONCE(((const struct mutex *)object)->owner);

    if (!task_print_holders(object, line) && owner)
        line("held by %u \"%s\"", owner->pid, owner->name);
}

void mutex_lock(struct mutex *m)
{
    struct task *me = task_current();
    struct waiter w;

    lockorder_might_sleep(m->class->name);
    lockorder_before(m->class, m, CALLER);
    bool irqs = spin_lock_irq(&m->queue.lock);
    bool must_wait = m->owner != NULL;

    if (must_wait) {
        wait_enqueue_locked(&m->queue, &w, NULL, "mutex %s", (u64)m->class->name, 0);
        wait_on(&w, m, print_owner);
    } else {
        m->owner = me;
    }
    spin_unlock_irq(&m->queue.lock, irqs);
    if (must_wait)
        wait_until_granted(&w);
    lockorder_after(m->class, m, false, CALLER);
}

bool mutex_trylock(struct mutex *m)
{
    bool irqs = spin_lock_irq(&m->queue.lock);
    bool is_mine = m->owner == NULL;

    if (is_mine)
        m->owner = task_current();
    spin_unlock_irq(&m->queue.lock, irqs);
    if (is_mine)
        lockorder_after(m->class, m, false, CALLER);
    return is_mine;
}

void mutex_unlock(struct mutex *m)
{
    if (!lockorder_release(m->class, m))
        return;
    ASSERT(mutex_is_mine(m));
    bool irqs = spin_lock_irq(&m->queue.lock);
    struct waiter *first = wait_first_locked(&m->queue);

    m->owner = first ? first->task : NULL;
    if (first)
        wait_grant_locked(first);
    spin_unlock_irq(&m->queue.lock, irqs);
}

bool mutex_is_mine(const struct mutex *m)
{
    return READ_ONCE(m->owner) == task_current();
}
