/*
 * The CPU: protections that are on, per-CPU data, calls between CPUs, traps and the way back to
 * user mode, access to memory that may not be there, stacks and clocks.
 */
#include "kernel/cpu/clock.h"
#include "kernel/cpu/context.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/cpu/uaccess.h"
#include "kernel/sched/task.h"
#include "kernel/sync/atomic.h"
#include "lib/string.h"
#include "mm/core/page_table.h"
#include "tests/kernel/ktest.h"

#define RFLAGS_TF     (1ul << 8)
#define RFLAGS_IOPL   (3ul << 12)
#define RFLAGS_NT     (1ul << 14)
#define RFLAGS_AC     (1ul << 18)
#define NON_CANONICAL 0x0000800000000000ul

extern char __text_start[], __text_end[], __rodata_start[], __rodata_end[], __data_start[],
    __bss_end[];

/* ---- Features and protections ---- */

static void check_features_here(void *wrong)
{
    const struct cpu_features *f = &cpu_features;
    u64 cr0 = CPU_READ_CR(0), cr4 = CPU_READ_CR(4);
    bool ok = (cr0 & CR0_WP) && !(cr0 & (CR0_TS | CR0_EM | CR0_CD | CR0_NW)) &&
              !!(cr4 & CR4_SMEP) == f->smep && !!(cr4 & CR4_SMAP) == f->smap &&
              !!(cr4 & CR4_UMIP) == f->umip && !!(cr4 & CR4_PKE) == f->pku &&
              !!(cr4 & CR4_PGE) == f->pge && !!(cr4 & CR4_OSXSAVE) == f->xsave &&
              (cr4 & CR4_OSFXSR) && !(cr4 & CR4_FSGSBASE) &&
              !!(msr_read(MSR_EFER) & EFER_NXE) == f->nx && (msr_read(MSR_EFER) & EFER_SCE);
    if (!ok)
        atomic_add((u32 *)wrong, 1);
}

KTEST(cpu, every_protection_the_cpu_has_is_on_on_every_cpu)
{
    u32 wrong = 0;

    check_features_here(&wrong);
    smp_call(cpu_online_mask(), check_features_here, &wrong);
    KEXPECT_EQ(wrong, 0);
}

KTEST(cpu, text_and_rodata_cannot_be_written)
{
    static u64 data = 1;

    KEXPECT_EQ(kernel_probe_write((u64)&data), 0);
    KEXPECT_EQ(kernel_probe_write((u64)__text_start), -EFAULT);
    KEXPECT_EQ(kernel_probe_write((u64)__text_end - 8), -EFAULT);
    KEXPECT_EQ(kernel_probe_write((u64)__rodata_start), -EFAULT);
    KEXPECT_EQ(kernel_probe_write((u64)__rodata_end - 8), -EFAULT);
}

struct mapping {
    bool is_present, writable, executable;
};

/* What the hardware makes of an address: permissions of all levels together. */
static struct mapping look_up(u64 addr)
{
    struct mapping m = {.is_present = true, .writable = true, .executable = true};
    const pte_t *table = phys_to_virt(CPU_READ_CR(3) & PTE_ADDRESS_MASK);

    for (int level = 3; level >= 0; level--) {
        pte_t entry = table[addr >> (PAGE_SHIFT + 9 * level) & (PTES_PER_TABLE - 1)];
        if (!(entry & PTE_PRESENT))
            return (struct mapping){0};
        m.writable &= !!(entry & PTE_WRITE);
        m.executable &= !(entry & PTE_NX);
        if (level > 0 && (entry & PTE_LARGE))
            break;
        table = phys_to_virt(pte_phys(entry));
    }
    return m;
}

