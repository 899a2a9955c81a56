/*
 * brk: the heap, an anonymous area that begins at mm->brk_start (brk(2), as the system call: it
 * returns the break).
 */
#include "lib/errno.h"
#include "mm/mmap.h"
#include "mm/vma_internal.h"

static int grow_heap(struct mm *mm, u64 start, u64 end, struct list *dead)
{
    struct vma_edit edit;

    /* One page stays free between the heap and the next area. */
    if (start < USER_ADDRESS_MIN || end > USER_ADDRESS_END - PAGE_SIZE ||
        !mm_range_is_free(mm, start, end + PAGE_SIZE) || mm->n_vmas > vma_max_map_count())
        return -ENOMEM;
    if (mm->future_lock && !vma_limits_allow_locking(mm, (end - start) >> PAGE_SHIFT))
        return -ENOMEM;
    vma_edit_begin(&edit, mm);
    struct vma *vma = vma_edit_new(&edit, start, end, PROT_READ | PROT_WRITE,
                                   VMA_ACCOUNT | mm_future_lock_flags(mm), NULL, 0);
    int error = vma ? vma_edit_place(&edit, vma) : -ENOMEM;
    if (!error)
        error = vma_edit_commit(&edit);
    vma_edit_close(&edit, dead);
    return error;
}

static int move_break(struct mm *mm, u64 new_end, struct list *dead)
{
    if (new_end < mm->brk_start || new_end > USER_ADDRESS_END ||
        new_end - mm->brk_start > mm->limit_brk_bytes)
        return -ENOMEM;
    u64 old_top = ALIGN_UP(mm->brk_end, PAGE_SIZE), new_top = ALIGN_UP(new_end, PAGE_SIZE);
    if (new_top < old_top) {
        const struct vma *first = vma_find_from(mm, new_top);
        if (!first || first->start >= old_top)
            return -ENOMEM; /* all that the break would leave is unmapped: it stays, as on Linux */
        return mm_unmap_locked(mm, new_top, old_top, dead);
    }
    return new_top > old_top ? grow_heap(mm, old_top, new_top, dead) : 0;
}

u64 mm_brk(struct mm *mm, u64 new_end)
{
    struct list dead = LIST_INIT(dead);

    if (rwsem_write_lock_killable(&mm->mmap_lock))
        return READ_ONCE(mm->brk_end);
    u64 old_end = mm->brk_end;
    if (move_break(mm, new_end, &dead) == 0)
        mm->brk_end = new_end;
    u64 result = mm->brk_end;
    bool populates = result > old_end && mm_future_lock_flags(mm) == VMA_LOCKED;
    rwsem_write_unlock(&mm->mmap_lock);
    vma_bury(&dead);
    if (populates)
        (void)mm_populate(mm, old_end, result - old_end, true);
    return result;
}
