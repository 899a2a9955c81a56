/*
 * The policies that mm/readahead.c has in its table; each is defined in mm/readahead_<name>.c.
 */
#ifndef MM_READAHEAD_POLICY_H
#define MM_READAHEAD_POLICY_H

#include "mm/readahead.h"

extern const struct readahead_policy readahead_none;
extern const struct readahead_policy readahead_around;
extern const struct readahead_policy readahead_ondemand;
extern const struct readahead_policy readahead_stream;

/* The read() half of `ondemand`, which `around` shares: the kernel of 2007 had it too. */
void readahead_ondemand_read_miss(struct readahead_call *call);
void readahead_ondemand_read_mark(struct readahead_call *call);

/* The window centred on the missed page: `max` pages from max(0, index - max/2). */
static inline pgoff_t readahead_around_start(pgoff_t index, u32 max_pages)
{
    return index > max_pages / 2 ? index - max_pages / 2 : 0;
}

#endif
