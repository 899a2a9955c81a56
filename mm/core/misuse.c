/*
 * Reports of memory misuse, and the poison pattern. See misuse.h.
 *
 * Rules: one expectation at a time, by one test; a report may come from any CPU with any lock held,
 * so the text goes into a buffer of its own and nothing is locked.
 */
#include "mm/core/misuse.h"

#include <stdarg.h>

#include "kernel/log/log.h"
#include "kernel/sync/atomic.h"
#include "lib/format.h"
#include "lib/string.h"

enum expectation { EXPECT_NOTHING, EXPECT_MISUSE, EXPECT_RECORDED };

static enum expectation expectation;
static char recorded[192];

void memory_misuse(const char *fmt, ...)
{
    char text[sizeof(recorded)];
    va_list args;

    va_start(args, fmt);
    format_v(text, sizeof(text), fmt, args);
    va_end(args);
    if (!atomic_change(&expectation, EXPECT_MISUSE, EXPECT_RECORDED))
        panic("memory misuse: %s", text);
    strlcpy(recorded, text, sizeof(recorded));
}

void memory_misuse_expect(void)
{
    atomic_store(&expectation, EXPECT_MISUSE);
}

const char *memory_misuse_take(void)
{
    return atomic_exchange(&expectation, EXPECT_NOTHING) == EXPECT_RECORDED ? recorded : NULL;
}

void poison_fill(void *start, size_t bytes)
{
    memset(start, POISON_BYTE, bytes);
}

size_t poison_check(const void *start, size_t bytes)
{
    const u8 *byte = start;
    const u64 word = 0x0101010101010101ul * POISON_BYTE;
    size_t i = 0;

    if (IS_ALIGNED((u64)start, sizeof(u64)))
        while (i + sizeof(u64) <= bytes && *(const u64 *)(byte + i) == word)
            i += sizeof(u64);
    while (i < bytes && byte[i] == POISON_BYTE)
        i++;
    return i;
}
