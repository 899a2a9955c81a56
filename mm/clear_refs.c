/*
 * Forgetting which pages were touched (/proc/PID/clear_refs): the accessed bits of the entries and
 * what the pages themselves remember. From then on smaps shows as Referenced what is touched again.
 *
 * A CPU that remembers a translation does not set the bit again, so the entries are flushed, area by
 * area; in between an early touch may be missed, as it may everywhere else.
 */
#include "mm/core/tlb.h"
#include "mm/readahead_use.h"
#include "mm/vma_internal.h"

struct clear_work {
    struct tlb_batch batch;
    bool anon, file; /* which pages */
};

static bool clear_entry(void *ctx, u64 addr, pte_t *ptep)
{
    struct clear_work *work = ctx;
    pte_t pte = READ_ONCE(*ptep);

    if (!pte_is_present(pte) || (pte & PTE_ZERO_PAGE))
        return false;

    struct page *page = pte_page(pte);

    if (page_has(page, PAGE_ANON) ? !work->anon : !work->file)
        return false;
    page_unset(page, PAGE_REFERENCED);
    if (pte & PTE_ACCESSED) {
        atomic_and(ptep, ~PTE_ACCESSED);
        readahead_page_used(page);
        tlb_batch_add_range(&work->batch, addr, addr + PAGE_SIZE);
    }
    return false;
}

static void clear_area(struct vma *vma, struct clear_work *work)
{
    struct pt_space *space = &vma->mm->space;
    u64 addr = vma->start;

    while (addr < vma->end) {
        pt_lock(space);
        addr = pt_next_table(space, addr, vma->end);
        if (addr < vma->end)
            addr = mm_walk_table(space, addr, vma->end, clear_entry, work);
        pt_unlock(space);
    }
    tlb_batch_flush(&work->batch);
}

void mm_clear_referenced(struct mm *mm, bool anon, bool file)
{
    struct clear_work work = {.anon = anon, .file = file};
    struct vma *vma;

    tlb_batch_init(&work.batch, &mm->space);
    rwsem_read_lock(&mm->mmap_lock);
    for (u64 at = 0; (vma = vma_find_from(mm, at)) != NULL; at = vma->end)
        clear_area(vma, &work);
    rwsem_read_unlock(&mm->mmap_lock);
}
