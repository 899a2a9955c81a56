/*
 * Run queues: placing, taking, stealing, balancing. Rules in run_queue.h.
 *
 * Who is woken goes back to the CPU it ran on last if that is idle, else to an idle one, else it
 * queues up where it was. A CPU with nothing to do steals from the longest queue before it halts; a
 * CPU with a queue, at the end of slices, gives a task to a CPU with at least two fewer.
 *
 * Waking a halted CPU, two actors:
 *     waker                                   CPU that goes idle (interrupts off)
 *     1 queues the task (locked)              1 sets its bit in sched_idle_mask (locked: a full fence)
 *     2 looks at the bit: set -> IPI          2 looks at its queue: empty -> sti; hlt
 * One of the two sees the other; an IPI that comes before the hlt stays pending until the sti and ends it.
 */
#include "kernel/sched/run_queue.h"

#include "kernel/cpu/clock.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/sched/affinity.h"
#include "kernel/sync/atomic.h"

#define BALANCE_PERIOD_NS 16000000ul
#define NO_CPU            MAX_CPUS

static LOCK_CLASS(run_queue_class, "run queue");

PERCPU(struct run_queue, run_queue);
cpumask_t sched_idle_mask;
cpumask_t sched_online_mask;

void run_queue_init_this(struct task *idle)
{
    struct run_queue *rq = percpu_this(run_queue);

    spin_init(&rq->lock, &run_queue_class);
    list_init(&rq->tasks);
    rq->n_queued = 0;
    rq->idle = idle;
    atomic_or(&sched_online_mask, 1ul << cpu_index());
}

static struct run_queue *queue_of(unsigned cpu)
{
    return percpu_of(run_queue, cpu);
}

static bool runs_idle_task(unsigned cpu)
{
    return READ_ONCE(cpu_get(cpu)->current) == queue_of(cpu)->idle;
}

/* Waiting and running. */
static u32 load_of(unsigned cpu)
{
    return READ_ONCE(queue_of(cpu)->n_queued) + !runs_idle_task(cpu);
}

static unsigned lowest_cpu(cpumask_t mask)
{
    return mask ? (unsigned)__builtin_ctzl(mask) : NO_CPU;
}

/* Claims an idle CPU out of `allowed`, at or after `from`, going round. => NO_CPU if there is none
 */
static unsigned claim_idle(unsigned from, cpumask_t allowed)
{
    for (;;) {
        cpumask_t idle = atomic_load(&sched_idle_mask) & allowed;
        cpumask_t behind = idle & (~0ul << from);
        unsigned cpu = lowest_cpu(behind ? behind : idle);

        if (cpu == NO_CPU)
            return NO_CPU;
        if (atomic_and(&sched_idle_mask, ~(1ul << cpu)) & (1ul << cpu))
            return cpu;
    }
}

void run_queue_add(struct task *task, unsigned cpu)
{
    struct run_queue *rq = queue_of(cpu);

    spin_lock(&rq->lock);
    WRITE_ONCE(task->state, TASK_RUNNABLE);
    task->cpu = cpu;
    list_add_tail(&rq->tasks, &task->run_link);
    u32 n = rq->n_queued + 1;

    WRITE_ONCE(rq->n_queued, n);
    spin_unlock(&rq->lock);

    if (cpu == cpu_index()) {
        sched_program_slice();
        return;
    }
    bool was_idle = atomic_and(&sched_idle_mask, ~(1ul << cpu)) & (1ul << cpu);

    if (was_idle || n == 1) /* with more in the queue its slice timer runs already */
        ipi_send(cpu, IPI_VECTOR_RESCHEDULE);
}

void run_queue_offer(cpumask_t allowed)
{
    unsigned cpu = claim_idle(cpu_index(), allowed);

    if (cpu != NO_CPU)
        ipi_send(cpu, IPI_VECTOR_RESCHEDULE);
}

static unsigned least_loaded(cpumask_t allowed)
{
    unsigned best = NO_CPU;

    for (cpumask_t left = allowed; left; left &= left - 1) {
        unsigned cpu = lowest_cpu(left);

        if (best == NO_CPU || load_of(cpu) < load_of(best))
            best = cpu;
    }
    return best;
}

unsigned run_queue_place(const struct task *task)
{
    cpumask_t allowed = sched_allowed_cpus(task);
    bool may_stay = task->is_pinned || allowed & 1ul << task->cpu;

    if (task->is_pinned || (may_stay && load_of(task->cpu) == 0))
        return task->cpu;
    unsigned cpu = claim_idle(task->cpu, allowed);

    if (cpu != NO_CPU)
        return cpu;
    return may_stay ? task->cpu : least_loaded(allowed);
}

unsigned run_queue_place_new(const struct task *task)
{
    if (task->is_pinned)
        return task->cpu;
    cpumask_t allowed = sched_allowed_cpus(task);
    unsigned cpu = claim_idle(cpu_index(), allowed);

    return cpu == NO_CPU ? least_loaded(allowed) : cpu;
}

static bool may_move(const struct task *task, unsigned cpu)
{
    return !task->is_pinned && !atomic_load(&task->on_cpu) &&
           (!READ_ONCE(task->allowed_cpus) || sched_allowed_cpus(task) & 1ul << cpu);
}

/* The first task of the queue; for another CPU only one that may move there. rq->lock held.
 * => NULL: none */
static struct task *first_locked(struct run_queue *rq, unsigned cpu)
{
    struct task *task;

    list_for_each (task, &rq->tasks, run_link) {
        if (queue_of(cpu) == rq || may_move(task, cpu))
            return task;
    }
    return NULL;
}

/* A task for `cpu` out of rq, its own queue or another's. */
static struct task *take_from(struct run_queue *rq, unsigned cpu)
{
    struct task *task = NULL;

    if (!READ_ONCE(rq->n_queued))
        return NULL;
    spin_lock(&rq->lock);
    task = first_locked(rq, cpu);
    if (task) {
        list_del(&task->run_link);
        WRITE_ONCE(rq->n_queued, rq->n_queued - 1);
    }
    spin_unlock(&rq->lock);
    return task;
}

/* A CPU that runs its idle task with something queued has been told and is about to take it: left
 * alone. */
static struct task *steal(void)
{
    unsigned me = cpu_index(), longest = NO_CPU;

    for (cpumask_t left = atomic_load(&sched_online_mask) & ~(1ul << me); left; left &= left - 1) {
        unsigned cpu = lowest_cpu(left);
        u32 n = READ_ONCE(queue_of(cpu)->n_queued);

        if (n && !runs_idle_task(cpu) &&
            (longest == NO_CPU || n > READ_ONCE(queue_of(longest)->n_queued)))
            longest = cpu;
    }
    return longest == NO_CPU ? NULL : take_from(queue_of(longest), me);
}

struct task *run_queue_take(void)
{
    struct task *task = take_from(percpu_this(run_queue), cpu_index());

    return task ? task : steal();
}

void run_queue_balance(u64 now_ns)
{
    struct run_queue *rq = percpu_this(run_queue);

    if (now_ns < rq->next_balance_ns || !READ_ONCE(rq->n_queued))
        return;
    rq->next_balance_ns = now_ns + BALANCE_PERIOD_NS;
    unsigned me = cpu_index(), to = least_loaded(atomic_load(&sched_online_mask));

    if (to == me || load_of(to) + 2 > load_of(me))
        return;
    struct task *task = take_from(rq, to);

    if (task)
        run_queue_add(task, to);
}
