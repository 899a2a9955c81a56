/*
 * Faults on anonymous memory, and writes to write-protected entries.
 *
 *   first read    the shared zero page, read-only; no frame spent
 *   first write   a frame of zeros
 *   write later   over the zero page: a frame of zeros; over a page that others share: a copy; over a page
 *                 that is ours alone: in place
 *
 * Replacing an entry takes a shootdown: another thread's CPU may still read through the old one.
 */
#include "lib/string.h"
#include "mm/core/tlb.h"
#include "mm/fault_internal.h"
#include "mm/reclaim.h"

static struct page *zero_page;

void fault_anon_init(void)
{
    zero_page = frame_alloc(FRAME_ZERO);
}

/* What the entry `old` held is no longer mapped there. pt_lock held. => whether the batch must be flushed before it is used again */
static void forget_old_entry(struct fault *f, pte_t old, struct tlb_batch *batch)
{
    u64 addr = ALIGN_DOWN(f->addr, PAGE_SIZE);
    if (old & PTE_ZERO_PAGE) {
        tlb_batch_add_range(batch, addr, addr + PAGE_SIZE);
        return;
    }
    struct page *page = pte_page(old);
    atomic_sub(&page->mapcount, 1);
    atomic_sub(page_has(page, PAGE_ANON) ? &f->mm->rss_anon : &f->mm->rss_file, 1);
    /* One page cannot fill a fresh batch. */
    if (tlb_batch_add_page(batch, addr, page))
        return;
}

enum fault_result fault_install_anon(struct fault *f, struct page *page, pte_t expected,
                                     enum fault_reason reason)
{
    struct tlb_batch batch;
    enum fault_result result = FAULT_DONE;
    bool installed = false;

    tlb_batch_init(&batch, &f->mm->space);
    pt_lock(&f->mm->space);
    pte_t *ptep = fault_ensure_entry(f);
    if (!ptep) {
        result = FAULT_OOM;
    } else if ((*ptep & ~(PTE_ACCESSED | PTE_DIRTY)) == (expected & ~(PTE_ACCESSED | PTE_DIRTY))) {
        page_set(page, PAGE_ANON | PAGE_UPTODATE);
        atomic_add(&page->mapcount, 1);
        atomic_add(&f->mm->rss_anon, 1);
        /* First: a truncation that does not find the old page mapped any more looks here for the copy. */
        vma_name_anon(f->vma);
        pte_t old = atomic_exchange(ptep, page_phys(page) | vma_pte_bits(f->vma, true));
        if (old)
            forget_old_entry(f, old, &batch);
        installed = true;
    }
    pt_unlock(&f->mm->space);
    if (!tlb_batch_is_empty(&batch))
        tlb_batch_flush(&batch);
    if (!installed)
        page_put(page);
    f->reason = installed ? reason : FAULT_REASON_SPURIOUS;
    return result;
}

static enum fault_result map_zero_page(struct fault *f)
{
    enum fault_result result = FAULT_OOM;
    pt_lock(&f->mm->space);
    pte_t *ptep = fault_ensure_entry(f);
    if (ptep) {
        f->reason = *ptep ? FAULT_REASON_SPURIOUS : FAULT_REASON_ZERO;
        if (!*ptep)
            WRITE_ONCE(*ptep, page_phys(zero_page) | vma_pte_bits(f->vma, false) | PTE_ZERO_PAGE);
        result = FAULT_DONE;
    }
    pt_unlock(&f->mm->space);
    return result;
}

enum fault_result fault_anon(struct fault *f)
{
    if (f->access != FAULT_WRITE)
        return map_zero_page(f);
    struct page *page = frame_alloc_reclaim(FRAME_ZERO);
    if (!page)
        return FAULT_OOM;
    return fault_install_anon(f, page, 0, FAULT_REASON_ZERO);
}

/* A page of ours alone, or a shared file's: the entry only has to become writable. pt_lock held. */
static bool may_write_in_place(const struct fault *f, pte_t pte)
{
    if (pte & PTE_ZERO_PAGE)
        return false;
    if (f->vma->file && (f->vma->flags & VMA_SHARED))
        return true;
    const struct page *page = pte_page(pte);
    return page_has(page, PAGE_ANON) && atomic_load(&page->refs) == 1;
}

enum fault_result fault_write_protected(struct fault *f)
{
    pt_lock(&f->mm->space);
    pte_t *ptep = f->ptep; /* an entry was there at the look, so its table is */
    pte_t pte = *ptep;
    bool in_place = pte_is_present(pte) && may_write_in_place(f, pte);
    struct page *source = NULL;
    if (in_place) {
        atomic_or(ptep, PTE_WRITE | PTE_SOFT_DIRTY);
        if (!page_has(pte_page(pte), PAGE_ANON))
            page_set(pte_page(pte), PAGE_DIRTY);
    } else if (pte_is_present(pte) && !(pte & PTE_ZERO_PAGE)) {
        source = pte_page(pte);
        page_get(source);
    }
    pt_unlock(&f->mm->space);

    if (in_place) {
        tlb_flush_local_page(f->addr);
        f->reason = FAULT_REASON_COW;
        return FAULT_DONE;
    }
    if (!pte_is_present(
            pte)) { /* taken away meanwhile (reclaim): from the top, with the lock still held */
        return f->vma->file ? fault_file(f) : fault_anon(f);
    }
    struct page *copy = frame_alloc_reclaim(source ? 0 : FRAME_ZERO);
    enum fault_result result = FAULT_OOM;
    if (copy) {
        if (source)
            page_copy(page_virt(copy), page_virt(source));
        result = fault_install_anon(f, copy, pte, source ? FAULT_REASON_COW : FAULT_REASON_ZERO);
    }
    if (source)
        page_put(source);
    return result;
}

enum fault_result fault_write_forced(struct fault *f)
{
    enum fault_result result = FAULT_OOM;

    if (f->vma->flags & (VMA_SHARED | VMA_HUGETLB))
        return FAULT_SIGSEGV_ACCERR;
    pt_lock(&f->mm->space);
    const pte_t *ptep = pt_find(&f->mm->space, f->addr);
    pte_t pte = ptep ? *ptep : 0;
    struct page *source = pte && !(pte & PTE_ZERO_PAGE) ? pte_page(pte) : NULL;
    bool is_ours = source && page_has(source, PAGE_ANON) && atomic_load(&source->refs) == 1;
    if (source)
        page_get(source);
    pt_unlock(&f->mm->space);

    if (!pte)
        return f->vma->file ? fault_file(f) : fault_anon(f);
    struct page *copy = is_ours ? NULL : frame_alloc_reclaim(source ? 0 : FRAME_ZERO);
    if (is_ours) {
        f->reason = FAULT_REASON_SPURIOUS;
        result = FAULT_DONE;
    } else if (copy) {
        if (source)
            page_copy(page_virt(copy), page_virt(source));
        result = fault_install_anon(f, copy, pte, source ? FAULT_REASON_COW : FAULT_REASON_ZERO);
    }
    if (source)
        page_put(source);
    return result;
}
