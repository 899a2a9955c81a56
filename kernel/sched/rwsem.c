/*
 * The reader-writer semaphore. One FIFO for both kinds: whoever finds a waiter queues behind it, so
 * a waiting writer stops new readers, and a writer waits at most for the readers and writers before
 * it.
 *
 * Every change that may let somebody in ends in let_in_locked(): it grants from the front of the
 * queue as far as the kinds allow: one writer, or all readers up to the next writer.
 */
#include "kernel/sched/mutex.h"

#include "kernel/log/log.h"
#include "lib/errno.h"

#define CALLER ((u64)__builtin_return_address(0))

/* Waiters of the two kinds are told apart by their key. */
static const char reader_kind, writer_kind;

void rwsem_init(struct rwsem *s, struct lock_class *class, const char *name)
{
    *s = (struct rwsem){.class = class, .name = name};
    wait_queue_init(&s->queue);
}

static void let_in_locked(struct rwsem *s)
{
    struct waiter *first;

    while ((first = wait_first_locked(&s->queue)) != NULL && !s->writer) {
        if (first->key == &reader_kind) {
            s->readers++;
            wait_grant_locked(first);
            continue;
        }
        if (s->readers)
            return;
        s->writer = first->task;
        s->waiting_writers--;
        wait_grant_locked(first);
    }
}

/* Takes the lock for reading, or queues. lock held. => whether it is taken */
static bool read_or_queue_locked(struct rwsem *s, struct waiter *w)
{
    if (!s->writer && list_is_empty(&s->queue.waiters)) {
        s->readers++;
        return true;
    }
    wait_enqueue_locked(&s->queue, w, &reader_kind, "%s reader", (u64)s->name, 0);
    return false;
}

static bool write_or_queue_locked(struct rwsem *s, struct waiter *w)
{
    if (!s->writer && !s->readers && list_is_empty(&s->queue.waiters)) {
        s->writer = task_current();
        return true;
    }
    s->waiting_writers++;
    wait_enqueue_locked(&s->queue, w, &writer_kind, "%s writer", (u64)s->name, 0);
    return false;
}

/* A killed waiter has left the queue: who stood behind it may be able to go in now. */
static void forget_waiter(struct rwsem *s, bool is_writer)
{
    bool irqs = spin_lock_irq(&s->queue.lock);

    if (is_writer)
        s->waiting_writers--;
    let_in_locked(s);
    spin_unlock_irq(&s->queue.lock, irqs);
}

static int lock_rwsem(struct rwsem *s, bool is_writer, bool is_killable, u64 caller)
{
    struct waiter w;
    int error = 0;

    lockorder_might_sleep(s->name);
    lockorder_before(s->class, s, caller);
    bool irqs = spin_lock_irq(&s->queue.lock);
    bool is_taken = is_writer ? write_or_queue_locked(s, &w) : read_or_queue_locked(s, &w);

    spin_unlock_irq(&s->queue.lock, irqs);
    if (!is_taken && is_killable)
        error = wait_until_granted_killable(&w);
    else if (!is_taken)
        wait_until_granted(&w);
    if (error)
        forget_waiter(s, is_writer);
    else
        lockorder_after(s->class, s, !is_writer, caller);
    return error;
}

void rwsem_read_lock(struct rwsem *s)
{
    (void)!lock_rwsem(s, false, false, CALLER);
}

int rwsem_read_lock_killable(struct rwsem *s)
{
    return lock_rwsem(s, false, true, CALLER);
}

void rwsem_write_lock(struct rwsem *s)
{
    (void)!lock_rwsem(s, true, false, CALLER);
}

int rwsem_write_lock_killable(struct rwsem *s)
{
    return lock_rwsem(s, true, true, CALLER);
}

bool rwsem_read_trylock(struct rwsem *s)
{
    bool irqs = spin_lock_irq(&s->queue.lock);
    bool is_taken = !s->writer && list_is_empty(&s->queue.waiters);

    if (is_taken)
        s->readers++;
    spin_unlock_irq(&s->queue.lock, irqs);
    if (is_taken)
        lockorder_after(s->class, s, true, CALLER);
    return is_taken;
}

void rwsem_read_unlock(struct rwsem *s)
{
    if (!lockorder_release(s->class, s))
        return;
    bool irqs = spin_lock_irq(&s->queue.lock);

    ASSERT(s->readers > 0);
    s->readers--;
    let_in_locked(s);
    spin_unlock_irq(&s->queue.lock, irqs);
}

void rwsem_write_unlock(struct rwsem *s)
{
    if (!lockorder_release(s->class, s))
        return;
    ASSERT(rwsem_is_write_locked_by_me(s));
    bool irqs = spin_lock_irq(&s->queue.lock);

    s->writer = NULL;
    let_in_locked(s);
    spin_unlock_irq(&s->queue.lock, irqs);
}

void rwsem_downgrade(struct rwsem *s)
{
    ASSERT(rwsem_is_write_locked_by_me(s));
    if (lockorder_release(s->class, s))
        lockorder_after(s->class, s, true, CALLER);
    bool irqs = spin_lock_irq(&s->queue.lock);

    s->writer = NULL;
    s->readers = 1;
    let_in_locked(s);
    spin_unlock_irq(&s->queue.lock, irqs);
}

bool rwsem_is_write_locked_by_me(const struct rwsem *s)
{
    return READ_ONCE(s->writer) == task_current();
}

bool rwsem_is_locked(const struct rwsem *s)
{
    return READ_ONCE(s->writer) || READ_ONCE(s->readers) > 0;
}
