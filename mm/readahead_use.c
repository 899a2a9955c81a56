/*
 * Counting what becomes of pages read ahead: see readahead_use.h. Whoever clears the flag counts, so each page is counted once,
 * whether it is used and dropped at the same time or not.
 */
#include "mm/readahead_use.h"

#include "kernel/sync/counter.h"

static COUNTER(ahead_pages);
static COUNTER(used_pages);
static COUNTER(dropped_pages);

void readahead_count_ahead(u64 n_pages)
{
    counter_add(ahead_pages, n_pages);
}

/* A hole may still carry it for a moment (mm/readahead.c takes it off), and was not counted as read. */
static bool takes_off_flag(struct page *page)
{
    return page_test_and_clear(page, PAGE_AHEAD) && !page_has(page, PAGE_HOLE);
}

void readahead_count_first_use(struct page *page)
{
    if (takes_off_flag(page))
        counter_inc(used_pages);
}

void readahead_count_unused(struct page *page)
{
    if (takes_off_flag(page))
        counter_inc(dropped_pages);
}

void readahead_use_count(struct readahead_use *out)
{
    *out = (struct readahead_use){.ahead = counter_sum(ahead_pages),
                                  .used = counter_sum(used_pages),
                                  .dropped = counter_sum(dropped_pages)};
}
