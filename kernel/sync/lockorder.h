/*
 * The lock-order checker of debug builds. Every lock operation of every kind reports here; the
 * checker keeps each task's (each CPU's, in interrupts and before there are tasks) list of held
 * locks, learns "A was held when B was taken", and panics, naming both places, on
 *   - an inversion: A is taken with B held, though (perhaps over several steps) B was once taken
 *     with A held;
 *   - the same lock twice, or two of one class unless the class nests;
 *   - a spinlock class taken both in an interrupt handler and elsewhere with interrupts on;
 *   - a sleep in an interrupt or with a spinlock held;
 *   - unlocking what is not held, and returning to user mode with a lock held.
 * In release builds every function here is an empty inline.
 *
 * The checker takes none of the locks it checks, never sleeps and may be called from any context.
 * Once a panic has begun it says nothing more.
 */
#ifndef KERNEL_SYNC_LOCKORDER_H
#define KERNEL_SYNC_LOCKORDER_H

#include "lib/types.h"

/* One kind of lock. `nests` allows several of the class at once (page locks in rising index, child
 * mm in fork). */
struct lock_class {
    const char *name;
    bool spins; /* spinlock: no sleep while held */
    bool nests;
    u16 id; /* 0 until first seen */
};

/* Unused in release builds, where no lock refers to its class. */
#define LOCK_CLASS_OBJECT(variable, ...) \
    struct lock_class variable __attribute__((unused)) = {__VA_ARGS__}
#define LOCK_CLASS(variable, label)       LOCK_CLASS_OBJECT(variable, .name = (label), .spins = true)
#define SLEEP_LOCK_CLASS(variable, label) LOCK_CLASS_OBJECT(variable, .name = (label))
#define NESTING_SLEEP_LOCK_CLASS(variable, label) \
    LOCK_CLASS_OBJECT(variable, .name = (label), .nests = true)

#ifdef CONFIG_DEBUG
#define LOCKORDER_MAX_HELD 24

struct held_lock {
    struct lock_class *class;
    const void *lock;
    u64 caller; /* text address that took it */
    bool shared;
};

struct lock_held_list {
    u32 n;
    struct held_lock held[LOCKORDER_MAX_HELD];
};

#define LOCKORDER_IS_ON true

/* before: about to take it (checks the order; trylocks do not call it). after: it is taken. */
void lockorder_before(struct lock_class *class, const void *lock, u64 caller);
void lockorder_after(struct lock_class *class, const void *lock, bool shared, u64 caller);
/* => false: it was not held (and a test expects that): the caller leaves the lock alone. */
bool lockorder_release(struct lock_class *class, const void *lock);
void lockorder_might_sleep(const char *what); /* panics with a spinlock held or in an interrupt */
void lockorder_user_return(void);             /* panics with any lock held */
bool lockorder_is_held(const void *lock);     /* by the current task (or CPU) */
/* By kernel/sched: the running task's list, NULL where this CPU has no task yet. */
void lockorder_set_task_list(struct lock_held_list *(*current_list)(void));
void lockorder_print(const struct lock_held_list *list, void (*line)(const char *fmt, ...));
static inline u32 lockorder_held_count(const struct lock_held_list *list)
{
    return list->n;
}
/* Of any task, without its consent: the list may change. */
bool lockorder_list_has(const struct lock_held_list *list, const void *lock);
/* `inner` was taken with `outer` held, against an earlier order: which of the two docs/locking.md has. */
void lockorder_print_documented(const struct lock_class *outer, const struct lock_class *inner,
                                void (*line)(const char *fmt, ...));
/* For tests of the checker: the caller's next violation is recorded, not a panic. => text or NULL */
void lockorder_expect_violation(void);
const char *lockorder_take_violation(void);
#else
struct lock_held_list {
    char nothing[0];
};

#define LOCKORDER_IS_ON false

static inline void lockorder_before(struct lock_class *c, const void *l, u64 caller)
{
    (void)c, (void)l, (void)caller;
}
static inline void lockorder_after(struct lock_class *c, const void *l, bool s, u64 caller)
{
    (void)c, (void)l, (void)s, (void)caller;
}
static inline bool lockorder_release(struct lock_class *c, const void *l)
{
    (void)c, (void)l;
    return true;
}
static inline void lockorder_might_sleep(const char *what)
{
    (void)what;
}
static inline void lockorder_user_return(void)
{
}
static inline bool lockorder_is_held(const void *l)
{
    (void)l;
    return true;
}
static inline void lockorder_set_task_list(struct lock_held_list *(*f)(void))
{
    (void)f;
}
static inline void lockorder_print(const struct lock_held_list *list,
                                   void (*line)(const char *fmt, ...))
{
    (void)list, (void)line;
}
static inline u32 lockorder_held_count(const struct lock_held_list *list)
{
    (void)list;
    return 0;
}
static inline bool lockorder_list_has(const struct lock_held_list *list, const void *lock)
{
    (void)list, (void)lock;
    return false;
}
static inline void lockorder_expect_violation(void)
{
}
static inline const char *lockorder_take_violation(void)
{
    return NULL;
}
#endif

#endif
