/*
 * tmpfs: the pages of regular files. Reading, writing, changing the size.
 *
 * Rules:
 *   - An absent page is a hole. read() copies zeros for it and leaves it absent; a fault and a
 *     write make it.
 *   - The cache keeps its pages, and they are off reclaim's list: only removal (truncate, punch, the
 *     end of the file) takes one away, or MADV_PAGEOUT one that is clean, and so zeros. A page is dirty
 *     from the first store, write or fallocate on; until then it is mapped read-only, so that the
 *     store is seen.
 *   - write() holds inode->rwlock exclusive, no fault ever takes it. User memory is copied with the
 *     page locked only by the copy that cannot fault, after the source has been touched without any
 *     page locked: the source may be a mapping of the very page.
 */
#include "fs/tmpfs/tmpfs.h"

#include "fs/file_limits.h"
#include "fs/inode_time.h"
#include "kernel/sched/sync_point.h"
#include "kernel/sync/mutant.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/reclaim.h"
#include "mm/user_memory.h"

#define FILE_BYTES_MAX ((u64)INT64_MAX)

/* ---- Pages ---- */

/* Makes the locked page a page of zeros, if there is room for it. */
static void fill_page(struct inode *inode, struct page *page)
{
    if (!tmpfs_charge(inode, 1)) {
        page_read_done(page, -ENOSPC);
        return;
    }
    page_clear(page_virt(page));
    reclaim_list_remove(page);
    page_set(page, PAGE_HOLE);
    page_read_done(page, 0);
}

static void read_pages(struct page_cache *cache, struct page **pages, unsigned n, bool readahead)
{
    (void)readahead;
    for (unsigned i = 0; i < n; i++)
        fill_page(cache->owner, pages[i]);
}

static void page_removed(struct page_cache *cache, struct page *page)
{
    if (page_is_uptodate(page))
        tmpfs_uncharge(cache->owner, 1);
}

const struct page_cache_ops tmpfs_cache_ops = {
    .read_pages = read_pages,
    .page_removed = page_removed,
    .is_memory = true,
};

/* => 0 with a reference, the page is filled and unlocked; -EEXIST, -ENOMEM */
static int add_page(struct page_cache *cache, pgoff_t index, struct page **page)
{
    int error;

    rwsem_read_lock(&cache->invalidate_lock);
    error = page_cache_add_new(cache, index, page);
    if (!error)
        cache->ops->read_pages(cache, page, 1, false);
    rwsem_read_unlock(&cache->invalidate_lock);
    return error;
}

int tmpfs_get_page_locked(struct inode *inode, pgoff_t index, struct page **out)
{
    struct page_cache *cache = &inode->cache;

    for (;;) {
        struct page *page = page_cache_find(cache, index);
        bool is_fresh = !page;
        int error = is_fresh ? add_page(cache, index, &page) : 0;

        if (error == -EEXIST)
            continue;
        if (error)
            return error;
        page_lock(page);
        if (page_cache_owns(cache, page, index) && page_is_uptodate(page)) {
            *out = page;
            return 0;
        }
        /* There was no room: now, or when somebody tried before. */
        if (page_cache_owns(cache, page, index) && atomic_load(&page->mapcount) == 0)
            page_cache_remove(cache, page);
        page_unlock(page);
        page_put(page);
        if (is_fresh)
            return -ENOSPC;
    }
}

/* ---- Reading ---- */

/* The page for reading, with a reference; NULL: a hole. */
static struct page *find_data(struct page_cache *cache, pgoff_t index)
{
    struct page *page = page_cache_find(cache, index);

    if (!page || page_is_uptodate(page))
        return page;
    page_lock(page); /* it is being made */
    page_unlock(page);
    if (page_is_uptodate(page))
        return page;
    page_put(page);
    return NULL;
}

/* A part of one page. => bytes copied */
static size_t read_part(struct page_cache *cache, u64 pos, u64 user_buf, size_t len)
{
    static const char zeros[PAGE_SIZE];
    struct page *page = find_data(cache, pos / PAGE_SIZE);
    const char *from = page ? page_virt(page) : zeros;
    size_t copied = copy_to_user_partial(user_buf, from + pos % PAGE_SIZE, len);

    if (page && page_has(page, PAGE_UNTOUCHED))
        page_unset(page, PAGE_UNTOUCHED);
    if (page)
        page_put(page);
    return copied;
}

