/*
 * The block layer: requests for sectors of a device, merged while plugged, handed to a driver,
 * finished from interrupt context.
 *
 *     bio_alloc -> bio_add ... -> bio_submit(bio)      or collected: block_plug_start, _add,
 * _finish bio.c, plug.c     checked, split to what the device takes, merged with its neighbours
 *         request.c         a slot for the request; statistics
 *         gate.c            the I/O gate, where one is set up: hold, fail, delay
 *         request.c         the driver's start(); pending while the driver is busy
 *     block_request_done() by the driver  ->  gate's delay  ->  bio->done(bio, error)  ->  bio_free
 *
 * A request is one or more bios that lie side by side on the disk, or a part of one bio that is
 * larger than the device takes at once. Data goes straight between the device and the frames.
 *
 * Rules:
 *   - Submitting cannot fail for lack of memory: the requests of a device are made at registration.
 *     Where all are in use bio_submit sleeps until one is done.
 *   - bio->done runs with interrupts off and no lock held, in interrupt context or in the
 *     submitter's. It finishes the bio and nothing else: it must not sleep and must not submit.
 *   - Order is kept from submission to the driver's start(); completions come as the device likes.
 */
#ifndef DRIVERS_BLOCK_BLOCK_H
#define DRIVERS_BLOCK_BLOCK_H

#include "kernel/sched/wait.h"
#include "mm/core/page.h"

struct block_device;
struct block_queue;
struct gate;

enum bio_flags {
    BIO_READ = 0,
    BIO_WRITE = 1u << 0,
    BIO_META = 1u << 1, /* file system metadata: counted apart */
    BIO_READAHEAD = 1u << 2,
    BIO_FLUSH = 1u << 3, /* no data: what was written before is made to last */
};

struct bio_segment {
    struct page *page;
    u32 offset, bytes; /* within the page; multiples of 512 */
};

#define BIO_MAX_SEGMENTS 320 /* pages of the largest request */

struct bio {
    struct block_device *device;
    u64 sector; /* 512-byte units */
    u32 flags;
    u16 n_segments, max_segments;
    u32 bytes; /* sum of the segments */
    /* error: 0, -EIO, -EROFS, -EINVAL, … From then on the callee owns the bio. */
    void (*done)(struct bio *bio, int error);
    void *private_;
    struct list link; /* plug, then request */
    u64 submit_ns;
    u32 parts_left; /* requests that it was split into and that are not done; changed atomically */
    int error;      /* of any of them */
    struct bio_segment segments[]; /* max_segments of them */
};

/* => a bio for up to max_segments (1 … BIO_MAX_SEGMENTS; 0 for a flush), all fields zero but the
 * device; NULL when out of memory. Any context, never sleeps. */
struct bio *bio_alloc(struct block_device *device, unsigned max_segments);

/* Adds a stretch of a page behind what is there; a run within the same page is joined.
 * => false: full, nothing was added */
bool bio_add(struct bio *bio, struct page *page, u32 offset, u32 bytes);

void bio_free(struct bio *bio); /* any context */

/*
 * Hands the bio to the device.
 * => The bio is the block layer's until done() is called, which may be before this returns.
 * => Past the end of the device: done(-EIO); a write to a read-only one: done(-EROFS);
 *    empty or not in the device's block size: done(-EINVAL).
 * => Never sleeps for the disk; may sleep for a free request. Task context, no spinlock held.
 */
void bio_submit(struct bio *bio);

/* Submits, sleeps until it is done and frees it. => its error. done and private_ are used for it.
 */
int bio_submit_wait(struct bio *bio);

/*
 * While plugged the caller's bios are collected; finishing sorts them, merges neighbours (equal
 * flags, within the device's limits) and submits. A flush is not collected: what was before it goes
 * first. The plug lives on the caller's stack. Task context; add and finish may sleep as
 * bio_submit.
 */
struct block_plug {
    struct list bios; /* by device and sector */
    u32 n;
};
void block_plug_start(struct block_plug *plug);
void block_plug_add(struct block_plug *plug, struct bio *bio);
void block_plug_finish(
    struct block_plug *plug); /* the plug is empty again and may be used further */

/* Of a device since boot. Index 0 reads, 1 writes (flushes are neither). */
struct block_stats {
    u64 requests[2], merges[2], sectors[2],
        ticks_ns[2]; /* of finished requests; merges: bios joined */
    u64 data_requests, data_pages, meta_requests, meta_pages; /* reads, when they are asked for */
    u64 errors;    /* requests that ended with an error */
    u64 timeouts;  /* requests that were reported as not coming back */
    u32 in_flight; /* requests now between submission and done, in the gate or the driver */
};

