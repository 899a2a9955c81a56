/*
 * Sync points: the table of armed points, parking, and the seeded yields.
 *
 * An armed point parks one task: the first that comes (and is the one asked for). It is then no
 * longer armed, and others pass, until it is armed again. The entry lives until the parked task has
 * left.
 */
#include "kernel/sched/sync_point.h"

#include "kernel/log/log.h"
#include "kernel/sched/wait.h"
#include "kernel/sync/atomic.h"
#include "lib/hash.h"
#include "lib/rng.h"
#include "lib/string.h"

#define MAX_POINTS   16
#define YIELD_ONE_IN 4 /* with a seed */

struct point {
    const char *name;    /* NULL: entry is free */
    struct task *only;   /* NULL: anybody */
    struct task *parked; /* NULL: still armed */
    bool is_released;
};

static LOCK_CLASS(points_class, "sync points");
static struct spinlock points_lock = SPINLOCK_INIT(&points_class);
static struct point points[MAX_POINTS]; /* guarded by points_lock */
static u64 yield_seed;                  /* 0 = off */

static struct wait_queue tests_queue = WAIT_QUEUE_INIT(tests_queue);
static struct wait_queue parked_queue = WAIT_QUEUE_INIT(parked_queue);

u32 sync_points_armed;

static void free_point_locked(struct point *p)
{
    p->name = NULL;
    atomic_sub(&sync_points_armed, 1);
}

/* An armed point of that name for this task; it parks there. => NULL: none */
static struct point *park_if_armed(const char *name, struct task *me)
{
    struct point *found = NULL;

    spin_lock(&points_lock);
    for (struct point *p = points; p < points + MAX_POINTS && !found; p++) {
        if (p->name && !p->parked && (!p->only || p->only == me) && strcmp(p->name, name) == 0)
            found = p;
    }
    if (found)
        found->parked = me;
    spin_unlock(&points_lock);
    return found;
}

static void leave(struct point *p)
{
    spin_lock(&points_lock);
    free_point_locked(p);
    spin_unlock(&points_lock);
}

/* The decision depends on the seed, the task and how many points it has come by: nothing else. */
static bool seed_says_yield(struct task *me)
{
    u64 seed = READ_ONCE(yield_seed);
    struct rng rng;

    if (!seed)
        return false;
    rng_seed(&rng, seed ^ mix64((u64)me->sync_id << 32 | ++me->sync_rng));
    return rng_one_in(&rng, YIELD_ONE_IN);
}

void sync_point_reached(const char *name)
{
    struct task *me = task_current();

    lockorder_might_sleep(name);
    if (seed_says_yield(me))
        sched_yield();
    struct point *p = park_if_armed(name, me);

    if (!p)
        return;
    wait_wake_all(&tests_queue);
    WAIT_FOR(&parked_queue, atomic_load(&p->is_released), "sync point %s", name, 0);
    leave(p);
}

void sync_point_reached_spinning(const char *name)
{
    struct point *p = park_if_armed(name, task_current());

    if (!p)
        return;
    wait_wake_all(&tests_queue);
    while (!atomic_load(&p->is_released))
        cpu_pause();
    leave(p);
}

void sync_point_arm(const char *name, struct task *task)
{
    bool is_full = true;

    spin_lock(&points_lock);
    for (struct point *p = points; p < points + MAX_POINTS && is_full; p++) {
        if (p->name)
            continue;
        *p = (struct point){.name = name, .only = task};
        atomic_add(&sync_points_armed, 1);
        is_full = false;
    }
    spin_unlock(&points_lock);
    if (is_full)
        panic("more than %d sync points armed", MAX_POINTS);
}

static struct task *parked_at(const char *name)
{
    struct task *task = NULL;

    spin_lock(&points_lock);
    for (struct point *p = points; p < points + MAX_POINTS && !task; p++) {
        if (p->name && p->parked && !p->is_released && strcmp(p->name, name) == 0)
            task = p->parked;
    }
    spin_unlock(&points_lock);
    return task;
}

struct task *sync_point_wait_parked(const char *name)
{
    struct task *task;

    WAIT_FOR(&tests_queue, (task = parked_at(name)) != NULL, "somebody at sync point %s", name, 0);
    return task;
}

bool sync_point_is_parked(const char *name)
{
    return parked_at(name) != NULL;
}

/* name NULL: all */
static void release_points(const char *name)
{
    spin_lock(&points_lock);
    for (struct point *p = points; p < points + MAX_POINTS; p++) {
        if (!p->name || (name && strcmp(p->name, name) != 0))
            continue;
        if (p->parked)
            atomic_store(&p->is_released, true);
        else
            free_point_locked(p);
    }
    spin_unlock(&points_lock);
    wait_wake_all(&parked_queue);
}

void sync_point_release(const char *name)
{
    release_points(name);
}

void sync_point_reset(void)
{
    release_points(NULL);
}

void sync_points_set_seed(u64 seed)
{
    u64 old = atomic_exchange(&yield_seed, seed);

    if (seed && !old)
        atomic_add(&sync_points_armed, 1);
    if (!seed && old)
        atomic_sub(&sync_points_armed, 1);
}
