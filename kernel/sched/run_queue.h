/*
 * The run queues: which tasks wait for which CPU. For the files of this room only.
 *
 * Lock order: task->run_lock, then run_queue->lock; never two run queues at once. Both with
 * interrupts off.
 *
 * A task is in a queue exactly while its state is TASK_RUNNABLE, but for the moment when a CPU has
 * taken it out to move or run it. Only the CPU on which a task's stack is still in use (on_cpu) may
 * take it from a queue, and it is queued nowhere else until then, so no CPU ever waits for another
 * one to leave a stack.
 */
#ifndef KERNEL_SCHED_RUN_QUEUE_H
#define KERNEL_SCHED_RUN_QUEUE_H

#include "kernel/sched/task.h"

struct run_queue {
    struct spinlock lock;
    struct list tasks; /* first in, first out; guarded by lock */
    u32 n_queued;      /* written under lock, read by anybody */
    bool need_resched; /* own CPU, interrupts off: the slice of its user task is over */
    struct task *idle;
    struct task *switched_from; /* own CPU: for the next task to finish the switch */
    u64 switches;               /* own CPU writes */
    u64 next_balance_ns;        /* own CPU */
};

extern struct run_queue run_queue; /* per CPU */

extern cpumask_t sched_idle_mask; /* CPUs that halt, or are about to; a waker that clears a bit has
                                     claimed the CPU */
extern cpumask_t sched_online_mask; /* CPUs that have a run queue */

void run_queue_init_this(struct task *idle);
/* Puts a runnable task at the end of the CPU's queue and sees to it that the CPU notices.
 * Interrupts off. */
void run_queue_add(struct task *task, unsigned cpu);
/*
 * This CPU has left a task in its queue for another one: an idle CPU out of `allowed`, the task's, is told to come and
 * steal it, since it has no tick to look round by. Interrupts off.
 */
void run_queue_offer(cpumask_t allowed);
/* The CPU that a task which wakes up should run on. It may come back claimed from the idle mask. */
unsigned run_queue_place(const struct task *task);
/* The CPU for a new task: an idle one, else the one with the shortest queue. */
unsigned run_queue_place_new(const struct task *task);
/* The next task for this CPU, out of its own queue or stolen from a longer one; NULL: none.
 * Interrupts off. */
struct task *run_queue_take(void);
/* From time to time, on a CPU with more than its share: gives one waiting task away. Interrupts
 * off. */
void run_queue_balance(u64 now_ns);

/* kernel/sched/timer.c: the device also interrupts at the end of the running task's slice. 0: no
 * slice. Interrupts off. */
void timer_set_slice(u64 deadline_ns);
void timer_init_cpu(void);
/* kernel/sched/sched.c: the slice timer for the running task, after the queue behind it changed.
 * Interrupts off. */
void sched_program_slice(void);
/* kernel/sched/task.c */
void task_init_idle(struct task *task);
void task_free_dead(struct deferred *death);
/* kernel/sched/sched.c: the first function of every task; the last switch of one. */
void sched_task_entry(void *task);
NORETURN void sched_leave_for_good(void);
/* As task_for_each without the lock, for panics: the other CPUs stand still. */
void task_for_each_unlocked(void (*fn)(struct task *task, void *ctx), void *ctx);
/* kernel/sched/report.c: the paragraphs of a panic. */
void sched_report_init(void);

#endif
