/*
 * VMAs: looking them up, growing a stack, and what their protection means in a page-table entry.
 * How they come and go is in mm/vma_edit.c.
 */
#include "mm/vma.h"

#include "lib/errno.h"
#include "mm/vma_internal.h"

struct vma *vma_find(struct mm *mm, u64 addr)
{
    return range_tree_find(&mm->vmas, addr);
}

struct vma *vma_find_from(struct mm *mm, u64 addr)
{
    struct range_entry entry;
    return range_tree_next(&mm->vmas, addr, &entry) ? entry.item : NULL;
}

/* Does the area below stay far enough from a stack that begins at `start`? */
static bool guard_gap_is_free(const struct vma *vma, u64 start)
{
    struct range_entry entry;
    if (!range_tree_prev(&vma->mm->vmas, vma->start, &entry))
        return true;
    const struct vma *below = entry.item;
    if (start < below->end)
        return false;
    if (below->prot == PROT_NONE || (below->flags & VMA_GROWSDOWN))
        return true;
    return start - below->end >= STACK_GUARD_PAGES * PAGE_SIZE;
}

int vma_grow_down(struct vma *vma, u64 addr)
{
    u64 start = ALIGN_DOWN(addr, PAGE_SIZE);
    struct vma_edit edit;
    struct list dead = LIST_INIT(dead);

    if (start >= vma->start)
        return 0;
    if (start < USER_ADDRESS_MIN || vma->end - start > vma->mm->stack_limit_bytes ||
        !guard_gap_is_free(vma, start))
        return -ENOMEM;
    /* The new part is placed below and merges, being of the same lineage. */
    vma_edit_begin(&edit, vma->mm);
    struct vma *grown = vma_edit_new(&edit, start, vma->start, vma->prot, vma->flags, NULL, 0);
    int error = -ENOMEM;
    if (grown) {
        grown->lineage = vma->lineage;
        error = vma_edit_place(&edit, grown);
    }
    if (!error)
        error = vma_edit_commit(&edit);
    vma_edit_close(&edit, &dead);
    vma_bury(&dead); /* no file behind an area that grows */
    return error;
}

/*
 * x86 can refuse writing and executing, but whatever is mapped can be read. The one exception,
 * memory that can only be executed, is made by a protection key to which all data access is denied
 * (Intel SDM vol. 3, 4.6.2). Where nothing is allowed, the entry only keeps the page.
 */
u64 vma_pte_bits(const struct vma *vma, bool writable)
{
    if (vma->prot == PROT_NONE)
        return PTE_NONE_PROT;
    u64 bits = PTE_PRESENT | PTE_USER;
    if (writable && (vma->prot & PROT_WRITE))
        bits |= PTE_WRITE | PTE_SOFT_DIRTY;
    if (!(vma->prot & PROT_EXEC))
        bits |= PTE_NX;
    if (vma->prot == PROT_EXEC && cpu_features.pku)
        bits |= (u64)PKEY_EXECUTE_ONLY << PTE_PKEY_SHIFT;
    return bits & pt_valid_bits;
}
