/*
 * Waiting for several files at once. Contract in poll.h.
 *
 * One round: queue at every queue of every file, then test every file, then sleep, then leave all
 * queues. Queueing forgets wake-ups that came just before it, so the tests that count are those
 * after the last queue. Most calls find something ready while still queueing, and never get there.
 */
#include "fs/poll.h"

#include "kernel/log/log.h"
#include "lib/errno.h"
#include "mm/core/slab.h"

#define FILES_ON_STACK 4

struct poll_round {
    struct waiter *waiters;
    unsigned n, max;
};

void poll_wait_on(struct poll_round *round, struct wait_queue *queue)
{
    if (!round)
        return;
    ASSERT(round->n < round->max);
    wait_begin(queue, &round->waiters[round->n++], "a file that poll waits for", 0, 0);
}

u32 poll_file(struct file *file, struct poll_round *round)
{
    if (!file->ops->poll)
        return POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM;
    return file->ops->poll(file, round);
}

/* => number of ready items */
static int test_all(struct poll_item *items, unsigned n, struct poll_round *round)
{
    int n_ready = 0;

    for (unsigned i = 0; i < n; i++) {
        struct poll_item *item = &items[i];

        item->ready = 0;
        if (item->ignored)
            continue;
        item->ready = POLLNVAL;
        if (item->file)
            item->ready =
                poll_file(item->file, n_ready ? NULL : round) & (item->events | POLLERR | POLLHUP);
        n_ready += item->ready != 0;
    }
    return n_ready;
}

/* => ready items, or 0 after a sleep, or -ETIMEDOUT, -EINTR */
static int poll_once(struct poll_item *items, unsigned n, struct poll_round *round, u64 deadline_ns)
{
    struct wait_queue by_clock = WAIT_QUEUE_INIT(by_clock);
    struct waiter sleeper; /* queued where nobody wakes: for the deadline, and signals */
    int result;

    round->n = 0;
    wait_begin(&by_clock, &sleeper, "poll of %lu files", n, 0);
    result = test_all(items, n, round);
    if (!result)
        result = test_all(items, n, NULL);
    if (!result)
        result = wait_sleep_interruptible(&sleeper, deadline_ns == POLL_FOREVER ? 0 : deadline_ns);
    for (unsigned i = 0; i < round->n; i++)
        wait_end(round->waiters[i].queue, &round->waiters[i]);
    wait_end(&by_clock, &sleeper);
    return result;
}

int poll_files(struct poll_item *items, unsigned n, u64 deadline_ns)
{
    struct waiter few[FILES_ON_STACK * POLL_QUEUES_PER_FILE];
    struct poll_round round = {.waiters = few, .max = MAX(n, 1u) * POLL_QUEUES_PER_FILE};
    int result = test_all(items, n, NULL);

    if (result || deadline_ns == 0)
        return result;
    if (n > FILES_ON_STACK)
        round.waiters = kmalloc(round.max * sizeof(*round.waiters));
    if (!round.waiters)
        return -ENOMEM;
    while (result == 0)
        result = poll_once(items, n, &round, deadline_ns);
    if (round.waiters != few)
        kfree(round.waiters);
    return result == -ETIMEDOUT ? 0 : result;
}
