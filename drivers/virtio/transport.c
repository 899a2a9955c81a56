/*
 * virtio over PCI.
 *
 * The register blocks are found by vendor capabilities (4.1.4): each says in which BAR it lies,
 * where and how long. The first of each kind that can be mapped is taken, as the standard asks.
 */
#include "drivers/virtio/transport.h"
#include "kernel/cpu/clock.h"
#include "kernel/cpu/cpu.h"
#include "kernel/log/log.h"
#include "lib/errno.h"
#include "lib/string.h"

/* Offsets in a vendor capability (4.1.4). */
enum {
    CAP_LENGTH = 2,
    CAP_TYPE = 3,
    CAP_BAR = 4,
    CAP_OFFSET = 8,
    CAP_BYTES = 12,
    CAP_NOTIFY_MULTIPLIER = 16,
};

#define CAP_MIN_LENGTH    16
#define CAP_NOTIFY_LENGTH 20

enum virtio_cap_type { CAP_COMMON = 1, CAP_NOTIFY = 2, CAP_ISR = 3, CAP_DEVICE = 4 };

#define RESET_WAIT_NS     100000000ul
#define RESET_POLLS       1000000u /* a clock that stands still must not keep us */
#define CONFIG_READ_TRIES 16

/* ---- Finding the registers ---- */

static volatile void *capability_map(struct pci_device *pci, unsigned cap, u32 min_bytes,
                                     u32 *bytes)
{
    u8 bar = pci_read8(pci, cap + CAP_BAR);

    *bytes = pci_read32(pci, cap + CAP_BYTES);
    if (*bytes < min_bytes || bar >= PCI_BARS)
        return NULL;
    return pci_map_bar(pci, bar, pci_read32(pci, cap + CAP_OFFSET), *bytes);
}

static void capability_take(struct virtio_device *device, unsigned cap)
{
    struct pci_device *pci = device->pci;
    u8 type = pci_read8(pci, cap + CAP_TYPE);
    u8 length = pci_read8(pci, cap + CAP_LENGTH);
    u32 bytes;

    if (length < CAP_MIN_LENGTH)
        return;
    if (type == CAP_COMMON && !device->common) {
        device->common = capability_map(pci, cap, sizeof(*device->common), &bytes);
    } else if (type == CAP_NOTIFY && !device->notify_base && length >= CAP_NOTIFY_LENGTH) {
        device->notify_base = capability_map(pci, cap, sizeof(u16), &device->notify_bytes);
        device->notify_multiplier = pci_read32(pci, cap + CAP_NOTIFY_MULTIPLIER);
    } else if (type == CAP_DEVICE && !device->config) {
        device->config = capability_map(pci, cap, 1, &device->config_bytes);
    }
}

static void status_add(struct virtio_device *device, u8 status)
{
    device->common->device_status = device->common->device_status | status;
}

static int refuse(struct virtio_device *device, const char *because)
{
    log_error("virtio %02x:%02x.%x: %s", device->pci->bus, device->pci->slot, device->pci->function,
              because);
    return -ENODEV;
}

int virtio_attach(struct virtio_device *device, struct pci_device *pci)
{
    int n_msix;

    memset(device, 0, sizeof(*device));
    device->pci = pci;
    pci_enable(pci);
    for (unsigned cap = pci_capability_next(pci, PCI_CAPABILITY_VENDOR, 0); cap;
         cap = pci_capability_next(pci, PCI_CAPABILITY_VENDOR, cap))
        capability_take(device, cap);
    if (!device->common || !device->notify_base)
        return refuse(device, "no virtio 1.x registers (disable-modern=on?)");
    if (virtio_reset(device))
        return refuse(device, "does not come out of reset");
    status_add(device, VIRTIO_STATUS_ACKNOWLEDGE);
    status_add(device, VIRTIO_STATUS_DRIVER);
    n_msix = pci_msix_enable(pci);
    if (n_msix < 1) {
        virtio_fail(device);
        return refuse(device, "no MSI-X interrupts (vectors=0?)");
    }
    device->n_msix = (unsigned)n_msix;
    device->common->config_msix_vector = VIRTIO_NO_VECTOR;
    return 0;
}

