/*
 * Checksum: 64 bits over bytes in the order they were seen, eight bytes a step.
 *
 * Each step is a bijection of the sum for fixed input and of the input for a fixed sum, so a
 * changed word, or two words in the other order, give another sum. It is for telling pages apart,
 * not against an adversary.
 */
#ifndef USER_LIB_CHECKSUM_H
#define USER_LIB_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* The sum of nothing. */
#define CHECKSUM_START 0x46617566746c696eULL

/*
 * The sum after `bytes` more bytes at `data` (8-aligned). A rest of less than eight bytes counts as
 * one word filled up with zeros.
 */
uint64_t checksum_add(uint64_t sum, const void *data, size_t bytes);

#endif
