/*
 * The RAM disk.
 */
#include "drivers/block/ramdisk.h"
#include "kernel/log/log.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"

#define RAMDISK_MAJOR 1

struct ramdisk {
    struct block_device device;
    u8 *data;
};

static struct ramdisk *ramdisk_of(struct block_device *device)
{
    return container_of(device, struct ramdisk, device);
}

static void ramdisk_copy(struct ramdisk *disk, struct block_request *request)
{
    u8 *at = disk->data + request->sector * SECTOR_SIZE;
    struct block_segments it;
    struct bio_segment *segment;

    for (block_segments_start(&it, request); (segment = block_segments_next(&it));) {
        u8 *memory = (u8 *)page_virt(segment->page) + segment->offset;

        if (request->flags & BIO_WRITE)
            memcpy(at, memory, segment->bytes);
        else
            memcpy(memory, at, segment->bytes);
        at += segment->bytes;
    }
}

static int ramdisk_start(struct block_device *device, struct block_request *request)
{
    u64 n_sectors = request->bytes / SECTOR_SIZE;

    if (request->sector > device->sectors || n_sectors > device->sectors - request->sector)
        return -EIO;
    ramdisk_copy(ramdisk_of(device), request);
    block_request_done(request, 0);
    return 0;
}

static const struct block_driver_ops ramdisk_ops = {.start = ramdisk_start};

static u32 ramdisk_next_dev(void)
{
    static u32 next_minor; /* a number more than needed is no harm */

    return BLOCK_DEV(RAMDISK_MAJOR, (atomic_add(&next_minor, 1) - 1) & 0xff);
}

struct block_device *ramdisk_create(const char *name, void *data, u64 bytes)
{
    struct ramdisk *disk = kzalloc(sizeof(*disk));
    int error = -ENOMEM;

    if (!disk)
        goto fail;
    string_copy(disk->device.name, name, sizeof(disk->device.name));
    disk->device.dev = ramdisk_next_dev();
    disk->device.sectors = bytes / SECTOR_SIZE;
    disk->device.max_segments = BIO_MAX_SEGMENTS;
    disk->device.is_virtual = true;
    disk->device.ops = &ramdisk_ops;
    disk->data = data;
    if (bytes % SECTOR_SIZE)
        log_warn("%s: the last %lu bytes are no whole sector and are left out", name,
                 bytes % SECTOR_SIZE);
    error = block_device_register(&disk->device);
    if (!error)
        return &disk->device;
fail:
    log_error("%s: no RAM disk of %lu bytes: %s", name, bytes,
              error == -ENOMEM   ? "out of memory"
              : error == -EEXIST ? "there is a device of that name"
                                 : "it has no whole sector");
    kfree(disk);
    return NULL;
}

void ramdisk_destroy(struct block_device *device)
{
    block_device_unregister(device);
    kfree(ramdisk_of(device));
}

void *ramdisk_data(struct block_device *device)
{
    return ramdisk_of(device)->data;
}
