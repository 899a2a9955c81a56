/*
 * Taking pages out of a cache: unmapping them from every address space, truncation, dropping.
 *
 * Order of work for each page, and why (model/retry.pml): the size is set first, so that a fault which locks the page
 * later sees it; then lock the page, unmap it everywhere, remove it. A page unmapped before it is locked
 * could be mapped again by a fault in between.
 *
 * Private copies of pages past the end go as well, after all pages: no fault can make another one then, as it needs the
 * page, locked or mapped. (They stay where a hole is punched: truncate(2) and fallocate(2) differ here.)
 */
#include "mm/page_cache.h"

#include "kernel/log/log.h"
#include "kernel/sched/sync_point.h"
#include "kernel/sync/mutant.h"
#include "lib/string.h"
#include "mm/core/tlb.h"
#include "mm/readahead_use.h"
#include "mm/vma.h"

#define REMOVE_BATCH 16

/* One page-table entry that maps the page; pt_lock of vma->mm held. */
typedef void (*mapping_visit)(struct vma *vma, u64 addr, pte_t *ptep, struct tlb_batch *batch,
                              void *arg);

/* Calls visit for every page-table entry that maps the locked page. map_lock keeps VMAs and their mm alive. */
static void for_each_mapping(struct page_cache *cache, struct page *page, mapping_visit visit,
                             void *arg)
{
    struct vma *vma;
    mutex_lock(&cache->map_lock);
    list_for_each (vma, &cache->mappings, mapping_link) {
        pgoff_t pages = (vma->end - vma->start) >> PAGE_SHIFT;
        if (page->index < vma->pgoff || page->index - vma->pgoff >= pages)
            continue;
        struct tlb_batch batch;
        u64 addr = vma_address(vma, page->index);
        tlb_batch_init(&batch, &vma->mm->space);
        pt_lock(&vma->mm->space);
        pte_t *ptep = pt_find(&vma->mm->space, addr);
        if (ptep && pte_is_present(*ptep) && !(*ptep & PTE_ZERO_PAGE) && pte_page(*ptep) == page)
            visit(vma, addr, ptep, &batch, arg);
        pt_unlock(&vma->mm->space);
        tlb_batch_flush(&batch);
    }
    mutex_unlock(&cache->map_lock);
}

static void unmap_one(struct vma *vma, u64 addr, pte_t *ptep, struct tlb_batch *batch, void *arg)
{
    struct page *page = arg;
    pte_t old = atomic_exchange(ptep, 0);
    if (old & PTE_DIRTY)
        page_set(page, PAGE_DIRTY);
    if (old & PTE_ACCESSED) {
        page_set(page, PAGE_REFERENCED);
        readahead_page_used(page);
    }
    mm_note_rss(vma->mm);
    atomic_sub(&page->mapcount, 1);
    atomic_sub(&vma->mm->rss_file, 1);
    if (tlb_batch_add_page(batch, addr, page))
        panic("one page fills a TLB batch");
}

void page_unmap_everywhere(struct page_cache *cache, struct page *page)
{
    ASSERT(page_is_locked(page));
    if (atomic_load(&page->mapcount) > 0)
        for_each_mapping(cache, page, unmap_one, page);
}

static void clear_accessed_one(struct vma *vma, u64 addr, pte_t *ptep, struct tlb_batch *batch,
                               void *arg)
{
    if (vma->flags & VMA_LOCKED) /* stays in use, whether or not it was touched */
        *(bool *)arg = true;
    if (!(*ptep & PTE_ACCESSED))
        return;
    atomic_and(ptep, ~PTE_ACCESSED);
    readahead_page_used(pte_page(*ptep));
    tlb_batch_add_range(batch, addr, addr + PAGE_SIZE);
    *(bool *)arg = true;
}

bool page_test_clear_accessed(struct page_cache *cache, struct page *page)
{
    bool accessed = false;
    if (atomic_load(&page->mapcount) > 0)
        for_each_mapping(cache, page, clear_accessed_one, &accessed);
    return accessed;
}

/* The page is locked, and nobody can find it mapped afterwards. Drops the caller's reference. */
static void remove_one(struct page_cache *cache, struct page *page)
{
    page_lock(page);
    if (page_cache_owns(cache, page, page->index)) {
        page_unmap_everywhere(cache, page);
        if (MUTANT(unmap_before_lock)) {
            page_unlock(page);
            page_lock(page);
        }
        page_unset(page, PAGE_DIRTY);
        page_cache_remove(cache, page);
    }
    page_unlock(page);
    page_put(page);
}

