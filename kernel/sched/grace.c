/*
 * Grace periods.
 *
 * Each CPU counts its quiet points: passes through the scheduler and returns to user mode. The
 * grace thread takes what was deferred, notes all counters, and waits until each has moved or the
 * CPU has been seen idle; whoever was looking at the objects without a lock has stopped by then.
 * Its own CPU passed a quiet point in coming to this thread.
 *
 * A CPU that stays in user mode is sent an interrupt, which ends in a return to user mode, a quiet
 * point. A CPU that stays in the kernel is waited for: that is the purpose.
 *
 * Objects nobody waits for gather for a moment, so that many share one period; grace_wait and
 * grace_barrier do not wait for that.
 */
#include "kernel/sched/grace.h"

#include "kernel/cpu/clock.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/log/log.h"
#include "kernel/sched/run_queue.h"
#include "kernel/sched/wait.h"
#include "kernel/sync/atomic.h"

#define GATHER_NS        2000000ul /* how long objects wait for company */
#define FIRST_PAUSE_NS   50000ul   /* between looks at the counters; doubles */
#define LONGEST_PAUSE_NS 1000000ul
#define FREES_PER_LOOK   64        /* objects freed between looks at the clock */
#define FREEING_NS       2000000ul /* how long others wait for the CPU while objects are freed */

PERCPU(u64, grace_quiet_points);
static PERCPU(struct deferred *, deferred); /* a stack; any CPU takes it whole */

static struct wait_queue thread_queue = WAIT_QUEUE_INIT(thread_queue);
static struct wait_queue done_queue = WAIT_QUEUE_INIT(done_queue); /* by struct period_watch */
static u32 has_work;  /* something was deferred since the thread looked */
static u32 is_urgent; /* and somebody waits for it */
static u64 batch;     /* number of the batch in hand; the thread's */
static u64 batches_done;

/* ---- Deferring ----------------------------------------------------------------------------- */

static void wake_thread(bool urgent)
{
    bool is_news = urgent && !atomic_exchange(&is_urgent, 1);

    if (!READ_ONCE(has_work))
        is_news |= !atomic_exchange(&has_work, 1);
    if (is_news)
        wait_wake_all(&thread_queue);
}

static void push(struct deferred *object)
{
    bool irqs = irq_save_disable();
    struct deferred **top = percpu_this(deferred);

    do {
        object->next = READ_ONCE(*top);
    } while (
        !atomic_change(top, object->next, object)); /* the thread may take the stack meanwhile */
    irq_restore(irqs);
}

void grace_defer(struct deferred *object)
{
    push(object);
    wake_thread(false);
}

/* ---- The thread ---------------------------------------------------------------------------- */

static void wait_for_work(void)
{
    struct waiter w;

    wait_begin(&thread_queue, &w, "something to free", 0, 0);
    wait_may_last(&w);
    while (!atomic_load(&has_work))
        wait_sleep(&w);
    u64 gather_until = clock_ns() + GATHER_NS;

    while (!atomic_load(&is_urgent)) {
        if (wait_sleep_killable(&w, gather_until))
            break;
    }
    wait_end(&thread_queue, &w);
    /* Before the stacks are taken: whoever still saw has_work set has pushed by now. */
    atomic_exchange(&is_urgent, 0);
    atomic_exchange(&has_work, 0);
}

/* Everything deferred so far, on any CPU. */
static struct deferred *collect(void)
{
    struct deferred *all = NULL;

    for (cpumask_t left = atomic_load(&sched_online_mask); left; left &= left - 1) {
        struct deferred **top = percpu_of(deferred, __builtin_ctzl(left));
        struct deferred *object = atomic_exchange(top, NULL);

        while (object) {
            struct deferred *next = object->next;

            object->next = all;
            all = object;
            object = next;
        }
    }
    return all;
}

