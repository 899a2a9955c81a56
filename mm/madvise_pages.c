/*
 * Advice about pages: zap, cold, page out.
 *
 * The pages are collected with the page table locked, a batch at a time, and worked on without it:
 * taking a page from its cache needs the page lock and the file's map_lock. A page that others map,
 * too, is theirs as well: it is passed over.
 */
#include "mm/madvise_pages.h"

#include "mm/core/tlb.h"
#include "mm/lazy_free.h"
#include "mm/readahead_use.h"
#include "mm/reclaim.h"
#include "mm/vma_internal.h"

#define ADVISED_BATCH 32

struct collected {
    struct tlb_batch batch;
    struct page *pages[ADVISED_BATCH]; /* of files, one reference each */
    unsigned n;
};

void madvise_zap(struct vma *vma, u64 start, u64 end)
{
    mm_zap_range(vma->mm, start, end);
}

/* The accessed bit goes, so that nothing speaks for the page any more. => whether to stop: no room */
static bool collect_entry(void *ctx, u64 addr, pte_t *ptep)
{
    struct collected *collected = ctx;
    pte_t pte = READ_ONCE(*ptep);

    if (!pte_is_present(pte) || (pte & PTE_ZERO_PAGE))
        return false;
    struct page *page = pte_page(pte);
    if (atomic_load(&page->mapcount) != 1)
        return false;
    if (pte & PTE_ACCESSED) {
        atomic_and(ptep, ~PTE_ACCESSED);
        readahead_page_used(page);
        tlb_batch_add_range(&collected->batch, addr, addr + PAGE_SIZE);
    }
    page_unset(page, PAGE_REFERENCED);
    if (page_has(page, PAGE_ANON))
        return false;
    page_get(page);
    collected->pages[collected->n++] = page;
    return collected->n == ADVISED_BATCH;
}

/* on_page: gets the reference. */
static void for_each_own_page(struct mm *mm, u64 start, u64 end, void (*on_page)(struct page *page))
{
    struct collected collected = {.n = 0};
    struct pt_space *space = &mm->space;

    tlb_batch_init(&collected.batch, space);
    for (u64 addr = start; addr < end;) {
        pt_lock(space);
        addr = pt_next_table(space, addr, end);
        if (addr < end)
            addr = mm_walk_table(space, addr, end, collect_entry, &collected);
        pt_unlock(space);
        tlb_batch_flush(&collected.batch);
        while (collected.n > 0)
            on_page(collected.pages[--collected.n]);
    }
}

void madvise_make_cold(struct vma *vma, u64 start, u64 end)
{
    for_each_own_page(vma->mm, start, end, reclaim_make_oldest);
}

void madvise_page_out(struct vma *vma, u64 start, u64 end)
{
    lazy_free_take(vma->mm, start, end);
    for_each_own_page(vma->mm, start, end, reclaim_page);
}
