/*
 * mprotect: area after area, each one an edit of its own; what lies behind a hole stays as it is
 * (mprotect(2)).
 *
 * The area's new VMA is locked from the commit until its entries are rewritten, so no fault sees
 * the new protection together with entries of the old one.
 */
#include "lib/errno.h"
#include "mm/commit.h"
#include "mm/mmap.h"
#include "mm/vma_internal.h"

#define PROT_ALL (PROT_READ | PROT_WRITE | PROT_EXEC)

/* A shared map must not become writable through a descriptor that could not write. */
static bool may_have_protection(const struct vma *vma, u32 prot)
{
    return !(prot & PROT_WRITE) || !vma->file || !(vma->flags & VMA_SHARED) || vma->file->can_write;
}

/*
 * A private area that becomes writable is charged. It stays so when it can no longer be written,
 * since its pages are there; where there are none yet, it is not.
 */
static u32 flags_for(const struct vma *vma, u32 prot)
{
    if (commit_is_due(prot, vma->flags))
        return vma->flags | VMA_ACCOUNT;
    bool may_have_pages = vma->file || (vma->flags & VMA_SHARED) || vma_owns_anon(vma);
    return (prot & PROT_WRITE) || may_have_pages ? vma->flags : vma->flags & ~VMA_ACCOUNT;
}

/* A locked private area that becomes writable has its own pages at once. */
static bool wants_pages(const struct vma *vma, u32 prot)
{
    return (prot & PROT_WRITE) && !(vma->prot & PROT_WRITE) && !(vma->flags & VMA_SHARED) &&
           (vma->flags & (VMA_LOCKED | VMA_LOCKONFAULT)) == VMA_LOCKED;
}

/* What has to be brought in once mmap_lock has been let go: from the first such part to the last. */
struct to_populate {
    u64 start, end; /* equal: nothing */
};

static void add_part(struct to_populate *populate, u64 start, u64 end)
{
    if (populate->start == populate->end)
        populate->start = start;
    populate->end = end;
}

/*
 * Pages to be brought in have their name now, since it tells which areas of the rest of the range
 * are one with this one.
 */
static int protect_part(struct vma *vma, u64 start, u64 end, u32 prot, struct list *dead,
                        struct to_populate *populate)
{
    struct vma_edit edit;

    if (!may_have_protection(vma, prot))
        return -EACCES;
    if (vma->prot == prot)
        return 0;
    vma_edit_begin(&edit, vma->mm);
    int error = vma_edit_change(&edit, vma, start, end, prot, flags_for(vma, prot));
    if (!error)
        error = vma_edit_commit(&edit);
    if (!error)
        mm_protect_range(edit.held, start, end);
    if (!error && wants_pages(vma, prot)) {
        vma_name_anon(edit.held);
        add_part(populate, start, end);
    }
    vma_edit_close(&edit, dead);
    return error;
}

/* PROT_GROWSDOWN: from the start of the area that grows down. No area grows up here. => 0, -EINVAL, -ENOMEM */
static int stretch_to_area_start(struct mm *mm, u64 *start, u64 end, u32 prot)
{
    const struct vma *vma = vma_find_from(mm, *start);
    if (!vma || vma->start >= end)
        return -ENOMEM;
    if (prot & PROT_GROWSUP)
        return vma->start > *start ? -ENOMEM : -EINVAL;
    *start = vma->start;
    return vma->flags & VMA_GROWSDOWN ? 0 : -EINVAL;
}

static int protect_locked(struct mm *mm, u64 start, u64 end, u32 prot, struct list *dead,
                          struct to_populate *populate)
{
    int error = 0;
    if (prot & (PROT_GROWSDOWN | PROT_GROWSUP))
        error = stretch_to_area_start(mm, &start, end, prot);
    while (!error && start < end) {
        struct vma *vma = vma_find(mm, start);
        if (!vma)
            return -ENOMEM;
        u64 part_end = MIN(vma->end, end);
        error = protect_part(vma, start, part_end, prot & PROT_ALL, dead, populate);
        start = part_end;
    }
    return error;
}

int mm_mprotect(struct mm *mm, u64 addr, u64 length, u32 prot)
{
    struct list dead = LIST_INIT(dead);

    if ((prot & PROT_GROWSDOWN) && (prot & PROT_GROWSUP))
        return -EINVAL;
    if (!IS_ALIGNED(addr, PAGE_SIZE))
        return -EINVAL;
    if (length == 0)
        return 0;
    u64 end = addr + ALIGN_UP(length, PAGE_SIZE);
    if (end <= addr)
        return -ENOMEM;
    if (prot & ~(PROT_ALL | PROT_SEM | PROT_GROWSDOWN | PROT_GROWSUP))
        return -EINVAL;
    if (rwsem_write_lock_killable(&mm->mmap_lock))
        return -EINTR;
    struct to_populate populate = {0};
    int error = protect_locked(mm, addr, end, prot, &dead, &populate);
    rwsem_write_unlock(&mm->mmap_lock);
    vma_bury(&dead);
    if (populate.start < populate.end)
        (void)mm_populate_locked(mm, populate.start, populate.end, true);
    return error;
}
