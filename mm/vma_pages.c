/*
 * The page tables behind the calls: taking entries away (zap), and rewriting them for another
 * protection.
 *
 * What an entry of the lower half can be:
 *
 *   0                         nothing; the next touch is a fault
 *   PRESENT                   a page: one reference, counted in its mapcount and in rss_anon or
 *                             rss_file
 *   PRESENT + ZERO_PAGE       the shared zero page; counted nowhere
 *   PRESENT + LAZY_FREE       an anonymous page that reclaim may take while it is not DIRTY
 *                             (mm/lazy_free.c), with pt_lock alone: so it can go at any time
 *   PRESENT + SOFT_DIRTY      beside the others: stored to (mm/soft_dirty.c)
 *   NONE_PROT, not PRESENT    an anonymous page in an area that is PROT_NONE now: counted as if
 *                             present. (A file's page is in the cache anyway, so it is zapped
 *                             instead.) A fault never looks at such an entry, since the area refuses
 *                             every access first; mprotect makes it present again before the area
 *                             lets anybody in
 *
 * pt_lock is held for one table at most, and released when the batch is full; pages are let go
 * after the flush. Entries are exchanged or compared and changed, because the processor sets
 * accessed and dirty bits meanwhile.
 */
#include "kernel/log/log.h"
#include "mm/core/tlb.h"
#include "mm/huge.h"
#include "mm/readahead_use.h"
#include "mm/vma_internal.h"

struct pages_work {
    struct mm *mm;
    u64 anon, file;        /* entries taken away since the counters were settled */
    const struct vma *vma; /* protect: the area with its new protection, */
    u64 bits,
        bits_if_written; /* and what that makes of an entry that may not, or may be stored through */
    struct tlb_batch batch;
};

/* ---- Zap ---- */

/* => whether the batch is full */
static bool forget_page(struct pages_work *work, u64 addr, pte_t old)
{
    struct page *page = pte_page(old);
    if (page_has(page, PAGE_ANON)) {
        work->anon++;
    } else {
        work->file++;
        if (old & PTE_DIRTY)
            page_set(page, PAGE_DIRTY);
        if (old & PTE_ACCESSED) {
            page_set(page, PAGE_REFERENCED);
            readahead_page_used(page);
        }
    }
    atomic_sub(&page->mapcount, 1);
    return tlb_batch_add_page(&work->batch, addr, page);
}

static bool zap_entry(void *ctx, u64 addr, pte_t *ptep)
{
    struct pages_work *work = ctx;
    pte_t old = atomic_exchange(ptep, 0);
    if (!(old & PTE_ZERO_PAGE))
        return forget_page(work, addr, old);
    tlb_batch_add_range(&work->batch, addr, addr + PAGE_SIZE);
    return false;
}

static bool zap_private_copy(void *ctx, u64 addr, pte_t *ptep)
{
    pte_t pte = READ_ONCE(*ptep);
    bool is_copy = !(pte & PTE_ZERO_PAGE) && page_has(pte_page(pte), PAGE_ANON);
    return is_copy && zap_entry(ctx, addr, ptep);
}

/* ---- Protect ---- */

/*
 * May the entry be writable at once? Then a store after mprotect is no fault. A private page only
 * if it is ours alone; a shared one only if it is known to be dirty, else the first store must be
 * seen; in either case, none that soft-dirty waits for.
 */
static bool may_be_writable(const struct vma *vma, pte_t old)
{
    if (old & PTE_ZERO_PAGE)
        return false;
    const struct page *page = pte_page(old);
    if (vma->mm->soft_clear_lineage && !(old & PTE_SOFT_DIRTY))
        return false; /* it is watched for its next store */
    if (page_has(page, PAGE_ANON))
        return atomic_load(&page->refs) == 1;
    return (vma->flags & VMA_SHARED) && (old & PTE_DIRTY);
}

static pte_t entry_for(const struct pages_work *work, pte_t old)
{
    pte_t kept = old & (PTE_ADDRESS_MASK | PTE_ACCESSED | PTE_DIRTY | PTE_ZERO_PAGE |
                        PTE_LAZY_FREE | PTE_SOFT_DIRTY);
    if (work->bits != work->bits_if_written && may_be_writable(work->vma, old))
        return kept | work->bits_if_written;
    return kept | work->bits;
}

