/*
 * Grace periods: "every CPU has passed through the scheduler, user mode or idle since I asked".
 * Kernel code is not preempted, so a lock-free reader needs to do nothing: it must just not sleep
 * while it looks. Readers are tasks: an interrupt handler, which may run on an idle CPU that nobody
 * waits for, looks only at what it has a reference to or a lock on.
 */
#ifndef KERNEL_SCHED_GRACE_H
#define KERNEL_SCHED_GRACE_H

#include "kernel/cpu/cpu.h"
#include "kernel/sync/atomic.h"
#include "lib/deferred.h"
#include "lib/types.h"

void grace_init(
    void); /* starts the thread; after sched_init. Objects deferred earlier wait for it. */
/* object->free(object) runs after a grace period, in a kernel thread. Any context. Never sleeps,
 * never fails. */
void grace_defer(struct deferred *object);
void grace_wait(void);    /* sleeps for one whole grace period */
void grace_barrier(void); /* waits until everything deferred before has been freed. May sleep. */

extern u64 grace_quiet_points; /* per CPU */

/*
 * By the scheduler: this CPU passed a quiet point. Locked, a full fence: nothing that this CPU looks up afterwards may
 * be read before the count is seen.
 */
static inline void grace_note_quiescent(void)
{
    atomic_add(percpu_this(grace_quiet_points), 1);
}

#endif