/* ---- Status and features ---- */

int virtio_reset(struct virtio_device *device)
{
    u64 deadline = clock_ns() + RESET_WAIT_NS;

    device->common->device_status = 0;
    for (u32 polls = 0; device->common->device_status != 0; polls++) {
        if (clock_ns() > deadline || polls > RESET_POLLS)
            return -EIO;
        cpu_pause();
    }
    return 0;
}

void virtio_fail(struct virtio_device *device)
{
    virtio_reset(device);
    status_add(device, VIRTIO_STATUS_FAILED);
}

static u64 offered_features(struct virtio_device *device)
{
    u64 low;

    device->common->device_feature_select = 0;
    low = device->common->device_feature;
    device->common->device_feature_select = 1;
    return low | (u64)device->common->device_feature << 32;
}

int virtio_negotiate(struct virtio_device *device, u64 wanted)
{
    u64 features = offered_features(device) & (wanted | VIRTIO_F_VERSION_1);

    if (!(features & VIRTIO_F_VERSION_1))
        return refuse(device, "does not offer virtio 1.x");
    device->common->driver_feature_select = 0;
    device->common->driver_feature = (u32)features;
    device->common->driver_feature_select = 1;
    device->common->driver_feature = (u32)(features >> 32);
    status_add(device, VIRTIO_STATUS_FEATURES_OK);
    if (!(device->common->device_status & VIRTIO_STATUS_FEATURES_OK))
        return refuse(device, "refuses the features it offered");
    device->features = features;
    return 0;
}

void virtio_start(struct virtio_device *device)
{
    status_add(device, VIRTIO_STATUS_DRIVER_OK);
}

/* ---- Queues ---- */

u16 virtio_queue_max_size(struct virtio_device *device, u16 index)
{
    if (index >= device->common->num_queues)
        return 0;
    device->common->queue_select = index;
    return device->common->queue_size;
}

int virtio_queue_setup(struct virtio_device *device, u16 index, const struct virtio_ring *ring,
                       u16 msix_entry, volatile u16 **notify)
{
    volatile struct virtio_pci_common *common = device->common;
    u64 notify_offset;

    common->queue_select = index;
    notify_offset = (u64)common->queue_notify_off * device->notify_multiplier;
    if (notify_offset + sizeof(u16) > device->notify_bytes || notify_offset % sizeof(u16))
        return -EIO;
    *notify = (volatile u16 *)(device->notify_base + notify_offset);
    common->queue_size = ring->size;
    common->queue_desc_lo = (u32)ring->descriptors_phys;
    common->queue_desc_hi = (u32)(ring->descriptors_phys >> 32);
    common->queue_driver_lo = (u32)ring->available_phys;
    common->queue_driver_hi = (u32)(ring->available_phys >> 32);
    common->queue_device_lo = (u32)ring->used_phys;
    common->queue_device_hi = (u32)(ring->used_phys >> 32);
    common->queue_msix_vector = msix_entry;
    if (common->queue_msix_vector != msix_entry)
        return -EIO;
    common->queue_enable = 1;
    return 0;
}

/* ---- Configuration ---- */

/* In pieces of at most 4 bytes: a 64-bit field may not be read at once (4.1.3.1). */
static u64 config_read_once(volatile u8 *field, unsigned bytes)
{
    switch (bytes) {
    case 1: return *field;
    case 2: return *(volatile u16 *)field;
    case 4: return *(volatile u32 *)field;
    default: return *(volatile u32 *)field | (u64) * (volatile u32 *)(field + 4) << 32;
    }
}

u64 virtio_config_read(struct virtio_device *device, u32 offset, unsigned bytes)
{
    u64 value = 0;

    if (!device->config || (u64)offset + bytes > device->config_bytes)
        return 0;
    for (unsigned i = 0; i < CONFIG_READ_TRIES; i++) {
        u8 generation = device->common->config_generation;

        value = config_read_once(device->config + offset, bytes);
        if (device->common->config_generation == generation)
            break;
    }
    return value;
}
