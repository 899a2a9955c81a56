/*
 * System calls about the address space; the work is mm's.
 */
#include "kernel/syscall/syscall.h"
#include "mm/mmap.h"

#define PROT_UNKNOWN (1u << 31)

/* mmap(addr, length, prot, flags, fd, offset). A write-only file is refused as that, by mm. */
s64 sys_mmap(const u64 *a)
{
    struct file *file = NULL;
    if (a[5] % PAGE_SIZE)
        return -EINVAL;
    if (!(a[3] & MAP_ANONYMOUS)) {
        file = syscall_file(a[4]);
        if (!file)
            return -EBADF;
        if (file->mapped.can_read && !file->ops->can_map) {
            file_put(file);
            return -ENODEV;
        }
    }
    s64 result = mm_mmap(process_current()->mm, a[0], a[1], a[2], a[3], file ? &file->mapped : NULL, a[5]);
    if (file)
        file_put(file);
    return result;
}

s64 sys_munmap(const u64 *a)
{
    return mm_munmap(process_current()->mm, a[0], a[1]);
}

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
