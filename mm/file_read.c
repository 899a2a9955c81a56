/*
 * read() on cached files. Pages are taken in batches of up to BATCH_PAGES; a batch ends early at a page with the mark (which
 * starts the next window before anything is copied) and at a page that is still being read.
 *
 * User memory is touched with nothing held but references to the pages: the copy may fault on a page of the very same file.
 */
#include "mm/file_read.h"

#include "lib/errno.h"
#include "lib/string.h"
#include "mm/readahead_use.h"
#include "mm/user_memory.h"

#define BATCH_PAGES 31

struct destination {
    bool is_user;
    u64 addr;
};

/* => bytes copied before a bad address */
static size_t copy_out(struct destination *to, const void *from, size_t n)
{
    size_t copied = n;
    if (to->is_user)
        copied = copy_to_user_partial(to->addr, from, n);
    else
        memcpy((void *)to->addr, from, n);
    to->addr += copied;
    return copied;
}

static struct readahead_call make_call(struct mapped_file *file, pgoff_t index, pgoff_t last,
                                       pgoff_t access)
{
    return (struct readahead_call){.file = file,
                                   .kind = READAHEAD_READ,
                                   .index = index,
                                   .wanted_pages = last - index + 1,
                                   .access = access};
}

/* Drops what does not belong to an unbroken run from `index`, and cuts behind a marked or unfinished page. => pages kept */
static unsigned cut_batch(struct page **pages, unsigned n, pgoff_t index)
{
    unsigned kept = 0;
    while (kept < n && READ_ONCE(pages[kept]->index) == index + kept) {
        kept++;
        if (page_has(pages[kept - 1], PAGE_READAHEAD) || !page_is_uptodate(pages[kept - 1]))
            break;
    }
    for (unsigned i = kept; i < n; i++)
        page_put(pages[i]);
    return kept;
}

/* The last page of the batch may still be under way, or have failed. => 0, -EIO, -EINTR, -ENOMEM */
static int finish_page(struct page_cache *cache, pgoff_t index, struct page **slot)
{
    if (page_is_uptodate(*slot))
        return 0;
    struct page *page = *slot;
    int error = page_cache_get_page(cache, index, true, slot);
    page_put(page);
    return error;
}

/*
 * The next batch of [index, last]: referenced, up to date.
 * => number of pages (at least 1), or an error
 */
static int get_batch(struct mapped_file *file, pgoff_t index, pgoff_t last, pgoff_t access,
                     struct page **pages)
{
    struct page_cache *cache = file->cache;
    pgoff_t end = MIN(last, index + BATCH_PAGES - 1);
    unsigned n =
        cut_batch(pages, page_cache_find_range(cache, index, end, pages, BATCH_PAGES), index);
    if (n == 0) {
        struct readahead_call call = make_call(file, index, last, access);
        readahead_on_read_miss(&call);
        if (call.error)
            return call.error;
        n = cut_batch(pages, page_cache_find_range(cache, index, end, pages, BATCH_PAGES), index);
    }
    if (n == 0) { /* dropped again, or never there: by the plain way */
        int error = page_cache_get_page(cache, index, true, &pages[0]);
        return error ? error : 1;
    }
    struct page *tail = pages[n - 1];
    if (page_has(tail, PAGE_READAHEAD) && page_test_and_clear(tail, PAGE_READAHEAD)) {
        struct readahead_call call = make_call(file, index + n - 1, last, access);
        readahead_on_read_mark(&call);
    }
    int error = finish_page(cache, index + n - 1, &pages[n - 1]);
    if (!error)
        return n;
    /* The pages before it are good: they are copied first, and the next batch meets the error again. */
    return n > 1 ? (int)n - 1 : error;
}

/* Copies from the batch, whose first page is that of *pos, and drops it. => bytes */
static size_t copy_batch(struct page_cache *cache, struct page **pages, unsigned n, u64 pos,
                         size_t len, struct destination *to)
{
    u64 size = READ_ONCE(cache->size_bytes); /* again: it may have shrunk while we slept */
    size_t done = 0;
    bool stopped = false;
    for (unsigned i = 0; i < n; i++) {
        u64 at = pos + done;
        size_t offset = at % PAGE_SIZE;
        size_t want = at < size ? MIN(MIN(PAGE_SIZE - offset, len - done), size - at) : 0;
        if (want && !stopped) {
            size_t copied = copy_out(to, (char *)page_virt(pages[i]) + offset, want);
            done += copied;
            stopped = copied < want;
        }
        page_set(pages[i], PAGE_REFERENCED);
        readahead_page_used(pages[i]);
        page_put(pages[i]);
    }
    return done;
}

static void note_position(struct readahead *ra, u64 pos)
{
    spin_lock(&ra->lock);
    ra->prev_bytes = pos;
    spin_unlock(&ra->lock);
}

static ssize_t read_pages(struct mapped_file *file, u64 pos, size_t len, struct destination to)
{
    struct page_cache *cache = file->cache;
    struct page *pages[BATCH_PAGES];
    pgoff_t access = pos / PAGE_SIZE;
    u64 size = READ_ONCE(cache->size_bytes);
    size_t done = 0;
    int n = 0;

    if (pos >= size || len == 0)
        return 0;
    len = MIN(len, size - pos);
    pgoff_t last = (pos + len - 1) / PAGE_SIZE;
    while (done < len) {
        pgoff_t index = (pos + done) / PAGE_SIZE;
        n = get_batch(file, index, last, access, pages);
        if (n < 0)
            break;
        size_t before = (pos + done) % PAGE_SIZE;
        size_t want = MIN((size_t)n * PAGE_SIZE - before, len - done);
        size_t copied = copy_batch(cache, pages, n, pos + done, want, &to);
        done += copied;
        if (copied < want) {
            n = pos + done < READ_ONCE(cache->size_bytes) ? -EFAULT : 0;
            break;
        }
    }
    note_position(&file->readahead, pos + done);
    return done > 0 || n > 0 || n == -ENXIO ? (ssize_t)done : n;
}

ssize_t file_read_user(struct mapped_file *file, u64 pos, u64 user_buf, size_t len)
{
    return read_pages(file, pos, len, (struct destination){true, user_buf});
}

ssize_t file_read_kernel(struct mapped_file *file, u64 pos, void *buf, size_t len)
{
    return read_pages(file, pos, len, (struct destination){false, (u64)buf});
}
