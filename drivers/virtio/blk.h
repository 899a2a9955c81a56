/*
 * The layouts of a virtio block device (virtio 1.2, 5.2).
 */
#ifndef DRIVERS_VIRTIO_BLK_H
#define DRIVERS_VIRTIO_BLK_H

#include "drivers/virtio/transport.h"

/* Feature bits (5.2.3). */
#define VIRTIO_BLK_F_SIZE_MAX VIRTIO_FEATURE(1)
#define VIRTIO_BLK_F_SEG_MAX  VIRTIO_FEATURE(2)
#define VIRTIO_BLK_F_RO       VIRTIO_FEATURE(5)
#define VIRTIO_BLK_F_BLK_SIZE VIRTIO_FEATURE(6)
#define VIRTIO_BLK_F_FLUSH    VIRTIO_FEATURE(9)
#define VIRTIO_BLK_F_MQ       VIRTIO_FEATURE(12)

/* Device configuration (5.2.4); a field counts only with its feature. */
struct virtio_blk_config {
    u64 capacity; /* 512-byte sectors */
    u32 size_max; /* bytes of a segment */
    u32 seg_max;  /* segments of a request */
    u16 cylinders;
    u8 heads, sectors;
    u32 blk_size;
    u8 topology[8];
    u8 writeback, unused;
    u16 num_queues;
};
_Static_assert(offsetof(struct virtio_blk_config, blk_size) == 20, "virtio 1.2, 5.2.4");
_Static_assert(offsetof(struct virtio_blk_config, num_queues) == 34, "virtio 1.2, 5.2.4");

enum virtio_blk_type { VIRTIO_BLK_T_IN = 0, VIRTIO_BLK_T_OUT = 1, VIRTIO_BLK_T_FLUSH = 4 };

enum virtio_blk_status {
    VIRTIO_BLK_S_OK = 0,
    VIRTIO_BLK_S_IOERR = 1,
    VIRTIO_BLK_S_UNSUPP = 2,
    VIRTIO_BLK_S_NONE = 0xff, /* ours: the device has not written it */
};

/* What surrounds the data of a request (5.2.6): a header the device reads, a byte it writes. */
struct virtio_blk_command {
    u32 type, reserved;
    u64 sector;
    u8 status;
    u8 unused[15];
};
#define VIRTIO_BLK_HEADER_BYTES 16
_Static_assert(offsetof(struct virtio_blk_command, status) == VIRTIO_BLK_HEADER_BYTES,
               "virtio 1.2, 5.2.6");
_Static_assert(sizeof(struct virtio_blk_command) == 32, "128 of them in a frame");

#endif
