/*
 * Spinlocks. A waiter reads until the lock looks free and only then tries to take it, so waiting
 * CPUs do not pull the line from the holder. Why it is not a ticket lock: see spin.h.
 */
#include "kernel/sync/spin.h"

#include "kernel/sync/atomic.h"

#define CALLER ((u64)__builtin_return_address(0))

void spin_init(struct spinlock *lock, struct lock_class *class)
{
    lock->is_taken = 0;
    spin_set_owner(lock, 0);
    spin_set_class(lock, class);
}

static inline bool try_take(struct spinlock *lock)
{
    return !atomic_load(&lock->is_taken) && !atomic_exchange(&lock->is_taken, 1);
}

bool spin_trylock(struct spinlock *lock)
{
    if (!try_take(lock))
        return false;
    spin_set_owner(lock, cpu_index() + 1);
    lockorder_after(spin_class(lock), lock, false, CALLER);
    return true;
}

#ifdef CONFIG_DEBUG
static inline void take(struct spinlock *lock, u64 caller)
{
    lockorder_before(spin_class(lock), lock, caller);
    while (!try_take(lock))
        cpu_pause();
    spin_set_owner(lock, cpu_index() + 1);
    lockorder_after(spin_class(lock), lock, false, caller);
}

static inline void give_back(struct spinlock *lock)
{
    if (!lockorder_release(spin_class(lock), lock))
        return;
    spin_set_owner(lock, 0);
    atomic_store(&lock->is_taken, 0);
}

void spin_lock(struct spinlock *lock)
{
    take(lock, CALLER);
}

void spin_unlock(struct spinlock *lock)
{
    give_back(lock);
}

bool spin_lock_irq(struct spinlock *lock)
{
    bool irqs_were_on = irq_save_disable();

    take(lock, CALLER);
    return irqs_were_on;
}

void spin_unlock_irq(struct spinlock *lock, bool irqs_were_on)
{
    give_back(lock);
    irq_restore(irqs_were_on);
}
#else
void spin_wait(struct spinlock *lock)
{
    while (!try_take(lock))
        cpu_pause();
}
#endif

bool spin_is_locked(const struct spinlock *lock)
{
    return atomic_load(&lock->is_taken);
}
