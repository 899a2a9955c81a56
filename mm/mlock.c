/*
 * mlock and its relatives: areas whose pages are all in memory and stay there (mlock(2)).
 *
 * The flags are set area after area (each one an edit, as with mprotect), then the pages are faulted in without
 * mmap_lock. What keeps them: anonymous pages never leave memory here, and reclaim passes over a file's page that a
 * locked area shows. RLIMIT_MEMLOCK counts the pages of locked areas, there or not; it holds for programs that have
 * given CAP_IPC_LOCK up.
 */
#include "lib/errno.h"
#include "mm/huge.h"
#include "mm/mmap.h"
#include "mm/vma_internal.h"

#define LOCK_FLAGS (VMA_LOCKED | VMA_LOCKONFAULT)

/* lock_flags: what of LOCK_FLAGS the part [start, end) shall have. */
static int set_flags_of(struct vma *vma, u64 start, u64 end, u32 lock_flags, struct list *dead)
{
    u32 flags = (vma->flags & ~LOCK_FLAGS) | lock_flags;
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
static int set_flags_locked(struct mm *mm, u64 start, u64 end, u32 lock_flags, struct list *dead)
{
    int error = 0;
    while (!error && start < end) {
        struct vma *vma = vma_find(mm, start);
        if (!vma)
            return -ENOMEM;
        u64 part_end = MIN(vma->end, end);
        error = set_flags_of(vma, start, part_end, lock_flags, dead);
        start = part_end;
    }
    return error;
}

/* ---- RLIMIT_MEMLOCK ---- */

static u64 locked_pages_in(struct mm *mm, u64 start, u64 end)
{
    const struct vma *vma;
    u64 pages = 0;
    for (; start < end && (vma = vma_find_from(mm, start)) && vma->start < end; start = vma->end)
        if (vma->flags & VMA_LOCKED)
            pages += (MIN(vma->end, end) - MAX(vma->start, start)) >> PAGE_SHIFT;
    return pages;
}

/* What is locked already does not count twice. mmap_lock held. */
static bool limit_allows(struct mm *mm, u64 start, u64 end)
{
    u64 pages = (end - start) >> PAGE_SHIFT;
    return vma_limits_allow_locking(mm, pages) ||
           vma_limits_allow_locking(mm, pages - locked_pages_in(mm, start, end));
}

/* ---- Bringing the pages in ---- */

/* A private area that can be written gets its own pages at once. */
static bool wants_write(const struct vma *vma)
{
    return (vma->prot & PROT_WRITE) && !(vma->flags & VMA_SHARED);
}

int mm_populate_locked(struct mm *mm, u64 start, u64 end, bool ignore_errors)
{
    int error = 0;
    while (start < end && (!error || ignore_errors) && error != -EINTR) {
        if (rwsem_read_lock_killable(&mm->mmap_lock))
            return -EINTR;
        const struct vma *vma = vma_find_from(mm, start);
        u64 part_start = vma ? MIN(MAX(vma->start, start), end) : end,
            part_end = vma ? MIN(vma->end, end) : end;
        bool is_due =
            vma && ((vma->flags & LOCK_FLAGS) == VMA_LOCKED || (vma->flags & VMA_HUGETLB));
        bool write = vma && wants_write(vma);
        rwsem_read_unlock(&mm->mmap_lock);
        if (is_due && part_start < part_end)
            error = mm_populate_range(mm, part_start, part_end - part_start, write);
        start = MAX(part_start, part_end);
    }
    return error;
}

/*
 * As mlock(2) names them: what may not be touched, or lies behind the end of its file; no memory
 * now. A page that cannot be read stays -EFAULT.
 */
static int lock_error(int error)
{
    if (error == -EINVAL || error == -ENXIO)
        return -ENOMEM;
    return error == -ENOMEM ? -EAGAIN : error;
}

/* ---- The calls ---- */

/* [addr, addr + length) in whole pages. Rounding may wrap, to nothing. => 0, -EINVAL */
static int page_range(u64 addr, u64 length, u64 *start, u64 *end)
{
    *start = ALIGN_DOWN(addr, PAGE_SIZE);
    *end = *start + ALIGN_UP(length + addr % PAGE_SIZE, PAGE_SIZE);
    return *end < *start ? -EINVAL : 0;
}

static int lock_range(struct mm *mm, u64 start, u64 end, u32 lock_flags)
{
    struct list dead = LIST_INIT(dead);
    int error = -ENOMEM;

    if (rwsem_write_lock_killable(&mm->mmap_lock))
        return -EINTR;
    if (!lock_flags || limit_allows(mm, start, end))
        error = set_flags_locked(mm, start, end, lock_flags, &dead);
    rwsem_write_unlock(&mm->mmap_lock);
    vma_bury(&dead);
    return error;
}

int mm_mlock(struct mm *mm, u64 addr, u64 length, bool populate)
{
    u64 start, end;
    if (READ_ONCE(mm->limit_locked_bytes) == 0)
        return -EPERM;
    int error = page_range(addr, length, &start, &end);
    if (!error)
        error = lock_range(mm, start, end, VMA_LOCKED | (populate ? 0 : VMA_LOCKONFAULT));
    if (error || !populate)
        return error;
    return lock_error(mm_populate_locked(mm, start, end, false));
}

int mm_munlock(struct mm *mm, u64 addr, u64 length)
{
    u64 start, end;
    int error = page_range(addr, length, &start, &end);
    return error ? error : lock_range(mm, start, end, 0);
}

/* Areas that could not be changed stay as they are, as on Linux. */
static void set_all_locked(struct mm *mm, u32 lock_flags, struct list *dead)
{
    struct vma *vma;
    for (u64 at = 0; (vma = vma_find_from(mm, at));) {
        at = vma->end;
        (void)set_flags_of(vma, vma->start, vma->end, lock_flags, dead);
    }
}

/* flags: MCL_*; 0 unlocks all, now and for the future. */
static int lock_all(struct mm *mm, u32 flags)
{
    struct list dead = LIST_INIT(dead);
    u32 lock_flags = VMA_LOCKED | (flags & MCL_ONFAULT ? VMA_LOCKONFAULT : 0);
    int error = 0;

    if (rwsem_write_lock_killable(&mm->mmap_lock))
        return -EINTR;
    if ((flags & MCL_CURRENT) && mm->total_pages > mm->limit_locked_bytes >> PAGE_SHIFT &&
        mm->limit_locked_bytes != ~0ul)
        error = -ENOMEM;
    if (!error) {
        mm->future_lock = flags & MCL_FUTURE ? flags : 0;
        if (!flags || (flags & MCL_CURRENT))
            set_all_locked(mm, flags ? lock_flags : 0, &dead);
    }
    rwsem_write_unlock(&mm->mmap_lock);
    vma_bury(&dead);
    return error;
}

int mm_mlock_all(struct mm *mm, u32 flags)
{
    if (!flags || (flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) || flags == MCL_ONFAULT)
        return -EINVAL;
    if (READ_ONCE(mm->limit_locked_bytes) == 0)
        return -EPERM;
    int error = lock_all(mm, flags);
    if (!error && (flags & MCL_CURRENT))
        (void)mm_populate_locked(mm, 0, USER_ADDRESS_END, true);
    return error;
}

int mm_munlock_all(struct mm *mm)
{
    return lock_all(mm, 0);
}
