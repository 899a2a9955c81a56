/*
 * The reader-writer semaphore. One FIFO for both kinds: whoever finds a waiter queues behind it, so
 * a waiting writer stops new readers, and a writer waits at most for the readers and writers before
 * it.
 *
 * All is decided by one word, `state`:
 *
 *     bit 0    WRITER   somebody writes
 *     bit 1    WAITERS  the queue may not be empty: no short way in, and the way out leads by it
 *     the rest          how many read, in steps of READER
 *
 * The short ways, without the queue's lock, are one atomic step each: in, where nothing stands against it
 * and nobody waits; out, where nobody waits. All others hold the queue's lock, and set WAITERS first:
 *
 *     unlocker                            locker
 *     1 takes itself out of state         1 sets WAITERS in state
 *     2 saw WAITERS in that step?         2 saw the lock free in that step? then it is its own
 *       then lets in from the queue         else queues, still under the lock
 *
 * Steps 1 are on the same word, so one of them is first: either the locker sees the lock free, or the
 * unlocker sees WAITERS and finds the locker in the queue.
 *
 * Every change that may let somebody in ends in let_in_locked(): it grants from the front of the
 * queue as far as the kinds allow: one writer, or all readers up to the next writer.
 */
#include "kernel/sched/mutex.h"

#include "kernel/log/log.h"
#include "kernel/sync/atomic.h"
#include "lib/errno.h"

#define CALLER ((u64)__builtin_return_address(0))

#define WRITER  1ul
#define WAITERS 2ul
#define READER  4ul

/* Waiters of the two kinds are told apart by their key. */
static const char reader_kind, writer_kind;

void rwsem_init(struct rwsem *s, struct lock_class *class, const char *name)
{
    *s = (struct rwsem){.class = class, .name = name};
    wait_queue_init(&s->queue);
}

/* ---- The short ways ---- */

static inline bool try_read(struct rwsem *s)
{
    u64 state = READ_ONCE(s->state);

    do {
        if (unlikely(state & (WRITER | WAITERS)))
            return false;
    } while (unlikely(!__atomic_compare_exchange_n(&s->state, &state, state + READER, false,
                                                   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)));
    return true;
}

static inline bool try_write(struct rwsem *s)
{
    if (unlikely(!atomic_change(&s->state, 0ul, WRITER)))
        return false;
    WRITE_ONCE(s->writer, task_current());
    return true;
}

/* ---- By the queue: all with its lock held ---- */

static void let_in_locked(struct rwsem *s)
{
    struct waiter *first;

    while ((first = wait_first_locked(&s->queue)) != NULL && !(atomic_load(&s->state) & WRITER)) {
        if (first->key == &reader_kind) {
            atomic_add(&s->state, READER);
            wait_grant_locked(first);
            continue;
        }
        if (atomic_load(&s->state) >= READER)
            return;
        atomic_or(&s->state, WRITER);
        WRITE_ONCE(s->writer, first->task);
        s->waiting_writers--;
        wait_grant_locked(first);
    }
    if (!first)
        atomic_and(&s->state, ~WAITERS);
}

static void print_holders(const void *object, void (*line)(const char *fmt, ...))
{
    const struct rwsem *s = object;
    const struct task *writer = READ_ONCE(s->writer);

    if (task_print_holders(s, line))
        return;
    if (writer)
        line("held by %u \"%s\", exclusive", writer->pid, writer->name);
    else
        line("held shared, %lu times; a release build does not know by whom", rwsem_readers(s));
}

/* Takes the lock, or queues. => whether it is taken */
static bool take_or_queue_locked(struct rwsem *s, struct waiter *w, bool is_writer)
{
    u64 state = atomic_or(&s->state, WAITERS);
    bool is_free = is_writer ? !(state & ~WAITERS) : !(state & WRITER);

    if (!is_free || !list_is_empty(&s->queue.waiters)) {
        s->waiting_writers += is_writer;
        wait_enqueue_locked(&s->queue, w, is_writer ? &writer_kind : &reader_kind,
                            is_writer ? "%s writer" : "%s reader", (u64)s->name, 0);
        wait_on(w, s, print_holders);
        return false;
    }
    if (is_writer) {
        atomic_or(&s->state, WRITER);
        WRITE_ONCE(s->writer, task_current());
    } else {
        atomic_add(&s->state, READER);
    }
    atomic_and(&s->state, ~WAITERS);
    return true;
}

static void let_in(struct rwsem *s)
{
    bool irqs = spin_lock_irq(&s->queue.lock);

    let_in_locked(s);
    spin_unlock_irq(&s->queue.lock, irqs);
}

/* A killed waiter has left the queue: who stood behind it may be able to go in now. */
static void forget_waiter(struct rwsem *s, bool is_writer)
{
    bool irqs = spin_lock_irq(&s->queue.lock);

    s->waiting_writers -= is_writer;
    let_in_locked(s);
    spin_unlock_irq(&s->queue.lock, irqs);
}

/* => 0, or -EINTR */
static __attribute__((noinline)) int lock_slowly(struct rwsem *s, bool is_writer, bool is_killable)
{
    struct waiter w;
    bool irqs = spin_lock_irq(&s->queue.lock);
    bool is_taken = take_or_queue_locked(s, &w, is_writer);
    int error = 0;

    spin_unlock_irq(&s->queue.lock, irqs);
    if (!is_taken && is_killable)
        error = wait_until_granted_killable(&w);
    else if (!is_taken)
        wait_until_granted(&w);
    if (error)
        forget_waiter(s, is_writer);
    return error;
}

/* ---- The door ---- */

static inline int lock_rwsem(struct rwsem *s, bool is_writer, bool is_killable, u64 caller)
{
    int error = 0;

    lockorder_might_sleep(s->name);
    lockorder_before(s->class, s, caller);
    if (!(is_writer ? try_write(s) : try_read(s)))
        error = lock_slowly(s, is_writer, is_killable);
    if (!error)
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
    if (!try_read(s))
        return false;
    lockorder_after(s->class, s, true, CALLER);
    return true;
}

void rwsem_read_unlock(struct rwsem *s)
{
    if (!lockorder_release(s->class, s))
        return;
    u64 state = atomic_sub(&s->state, READER);

    ASSERT(!(state & WRITER));
    if (unlikely(state == WAITERS))
        let_in(s);
}

void rwsem_write_unlock(struct rwsem *s)
{
    if (!lockorder_release(s->class, s))
        return;
    ASSERT(rwsem_is_write_locked_by_me(s));
    WRITE_ONCE(s->writer, NULL);
    if (unlikely(atomic_and(&s->state, ~WRITER) & WAITERS))
        let_in(s);
}

void rwsem_downgrade(struct rwsem *s)
{
    ASSERT(rwsem_is_write_locked_by_me(s));
    if (lockorder_release(s->class, s))
        lockorder_after(s->class, s, true, CALLER);
    WRITE_ONCE(s->writer, NULL);
    if (atomic_add(&s->state, READER - WRITER) & WAITERS)
        let_in(s);
}

bool rwsem_is_write_locked_by_me(const struct rwsem *s)
{
    return READ_ONCE(s->writer) == task_current();
}

bool rwsem_is_locked(const struct rwsem *s)
{
    return READ_ONCE(s->state) & ~WAITERS;
}

u64 rwsem_readers(const struct rwsem *s)
{
    return READ_ONCE(s->state) / READER;
}
