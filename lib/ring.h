/*
 * A ring of bytes between one producer and one consumer, which may run at the same time (an
 * interrupt handler and a thread, or two CPUs) without a lock. Several producers or several
 * consumers need a lock among themselves.
 *
 * `head` counts the bytes ever written, `tail` those ever read; both wrap at 2^32 and their
 * difference is what is in the ring. Only the producer writes `head`, only the consumer `tail`.
 */
#ifndef LIB_RING_H
#define LIB_RING_H

#include "lib/types.h"

struct ring {
    u8 *data;
    u32 size_bytes; /* power of two */
    u32 head;       /* published by the producer with release order */
    u32 tail;       /* published by the consumer with release order */
};

/* `data` holds size_bytes bytes, a power of two up to 2^31; the ring starts empty. */
void ring_init(struct ring *ring, void *data, u32 size_bytes);

/* Bytes that can be read (at least; the producer may be adding). Either side. */
u32 ring_used(const struct ring *ring);

/* Bytes that can be written (at least; the consumer may be taking). Either side. */
u32 ring_space(const struct ring *ring);

/* Producer. Writes as much as fits; returns how many bytes that was. */
size_t ring_write(struct ring *ring, const void *src, size_t n);

/* Producer. False: the ring was full, nothing written. */
bool ring_put(struct ring *ring, u8 byte);

/* Consumer. Reads what is there, at most n bytes; returns how many bytes that was. */
size_t ring_read(struct ring *ring, void *dst, size_t n);

/* Consumer. False: the ring was empty. */
bool ring_get(struct ring *ring, u8 *byte);

/* Consumer. Drops everything that is there. */
void ring_discard(struct ring *ring);

#endif
