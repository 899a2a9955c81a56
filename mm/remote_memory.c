/*
 * Access to another address space. The page is looked for in its page table and copied under
 * pt_lock, so that nobody takes it away meanwhile; where the table does not have it, the fault path
 * is asked for it as the process itself would ask, and then it is looked for again.
 *
 * With REMOTE_FORCE the protection of the area does not count:
 *
 *   write, private memory   a page of the process's own is written in place, its entry stays as it
 *                           is; of any other the process gets a copy (fault_write_forced)
 *   write, shared memory    refused: the others would see it. So are huge pages
 *   read                    all. What is not in the page table of a PROT_NONE area is not put there:
 *                           it is zeros, or the file's page
 */
#include "mm/remote_memory.h"

#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "mm/fault.h"
#include "mm/user_memory.h"

#define FAULTS_MAX \
    8 /* for one page, before it counts as not there: somebody takes it away each time */

#define REACH_PAGES_MAX 1024ul

struct remote {
    struct mm *mm;
    u64 addr;
    char *buf;
    size_t n;
    u32 flags; /* enum remote_flag */
};

static bool is_write(const struct remote *r)
{
    return r->flags & REMOTE_WRITE;
}

/* By the names of the protection: write-only memory cannot be read from here. */
static bool may_access(const struct remote *r, const struct vma *vma)
{
    if (vma->prot & (is_write(r) ? PROT_WRITE : PROT_READ))
        return true;
    return (r->flags & REMOTE_FORCE) && !(is_write(r) && (vma->flags & (VMA_SHARED | VMA_HUGETLB)));
}

static void copy(const struct remote *r, char *page)
{
    char *there = page + r->addr % PAGE_SIZE;

    memcpy(is_write(r) ? there : r->buf, is_write(r) ? r->buf : there, r->n);
}

/* May the page be used through this entry? pt_lock held. */
static bool entry_serves(const struct remote *r, const struct vma *vma, pte_t pte)
{
    if (!pte_is_present(pte) && !(pte & PTE_NONE_PROT))
        return false;
    if (!is_write(r) || (pte & PTE_WRITE))
        return true;
    const struct page *page = pte_page(pte);
    return !(vma->prot & PROT_WRITE) && !(pte & PTE_ZERO_PAGE) && page_has(page, PAGE_ANON) &&
           atomic_load(&page->refs) == 1;
}

/* mmap_lock held. => whether it was there */
static bool copy_by_entry(const struct remote *r, const struct vma *vma)
{
    struct pt_space *space = &r->mm->space;

    pt_lock(space);
    pte_t pte = pt_look_up(space, r->addr);
    bool serves = entry_serves(r, vma, pte);
    pte_t *small = serves && is_write(r) ? pt_find(space, r->addr) : NULL;
    if (small) /* a huge page is never written back, and never given up */
        atomic_or(small, PTE_DIRTY | PTE_ACCESSED);
    if (serves)
        copy(r, page_virt(pte_page(pte)));
    pt_unlock(space);
    return serves;
}

/* Reads the file's page itself. => 0, -EIO, -EINTR */
static int copy_from_file(const struct remote *r, struct mapped_file *file, pgoff_t index)
{
    struct page *page;
    int error = page_cache_get_page(file->cache, index, true, &page);

    if (error)
        return error == -EINTR ? error : -EIO;
    copy(r, page_virt(page));
    page_put(page);
    return 0;
}

/*
 * One look. mmap_lock is held on entry, and let go.
 * => 0: done; -EAGAIN: a fault is needed; -EIO, -EINTR
 */
static int look(const struct remote *r)
{
    const struct vma *vma = vma_find(r->mm, r->addr);
    struct mapped_file *file = NULL;
    pgoff_t index = 0;
    int error = 0;

    if (!vma || !may_access(r, vma)) {
        error = -EIO;
    } else if (copy_by_entry(r, vma)) {
        error = 0;
    } else if (vma->prot != PROT_NONE || is_write(r)) {
        error = -EAGAIN;
    } else if (vma->flags & VMA_HUGETLB) {
        error = -EIO;
    } else {
        file = vma->file;
        index = vma_pgoff(vma, r->addr);
        if (file)
            mapped_file_get(file);
        else
            memset(r->buf, 0, r->n);
    }
    rwsem_read_unlock(&r->mm->mmap_lock);
    if (file) {
        error = copy_from_file(r, file, index);
        mapped_file_put(file);
    }
    return error;
}

static int error_of(enum fault_result result)
{
    return result == FAULT_DONE     ? -EAGAIN
           : result == FAULT_KILLED ? -EINTR
           : result == FAULT_OOM    ? -ENOMEM
                                    : -EIO;
}

int remote_memory_copy(struct mm *mm, u64 addr, void *buf, size_t n, u32 flags)
{
    struct remote r = {.mm = mm, .addr = addr, .buf = buf, .n = n, .flags = flags};
    enum fault_access access = flags & REMOTE_WRITE ? FAULT_WRITE : FAULT_READ;
    u32 fault_flags = FAULT_FLAG_POPULATE | (flags & REMOTE_FORCE ? FAULT_FLAG_FORCE : 0) |
                      (flags & REMOTE_KEEP_LOCK ? FAULT_FLAG_KEEP_LOCK : 0);
    int error = -EAGAIN;

    if (addr >= USER_ADDRESS_END)
        return -EIO;
    for (unsigned i = 0; error == -EAGAIN; i++) {
        if (rwsem_read_lock_killable(&mm->mmap_lock))
            return -EINTR;
        error = look(&r);
        if (error == -EAGAIN && i == FAULTS_MAX)
            return -EIO;
        if (error == -EAGAIN)
            error = error_of(fault_user(mm, addr, access, fault_flags));
    }
    return error;
}

/* At most up to the end of the remote page. => bytes, or an error */
static ssize_t transfer_part(struct mm *mm, u64 addr, u64 user_buf, size_t n, char *bounce,
                             u32 flags)
{
    if (flags & REMOTE_WRITE)
        n = copy_from_user_partial(bounce, user_buf, n);
    int error = n ? remote_memory_copy(mm, addr, bounce, n, flags) : -EFAULT;
    if (error)
        return error;
    if (!(flags & REMOTE_WRITE))
        n = copy_to_user_partial(user_buf, bounce, n);
    return n ? (ssize_t)n : -EFAULT;
}

u64 remote_memory_reach(struct mm *mm, u64 addr, u64 len, u32 flags)
{
    u64 at = addr, end = addr + MIN(len, REACH_PAGES_MAX * PAGE_SIZE);
    char nothing;

    while (at < end && remote_memory_copy(mm, at, &nothing, 0, flags) == 0)
        at = ALIGN_DOWN(at, PAGE_SIZE) + PAGE_SIZE;
    return MIN(at, end) - addr;
}

ssize_t remote_memory_transfer(struct mm *mm, u64 addr, u64 user_buf, size_t len, u32 flags)
{
    char *bounce = kmalloc(PAGE_SIZE);
    size_t done = 0;
    ssize_t n = bounce ? 0 : -ENOMEM;

    while (bounce && done < len) {
        size_t want = MIN(PAGE_SIZE - (addr + done) % PAGE_SIZE, len - done);

        n = transfer_part(mm, addr + done, user_buf + done, want, bounce, flags);
        if (n > 0)
            done += (size_t)n;
        if (n < (ssize_t)want)
            break;
    }
    kfree(bounce);
    return done ? (ssize_t)done : MIN(n, 0);
}
