/*
 * Spinlocks: one word, taken by compare-and-swap, PAUSE in the loop.
 *
 * Not first come first served, on purpose: our CPUs are mostly emulated, more of them than the host
 * has, so the next in line is often one that does not run at the moment, and each hand-over would
 * then cost a time slice of the host (measured with 4 CPUs on 2: ten times and more). What must be
 * fair sleeps: see kernel/sched/mutex.h.
 *
 * Each lock belongs to a class (a static object, one per kind of lock), which the lock-order
 * checker of debug builds learns orders of. spin_lock leaves interrupts as they are; a lock that an
 * interrupt handler takes must always be taken with spin_lock_irq (the checker panics where it is
 * not).
 *
 * No function here sleeps. All may be called from any context, under the rule above. A lock is
 * released on the CPU and by the task that took it.
 */
#ifndef KERNEL_SYNC_SPIN_H
#define KERNEL_SYNC_SPIN_H

#include "kernel/cpu/cpu.h"
#include "kernel/sync/atomic.h"
#include "kernel/sync/lockorder.h"

struct spinlock {
    u32 is_taken;
#ifdef CONFIG_DEBUG
    u32 owner_cpu; /* index + 1; 0 = free */
    struct lock_class *class;
#endif
};

#ifdef CONFIG_DEBUG
#define SPINLOCK_INIT(lock_class) \
    {                             \
        .class = (lock_class)     \
    }
static inline struct lock_class *spin_class(const struct spinlock *lock)
{
    return lock->class;
}
static inline void spin_set_class(struct spinlock *lock, struct lock_class *c)
{
    lock->class = c;
}
static inline void spin_set_owner(struct spinlock *lock, u32 owner)
{
    lock->owner_cpu = owner;
}
#else
#define SPINLOCK_INIT(lock_class) \
    {                             \
        .is_taken = 0             \
    }
static inline struct lock_class *spin_class(const struct spinlock *lock)
{
    (void)lock;
    return NULL;
}
static inline void spin_set_class(struct spinlock *lock, struct lock_class *c)
{
    (void)lock, (void)c;
}
static inline void spin_set_owner(struct spinlock *lock, u32 owner)
{
    (void)lock, (void)owner;
}
#endif

void spin_init(struct spinlock *lock, struct lock_class *class);
bool spin_trylock(struct spinlock *lock); /* => whether it was free and is now the caller's */
bool spin_is_locked(
    const struct spinlock *lock); /* by anybody; a hint unless the caller holds it */

#ifdef CONFIG_DEBUG
void spin_lock(struct spinlock *lock);
void spin_unlock(struct spinlock *lock);
/* Interrupts off while held; returns their earlier state for spin_unlock_irq. */
bool spin_lock_irq(struct spinlock *lock);
void spin_unlock_irq(struct spinlock *lock, bool irqs_were_on);
#else
/* One exchange takes a free lock: inline, since nearly all are free. */
void spin_wait(struct spinlock *lock);

static inline void spin_lock(struct spinlock *lock)
{
    if (unlikely(atomic_exchange(&lock->is_taken, 1)))
        spin_wait(lock);
}
static inline void spin_unlock(struct spinlock *lock)
{
    atomic_store(&lock->is_taken, 0);
}
static inline bool spin_lock_irq(struct spinlock *lock)
{
    bool irqs_were_on = irq_save_disable();
    spin_lock(lock);
    return irqs_were_on;
}
static inline void spin_unlock_irq(struct spinlock *lock, bool irqs_were_on)
{
    spin_unlock(lock);
    irq_restore(irqs_were_on);
}
#endif

#endif
