/*
 * A page cache over a RAM disk: page i of the file is page i of the disk.
 */
#include "tests/kernel/gated_file.h"

#include "drivers/block/ramdisk.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/slab.h"

static SLEEP_LOCK_CLASS(rwlock_class, "gated_file->rwlock");

static void read_finished(struct bio *bio, int error)
{
    for (unsigned i = 0; i < bio->n_segments; i++)
        page_read_done(bio->segments[i].page, error);
    bio_free(bio);
}

static void read_run(struct gated_file *file, struct page **pages, unsigned n)
{
    struct bio *bio = bio_alloc(file->disk, n);
    if (!bio) {
        for (unsigned i = 0; i < n; i++)
            page_read_done(pages[i], -ENOMEM);
        return;
    }
    bio->sector = gated_file_sector(pages[0]->index);
    bio->done = read_finished;
    for (unsigned i = 0; i < n; i++)
        bio_add(bio, pages[i], 0, PAGE_SIZE);
    bio_submit(bio);
}

static void read_pages(struct page_cache *cache, struct page **pages, unsigned n, bool readahead)
{
    struct gated_file *file = container_of(cache, struct gated_file, cache);
    (void)readahead;
    for (unsigned i = 0; i < n;) {
        unsigned begin = i;
        while (i < n && !file->is_hole[pages[i]->index])
            i++;
        if (i > begin) {
            read_run(file, pages + begin, i - begin);
            continue;
        }
        page_clear(page_virt(pages[i]));
        page_set(pages[i], PAGE_HOLE);
        page_read_done(pages[i++], 0);
    }
}

static const struct page_cache_ops gated_ops = {.read_pages = read_pages};

static void released(struct mapped_file *mapped)
{
    container_of(mapped, struct gated_file, mapped)->was_released = true;
}

static void path(struct mapped_file *mapped, char *buf, size_t size)
{
    (void)mapped;
    strlcpy(buf, "/gated", size);
}

static void fill_on_disk(struct gated_file *file, pgoff_t page, u64 version)
{
    u64 *words = (u64 *)((char *)file->data + page * PAGE_SIZE);
    for (unsigned i = 0; i < PAGE_SIZE / sizeof(u64); i++)
        words[i] = gated_file_word(page, version);
}

struct gated_file *gated_file_create(u64 pages)
{
    struct gated_file *file = kzalloc(sizeof(*file));
    if (!file)
        return NULL;
    while ((1ul << file->order) < pages)
        file->order++;
    struct page *frames = frames_alloc(file->order, 0);
    if (!frames) {
        kfree(file);
        return NULL;
    }
    file->data = page_virt(frames);
    file->disk = ramdisk_create("gated", file->data, PAGE_SIZE << file->order);
    page_cache_init(&file->cache, &gated_ops, file, false);
    file->cache.size_bytes = pages * PAGE_SIZE;
    file->cache.ino = 4242;
    rwsem_init(&file->rwlock, &rwlock_class, "gated_file->rwlock");
    file->mapped = (struct mapped_file){.refs = 1,
                                        .cache = &file->cache,
                                        .can_read = true,
                                        .can_map = true,
                                        .can_write = true,
                                        .release = released,
                                        .path = path};
    readahead_init(&file->mapped.readahead, &file->cache);
    for (pgoff_t i = 0; i < 1ul << file->order; i++)
        fill_on_disk(file, i, 0);
    return file;
}

void gated_file_destroy(struct gated_file *file)
{
    gate_open(file->disk);
    page_cache_destroy(&file->cache);
    ramdisk_destroy(file->disk);
    frames_free(virt_page(file->data), file->order);
    kfree(file);
}

void gated_file_write(struct gated_file *file, pgoff_t index, u64 version)
{
    rwsem_write_lock(&file->rwlock);
    fill_on_disk(file, index, version);
    struct page *page = page_cache_find(&file->cache, index);
    if (page) {
        page_lock(page); /* waits for a read */
        if (page_cache_owns(&file->cache, page, index)) {
            page_copy(page_virt(page), (char *)file->data + index * PAGE_SIZE);
            page_set(page, PAGE_UPTODATE);
        }
        page_unlock(page);
        page_put(page);
    }
    file->is_hole[index] = false;
    rwsem_write_unlock(&file->rwlock);
}

void gated_file_truncate(struct gated_file *file, u64 size_bytes)
{
    rwsem_write_lock(&file->rwlock);
    page_cache_truncate(&file->cache, size_bytes);
    rwsem_write_unlock(&file->rwlock);
}

void gated_file_punch(struct gated_file *file, pgoff_t first, pgoff_t last)
{
    rwsem_write_lock(&file->rwlock);
    rwsem_write_lock(&file->cache.invalidate_lock);
    page_cache_remove_range(&file->cache, first, last);
    for (pgoff_t i = first; i <= last; i++)
        file->is_hole[i] = true;
    rwsem_write_unlock(&file->cache.invalidate_lock);
    rwsem_write_unlock(&file->rwlock);
}

void gated_file_hold(struct gated_file *file, pgoff_t first, pgoff_t last)
{
    gate_hold(file->disk, gated_file_sector(first), gated_file_sector(last + 1) - 1, 0);
}

void gated_file_fail(struct gated_file *file, pgoff_t first, pgoff_t last)
{
    gate_fail(file->disk, gated_file_sector(first), gated_file_sector(last + 1) - 1, -EIO, 0);
}

u64 gated_file_requests(struct gated_file *file)
{
    struct block_stats stats;
    block_stats_get(file->disk, &stats);
    return stats.requests[0];
}
