/*
 * On which CPUs a task may run.
 */
#ifndef KERNEL_SCHED_AFFINITY_H
#define KERNEL_SCHED_AFFINITY_H

#include "kernel/sched/task.h"

/* CPUs online that the task may use. Any context. */
cpumask_t sched_allowed_cpus(const struct task *task);
/*
 * Limits the task to `mask`, at least one CPU of which is online. A program that runs elsewhere moves on its way back to
 * user mode; the current task has moved when the call returns. Sleeps.
 * => 0; -EINVAL: none of the CPUs is online, or the task is pinned by the kernel
 */
int sched_set_affinity(struct task *task, cpumask_t mask);
/* Is the current task where it may not be? Then _leave moves it; sleeps. */
bool sched_is_on_forbidden_cpu(void);
void sched_leave_forbidden_cpu(void);

#endif
