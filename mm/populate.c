/*
 * Populating: faulting pages in without a touch, for MAP_POPULATE, MAP_LOCKED, mlock and
 * MADV_POPULATE_*.
 *
 * Each page takes the way of every fault. A page that is mapped already, or was mapped around a
 * moment ago, is no fault. A page that cannot be read ends the call: the fault has read it a second
 * time by itself, there is no third.
 */
#include "kernel/sched/task.h"
#include "lib/errno.h"
#include "mm/fault.h"
#include "mm/mmap.h"
#include "mm/vma_internal.h"

static bool is_mapped(struct mm *mm, u64 addr, bool write)
{
    pt_lock(&mm->space);
    pte_t pte = pt_look_up(&mm->space, addr);
    pt_unlock(&mm->space);
    return pte_is_present(pte) && (!write || (pte & PTE_WRITE));
}

/* Does the area show a page of the file there? Else the page lies behind the file's end. */
static bool is_inside_file(struct mm *mm, u64 addr)
{
    rwsem_read_lock(&mm->mmap_lock);
    const struct vma *vma = vma_find(mm, addr);
    bool is_inside =
        vma && vma->file &&
        vma_pgoff(vma, addr) < DIV_ROUND_UP(READ_ONCE(vma->file->cache->size_bytes), PAGE_SIZE);
    rwsem_read_unlock(&mm->mmap_lock);
    return is_inside;
}

static int populate_error(struct mm *mm, u64 addr, enum fault_result result)
{
    switch (result) {
    case FAULT_DONE: return 0;
    case FAULT_SIGBUS_ADRERR: return is_inside_file(mm, addr) ? -EFAULT : -ENXIO;
    case FAULT_SIGSEGV_ACCERR: return -EINVAL;
    case FAULT_KILLED: return -EINTR;
    default: return -ENOMEM;
    }
}

int mm_populate_range(struct mm *mm, u64 addr, u64 length, bool write)
{
    u64 end = addr + ALIGN_UP(length, PAGE_SIZE);

    if (end < addr || end > USER_ADDRESS_END)
        return -ENOMEM;
    for (addr = ALIGN_DOWN(addr, PAGE_SIZE); addr < end; addr += PAGE_SIZE) {
        if (task_kill_is_pending(task_current()))
            return -EINTR;
        if (is_mapped(mm, addr, write))
            continue;
        enum fault_result result =
            fault_user(mm, addr, write ? FAULT_WRITE : FAULT_READ, FAULT_FLAG_POPULATE);
        int error = populate_error(mm, addr, result);
        if (error)
            return error;
    }
    return 0;
}

/* => 0 with the page of a present entry and a reference; -EAGAIN: none there; -EOPNOTSUPP: a huge one */
static int get_mapped(struct mm *mm, u64 addr, struct page **out)
{
    int error = -EAGAIN;

    rwsem_read_lock(&mm->mmap_lock);
    const struct vma *vma = vma_find(mm, addr);
    if (vma && (vma->flags & VMA_HUGETLB))
        error = -EOPNOTSUPP;
    pt_lock(&mm->space);
    const pte_t *ptep = pt_find(&mm->space, addr);
    if (ptep && pte_is_present(*ptep)) {
        *out = pte_page(*ptep);
        page_get(*out);
        error = 0;
    }
    pt_unlock(&mm->space);
    rwsem_read_unlock(&mm->mmap_lock);
    return error;
}

int mm_page_get(struct mm *mm, u64 addr, struct page **out)
{
    int error;

    while ((error = get_mapped(mm, addr, out)) == -EAGAIN) {
        error = mm_populate(mm, addr, PAGE_SIZE, false);
        if (error)
            break;
        /* Look again: it may have been taken away meanwhile. */
    }
    return error;
}

int mm_populate(struct mm *mm, u64 addr, u64 length, bool write)
{
    int error = mm_populate_range(mm, addr, length, write);
    return error == -ENXIO ? -EFAULT : error;
}
