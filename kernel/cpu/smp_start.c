/*
 * Starting the other CPUs, one after the other.
 *
 *   this CPU                                      the new one
 *   area, stacks, GDT and TSS for it
 *   arguments into the trampoline's page
 *   INIT, start-up IPI                      ->    boot/trampoline.S: real mode to long mode
 *                                                 takes the arguments, if they are for it
 *                                                 smp_cpu_main(): loads what was prepared
 *   waits for is_online                     <-    is_online
 *   the next one                                  entry()
 *
 * A CPU that does not answer in time keeps what was prepared for it: should it wake up later, it
 * finds the page closed (its arguments belong to another CPU), and halts.
 *
 * Source: Intel SDM vol. 3, 8.4.4 (INIT-SIPI-SIPI); MultiProcessor Specification 1.4, B.4.
 */
#include "kernel/cpu/clock.h"
#include "kernel/cpu/setup.h"
#include "kernel/cpu/smp.h"
#include "kernel/log/log.h"
#include "kernel/sync/atomic.h"
#include "lib/string.h"

#define DIRECT_BASE 0xffff800000000000ul /* DIRECT_MAP_BASE of mm/core, which is above us */

#define INIT_DELAY_NS        10000000ul
#define STARTUP_DELAY_NS     200000ul
#define ANSWER_TIMEOUT_NS    5000000000ul /* a loaded host may be slow to run it at all */
#define UNDER_WAY_TIMEOUT_NS 30000000000ul
#define STARTUP_ATTEMPTS     2

/* At the end of the trampoline (boot/trampoline.S knows the offsets). */
struct trampoline_arguments {
    u64 boot_cr3; /* identity map of low memory, and the kernel */
    u64 efer;
    u64 kernel_cr3;
    u64 stack_top;
    struct cpu *cpu;
    u32 apic_id; /* whom all this is for */
    u32 taken;
};
_Static_assert(sizeof(struct trampoline_arguments) == 48, "boot/trampoline.S");

extern char ap_trampoline_start[], ap_trampoline_arguments[], ap_trampoline_end[];
extern char __percpu_start[], __percpu_end[], __percpu_image[];
extern char boot_pml4[];

const struct smp_ops *smp_get_ops(void);
NORETURN void smp_cpu_main(struct cpu *cpu); /* called from boot/trampoline.S */

static void *(*alloc_pages)(unsigned n);
static void *(*alloc_stack)(void);
static void (*cpu_entry)(void);

/* Stacks with guard pages for the faults that bring their own. */
static bool give_ist_stacks(struct cpu *cpu)
{
    for (int slot = IST_DOUBLE_FAULT; slot < IST_COUNT; slot++) {
        char *stack = alloc_stack();
        if (!stack)
            return false;
        gdt_set_ist(cpu, slot, stack + CPU_STACK_BYTES);
    }
    return true;
}

void smp_set_allocator(void *(*pages)(unsigned n), void *(*stack)(void))
{
    alloc_pages = pages;
    alloc_stack = stack;
    if (!give_ist_stacks(this_cpu()))
        log_warn("cpu 0: no memory for guarded fault stacks, keeping the ones from boot");
}

static void wait_ns(u64 ns)
{
    u64 until = clock_ns() + ns;

    while (clock_ns() < until)
        cpu_pause();
}

/* => NULL when out of memory */
static struct cpu *prepare_cpu(unsigned index, u32 apic_id)
{
    size_t bytes = (size_t)(__percpu_end - __percpu_start);
    char *area = alloc_pages((unsigned)DIV_ROUND_UP(bytes, PAGE_SIZE));
    char *stack = alloc_stack();

    if (!area || !stack)
        return NULL;
    memcpy(area, __percpu_image, bytes);
    struct cpu *cpu = cpu_at_delta((u64)(area - __percpu_start));
    cpu->self = cpu;
    cpu->percpu_delta = (u64)(area - __percpu_start);
    cpu->index = index;
    cpu->apic_id = apic_id;
    cpu->kernel_stack_top = (u64)stack + CPU_STACK_BYTES;
    gdt_prepare(cpu);
    return give_ist_stacks(cpu) ? cpu : NULL;
}

static bool wait_online(const struct cpu *cpu, u64 ns)
{
    u64 until = clock_ns() + ns;

    while (!atomic_load(&cpu->is_online)) {
        if (clock_ns() >= until)
            return false;
        cpu_pause();
    }
    return true;
}

static bool start_cpu(struct cpu *cpu, phys_t trampoline_phys)
{
    const struct smp_ops *ops = smp_get_ops();
    char *page = (char *)DIRECT_BASE + trampoline_phys;
    struct trampoline_arguments *args =
        (void *)(page + (ap_trampoline_arguments - ap_trampoline_start));

    *args = (struct trampoline_arguments){
        .boot_cr3 = (u64)boot_pml4,
        .efer = msr_read(MSR_EFER) & ~EFER_LMA,
        .kernel_cr3 = CPU_READ_CR(3),
        .stack_top = cpu->kernel_stack_top,
        .cpu = cpu,
        .apic_id = cpu->apic_id,
    };
    atomic_fence();
    ops->send_init(cpu->apic_id);
    wait_ns(INIT_DELAY_NS);
    for (int attempt = 0; attempt < STARTUP_ATTEMPTS && !atomic_load(&args->taken); attempt++) {
        ops->send_startup(cpu->apic_id, (u8)(trampoline_phys >> PAGE_SHIFT));
        wait_ns(STARTUP_DELAY_NS);
    }
    if (wait_online(cpu, ANSWER_TIMEOUT_NS))
        return true;
    if (atomic_exchange(&args->taken, 1) == 0)
        return false; /* the page is closed to it now */
    if (!wait_online(cpu, UNDER_WAY_TIMEOUT_NS))
        panic("cpu %u: got stuck while starting (APIC id %u)", cpu->index, cpu->apic_id);
    return true;
}

unsigned smp_start_all(const u32 *apic_ids, unsigned n, unsigned max, phys_t trampoline_phys,
                       void (*entry)(void))
{
    ASSERT(alloc_pages && smp_get_ops());
    ASSERT(trampoline_phys && trampoline_phys < (1ul << 20) &&
           IS_ALIGNED(trampoline_phys, PAGE_SIZE));
    max = MIN(max, (unsigned)MAX_CPUS);
    cpu_entry = entry;
    memcpy((char *)DIRECT_BASE + trampoline_phys, ap_trampoline_start,
           (size_t)(ap_trampoline_end - ap_trampoline_start));

    for (unsigned i = 0; i < n && cpu_count() < max; i++) {
        if (apic_ids[i] == this_cpu()->apic_id)
            continue;
        struct cpu *cpu = prepare_cpu(cpu_count(), apic_ids[i]);
        if (!cpu) {
            log_error("cpu %u: no memory to start it (APIC id %u)", cpu_count(), apic_ids[i]);
            break;
        }
        cpu_register(cpu);
        if (!start_cpu(cpu, trampoline_phys))
            log_error("cpu %u: does not answer (APIC id %u), left out", cpu->index, apic_ids[i]);
    }
    return cpu_count();
}

void smp_cpu_main(struct cpu *cpu)
{
    cpu_init_this(cpu);
    smp_get_ops()->init_this_cpu();
    cpu_set_online(cpu);
    cpu_entry();
    panic("cpu %u: its entry function returned", cpu->index);
}