KTEST(cpu, no_kernel_page_is_both_writable_and_executable)
{
    u64 both = 0;

    if (!cpu_features.nx)
        KTEST_SKIP("this CPU has no NX");
    for (u64 addr = (u64)__text_start; addr < (u64)__bss_end; addr += PAGE_SIZE) {
        struct mapping m = look_up(addr);
        if (m.is_present && m.writable && m.executable)
            both++;
    }
    KEXPECT_EQ(both, 0);
    KEXPECT(look_up((u64)__text_start).executable);
    KEXPECT(!look_up((u64)__rodata_start).executable);
    KEXPECT(!look_up((u64)__data_start).executable);
    KEXPECT(!look_up((u64)phys_to_virt(virt_to_phys(__text_start))).executable);
    KEXPECT(!look_up((u64)__builtin_frame_address(0)).executable);
}

KTEST(cpu, boot_stack_has_a_guard_page)
{
    KEXPECT(!look_up((u64)boot_stack_guard).is_present);
    KEXPECT(look_up((u64)boot_stack_guard + PAGE_SIZE).is_present);
}

/* ---- Per-CPU data, calls ---- */

PERCPU(u64, test_calls);
PERCPU(u64, test_initialised) = 0x1122334455667788;

static void count_call(void *arg)
{
    (*percpu_this(test_calls))++;
    atomic_add((u32 *)arg, 1);
}

static void reset_calls(void)
{
    for (unsigned i = 0; i < cpu_count(); i++)
        *percpu_of(test_calls, i) = 0;
}

KTEST(cpu, per_cpu_variables_are_apart_and_start_as_initialised)
{
    for (unsigned i = 0; i < cpu_count(); i++) {
        KEXPECT_EQ(*percpu_of(test_initialised, i), 0x1122334455667788);
        KEXPECT_EQ(cpu_get(i)->index, i);
        KEXPECT(cpu_get(i)->self == cpu_get(i));
        for (unsigned j = 0; j < i; j++)
            KEXPECT(percpu_of(test_calls, i) != percpu_of(test_calls, j));
    }
    KEXPECT(cpu_get(cpu_count()) == NULL);
    KEXPECT(percpu_this(test_calls) == percpu_of(test_calls, cpu_index()));
}

KTEST(cpu, call_reaches_every_other_cpu_once)
{
    u32 n = 0;

    reset_calls();
    unsigned self = cpu_index();
    smp_call(cpu_online_mask(), count_call, &n);
    KEXPECT_EQ(n, cpu_count() - 1);
    for (unsigned i = 0; i < cpu_count(); i++)
        KEXPECT_EQ(*percpu_of(test_calls, i), i == self ? 0 : 1);
    smp_call(0, count_call, &n);
    smp_call(1ul << cpu_index(), count_call, &n);
    KEXPECT_EQ(n, cpu_count() - 1);
}

#define STORM_CALLS 50

static u32 storm_total;

static void storm(void *arg)
{
    (void)arg;
    for (int i = 0; i < STORM_CALLS; i++)
        smp_call(cpu_online_mask(), count_call, &storm_total);
}

KTEST(cpu, cpus_that_all_call_each_other_do_not_deadlock)
{
    struct task *tasks[MAX_CPUS];
    unsigned n = cpu_count();

    storm_total = 0;
    for (unsigned i = 0; i < n; i++) {
        tasks[i] = task_create("storm", storm, NULL, (int)i);
        KASSERT(tasks[i] != NULL);
    }
    for (unsigned i = 0; i < n; i++)
        task_join(tasks[i]);
    KEXPECT_EQ(storm_total, n * (n - 1) * STORM_CALLS);
}

static u32 ipi_seen;

static void on_test_ipi(void *context)
{
    atomic_add((u32 *)context, 1);
}

KTEST(cpu, interrupt_vector_is_delivered_and_counted)
{
    int vector = irq_vector_alloc("test", on_test_ipi, &ipi_seen);

    KASSERT(vector >= IRQ_VECTOR_FIRST && vector <= IRQ_VECTOR_LAST);
    u32 before_seen = ipi_seen;
    bool irqs = irq_save_disable();
    unsigned cpu = cpu_index();
    u64 before = irq_count((unsigned)vector, cpu);
    ipi_send(cpu, (u8)vector);
    KEXPECT_EQ(ipi_seen, before_seen); /* interrupts are off */
    irq_restore(irqs);
    u64 until = clock_ns() + 1000000000;
    while (atomic_load(&ipi_seen) == before_seen && clock_ns() < until)
        cpu_pause();
    KEXPECT_EQ(ipi_seen, before_seen + 1);
    KEXPECT_EQ(irq_count((unsigned)vector, cpu), before + 1);
    irq_vector_free(vector);
}

