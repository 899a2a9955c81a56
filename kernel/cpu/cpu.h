/*
 * One processor as the kernel sees it: identity, per-CPU data, small instructions.
 *
 * GS base points at the CPU's own `struct cpu`, which lies in its copy of the .percpu section. The
 * boot CPU's copy is the section itself. User code runs with its own GS base; entry and exit swap
 * them.
 */
#ifndef KERNEL_CPU_CPU_H
#define KERNEL_CPU_CPU_H

#include "lib/types.h"

#define MAX_CPUS 64
typedef u64 cpumask_t; /* bit n = CPU n */

struct task;

struct cpu {
    struct cpu *self;     /* offset 0, so that %gs:0 is this_cpu() */
    struct task *current; /* offset 8: the task that runs here */
    u64 kernel_stack_top; /* offset 16: where SYSCALL and the TSS enter */
    u64 user_rsp_scratch; /* offset 24: SYSCALL entry only */
    u64 percpu_delta;     /* add to a .percpu address to get this CPU's copy */
    u32 index;            /* 0 … cpu_count() - 1 */
    u32 apic_id;
    u32 irq_depth; /* > 0 inside an interrupt handler */
    bool is_online;
    bool is_stopped; /* halted for good by another CPU's panic */
    u64 stopped_rip; /* ... which came upon it here; 0: not known */
};

static inline struct cpu *this_cpu(void)
{
    struct cpu *cpu;
    __asm__ volatile("movq %%gs:0, %0" : "=r"(cpu));
    return cpu;
}

static inline unsigned cpu_index(void)
{
    return this_cpu()->index;
}

unsigned cpu_count(void);            /* CPUs online; fixed once smp_start_all() is done */
struct cpu *cpu_get(unsigned index); /* NULL if there is no such CPU */
cpumask_t cpu_online_mask(void);

/*
 * Every stack that kernel/cpu asks for, and the boot stack, has this size (and a guard page below).
 */
#define CPU_STACK_BYTES 16384
extern char boot_stack_guard[4096]; /* below the boot CPU's first stack: to be left unmapped */

/*
 * The boot CPU's first call: GDT, TSS, IDT, per-CPU data, features. The others do the same in
 * smp_start_all(). Before it nothing of the kernel works, not even panic().
 */
void cpu_init_boot(void);

/*
 * Per-CPU variables: PERCPU(u64, name); then *percpu_this(name), *percpu_of(name, cpu_index).
 * Kernel code is not preempted: the pointer stays right until the caller sleeps.
 */
#define PERCPU(type, name) __attribute__((section(".percpu"), used)) __typeof__(type) name
#define percpu_this(name)  ((__typeof__(&(name)))((char *)&(name) + this_cpu()->percpu_delta))
#define percpu_of(name, index) \
    ((__typeof__(&(name)))((char *)&(name) + cpu_get(index)->percpu_delta))

static inline void
cpu_pause(void) /* in every spin loop: under round-robin TCG it lets the next CPU run */
{
    __asm__ volatile("pause" ::: "memory");
}

static inline bool irq_save_disable(void) /* => whether interrupts were on */
{
    u64 flags;
    __asm__ volatile("pushfq; popq %0; cli" : "=r"(flags)::"memory");
    return flags & (1u << 9);
}

static inline void irq_restore(bool were_on)
{
    if (were_on)
        __asm__ volatile("sti" ::: "memory");
}

static inline bool irqs_are_on(void)
{
    u64 flags;
    __asm__ volatile("pushfq; popq %0" : "=r"(flags)::"memory");
    return flags & (1u << 9);
}

static inline void irq_enable(void)
{
    __asm__ volatile("sti" ::: "memory");
}
static inline void irq_disable(void)
{
    __asm__ volatile("cli" ::: "memory");
}
/*
 * Enables interrupts and halts in one step; returns after the next interrupt, interrupts on.
 * QEMU adds the instructions since the time was last read to its clock only after it has marked the CPU as halted.
 * Where its other thread looks in between, --icount moves time on to the next timer too early and adds them on top:
 * reading the time here leaves two of them.
 */
