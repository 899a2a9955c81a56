/*
 * The split virtqueue, driver side (virtio 1.2, 2.7). Knows only memory and a function that
 * notifies.
 *
 *     driver                     memory                               device
 *     virtio_chain_begin/add     descriptor table   what and where
 *     virtio_chain_submit        available ring  -> heads of chains -> takes one, reads and writes
 *     virtio_ring_take        <- used ring          heads, lengths  <- gives it back
 *
 * Rules:
 *   - The caller's lock guards a ring; one thread of execution uses it at a time.
 *   - Nothing the device may write is believed. What the driver must remember (free descriptors,
 *     chains in flight) lies in memory of its own; the descriptor table is only ever written.
 *   - A used ring that lies (more entries than chains in flight, an id that is not the head of one,
 * a length beyond what the device might write) breaks the ring: every call from then on is -EIO,
 *     and nothing is given back any more. The owner resets the device before it reuses memory.
 */
#ifndef DRIVERS_VIRTIO_RING_H
#define DRIVERS_VIRTIO_RING_H

#include "lib/types.h"

#define VIRTIO_RING_MAX_SIZE 32768 /* virtio 1.2, 2.7 */
#define VIRTIO_RING_ALIGN    16    /* of the whole; each part follows from it */

/* The parts as the device sees them (2.7.5, 2.7.6, 2.7.8); little endian. */
struct virtio_descriptor {
    u64 address;
    u32 bytes;
    u16 flags;
    u16 next;
};
_Static_assert(sizeof(struct virtio_descriptor) == 16, "virtio 1.2, 2.7.5");

enum virtio_descriptor_flags {
    VIRTIO_DESCRIPTOR_NEXT = 1u << 0,  /* the chain goes on at `next` */
    VIRTIO_DESCRIPTOR_WRITE = 1u << 1, /* the device writes; else it reads */
};

struct virtio_available {
    u16 flags;
    u16 index; /* where the driver puts the next head, modulo size */
    u16 heads[];
};

struct virtio_used_entry {
    u32 id;    /* head of the chain */
    u32 bytes; /* written by the device */
};

#define VIRTIO_USED_NO_NOTIFY 1u /* the device looks by itself */

struct virtio_used {
    u16 flags;
    u16 index; /* where the device puts the next entry, modulo size */
    struct virtio_used_entry entries[];
};
_Static_assert(offsetof(struct virtio_used, entries) == 4, "virtio 1.2, 2.7.8");

/* One for each descriptor; the driver's own memory. */
struct virtio_ring_slot {
    void *token;        /* of the chain that begins here; NULL: none does */
    u32 writable_bytes; /* what the device may write in that chain */
    u16 n_descriptors;  /* of that chain */
    u16 next;           /* in the chain, or in the free list */
};

struct virtio_ring {
    volatile struct virtio_descriptor *descriptors;
    volatile struct virtio_available *available;
    volatile struct virtio_used *used;
    phys_t descriptors_phys, available_phys, used_phys;
    struct virtio_ring_slot *slots;
    u16 size; /* descriptors; a power of two */
    u16 n_free, first_free;
    u16 available_index; /* what the device was told last */
    u16 used_index;      /* the next entry to be taken */
    u16 in_flight;       /* chains */
    bool is_broken;
    const char *broken_because; /* NULL, or a sentence for the log */
    void (*notify)(struct virtio_ring *ring);
    void *owner;
};

/* Bytes of the part that device and driver share, for a ring of `size` descriptors. */
size_t virtio_ring_bytes(u16 size);

/*
 * Makes an empty ring.
 *   memory  virtio_ring_bytes(size) bytes, zeroed, aligned to VIRTIO_RING_ALIGN; phys its address
 *   slots   `size` of them
 *   notify  tells the device that there is something new; `owner` is for it
 * => 0, or -EINVAL: size is no power of two up to VIRTIO_RING_MAX_SIZE, or memory is not aligned
 */
int virtio_ring_init(struct virtio_ring *ring, u16 size, void *memory, phys_t phys,
                     struct virtio_ring_slot *slots, void (*notify)(struct virtio_ring *ring),
                     void *owner);

/* A chain in the making. First everything the device reads, then what it writes (2.7.4.2). */
struct virtio_chain {
    struct virtio_ring *ring;
    u16 head, last;
    u16 n, n_reserved;
    u32 writable_bytes;
};

/* Sets n descriptors aside. => 0, -EBUSY (not so many free now), -EINVAL (0, or more than the ring
 * has), -EIO (broken). After 0 the chain must get exactly n descriptors and be submitted. */
MUST_CHECK int virtio_chain_begin(struct virtio_ring *ring, u16 n, struct virtio_chain *chain);
void virtio_chain_add(struct virtio_chain *chain, phys_t address, u32 bytes, bool device_writes);
/* Gives it to the device; token (not NULL) comes back from virtio_ring_take. No notification yet.
 */
void virtio_chain_submit(struct virtio_chain *chain, void *token);

/* Notifies the device of all that was submitted, unless it said that it looks by itself. */
void virtio_ring_notify(struct virtio_ring *ring);

/*
 * Takes one chain that the device is done with.
 * => 1: *token and *bytes (written by the device) are set, the descriptors are free again
 * => 0: nothing there;  -EIO: the device lied, now or before (broken_because says how)
 */
MUST_CHECK int virtio_ring_take(struct virtio_ring *ring, void **token, u32 *bytes);

#endif
