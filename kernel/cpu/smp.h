/*
 * Other processors: starting them, calling them, stopping them.
 */
#ifndef KERNEL_CPU_SMP_H
#define KERNEL_CPU_SMP_H

#include "kernel/cpu/cpu.h"

/* What kernel/cpu needs from the local APIC driver (drivers/apic fills it in). */
struct smp_ops {
    void (*send_ipi)(u32 apic_id, u8 vector);
    void (*send_nmi)(u32 apic_id); /* stops a CPU that has its interrupts off; may be NULL */
    void (*send_init)(u32 apic_id);
    void (*send_startup)(u32 apic_id, u8 page); /* page: physical address >> 12 of the trampoline */
    void (*end_of_interrupt)(void);
    void (*init_this_cpu)(void); /* switch the local APIC of the calling CPU on */
};
void smp_set_ops(const struct smp_ops *ops);

/*
 * Where this room gets memory from; set by kernel/main.c once mm/core works, before
 * smp_start_all(). From then on the boot CPU's double-fault, NMI and machine-check stacks have
 * guard pages too.
 *   pages(n)  n contiguous cleared pages, NULL when out of memory
 *   stack()   the lowest usable byte of CPU_STACK_BYTES with an unmapped page below, NULL when out
 *             of memory
 */
void smp_set_allocator(void *(*pages)(unsigned n), void *(*stack)(void));

/*
 * Starts every CPU whose APIC id is in the list (the boot CPU's is skipped), at most `max` in all.
 * Each runs `entry` on its own idle stack with interrupts off, GDT, TSS, IDT, per-CPU data, paging
 * and features set up.
 *   trampoline_phys  a free page below 1 MiB
 * => number of CPUs online. A CPU that does not answer is reported in the log and left out.
 */
unsigned smp_start_all(const u32 *apic_ids, unsigned n, unsigned max, phys_t trampoline_phys,
                       void (*entry)(void));

void ipi_send(unsigned cpu, u8 vector);

/*
 * Runs fn(arg) on every online CPU of the mask except the caller's, in interrupt context, and waits
 * until all are done.
 * => Interrupts must be on (a CPU that waits answers other CPUs' calls), unless the mask is empty.
 *    Must not be called from interrupt context.
 */
void smp_call(cpumask_t mask, void (*fn)(void *arg), void *arg);

void smp_stop_others(void); /* for panic: the others halt with interrupts off. Any context. */

#endif