/* A request: what a driver gets. One request is one command to the device. */
struct block_request {
    struct block_device *device;
    u64 sector;
    u32 bytes;
    u32 flags; /* of its bios */
    u32 n_segments;
    u32 slot; /* its number, 0 … BLOCK_REQUESTS - 1, unique among the device's live ones */
    struct list bios; /* whole bios, side by side; empty where it is a part: */
    struct bio *part; /* n_segments of this bio from part_first on */
    u32 part_first;
    struct list link;        /* queue of whoever holds it now: free, pending, gate, driver */
    struct list issued_link; /* requests that are with the driver, oldest first */
    u64 submit_ns, issue_ns;
    u64 deliver_ns; /* set by the gate: completion is not passed on before; 0 = at once */
    u64 driver_data[2];
    int error;
    bool was_reported; /* as not coming back */
};

#define BLOCK_REQUESTS 128 /* for each device */

/* Walks the segments of a request: for (block_segments_start(&it, r); (s =
 * block_segments_next(&it));) */
struct block_segments {
    struct block_request *request;
    struct bio *bio;
    u32 index; /* in the bio */
    u32 left;  /* in the request */
};
void block_segments_start(struct block_segments *it, struct block_request *request);
struct bio_segment *block_segments_next(struct block_segments *it); /* NULL at the end */

struct block_driver_ops {
    /*
     * Starts the request. => 0: block_request_done() will be called or has been called;
     * -EBUSY: no room now, ask again after a completion (there is at least one under way);
     * another error: refused, the block layer ends the request with it.
     * Any context, no lock held, never sleeps; one call at a time for each device.
     */
    int (*start)(struct block_device *device, struct block_request *request);
    /* May be NULL. Looks for completions that no interrupt told of. Any context, never sleeps. */
    void (*poll)(struct block_device *device);
};

#define READ_AHEAD_MAX_KB 4096 /* largest window anybody can set */

struct block_device {
    char name[16]; /* "vda", "ram0" */
    u32 dev;       /* Linux device number, makedev(major, minor) */
    u64 sectors;
    u32 block_bytes;       /* smallest unit the device takes; 0 = 512 */
    u32 max_segments;      /* of one request */
    u32 max_request_pages; /* the policies' io_max; 0 = BIO_MAX_SEGMENTS */
    u32 read_ahead_kb;     /* /sys/block/NAME/queue/read_ahead_kb; 0 at registration = 128 */
    u64 timeout_ns;        /* 0 at registration = 30 s */
    bool is_read_only;
    bool is_virtual; /* no hardware behind it: time-outs are on under icount too */
    const struct block_driver_ops *ops;
    void *driver;

    struct spinlock lock; /* pending, stats, and everything in queue */
    struct list pending;  /* requests the driver has not taken yet, in order */
    struct block_stats stats;
    struct block_queue *queue; /* drivers/block/queue.h */
    struct gate *gate;         /* NULL until somebody uses it; then for good */
    struct list all_link;
    void *upper; /* fs: its page cache */
};

#define BLOCK_DEV(major, minor) ((u32)(major) << 8 | (u32)(minor)) /* both below 256 */

/* The fields name … driver are filled in. => 0, -EEXIST (the name), -EINVAL (no sector, no
 * segment), -ENOMEM. Prints a line. Never sleeps. */
int block_device_register(struct block_device *device);
/* For devices of tests: nothing is in flight and nobody submits any more. May sleep. */
void block_device_unregister(struct block_device *device);
struct block_device *block_device_find(const char *name); /* NULL if there is none */
struct block_device *block_device_find_dev(u32 dev);
/* In order of registration, under the registry's lock: fn must not sleep. */
void block_for_each(void (*fn)(struct block_device *device, void *ctx), void *ctx);

void block_report_init(void); /* requests under way, in reports; at boot */

/* By drivers: the device is done with the request. Any context, no lock held. */
void block_request_done(struct block_request *request, int error);

void block_stats_get(struct block_device *device, struct block_stats *out);
/* Sums over all devices: /proc/vmstat disk_data_requests, disk_data_pages, disk_meta_requests, … */
void block_stats_total(struct block_stats *out);

#endif
