/*
 * Reports of memory misuse, and the poison pattern. See misuse.h.
 *
 * Rules: one expectation at a time, by one test; a report may come from any CPU with any lock held,
 * so the text goes into a buffer of its own and nothing is locked.
 */
#include "mm/core/misuse.h"

#include <stdarg.h>

#include "kernel/log/log.h"
#include "kernel/log/report.h"
#include "kernel/sync/atomic.h"
#include "lib/format.h"
#include "lib/string.h"
#include "mm/core/slab.h"

enum expectation { EXPECT_NOTHING, EXPECT_MISUSE, EXPECT_RECORDED };

static enum expectation expectation;
static char recorded[192];

/* What the report is about; written by who panics. */
static struct way made_by, freed_by;

static const struct way nobody;

static PRINTF_LIKE(4, 0) void misuse(u64 place, const struct way *made, const struct way *freed,
                                     const char *fmt, va_list args)
{
    char text[sizeof(recorded)];
    u64 offset = 0, freer = freed->places[0];
    const char *name = symbol_find((u64)(s64)(s32)freer - 1, &offset);
    size_t used = (size_t)format_v(text, sizeof(text), fmt, args);

    if (freer)
        format_append(text, sizeof(text), &used, "; freed last by %s", name ? name : "?");
    if (atomic_change(&expectation, EXPECT_MISUSE, EXPECT_RECORDED)) {
        strlcpy(recorded, text, sizeof(recorded));
        return;
    }
    made_by = *made;
    freed_by = *freed;
    panic_at(REPORT_FREED_MEMORY, place, "memory misuse: %s", text);
}

void memory_misuse_of(u64 place, const struct way *made, const struct way *freed, const char *fmt,
                      ...)
{
    va_list args;

    va_start(args, fmt);
    misuse(place, made ? made : &nobody, freed ? freed : &nobody, fmt, args);
    va_end(args);
}

void memory_misuse(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    misuse((u64)__builtin_return_address(0), &nobody, &nobody, fmt, args);
    va_end(args);
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

/* ---- Who did it ----------------------------------------------------------------------------- */

void way_take(struct way *way, u64 caller)
{
    *way = (struct way){0};
    backtrace_take(caller, way->places, WAY_PLACES);
}

void way_print(const char *title, const struct way *way, report_line line)
{
    if (!way->places[0])
        return;
    line("%s", title);
    backtrace_print_taken(way->places, WAY_PLACES, line);
}

static void print_ways(const struct report *r, report_line line)
{
    (void)r;
    way_print("the memory was asked for on this way:", &made_by, line);
    way_print("it was freed on this way:", &freed_by, line);
}

/* A bad pointer may come out of freed memory; the registers still point there. */
static void print_freed_objects(const struct report *r, report_line line)
{
    const char *name;
    u64 value;

    for (unsigned i = 0; (name = report_register(r, i, &value)) != NULL; i++)
        if (slab_describe_freed(value, name, line))
            return;
}

static struct report_section sections[] = {
    {REPORT_WAY, REPORT_KIND_BIT(REPORT_FREED_MEMORY), print_ways, NULL},
    {REPORT_WAY,
     REPORT_KIND_BIT(REPORT_EXCEPTION) | REPORT_KIND_BIT(REPORT_BAD_POINTER) |
         REPORT_KIND_BIT(REPORT_NULL_POINTER),
     print_freed_objects, NULL},
};

void misuse_init(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(sections); i++)
        report_add_section(&sections[i]);
}
