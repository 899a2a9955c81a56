/*
 * System calls about the address space; the work is mm's.
 */
#include "fs/tmpfs.h"
#include "kernel/syscall/syscall.h"
#include "mm/commit.h"
#include "mm/mmap.h"

#define MLOCK_ONFAULT 1u

/* Memory that fork shares: a file in memory without a name. => 0, -ENOMEM, -ENOSPC; *file NULL: no such mapping */
static int open_shared_memory(const u64 *a, struct file **file)
{
    int error = 0;
    bool is_promised = !(a[3] & MAP_NORESERVE) || !commit_honours_noreserve();
    *file = NULL;
    if ((a[3] & MAP_TYPE) == MAP_SHARED && !(a[3] & MAP_HUGETLB) && a[1] &&
        a[1] <= USER_ADDRESS_END)
        *file = tmpfs_open_unnamed("/dev/zero (deleted)", ALIGN_UP(a[1], PAGE_SIZE),
                                   is_promised ? TMPFS_SHARED_ANON : TMPFS_SHARED_ANON_NORESERVE,
                                   &error);
    return error;
}

/*
 * What stands behind a mapping. *file NULL: nothing (private memory); *offset becomes 0 where it has no meaning (it has one in huge pages).
 * => 0 with a reference; -EBADF, -ENOMEM, -ENOSPC
 */
static int open_behind(const u64 *a, struct file **file, u64 *offset)
{
    *offset = a[5];
    if (!(a[3] & MAP_ANONYMOUS)) {
        *file = syscall_file(a[4]);
        if (!*file)
            return -EBADF;
        if (!(*file)->ops->maps_anonymous || !(*file)->mapped.can_read)
            return 0; /* what cannot be mapped is refused by mm, after the place */
        file_put(*file);
    }
    if (!(a[3] & MAP_HUGETLB))
        *offset = 0;
    return open_shared_memory(a, file);
}

/* mmap(addr, length, prot, flags, fd, offset) */
s64 sys_mmap(const u64 *a)
{
    struct file *file;
    u64 offset;
    if (a[5] % PAGE_SIZE)
        return -EINVAL;
    int error = open_behind(a, &file, &offset);
    if (error)
        return error;
    s64 result =
        mm_mmap(process_current()->mm, a[0], a[1], a[2], a[3], file ? &file->mapped : NULL, offset);
    if (file)
        file_put(file);
    return result;
}

s64 sys_munmap(const u64 *a)
{
    return mm_munmap(process_current()->mm, a[0], a[1]);
}

#define PROT_UNKNOWN (1u << 31)

s64 sys_mprotect(const u64 *a)
{
    u32 unknown = a[2] >> 32 ? PROT_UNKNOWN : 0; /* the upper half counts, too */
    return mm_mprotect(process_current()->mm, a[0], a[1], (u32)a[2] | unknown);
}

s64 sys_brk(const u64 *a)
{
    return mm_brk(process_current()->mm, a[0]);
}

s64 sys_madvise(const u64 *a)
{
    return mm_madvise(process_current()->mm, a[0], a[1], a[2]);
}

s64 sys_mincore(const u64 *a)
{
    return mm_mincore(process_current()->mm, a[0], a[1], a[2]);
}

s64 sys_mremap(const u64 *a)
{
    return mm_mremap(process_current()->mm, a[0], a[1], a[2], a[3] > ~0u ? ~0u : a[3], a[4]);
}

s64 sys_msync(const u64 *a)
{
    return mm_msync(process_current()->mm, a[0], a[1], a[2]);
}

s64 sys_mlock(const u64 *a)
{
    return mm_mlock(process_current()->mm, a[0], a[1], true);
}

s64 sys_mlock2(const u64 *a)
{
    if ((u32)a[2] & ~MLOCK_ONFAULT)
        return -EINVAL;
    return mm_mlock(process_current()->mm, a[0], a[1], !(a[2] & MLOCK_ONFAULT));
}

s64 sys_munlock(const u64 *a)
{
    return mm_munlock(process_current()->mm, a[0], a[1]);
}

s64 sys_mlockall(const u64 *a)
{
    return mm_mlock_all(process_current()->mm, a[0]);
}

s64 sys_munlockall(const u64 *a)
{
    (void)a;
    return mm_munlock_all(process_current()->mm);
}
