/*
 * A virtio 1.x device on the PCI bus (virtio 1.2, 4.1): its registers, features, queues, status.
 *
 *     virtio_attach        finds the register blocks, resets the device: ACKNOWLEDGE, DRIVER
 *     virtio_negotiate     features: FEATURES_OK
 *     virtio_queue_setup   for each queue, with an interrupt of its own
 *     virtio_start         DRIVER_OK: from here on the device may be notified
 *     virtio_fail          at any step instead: reset, FAILED
 *
 * One driver owns a device; the calls are its to order. None of them sleeps.
 */
#ifndef DRIVERS_VIRTIO_TRANSPORT_H
#define DRIVERS_VIRTIO_TRANSPORT_H

#include "drivers/pci.h"
#include "drivers/virtio/ring.h"

#define VIRTIO_PCI_VENDOR           0x1af4
#define VIRTIO_PCI_DEVICE_MODERN    0x1040 /* plus the device type (4.1.2.1) */
#define VIRTIO_PCI_BLK_TRANSITIONAL 0x1001
#define VIRTIO_TYPE_BLK             2

#define VIRTIO_FEATURE(bit) (1ul << (bit))
#define VIRTIO_F_VERSION_1  VIRTIO_FEATURE(32)

enum virtio_status {
    VIRTIO_STATUS_ACKNOWLEDGE = 1,
    VIRTIO_STATUS_DRIVER = 2,
    VIRTIO_STATUS_DRIVER_OK = 4,
    VIRTIO_STATUS_FEATURES_OK = 8,
    VIRTIO_STATUS_NEEDS_RESET = 64,
    VIRTIO_STATUS_FAILED = 128,
};

/* The common configuration (4.1.4.3). */
struct virtio_pci_common {
    u32 device_feature_select, device_feature;
    u32 driver_feature_select, driver_feature;
    u16 config_msix_vector, num_queues;
    u8 device_status, config_generation;
    u16 queue_select, queue_size, queue_msix_vector, queue_enable, queue_notify_off;
    u32 queue_desc_lo, queue_desc_hi;
    u32 queue_driver_lo, queue_driver_hi;
    u32 queue_device_lo, queue_device_hi;
};
_Static_assert(sizeof(struct virtio_pci_common) == 56, "virtio 1.2, 4.1.4.3");
_Static_assert(offsetof(struct virtio_pci_common, queue_select) == 22, "virtio 1.2, 4.1.4.3");
_Static_assert(offsetof(struct virtio_pci_common, queue_desc_lo) == 32, "virtio 1.2, 4.1.4.3");

#define VIRTIO_NO_VECTOR 0xffff

struct virtio_device {
    struct pci_device *pci;
    volatile struct virtio_pci_common *common;
    volatile u8 *notify_base;
    u32 notify_bytes, notify_multiplier;
    volatile u8 *config; /* device-specific; NULL if there is none */
    u32 config_bytes;
    u64 features; /* agreed upon */
    unsigned n_msix;
};

/* => 0; -ENODEV with a log line (no modern registers, no MSI-X, does not reset); -ENOMEM */
int virtio_attach(struct virtio_device *device, struct pci_device *pci);

/* Agrees on those of `wanted` that are offered, and on VERSION_1, without which it is -ENODEV. */
int virtio_negotiate(struct virtio_device *device, u64 wanted);

/* What the device offers for this queue: its largest size. 0: there is no such queue. */
u16 virtio_queue_max_size(struct virtio_device *device, u16 index);

/*
 * Tells the device where the ring is, and that it interrupts by MSI-X entry `msix_entry`.
 *   *notify  where to write the queue's index to notify the device
 * => 0, -EIO where the device refuses the entry or gives a notification address outside its block
 */
int virtio_queue_setup(struct virtio_device *device, u16 index, const struct virtio_ring *ring,
                       u16 msix_entry, volatile u16 **notify);

void virtio_start(struct virtio_device *device);
/* Stops all of the device's memory accesses. => 0, -EIO: it does not answer. Any context. */
int virtio_reset(struct virtio_device *device);
void virtio_fail(struct virtio_device *device);

/* Copies out of the device's configuration, the same generation throughout (2.5.1). What lies
 * beyond its end is zero. offset and bytes are those of one field (1, 2, 4 or 8 bytes). */
u64 virtio_config_read(struct virtio_device *device, u32 offset, unsigned bytes);

#endif
