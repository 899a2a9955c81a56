/*
 * Copying between kernel and user memory. Ranges are checked against the user half; a fault on the
 * way is served like the program's own. May sleep, with none of mmap_lock, a page lock,
 * invalidate_lock or a spinlock held.
 */
#ifndef MM_USER_MEMORY_H
#define MM_USER_MEMORY_H

#include "lib/types.h"

static inline bool user_range_is_ok(u64 addr, u64 bytes)
{
    return addr <= 0x00007ffffffff000ul && bytes <= 0x00007ffffffff000ul - addr;
}

MUST_CHECK int copy_from_user(void *dst, u64 user_src,
                              size_t n); /* => 0 or -EFAULT (dst then holds a part) */
MUST_CHECK int copy_to_user(u64 user_dst, const void *src, size_t n);
MUST_CHECK int clear_user(u64 user_dst, size_t n);
size_t copy_to_user_partial(u64 user_dst, const void *src,
                            size_t n); /* => bytes copied before the first bad one */
size_t copy_from_user_partial(void *dst, u64 user_src, size_t n);
/* NUL-terminated string. => length, -EFAULT, -ENAMETOOLONG when it does not fit size */
ssize_t copy_string_from_user(char *dst, u64 user_src, size_t size);

/* A copy that must not fault (page lock held): => bytes copied; touch the memory before. */
size_t copy_to_user_nofault(u64 user_dst, const void *src, size_t n);
size_t copy_from_user_nofault(void *dst, u64 user_src, size_t n);

#endif