static ssize_t tmpfs_read(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    struct page_cache *cache = &file->inode->cache;
    size_t done = 0;

    while (done < len) {
        u64 at = *pos + done, size = READ_ONCE(cache->size_bytes);
        size_t want, copied;

        if (at >= size)
            break;
        want = MIN(MIN(PAGE_SIZE - at % PAGE_SIZE, len - done), size - at);
        copied = read_part(cache, at, user_buf + done, want);
        done += copied;
        if (copied < want) {
            if (done == 0)
                return -EFAULT;
            break;
        }
        if (task_kill_is_pending(task_current()))
            break;
    }
    *pos += done;
    inode_touch(file->inode, INODE_ATIME);
    return done;
}

/* ---- Writing ---- */

/* Faults in what the copy of [user_buf, +len) will read; len is at most a page. => can it be read?
 */
static bool touch_source(u64 user_buf, size_t len)
{
    char byte;

    return copy_from_user_partial(&byte, user_buf, 1) == 1 &&
           copy_from_user_partial(&byte, user_buf + len - 1, 1) == 1;
}

/* A part of one page. => bytes (at least 1), or an error */
static ssize_t write_part(struct inode *inode, u64 pos, u64 user_buf, size_t len)
{
    size_t copied = 0;

    while (copied == 0) {
        struct page *page;
        int error;

        if (!touch_source(user_buf, len)) {
            size_t in_first_page = PAGE_SIZE - user_buf % PAGE_SIZE;

            if (len <= in_first_page)
                return -EFAULT;
            len = in_first_page; /* up to the page that cannot be read */
            continue;
        }
        SYNC_POINT(tmpfs_source_touched);
        error = tmpfs_get_page_locked(inode, pos / PAGE_SIZE, &page);
        if (error)
            return error;
        char *to = (char *)page_virt(page) + pos % PAGE_SIZE;
        copied = MUTANT(copy_under_page_lock) ? copy_from_user_partial(to, user_buf, len)
                                              : copy_from_user_nofault(to, user_buf, len);
        page_unset(page, PAGE_HOLE | PAGE_UNTOUCHED);
        page_set(page, PAGE_DIRTY);
        page_unlock(page);
        page_put(page);
    }
    return copied;
}

/* => bytes, or an error with nothing written. rwlock held exclusive */
static ssize_t write_locked(struct inode *inode, u64 user_buf, size_t len, u64 pos)
{
    struct page_cache *cache = &inode->cache;
    size_t done = 0;
    ssize_t n = 0;

    if (pos > cache->size_bytes)
        tmpfs_clear_behind_end(inode);
    while (done < len && !task_kill_is_pending(task_current())) {
        u64 at = pos + done;

        n = write_part(inode, at, user_buf + done, MIN(PAGE_SIZE - at % PAGE_SIZE, len - done));
        if (n < 0)
            break;
        done += n;
        if (at + n > cache->size_bytes)
            WRITE_ONCE(cache->size_bytes, at + n);
    }
    if (n < 0) /* a page made for nothing lies behind the end */
        page_cache_truncate(cache, cache->size_bytes);
    return done > 0 || n >= 0 ? (ssize_t)done : n;
}

static ssize_t tmpfs_write(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    struct inode *inode = file->inode;
    ssize_t done = 0;

    if (len == 0)
        return 0;
    rwsem_write_lock(&inode->rwlock);
    if (file->flags & O_APPEND)
        *pos = inode->cache.size_bytes;
    if (*pos >= FILE_BYTES_MAX)
        done = -EFBIG;
    else
        done = file_limit_write(*pos, &len);
    if (!done)
        done = write_locked(inode, user_buf, MIN(len, FILE_BYTES_MAX - *pos), *pos);
    if (done > 0) {
        *pos += done;
        inode_touch(inode, INODE_MTIME | INODE_CTIME);
    }
    rwsem_write_unlock(&inode->rwlock);
    return done;
}

int tmpfs_set_size(struct inode *inode, u64 size_bytes)
{
    struct page_cache *cache = &inode->cache;

    if (size_bytes > FILE_BYTES_MAX)
        return -EFBIG;
    if (size_bytes > cache->size_bytes)
        tmpfs_clear_behind_end(inode);
    page_cache_truncate(cache, size_bytes);
    inode_touch(inode, INODE_MTIME | INODE_CTIME);
    return 0;
}

const struct file_ops file_ops_tmpfs = {
    .read = tmpfs_read,
    .write = tmpfs_write,
    .is_seekable = true,
    .can_map = true,
};

const struct inode_ops tmpfs_file_ops = {
    .seek_data = tmpfs_seek_data,
    .evict = tmpfs_inode_evict,
    .set_size = tmpfs_set_size,
    .allocate = tmpfs_allocate,
};
