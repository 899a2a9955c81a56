/*
 * Misuse of memory: what debug builds look for (written after free, freed twice, overrun), and how
 * it is reported. A report is a panic, unless a test has said that it expects one.
 *
 * Release builds compile the checks away: MEMORY_CHECKS is a constant.
 */
#ifndef MM_CORE_MISUSE_H
#define MM_CORE_MISUSE_H

#include "lib/types.h"

#ifdef CONFIG_DEBUG
#define MEMORY_CHECKS true
#else
#define MEMORY_CHECKS false
#endif

#define POISON_BYTE 0x6b

/* Panics with the text, or records it if it is expected. Any context, never sleeps. */
void memory_misuse(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Tests: the next misuse is recorded instead of a panic. */
void memory_misuse_expect(void);
/* Tests: ends the expectation. => what was reported since memory_misuse_expect, NULL if nothing */
const char *memory_misuse_take(void);

/* Fills with POISON_BYTE. */
void poison_fill(void *start, size_t bytes);
/* => offset of the first byte that is not POISON_BYTE; `bytes` if all are */
size_t poison_check(const void *start, size_t bytes);

#endif
