/*
 * Private to drivers/block: what the layer keeps for each device, and the steps of a request's way
 * that lie in different files.
 */
#ifndef DRIVERS_BLOCK_QUEUE_H
#define DRIVERS_BLOCK_QUEUE_H

#include "drivers/block/block.h"
#include "kernel/sched/timer.h"

/* Guarded by device->lock, but for the wait queue (its own). */
struct block_queue {
    struct block_device *device;
    struct list free; /* requests */
    u32 slot_waiters; /* tasks that wait for one */
    struct wait_queue slot_queue;
    bool is_dispatching; /* somebody is in the loop of block_dispatch() */
    u64 completions;     /* so that it sees that one came while the driver said "busy" */
    struct list issued;  /* requests with the driver, oldest first */
    struct timer watch;  /* looks for requests that do not come back */
    bool watch_is_armed;
    struct block_request requests[BLOCK_REQUESTS];
};

/* request.c */
struct block_request *block_request_get(struct block_device *device); /* may sleep */
/* Filled in by plug.c or bio.c: counts it and sends it on its way through the gate. */
void block_request_submit(struct block_request *request, u32 n_merged);
void block_dispatch(struct block_request *request); /* past the gate: to the driver, in order */
void block_request_finish(struct block_request *request); /* past the gate: ends its bios */

/* bio.c */
/* => 0, or the error that the bio is to be ended with */
int bio_check(const struct bio *bio);
void bio_end_part(struct bio *bio, int error);              /* one of parts_left is done */
u32 block_segment_limit(const struct block_device *device); /* of one request */

/* bio_submit() for one that is known to the trace already */
void bio_send(struct bio *bio);

/* trace.c: the events block_bio_queue, block_rq_issue and block_rq_complete. Any context. */
void block_trace_queue(const struct bio *bio);
void block_trace_issue(const struct block_request *request);
void block_trace_complete(const struct block_request *request);

/* watch.c; both with device->lock held */
void block_watch_init(struct block_queue *queue);
void block_watch_issued_locked(struct block_queue *queue); /* something may be with the driver */

/* gate.c */
/* => true: the gate keeps the request for now, or has ended it */
bool gate_filter(struct gate *gate, struct block_request *request);
/* The driver is done (request->error). => true: the gate passes it on at request->deliver_ns */
bool gate_filter_done(struct gate *gate, struct block_request *request);
void gate_free(struct gate *gate);

#endif