void page_cache_remove_range(struct page_cache *cache, pgoff_t first, pgoff_t last)
{
    struct page *pages[REMOVE_BATCH];
    for (;;) {
        unsigned n = page_cache_find_range(cache, first, last, pages, REMOVE_BATCH);
        if (n == 0)
            return;
        for (unsigned i = 0; i < n; i++) {
            first = pages[i]->index;
            remove_one(cache, pages[i]);
        }
    }
}

/* Bytes past the end in the last page must read as zero, now and after the file grows again. */
static void clear_tail(struct page_cache *cache, u64 size_bytes)
{
    size_t used = size_bytes % PAGE_SIZE;
    struct page *page = used ? page_cache_find(cache, size_bytes / PAGE_SIZE) : NULL;
    if (!page)
        return;
    page_lock(page);
    if (page_is_uptodate(page))
        memset((char *)page_virt(page) + used, 0, PAGE_SIZE - used);
    page_unlock(page);
    page_put(page);
}

static void zap_private_copies(struct page_cache *cache, pgoff_t first)
{
    struct vma *vma;
    mutex_lock(&cache->map_lock);
    list_for_each (vma, &cache->mappings, mapping_link) {
        pgoff_t behind = vma->pgoff + ((vma->end - vma->start) >> PAGE_SHIFT);
        if (!(vma->flags & VMA_SHARED) && vma_owns_anon(vma) && first < behind)
            mm_zap_private_copies(vma, vma_address(vma, MAX(first, vma->pgoff)));
    }
    mutex_unlock(&cache->map_lock);
}

void page_cache_truncate(struct page_cache *cache, u64 new_size_bytes)
{
    rwsem_write_lock(&cache->invalidate_lock);
    u64 old_size_bytes = cache->size_bytes;
    if (new_size_bytes > old_size_bytes)
        clear_tail(cache, old_size_bytes); /* a mapping may have stored there */
    WRITE_ONCE(cache->size_bytes, new_size_bytes);
    page_cache_remove_range(cache, page_cache_size_pages(cache), ~0ul - 1);
    if (new_size_bytes < old_size_bytes)
        zap_private_copies(cache, page_cache_size_pages(cache));
    clear_tail(cache, new_size_bytes);
    rwsem_write_unlock(&cache->invalidate_lock);
}

/*
 * Drops the caller's reference, and the page if that costs nothing. Looked at with the page locked: whoever makes it dirty
 * holds its lock, or has it mapped and says so before the map count falls. => whether it was dropped
 */
static bool drop_one(struct page_cache *cache, struct page *page, pgoff_t index)
{
    if (page_trylock(page)) {
        if (page_cache_owns(cache, page, index) && atomic_load(&page->mapcount) == 0 &&
            !page_has(page, PAGE_DIRTY | PAGE_WRITEBACK) && page_cache_remove_frozen(cache, page))
            return true;
        page_unlock(page);
    }
    page_put(page);
    return false;
}

u64 page_cache_drop_range(struct page_cache *cache, pgoff_t first, pgoff_t last)
{
    u64 dropped = 0;
    struct page *pages[REMOVE_BATCH];
    unsigned n;
    if (page_cache_is_memory(cache))
        return 0;
    while (first <= last &&
           (n = page_cache_find_range(cache, first, last, pages, REMOVE_BATCH)) > 0) {
        SYNC_POINT(page_cache_drop);
        for (unsigned i = 0; i < n; i++) {
            first = pages[i]->index + 1;
            dropped += drop_one(cache, pages[i], first - 1);
        }
    }
    return dropped;
}

/*
 * Reclaim may be taking the last page at this moment: the tree is empty then, but reclaim is not through with tree_lock, and
 * the cache would be freed under its feet. Taking that lock once waits for it.
 */
void page_cache_destroy(struct page_cache *cache)
{
    page_cache_remove_range(cache, 0, ~0ul - 1);
    bool irqs = spin_lock_irq(&cache->tree_lock);
    ASSERT(cache->n_pages == 0 && list_is_empty(&cache->mappings));
    spin_unlock_irq(&cache->tree_lock, irqs);
}
