/*
 * Waiting: queue, then test, then sleep.
 *
 *     struct waiter w;
 *     wait_begin(&queue, &w, "page %lu of inode %lu", index, inode);
 *     while (!condition) wait_sleep(&w)      (or wait_sleep_killable: non-zero ends the loop)
 *     wait_end(&queue, &w);
 *
 * After wait_begin a wake-up is never lost: it makes the next wait_sleep return at once. WAIT_FOR
 * does this in one line.
 *
 * Rules:
 *   - Who changes the condition does so before it wakes. Sleeps may end without a reason: test
 *     again.
 *   - A wake-up takes the waiter out of the queue; if its condition is still false, wait_sleep puts
 *     it back to the front and returns, so that the condition is tested once more with the waiter
 *     queued. So wait_wake_one never wakes the same waiter for two things.
 *   - The reason is a printf format for two u64 that outlives the wait (a string may be passed as
 *     (u64)pointer for %s).
 *   - The condition may take spinlocks, and may sleep itself (it then only costs another round).
 *   - A queue's lock is a leaf but for the run queues' locks; wakers may hold spinlocks, interrupts
 *     on or off.
 */
#ifndef KERNEL_SCHED_WAIT_H
#define KERNEL_SCHED_WAIT_H

#include "kernel/sched/task.h"

struct wait_queue {
    struct spinlock lock; /* interrupts off: woken from interrupts */
    struct list waiters;
};

struct waiter {
    struct task *task;
    struct wait_queue *queue;
    struct list link; /* empty once woken; guarded by the queue's lock */
    const void *key;  /* for hashed queues: only waiters with this key are woken */
    bool granted;     /* for hand-off: the waker gave the thing away */
    bool wants_handoff;
    const char *reason;
    u64 args[2];
    bool may_last;      /* wait_may_last() */
    const void *object; /* wait_on() */
    wait_holder_fn holder;
};

void wait_queue_init(struct wait_queue *queue);
#define WAIT_QUEUE_INIT(name)                                                          \
    {                                                                                  \
        .lock = SPINLOCK_INIT(&wait_queue_class), .waiters = LIST_INIT((name).waiters) \
    }
extern struct lock_class wait_queue_class;

void wait_begin(struct wait_queue *queue, struct waiter *w, const char *reason, u64 a, u64 b);
/* The same for a queue that serves many things: `key` says which; wants_handoff: see wait_hand_off.
 */
void wait_begin_key(struct wait_queue *queue, struct waiter *w, const void *key, bool wants_handoff,
                    const char *reason, u64 a, u64 b);
/* After wait_begin: this wait is for the world, and no reason to worry however long it takes (kernel/sched/hung.h). */
static inline void wait_may_last(struct waiter *w)
{
    w->may_last = true;
}
/* After wait_begin: what is waited for, and who can say who holds it, for reports. */
static inline void wait_on(struct waiter *w, const void *object, wait_holder_fn holder)
{
    w->object = object;
    w->holder = holder;
}
void wait_sleep(struct waiter *w);
/*
 * => 0 (test the condition), -EINTR if a fatal signal is pending, -ETIMEDOUT once clock_ns() has
 * reached deadline_ns (0: none). A waiter that was just woken gets 0 first, so that no wake-up is
 * lost to a dying task.
 */
MUST_CHECK int wait_sleep_killable(struct waiter *w, u64 deadline_ns);
/* The same, and any signal that waits to be handled ends it too (task->signal_pending): -EINTR. */
MUST_CHECK int wait_sleep_interruptible(struct waiter *w, u64 deadline_ns);
void wait_end(struct wait_queue *queue, struct waiter *w); /* after it, w->granted is final */

unsigned wait_wake_all(struct wait_queue *queue); /* => number woken. Any context. */
unsigned wait_wake_one(struct wait_queue *queue); /* first come first served */
unsigned wait_wake_key(struct wait_queue *queue, const void *key); /* all with that key */
bool wait_queue_is_empty(struct wait_queue *queue);

/*
 * Giving a lock bit away. The owner of the thing named by `key` calls this instead of clearing its
 * bit and waking: the first waiter with that key that wants a hand-off becomes the owner (its
 * w->granted is set; the bit stays set), and those who only watch are all woken. If nobody wants
 * it, release(key) clears the bit, under the queue's lock, so that whoever queues and then tests
 * cannot miss it. Any context. => whether it was given to somebody
 */
bool wait_hand_off(struct wait_queue *queue, const void *key, void (*release)(const void *key));

/*
 * The pieces for locks whose state is guarded by the queue's lock (mutex, rwsem). _locked: that
 * lock is held. wait_enqueue_locked queues at the end; wait_grant_locked takes a waiter out, marks
 * it granted and wakes it; wait_until_granted sleeps until that happened; the killable one returns
 * -EINTR with the waiter out of the queue and not granted (or 0: granted).
 */
void wait_enqueue_locked(struct wait_queue *queue, struct waiter *w, const void *key,
                         const char *reason, u64 a, u64 b);
void wait_grant_locked(struct waiter *w);
struct waiter *wait_first_locked(struct wait_queue *queue); /* NULL: none */
void wait_until_granted(struct waiter *w);
MUST_CHECK int wait_until_granted_killable(struct waiter *w);

#define WAIT_FOR(queue, condition, reason, a, b)            \
    do {                                                    \
        struct waiter w_;                                   \
        wait_begin(queue, &w_, reason, (u64)(a), (u64)(b)); \
        while (!(condition))                                \
            wait_sleep(&w_);                                \
        wait_end(queue, &w_);                               \
    } while (0)

/* The same for waits that may last: wait_may_last(). */
#define WAIT_HOWEVER_LONG_FOR(queue, condition, reason, a, b) \
    do {                                                      \
        struct waiter w_;                                     \
        wait_begin(queue, &w_, reason, (u64)(a), (u64)(b));   \
        wait_may_last(&w_);                                   \
        while (!(condition))                                  \
            wait_sleep(&w_);                                  \
        wait_end(queue, &w_);                                 \
    } while (0)

/* Sleeps until clock_ns() >= deadline. => 0, or -EINTR with a fatal signal pending (killable only)
 */
void sleep_until_ns(u64 deadline_ns);
MUST_CHECK int sleep_until_ns_killable(u64 deadline_ns);
MUST_CHECK int sleep_until_ns_interruptible(u64 deadline_ns); /* -EINTR: with any signal */

#endif