static inline void cpu_wait_for_interrupt(void)
{
    __asm__ volatile("rdtsc; sti; hlt" ::: "rax", "rdx", "memory");
}

static inline void port_out8(u16 port, u8 v)
{
    __asm__ volatile("outb %0, %1" ::"a"(v), "Nd"(port));
}
static inline void port_out16(u16 port, u16 v)
{
    __asm__ volatile("outw %0, %1" ::"a"(v), "Nd"(port));
}
static inline void port_out32(u16 port, u32 v)
{
    __asm__ volatile("outl %0, %1" ::"a"(v), "Nd"(port));
}
static inline u8 port_in8(u16 port)
{
    u8 v;
    __asm__ volatile("inb %1, %0" : "=a"(v) : "Nd"(port));
    return v;
}
static inline u16 port_in16(u16 port)
{
    u16 v;
    __asm__ volatile("inw %1, %0" : "=a"(v) : "Nd"(port));
    return v;
}
static inline u32 port_in32(u16 port)
{
    u32 v;
    __asm__ volatile("inl %1, %0" : "=a"(v) : "Nd"(port));
    return v;
}

static inline u64 msr_read(u32 msr)
{
    u32 lo, hi;
    __asm__ volatile("rdmsr" : "=a"(lo), "=d"(hi) : "c"(msr));
    return (u64)hi << 32 | lo;
}
static inline void msr_write(u32 msr, u64 v)
{
    __asm__ volatile("wrmsr" ::"c"(msr), "a"((u32)v), "d"((u32)(v >> 32)) : "memory");
}

/* CPU features found at boot and switched on where present (same on all CPUs). */
struct cpu_features {
    bool nx, smep, smap, umip, pku, fsgsbase, pge, xsave, avx, rdtscp, invariant_tsc, gib_pages;
    bool machine_check, erms;
    u32 xsave_size; /* bytes of an XSAVE area for the enabled components; 512 for FXSAVE */
    u64 xsave_mask;
    u32 pkru_offset; /* of PKRU in an XSAVE area; 0 where it is not part of it */
    u32 phys_bits;
    char brand[49];
};
extern struct cpu_features cpu_features;

/*
 * The protection key of execute-only mappings: PKRU denies all data access to it (Intel SDM vol. 3,
 * 4.6.2).
 */
#define PKEY_EXECUTE_ONLY 1
#define PKRU_DEFAULT      0x4u /* access-disable bit of key 1 */

#define CR0_MP         (1ul << 1)
#define CR0_EM         (1ul << 2)
#define CR0_TS         (1ul << 3)
#define CR0_NE         (1ul << 5)
#define CR0_WP         (1ul << 16)
#define CR0_AM         (1ul << 18)
#define CR0_NW         (1ul << 29) /* these two switch the caches off; INIT sets them */
#define CR0_CD         (1ul << 30)
#define CR4_MCE        (1ul << 6)
#define CR4_PGE        (1ul << 7)
#define CR4_OSFXSR     (1ul << 9)
#define CR4_OSXMMEXCPT (1ul << 10)
#define CR4_UMIP       (1ul << 11)
#define CR4_FSGSBASE   (1ul << 16)
#define CR4_OSXSAVE    (1ul << 18)
#define CR4_SMEP       (1ul << 20)
#define CR4_SMAP       (1ul << 21)
#define CR4_PKE        (1ul << 22)

#define MSR_EFER 0xc0000080u
#define EFER_SCE (1ul << 0)
#define EFER_NXE (1ul << 11)
#define EFER_LMA (1ul << 10)

#define CPU_READ_CR(n)                                                 \
    ({                                                                 \
        u64 cr_;                                                       \
        __asm__ volatile("movq %%cr" #n ", %0" : "=r"(cr_)::"memory"); \
        cr_;                                                           \
    })
#define CPU_WRITE_CR(n, v) __asm__ volatile("movq %0, %%cr" #n ::"r"((u64)(v)) : "memory")

#endif
