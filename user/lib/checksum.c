/*
 * Checksum: see checksum.h.
 */
#include "user/lib/checksum.h"

#include <string.h>

/* An odd number near 2^64 divided by the golden ratio: multiplying by it loses nothing. */
#define CHECKSUM_FACTOR 0x9e3779b97f4a7c15ULL
#define CHECKSUM_TURN   29

static inline uint64_t checksum_step(uint64_t sum, uint64_t word)
{
    sum ^= word;
    sum *= CHECKSUM_FACTOR;
    return sum << CHECKSUM_TURN | sum >> (64 - CHECKSUM_TURN);
}

uint64_t checksum_add(uint64_t sum, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint64_t word;

    for (; bytes >= sizeof(word); at += sizeof(word), bytes -= sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        sum = checksum_step(sum, word);
    }
    if (bytes > 0) {
        word = 0;
        memcpy(&word, at, bytes);
        sum = checksum_step(sum, word);
    }
    return sum;
}
