/*
 * Bios: made, filled, checked, submitted one by one, ended.
 *
 * A bio with more segments than the device takes in one request is split into parts without any
 * further memory: each part is a request that says "n segments of this bio from number k on", and
 * the bio is done when its last part is. An error of any part is the error of the bio.
 */
#include "drivers/block/queue.h"
#include "kernel/cpu/clock.h"
#include "kernel/log/log.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"

struct bio *bio_alloc(struct block_device *device, unsigned max_segments)
{
    size_t bytes = sizeof(struct bio) + max_segments * sizeof(struct bio_segment);
    struct bio *bio;

    ASSERT(max_segments <= BIO_MAX_SEGMENTS);
    bio = kmalloc(bytes);
    if (!bio)
        return NULL;
    memset(bio, 0, sizeof(*bio)); /* a segment is written whole by bio_add */
    bio->device = device;
    bio->max_segments = (u16)max_segments;
    list_init(&bio->link);
    return bio;
}

bool bio_add(struct bio *bio, struct page *page, u32 offset, u32 bytes)
{
    struct bio_segment *last = bio->n_segments ? &bio->segments[bio->n_segments - 1] : NULL;

    ASSERT(bytes && offset % SECTOR_SIZE == 0 && bytes % SECTOR_SIZE == 0);
    ASSERT(offset < PAGE_SIZE && bytes <= PAGE_SIZE - offset);
    if (last && last->page == page && last->offset + last->bytes == offset) {
        last->bytes += bytes;
    } else {
        if (bio->n_segments == bio->max_segments)
            return false;
        bio->segments[bio->n_segments++] =
            (struct bio_segment){.page = page, .offset = offset, .bytes = bytes};
    }
    bio->bytes += bytes;
    return true;
}

void bio_free(struct bio *bio)
{
    kfree(bio);
}

/* Is every segment a multiple of the device's block, so that no part of a split starts within one?
 */
static bool bio_fits_blocks(const struct bio *bio)
{
    u32 block = bio->device->block_bytes;

    if (block == SECTOR_SIZE)
        return true;
    if (bio->sector % (block / SECTOR_SIZE) != 0)
        return false;
    for (unsigned i = 0; i < bio->n_segments; i++) {
        if (bio->segments[i].bytes % block != 0)
            return false;
    }
    return true;
}

int bio_check(const struct bio *bio)
{
    const struct block_device *device = bio->device;
    u64 n_sectors = bio->bytes / SECTOR_SIZE;

    if (bio->flags & (BIO_WRITE | BIO_FLUSH) && device->is_read_only)
        return -EROFS;
    if (bio->flags & BIO_FLUSH)
        return bio->n_segments ? -EINVAL : 0;
    if (!bio->n_segments || !bio_fits_blocks(bio))
        return -EINVAL;
    if (bio->sector >= device->sectors || n_sectors > device->sectors - bio->sector)
        return -EIO;
    return 0;
}

u32 block_segment_limit(const struct block_device *device)
{
    return MIN(device->max_segments, device->max_request_pages);
}

void bio_end_part(struct bio *bio, int error)
{
    bool irqs_on = irq_save_disable();

    if (error)
        WRITE_ONCE(bio->error, error);
    if (atomic_sub(&bio->parts_left, 1) == 0)
        bio->done(bio, READ_ONCE(bio->error));
    irq_restore(irqs_on);
}

/* Segments [first, first + n) of the bio as one request. The last call ends the caller's right to
 * look at the bio. */
static void bio_submit_part(struct bio *bio, u32 first, u32 n, u64 sector)
{
    struct block_request *request = block_request_get(bio->device);

    request->flags = bio->flags;
    request->sector = sector;
    request->n_segments = n;
    request->part = bio;
    request->part_first = first;
    for (u32 i = first; i < first + n; i++)
        request->bytes += bio->segments[i].bytes;
    block_request_submit(request, 0);
}

static void bio_submit_split(struct bio *bio, u32 limit)
{
    u32 n_segments = bio->n_segments;
    u64 sector = bio->sector;

    bio->parts_left = DIV_ROUND_UP(n_segments, limit);
    for (u32 first = 0; first < n_segments; first += limit) {
        u32 n = MIN(limit, n_segments - first);
        u64 next = sector;

        for (u32 i = first; i < first + n; i++)
            next += bio->segments[i].bytes / SECTOR_SIZE;
        bio_submit_part(bio, first, n, sector);
        sector = next;
    }
}

void bio_submit(struct bio *bio)
{
    block_trace_queue(bio);
    bio_send(bio);
}

void bio_send(struct bio *bio)
{
    int error = bio_check(bio);
    u32 limit = block_segment_limit(bio->device);
    struct block_request *request;

    bio->error = 0;
    bio->parts_left = 1;
    bio->submit_ns = clock_ns();
    if (error) {
        bio_end_part(bio, error);
        return;
    }
    if (bio->n_segments > limit) {
        bio_submit_split(bio, limit);
        return;
    }
    request = block_request_get(bio->device);
    request->flags = bio->flags;
    request->sector = bio->sector;
    request->bytes = bio->bytes;
    request->n_segments = bio->n_segments;
    list_add_tail(&request->bios, &bio->link);
    block_request_submit(request, 0);
}

/*
 * Waiting for one bio. The queues are static, shared by hash: the waker still holds the queue's
 * lock when the waiter may already have seen the result and gone.
 */
#define BIO_WAIT_QUEUES 8

static struct wait_queue bio_wait_queues[BIO_WAIT_QUEUES] = {
    WAIT_QUEUE_INIT(bio_wait_queues[0]), WAIT_QUEUE_INIT(bio_wait_queues[1]),
    WAIT_QUEUE_INIT(bio_wait_queues[2]), WAIT_QUEUE_INIT(bio_wait_queues[3]),
    WAIT_QUEUE_INIT(bio_wait_queues[4]), WAIT_QUEUE_INIT(bio_wait_queues[5]),
    WAIT_QUEUE_INIT(bio_wait_queues[6]), WAIT_QUEUE_INIT(bio_wait_queues[7]),
};

struct bio_wait {
    struct wait_queue *queue;
    int error;
    bool is_done;
};

static void bio_wait_done(struct bio *bio, int error)
{
    struct bio_wait *wait = bio->private_;
    struct wait_queue *queue = wait->queue;

    wait->error = error;
    atomic_store(&wait->is_done, true); /* the waiter's stack is not touched after this */
    wait_wake_all(queue);
}

int bio_submit_wait(struct bio *bio)
{
    struct bio_wait wait = {
        .queue = &bio_wait_queues[(u64)bio / 64 % BIO_WAIT_QUEUES],
    };

    bio->done = bio_wait_done;
    bio->private_ = &wait;
    bio_submit(bio);
    WAIT_FOR(wait.queue, atomic_load(&wait.is_done), "sector %lu of device %lx", bio->sector,
             bio->device->dev);
    bio_free(bio);
    return wait.error;
}
