/*
 * TLB shootdown and the switching of address spaces. See tlb.h.
 *
 * space->cpus names the CPUs that may hold translations. Why no CPU is missed:
 *
 *     this CPU switches to the space          another CPU flushes
 *     1 sets its bit (locked: a full fence)   1 changes the entry
 *     2 loads CR3, walks the tables           2 full fence
 *                                             3 reads the mask
 *
 * Either 3 sees the bit, and the CPU is interrupted; or 1 came after 3, and so the walk sees the
 * changed entry. The bit is cleared after CR3 holds another root (which drops all translations that
 * are not global).
 *
 * A CPU that goes on to a kernel thread keeps the root loaded: most often it comes back to the same
 * program. While it is lazy, the first shootdown makes it leave to the kernel's root instead, so it
 * is asked once.
 *
 * Rules: the state of a CPU changes on that CPU with interrupts off only. Shootdowns run as
 * smp_call, with interrupts on in the sender, which therefore answers those of others.
 */
#include "mm/core/tlb.h"

#include "kernel/cpu/smp.h"
#include "kernel/log/log.h"
#include "mm/core/page_table_internal.h"

#define CR4_PGE (1ul << 7)

struct tlb_state {
    struct pt_space *loaded; /* whose root is in CR3; NULL: the kernel's */
    bool is_lazy;            /* loaded, but the CPU runs a kernel thread */
};

static PERCPU(struct tlb_state, tlb_state);

COUNTER(tlb_remote_flushes);
COUNTER(tlb_lazy_leaves);
bool tlb_mutant_no_shootdown;

static cpumask_t own_bit(void)
{
    return 1ul << cpu_index();
}

/* ---- Switching: interrupts off ---- */

/* Loads the kernel's root. */
static void leave_space(struct tlb_state *state)
{
    struct pt_space *old = state->loaded;

    cr3_write(kernel_root);
    state->loaded = NULL;
    state->is_lazy = false;
    atomic_and(&old->cpus, ~own_bit());
}

void tlb_switch_space(struct pt_space *space)
{
    struct tlb_state *state = percpu_this(tlb_state);
    struct pt_space *old = state->loaded;

    if (!space) {
        state->is_lazy = old != NULL;
        return;
    }
    state->is_lazy = false;
    if (old == space)
        return;
    atomic_or(&space->cpus, own_bit());
    atomic_fence();
    cr3_write(space->root);
    state->loaded = space;
    if (old)
        atomic_and(&old->cpus, ~own_bit());
}

bool tlb_has_loaded(const struct pt_space *space)
{
    return percpu_this(tlb_state)->loaded == space;
}

struct pt_space *tlb_current_space(void)
{
    const struct tlb_state *state = percpu_this(tlb_state);

    return state->is_lazy ? NULL : state->loaded;
}

/* ---- Flushing ---- */

/* On each CPU of the mask, interrupts off. */
static void flush_here(void *arg)
{
    const struct tlb_batch *batch = arg;
    struct tlb_state *state = percpu_this(tlb_state);

    if (state->loaded != batch->space)
        return; /* switched away since the mask was read */
    if (state->is_lazy) {
        leave_space(state);
        counter_inc(tlb_lazy_leaves);
    } else if (batch->end - batch->start > TLB_FLUSH_ALL_ABOVE * PAGE_SIZE) {
        cr3_write(batch->space->root);
    } else {
        for (u64 addr = batch->start; addr < batch->end; addr += PAGE_SIZE)
            tlb_invalidate_page(addr);
    }
}

static void shoot_down(struct tlb_batch *batch)
{
    bool irqs = irq_save_disable();

    flush_here(batch);
    irq_restore(irqs);

    atomic_fence();
    cpumask_t others = atomic_load(&batch->space->cpus) & ~own_bit();

    if (others && !tlb_mutant_no_shootdown) {
        counter_inc(tlb_remote_flushes);
        smp_call(others, flush_here, batch);
    }
}

void tlb_batch_flush(struct tlb_batch *batch)
{
    if (!tlb_batch_is_empty(batch)) {
        shoot_down(batch);
        if (MEMORY_CHECKS) {
            atomic_sub(&batch->space->unflushed, 1);
            tlb_check(batch->space, batch->start, batch->end);
        }
    }
    for (u32 i = 0; i < batch->n_pages; i++)
        page_put(batch->pages[i]);
    tlb_batch_init(batch, batch->space);
}

void tlb_flush_local_page(u64 addr)
{
    tlb_invalidate_page(addr);
}

/* ---- Ending a space ---- */

static void leave_if_loaded(void *arg)
{
    struct tlb_state *state = percpu_this(tlb_state);

    if (state->loaded == arg)
        leave_space(state);
}

void tlb_evict_space(struct pt_space *space)
{
    bool irqs = irq_save_disable();

    leave_if_loaded(space);
    irq_restore(irqs);

    cpumask_t others = atomic_load(&space->cpus);

    if (others)
        smp_call(others, leave_if_loaded, space);
    ASSERT(atomic_load(&space->cpus) == 0);
}

/* ---- Kernel mappings ---- */

static u64 cr4_read(void)
{
    u64 v;
    __asm__ volatile("movq %%cr4, %0" : "=r"(v));
    return v;
}

static void cr4_write(u64 v)
{
    __asm__ volatile("movq %0, %%cr4" ::"r"(v) : "memory");
}

/* Changing CR4.PGE drops everything, global translations too (Intel SDM vol. 3, 4.10.4.1). */
static void flush_everything_here(void *unused)
{
    bool irqs = irq_save_disable();
    u64 cr4 = cr4_read();

    (void)unused;
    if (cr4 & CR4_PGE) {
        cr4_write(cr4 & ~CR4_PGE);
        cr4_write(cr4);
    } else {
        cr3_write(cr3_read());
    }
    irq_restore(irqs);
}

void tlb_flush_kernel_all(void)
{
    flush_everything_here(NULL);
    smp_call(cpu_online_mask() & ~own_bit(), flush_everything_here, NULL);
}
