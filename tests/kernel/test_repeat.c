/*
 * The fifth promise: the same run twice. Threads that race for the same pages on one CPU are interleaved by the seed alone, so
 * the same seed gives the same order of touches and of disk requests, and another seed another one.
 */
#include "kernel/cmdline.h"
#include "kernel/cpu/uaccess.h"
#include "kernel/sched/sync_point.h"
#include "lib/rng.h"
#include "lib/string.h"
#include "mm/core/tlb.h"
#include "mm/knobs.h"
#include "tests/kernel/fault_rig.h"

#define PAGES      64
#define THREADS    3
#define TOUCHES    40
#define EVENTS_MAX (THREADS * TOUCHES)

/* What happened in one run. All threads are on CPU 0 and kernel code is not preempted: plain stores are in order. */
struct run {
    struct fault_rig rig;
    u32 n_events;
    u8 who[EVENTS_MAX];
    u8 page[EVENTS_MAX];
    unsigned n_requests;
    struct gate_log_entry requests[EVENTS_MAX];
};

struct racer {
    struct run *run;
    u32 number;
};

static void race(void *arg)
{
    struct racer *racer = arg;
    struct run *run = racer->run;
    struct task *task = task_current();
    struct rng rng;
    rng_seed(&rng, 1000 + racer->number);
    bool irqs = irq_save_disable();
    task->mm = run->rig.mm;
    task->space = &run->rig.mm->space;
    tlb_switch_space(task->space);
    irq_restore(irqs);
    for (unsigned i = 0; i < TOUCHES; i++) {
        pgoff_t page = rng_next(&rng) % PAGES;
        uaccess_touch_read(rig_addr(page));
        run->who[run->n_events] = racer->number;
        run->page[run->n_events++] = page;
    }
    irqs = irq_save_disable();
    task->mm = NULL;
    task->space = NULL;
    tlb_switch_space(NULL);
    irq_restore(irqs);
}

/* On CPU 0 itself, so that none of them begins before all are there. */
static void start_all(void *arg)
{
    struct task **tasks = arg;
    for (u32 i = 0; i < THREADS; i++)
        task_start(tasks[i]);
}

/* Runs the race under the seed. => false: out of memory */
static bool run_with_seed(struct run *run, u64 seed)
{
    struct racer racers[THREADS];
    struct task *tasks[THREADS];
    memset(run, 0, sizeof(*run));
    if (!rig_init(&run->rig, PAGES, PROT_READ, MAP_SHARED))
        return false;
    knob_set("readahead", "ondemand");
    gate_log_reset(run->rig.file->disk);
    sync_points_set_seed(seed);
    for (u32 i = 0; i < THREADS; i++) {
        racers[i] = (struct racer){run, i};
        tasks[i] = task_create_stopped("racer", race, &racers[i], 0);
        tasks[i]->sync_id = i + 1;
    }
    task_join(task_create("starter", start_all, tasks, 0));
    for (u32 i = 0; i < THREADS; i++)
        task_join(tasks[i]);
    sync_points_set_seed(cmdline.sync_seed);
    run->n_requests = gate_log(run->rig.file->disk, run->requests, EVENTS_MAX);
    rig_end(&run->rig);
    return true;
}

static bool is_same(const struct run *a, const struct run *b)
{
    return a->n_events == b->n_events && memcmp(a->who, b->who, sizeof(a->who)) == 0 &&
           memcmp(a->page, b->page, sizeof(a->page)) == 0 && a->n_requests == b->n_requests &&
           memcmp(a->requests, b->requests, sizeof(a->requests)) == 0;
}

static struct run first, again, other;

KTEST(repeat, same_seed_same_order_of_touches_and_requests)
{
#ifndef CONFIG_DEBUG
    KTEST_SKIP("seeds work in debug builds");
#endif
    for (u64 seed = 1; seed <= 5; seed++) {
        KASSERT(run_with_seed(&first, seed));
        KASSERT(run_with_seed(&again, seed));
        KEXPECT_EQ(first.n_events, EVENTS_MAX);
        KEXPECT(first.n_requests > 0);
        KEXPECT(is_same(&first, &again));
    }
}

KTEST(repeat, another_seed_is_another_order)
{
#ifndef CONFIG_DEBUG
    KTEST_SKIP("seeds work in debug builds");
#endif
    unsigned different = 0;
    KASSERT(run_with_seed(&first, 1));
    for (u64 seed = 2; seed <= 5; seed++) {
        KASSERT(run_with_seed(&other, seed));
        different += !is_same(&first, &other);
    }
    KEXPECT(different >= 3);
}
