/*
 * Does reading ahead pay? Each page that a window brought in beyond what was wanted carries PAGE_AHEAD until it is used, or
 * leaves the cache unused.
 *
 *     ra_ahead = ra_ahead_used + ra_ahead_dropped + pages that still carry the flag
 *
 * A use is the first of: a read() of the page; a fault on it; the accessed bit of an entry that mapped it around, when that entry
 * is taken away or looked at. To be mapped around is no use: neighbours are mapped because they are there, and a random reader would
 * seem to use all that was read around his page. So the count is complete once the file is unmapped. Pages that
 * MADV_WILLNEED and its like ask for are wanted, and holes are read from nowhere: neither are counted.
 */
#ifndef MM_READAHEAD_USE_H
#define MM_READAHEAD_USE_H

#include "mm/core/page.h"

struct readahead_use {
    u64 ahead, used, dropped; /* pages, since boot */
};

void readahead_count_ahead(u64 n_pages);
void readahead_use_count(struct readahead_use *out); /* of the system; exact when nothing runs */

void readahead_count_first_use(struct page *page);
void readahead_count_unused(struct page *page);

/* Somebody uses the page. Any context, no lock needed. */
static inline void readahead_page_used(struct page *page)
{
    if (unlikely(page_has(page, PAGE_AHEAD)))
        readahead_count_first_use(page);
}

/* The page has left its cache. */
static inline void readahead_page_gone(struct page *page)
{
    if (unlikely(page_has(page, PAGE_AHEAD)))
        readahead_count_unused(page);
}

#endif