KTEST(cpu, interrupt_vectors_run_out_with_an_error)
{
    int taken[IRQ_VECTOR_LAST - IRQ_VECTOR_FIRST + 2];
    unsigned n = 0;

    while (n < ARRAY_SIZE(taken)) {
        int vector = irq_vector_alloc("test", on_test_ipi, &ipi_seen);
        if (vector < 0) {
            KEXPECT_EQ(vector, -ENOSPC);
            break;
        }
        for (unsigned i = 0; i < n; i++)
            KEXPECT(taken[i] != vector);
        taken[n++] = vector;
    }
    KEXPECT(n > 0 && n < ARRAY_SIZE(taken));
    while (n > 0)
        irq_vector_free(taken[--n]);
}

/* ---- Memory that may not be there ---- */

KTEST(cpu, probing_bad_addresses_is_an_error)
{
    u64 word;
    static u64 good = 42;

    KEXPECT_EQ(kernel_probe_read((u64)&good, &word), 0);
    KEXPECT_EQ(word, 42);
    KEXPECT_EQ(kernel_probe_read(NON_CANONICAL, &word), -EFAULT);
    KEXPECT_EQ(kernel_probe_read(0xffffffffffff0000ul, &word), -EFAULT);
}

KTEST(cpu, copying_from_nowhere_copies_nothing)
{
    char buf[64];

    KEXPECT_EQ(uaccess_copy_in(buf, 0x10000, sizeof buf), sizeof buf);
    KEXPECT_EQ(uaccess_copy_out(0x10000, buf, sizeof buf), sizeof buf);
    KEXPECT_EQ(uaccess_copy_in(buf, NON_CANONICAL, sizeof buf), sizeof buf);
    KEXPECT_EQ(uaccess_clear(0x10000, 5), 5);
    KEXPECT_EQ(uaccess_copy_string(buf, 0x10000, sizeof buf), -EFAULT);
    KEXPECT_EQ(uaccess_touch_read(0x10000), -EFAULT);
    KEXPECT_EQ(uaccess_touch_write(0x10000), -EFAULT);
    u32 seen;
    KEXPECT_EQ(uaccess_read_u32(0x10000, &seen), -EFAULT);
    KEXPECT_EQ(uaccess_change_u32(0x10000, 0, 1, &seen), -EFAULT);
}

/* A stack has unmapped memory on both sides: its last bytes end at a hole. */
KTEST(cpu, copy_that_runs_into_a_hole_stops_at_the_byte)
{
    char *stack = kernel_stack_alloc();
    static char buf[64], back[64];

    KASSERT(stack != NULL);
    char *end = stack + KERNEL_STACK_BYTES;
    for (int i = 0; i < 64; i++)
        buf[i] = (char)(i + 1);
    for (size_t there = 0; there <= 24; there++) {
        memset(end - 32, 0, 32);
        KEXPECT_EQ(uaccess_copy_out((u64)end - there, buf, 40), 40 - there);
        KEXPECT(memcmp(end - there, buf, there) == 0);
        KEXPECT_EQ(uaccess_copy_in(back, (u64)end - there, 40), 40 - there);
        KEXPECT(memcmp(back, buf, there) == 0);
        KEXPECT_EQ(uaccess_clear((u64)end - there, 40), 40 - there);
        KEXPECT_EQ(there ? end[-1] : 0, 0);
    }
    kernel_stack_free(stack);
}

