/*
 * Block devices: the register of them, and their statistics.
 *
 * A device is registered for good, but for those of tests. The list only grows at its tail, under
 * registry_lock; a device found in it stays.
 */
#include "drivers/block/block.h"
#include "drivers/block/gate.h"
#include "drivers/block/queue.h"
#include "kernel/log/log.h"
#include "kernel/log/report.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"

#define DEFAULT_READ_AHEAD_KB 128
#define DEFAULT_TIMEOUT_NS    30000000000ul

LOCK_CLASS(block_registry_class, "block registry");
LOCK_CLASS(block_device_class, "block_device->lock");

static struct spinlock registry_lock = SPINLOCK_INIT(&block_registry_class);
static struct list registry = LIST_INIT(registry); /* registry_lock */

/* ---- The register ---- */

static struct block_queue *queue_create(struct block_device *device)
{
    struct block_queue *queue = kzalloc(sizeof(*queue));

    if (!queue)
        return NULL;
    queue->device = device;
    list_init(&queue->free);
    list_init(&queue->issued);
    wait_queue_init(&queue->slot_queue);
    block_watch_init(queue);
    for (unsigned i = 0; i < BLOCK_REQUESTS; i++) {
        struct block_request *request = &queue->requests[i];

        request->device = device;
        request->slot = i;
        list_init(&request->bios);
        list_init(&request->issued_link);
        list_add_tail(&queue->free, &request->link);
    }
    return queue;
}

static void device_set_defaults(struct block_device *device)
{
    if (!device->block_bytes)
        device->block_bytes = SECTOR_SIZE;
    if (!device->max_request_pages)
        device->max_request_pages = BIO_MAX_SEGMENTS;
    if (!device->read_ahead_kb)
        device->read_ahead_kb = DEFAULT_READ_AHEAD_KB;
    if (!device->timeout_ns)
        device->timeout_ns = DEFAULT_TIMEOUT_NS;
    device->gate = NULL;
    device->upper = NULL;
    memset(&device->stats, 0, sizeof(device->stats));
}

static struct block_device *registry_find_locked(const char *name)
{
    struct block_device *device;

    list_for_each (device, &registry, all_link) {
        if (strcmp(device->name, name) == 0)
            return device;
    }
    return NULL;
}

int block_device_register(struct block_device *device)
{
    bool irqs_on, exists;

    if (!device->sectors || !device->max_segments || !device->name[0])
        return -EINVAL;
    device_set_defaults(device);
    spin_init(&device->lock, &block_device_class);
    list_init(&device->pending);
    device->queue = queue_create(device);
    if (!device->queue)
        return -ENOMEM;

    irqs_on = spin_lock_irq(&registry_lock);
    exists = registry_find_locked(device->name) != NULL;
    if (!exists)
        list_add_tail(&registry, &device->all_link);
    spin_unlock_irq(&registry_lock, irqs_on);
    if (exists) {
        kfree(device->queue);
        device->queue = NULL;
        return -EEXIST;
    }
    log_info("%s: %lu sectors (%lu KiB), up to %u segments in a request%s", device->name,
             device->sectors, device->sectors / 2, block_segment_limit(device),
             device->is_read_only ? ", read-only" : "");
    return 0;
}

void block_device_unregister(struct block_device *device)
{
    bool irqs_on = spin_lock_irq(&registry_lock);

    list_del(&device->all_link);
    spin_unlock_irq(&registry_lock, irqs_on);
    ASSERT(READ_ONCE(device->stats.in_flight) == 0);
    timer_cancel_sync(&device->queue->watch);
    if (device->gate)
        gate_free(device->gate);
    kfree(device->queue);
    device->gate = NULL;
    device->queue = NULL;
}

struct block_device *block_device_find(const char *name)
{
    bool irqs_on = spin_lock_irq(&registry_lock);
    struct block_device *device = registry_find_locked(name);

    spin_unlock_irq(&registry_lock, irqs_on);
    return device;
}

struct block_device *block_device_find_dev(u32 dev)
{
    struct block_device *device, *found = NULL;
    bool irqs_on = spin_lock_irq(&registry_lock);

    list_for_each (device, &registry, all_link) {
        if (device->dev == dev) {
            found = device;
            break;
        }
    }
    spin_unlock_irq(&registry_lock, irqs_on);
    return found;
}

void block_for_each(void (*fn)(struct block_device *device, void *ctx), void *ctx)
{
    struct block_device *device;
    bool irqs_on = spin_lock_irq(&registry_lock);

    list_for_each (device, &registry, all_link)
        fn(device, ctx);
    spin_unlock_irq(&registry_lock, irqs_on);
}

/* ---- For reports ---- */

static void print_disks(const struct report *r, report_line line)
{
    struct block_device *device;
    bool is_idle = true;
    bool irqs_on = irq_save_disable();

    (void)r;
    if (spin_trylock(&registry_lock)) {
        list_for_each (device, &registry, all_link) {
            u32 n = READ_ONCE(device->stats.in_flight);
            u32 n_held = gate_held_now(device);

            if (n > 0)
                line("%s has %u request%s under way, %u of them held by its gate", device->name, n,
                     n == 1 ? "" : "s", n_held);
            is_idle &= n == 0;
        }
        spin_unlock(&registry_lock);
        if (is_idle)
            line("no disk has a request under way");
    }
    irq_restore(irqs_on);
}

static struct report_section disks_section = {
    REPORT_HELD, REPORT_OF_PANICS | REPORT_KIND_BIT(REPORT_HUNG_TASK), print_disks, NULL};

void block_report_init(void)
{
    report_add_section(&disks_section);
}

/* ---- Statistics ---- */

void block_stats_get(struct block_device *device, struct block_stats *out)
{
    bool irqs_on = spin_lock_irq(&device->lock);

    *out = device->stats;
    spin_unlock_irq(&device->lock, irqs_on);
}

static void stats_add_device(struct block_device *device, void *ctx)
{
    struct block_stats *sum = ctx, one;

    block_stats_get(device, &one);
    for (unsigned i = 0; i < 2; i++) {
        sum->requests[i] += one.requests[i];
        sum->merges[i] += one.merges[i];
        sum->sectors[i] += one.sectors[i];
        sum->ticks_ns[i] += one.ticks_ns[i];
    }
    sum->data_requests += one.data_requests;
    sum->data_pages += one.data_pages;
    sum->meta_requests += one.meta_requests;
    sum->meta_pages += one.meta_pages;
    sum->errors += one.errors;
    sum->timeouts += one.timeouts;
    sum->in_flight += one.in_flight;
}

void block_stats_total(struct block_stats *out)
{
    memset(out, 0, sizeof(*out));
    block_for_each(stats_add_device, out);
}
