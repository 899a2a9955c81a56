/*
 * Affinity. Placing, stealing and balancing respect the mask (run_queue.c). A task that is on a forbidden CPU already gives
 * it up by a short sleep: whoever is woken is placed anew.
 */
#include "kernel/sched/affinity.h"

#include "kernel/cpu/clock.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/sched/run_queue.h"
#include "kernel/sched/wait.h"
#include "kernel/sync/atomic.h"
#include "lib/errno.h"

#define NAP_NS 20000ul

cpumask_t sched_allowed_cpus(const struct task *task)
{
    cpumask_t online = atomic_load(&sched_online_mask),
              allowed = READ_ONCE(task->allowed_cpus) & online;
    return allowed ? allowed : online;
}

bool sched_is_on_forbidden_cpu(void)
{
    const struct task *me = task_current();
    return READ_ONCE(me->allowed_cpus) && !me->is_pinned &&
           !(sched_allowed_cpus(me) & 1ul << cpu_index());
}

void sched_leave_forbidden_cpu(void)
{
    while (sched_is_on_forbidden_cpu())
        sleep_until_ns(clock_ns() + NAP_NS);
}

int sched_set_affinity(struct task *task, cpumask_t mask)
{
    if (!(mask & atomic_load(&sched_online_mask)) || task->is_pinned)
        return -EINVAL;
    WRITE_ONCE(task->allowed_cpus, mask);
    u32 cpu = READ_ONCE(task->cpu);
    if (task == task_current())
        sched_leave_forbidden_cpu();
    else if (cpu != cpu_index() && !(mask & 1ul << cpu))
        ipi_send(cpu, IPI_VECTOR_RESCHEDULE); /* it comes by user_return */
    return 0;
}
