/*
 * Map-around: one minor fault maps its cached neighbours too.
 *
 *        naturally aligned block of vm.map_around_bytes, cut at the VMA, the file and the page-table page
 *     |---------------------------------------------------------------|
 *       cached  cached  MARK   cached  absent  FAULT  locked  cached
 *       map     map     skip   map     skip    map    skip    map
 *
 * A marked page stays unmapped, so that touching it still starts the next window. Nothing here waits: a page that is
 * locked is skipped.
 *
 * Both tables are walked side by side, once: the entries that are empty, and the slots of the cache's tree. The page lock
 * is only tried, so it may be taken with pt_lock held, although it is the outer one.
 */
#include "lib/types.h"
#include "mm/account.h"
#include "mm/fault_internal.h"
#include "mm/knobs.h"
#include "mm/readahead_use.h"

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

/* A cached page that is up to date and has no mark; anonymous ones and the kernel's own are never both. */
#define FLAGS_LOOKED_AT \
    (PAGE_UPTODATE | PAGE_READAHEAD | PAGE_UNTOUCHED | PAGE_ANON | PAGE_SLAB | PAGE_TABLE)

/*
 * Stores the page in the empty entry if that can be done right now. The reference taken becomes the entry's. pt_lock held.
 * => whether it is mapped
 */
static inline bool try_map(struct page_cache *cache, struct page *page, pgoff_t index, pte_t *ptep,
                           u64 bits)
{
    if (!page_try_get_locked(page, FLAGS_LOOKED_AT, PAGE_UPTODATE))
        return false;
    bool may_map =
        page_cache_owns(cache, page, index) && index << PAGE_SHIFT < READ_ONCE(cache->size_bytes);
    if (likely(may_map)) {
        atomic_add(&page->mapcount, 1);
        WRITE_ONCE(*ptep, page_phys(page) | bits);
    }
    page_unlock(page);
    if (unlikely(!may_map))
        page_put(page);
    return may_map;
}

/* Maps what it can of [first, last]; the entries follow ptep, which is first's. pt_lock held. => entries stored */
static unsigned map_cached(struct fault *f, pgoff_t first, pgoff_t last, pte_t *ptep)
{
    struct page_cache *cache = f->vma->file->cache;
    u64 bits = vma_pte_bits(f->vma, false), run;
    unsigned stored = 0;

    for (pgoff_t index = first; index <= last; index += run, ptep += run) {
        void *const *slots = radix_slots(&cache->pages, index, &run);
        run = MIN(run, last - index + 1);
        for (u64 i = 0; slots && i < run; i++) {
            struct page *page = ptep[i] ? NULL : radix_slot_read(&slots[i]);
            if (page)
                stored += try_map(cache, page, index + i, &ptep[i], bits);
        }
    }
    return stored;
}

bool fault_map_around(struct fault *f)
{
    pgoff_t first, last;
    unsigned stored = 0;
    bool hit = false;

    around_limits(f, &first, &last);
    if (first > last)
        return false;
    pt_lock(&f->mm->space);
    pte_t *ptep = fault_ensure_entry(f);
    if (ptep && !*ptep) {
        stored = map_cached(f, first, last, ptep - (f->pgoff - first));
        hit = *ptep != 0;
        if (hit)
            readahead_page_used(pte_page(*ptep));
    }
    if (stored) /* before anybody can take them away, and count them down */
        atomic_add(&f->mm->rss_file, stored);
    pt_unlock(&f->mm->space);
    if (stored > hit)
        account_mapped_around(stored - hit);
    return hit;
}
