/*
 * Requests: the slots they live in, the way to the driver and the way back.
 *
 *     block_request_get      takes a slot, sleeps where all are in use
 *     block_request_submit   counts it; the gate may keep it
 *     block_dispatch         queues it and, unless somebody is at it already, feeds the driver
 *     block_request_done     by the driver; the gate may delay it
 *     block_request_finish   counts it, gives the slot back, ends the bios
 *
 * The driver is fed by one CPU at a time without a lock: whoever finds nobody in the loop enters
 * it, everybody else just queues. So order is kept, a driver may call block_request_done() from
 * within start() (the RAM disk does) without recursion, and nobody spins while a device is
 * notified.
 */
#include "drivers/block/queue.h"
#include "kernel/cpu/clock.h"
#include "kernel/log/log.h"
#include "lib/errno.h"

static unsigned request_direction(const struct block_request *request)
{
    return request->flags & BIO_WRITE ? 1 : 0;
}

/* ---- Slots ---- */

static struct block_request *request_try_get(struct block_device *device, bool is_waiting)
{
    struct block_queue *queue = device->queue;
    struct block_request *request = NULL;
    bool irqs_on = spin_lock_irq(&device->lock);

    if (!list_is_empty(&queue->free)) {
        request = list_first(&queue->free, struct block_request, link);
        list_del(&request->link);
        queue->slot_waiters -= is_waiting;
    }
    spin_unlock_irq(&device->lock, irqs_on);
    return request;
}

static void request_slot_wanted(struct block_device *device)
{
    bool irqs_on = spin_lock_irq(&device->lock);

    device->queue->slot_waiters++;
    spin_unlock_irq(&device->lock, irqs_on);
}

struct block_request *block_request_get(struct block_device *device)
{
    struct block_request *request;

    lockorder_might_sleep("block_request_get");
    request = request_try_get(device, false);
    if (!request) {
        request_slot_wanted(device);
        WAIT_FOR(&device->queue->slot_queue, (request = request_try_get(device, true)),
                 "free request of device %lx", device->dev, 0);
    }
    request->bytes = 0;
    request->n_segments = 0;
    list_init(&request->bios);
    request->part = NULL;
    request->part_first = 0;
    request->issue_ns = 0;
    request->deliver_ns = 0;
    request->error = 0;
    request->was_reported = false;
    return request;
}

/* ---- Down ---- */

static void stats_count_read_locked(struct block_stats *stats, const struct block_request *request)
{
    u64 pages = DIV_ROUND_UP(request->bytes, PAGE_SIZE);

    if (request->flags & BIO_META) {
        stats->meta_requests++;
        stats->meta_pages += pages;
    } else {
        stats->data_requests++;
        stats->data_pages += pages;
    }
}

void block_request_submit(struct block_request *request, u32 n_merged)
{
    struct block_device *device = request->device;
    struct gate *gate = atomic_load(&device->gate);
    bool irqs_on;

    irqs_on = spin_lock_irq(&device->lock);
    request->submit_ns = clock_ns();
    device->stats.in_flight++;
    device->stats.merges[request_direction(request)] += n_merged;
    if (!(request->flags & (BIO_WRITE | BIO_FLUSH)))
        stats_count_read_locked(&device->stats, request);
    spin_unlock_irq(&device->lock, irqs_on);

    if (gate && gate_filter(gate, request))
        return;
    block_dispatch(request);
}

/*
 * One request to the driver. The lock is held on entry and return, not meanwhile.
 * => whether the driver took it (or refused it for good, which ends it)
 */
static bool dispatch_one_locked(struct block_device *device, struct block_request *request,
                                bool *irqs_on)
{
    struct block_queue *queue = device->queue;
    int result;

    if (!request->issue_ns) /* else the driver had no room the last time */
        block_trace_issue(request);
    request->issue_ns = clock_ns();
    list_add_tail(&queue->issued, &request->issued_link);
    spin_unlock_irq(&device->lock, *irqs_on);
    result = device->ops->start(device, request);
    if (result && result != -EBUSY)
        block_request_done(request, result);
    *irqs_on = spin_lock_irq(&device->lock);
    if (result != -EBUSY)
        return true;
    list_del(&request->issued_link);
    return false;
}

