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
    if ((vma->flags & VMA_LOCKED) &&
        !vma_limits_allow_locking(vma->mm, (vma->start - start) >> PAGE_SHIFT))
        return -ENOMEM;
    vma_name_anon(
        vma); /* an area that has grown has pages of its own, as far as fork and merging care */
    vma_edit_begin(&edit, vma->mm);
    struct vma *grown = vma_edit_new(&edit, start, vma->end, vma->prot, vma->flags, NULL, 0);
    int error = grown ? vma_edit_cut(&edit, vma->start, vma->end) : -ENOMEM;
    if (!error) {
        grown->pgoff = vma->pgoff - ((vma->start - start) >> PAGE_SHIFT);
        grown->lineage = vma->lineage;
        grown->anon_name = READ_ONCE(vma->anon_name);
        grown->anon_is_inherited = vma->anon_is_inherited;
        error = vma_edit_put(&edit, grown);
    }
    if (!error)
        error = vma_edit_commit(&edit);
    vma_edit_close(&edit, &dead);
    vma_bury(&dead); /* no file behind an area that grows */
    return error;
}

/* ---- Names of anonymous pages ---- */

/* Could they be one area, but for what may be done with them? Then they share a name, and may become one. */
static bool is_kin(const struct vma *below, const struct vma *above)
{
    return below->end == above->start && below->file == above->file &&
           ((below->flags ^ above->flags) & ~(VMA_DETACHED | VMA_FRESH)) == 0 &&
           vma_pgoff(below, above->start) == above->pgoff;
}

static u64 name_of_kin(const struct vma *vma)
{
    const struct range_tree *tree = &vma->mm->vmas;
    const struct vma *above = range_tree_find(tree, vma->end), *below = NULL;
    struct range_entry entry;

    if (above && is_kin(vma, above) && !above->anon_is_inherited && vma_owns_anon(above))
        return READ_ONCE(above->anon_name);
    if (range_tree_prev(tree, vma->start, &entry))
        below = entry.item;
    if (below && is_kin(below, vma) && !below->anon_is_inherited)
        return READ_ONCE(below->anon_name);
    return 0;
}

/*
 * Neighbours are found without their locks, and a call may be changing them: then the area gets a
 * name of its own, as if the fault had come a moment later.
 */
void vma_name_anon(struct vma *vma)
{
    if (vma_owns_anon(vma))
        return;
    u64 name = name_of_kin(vma);
    if (!name)
        name = atomic_add(&vma->mm->last_anon_name, 1);
    (void)atomic_change(&vma->anon_name, 0, name);
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
