/*
 * The I/O gate: a filter between the request layer and the driver of one device, for tests and experiments.
 *
 * Hold requests that touch given sectors, release them in a chosen order, fail them, or delay all of them by a model:
 *     finish = max(submit, disk_free) + per_request + bytes / bandwidth;   disk_free = finish;
 *     delivered at finish + latency, on the kernel's clock.
 * Nothing armed: one test of a pointer.
 */
#ifndef DRIVERS_BLOCK_GATE_H
#define DRIVERS_BLOCK_GATE_H

#include "drivers/block/block.h"

struct gate_delay {
    u64 latency_ns, per_request_ns, bandwidth; /* bandwidth in bytes/s, 0 = infinite; all zero = no delay */
};
void gate_set_delay(struct block_device *device, const struct gate_delay *delay);
void gate_get_delay(struct block_device *device, struct gate_delay *delay);

/*
 * Tests. Rules are by sector range [first, last]. A held request waits in the gate until released; requests are not split.
 * gate_hold: hold the next `count` requests that overlap the range (0 = until gate_open).
 */
int gate_hold(struct block_device *device, u64 first_sector, u64 last_sector, u32 count);
/* Fails the next `count` (0 = all from now on) overlapping requests with `error` instead of passing them to the driver. */
int gate_fail(struct block_device *device, u64 first_sector, u64 last_sector, int error, u32 count);
unsigned gate_held(struct block_device *device);                     /* requests held now */
void gate_wait_held(struct block_device *device, unsigned at_least); /* sleeps until that many are held */
/* Lets the held request number `index` (0 = oldest) go on. => 0 or -ENOENT */
int gate_release(struct block_device *device, unsigned index);
void gate_release_all(struct block_device *device); /* releases the held ones, keeps the rules */
void gate_open(struct block_device *device);        /* drops all rules and releases everything */
/* Requests seen by the gate since it was last reset, in order of arrival; for asserting on order. */
struct gate_log_entry { u64 sector; u32 bytes; u32 flags; };
unsigned gate_log(struct block_device *device, struct gate_log_entry *out, unsigned max); /* => number since reset; starts logging */
void gate_log_reset(struct block_device *device);

#endif