static cpumask_t still_busy(cpumask_t cpus, const u64 *seen)
{
    cpumask_t idle = atomic_load(&sched_idle_mask), busy = 0;

    for (cpumask_t left = cpus & ~idle; left; left &= left - 1) {
        unsigned cpu = (unsigned)__builtin_ctzl(left);

        if (atomic_load(percpu_of(grace_quiet_points, cpu)) == seen[cpu])
            busy |= 1ul << cpu;
    }
    return busy;
}

static void wait_one_period(void)
{
    u64 seen[MAX_CPUS], pause_ns = FIRST_PAUSE_NS;
    cpumask_t online = atomic_load(&sched_online_mask);

    atomic_fence(); /* what was unlinked before is unlinked for all before the counters are read */
    for (cpumask_t left = online; left; left &= left - 1) {
        unsigned cpu = (unsigned)__builtin_ctzl(left);

        seen[cpu] = atomic_load(percpu_of(grace_quiet_points, cpu));
    }
    cpumask_t busy = still_busy(online & ~(1ul << cpu_index()), seen);

    while (busy) {
        sleep_until_ns(clock_ns() + pause_ns);
        pause_ns = MIN(2 * pause_ns, LONGEST_PAUSE_NS);
        busy = still_busy(busy, seen);
        for (cpumask_t left = busy & ~(1ul << cpu_index()); left; left &= left - 1)
            ipi_send((unsigned)__builtin_ctzl(left), IPI_VECTOR_RESCHEDULE);
    }
}

static bool others_want_this_cpu(void)
{
    return READ_ONCE(percpu_this(run_queue)->n_queued) > 0;
}

/*
 * Others on this CPU get their turn by time, not after so many objects: one that maps and unmaps in a loop defers far more
 * in a slice of its own, and what is deferred faster than it is freed takes all memory in the end.
 */
static void free_all(struct deferred *object)
{
    u64 yield_at = clock_ns() + FREEING_NS;

    for (unsigned n = 1; object; n++) {
        struct deferred *next = object->next;

        object->free(object);
        object = next;
        if (n % FREES_PER_LOOK == 0 && others_want_this_cpu() && clock_ns() >= yield_at) {
            sched_yield();
            yield_at = clock_ns() + FREEING_NS;
        }
    }
}

static void grace_thread(void *unused)
{
    (void)unused;
    for (;;) {
        wait_for_work();
        batch++;
        struct deferred *objects = collect();

        if (objects) {
            wait_one_period();
            free_all(objects);
        }
        atomic_store(&batches_done, batch);
        wait_wake_all(&done_queue);
    }
}

void grace_init(void)
{
    struct task *thread = task_create("grace", grace_thread, NULL, -1);

    if (!thread)
        panic("no memory for the grace thread");
    task_put(thread);
}

/* ---- Waiting ------------------------------------------------------------------------------- */

/* An object without memory: being "freed", it notes in which batch. */
struct period_watch {
    struct deferred deferred;
    u64 batch; /* 0: not yet */
};

static void note_batch(struct deferred *deferred)
{
    struct period_watch *watch = container_of(deferred, struct period_watch, deferred);

    atomic_store(&watch->batch, batch); /* the watch is on a stack that may go now */
    wait_wake_key(&done_queue, watch);
}

/* => the batch that a period watched from now on belonged to */
static u64 watch_one_period(void)
{
    struct period_watch watch = {.deferred.free = note_batch};
    struct waiter w;

    lockorder_might_sleep("grace_wait");
    wait_begin_key(&done_queue, &w, &watch, false, "a grace period", 0, 0);
    push(&watch.deferred);
    wake_thread(true);
    while (!atomic_load(&watch.batch))
        wait_sleep(&w);
    wait_end(&done_queue, &w);
    return watch.batch;
}

void grace_wait(void)
{
    watch_one_period();
}

void grace_barrier(void)
{
    /* The first watch may be collected just before an older object of another CPU; the second comes
     * after both. */
    watch_one_period();
    u64 last = watch_one_period();

    WAIT_FOR(&done_queue, atomic_load(&batches_done) >= last, "deferred objects to be freed", 0, 0);
}
