/*
 * Hash functions for tables (not for secrets).
 */
#ifndef LIB_HASH_H
#define LIB_HASH_H

#include "lib/types.h"

/* Mixes: every bit of the result depends on every bit of x. One to one; mix64(0) is 0. */
static inline u64 mix64(u64 x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ul;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebul;
    x ^= x >> 31;
    return x;
}

/* Slot of x in a table of 2^bits entries, bits from 1 to 63. */
static inline size_t hash_slot(u64 x, unsigned bits)
{
    return mix64(x) >> (64 - bits);
}

/* FNV-1a over bytes. */
static inline u64 hash_bytes(const void *data, size_t n)
{
    const u8 *p = data;
    u64 h = 0xcbf29ce484222325ul;

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3ul;
    return h;
}

#endif
