/*
 * The lock-order checker of debug builds. Every lock operation of every kind reports here; the
 * checker keeps each task's (each CPU's, in interrupts) list of held locks, learns "A was held when B was taken", and
 * panics on an inversion (naming both places), on a sleep with a spinlock held, on unlocking what is not held, and on
 * returning to user mode with a lock held. In release builds every function here is an empty inline.
 */
#ifndef KERNEL_SYNC_LOCKORDER_H
#define KERNEL_SYNC_LOCKORDER_H

#include "lib/types.h"

/* One kind of lock. `nests` allows several of the class at once (page locks in rising index, child mm in fork). */
struct lock_class {
    const char *name;
    bool spins;  /* spinlock: no sleep while held */
    bool nests;
    u16 id;      /* 0 until first seen */
};

#define LOCK_CLASS(variable, label) struct lock_class variable = {.name = (label), .spins = true}
#define SLEEP_LOCK_CLASS(variable, label) struct lock_class variable = {.name = (label)}
#define NESTING_SLEEP_LOCK_CLASS(variable, label) struct lock_class variable = {.name = (label), .nests = true}

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

/* before: about to take it (checks the order; trylocks do not call it). after: it is taken. */
void lockorder_before(struct lock_class *class, const void *lock, u64 caller);
void lockorder_after(struct lock_class *class, const void *lock, bool shared, u64 caller);
void lockorder_release(struct lock_class *class, const void *lock);
void lockorder_might_sleep(const char *what);  /* panics with a spinlock held or in an interrupt */
void lockorder_user_return(void);              /* panics with any lock held */
bool lockorder_is_held(const void *lock);      /* by the current task (or CPU) */
void lockorder_set_task_list(struct lock_held_list *(*current_list)(void)); /* by kernel/sched */
void lockorder_print(const struct lock_held_list *list, void (*line)(const char *fmt, ...));
/* For tests of the checker itself: the next violation is recorded instead of a panic. => text or NULL */
void lockorder_expect_violation(void);
const char *lockorder_take_violation(void);
#else
struct lock_held_list {
    char nothing[0];
};
static inline void lockorder_before(struct lock_class *c, const void *l, u64 caller) { (void)c, (void)l, (void)caller; }
static inline void lockorder_after(struct lock_class *c, const void *l, bool s, u64 caller) { (void)c, (void)l, (void)s, (void)caller; }
static inline void lockorder_release(struct lock_class *c, const void *l) { (void)c, (void)l; }
static inline void lockorder_might_sleep(const char *what) { (void)what; }
static inline void lockorder_user_return(void) {}
#endif

#endif
