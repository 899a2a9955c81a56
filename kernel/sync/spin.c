/*
 * Spinlocks: a ticket lock. Who comes draws a number and waits until it is served, so no CPU can
 * be overtaken twice, and under round-robin emulation (where PAUSE lets the next CPU run) a waiter
 * is served after at most one round.
 */
#include "kernel/sync/spin.h"

#include "kernel/sync/atomic.h"

#define CALLER ((u64)__builtin_return_address(0))

void spin_init(struct spinlock *lock, struct lock_class *class)
{
    lock->both = 0;
    spin_set_owner(lock, 0);
    spin_set_class(lock, class);
}

static inline void draw_and_wait(struct spinlock *lock, u64 caller)
{
    lockorder_before(spin_class(lock), lock, caller);
    u16 ticket = __atomic_fetch_add(&lock->next, 1, __ATOMIC_ACQ_REL);

    while (atomic_load(&lock->serving) != ticket)
        cpu_pause();
    spin_set_owner(lock, cpu_index() + 1);
    lockorder_after(spin_class(lock), lock, false, caller);
}

static inline void serve_next(struct spinlock *lock)
{
    if (!lockorder_release(spin_class(lock), lock))
        return;
    spin_set_owner(lock, 0);
    atomic_store(&lock->serving, (u16)(lock->serving + 1));
}

void spin_lock(struct spinlock *lock)
{
    draw_and_wait(lock, CALLER);
}

bool spin_trylock(struct spinlock *lock)
{
    u32 seen = atomic_load(&lock->both);
    u16 next = (u16)seen, serving = (u16)(seen >> 16);

    if (next != serving)
        return false;
    u32 taken = (u32)serving << 16 | (u16)(next + 1);

    if (!atomic_change(&lock->both, seen, taken))
        return false;
    spin_set_owner(lock, cpu_index() + 1);
    lockorder_after(spin_class(lock), lock, false, CALLER);
    return true;
}

void spin_unlock(struct spinlock *lock)
{
    serve_next(lock);
}

bool spin_lock_irq(struct spinlock *lock)
{
    bool irqs_were_on = irq_save_disable();

    draw_and_wait(lock, CALLER);
    return irqs_were_on;
}

void spin_unlock_irq(struct spinlock *lock, bool irqs_were_on)
{
    serve_next(lock);
    irq_restore(irqs_were_on);
}

bool spin_is_locked(const struct spinlock *lock)
{
    u32 seen = atomic_load(&lock->both);

    return (u16)seen != (u16)(seen >> 16);
}
