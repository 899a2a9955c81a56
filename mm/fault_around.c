/*
 * Map-around: one minor fault maps its cached neighbours too.
 *
 *        naturally aligned block of vm.map_around_bytes, cut at the VMA, the file and the page-table page
 *     |---------------------------------------------------------------|
 *       cached  cached  MARK   cached  absent  FAULT  locked  cached
 *       map     map     skip   map     skip    map    skip    map
 *
 * A marked page stays unmapped, so that touching it still starts the next window. Nothing here waits: a page that is
 * locked is skipped, and the entries are stored under one pt_lock for each batch.
 */
#include "lib/types.h"
#include "mm/account.h"
#include "mm/fault_internal.h"
#include "mm/knobs.h"

#define AROUND_BATCH 16

bool fault_store_file_entry(struct fault *f, pte_t *ptep, struct page *page)
{
    if (*ptep)
        return false;
    bool writable = f->access == FAULT_WRITE && (f->vma->flags & VMA_SHARED);
    page_get(page);
    atomic_add(&page->mapcount, 1);
    atomic_add(&f->mm->rss_file, 1);
    WRITE_ONCE(*ptep, page_phys(page) | vma_pte_bits(f->vma, writable));
    return true;
}

/* Locks the page if it can be mapped right now. */
static bool try_lock_mappable(struct page_cache *cache, struct page *page, pgoff_t index)
{
    u32 flags = READ_ONCE(page->flags);
    if ((flags & (PAGE_LOCKED | PAGE_READAHEAD | PAGE_UPTODATE)) != PAGE_UPTODATE)
        return false;
    if (!page_trylock(page))
        return false;
    if (page_cache_owns(cache, page, index) && page_is_uptodate(page) &&
        index < page_cache_size_pages(cache))
        return true;
    page_unlock(page);
    return false;
}

/* pages[i] are locked and referenced; stores the empty entries among them. => how many it stored */
static unsigned store_entries(struct fault *f, struct page **pages, unsigned n)
{
    unsigned stored = 0;
    pt_lock(&f->mm->space);
    pte_t *table = n ? pt_ensure(&f->mm->space, f->addr) : NULL;
    for (unsigned i = 0; table && i < n; i++) {
        pte_t *ptep = table + ((s64)pages[i]->index - (s64)f->pgoff);
        stored += fault_store_file_entry(f, ptep, pages[i]);
    }
    pt_unlock(&f->mm->space);
    return stored;
}

/* Maps what it can of [first, last]. => entries stored; *hit: f->pgoff was among the pages */
static unsigned map_batch(struct fault *f, struct page **pages, unsigned n, bool *hit)
{
    struct page_cache *cache = f->vma->file->cache;
    unsigned kept = 0;
    for (unsigned i = 0; i < n; i++) {
        if (try_lock_mappable(cache, pages[i], pages[i]->index))
            pages[kept++] = pages[i];
        else
            page_put(pages[i]);
    }
    unsigned stored = store_entries(f, pages, kept);
    for (unsigned i = 0; i < kept; i++) {
        if (pages[i]->index == f->pgoff && stored)
            *hit = true;
        page_unlock(pages[i]);
        page_put(pages[i]);
    }
    return stored;
}

/* The block of pages around f->pgoff that may be mapped, in file pages. */
static void around_limits(const struct fault *f, pgoff_t *first, pgoff_t *last)
{
    const struct vma *vma = f->vma;
    u64 block = MIN((u64)map_around_bytes, PT_TABLE_SPAN);
    u64 start = MAX(ALIGN_DOWN(f->addr, block), vma->start);
    u64 end = MIN(ALIGN_DOWN(f->addr, block) + block, vma->end);
    u64 file_pages = page_cache_size_pages(vma->file->cache);
    *first = vma_pgoff(vma, start);
    *last = MIN(vma_pgoff(vma, end - PAGE_SIZE), file_pages - 1);
}

bool fault_map_around(struct fault *f)
{
    struct page_cache *cache = f->vma->file->cache;
    struct page *pages[AROUND_BATCH];
    pgoff_t first, last;
    unsigned n, stored = 0;
    bool hit = false;

    around_limits(f, &first, &last);
    while (first <= last && (n = page_cache_find_range(cache, first, last, pages, AROUND_BATCH))) {
        first = pages[n - 1]->index + 1;
        stored += map_batch(f, pages, n, &hit);
    }
    if (stored > hit)
        account_mapped_around(stored - hit);
    return hit;
}
