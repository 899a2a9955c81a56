/*
 * What the files of this room need of each other to bring a CPU up. Not for other rooms.
 */
#ifndef KERNEL_CPU_SETUP_H
#define KERNEL_CPU_SETUP_H

#include "kernel/cpu/cpu.h"

/* Stacks that the CPU switches to by itself (TSS, IST slots 1 … 3). */
enum cpu_ist { IST_NONE, IST_DOUBLE_FAULT, IST_NMI, IST_MACHINE_CHECK, IST_COUNT };

/* Finds features out (boot CPU, once). */
void cpu_detect_features(void);
/* Switches them on, on the calling CPU. */
void cpu_enable_features(void);
/*
 * Turns the SMAP places of trap.S and uaccess.S into STAC and CLAC where the CPU has them. Once,
 * text writable.
 */
void cpu_patch_smap(void);
void fpu_detect(void);
void fpu_enable(void);

/*
 * Fills in the GDT and TSS of a CPU whose per-CPU copy is at percpu_delta, and loads them on the
 * caller.
 */
void gdt_prepare(struct cpu *cpu);
void gdt_load(struct cpu *cpu);
void gdt_set_ist(struct cpu *cpu, enum cpu_ist slot, void *stack_top);

void idt_build(void); /* once */
void idt_load(void);

/* Registers a CPU in the table behind cpu_get(). */
void cpu_register(struct cpu *cpu);
void cpu_set_online(struct cpu *cpu);
/* The struct cpu in the copy of the .percpu section at `delta`. */
struct cpu *cpu_at_delta(u64 delta);
/*
 * Everything a CPU does for itself once it has its struct cpu: GS base, GDT, IDT, features, system
 * call entry.
 */
void cpu_init_this(struct cpu *cpu);

void syscall_entry_enable(void);

/* Interrupts of this room (IPIs); returns false if the vector is not one of them. */
void smp_init_vectors(void);

#endif
