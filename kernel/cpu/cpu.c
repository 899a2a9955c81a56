/*
 * The CPUs of the machine: their per-CPU data, and the table that finds them.
 *
 * The boot CPU uses the .percpu section itself. cpu_init_boot() keeps a copy of what it looked like
 * before anybody wrote to it; the other CPUs' areas start as copies of that.
 */
#include "kernel/cpu/cpu.h"

#include "kernel/cpu/setup.h"
#include "kernel/sync/atomic.h"
#include "lib/string.h"

#define MSR_GS_BASE         0xc0000101u
#define MSR_KERNEL_GS_BASE  0xc0000102u
#define CPUID_APIC_ID_SHIFT 24

extern char __percpu_start[], __percpu_end[], __percpu_image[];
extern char boot_stack_top[];

PERCPU(struct cpu, cpu_self);

/* Written while CPUs start, one after the other; constant afterwards. */
static struct cpu *cpus[MAX_CPUS];
static unsigned n_online;
static cpumask_t online_mask;

unsigned cpu_count(void)
{
    return READ_ONCE(n_online);
}

struct cpu *cpu_get(unsigned index)
{
    return index < MAX_CPUS ? READ_ONCE(cpus[index]) : NULL;
}

cpumask_t cpu_online_mask(void)
{
    return atomic_load(&online_mask);
}

struct cpu *cpu_at_delta(u64 delta)
{
    return (struct cpu *)((char *)&cpu_self + delta);
}

void cpu_register(struct cpu *cpu)
{
    cpus[cpu->index] = cpu;
}

void cpu_set_online(struct cpu *cpu)
{
    atomic_or(&online_mask, 1ul << cpu->index);
    atomic_add(&n_online, 1);
    /* Last: smp_start_all() waits for it, and takes cpu_count() as the next CPU's index. */
    atomic_store(&cpu->is_online, true);
}

void cpu_init_this(struct cpu *cpu)
{
    gdt_load(cpu);
    msr_write(MSR_GS_BASE, (u64)cpu);
    msr_write(MSR_KERNEL_GS_BASE, 0);
    idt_load();
    cpu_enable_features();
    syscall_entry_enable();
}

void cpu_init_boot(void)
{
    memcpy(__percpu_image, __percpu_start, (size_t)(__percpu_end - __percpu_start));

    struct cpu *cpu = &cpu_self;
    cpu->self = cpu;
    cpu->kernel_stack_top = (u64)boot_stack_top;
    u32 a, b, c, d;
    __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(1), "c"(0));
    cpu->apic_id = b >> CPUID_APIC_ID_SHIFT;

    gdt_prepare(cpu);
    idt_build();
    cpu_detect_features();
    cpu_patch_smap();
    cpu_init_this(cpu);
    cpu_register(cpu);
    cpu_set_online(cpu);
    smp_init_vectors();
}
