/*
 * mlock and its relatives: areas whose pages are all in memory and stay there (mlock(2)).
 *
 * The flag is set area after area (each one an edit, as with mprotect), then the pages are faulted in without
 * mmap_lock. What keeps them: anonymous pages never leave memory here, and reclaim passes over a file's page that a
 * locked area shows. No limit holds, as for root on Linux.
 */
#include "lib/errno.h"
#include "mm/huge.h"
#include "mm/mmap.h"
#include "mm/vma_internal.h"

static int set_flag(struct vma *vma, u64 start, u64 end, bool locked, struct list *dead)
{
    u32 flags = locked ? vma->flags | VMA_LOCKED : vma->flags & ~VMA_LOCKED;
    struct vma_edit edit;

    if (flags == vma->flags || vma_is_huge(vma)) /* huge pages are always locked */
        return 0;
    vma_edit_begin(&edit, vma->mm);
    int error = vma_edit_change(&edit, vma, start, end, vma->prot, flags);
    if (!error)
        error = vma_edit_commit(&edit);
    vma_edit_close(&edit, dead);
    return error;
}

/* What lies before a hole is changed. mmap_lock exclusive. => 0, -ENOMEM */
static int set_flags_locked(struct mm *mm, u64 start, u64 end, bool locked, struct list *dead)
{
    int error = 0;
    while (!error && start < end) {
        struct vma *vma = vma_find(mm, start);
        if (!vma)
            return -ENOMEM;
        u64 part_end = MIN(vma->end, end);
        error = set_flag(vma, start, part_end, locked, dead);
        start = part_end;
    }
    return error;
}

static int set_flags(struct mm *mm, u64 start, u64 end, bool locked)
{
    struct list dead = LIST_INIT(dead);
    if (rwsem_write_lock_killable(&mm->mmap_lock))
        return -EINTR;
    int error = set_flags_locked(mm, start, end, locked, &dead);
    rwsem_write_unlock(&mm->mmap_lock);
    vma_bury(&dead);
    return error;
}

/* A private area that can be written gets its own pages at once. */
static bool wants_write(const struct vma *vma)
{
    return (vma->prot & PROT_WRITE) && !(vma->flags & VMA_SHARED);
}

/*
 * Faults in what the locked areas of [start, end) show; of errors the first is told, and the rest tried only if
 * they do not matter.
 */
static int populate_locked_areas(struct mm *mm, u64 start, u64 end, bool ignore_errors)
{
    int error = 0;
    while (start < end && (!error || ignore_errors) && error != -EINTR) {
        if (rwsem_read_lock_killable(&mm->mmap_lock))
            return -EINTR;
        const struct vma *vma = vma_find_from(mm, start);
        u64 part_start = vma ? MIN(MAX(vma->start, start), end) : end,
            part_end = vma ? MIN(vma->end, end) : end;
        bool is_locked = vma && (vma->flags & (VMA_LOCKED | VMA_HUGETLB)),
             write = vma && wants_write(vma);
        rwsem_read_unlock(&mm->mmap_lock);
        if (is_locked && part_start < part_end)
            error = mm_populate(mm, part_start, part_end - part_start, write);
        start = MAX(part_start, part_end);
    }
    return error;
}

/* As mlock(2) names them: not all could be brought in; no memory now. */
static int lock_error(int error)
{
    if (error == -EFAULT || error == -EINVAL)
        return -ENOMEM;
    return error == -ENOMEM ? -EAGAIN : error;
}

/* [addr, addr + length) in whole pages. => 0, -EINVAL */
static int page_range(u64 addr, u64 length, u64 *start, u64 *end)
{
    u64 bytes = ALIGN_UP(length + addr % PAGE_SIZE, PAGE_SIZE);
    *start = ALIGN_DOWN(addr, PAGE_SIZE);
    *end = *start + bytes;
    return *end < *start || bytes < length ? -EINVAL : 0;
}

int mm_mlock(struct mm *mm, u64 addr, u64 length, bool populate)
{
    u64 start, end;
    int error = page_range(addr, length, &start, &end);
    if (!error)
        error = set_flags(mm, start, end, true);
    if (error || !populate)
        return error;
    return lock_error(populate_locked_areas(mm, start, end, false));
}

int mm_munlock(struct mm *mm, u64 addr, u64 length)
{
    u64 start, end;
    int error = page_range(addr, length, &start, &end);
    return error ? error : set_flags(mm, start, end, false);
}

/* Areas that could not be changed stay as they are, as on Linux. */
static int set_all(struct mm *mm, bool locked, u32 future)
{
    struct list dead = LIST_INIT(dead);
    if (rwsem_write_lock_killable(&mm->mmap_lock))
        return -EINTR;
    mm->future_lock = future;
    struct vma *vma;
    for (u64 at = 0; (vma = vma_find_from(mm, at));) {
        at = vma->end;
        (void)set_flag(vma, vma->start, vma->end, locked, &dead);
    }
    rwsem_write_unlock(&mm->mmap_lock);
    vma_bury(&dead);
    return 0;
}

int mm_mlock_all(struct mm *mm, u32 flags)
{
    if (!flags || (flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) || flags == MCL_ONFAULT)
        return -EINVAL;
    if (!(flags & MCL_CURRENT)) {
        if (rwsem_write_lock_killable(&mm->mmap_lock))
            return -EINTR;
        mm->future_lock = flags;
        rwsem_write_unlock(&mm->mmap_lock);
        return 0;
    }
    int error = set_all(mm, true, flags & MCL_FUTURE ? flags : 0);
    if (!error && !(flags & MCL_ONFAULT))
        (void)populate_locked_areas(mm, 0, USER_ADDRESS_END, true);
    return error;
}

int mm_munlock_all(struct mm *mm)
{
    return set_all(mm, false, 0);
}
