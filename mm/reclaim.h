/*
 * Taking clean page-cache pages back when frames run short.
 *
 * Every cached page is on one list, oldest first. A page touched since the last look (PAGE_REFERENCED, or an accessed bit in a
 * page-table entry) goes round once more; a locked, pinned or dirty one is passed over; a mapped one is first unmapped everywhere.
 */
#ifndef MM_RECLAIM_H
#define MM_RECLAIM_H

#include "mm/core/frames.h"
#include "mm/page_cache.h"

/* frame_alloc, and when that fails: reclaim and try again. => NULL when nothing can be reclaimed. May sleep; no page-table lock, map_lock or spinlock held. */
struct page *frame_alloc_after_reclaim(unsigned flags); /* the slow half */
static inline struct page *frame_alloc_reclaim(unsigned flags)
{
    struct page *page = frame_alloc(flags);
    return likely(page) ? page : frame_alloc_after_reclaim(flags);
}
/* Tries to free at least `want` frames. => frames freed. Same rules. */
u64 reclaim_pages(u64 want);

/* Drops the reference to a page of a cache, and the page itself if nothing speaks for it (dirty, touched, in use). Same rules. */
void reclaim_page(struct page *page);
/* The next one to be looked at. Drops the reference. */
void reclaim_make_oldest(struct page *page);

void reclaim_list_add(struct page *page); /* page was added to a cache */
void reclaim_list_remove(
    struct page *
        page); /* page leaves its cache, or can never be taken back (files in memory); page locked. Twice does no harm. */
u64 reclaim_total(void); /* pages reclaimed since boot */

#endif
