/*
 * Sync points: named places in the code where a test parks a task until it says go on, and where,
 * in debug builds with sync.seed=N, a seeded generator decides whether to yield. A place costs one
 * load and branch when nothing is armed.
 */
#ifndef KERNEL_SCHED_SYNC_POINT_H
#define KERNEL_SCHED_SYNC_POINT_H

#include "lib/types.h"

struct task;

extern u32 sync_points_armed; /* > 0: some point is armed, or a seed is set */

#define SYNC_POINT(name)                            \
    do {                                            \
        if (unlikely(READ_ONCE(sync_points_armed))) \
            sync_point_reached(#name);              \
    } while (0)

/* The same where nothing may sleep: a parked task spins, and keeps its CPU from all others. Interrupts on. A seed is not asked. */
#define SYNC_POINT_SPIN(name)                       \
    do {                                            \
        if (unlikely(READ_ONCE(sync_points_armed))) \
            sync_point_reached_spinning(#name);     \
    } while (0)

void sync_point_reached(const char *name); /* may sleep */
void sync_point_reached_spinning(const char *name);

/* Tests. Arm: the next task that reaches the point (only `task`, if not NULL) parks there. */
void sync_point_arm(const char *name, struct task *task);
struct task *
sync_point_wait_parked(const char *name); /* sleeps until somebody is parked there. => who */
bool sync_point_is_parked(const char *name);
void sync_point_release(const char *name); /* lets the parked task go on and disarms */
void sync_point_reset(void);               /* releases and disarms all */
void sync_points_set_seed(u64 seed);       /* 0 = off */

#endif
