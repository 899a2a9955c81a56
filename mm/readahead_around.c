/*
 * vm.readahead=around: the plain kernel of 2007. A fault that misses reads a window centred on the page, at every miss, without a
 * mark, so nothing is ever asked for before it is needed. In order from page 0 with a window of 32:
 *
 *     miss at 0    [0 .......... 31]
 *     miss at 32         [16 .......... 47]     half of it is cached already: 32..47 are read
 *     miss at 48               [32 .......... 63]
 *
 * read() had sequential detection by then, and takes it from `ondemand`.
 */
#include "mm/mapped_file.h"
#include "mm/readahead_policy.h"

static void fault_miss(struct readahead_call *call)
{
    u32 max = READ_ONCE(call->file->readahead.max_pages);
    call->pattern = call->hint_random || max == 0 ? "single" : "around";
    if (call->hint_random || max == 0)
        readahead_submit(call, call->index, 1, READAHEAD_NO_MARK);
    else
        readahead_submit(call, readahead_around_start(call->index, max), max, READAHEAD_NO_MARK);
}

static void ignore_mark(struct readahead_call *call)
{
    (void)call; /* left by another policy */
}

const struct readahead_policy readahead_around = {
    .name = "around",
    .fault_miss = fault_miss,
    .fault_mark = ignore_mark,
    .read_miss = readahead_ondemand_read_miss,
    .read_mark = readahead_ondemand_read_mark,
};
