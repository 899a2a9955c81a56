/*
 * Limits of files: see file_limits.h.
 */
#include "fs/file_limits.h"

#include "kernel/sync/atomic.h"
#include "lib/errno.h"
#include "mm/core/frames.h"

#define KIB_PER_FRAME   (PAGE_SIZE / 1024)
#define MEMORY_PER_FILE 10 /* a file takes less than a KiB, all of them a tenth of memory */
#define RESERVED_FILES  256

static const struct file_limits *limits;
static u64 n_open; /* atomic */

void file_set_limits(const struct file_limits *new_limits)
{
    limits = new_limits;
}

static int too_large(void)
{
    limits->size_exceeded();
    return -EFBIG;
}

int file_limit_write(u64 pos, size_t *len)
{
    u64 limit = limits ? limits->size_bytes() : ~0ul;

    if (*len > 0 && pos >= limit)
        return too_large();
    *len = MIN(*len, limit - pos);
    return 0;
}

int file_limit_size(u64 old_bytes, u64 new_bytes)
{
    return limits && new_bytes > old_bytes && new_bytes > limits->size_bytes() ? too_large() : 0;
}

u64 file_count(void)
{
    return atomic_load(&n_open);
}

u64 file_count_max(void)
{
    return frames_total() * KIB_PER_FRAME / MEMORY_PER_FILE;
}

bool file_count_one(void)
{
    u64 max = file_count_max();

    if (!limits || limits->may_use_reserve())
        max += RESERVED_FILES;
    if (atomic_add(&n_open, 1) <= max)
        return true;
    atomic_sub(&n_open, 1);
    return false;
}

void file_uncount(void)
{
    atomic_sub(&n_open, 1);
}
