/*
 * The scheduler: switching, sleeping, waking, idling, and the accounts of time.
 *
 * Kernel code is not preempted: a task leaves its CPU in sched_sleep, sched_yield, task_exit, or,
 * at the end of its slice, on the way back to user mode. Interrupts are off from the choice of the
 * next task until that one runs.
 *
 * Sleeping, two actors:
 *     sleeper                                 waker (any CPU, interrupts too)
 *     1 prepare: sleep_prepared = true        1 makes the condition true
 *     2 tests its condition: false            2 sched_wake, under run_lock:
 *     3 sched_sleep, under run_lock:            state SLEEPING -> runnable, queued
 *         wake_pending -> goes on at once       else prepared  -> wake_pending = true
 *         else state = SLEEPING                 else nothing: it is awake and will test
 *     4 switches away
 * Between 3 and the end of 4 the sleeper may be woken while its stack is still in use (on_cpu). It
 * is then queued on the CPU that it is leaving and nowhere else, which takes it up again only after
 * the switch: see run_queue.h.
 *
 * A CPU's first task is its idle task. It is never queued; it may sleep too (the boot does), and
 * then it halts the CPU in its own way until somebody sets its state back.
 */
#include "kernel/cpu/clock.h"
#include "kernel/cpu/context.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/log/log.h"
#include "kernel/log/trace.h"
#include "kernel/sched/affinity.h"
#include "kernel/sched/grace.h"
#include "kernel/sched/run_queue.h"
#include "kernel/sync/atomic.h"
#include "mm/core/page_table.h"
#include "mm/core/tlb.h"

#define SLICE_NS 4000000ul

static PERCPU(struct task, idle_task);
static PERCPU(u64, cpu_user_ns); /* time in user mode; its own CPU writes, interrupts off */

/* ---- Switching ----------------------------------------------------------------------------- */

void sched_program_slice(void)
{
    const struct run_queue *rq = percpu_this(run_queue);
    const struct task *task = task_current();
    bool is_user = task->fpu_area != NULL;

    timer_set_slice(is_user && READ_ONCE(rq->n_queued) ? task->slice_end_ns : 0);
}

static void save_user_state(struct task *task)
{
    if (!task->fpu_area)
        return;
    fpu_save(task->fpu_area);
    task->fs_base = cpu_fs_base_read();
    task->gs_base = cpu_user_gs_base_read();
}

static void load_user_state(struct task *task)
{
    tlb_switch_space(task->space);
    if (task->stack)
        cpu_set_kernel_stack((u64)task->stack + KERNEL_STACK_BYTES);
    if (!task->fpu_area)
        return;
    fpu_restore(task->fpu_area);
    cpu_fs_base_write(task->fs_base);
    cpu_user_gs_base_write(task->gs_base);
}

/* First thing in every task that comes to run: the CPU has left the stack of the one before. */
static void finish_switch(void)
{
    struct task *before = percpu_this(run_queue)->switched_from;
    bool is_dead = before->state == TASK_DEAD;
    bool may_move = before->state == TASK_RUNNABLE && !before->is_pinned;
    cpumask_t allowed = may_move ? sched_allowed_cpus(before) : 0;

    atomic_store(&before->on_cpu, 0); /* from here on it may run elsewhere */
    if (is_dead)
        grace_defer(&before->death);
    if (may_move)
        run_queue_offer(allowed);
}

static void charge_user(struct task *task, u64 now)
{
    u64 ns = now - task->time_stamp_ns;

    task->user_ns += ns;
    *percpu_this(cpu_user_ns) += ns;
}

static void charge_switch(struct task *from, struct task *to)
{
    u64 now = clock_ns();

    /* An interrupt may have come from user mode without telling the accounts. */
    if (from->in_user)
        charge_user(from, now);
    else
        from->system_ns += now - from->time_stamp_ns;
    from->wait_since_ns = now;
    to->time_stamp_ns = now;
    to->slice_end_ns = now + SLICE_NS;
}

/* Linux's numbers: of the default priority, and of what a task does that loses its CPU. */
#define TRACE_PRIO    120
#define TRACE_WANTS   0
#define TRACE_SLEEPS  1
#define TRACE_IS_DEAD 16

static s32 traced_pid(const struct task *task)
{
    return task->is_idle ? 0 : (s32)task->pid;
}

static s64 traced_state(const struct task *task)
{
    return task->state == TASK_DEAD       ? TRACE_IS_DEAD
           : task->state == TASK_SLEEPING ? TRACE_SLEEPS
                                          : TRACE_WANTS;
}