KTEST(cpu, string_copy_tells_end_cut_and_hole_apart)
{
    char *stack = kernel_stack_alloc();
    char buf[16];

    KASSERT(stack != NULL);
    char *end = stack + KERNEL_STACK_BYTES;
    memcpy(end - 4, "abc", 4);
    KEXPECT_EQ(uaccess_copy_string(buf, (u64)end - 4, sizeof buf), 3);
    KEXPECT_STREQ(buf, "abc");
    KEXPECT_EQ(uaccess_copy_string(buf, (u64)end - 4, 2), 2);
    end[-1] = 'd';
    KEXPECT_EQ(uaccess_copy_string(buf, (u64)end - 4, sizeof buf), -EFAULT);
    KEXPECT_EQ(uaccess_copy_string(buf, (u64)end - 4, 4), 4);
    kernel_stack_free(stack);
}

KTEST(cpu, word_is_compared_and_changed_at_once)
{
    static u32 word;
    u32 seen = 0;

    word = 5;
    KEXPECT_EQ(uaccess_change_u32((u64)&word, 4, 9, &seen), 0);
    KEXPECT_EQ(seen, 5);
    KEXPECT_EQ(word, 5);
    KEXPECT_EQ(uaccess_change_u32((u64)&word, 5, 9, &seen), 0);
    KEXPECT_EQ(word, 9);
    KEXPECT_EQ(uaccess_read_u32((u64)&word, &seen), 0);
    KEXPECT_EQ(seen, 9);
}

/* ---- The way back to user mode ---- */

static struct trap_frame sysret_frame(void)
{
    return (struct trap_frame){.rip = 0x401000,
                               .rcx = 0x401000,
                               .rflags = RFLAGS_IF | 2,
                               .r11 = RFLAGS_IF | 2,
                               .cs = USER_CS,
                               .ss = USER_SS,
                               .rsp = 0x7fffffffe000};
}

KTEST(cpu, sysret_is_used_for_an_ordinary_return_only)
{
    struct trap_frame f = sysret_frame();

    KEXPECT(trap_sysret_is_safe(&f));
    f.rcx = 0x402000; /* rip was changed: a signal, exec */
    KEXPECT(!trap_sysret_is_safe(&f));
    f = sysret_frame();
    f.rflags |= RFLAGS_TF;
    KEXPECT(!trap_sysret_is_safe(&f));
    f.r11 |= RFLAGS_TF; /* stepped */
    KEXPECT(!trap_sysret_is_safe(&f));
    f = sysret_frame();
    f.cs = KERNEL_CS;
    KEXPECT(!trap_sysret_is_safe(&f));
    f = sysret_frame();
    f.rflags = f.r11 = 2; /* interrupts off */
    KEXPECT(!trap_sysret_is_safe(&f));
}

KTEST(cpu, sysret_never_sees_a_non_canonical_address)
{
    static const u64 bad[] = {NON_CANONICAL,  NON_CANONICAL + 2,    0x7ffffffffffful + 1,
                              ~NON_CANONICAL, 0x8000000000000000ul, 0xffff800000000000ul,
                              (u64)-1};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct trap_frame f = sysret_frame();
        f.rip = f.rcx = bad[i];
        KEXPECT(!trap_sysret_is_safe(&f));
        KEXPECT(!trap_frame_sanitise(&f));
    }
    struct trap_frame f = sysret_frame();
    f.rip = f.rcx = NON_CANONICAL - 1;
    KEXPECT(trap_sysret_is_safe(&f));
}

KTEST(cpu, frame_for_user_mode_cannot_carry_privileges)
{
    struct trap_frame f = sysret_frame();

    f.cs = KERNEL_CS;
    f.ss = KERNEL_SS;
    f.rflags = ~0ul & ~(u64)RFLAGS_IF;
    KEXPECT(trap_frame_sanitise(&f));
    KEXPECT_EQ(f.cs, USER_CS);
    KEXPECT_EQ(f.ss, USER_SS);
    KEXPECT(f.rflags & RFLAGS_IF);
    KEXPECT_EQ(f.rflags & (RFLAGS_IOPL | RFLAGS_NT | 1ul << 17 | 1ul << 19 | 1ul << 20), 0);
    KEXPECT(f.rflags & RFLAGS_AC); /* the program's own */
}

