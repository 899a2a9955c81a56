/*
 * Sleeping locks: a mutex and a fair reader-writer semaphore, both first come first served: an
 * unlock gives the lock to the first waiter, nobody overtakes. Taken and released by the same task,
 * never in interrupts.
 */
#ifndef KERNEL_SCHED_MUTEX_H
#define KERNEL_SCHED_MUTEX_H

#include "kernel/sched/wait.h"

struct mutex {
    struct wait_queue queue; /* its lock guards the rest */
    struct task *owner;
    struct lock_class *class;
};

void mutex_init(struct mutex *m, struct lock_class *class);
#define MUTEX_INIT(name, lock_class)                                  \
    {                                                                 \
        .queue = WAIT_QUEUE_INIT((name).queue), .class = (lock_class) \
    }
void mutex_lock(struct mutex *m);    /* may sleep */
bool mutex_trylock(struct mutex *m); /* => whether it was free and is now the caller's */
void mutex_unlock(struct mutex *m);
bool mutex_is_mine(const struct mutex *m);

/*
 * Readers share, a writer excludes. Strictly FIFO: a reader that comes after a waiting writer waits
 * behind it. Not recursive, also not for readers. It must outlive the call that unlocks it.
 */
struct rwsem {
    u64 state; /* atomic: RWSEM_* and the number of readers */
    struct wait_queue queue;
    struct task *writer;
    u32 waiting_writers; /* queue.lock */
    struct lock_class *class;
    const char *name; /* "mmap_lock": shows in wait reasons */
};

void rwsem_init(struct rwsem *s, struct lock_class *class, const char *name);
void rwsem_read_lock(struct rwsem *s);
MUST_CHECK int rwsem_read_lock_killable(struct rwsem *s); /* => 0 or -EINTR (not taken) */
bool rwsem_read_trylock(struct rwsem *s);                 /* fails also where a writer waits */
void rwsem_read_unlock(struct rwsem *s);
void rwsem_write_lock(struct rwsem *s);
MUST_CHECK int rwsem_write_lock_killable(struct rwsem *s);
void rwsem_write_unlock(struct rwsem *s);
void rwsem_downgrade(
    struct rwsem *s); /* writer becomes reader; waiting readers at the front come in */
bool rwsem_is_write_locked_by_me(const struct rwsem *s);
bool rwsem_is_locked(const struct rwsem *s);
u64 rwsem_readers(const struct rwsem *s); /* how many hold it now */

#endif
