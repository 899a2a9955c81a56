/*
 * The block layer: requests for sectors of a device, merged while plugged, handed to a driver, finished from interrupt context.
 *
 *     bio_alloc -> fill -> bio_submit(bio)   ...   bio->done(bio, error) in interrupt context -> bio_free
 *
 * A request is one or more bios that lie side by side on the disk. Between submit and driver sits the I/O gate
 * (drivers/block/gate.h). Data of a page goes straight into its frame.
 */
#ifndef DRIVERS_BLOCK_BLOCK_H
#define DRIVERS_BLOCK_BLOCK_H

#include "kernel/sched/wait.h"
#include "mm/core/page.h"

struct block_device;
struct bio;

enum bio_flags {
    BIO_READ = 0,
    BIO_WRITE = 1u << 0,
    BIO_META = 1u << 1,      /* file system metadata: counted apart */
    BIO_READAHEAD = 1u << 2,
    BIO_FLUSH = 1u << 3,
};

struct bio_segment {
    struct page *page;
    u32 offset, bytes; /* within the page; multiples of 512 */
};

struct bio {
    struct block_device *device;
    u64 sector; /* 512-byte units */
    u32 flags;
    u16 n_segments, max_segments;
    u32 bytes;  /* sum of the segments */
    void (*done)(struct bio *bio, int error); /* error: 0, -EIO, -ENOMEM…; interrupt or submitter's context; must not sleep. Owns the bio. */
    void *private_;
    struct list link;
    u64 submit_ns;
    struct bio_segment segments[]; /* max_segments of them */
};

#define BIO_MAX_SEGMENTS 320 /* pages of the device's largest request */

struct bio *bio_alloc(struct block_device *device, unsigned max_segments); /* NULL when out of memory; atomic allocation */
bool bio_add(struct bio *bio, struct page *page, u32 offset, u32 bytes);    /* false: full (a run in the same page is joined) */
void bio_free(struct bio *bio);
void bio_submit(struct bio *bio); /* never sleeps for the disk; may sleep for a free request slot. Past the end of the device: done(-EIO). */
int bio_submit_wait(struct bio *bio); /* submits and sleeps until done; frees it. => error. `done`/`private_` are used by it. */

/* While plugged the current task's bios are collected; unplug sorts, merges neighbours (same flags) and submits. */
struct block_plug {
    struct list bios;
    u32 n;
};
void block_plug_start(struct block_plug *plug);
void block_plug_add(struct block_plug *plug, struct bio *bio);
void block_plug_finish(struct block_plug *plug);

struct block_stats { /* whole device since boot; reads and writes */
    u64 requests[2], merges[2], sectors[2], ticks_ns[2];
    u64 data_requests, data_pages, meta_requests, meta_pages; /* reads */
    u64 errors;
    u32 in_flight;
};

/* A request: what a driver gets. One request is one command to the device. */
struct block_request {
    struct block_device *device;
    u64 sector;
    u32 bytes;
    u32 flags;        /* of its bios */
    u32 n_segments;
    struct list bios;
    struct list link; /* queue of whoever holds it now (gate, driver) */
    u64 submit_ns, issue_ns, deliver_ns;
    u64 driver_data[2];
    int error;
};

struct block_driver_ops {
    /* Starts the request. => 0, or -EBUSY: the ring is full, keep it and call again after a completion. Completion: block_request_done(). Any context, never sleeps. */
    int (*start)(struct block_device *device, struct block_request *request);
};

struct block_device {
    char name[16];       /* "vda", "ram0" */
    u32 dev;             /* Linux device number, makedev(major, minor) */
    u64 sectors;
    u32 max_segments;    /* of one request */
    u32 max_request_pages; /* io_max: 320 here */
    u32 read_ahead_kb;   /* /sys/block/NAME/queue/read_ahead_kb; default 128 */
    bool is_read_only;
    bool is_virtual;     /* RAM disk: times are the delay model's, time-outs on under icount too */
    const struct block_driver_ops *ops;
    void *driver;
    struct spinlock lock; /* pending queue, statistics */
    struct list pending;
    struct block_stats stats;
    struct gate *gate;
    struct list all_link;
    void *upper;         /* fs: its page cache */
};

int block_device_register(struct block_device *device); /* fields name…driver filled in; prints a line */
struct block_device *block_device_find(const char *name); /* NULL if there is none */
struct block_device *block_device_find_dev(u32 dev);
void block_for_each(void (*fn)(struct block_device *device, void *ctx), void *ctx);
void block_request_done(struct block_request *request, int error); /* by drivers, interrupt context */
void block_stats_get(struct block_device *device, struct block_stats *out);
/* System-wide sums over all devices: /proc/vmstat disk_data_requests, disk_data_pages, disk_meta_requests, disk_meta_pages. */
void block_stats_total(struct block_stats *out);

#endif