static inline void trace_switch(const struct task *from, const struct task *to)
{
    TRACE(sched_switch, .prev_comm = trace_text16(from->name), .prev_pid = traced_pid(from),
          .prev_prio = TRACE_PRIO, .prev_state = traced_state(from),
          .next_comm = trace_text16(to->name), .next_pid = traced_pid(to), .next_prio = TRACE_PRIO);
}

static void switch_to(struct run_queue *rq, struct task *from, struct task *to)
{
    charge_switch(from, to);
    if (!to->is_idle)
        WRITE_ONCE(to->state, TASK_RUNNING);
    to->cpu = cpu_index();
    atomic_store(&to->on_cpu, 1);
    rq->switched_from = from;
    rq->switches++;
    trace_switch(from, to);

    save_user_state(from);
    this_cpu()->current = to;
    load_user_state(to);
    sched_program_slice();
    context_switch(&from->saved_rsp, to->saved_rsp);
    finish_switch(); /* `from` runs again, perhaps on another CPU */
}

/* The current task gives the CPU away, having been queued, put to sleep, or ended. Interrupts off.
 */
static void switch_away(void)
{
    struct run_queue *rq = percpu_this(run_queue);
    struct task *me = task_current();

    grace_note_quiescent();
    rq->need_resched = false;
    struct task *next = run_queue_take();

    if (!next)
        next = rq->idle;
    if (next != me) {
        switch_to(rq, me, next);
        return;
    }
    if (!me->is_idle)
        WRITE_ONCE(me->state, TASK_RUNNING);
    me->slice_end_ns = clock_ns() + SLICE_NS;
    sched_program_slice();
}

/* A new task's first steps. */
void sched_task_entry(void *arg)
{
    struct task *me = arg;

    finish_switch();
    irq_enable();
    me->start_fn(me->start_arg);
    task_exit(0);
}

void sched_yield(void)
{
    struct task *me = task_current();

    lockorder_might_sleep("sched_yield");
    bool irqs = irq_save_disable();

    run_queue_balance(clock_ns());
    if (!me->is_idle)
        run_queue_add(me, me->cpu);
    switch_away();
    irq_restore(irqs);
    cpu_pause(); /* yielding in a loop is spinning when there is nobody else on this CPU */
}

/* The last switch of a task; task_exit has done the rest. */
NORETURN void sched_leave_for_good(void)
{
    struct task *me = task_current();

    irq_disable();
    spin_lock(&me->run_lock);
    WRITE_ONCE(me->state, TASK_DEAD);
    spin_unlock(&me->run_lock);
    switch_away();
    panic("dead task %u runs", me->pid);
}

/* ---- Idling -------------------------------------------------------------------------------- */

/* One round of an idle task: run what there is, else halt until an interrupt. Interrupts off,
 * before and after. */
static void idle_once(struct task *me)
{
    struct run_queue *rq = percpu_this(run_queue);
    cpumask_t bit = 1ul << cpu_index();

    grace_note_quiescent();
    struct task *next = run_queue_take();

    if (next) {
        switch_to(rq, me, next);
        return;
    }
    atomic_or(&sched_idle_mask, bit);
    if (!READ_ONCE(rq->n_queued)) {
        cpu_wait_for_interrupt();
        irq_disable();
    }
    atomic_and(&sched_idle_mask, ~bit);
}

void sched_idle_loop(void)
{
    irq_disable();
    for (;;)
        idle_once(task_current());
}

/* ---- Sleeping and waking ------------------------------------------------------------------- */

void sched_sleep_prepare(void)
{
    struct task *me = task_current();
    bool irqs = spin_lock_irq(&me->run_lock);

    me->sleep_prepared = true;
    me->wake_pending = false;
    spin_unlock_irq(&me->run_lock, irqs);
}

void sched_sleep_cancel(void)
{
    struct task *me = task_current();
    bool irqs = spin_lock_irq(&me->run_lock);

    me->sleep_prepared = false;
    me->wake_pending = false;
    spin_unlock_irq(&me->run_lock, irqs);
}

/* => whether the task is to sleep now; else it was woken already. */
static bool begin_sleep(struct task *me)
{
    spin_lock(&me->run_lock);
    bool sleeps = me->sleep_prepared && !me->wake_pending;

    me->sleep_prepared = false;
    me->wake_pending = false;
    if (sleeps)
        WRITE_ONCE(me->state, TASK_SLEEPING);
    spin_unlock(&me->run_lock);
    return sleeps;
}

void sched_sleep(void)
{
    struct task *me = task_current();

    lockorder_might_sleep("sched_sleep");
    bool irqs = irq_save_disable();

    if (begin_sleep(me)) {
        if (!me->is_idle)
            switch_away();
        while (me->is_idle && READ_ONCE(me->state) == TASK_SLEEPING)
            idle_once(me);
    }
    irq_restore(irqs);
}

