/*
 * The pool of huge pages: blocks of 2 MiB taken out of the frame allocator when asked for (vm.nr_hugepages, `hugepages=` on the command
 * line), so that they are there when a program wants them.
 *
 *     total = pages in use + free;  reserved <= free;  surplus <= total
 *
 * A page is promised (reserved) when an area is mapped and taken when it is touched; a touch without a promise takes only what is
 * free and not promised. Above vm.nr_hugepages the pool grows by itself up to vm.nr_overcommit_hugepages pages (surplus), which go
 * back to the frame allocator when they are freed. This is Linux's arithmetic (its hugetlbpage document).
 *
 * A huge page is a struct page of order HUGE_PAGE_ORDER; only its head counts references and mappings. In the pool it has none.
 *
 * Locks: the pool's own spinlock, taken last of all but the frame allocator's; resizing holds a mutex besides.
 */
#ifndef MM_HUGE_POOL_H
#define MM_HUGE_POOL_H

#include "mm/core/frames.h"
#include "mm/core/page_table.h"

#define HUGE_PAGE_ORDER  PT_TABLE_ORDER
#define HUGE_PAGE_FRAMES (1ul << HUGE_PAGE_ORDER)
#define HUGE_PAGE_BYTES  PT_TABLE_SPAN

struct huge_pool_counts {
    u64 total;    /* pages, surplus included */
    u64 free;     /* in the pool */
    u64 reserved; /* of the free ones, promised */
    u64 surplus;  /* above vm.nr_hugepages */
    u64 max_surplus;
};

void huge_pool_count(struct huge_pool_counts *out);
/*
 * Grows or shrinks the pool to `wanted` pages that are not surplus: as frames allow (reclaiming file pages, but leaving the system some memory); pages
 * in use or promised stay, as surplus. Sleeps.
 */
void huge_pool_resize(u64 wanted);
void huge_pool_set_max_surplus(u64 pages);

/* Promises n pages. => 0, -ENOMEM. Never sleeps, as all that follow. */
MUST_CHECK int huge_pool_reserve(u64 n);
void huge_pool_unreserve(u64 n); /* n promises are not needed any more */

/* A page with one reference, contents undefined; `promised`: one promise is used up. => NULL: none that is not promised to others */
struct page *huge_pool_take(bool promised);
/* Drops a reference; the last one gives the page back to the pool. */
void huge_page_put(struct page *page);
/* As huge_page_put, and promises the page again if it came back and is no surplus. => whether it is promised */
bool huge_page_put_promised(struct page *page);

/* The huge page that a frame is part of. */
static inline struct page *huge_page_head(struct page *page)
{
    return pfn_page(ALIGN_DOWN(page_pfn(page), HUGE_PAGE_FRAMES));
}

#endif
