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
#include "lib/errno.h"
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

    bool
        is_programs; /* armed by a program: it says by number who parks, and a fatal signal ends it */
    u32 only_pid;    /* 0: anybody but `not_me` */
    const struct task *not_me; /* who armed it; compared, never followed */
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

static bool is_for(const struct point *p, const struct task *me)
{
    if (p->is_programs)
        return p->only_pid ? p->only_pid == me->pid : p->not_me != me;
    return !p->only || p->only == me;
}

/* An armed point of that name for this task; it parks there. => NULL: none */
static struct point *park_if_armed(const char *name, struct task *me)
{
    struct point *found = NULL;

    spin_lock(&points_lock);
    for (struct point *p = points; p < points + MAX_POINTS && !found; p++) {
        if (p->name && !p->parked && is_for(p, me) && strcmp(p->name, name) == 0)
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

static void wait_until_released(struct point *p)
{
    struct waiter w;

    wait_begin(&parked_queue, &w, "sync point %s", (u64)p->name, 0);
    while (!atomic_load(&p->is_released)) {
        if (!p->is_programs)
            wait_sleep(&w);
        else if (wait_sleep_killable(&w, 0))
            break;
    }
    wait_end(&parked_queue, &w);
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
    wait_until_released(p);
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

/* => false: the table is full */
static bool arm_locked(const struct point *new)
{
    for (struct point *p = points; p < points + MAX_POINTS; p++) {
        if (p->name)
            continue;
        *p = *new;
        atomic_add(&sync_points_armed, 1);
        return true;
    }
    return false;
}

void sync_point_arm(const char *name, struct task *task)
{
    bool is_armed;

    spin_lock(&points_lock);
    is_armed = arm_locked(&(struct point){.name = name, .only = task});
    spin_unlock(&points_lock);
    if (!is_armed)
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

    WAIT_HOWEVER_LONG_FOR(&tests_queue, (task = parked_at(name)) != NULL,
                          "somebody at sync point %s", name, 0);
    return task;
}

bool sync_point_is_parked(const char *name)
{
    return parked_at(name) != NULL;
}

static void release_locked(struct point *p)
{
    if (p->parked)
        atomic_store(&p->is_released, true);
    else
        free_point_locked(p);
}

/* name NULL: all */
static void release_points(const char *name)
{
    spin_lock(&points_lock);
    for (struct point *p = points; p < points + MAX_POINTS; p++) {
        if (!p->name || (name && strcmp(p->name, name) != 0))
            continue;
        release_locked(p);
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

/* ---- For programs ---- */

extern const char __sync_points_start[], __sync_points_end[];

const char *sync_point_next_name(const char *name)
{
    const char *next = name ? name + strlen(name) + 1 : __sync_points_start;

    return next < __sync_points_end ? next : NULL;
}

static const char *find_name(const char *name)
{
    const char *known = NULL;

    while ((known = sync_point_next_name(known)) && strcmp(known, name) != 0) {
    }
    return known;
}

/* The program's point of that name. => NULL: none is armed, and nobody parked */
static struct point *find_programs_locked(const char *name)
{
    for (struct point *p = points; p < points + MAX_POINTS; p++)
        if (p->name && p->is_programs && !p->is_released && strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

int sync_point_arm_for_program(const char *name, u32 pid)
{
    struct point new = {
        .name = find_name(name), .is_programs = true, .only_pid = pid, .not_me = task_current()};
    int error = 0;

    if (!new.name)
        return -ENOENT;
    spin_lock(&points_lock);
    if (find_programs_locked(name))
        error = -EBUSY;
    else if (!arm_locked(&new))
        error = -ENOSPC;
    spin_unlock(&points_lock);
    return error;
}

enum sync_point_state sync_point_state_for_program(const char *name, u32 *pid)
{
    enum sync_point_state state = SYNC_POINT_OFF;
    const struct point *p;

    spin_lock(&points_lock);
    p = find_programs_locked(name);
    if (p) {
        state = p->parked ? SYNC_POINT_PARKED : SYNC_POINT_ARMED;
        *pid = p->parked ? p->parked->pid : p->only_pid;
    }
    spin_unlock(&points_lock);
    return state;
}

int sync_point_wait_for_program(const char *name)
{
    enum sync_point_state state;
    struct waiter w;
    u32 pid;
    int error = 0;

    wait_begin(&tests_queue, &w, "somebody at sync point %s", (u64)name, 0);
    while ((state = sync_point_state_for_program(name, &pid)) == SYNC_POINT_ARMED && !error)
        error = wait_sleep_killable(&w, 0);
    wait_end(&tests_queue, &w);
    return state == SYNC_POINT_OFF ? -ENOENT : error;
}

/* name NULL: all. => whether there was one */
static bool release_programs(const char *name)
{
    struct point *p;
    bool any = false;

    spin_lock(&points_lock);
    for (p = points; p < points + MAX_POINTS; p++) {
        if (!p->name || !p->is_programs || (name && strcmp(p->name, name) != 0))
            continue;
        any |= !p->is_released;
        release_locked(p);
    }
    spin_unlock(&points_lock);
    wait_wake_all(&parked_queue);
    wait_wake_all(&tests_queue);
    return any;
}

int sync_point_go_for_program(const char *name)
{
    return release_programs(name) ? 0 : -ENOENT;
}

void sync_point_reset_for_programs(void)
{
    release_programs(NULL);
}

/* ---- Seeds ---- */

void sync_points_set_seed(u64 seed)
{
    u64 old = atomic_exchange(&yield_seed, seed);

    if (seed && !old)
        atomic_add(&sync_points_armed, 1);
    if (!seed && old)
        atomic_sub(&sync_points_armed, 1);
}