/* run_lock held, state SLEEPING. */
static void make_runnable_locked(struct task *task)
{
    if (task->is_idle) {
        WRITE_ONCE(task->state, TASK_RUNNING);
        if (task->cpu != cpu_index())
            ipi_send(task->cpu, IPI_VECTOR_RESCHEDULE);
        return;
    }
    run_queue_add(task, atomic_load(&task->on_cpu) ? task->cpu : run_queue_place(task));
}

bool sched_wake(struct task *task)
{
    bool irqs = spin_lock_irq(&task->run_lock);
    bool was_asleep = false;

    if (task->state == TASK_SLEEPING) {
        make_runnable_locked(task);
        was_asleep = true;
    } else if (task->sleep_prepared && !task->wake_pending) {
        task->wake_pending = true;
        was_asleep = true;
    }
    if (was_asleep)
        TRACE(sched_waking, .comm = trace_text16(task->name), .pid = traced_pid(task),
              .prio = TRACE_PRIO, .target_cpu = (s32)task->cpu);
    spin_unlock_irq(&task->run_lock, irqs);
    return was_asleep;
}

/* ---- Slices and user mode ------------------------------------------------------------------ */

void sched_timer_tick(void)
{
    const struct task *me = task_current();

    if (me->fpu_area && clock_ns() >= me->slice_end_ns)
        percpu_this(run_queue)->need_resched = true;
}

static void reschedule_interrupt(void *unused)
{
    (void)unused;
    sched_program_slice(); /* something was queued; an idle task looks by itself */
}

/* The task goes to user mode: the stretch that ends here was the kernel's. */
static void account_user_enter(struct task *me)
{
    if (me->in_user)
        return;
    u64 now = clock_ns();

    me->system_ns += now - me->time_stamp_ns;
    me->time_stamp_ns = now;
    me->in_user = true;
}

bool sched_user_return_hook(void)
{
    struct run_queue *rq = percpu_this(run_queue);
    struct task *me = task_current();

    grace_note_quiescent();
    lockorder_user_return();
    if (likely(!rq->need_resched)) {
        account_user_enter(me);
        return false;
    }
    rq->need_resched = false;
    run_queue_balance(clock_ns());
    run_queue_add(me, me->cpu);
    switch_away();
    return true;
}

void sched_account_user_exit(void)
{
    struct task *me = task_current();

    if (!me->in_user)
        return;
    u64 now = clock_ns();

    charge_user(me, now);
    me->time_stamp_ns = now;
    me->in_user = false;
}

/* ---- Beginning and numbers ----------------------------------------------------------------- */

static struct lock_held_list *held_by_current(void)
{
    struct task *me = task_current();

    return me ? &me->held : NULL;
}

void sched_init_cpu(void)
{
    struct task *idle = percpu_this(idle_task);

    task_init_idle(idle);
    idle->time_stamp_ns = clock_ns();
    run_queue_init_this(idle);
    timer_init_cpu();
    this_cpu()->current = idle;
    trace_init_cpu();
}

static struct trace_task traced_task(void)
{
    struct task *task = task_current();

    if (!task)
        return (struct trace_task){.name = "<boot>"};
    return (struct trace_task){.pid = traced_pid(task),
                               .name = task->is_idle ? "<idle>" : task->name,
                               .needs_resched = percpu_this(run_queue)->need_resched};
}

void sched_init(void)
{
    sched_init_cpu();
    lockorder_set_task_list(held_by_current);
    trace_set_task_source(traced_task);
    irq_register_fixed(IPI_VECTOR_RESCHEDULE, "reschedule", reschedule_interrupt, NULL);
    trap_set_user_exit(sched_account_user_exit);
    sched_report_init();
}

void task_times(const struct task *task, u64 *user_ns, u64 *system_ns)
{
    *user_ns = READ_ONCE(task->user_ns);
    *system_ns = READ_ONCE(task->system_ns);
    if (task == task_current())
        *system_ns += clock_ns() - task->time_stamp_ns; /* it is in the kernel, asking */
}

u64 sched_switch_count(void)
{
    u64 sum = 0;

    for (cpumask_t left = atomic_load(&sched_online_mask); left; left &= left - 1)
        sum += READ_ONCE(percpu_of(run_queue, __builtin_ctzl(left))->switches);
    return sum;
}

u64 sched_user_ns(unsigned cpu)
{
    return READ_ONCE(*percpu_of(cpu_user_ns, cpu));
}

u64 sched_idle_ns(unsigned cpu)
{
    const struct task *idle = percpu_of(idle_task, cpu);
    u64 idle_ns = READ_ONCE(idle->system_ns);

    if (READ_ONCE(cpu_get(cpu)->current) == idle)
        idle_ns += clock_ns() - READ_ONCE(idle->time_stamp_ns);
    return idle_ns;
}
