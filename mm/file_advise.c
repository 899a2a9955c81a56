/*
 * posix_fadvise(): what a program tells about the order it will read a file in.
 */
#include "lib/errno.h"
#include "mm/file_read.h"

#define OFFSET_MAX ((u64)INT64_MAX) /* of any byte of a file; what is beyond is beyond every end */

enum file_advice {
    ADVICE_NORMAL,
    ADVICE_RANDOM,
    ADVICE_SEQUENTIAL,
    ADVICE_WILLNEED,
    ADVICE_DONTNEED,
    ADVICE_NOREUSE
};

static void set_pattern(struct mapped_file *file, u32 window_factor, bool random, bool sequential)
{
    struct readahead *ra = &file->readahead;
    spin_lock(&ra->lock);
    ra->max_pages = readahead_window(file->cache) * window_factor;
    ra->advised_random = random;
    ra->advised_sequential = sequential;
    spin_unlock(&ra->lock);
}

/* Pages that lie wholly inside the range; the file's last, partial page counts as whole when the range reaches the end. */
static void drop_whole_pages(struct mapped_file *file, u64 offset, u64 end)
{
    u64 size = READ_ONCE(file->cache->size_bytes);
    pgoff_t first = DIV_ROUND_UP(offset, PAGE_SIZE);
    pgoff_t behind =
        end >= size ? MAX(page_cache_size_pages(file->cache), end / PAGE_SIZE) : end / PAGE_SIZE;
    if (first < behind)
        page_cache_drop_range(file->cache, first, behind - 1);
}

int file_advise(struct mapped_file *file, u64 offset, u64 len, int advice)
{
    offset = MIN(offset, OFFSET_MAX);
    u64 end = len == 0 || len > OFFSET_MAX - offset ? OFFSET_MAX : offset + len;
    switch (advice) {
    case ADVICE_NORMAL: set_pattern(file, 1, false, false); return 0;
    case ADVICE_RANDOM: set_pattern(file, 1, true, false); return 0;
    case ADVICE_SEQUENTIAL: set_pattern(file, 2, false, true); return 0;
    case ADVICE_WILLNEED: {
        pgoff_t first = offset / PAGE_SIZE;
        readahead_advise_willneed(file, first, DIV_ROUND_UP(end, PAGE_SIZE) - first);
        return 0;
    }
    case ADVICE_DONTNEED: drop_whole_pages(file, offset, end); return 0;
    case ADVICE_NOREUSE: return 0;
    default: return -EINVAL;
    }
}
