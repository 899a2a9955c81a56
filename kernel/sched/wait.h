/*
 * Waiting: queue, then test, then sleep.
 *
 *     struct waiter w;
 *     wait_begin(&queue, &w, "page %lu of inode %lu", index, inode);
 *     while (!condition) wait_sleep(&w)      (or wait_sleep_killable: non-zero ends the loop)
 *     wait_end(&queue, &w);
 *
 * After wait_begin a wake-up is never lost: it makes the next wait_sleep return at once. WAIT_FOR does this in one line.
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
    struct list link;
    const void *key;  /* for hashed queues: only waiters with this key are woken */
    bool granted;     /* for hand-off: the waker gave the thing away */
    bool wants_handoff;
};

void wait_queue_init(struct wait_queue *queue);
#define WAIT_QUEUE_INIT(name) {.lock = SPINLOCK_INIT(&wait_queue_class), .waiters = LIST_INIT((name).waiters)}
extern struct lock_class wait_queue_class;

void wait_begin(struct wait_queue *queue, struct waiter *w, const char *reason, u64 a, u64 b);
void wait_sleep(struct waiter *w);
/* => 0, -EINTR if a fatal signal is pending, -ETIMEDOUT once clock_ns() has reached deadline_ns (0: none) */
MUST_CHECK int wait_sleep_killable(struct waiter *w, u64 deadline_ns);
void wait_end(struct wait_queue *queue, struct waiter *w);

unsigned wait_wake_all(struct wait_queue *queue);                    /* => number woken. Any context. */
unsigned wait_wake_one(struct wait_queue *queue);                    /* first come first served */
unsigned wait_wake_key(struct wait_queue *queue, const void *key);   /* all with that key */
bool wait_queue_is_empty(struct wait_queue *queue);

#define WAIT_FOR(queue, condition, reason, a, b)                                                   \
    do {                                                                                           \
        struct waiter w_;                                                                          \
        wait_begin(queue, &w_, reason, (u64)(a), (u64)(b));                                        \
        while (!(condition))                                                                       \
            wait_sleep(&w_);                                                                       \
        wait_end(queue, &w_);                                                                      \
    } while (0)

/* Sleeps until clock_ns() >= deadline. => 0, or -EINTR with a fatal signal pending (killable only) */
void sleep_until_ns(u64 deadline_ns);
MUST_CHECK int sleep_until_ns_killable(u64 deadline_ns);

#endif
