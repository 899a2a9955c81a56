/*
 * Spinlocks: first come first served (ticket), PAUSE in the loop.
 *
 * Each lock belongs to a class (a static object, one per kind of lock), which the lock-order checker of debug
 * builds learns orders of. spin_lock leaves interrupts as they are; a lock that an interrupt handler takes
 * must always be taken with spin_lock_irq.
 */
#ifndef KERNEL_SYNC_SPIN_H
#define KERNEL_SYNC_SPIN_H

#include "kernel/cpu/cpu.h"
#include "kernel/sync/lockorder.h"

struct spinlock {
    u16 next, serving;
#ifdef CONFIG_DEBUG
    u32 owner_cpu; /* index + 1; 0 = free */
    struct lock_class *class;
#endif
};

#ifdef CONFIG_DEBUG
#define SPINLOCK_INIT(lock_class) {.class = (lock_class)}
#else
#define SPINLOCK_INIT(lock_class) {0}
#endif

void spin_init(struct spinlock *lock, struct lock_class *class);
void spin_lock(struct spinlock *lock);
bool spin_trylock(struct spinlock *lock);
void spin_unlock(struct spinlock *lock);
/* Interrupts off while held; returns their earlier state for spin_unlock_irq. */
bool spin_lock_irq(struct spinlock *lock);
void spin_unlock_irq(struct spinlock *lock, bool irqs_were_on);
bool spin_is_locked(const struct spinlock *lock);

#endif