/*
 * Feeds the driver until it has no room or nothing is left.
 *
 * "No room" may be old news when it arrives here: a completion between the driver's answer and our
 * taking the lock finds us in the loop and leaves the feeding to us. The count of completions
 * tells.
 */
static void dispatch_pending(struct block_device *device)
{
    struct block_queue *queue = device->queue;
    bool irqs_on = spin_lock_irq(&device->lock);

    if (queue->is_dispatching) {
        spin_unlock_irq(&device->lock, irqs_on);
        return;
    }
    queue->is_dispatching = true;
    while (!list_is_empty(&device->pending)) {
        struct block_request *request = list_first(&device->pending, struct block_request, link);
        u64 completions = queue->completions;

        list_del(&request->link);
        if (dispatch_one_locked(device, request, &irqs_on))
            continue;
        list_add_head(&device->pending, &request->link);
        if (queue->completions == completions)
            break;
    }
    queue->is_dispatching = false;
    block_watch_issued_locked(queue);
    spin_unlock_irq(&device->lock, irqs_on);
}

void block_dispatch(struct block_request *request)
{
    struct block_device *device = request->device;
    bool irqs_on = spin_lock_irq(&device->lock);

    list_add_tail(&device->pending, &request->link);
    spin_unlock_irq(&device->lock, irqs_on);
    dispatch_pending(device);
}

/* ---- Up ---- */

void block_request_done(struct block_request *request, int error)
{
    struct block_device *device = request->device;
    struct gate *gate = atomic_load(&device->gate);
    bool irqs_on = spin_lock_irq(&device->lock);
    bool has_pending;

    list_del(&request->issued_link);
    device->queue->completions++;
    has_pending = !list_is_empty(&device->pending);
    spin_unlock_irq(&device->lock, irqs_on);

    if (request->was_reported)
        log_warn("%s: the request for sector %lu came back after all", device->name,
                 request->sector);
    request->error = error;
    if (!gate || !gate_filter_done(gate, request))
        block_request_finish(request);
    if (has_pending)
        dispatch_pending(device);
}

static void stats_count_done_locked(struct block_stats *stats, const struct block_request *request)
{
    unsigned direction = request_direction(request);

    stats->in_flight--;
    stats->errors += request->error != 0;
    if (request->flags & BIO_FLUSH)
        return;
    stats->requests[direction]++;
    stats->sectors[direction] += request->bytes / SECTOR_SIZE;
    stats->ticks_ns[direction] += clock_ns() - request->submit_ns;
}

void block_request_finish(struct block_request *request)
{
    struct block_device *device = request->device;
    struct block_queue *queue = device->queue;
    struct bio *part = request->part, *bio, *next;
    struct list bios = LIST_INIT(bios);
    int error = request->error;
    block_trace_complete(request);
    bool irqs_on = spin_lock_irq(&device->lock);
    bool is_wanted;

    list_splice_tail(&bios, &request->bios);
    stats_count_done_locked(&device->stats, request);
    list_add_tail(&queue->free, &request->link); /* from here on it may be somebody else's */
    is_wanted = queue->slot_waiters > 0;
    spin_unlock_irq(&device->lock, irqs_on);

    if (part)
        bio_end_part(part, error);
    list_for_each_safe (bio, next, &bios, link) {
        list_del(&bio->link);
        bio_end_part(bio, error);
    }
    if (is_wanted)
        wait_wake_all(&queue->slot_queue);
}

/* ---- Segments ---- */

void block_segments_start(struct block_segments *it, struct block_request *request)
{
    it->request = request;
    it->left = request->n_segments;
    it->bio = request->part;
    it->index = request->part_first;
    if (!it->bio && it->left)
        it->bio = list_first(&request->bios, struct bio, link);
}

struct bio_segment *block_segments_next(struct block_segments *it)
{
    if (!it->left)
        return NULL;
    if (it->index == it->bio->n_segments) {
        it->bio = list_first(&it->bio->link, struct bio, link);
        it->index = 0;
    }
    it->left--;
    return &it->bio->segments[it->index++];
}
