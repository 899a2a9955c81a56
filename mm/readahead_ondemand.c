/*
 * vm.readahead=ondemand: sequential access is recognised by what is asked for next, and read ahead of; a mark in the window
 * starts the next one while the reader still has pages to go. FAULTS.md section 4 numbers the rules; so does this file.
 *
 *     read 4 KiB from page 0, window 32 (M = page with the mark):
 *
 *     @0    0 M 2 3                                    rule 1: size 4, async 3
 *     @1            M 5 6 7 8 9 10 11                  rule 2: size 8, async 8
 *     @4                              M 13 … 27        rule 2: size 16, async 16
 *     @12                                       M 29 … 59
 *
 * One state for each open file, not for each stream: what interleaved streams lose by that is counted in the oracles.
 */
#include "mm/mapped_file.h"
#include "mm/readahead_policy.h"

#define MISS_LIMIT 100 /* more misses than hits than this: reading around does not pay */
#define MISS_MAX   1000

/* A window to submit; size 0: none. */
struct window {
    pgoff_t start;
    u32 size, async;
    bool has_mark;
};

static u32 round_up_to_power_of_two(u64 n)
{
    u32 r = 1;
    while (r < n && r < (1u << 31))
        r <<= 1;
    return r;
}

/* INIT: the first window for a request of n pages. */
static u32 first_size(u64 n, u32 max)
{
    u32 r = round_up_to_power_of_two(n);
    if (r <= max / 32)
        return 4 * r;
    if (r <= max / 4)
        return 2 * r;
    return max;
}

/* NEXT: the window after one of s pages. */
static u32 next_size(u32 s, u32 max)
{
    if (s < max / 16)
        return 4 * s;
    if (s <= max / 2)
        return 2 * s;
    return max;
}

static void start_stream(struct readahead *ra, pgoff_t index, u64 n, u32 max)
{
    ra->start = index;
    ra->size = first_size(n, max);
    ra->async = ra->size > n ? ra->size - n : ra->size;
}

/* A window whose mark is its first page would be met at once by the reader who missed: ask for the next one in the same go. */
static void widen_if_mark_is_first(struct readahead *ra, pgoff_t index, u32 max)
{
    if (ra->start != index || ra->async != ra->size)
        return;
    u32 extra = next_size(ra->size, max);
    if (ra->size + extra <= max) {
        ra->async = extra;
        ra->size += extra;
    } else {
        ra->size = max;
        ra->async = max / 2;
    }
}

static struct window window_of(const struct readahead *ra)
{
    return (struct window){ra->start, ra->size, ra->async, true};
}

/* Rules 2 and 3. ra->lock held. */
static struct window on_mark(struct readahead *ra, struct readahead_call *call, u64 n, u32 max)
{
    pgoff_t index = call->index;
    call->pattern = "sequential";
    if (index == ra->start + ra->size - ra->async) {
        ra->start += ra->size;
        ra->size = MAX(ra->size, next_size(ra->size, max));
    } else {
        pgoff_t absent = page_cache_next_absent(call->file->cache, index + 1, index + max);
        if (absent > index + max)
            return (struct window){0};
        call->pattern = "interleaved";
        ra->start = absent;
        ra->size = next_size(absent - index + n, max);
    }
    ra->async = ra->size;
    return window_of(ra);
}

static bool continues_last_read(const struct readahead *ra, pgoff_t index)
{
    if (ra->prev_bytes == READAHEAD_NONE_YET)
        return false;
    pgoff_t prev = (u64)ra->prev_bytes >> PAGE_SHIFT;
    return index == prev || index == prev + 1;
}

/* Cached pages right before index; a history that reaches back to page 0 counts double. */
static u64 history_before(struct readahead_call *call, u32 max)
{
    u64 h = page_cache_count_before(call->file->cache, call->index, max);
    return h >= call->index ? 2 * h : h;
}

