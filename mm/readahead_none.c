/*
 * vm.readahead=none: the page that is missing, and nothing else. What every other policy is measured against.
 */
#include "mm/readahead_policy.h"

static void read_that_page(struct readahead_call *call)
{
    call->pattern = "single";
    readahead_submit(call, call->index, 1, READAHEAD_NO_MARK);
}

static void ignore_mark(struct readahead_call *call)
{
    (void)call; /* left by the policy before */
}

const struct readahead_policy readahead_none = {
    .name = "none",
    .fault_miss = read_that_page,
    .fault_mark = ignore_mark,
    .read_miss = read_that_page,
    .read_mark = ignore_mark,
};
