/*
 * timer_create(2): any number of timers, each with a signal of its own.
 */
#ifndef KERNEL_TASK_POSIX_TIMER_H
#define KERNEL_TASK_POSIX_TIMER_H

#include "kernel/task/signal.h"

enum { SIGEV_SIGNAL = 0, SIGEV_NONE = 1, SIGEV_THREAD = 2, SIGEV_THREAD_ID = 4 };

struct posix_timer_event {
    u32 notify; /* SIGEV_SIGNAL, SIGEV_NONE, SIGEV_THREAD_ID */
    u32 signal;
    u64 value; /* si_value; unless has_value: the timer's id */
    bool has_value;
    u32 tid; /* SIGEV_THREAD_ID */
    bool
        clock_is_wall; /* absolute times are of CLOCK_REALTIME; the caller turns them into clock_ns() */
};

/* All are about the current process's timers; none sleeps. Times in nanoseconds of clock_ns(); 0: not set. */

/* => id, -EAGAIN: too many, -ENOMEM, -EINVAL: no such thread */
int posix_timer_create(const struct posix_timer_event *event);
/* Sets it to go off at deadline_ns and every interval_ns. NULL: only reads. old: deadline_ns is what is left. => 0, -EINVAL: no such timer */
int posix_timer_change(s32 id, const struct signal_itimer *new_value, struct signal_itimer *old);
int posix_timer_is_wall(s32 id); /* => 0, 1, -EINVAL */
int posix_timer_overrun(s32 id); /* of the last signal taken. => number, -EINVAL */
int posix_timer_delete(s32 id);  /* => 0, -EINVAL */

#endif
