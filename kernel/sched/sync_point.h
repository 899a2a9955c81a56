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

/* The names of all of them lie in a section of their own, one string behind the other. */
#define SYNC_POINT(name)                                                                        \
    do {                                                                                        \
        static const char name_[] __attribute__((section(".sync_points"), aligned(1))) = #name; \
        if (unlikely(READ_ONCE(sync_points_armed)))                                             \
            sync_point_reached(name_);                                                          \
    } while (0)

/* The same where nothing may sleep: a parked task spins, and keeps its CPU from all others, so programs cannot arm it.
 * Interrupts on. A seed is not asked. */
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

/*
 * For programs (fs/sys/debug_sync.c). These points park whom the program says, until it says go on or a fatal signal comes;
 * one for each name at a time. pid 0: anybody but the caller.
 * => arm: 0, -ENOENT: no such name, -EBUSY: armed already, -ENOSPC;  go: 0, -ENOENT: not armed, nobody parked;
 *    wait: 0, -ENOENT, -EINTR: a fatal signal
 */
int sync_point_arm_for_program(const char *name, u32 pid);
int sync_point_wait_for_program(const char *name);
int sync_point_go_for_program(const char *name);
void sync_point_reset_for_programs(void); /* go on, all of them */

/* The next name behind `name` (NULL: the first) of those that programs can arm, NULL at the end. */
const char *sync_point_next_name(const char *name);
enum sync_point_state { SYNC_POINT_OFF, SYNC_POINT_ARMED, SYNC_POINT_PARKED };
/* What a program has made of it. *pid: whom it waits for, or who is parked. */
enum sync_point_state sync_point_state_for_program(const char *name, u32 *pid);

#endif
