/*
 * A disk that does only what the test says, and bios that note how they end.
 */
#include "tests/kernel/block_fake.h"
#include "kernel/cpu/clock.h"
#include "kernel/log/log.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/slab.h"
#include "tests/kernel/ktest.h"

LOCK_CLASS(fake_disk_class, "fake_disk->lock");
LOCK_CLASS(probe_class, "probe->lock");

#define FAKE_DISK_DEV BLOCK_DEV(250, 0)

/* ---- The disk ---- */

static int fake_start(struct block_device *device, struct block_request *request)
{
    struct fake_disk *disk = device->driver;
    bool irqs_on = spin_lock_irq(&disk->lock);
    int result = disk->refuse;

    if (!result && disk->capacity && disk->n_started >= disk->capacity)
        result = -EBUSY;
    if (!result) {
        list_add_tail(&disk->started, &request->link);
        disk->n_started++;
        if (disk->n_starts < FAKE_MAX_STARTS) {
            disk->starts[disk->n_starts].sector = request->sector;
            disk->starts[disk->n_starts].bytes = request->bytes;
            disk->starts[disk->n_starts].flags = request->flags;
            disk->starts[disk->n_starts].n_segments = request->n_segments;
        }
        disk->n_starts++;
    }
    spin_unlock_irq(&disk->lock, irqs_on);
    return result;
}

bool fake_disk_complete(struct fake_disk *disk, u32 index, int error)
{
    struct block_request *request, *found = NULL;
    bool irqs_on = spin_lock_irq(&disk->lock);

    list_for_each (request, &disk->started, link) {
        if (index-- == 0) {
            found = request;
            break;
        }
    }
    if (found) {
        list_del(&found->link);
        disk->n_started--;
    }
    spin_unlock_irq(&disk->lock, irqs_on);
    if (found)
        block_request_done(found, error);
    return found != NULL;
}

void fake_disk_complete_all(struct fake_disk *disk)
{
    while (fake_disk_complete(disk, 0, 0)) {
    }
}

static void fake_poll(struct block_device *device)
{
    struct fake_disk *disk = device->driver;

    disk->n_polls++;
    if (disk->poll_completes)
        fake_disk_complete_all(disk);
}

static const struct block_driver_ops fake_ops = {.start = fake_start, .poll = fake_poll};

struct fake_disk *fake_disk_create(u64 sectors, u32 max_segments)
{
    struct fake_disk *disk = kzalloc(sizeof(*disk));

    if (!KEXPECT(disk != NULL))
        return NULL;
    spin_init(&disk->lock, &fake_disk_class);
    list_init(&disk->started);
    string_copy(disk->device.name, "fake0", sizeof(disk->device.name));
    disk->device.dev = FAKE_DISK_DEV;
    disk->device.sectors = sectors;
    disk->device.max_segments = max_segments;
    disk->device.is_virtual = true;
    disk->device.ops = &fake_ops;
    disk->device.driver = disk;
    if (!KEXPECT_EQ(block_device_register(&disk->device), 0)) {
        kfree(disk);
        return NULL;
    }
    return disk;
}

void fake_disk_destroy(struct fake_disk *disk)
{
    block_device_unregister(&disk->device);
    kfree(disk);
}

/* ---- Bios that note their end ---- */

bool probe_init(struct probe *probe)
{
    memset(probe, 0, sizeof(*probe));
    spin_init(&probe->lock, &probe_class);
    wait_queue_init(&probe->queue);
    probe->page = frame_alloc(FRAME_ZERO);
    return KEXPECT(probe->page != NULL);
}

void probe_destroy(struct probe *probe)
{
    page_put(probe->page);
}

static void probe_done(struct bio *bio, int error)
{
    struct probe *probe = bio->private_;
    bool irqs_were_on = spin_lock_irq(&probe->lock);

    if (probe->n_done < PROBE_MAX) {
        probe->done[probe->n_done].sector = bio->sector;
        probe->done[probe->n_done].error = error;
        probe->done[probe->n_done].time_ns = clock_ns();
        probe->done[probe->n_done].irqs_were_on = irqs_were_on;
        probe->done[probe->n_done].in_interrupt = this_cpu()->irq_depth > 0;
    }
    bio_free(bio);
    probe->n_done++;
    wait_wake_all(&probe->queue); /* with the lock held: the waiter must not leave before this */
    spin_unlock_irq(&probe->lock, irqs_were_on);
}

struct bio *probe_bio(struct probe *probe, struct block_device *device, u64 sector, u32 n_pages,
                      u32 flags)
{
    struct bio *bio = bio_alloc(device, n_pages);

    ASSERT(bio);
    bio->sector = sector;
    bio->flags = flags;
    bio->done = probe_done;
    bio->private_ = probe;
    for (u32 i = 0; i < n_pages; i++)
        ASSERT(bio_add(bio, probe->page, 0, PAGE_SIZE));
    return bio;
}

void probe_submit(struct probe *probe, struct block_device *device, u64 sector, u32 n_pages,
                  u32 flags)
{
    bio_submit(probe_bio(probe, device, sector, n_pages, flags));
}

static u32 probe_n_done(struct probe *probe)
{
    bool irqs_on = spin_lock_irq(&probe->lock);
    u32 n_done = probe->n_done;

    spin_unlock_irq(&probe->lock, irqs_on);
    return n_done;
}

void probe_wait(struct probe *probe, u32 n_done)
{
    WAIT_FOR(&probe->queue, probe_n_done(probe) >= n_done, "%lu bios of a test", n_done, 0);
}

/* ---- Real transfers ---- */

int block_transfer(struct block_device *device, u64 sector, struct page **pages, u32 n_pages,
                   u32 flags)
{
    struct bio *bio = bio_alloc(device, n_pages);

    if (!bio)
        return -ENOMEM;
    bio->sector = sector;
    bio->flags = flags;
    for (u32 i = 0; i < n_pages; i++)
        ASSERT(bio_add(bio, pages[i], 0, PAGE_SIZE));
    return bio_submit_wait(bio);
}

bool pages_get(struct page **pages, u32 n)
{
    for (u32 i = 0; i < n; i++) {
        pages[i] = frame_alloc(FRAME_ZERO);
        if (!KEXPECT(pages[i] != NULL)) {
            pages_put(pages, i);
            return false;
        }
    }
    return true;
}

void pages_put(struct page **pages, u32 n)
{
    for (u32 i = 0; i < n; i++)
        page_put(pages[i]);
}
