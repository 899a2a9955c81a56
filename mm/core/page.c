/*
 * The last reference of a frame. Everything else about struct page is inline in page.h.
 *
 * A lock-free lookup may take a reference on a page that its owner gives up at the same moment:
 *
 *     lookup                          owner
 *     finds the pointer
 *                                     takes the page out of the cache, drops its reference: 1 left
 *     page_try_get: 2
 *                                     (or drops it now)
 *     sees that it belongs no more
 *     page_put: 0, frees
 *
 * So whoever is last frees, and finds everything needed for that in the struct page.
 */
#include "mm/core/page.h"

#include "mm/core/frames_internal.h"
#include "mm/core/misuse.h"

void page_put(struct page *page)
{
    s32 refs = atomic_sub(&page->refs, 1);

    if (likely(refs > 0))
        return;
    if (unlikely(refs < 0)) {
        atomic_add(&page->refs, 1);
        memory_misuse("frame %lu: reference dropped that nobody held (flags 0x%x)", page_pfn(page),
                      page->flags);
        return;
    }
    frames_give_back(page, page->order, (u64)__builtin_return_address(0));
}
