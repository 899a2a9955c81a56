/*
 * The split virtqueue.
 *
 * Ordering (virtio 1.2, 2.7.13 and 2.7.14): the descriptors and the head are written before the
 * available index (a release store), the index before the used flags are read (a full fence: the
 * device writes the flag and then reads the index); the used index is read before the entries (an
 * acquire load).
 */
#include "drivers/virtio/ring.h"
#include "kernel/log/log.h"
#include "kernel/sync/atomic.h"
#include "lib/errno.h"

#define NO_SLOT 0xffff

static size_t available_offset(u16 size)
{
    return size * sizeof(struct virtio_descriptor);
}

/* Behind the available ring and its used_event field (2.7.6), aligned to 4. */
static size_t used_offset(u16 size)
{
    return ALIGN_UP(
        available_offset(size) + sizeof(struct virtio_available) + (size + 1ul) * sizeof(u16), 4ul);
}

size_t virtio_ring_bytes(u16 size)
{
    return used_offset(size) + sizeof(struct virtio_used) +
           size * sizeof(struct virtio_used_entry) + sizeof(u16); /* avail_event */
}

int virtio_ring_init(struct virtio_ring *ring, u16 size, void *memory, phys_t phys,
                     struct virtio_ring_slot *slots, void (*notify)(struct virtio_ring *ring),
                     void *owner)
{
    if (!size || size > VIRTIO_RING_MAX_SIZE || (size & (size - 1)))
        return -EINVAL;
    if (!IS_ALIGNED((u64)memory, VIRTIO_RING_ALIGN) || !IS_ALIGNED(phys, VIRTIO_RING_ALIGN))
        return -EINVAL;
    *ring = (struct virtio_ring){
        .descriptors = memory,
        .available = (void *)((u8 *)memory + available_offset(size)),
        .used = (void *)((u8 *)memory + used_offset(size)),
        .descriptors_phys = phys,
        .available_phys = phys + available_offset(size),
        .used_phys = phys + used_offset(size),
        .slots = slots,
        .size = size,
        .n_free = size,
        .notify = notify,
        .owner = owner,
    };
    for (u32 i = 0; i < size; i++)
        slots[i] = (struct virtio_ring_slot){.next = i + 1 < size ? (u16)(i + 1) : NO_SLOT};
    return 0;
}

/* ---- To the device ---- */

int virtio_chain_begin(struct virtio_ring *ring, u16 n, struct virtio_chain *chain)
{
    if (ring->is_broken)
        return -EIO;
    if (!n || n > ring->size)
        return -EINVAL;
    if (n > ring->n_free)
        return -EBUSY;
    *chain = (struct virtio_chain){
        .ring = ring, .head = ring->first_free, .last = NO_SLOT, .n_reserved = n};
    return 0;
}

void virtio_chain_add(struct virtio_chain *chain, phys_t address, u32 bytes, bool device_writes)
{
    struct virtio_ring *ring = chain->ring;
    u16 at = ring->first_free;
    volatile struct virtio_descriptor *descriptor = &ring->descriptors[at];
    bool is_last = ++chain->n == chain->n_reserved;

    ASSERT(chain->n <= chain->n_reserved);
    ASSERT(device_writes || !chain->writable_bytes);
    ring->first_free = ring->slots[at].next;
    ring->n_free--;
    descriptor->address = address;
    descriptor->bytes = bytes;
    descriptor->flags = (u16)((is_last ? 0 : VIRTIO_DESCRIPTOR_NEXT) |
                              (device_writes ? VIRTIO_DESCRIPTOR_WRITE : 0));
    descriptor->next = is_last ? 0 : ring->first_free;
    if (device_writes)
        chain->writable_bytes += bytes;
    chain->last = at;
}

void virtio_chain_submit(struct virtio_chain *chain, void *token)
{
    struct virtio_ring *ring = chain->ring;
    struct virtio_ring_slot *head = &ring->slots[chain->head];

    ASSERT(token && chain->n == chain->n_reserved);
    ring->slots[chain->last].next = NO_SLOT;
    head->token = token;
    head->writable_bytes = chain->writable_bytes;
    head->n_descriptors = chain->n;
    ring->in_flight++;
    ring->available->heads[ring->available_index & (ring->size - 1)] = chain->head;
    ring->available_index++;
    atomic_store(&ring->available->index, ring->available_index);
}

void virtio_ring_notify(struct virtio_ring *ring)
{
    if (ring->is_broken)
        return;
    atomic_fence();
    if (!(ring->used->flags & VIRTIO_USED_NO_NOTIFY))
        ring->notify(ring);
}

/* ---- From the device ---- */

static int ring_break(struct virtio_ring *ring, const char *because)
{
    ring->is_broken = true;
    ring->broken_because = because;
    return -EIO;
}

/* The descriptors of the chain go back in front of the free list, in their order. */
static void chain_free(struct virtio_ring *ring, u16 head)
{
    u16 last = head;

    while (ring->slots[last].next != NO_SLOT)
        last = ring->slots[last].next;
    ring->slots[last].next = ring->first_free;
    ring->first_free = head;
    ring->n_free += ring->slots[head].n_descriptors;
    ring->slots[head].token = NULL;
    ring->in_flight--;
}

int virtio_ring_take(struct virtio_ring *ring, void **token, u32 *bytes)
{
    u16 device_index, n_ready;
    struct virtio_used_entry entry;
    struct virtio_ring_slot *head;

    if (ring->is_broken)
        return -EIO;
    device_index = atomic_load(&ring->used->index);
    n_ready = (u16)(device_index - ring->used_index);
    if (n_ready == 0)
        return 0;
    if (n_ready > ring->in_flight)
        return ring_break(ring, "more used entries than chains in flight");

    /* Copied once: the device may change it between a check and a use. */
    entry.id = ring->used->entries[ring->used_index & (ring->size - 1)].id;
    entry.bytes = ring->used->entries[ring->used_index & (ring->size - 1)].bytes;
    if (entry.id >= ring->size)
        return ring_break(ring, "a used id beyond the ring");
    head = &ring->slots[entry.id];
    if (!head->token)
        return ring_break(ring, "a used id that is not in flight");
    if (entry.bytes > head->writable_bytes)
        return ring_break(ring, "a used length beyond what the device may write");

    *token = head->token;
    *bytes = entry.bytes;
    ring->used_index++;
    chain_free(ring, (u16)entry.id);
    return 1;
}