static u64 breakpoint_rip, breakpoint_interrupts;

static void on_breakpoint(struct trap_frame *frame)
{
    breakpoint_rip = frame->rip;
    breakpoint_interrupts = irqs_are_on();
    frame->rax = 77;
}

KTEST(cpu, trap_handler_sees_and_changes_the_registers)
{
    u64 rax, rip;

    trap_register(TRAP_BREAKPOINT, on_breakpoint);
    __asm__ volatile("xorl %%eax, %%eax\n\tint3\n1:\tleaq 1b(%%rip), %1"
                     : "=&a"(rax), "=r"(rip)::"memory");
    KEXPECT_EQ(rax, 77);
    KEXPECT_EQ(breakpoint_rip, rip);
    KEXPECT(breakpoint_interrupts);
    irq_disable();
    __asm__ volatile("int3" : "=a"(rax)::"memory");
    bool stayed_off = !irqs_are_on();
    irq_enable();
    trap_register(TRAP_BREAKPOINT, NULL);
    KEXPECT(stayed_off);
    KEXPECT(!breakpoint_interrupts);
}

/* ---- Stacks, extended state, clock ---- */

static u64 home_rsp, away_rsp, away_arg;

static void go_away(void *arg)
{
    away_arg = (u64)arg;
    context_switch(&away_rsp, home_rsp);
    away_arg++;
    context_switch(&away_rsp, home_rsp);
}

KTEST(cpu, stacks_are_switched_there_and_back)
{
    char *stack = kernel_stack_alloc();

    KASSERT(stack != NULL);
    irq_disable();
    u64 fresh = context_prepare(stack + KERNEL_STACK_BYTES, go_away, (void *)1000);
    context_switch(&home_rsp, fresh);
    u64 first = away_arg;
    context_switch(&home_rsp, away_rsp);
    irq_enable();
    KEXPECT_EQ(first, 1000);
    KEXPECT_EQ(away_arg, 1001);
    kernel_stack_free(stack);
}

KTEST(cpu, extended_state_is_saved_and_restored)
{
    static u8 fresh[4096] __attribute__((aligned(64))), saved[4096] __attribute__((aligned(64)));
    u32 pkru = 0;

    KASSERT(cpu_features.xsave_size >= 512 && cpu_features.xsave_size <= sizeof fresh);
    bool irqs = irq_save_disable();
    fpu_state_init(fresh);
    fresh[160] = 0x5a; /* xmm0 */
    fpu_restore(fresh);
    if (cpu_features.pku)
        __asm__ volatile("rdpkru" : "=a"(pkru) : "c"(0) : "rdx");
    memset(saved, 0, sizeof saved);
    fpu_save(saved);
    irq_restore(irqs);
    KEXPECT_EQ(*(u16 *)saved, 0x37f);         /* x87 control word */
    KEXPECT_EQ(*(u32 *)(saved + 24), 0x1f80); /* MXCSR */
    KEXPECT_EQ(saved[160], 0x5a);
    KEXPECT_EQ(pkru, cpu_features.pku ? PKRU_DEFAULT : 0);
}

KTEST(cpu, clock_follows_the_time_stamp_counter_exactly)
{
    u64 hz = clock_frequency();
    u64 t0 = tsc_read(), n0 = clock_ns(), t1 = tsc_read();
    u64 last = n0;

    for (int i = 0; i < 1000; i++) {
        u64 now = clock_ns();
        KEXPECT(now >= last);
        last = now;
    }
    u64 t2 = tsc_read(), n1 = clock_ns(), t3 = tsc_read();
    /* n1 - n0 lies between the shortest and the longest time it can have been, rounding aside. */
    u64 shortest = (u64)((unsigned __int128)(t2 - t1) * 1000000000),
        longest = (t3 - t0) * 1000000000ul;
    KEXPECT((n1 - n0 + 1) * hz >= shortest);
    KEXPECT((n1 - n0) * hz <= longest + hz);
}
