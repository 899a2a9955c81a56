/*
 * Tasks that wait for too long: each wait is reported once, in the log (kernel/log/report.h).
 *
 * Too long is a wait that the kernel itself should end: for a lock, a page, a request. Waits for the
 * world (a signal can end them, or the clock will) and those marked by wait_may_last() are let be.
 */
#ifndef KERNEL_SCHED_HUNG_H
#define KERNEL_SCHED_HUNG_H

#include "lib/types.h"

#define HUNG_TASK_TIMEOUT_DEFAULT_SECS 10

/* From now on waits longer than this are reported, at most a quarter later; 0: none. May sleep. => 0, -EINVAL */
int hung_task_set_timeout_secs(u64 seconds);
u64 hung_task_timeout_secs(void);

/*
 * Looks now, and reports what has waited for longer than limit_ns and was not reported yet. Any context
 * in which no lock of the task list's kind is held. => reports, at most four: others are for the next look;
 * 0 also where the list is in use
 */
unsigned hung_task_check(u64 limit_ns);

#endif