static bool protect_entry(void *ctx, u64 addr, pte_t *ptep)
{
    struct pages_work *work = ctx;
    pte_t old = READ_ONCE(*ptep);

    if (work->vma->prot == PROT_NONE &&
        ((old & PTE_ZERO_PAGE) || !page_has(pte_page(old), PAGE_ANON)))
        return zap_entry(work, addr, ptep);
    for (;;) {
        pte_t new = entry_for(work, old);
        if (new == old)
            return false;
        if (atomic_change(ptep, old, new))
            break;
        old = READ_ONCE(*ptep);
    }
    if (pte_is_present(old))
        tlb_batch_add_range(&work->batch, addr, addr + PAGE_SIZE);
    return false;
}

/* ---- Walking a range ---- */

static void settle_counters(struct pages_work *work)
{
    if (work->anon)
        atomic_sub(&work->mm->rss_anon, work->anon);
    if (work->file)
        atomic_sub(&work->mm->rss_file, work->file);
    work->anon = work->file = 0;
}

/* Inline, so that each kind of work is a loop of its own over the entries. */
static inline __attribute__((always_inline)) void walk_range(struct pages_work *work, u64 start,
                                                             u64 end, entry_visit visit)
{
    struct pt_space *space = &work->mm->space;

    work->anon = work->file = 0;
    tlb_batch_init(&work->batch, space);
    for (u64 addr = start; addr < end;) {
        pt_lock(space);
        addr = pt_next_table(space, addr, end);
        if (addr < end)
            addr = mm_walk_table(space, addr, end, visit, work);
        settle_counters(work);
        pt_unlock(space);
        if (work->batch.n_pages == TLB_BATCH_PAGES)
            tlb_batch_flush(&work->batch);
    }
    if (!tlb_batch_is_empty(&work->batch))
        tlb_batch_flush(&work->batch);
}

static inline __attribute__((always_inline)) void work_on_range(struct pages_work *work, u64 start,
                                                                u64 end, entry_visit visit)
{
    ASSERT(rwsem_is_write_locked_by_me(&work->mm->mmap_lock) || atomic_load(&work->mm->users) == 0);
    walk_range(work, start, end, visit);
}

void mm_zap_range(struct mm *mm, u64 start, u64 end)
{
    struct pages_work work; /* not cleared: the batch is large */
    work.mm = mm;
    mm_note_rss(mm);
    work_on_range(&work, start, end, zap_entry);
    if (atomic_load(&mm->huge_pages))
        huge_zap_range(mm, start, end);
}

void mm_zap_private_copies(struct vma *vma, u64 start)
{
    struct pages_work work;
    work.mm = vma->mm;
    walk_range(&work, start, vma->end, zap_private_copy);
}

void mm_protect_range(struct vma *vma, u64 start, u64 end)
{
    if (vma_is_huge(vma))
        return huge_protect_range(vma, start, end);
    struct pages_work work;
    work.mm = vma->mm;
    work.vma = vma;
    work.bits = vma->prot == PROT_NONE ? PTE_NONE_PROT : vma_pte_bits(vma, false);
    work.bits_if_written = vma->prot == PROT_NONE ? PTE_NONE_PROT : vma_pte_bits(vma, true);
    work_on_range(&work, start, end, protect_entry);
}

/*
 * The tables at both ends may serve neighbours too; where the tree has none, they go as well. Where an area is left (a move that
 * failed), all stay: a fault that has the area locked may be about to store into an empty table.
 */
void mm_free_tables(struct mm *mm, u64 start, u64 end)
{
    struct range_entry entry;
    struct tlb_batch batch;
    u64 floor = ALIGN_DOWN(start, PT_TABLE_SPAN), ceiling = ALIGN_UP(end, PT_TABLE_SPAN);
    bool more;

    if (range_tree_next(&mm->vmas, start, &entry) && entry.start < end)
        return;
    if (range_tree_prev(&mm->vmas, start, &entry))
        floor = MAX(floor, entry.end);
    if (range_tree_next(&mm->vmas, end, &entry))
        ceiling = MIN(ceiling, entry.start);
    tlb_batch_init(&batch, &mm->space);
    do {
        pt_lock(&mm->space);
        more = pt_free_tables(&mm->space, floor, ceiling, &batch) ||
               (mm->has_huge_tables && pt_free_directories(&mm->space, start, end, &batch));
        pt_unlock(&mm->space);
        if (!tlb_batch_is_empty(&batch))
            tlb_batch_flush(&batch);
    } while (more);
}