/* Rules 1 and 4 to 7. ra->lock held. */
static struct window on_miss(struct readahead *ra, struct readahead_call *call, u64 n, u32 max)
{
    pgoff_t index = call->index;
    if (index == 0 || n > max || continues_last_read(ra, index)) {
        call->pattern = index == 0 ? "initial" : n > max ? "oversized" : "sequential";
        start_stream(ra, index, n, max);
    } else {
        u64 h = history_before(call, max);
        call->pattern = h <= n ? "random" : "context";
        if (h <= n)
            return (struct window){.start = index, .size = n};
        ra->start = index;
        ra->size = MIN(h + n, (u64)max);
        ra->async = 1;
    }
    widen_if_mark_is_first(ra, index, max);
    return window_of(ra);
}

/* The seven rules for a miss or a mark at call->index, with n pages still wanted. */
static void apply_rules(struct readahead_call *call, bool is_mark, u64 n)
{
    struct readahead *ra = &call->file->readahead;
    u32 io_max = call->file->cache->max_request_pages;
    spin_lock(&ra->lock);
    u32 max = ra->max_pages;
    if (n > max && io_max > max)
        max = MIN(n, (u64)io_max);
    struct window w =
        is_mark && call->index != 0 ? on_mark(ra, call, n, max) : on_miss(ra, call, n, max);
    spin_unlock(&ra->lock);
    if (w.size)
        readahead_submit(call, w.start, w.size,
                         w.has_mark ? w.start + w.size - w.async : READAHEAD_NO_MARK);
}

static void read_that_page(struct readahead_call *call)
{
    call->pattern = "single";
    readahead_submit(call, call->index, 1, READAHEAD_NO_MARK);
}

static void read_what_is_wanted(struct readahead_call *call)
{
    call->pattern = "advised_random";
    readahead_submit(call, call->index, call->wanted_pages, READAHEAD_NO_MARK);
}

static void read_around(struct readahead_call *call)
{
    struct readahead *ra = &call->file->readahead;
    spin_lock(&ra->lock);
    ra->start = readahead_around_start(call->index, ra->max_pages);
    ra->size = ra->max_pages;
    ra->async = ra->max_pages / 4;
    struct window w = window_of(ra);
    spin_unlock(&ra->lock);
    call->pattern = "around";
    readahead_submit(call, w.start, w.size, w.start + w.size - w.async);
}

/* => whether misses outweigh hits so far that reading around is given up */
static bool note_miss(struct readahead *ra)
{
    spin_lock(&ra->lock);
    if (ra->miss < MISS_MAX)
        ra->miss++;
    bool too_many = ra->miss > MISS_LIMIT;
    spin_unlock(&ra->lock);
    return too_many;
}

static void fault_hit(struct readahead *ra)
{
    if (READ_ONCE(ra->miss) == 0)
        return;
    spin_lock(&ra->lock);
    if (ra->miss > 0)
        ra->miss--;
    spin_unlock(&ra->lock);
}

static void fault_miss(struct readahead_call *call)
{
    struct readahead *ra = &call->file->readahead;
    u32 max = READ_ONCE(ra->max_pages);
    if (call->hint_random || max == 0)
        read_that_page(call);
    else if (call->hint_sequential)
        apply_rules(call, false, max);
    else if (note_miss(ra))
        read_that_page(call);
    else
        read_around(call);
}

static void fault_mark(struct readahead_call *call)
{
    u32 max = READ_ONCE(call->file->readahead.max_pages);
    if (!call->hint_random && max > 0)
        apply_rules(call, true, max);
}

void readahead_ondemand_read_miss(struct readahead_call *call)
{
    const struct readahead *ra = &call->file->readahead;
    if (READ_ONCE(ra->max_pages) == 0)
        read_that_page(call);
    else if (ra->advised_random)
        read_what_is_wanted(call);
    else
        apply_rules(call, false, call->wanted_pages);
}

void readahead_ondemand_read_mark(struct readahead_call *call)
{
    const struct readahead *ra = &call->file->readahead;
    if (READ_ONCE(ra->max_pages) > 0 && !ra->advised_random)
        apply_rules(call, true, call->wanted_pages);
}

const struct readahead_policy readahead_ondemand = {
    .name = "ondemand",
    .fault_miss = fault_miss,
    .fault_mark = fault_mark,
    .fault_hit = fault_hit,
    .read_miss = readahead_ondemand_read_miss,
    .read_mark = readahead_ondemand_read_mark,
};
