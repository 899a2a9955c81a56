/*
 * tmpfs: fallocate and the search for data and holes.
 */
#include "fs/tmpfs/tmpfs.h"

#include "fs/inode_time.h"
#include "lib/errno.h"
#include "lib/string.h"

static void clear_part(struct page_cache *cache, u64 pos, size_t len)
{
    struct page *page = page_cache_find(cache, pos / PAGE_SIZE);

    if (!page)
        return;
    page_lock(page);
    if (page_cache_owns(cache, page, pos / PAGE_SIZE) && page_is_uptodate(page))
        memset((char *)page_virt(page) + pos % PAGE_SIZE, 0, len);
    page_unlock(page);
    page_put(page);
}

void tmpfs_clear_behind_end(struct inode *inode)
{
    u64 size = inode->cache.size_bytes;

    if (size % PAGE_SIZE)
        clear_part(&inode->cache, size, PAGE_SIZE - size % PAGE_SIZE);
}

/* Whole pages go, of the pages at both ends a part is cleared. */
static void punch(struct page_cache *cache, u64 offset, u64 end)
{
    pgoff_t first = DIV_ROUND_UP(offset, PAGE_SIZE), behind = end / PAGE_SIZE;
    u64 head_end = MIN(ALIGN_UP(offset, PAGE_SIZE), end);

    if (head_end > offset)
        clear_part(cache, offset, head_end - offset);
    if (end > head_end && end % PAGE_SIZE)
        clear_part(cache, ALIGN_DOWN(end, PAGE_SIZE), end % PAGE_SIZE);
    if (first < behind) {
        rwsem_write_lock(&cache->invalidate_lock);
        page_cache_remove_range(cache, first, behind - 1);
        rwsem_write_unlock(&cache->invalidate_lock);
    }
}

/* Makes every absent page of [first, behind); none is given back from now on. => 0; -ENOSPC, -ENOMEM, -EINTR: some are made */
static int reserve(struct inode *inode, pgoff_t first, pgoff_t behind)
{
    for (pgoff_t index = first; index < behind; index++) {
        bool is_fresh = page_cache_next_absent(&inode->cache, index, index) == index;
        struct page *page;

        if (task_kill_is_pending(task_current()))
            return -EINTR;
        int error = tmpfs_get_page_locked(inode, index, &page);
        if (error)
            return error;
        page_set(page, PAGE_DIRTY | (is_fresh ? PAGE_UNTOUCHED : 0));
        page_unlock(page);
        page_put(page);
    }
    return 0;
}

int tmpfs_allocate(struct inode *inode, u32 mode, u64 offset, u64 len)
{
    struct page_cache *cache = &inode->cache;
    u64 end = offset + len;
    int error;

    if (mode & FALLOC_PUNCH_HOLE) {
        punch(cache, offset, end);
        inode_touch(inode, INODE_MTIME | INODE_CTIME);
        return 0;
    }
    if (DIV_ROUND_UP(len, PAGE_SIZE) > tmpfs_pages_limit())
        return -ENOSPC;
    error = reserve(inode, offset / PAGE_SIZE, DIV_ROUND_UP(end, PAGE_SIZE));
    if (!error && end > cache->size_bytes && !(mode & FALLOC_KEEP_SIZE))
        return tmpfs_set_size(inode, end);
    if (error)
        page_cache_truncate(cache, cache->size_bytes); /* nothing is kept behind the end */
    return error;
}

s64 tmpfs_seek_data(struct inode *inode, u64 pos, bool want_hole)
{
    struct page_cache *cache = &inode->cache;
    u64 size = READ_ONCE(cache->size_bytes), at;
    pgoff_t first = pos / PAGE_SIZE, last = (size - 1) / PAGE_SIZE;
    struct page *page;

    if (pos >= size)
        return -ENXIO;
    if (want_hole) {
        at = page_cache_next_absent(cache, first, last) * PAGE_SIZE;
        return MIN(MAX(at, pos), size);
    }
    if (page_cache_find_range(cache, first, last, &page, 1) == 0)
        return -ENXIO;
    at = READ_ONCE(page->index) * PAGE_SIZE;
    page_put(page);
    return at < size ? (s64)MAX(at, pos) : -ENXIO;
}
