/*
 * Waiting for one of several files: ready at once, woken by any of them, ended by the clock or by a
 * signal.
 */
#include "fs/poll.h"

#include "fs/pipe.h"
#include "kernel/cpu/clock.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/threads.h"

#define WAIT_NS 5000000ul

/* A file whose readiness the test sets. */
struct lamp {
    struct file file;
    struct wait_queue changed;
    u32 ready;
};

static u32 lamp_poll(struct file *file, struct poll_round *round)
{
    struct lamp *lamp = container_of(file, struct lamp, file);

    poll_wait_on(round, &lamp->changed);
    return atomic_load(&lamp->ready);
}

static const struct file_ops lamp_ops = {.poll = lamp_poll};
static const struct file_ops always_ops = {.is_seekable = true};

static void lamp_init(struct lamp *lamp)
{
    *lamp = (struct lamp){.file.ops = &lamp_ops};
    wait_queue_init(&lamp->changed);
}

static void lamp_set(struct lamp *lamp, u32 ready)
{
    atomic_store(&lamp->ready, ready);
    wait_wake_all(&lamp->changed);
}

KTEST(poll, what_is_ready_is_told_at_once)
{
    struct lamp lamp;
    struct file always = {.ops = &always_ops};
    struct poll_item items[] = {{.file = &lamp.file, .events = POLLIN},
                                {.file = &always, .events = POLLIN | POLLOUT},
                                {.file = NULL},
                                {.ignored = true}};

    lamp_init(&lamp);
    KEXPECT_EQ(poll_files(items, 4, POLL_FOREVER), 2);
    KEXPECT_EQ(items[0].ready, 0);
    KEXPECT_EQ(items[1].ready, POLLIN | POLLOUT);
    KEXPECT_EQ(items[2].ready, POLLNVAL);
    KEXPECT_EQ(items[3].ready, 0);
    lamp.ready = POLLHUP | POLLOUT; /* hanging up counts also where nobody asked */
    KEXPECT_EQ(poll_files(items, 1, 0), 1);
    KEXPECT_EQ(items[0].ready, POLLHUP);
}

KTEST(poll, the_clock_ends_it)
{
    struct lamp lamp;
    struct poll_item item = {.file = &lamp.file, .events = POLLIN};
    u64 begin = clock_ns();

    lamp_init(&lamp);
    KEXPECT_EQ(poll_files(&item, 1, 0), 0);
    KEXPECT_EQ(poll_files(&item, 1, begin + WAIT_NS), 0);
    KEXPECT(clock_ns() >= begin + WAIT_NS);
    KEXPECT_EQ(poll_files(NULL, 0, clock_ns() + WAIT_NS), 0);
    KEXPECT(wait_queue_is_empty(&lamp.changed));
}

#define LAMPS 20

struct watch {
    struct lamp lamps[LAMPS];
    int result;
    u32 ready[LAMPS];
};

static void watch_all(void *arg)
{
    struct watch *watch = arg;
    struct poll_item items[LAMPS];

    for (unsigned i = 0; i < LAMPS; i++)
        items[i] = (struct poll_item){.file = &watch->lamps[i].file, .events = POLLIN};
    watch->result = poll_files(items, LAMPS, POLL_FOREVER);
    for (unsigned i = 0; i < LAMPS; i++)
        watch->ready[i] = items[i].ready;
}

static struct watch watch;

static void watch_init(void)
{
    watch.result = 0;
    for (unsigned i = 0; i < LAMPS; i++)
        lamp_init(&watch.lamps[i]);
}

KTEST(poll, each_of_many_files_wakes_it)
{
    for (unsigned i = 0; i < LAMPS; i += 3) {
        struct test_threads threads = {.n = 0};

        watch_init();
        threads_add_and_wait_asleep(&threads, watch_all, &watch);
        lamp_set(&watch.lamps[(i + 7) % LAMPS], POLLOUT); /* not what it waits for */
        lamp_set(&watch.lamps[i], POLLIN);
        KEXPECT_EQ(threads_join(&threads), 0);
        KEXPECT_EQ(watch.result, 1);
        KEXPECT_EQ(watch.ready[i], POLLIN);
        for (unsigned k = 0; k < LAMPS; k++)
            KEXPECT(wait_queue_is_empty(&watch.lamps[k].changed));
    }
}

KTEST(poll, a_signal_ends_it)
{
    struct test_threads threads = {.n = 0};
    struct task *task;

    watch_init();
    task = threads_add_and_wait_asleep(&threads, watch_all, &watch);
    if (task)
        task_interrupt(task);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(watch.result, -EINTR);
}

static void light_in_turn(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 200; i++) {
        while (atomic_load(&watch.lamps[i % LAMPS].ready))
            sched_yield();
        lamp_set(&watch.lamps[i % LAMPS], POLLIN);
    }
}

/* No wake-up is lost between the look and the sleep, whichever file it comes from. */
KTEST(poll, no_wakeup_is_lost)
{
    struct test_threads threads = {.n = 0};
    struct poll_item items[LAMPS];
    unsigned seen = 0;

    watch_init();
    for (unsigned i = 0; i < LAMPS; i++)
        items[i] = (struct poll_item){.file = &watch.lamps[i].file, .events = POLLIN};
    threads_add(&threads, light_in_turn, NULL);
    while (seen < 200) {
        if (!KEXPECT(poll_files(items, LAMPS, clock_ns() + 20000000000ul) > 0))
            break;
        for (unsigned i = 0; i < LAMPS; i++) {
            if (!items[i].ready)
                continue;
            atomic_store(&watch.lamps[i].ready, 0);
            seen++;
        }
    }
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(seen, 200);
}
