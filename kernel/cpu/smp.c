/*
 * CPUs that call each other: functions run on other CPUs, and stopping them for good.
 *
 * smp_call() without locks or memory: each CPU has one request (kernel code is not preempted, and
 * an interrupt handler may not call), and one mask of the CPUs whose request it still has to
 * answer. Setting the first bit of the mask sends the interrupt; whoever answers takes all bits at
 * once. A CPU that waits for its own request answers others in the loop, so CPUs that call each
 * other do not wait in a circle.
 */
#include "kernel/cpu/smp.h"

#include "kernel/cpu/clock.h"
#include "kernel/cpu/irq.h"
#include "kernel/cpu/setup.h"
#include "kernel/log/log.h"
#include "kernel/sync/atomic.h"

#define STOP_TIMEOUT_NS 100000000ul

struct call_request {
    void (*fn)(void *arg);
    void *arg;
    u32 n_left; /* CPUs that have not finished */
};

PERCPU(struct call_request, call_request);
PERCPU(cpumask_t, call_waiting); /* CPUs whose request is to be run here */
PERCPU(u64, stray_nmis);         /* for gdb */

/* Set by drivers/apic while one CPU runs. */
static const struct smp_ops *ops;

const struct smp_ops *smp_get_ops(void)
{
    return ops;
}

void smp_set_ops(const struct smp_ops *new_ops)
{
    ops = new_ops;
}

void smp_end_of_interrupt(void)
{
    if (ops)
        ops->end_of_interrupt();
}

void ipi_send(unsigned cpu, u8 vector)
{
    const struct cpu *target = cpu_get(cpu);

    if (ops && target)
        ops->send_ipi(target->apic_id, vector);
}

/* Runs what others want of this CPU. Interrupts off. */
static void answer_calls(void)
{
    cpumask_t callers = atomic_exchange(percpu_this(call_waiting), 0);

    while (callers) {
        unsigned caller = (unsigned)__builtin_ctzl(callers);
        struct call_request *request = percpu_of(call_request, caller);

        callers &= callers - 1;
        request->fn(request->arg);
        atomic_sub(&request->n_left, 1); /* the request is not ours from here on */
    }
}

static void on_call_interrupt(void *context)
{
    (void)context;
    answer_calls();
}

/* Waits for this CPU's request to be done by all, answering others meanwhile. */
static void wait_for_answers(const struct call_request *request)
{
    while (atomic_load(&request->n_left)) {
        if (atomic_load(percpu_this(call_waiting))) {
            bool irqs = irq_save_disable();
            answer_calls();
            irq_restore(irqs);
        }
        cpu_pause();
    }
}

static u32 count_cpus(cpumask_t mask)
{
    u32 n = 0;

    for (; mask; mask &= mask - 1)
        n++;
    return n;
}

void smp_call(cpumask_t mask, void (*fn)(void *arg), void *arg)
{
    struct cpu *self = this_cpu();
    struct call_request *request = percpu_this(call_request);

    mask &= cpu_online_mask() & ~(1ul << self->index);
    if (!mask)
        return;
    ASSERT(irqs_are_on() && self->irq_depth == 0);
    request->fn = fn;
    request->arg = arg;
    atomic_store(&request->n_left, count_cpus(mask));
    for (cpumask_t rest = mask; rest; rest &= rest - 1) {
        unsigned target = (unsigned)__builtin_ctzl(rest);
        if (atomic_or(percpu_of(call_waiting, target), 1ul << self->index) == 0)
            ipi_send(target, IPI_VECTOR_CALL);
    }
    wait_for_answers(request);
}

NORETURN static void halt_for_good(void)
{
    irq_disable();
    WRITE_ONCE(this_cpu()->is_stopped, true);
    for (;;)
        __asm__ volatile("hlt");
}

static void on_stop_interrupt(void *context)
{
    (void)context;
    halt_for_good();
}

/*
 * Nothing but a panic sends NMIs here. A stray one is counted and ignored: it may have hit the
 * log's own lock.
 */
static void on_nmi(struct trap_frame *frame)
{
    if (panic_in_progress()) {
        this_cpu()->stopped_rip = frame->rip;
        halt_for_good();
    }
    (*percpu_this(stray_nmis))++;
}

static bool others_have_stopped(cpumask_t mask)
{
    for (; mask; mask &= mask - 1) {
        if (!READ_ONCE(cpu_get((unsigned)__builtin_ctzl(mask))->is_stopped))
            return false;
    }
    return true;
}

void smp_stop_others(void)
{
    cpumask_t others = cpu_online_mask() & ~(1ul << cpu_index());

    if (!ops)
        return;
    for (cpumask_t rest = others; rest; rest &= rest - 1) {
        const struct cpu *target = cpu_get((unsigned)__builtin_ctzl(rest));
        if (ops->send_nmi)
            ops->send_nmi(target->apic_id);
        else
            ops->send_ipi(target->apic_id, IPI_VECTOR_STOP);
    }
    u64 deadline = clock_ns() + STOP_TIMEOUT_NS;
    while (!others_have_stopped(others) && clock_ns() < deadline)
        cpu_pause();
}

void smp_init_vectors(void)
{
    irq_register_fixed(IPI_VECTOR_CALL, "call", on_call_interrupt, NULL);
    irq_register_fixed(IPI_VECTOR_STOP, "stop", on_stop_interrupt, NULL);
    trap_register(TRAP_NMI, on_nmi);
}
