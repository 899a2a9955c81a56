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

/* Panics with the text, or records it if it is expected. The report begins with the caller. Any context, never sleeps. */
void memory_misuse(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* The last steps of the way to where something was done, kept for a report; zeros behind the last. */
#define WAY_PLACES 6
struct way {
    u32 places[WAY_PLACES];
};
/* caller: the return address that comes first; what was called from there is left out. Any context. */
void way_take(struct way *way, u64 caller);
void way_print(const char *title, const struct way *way, void (*line)(const char *fmt, ...));

/*
 * As memory_misuse; the report begins with the function that will be returned to at `place`, and also
 * has who asked for the memory and who freed it (NULL: not known).
 */
void memory_misuse_of(u64 place, const struct way *made, const struct way *freed, const char *fmt,
                      ...) PRINTF_LIKE(4, 5);

/* Sections for reports; at boot. */
void misuse_init(void);

/* Tests: the next misuse is recorded instead of a panic. */
void memory_misuse_expect(void);
/* Tests: ends the expectation. => what was reported since memory_misuse_expect, NULL if nothing */
const char *memory_misuse_take(void);

/* Fills with POISON_BYTE. */
void poison_fill(void *start, size_t bytes);
/* => offset of the first byte that is not POISON_BYTE; `bytes` if all are */
size_t poison_check(const void *start, size_t bytes);

#endif
