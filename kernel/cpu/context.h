/*
 * Switching kernel stacks and extended (x87/SSE/AVX) state.
 */
#ifndef KERNEL_CPU_CONTEXT_H
#define KERNEL_CPU_CONTEXT_H

#include "kernel/cpu/cpu.h"

/*
 * Saves callee-saved registers on the current stack, stores rsp in *from_rsp, continues at to_rsp.
 * Interrupts off.
 */
void context_switch(u64 *from_rsp, u64 to_rsp);
/*
 * Prepares a fresh stack so that the first context_switch to the returned rsp calls entry(arg),
 * which never returns.
 */
u64 context_prepare(void *stack_top, void (*entry)(void *arg), void *arg);

/* Kernel stack used for entries from user mode by this CPU from now on. */
void cpu_set_kernel_stack(u64 top);

/*
 * User thread pointer (FS base) and extended state; area: cpu_features.xsave_size bytes, 64-byte
 * aligned.
 */
void fpu_state_init(void *area); /* the state a new program starts with */
void fpu_save(void *area);
void fpu_restore(const void *area);
u64 cpu_fs_base_read(void);
void cpu_fs_base_write(u64 base);
u64 cpu_user_gs_base_read(void); /* the user's GS base while in the kernel */
void cpu_user_gs_base_write(u64 base);

#endif
