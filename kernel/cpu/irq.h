/*
 * Between the trap code and the table of interrupt vectors. Other rooms use kernel/cpu/trap.h.
 */
#ifndef KERNEL_CPU_IRQ_H
#define KERNEL_CPU_IRQ_H

#include "kernel/cpu/trap.h"

/* Counts, acknowledges and handles one interrupt. Interrupts off, irq_depth already raised. */
void irq_dispatch(unsigned vector);
/* Acknowledges at the local APIC; nothing before smp_set_ops(). */
void smp_end_of_interrupt(void);

#endif
