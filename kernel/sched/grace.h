/*
 * Grace periods: "every CPU has passed through the scheduler, user mode or idle since I asked".
 * Kernel code is not preempted, so a lock-free reader needs to do nothing: it must just not sleep
 * while it looks. Readers are tasks: an interrupt handler, which may run on an idle CPU that nobody
 * waits for, looks only at what it has a reference to or a lock on.
 */
#ifndef KERNEL_SCHED_GRACE_H
#define KERNEL_SCHED_GRACE_H

#include "lib/deferred.h"
#include "lib/types.h"

void grace_init(
    void); /* starts the thread; after sched_init. Objects deferred earlier wait for it. */
/* object->free(object) runs after a grace period, in a kernel thread. Any context. Never sleeps,
 * never fails. */
void grace_defer(struct deferred *object);
void grace_wait(void);    /* sleeps for one whole grace period */
void grace_barrier(void); /* waits until everything deferred before has been freed. May sleep. */
void grace_note_quiescent(void); /* by the scheduler: this CPU passed a quiet point */

#endif
