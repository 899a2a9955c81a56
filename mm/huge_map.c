/*
 * mmap of huge areas: the page size asked for, the file behind. The rest is mm_mmap's.
 */
#include "lib/errno.h"
#include "mm/huge.h"
#include "mm/mmap.h"

#define SIZE_SHIFT 26 /* of the logarithm of the page size, in flags; 0: the default */
#define SIZE_MASK  0x3fu
#define LOG_2MB    21
#define LOG_1GB    30

/* Pages of 1 GiB exist on this processor family, but there is no pool of them. */
static int check_page_size(u32 flags)
{
    switch ((flags >> SIZE_SHIFT) & SIZE_MASK) {
    case 0:
    case LOG_2MB: return 0;
    case LOG_1GB: return -ENOMEM;
    default: return -EINVAL;
    }
}

s64 mm_mmap_huge(struct mm *mm, u64 addr, u64 length, u32 prot, u32 flags, u64 offset)
{
    int error = check_page_size(flags);
    if (error)
        return error;
    length = ALIGN_UP(length, HUGE_PAGE_BYTES); /* one that wraps is refused as no length */
    struct huge_file *file = huge_file_create(length);
    if (!file)
        return -ENOMEM;
    s64 result =
        mm_mmap(mm, addr, length, prot, flags & ~(SIZE_MASK << SIZE_SHIFT), &file->mapped, offset);
    mapped_file_put(&file->mapped);
    return result;
}
