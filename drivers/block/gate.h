/*
 * The I/O gate: a filter between the request layer and the driver of one device, for tests and
 * experiments. Works for any device, in real hardware's way too.
 *
 * Hold requests that touch given sectors, release them in a chosen order, fail them, or delay all
 * of them by a model of a disk:
 *
 *     finish = max(submit, disk_free) + per_request + bytes / bandwidth;   disk_free = finish;
 *     delivered at finish + latency, on the kernel's clock
 *
 * per_request and bandwidth occupy the disk: requests queue behind each other. latency does not: it
 * overlaps. `submit` is when the request passes the gate, so for a held one when it was released.
 * A delayed request goes to the driver at once; only its completion waits, in a timer's interrupt.
 * Nothing is armed while the driver works, so that under icount the host's time stays out of it.
 *
 * Nothing set up: one test of a pointer. Once set up, a device's gate stays.
 */
#ifndef DRIVERS_BLOCK_GATE_H
#define DRIVERS_BLOCK_GATE_H

#include "drivers/block/block.h"

struct gate_delay {
    u64 latency_ns, per_request_ns;
    u64 bandwidth; /* bytes per second, 0 = infinite; all three zero = no delay */
};

#define GATE_MAX_DELAY_NS \
    (3600ul * 1000000000ul) /* an hour: sums of times stay far from wrapping */

/* For requests that pass from now on. => 0, -ENOMEM, -EINVAL: a time above GATE_MAX_DELAY_NS. Any
 * context, never sleeps. */
int gate_set_delay(struct block_device *device, const struct gate_delay *delay);
void gate_get_delay(struct block_device *device, struct gate_delay *delay);

/*
 * The model's arithmetic, pure.
 *   submit_ns    when the request passes the gate;   *disk_free_ns   in and out
 * => when it is delivered. bytes / bandwidth is rounded down to whole nanoseconds.
 */
u64 gate_delay_deliver_ns(const struct gate_delay *delay, u64 submit_ns, u32 bytes,
                          u64 *disk_free_ns);

#define GATE_MAX_RULES   16
#define GATE_LOG_ENTRIES 1024

/*
 * Rules are by sector range [first, last]; the first one set that fits a request decides. Requests
 * are not split. gate_hold: holds the next `count` requests that overlap the range (0: all, until
 * gate_open). A request that was held meets no further rule when it is released.
 * => 0, -ENOMEM, -ENOSPC (GATE_MAX_RULES rules are in use)
 */
int gate_hold(struct block_device *device, u64 first_sector, u64 last_sector, u32 count);

/* Ends the next `count` (0: all from now on) overlapping requests with `error` (negative errno)
 * instead of passing them to the driver; the delay model applies to them too. => as gate_hold */
int gate_fail(struct block_device *device, u64 first_sector, u64 last_sector, int error, u32 count);

struct gate_rule {
    u64 first, last; /* sectors */
    u32 left;        /* requests it still catches; 0 = unlimited */
    int error;       /* 0: hold */
};
/* The rule number `index` (0 = oldest). => whether there is one */
bool gate_rule_get(struct block_device *device, unsigned index, struct gate_rule *out);

unsigned
gate_held_now(const struct block_device *device); /* the same without a lock, for reports */
unsigned gate_held(struct block_device *device);  /* requests held now */
void gate_wait_held(struct block_device *device, unsigned at_least); /* sleeps until so many are */
/* The same for programs. => 0, -EINTR: a fatal signal, -ENOMEM */
int gate_wait_held_killable(struct block_device *device, unsigned at_least);
/* Lets the held request number `index` (0 = oldest) go on. => 0 or -ENOENT */
int gate_release(struct block_device *device, unsigned index);
void gate_release_all(struct block_device *device); /* in order; the rules stay */
void gate_open(struct block_device *device);        /* drops all rules and releases everything */

struct gate_log_entry {
    u64 sector;
    u32 bytes;
    u32 flags;
};
/* The held request number `index` (0 = oldest). => whether there is one */
bool gate_held_get(struct block_device *device, unsigned index, struct gate_log_entry *out);

/*
 * The log: requests as they arrive at the gate, before any rule, in order. gate_log_reset empties
 * it and starts it. gate_log copies the first `max` entries (of GATE_LOG_ENTRIES that are kept).
 * => number of requests seen since the reset; starts the log if it was off
 */
unsigned gate_log(struct block_device *device, struct gate_log_entry *out, unsigned max);
void gate_log_reset(struct block_device *device);

#endif
