/*
 * Fresh kernel stacks, and the segment bases of user threads.
 */
#include "kernel/cpu/context.h"

#define MSR_FS_BASE        0xc0000100u
#define MSR_KERNEL_GS_BASE 0xc0000102u /* while in the kernel: the program's */

/* What context_switch() pops, lowest address first. */
struct fresh_stack {
    u64 r15, r14, r13, r12, rbx, rbp;
    u64 return_address;
    u64 caller_of_start; /* 0: backtraces end here */
    u64 unused;          /* context_start calls with the stack aligned to 16, as the ABI wants it */
};

u64 context_prepare(void *stack_top, void (*entry)(void *arg), void *arg)
{
    extern char context_start[];
    struct fresh_stack *fresh = (struct fresh_stack *)ALIGN_DOWN((u64)stack_top, 16) - 1;

    *fresh = (struct fresh_stack){
        .r12 = (u64)arg,
        .rbx = (u64)entry,
        .return_address = (u64)context_start,
    };
    return (u64)fresh;
}

u64 cpu_fs_base_read(void)
{
    return msr_read(MSR_FS_BASE);
}

void cpu_fs_base_write(u64 base)
{
    msr_write(MSR_FS_BASE, base);
}

u64 cpu_user_gs_base_read(void)
{
    return msr_read(MSR_KERNEL_GS_BASE);
}

void cpu_user_gs_base_write(u64 base)
{
    msr_write(MSR_KERNEL_GS_BASE, base);
}
