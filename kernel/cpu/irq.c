/*
 * Interrupt vectors: who handles which, and how often each came.
 *
 * Dispatch takes no lock: a slot's handler is written last when it is taken and first when it is
 * given up. A driver gives its vector up only after its device has been silenced.
 */
#include "kernel/cpu/irq.h"

#include "kernel/log/log.h"
#include "kernel/sync/atomic.h"
#include "kernel/sync/spin.h"
#include "lib/errno.h"

#define N_VECTORS 256

struct irq_slot {
    irq_handler handler;
    void *context;
    const char *name;
    bool was_reported; /* that it came without a handler */
};

LOCK_CLASS(irq_slots_class, "irq_slots");
static struct spinlock irq_slots_lock = SPINLOCK_INIT(&irq_slots_class);
static struct irq_slot slots[N_VECTORS]; /* changed under irq_slots_lock */

PERCPU(u64[N_VECTORS], irq_counts);

static void take_slot(unsigned vector, const char *name, irq_handler handler, void *context)
{
    struct irq_slot *slot = &slots[vector];

    slot->name = name;
    slot->context = context;
    atomic_store(&slot->handler, handler);
}

int irq_vector_alloc(const char *name, irq_handler handler, void *context)
{
    int found = -ENOSPC;
    bool irqs = spin_lock_irq(&irq_slots_lock);

    for (int vector = IRQ_VECTOR_FIRST; vector <= IRQ_VECTOR_LAST; vector++) {
        if (!slots[vector].handler) {
            take_slot(vector, name, handler, context);
            found = vector;
            break;
        }
    }
    spin_unlock_irq(&irq_slots_lock, irqs);
    return found;
}

void irq_vector_free(int vector)
{
    ASSERT(vector >= IRQ_VECTOR_FIRST && vector <= IRQ_VECTOR_LAST);
    bool irqs = spin_lock_irq(&irq_slots_lock);
    atomic_store(&slots[vector].handler, NULL);
    slots[vector].name = NULL;
    spin_unlock_irq(&irq_slots_lock, irqs);
}

void irq_register_fixed(unsigned vector, const char *name, irq_handler handler, void *context)
{
    ASSERT(vector > IRQ_VECTOR_LAST && vector < N_VECTORS);
    take_slot(vector, name, handler, context);
}

u64 irq_count(unsigned vector, unsigned cpu)
{
    return vector < N_VECTORS && cpu_get(cpu) ? READ_ONCE((*percpu_of(irq_counts, cpu))[vector])
                                              : 0;
}

const char *irq_name(unsigned vector)
{
    return vector < N_VECTORS ? READ_ONCE(slots[vector].name) : NULL;
}

static void report_stray(unsigned vector)
{
    if (slots[vector].was_reported)
        return;
    slots[vector].was_reported = true;
    log_warn("cpu %u: interrupt %#x came, and nobody handles it", cpu_index(), vector);
}

void irq_dispatch(unsigned vector)
{
    struct irq_slot *slot = &slots[vector];

    (*percpu_this(irq_counts))[vector]++;
    if (vector == IRQ_VECTOR_SPURIOUS)
        return; /* must not be acknowledged */
    smp_end_of_interrupt();
    irq_handler handler = atomic_load(&slot->handler);
    if (handler)
        handler(slot->context);
    else
        report_stray(vector);
}
