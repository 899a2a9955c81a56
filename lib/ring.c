/*
 * Single-producer, single-consumer byte ring.
 *
 * The order that makes it work without a lock: the producer stores the bytes, then releases `head`;
 * the consumer acquires `head`, then loads the bytes, then releases `tail`; the producer acquires
 * `tail` before it overwrites. A side that sees an old counter of the other sees less to do, never
 * too much.
 */
#include "lib/ring.h"

#include "lib/string.h"

void ring_init(struct ring *ring, void *data, u32 size_bytes)
{
    ring->data = data;
    ring->size_bytes = size_bytes;
    ring->head = 0;
    ring->tail = 0;
}

u32 ring_used(const struct ring *ring)
{
    /* The tail first: the head is never behind a tail that was read before it. */
    u32 tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
    u32 used = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) - tail;

    /* Between the two loads the other side may have moved on, by more than a whole ring. */
    return MIN(used, ring->size_bytes);
}

u32 ring_space(const struct ring *ring)
{
    return ring->size_bytes - ring_used(ring);
}

size_t ring_write(struct ring *ring, const void *src, size_t n)
{
    u32 at = ring->head & (ring->size_bytes - 1);
    u32 space = ring_space(ring); /* once: the consumer is changing it */
    u32 fits = (u32)MIN(n, (size_t)space);
    u32 before_wrap = MIN(fits, ring->size_bytes - at);

    memcpy(ring->data + at, src, before_wrap);
    memcpy(ring->data, (const u8 *)src + before_wrap, fits - before_wrap);
    __atomic_store_n(&ring->head, ring->head + fits, __ATOMIC_RELEASE);
    return fits;
}

bool ring_put(struct ring *ring, u8 byte)
{
    return ring_write(ring, &byte, 1) == 1;
}

size_t ring_read(struct ring *ring, void *dst, size_t n)
{
    u32 at = ring->tail & (ring->size_bytes - 1);
    u32 used = ring_used(ring); /* once: the producer is changing it */
    u32 there = (u32)MIN(n, (size_t)used);
    u32 before_wrap = MIN(there, ring->size_bytes - at);

    memcpy(dst, ring->data + at, before_wrap);
    memcpy((u8 *)dst + before_wrap, ring->data, there - before_wrap);
    __atomic_store_n(&ring->tail, ring->tail + there, __ATOMIC_RELEASE);
    return there;
}

bool ring_get(struct ring *ring, u8 *byte)
{
    return ring_read(ring, byte, 1) == 1;
}

void ring_discard(struct ring *ring)
{
    __atomic_store_n(&ring->tail, __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}
