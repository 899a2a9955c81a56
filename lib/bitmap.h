/*
 * Bitmaps: arrays of u64, bit n is bit n % 64 of word n / 64. Not atomic: the owner's lock guards
 * them. Searches return `bits` (the size) when nothing is found.
 */
#ifndef LIB_BITMAP_H
#define LIB_BITMAP_H

#include "lib/types.h"

#define BITMAP_WORD_BITS   64
#define BITMAP_WORDS(bits) DIV_ROUND_UP((size_t)(bits), BITMAP_WORD_BITS)

static inline void bitmap_set(u64 *map, size_t bit)
{
    map[bit / BITMAP_WORD_BITS] |= 1ul << (bit % BITMAP_WORD_BITS);
}

static inline void bitmap_clear(u64 *map, size_t bit)
{
    map[bit / BITMAP_WORD_BITS] &= ~(1ul << (bit % BITMAP_WORD_BITS));
}

static inline bool bitmap_test(const u64 *map, size_t bit)
{
    return (map[bit / BITMAP_WORD_BITS] >> (bit % BITMAP_WORD_BITS)) & 1;
}

/* First bit at or after `from` that differs from the bits of `flip` (0: finds ones, ~0: zeros). */
static inline size_t bitmap_search(const u64 *map, size_t bits, size_t from, u64 flip)
{
    size_t word = from / BITMAP_WORD_BITS;
    u64 mask = ~0ul << (from % BITMAP_WORD_BITS);

    while (word * BITMAP_WORD_BITS < bits) {
        u64 hits = (map[word] ^ flip) & mask;

        if (hits) {
            size_t bit = word * BITMAP_WORD_BITS + (size_t)__builtin_ctzl(hits);

            return MIN(bit, bits);
        }
        mask = ~0ul;
        word++;
    }
    return bits;
}

static inline size_t bitmap_next_set(const u64 *map, size_t bits, size_t from)
{
    return bitmap_search(map, bits, from, 0);
}

static inline size_t bitmap_next_zero(const u64 *map, size_t bits, size_t from)
{
    return bitmap_search(map, bits, from, ~0ul);
}

static inline size_t bitmap_find_first_set(const u64 *map, size_t bits)
{
    return bitmap_next_set(map, bits, 0);
}

static inline size_t bitmap_find_first_zero(const u64 *map, size_t bits)
{
    return bitmap_next_zero(map, bits, 0);
}

static inline size_t bitmap_count_set(const u64 *map, size_t bits)
{
    size_t count = 0;

    for (size_t bit = bitmap_next_set(map, bits, 0); bit < bits;
         bit = bitmap_next_set(map, bits, bit + 1))
        count++;
    return count;
}

#endif
