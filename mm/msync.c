/*
 * msync: what is mapped has reached its file, as far as files go (msync(2)).
 *
 * A file in memory is its pages, and a file on a disk is never written through a map here: stores are in the page cache
 * when the processor has made them, and there is nothing to wait for. What is left of the call are its checks.
 */
#include "lib/errno.h"
#include "mm/mmap.h"

#define MS_KNOWN (MS_ASYNC | MS_INVALIDATE | MS_SYNC)

/* => 0, -ENOMEM over a hole, -EBUSY */
static int check_areas(struct mm *mm, u64 start, u64 end, u32 flags)
{
    int error = 0;
    while (start < end) {
        const struct vma *vma = vma_find_from(mm, start);
        if (!vma || vma->start >= end)
            return -ENOMEM;
        if (vma->start > start)
            error = -ENOMEM;
        if ((flags & MS_INVALIDATE) && (vma->flags & VMA_LOCKED))
            return -EBUSY;
        start = vma->end;
    }
    return error;
}

int mm_msync(struct mm *mm, u64 addr, u64 length, u32 flags)
{
    if ((flags & ~MS_KNOWN) || !IS_ALIGNED(addr, PAGE_SIZE) ||
        ((flags & MS_ASYNC) && (flags & MS_SYNC)))
        return -EINVAL;
    u64 bytes = ALIGN_UP(length, PAGE_SIZE), end = addr + bytes;
    if (end < addr)
        return -ENOMEM;
    if (end == addr)
        return 0;
    if (rwsem_read_lock_killable(&mm->mmap_lock))
        return -EINTR;
    int error = check_areas(mm, addr, end, flags);
    rwsem_read_unlock(&mm->mmap_lock);
    return error;
}
