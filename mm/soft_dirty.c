/*
 * Soft-dirty: which pages were written since the last clear.
 *
 *   entry has SOFT_DIRTY    stored to. Every entry that is made writable has it (vma_pte_bits)
 *   area is newer           all of it counts as written, mapped or not: its lineage is above the one
 *                           that the space had come to at the last clear
 *
 * A clear takes SOFT_DIRTY and WRITE from every entry, so the next store is a fault, which gives both
 * back in place. Nothing gives WRITE without the other (mprotect: mm/vma_pages.c). A space where nothing
 * was ever cleared pays nothing for this.
 */
#include "mm/soft_dirty.h"

#include "lib/errno.h"
#include "mm/core/tlb.h"
#include "mm/vma_internal.h"

/* ctx: the batch that is flushed behind it. */
static bool clear_written(void *ctx, u64 addr, pte_t *ptep)
{
    pte_t old = atomic_and(ptep, ~(PTE_WRITE | PTE_SOFT_DIRTY));

    if (old & PTE_WRITE)
        tlb_batch_add_range(ctx, addr, addr + PAGE_SIZE);
    return false;
}

int soft_dirty_clear(struct mm *mm)
{
    struct pt_space *space = &mm->space;
    struct range_entry entry;
    struct tlb_batch batch;

    if (rwsem_write_lock_killable(&mm->mmap_lock))
        return -EINTR;
    tlb_batch_init(&batch, space);
    for (u64 at = 0; range_tree_next(&mm->vmas, at, &entry); at = entry.end) {
        struct vma *vma = entry.item;
        if (vma->flags & VMA_HUGETLB)
            continue;                 /* never taken away, never watched */
        rwsem_write_lock(&vma->lock); /* faults that found it before have ended */
        for (u64 addr = vma->start; addr < vma->end;) {
            pt_lock(space);
            addr = pt_next_table(space, addr, vma->end);
            if (addr < vma->end)
                addr = mm_walk_table(space, addr, vma->end, clear_written, &batch);
            pt_unlock(space);
        }
        rwsem_write_unlock(&vma->lock);
    }
    tlb_batch_flush(&batch);
    mm->soft_clear_lineage = mm->last_lineage;
    rwsem_write_unlock(&mm->mmap_lock);
    return 0;
}
