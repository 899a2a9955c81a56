/*
 * The watch over requests that do not come back: each is reported once, device->timeout_ns after it
 * was given to the driver, by one timer for the device.
 *
 * The timer is armed when a request is left with the driver and it is not armed already, and again
 * from its own callback while something is there; a busy device pays for it once in a time-out.
 *
 * Before anything is reported the driver looks once more itself (ops->poll): a lost interrupt is a
 * different fault than a lost request. Under icount virtual time jumps to the next armed timer
 * while the host's disk still works, so devices with hardware behind them are not watched then.
 *
 * A report changes nothing: the request stays the device's, whose memory it may still write to.
 */
#include "drivers/block/queue.h"
#include "kernel/cpu/clock.h"
#include "kernel/log/log.h"

static bool is_watched(const struct block_device *device)
{
    return device->is_virtual || !clock_is_icount;
}

/* The oldest request that was not reported; they lie in order of issue_ns. NULL if none. */
static struct block_request *watch_oldest_locked(struct block_queue *queue)
{
    struct block_request *request;

    list_for_each (request, &queue->issued, issued_link) {
        if (!request->was_reported)
            return request;
    }
    return NULL;
}

void block_watch_issued_locked(struct block_queue *queue)
{
    struct block_request *oldest;

    if (queue->watch_is_armed || list_is_empty(&queue->issued) || !is_watched(queue->device))
        return;
    oldest = watch_oldest_locked(queue);
    if (!oldest)
        return;
    queue->watch_is_armed = true;
    timer_arm(&queue->watch, oldest->issue_ns + queue->device->timeout_ns);
}

static bool watch_is_overdue_locked(struct block_queue *queue, u64 now)
{
    struct block_request *oldest = watch_oldest_locked(queue);

    return oldest && now >= oldest->issue_ns + queue->device->timeout_ns;
}

static void watch_report_locked(struct block_queue *queue, u64 now)
{
    struct block_device *device = queue->device;

    while (watch_is_overdue_locked(queue, now)) {
        struct block_request *request = watch_oldest_locked(queue);
        u64 since_ms = request->issue_ns / 1000000;

        request->was_reported = true;
        device->stats.timeouts++;
        log_error("%s: %s of sector %lu (%u bytes) has not come back for %lu ms, "
                  "since %lu.%03lu s after boot",
                  device->name, request->flags & BIO_WRITE ? "write" : "read", request->sector,
                  request->bytes, (now - request->issue_ns) / 1000000, since_ms / 1000,
                  since_ms % 1000);
    }
}

static void watch_expired(struct timer *timer)
{
    struct block_queue *queue = container_of(timer, struct block_queue, watch);
    struct block_device *device = queue->device;
    u64 now = clock_ns();
    bool irqs_on = spin_lock_irq(&device->lock);

    if (watch_is_overdue_locked(queue, now) && device->ops->poll) {
        spin_unlock_irq(&device->lock, irqs_on);
        device->ops->poll(device);
        irqs_on = spin_lock_irq(&device->lock);
        if (!watch_is_overdue_locked(queue, now))
            log_warn("%s: a completion was found without an interrupt for it", device->name);
    }
    watch_report_locked(queue, now);
    queue->watch_is_armed = false;
    block_watch_issued_locked(queue);
    spin_unlock_irq(&device->lock, irqs_on);
}

void block_watch_init(struct block_queue *queue)
{
    timer_init(&queue->watch, watch_expired);
}
