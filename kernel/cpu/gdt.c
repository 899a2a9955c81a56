/*
 * Segments and task-state segments: one of each for every CPU.
 *
 *   0x08 kernel code   0x10 kernel data        SYSCALL loads 0x08 and 0x10
 *   0x18 (empty)       0x20 user data          SYSRET loads base + 8 and base + 16 of base 0x18,
 *   0x28 user code     0x30 TSS (two slots)    with privilege 3: 0x23 and 0x2b
 *
 * Double faults, NMIs and machine checks have stacks of their own, since they may come when the
 * current one is broken or not yet ours.
 *
 * Source: Intel SDM vol. 3, 3.4.5 (descriptors), 8.7 (64-bit TSS).
 */
#include "kernel/cpu/context.h"
#include "kernel/cpu/setup.h"
#include "kernel/cpu/trap.h"
#include "lib/string.h"

#define SEGMENT_KERNEL_CODE 0x00af9b000000fffful
#define SEGMENT_KERNEL_DATA 0x00cf93000000fffful
#define SEGMENT_USER_DATA   0x00cff3000000fffful
#define SEGMENT_USER_CODE   0x00affb000000fffful
#define SEGMENT_TSS_PRESENT 0x89ul
#define TSS_SELECTOR        0x30

struct tss {
    u32 reserved0;
    u64 rsp[3];
    u64 reserved1;
    u64 ist[7]; /* slot n of an IDT gate is ist[n - 1] */
    u64 reserved2;
    u16 reserved3;
    u16 io_map_offset;
} PACKED;
_Static_assert(sizeof(struct tss) == 104, "Intel SDM vol. 3, figure 8-11");

struct segments {
    u64 gdt[8];
    struct tss tss;
};

struct table_register {
    u16 limit;
    u64 base;
} PACKED;

PERCPU(struct segments, cpu_segments);

/* The boot CPU's, until there is memory for guarded ones. */
static u8 boot_ist_stacks[IST_COUNT - 1][8192] __attribute__((aligned(16)));

static struct segments *segments_of(struct cpu *cpu)
{
    return (struct segments *)((char *)&cpu_segments + cpu->percpu_delta);
}

void gdt_set_ist(struct cpu *cpu, enum cpu_ist slot, void *stack_top)
{
    segments_of(cpu)->tss.ist[slot - 1] = (u64)stack_top;
}

void gdt_prepare(struct cpu *cpu)
{
    struct segments *s = segments_of(cpu);
    u64 tss = (u64)&s->tss;

    memset(s, 0, sizeof *s);
    s->gdt[KERNEL_CS / 8] = SEGMENT_KERNEL_CODE;
    s->gdt[KERNEL_SS / 8] = SEGMENT_KERNEL_DATA;
    s->gdt[USER_SS / 8] = SEGMENT_USER_DATA;
    s->gdt[USER_CS / 8] = SEGMENT_USER_CODE;
    s->gdt[TSS_SELECTOR / 8] = (sizeof s->tss - 1) | (tss & 0xffffff) << 16 |
                               SEGMENT_TSS_PRESENT << 40 | (tss >> 24 & 0xff) << 56;
    s->gdt[TSS_SELECTOR / 8 + 1] = tss >> 32;
    s->tss.rsp[0] = cpu->kernel_stack_top;
    s->tss.io_map_offset = sizeof s->tss; /* no I/O ports for user mode */
    if (cpu->percpu_delta == 0) {
        for (int slot = IST_DOUBLE_FAULT; slot < IST_COUNT; slot++)
            gdt_set_ist(cpu, slot, boot_ist_stacks[slot - 1] + sizeof boot_ist_stacks[0]);
    }
}

void gdt_load(struct cpu *cpu)
{
    struct segments *s = segments_of(cpu);
    struct table_register gdtr = {sizeof s->gdt - 1, (u64)s->gdt};

    /* The code segment changes only by a far return. */
    __asm__ volatile("lgdt %0\n\t"
                     "pushq %1\n\t"
                     "leaq 1f(%%rip), %%rax\n\t"
                     "pushq %%rax\n\t"
                     "lretq\n"
                     "1:\tmovl %2, %%eax\n\t"
                     "movl %%eax, %%ss\n\t"
                     "movl %%eax, %%ds\n\t"
                     "movl %%eax, %%es\n\t"
                     "xorl %%eax, %%eax\n\t"
                     "movl %%eax, %%fs\n\t"
                     "movl %%eax, %%gs"
                     :
                     : "m"(gdtr), "i"(KERNEL_CS), "i"(KERNEL_SS)
                     : "rax", "memory");
    __asm__ volatile("ltr %w0" ::"r"(TSS_SELECTOR));
}

void cpu_set_kernel_stack(u64 top)
{
    struct cpu *cpu = this_cpu();

    cpu->kernel_stack_top = top;
    percpu_this(cpu_segments)->tss.rsp[0] = top;
}
