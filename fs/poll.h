/*
 * Waiting for one of several open files to become ready: what poll(2), ppoll(2), select(2) and
 * pselect(2) are made of.
 *
 * A file that may have to be waited for fills in file_ops->poll:
 *
 *     static u32 pipe_poll(struct file *file, struct poll_round *round)
 *     {
 *         poll_wait_on(round, &pipe->read_queue);      first: every queue whose wake-up may matter
 *         return has_data ? POLLIN | POLLRDNORM : 0;   then: what is true now
 *     }
 *
 * and whoever makes it ready wakes all of that queue (wait_wake_all; a waiter for one event must
 * not swallow the wake-up of another). Files without the operation are always ready.
 */
#ifndef FS_POLL_H
#define FS_POLL_H

#include "fs/vfs.h"

/* Events, Linux x86-64 */
#define POLLIN     0x0001u
#define POLLPRI    0x0002u
#define POLLOUT    0x0004u
#define POLLERR    0x0008u
#define POLLHUP    0x0010u
#define POLLNVAL   0x0020u
#define POLLRDNORM 0x0040u
#define POLLRDBAND 0x0080u
#define POLLWRNORM 0x0100u
#define POLLWRBAND 0x0200u
#define POLLRDHUP  0x2000u

#define POLL_FOREVER (~0ul)

struct poll_round; /* one turn of: queue everywhere, test, sleep */

/* Queues the poller at `queue` for this round. round NULL: nobody will sleep, does nothing. At most
 * POLL_QUEUES_PER_FILE queues for one file. Never sleeps. */
#define POLL_QUEUES_PER_FILE 2
void poll_wait_on(struct poll_round *round, struct wait_queue *queue);

/* What the file is ready for now, POLL*. May sleep for a short while. */
u32 poll_file(struct file *file, struct poll_round *round);

struct poll_item {
    struct file *file; /* NULL: not open, is ready with POLLNVAL unless `ignored` */
    u32 events;        /* asked for; POLLERR and POLLHUP always count */
    u32 ready;         /* result */
    bool ignored;
};

/*
 * Sleeps until one of the items is ready.
 *   deadline_ns  on clock_ns()'s clock; 0: does not sleep; POLL_FOREVER
 * => number of ready items, 0 when the deadline is reached, -EINTR for a signal, -ENOMEM
 */
int poll_files(struct poll_item *items, unsigned n, u64 deadline_ns);

#endif
