/*
 * From pages and disk sectors to bios.
 */
#include "fs/page_read.h"

#include "kernel/log/trace.h"
#include "lib/errno.h"
#include "lib/string.h"

enum { PARTS_LEFT, PAGE_READ_ERROR }; /* what page->private_ holds meanwhile */

void page_reader_start(struct page_reader *r, struct block_device *device, u32 flags, u32 n_pages)
{
    *r = (struct page_reader){.device = device, .flags = flags, .pages_left = n_pages};
    block_plug_start(&r->plug);
}

void page_reader_begin(struct page_reader *r, struct page *page)
{
    (void)r;
    page->private_[PAGE_READ_ERROR] = 0;
    atomic_store(&page->private_[PARTS_LEFT], 1);
}

/* A file's last page is zero behind its end, whatever the disk has there. */
static void clear_past_end(struct page *page)
{
    u64 size = READ_ONCE(page->cache->size_bytes); /* the page is locked: it stays in its cache */
    u64 start = page->index * PAGE_SIZE;

    if (size >= start + PAGE_SIZE)
        return;
    size_t used = size > start ? size - start : 0;
    memset((char *)page_virt(page) + used, 0, PAGE_SIZE - used);
}

/* One part of the page is done. Any context. */
static void part_done(struct page *page, int error)
{
    if (error)
        atomic_store(&page->private_[PAGE_READ_ERROR], (u64)(s64)error);
    if (atomic_sub(&page->private_[PARTS_LEFT], 1) != 0)
        return;
    error = (int)atomic_load(&page->private_[PAGE_READ_ERROR]);
    page->private_[PAGE_READ_ERROR] = 0;
    if (!error)
        clear_past_end(page);
    page_read_done(page, error);
}

/* Interrupt context. */
static void bio_done(struct bio *bio, int error)
{
    for (u32 i = 0; i < bio->n_segments; i++)
        part_done(bio->segments[i].page, error);
    bio_free(bio);
}

/* Its pages are locked, so they stay in their cache. A hole among them is no segment. */
static inline void trace_bio(const struct bio *bio)
{
    const struct page *first = bio->segments[0].page;
    const struct page *last = bio->segments[bio->n_segments - 1].page;

    TRACE(file_read, .dev = trace_dev(first->cache->dev), .ino = first->cache->ino,
          .page = first->index, .pages = (u32)(last->index - first->index + 1),
          .sector = bio->sector);
}

static void push_bio(struct page_reader *r)
{
    if (!r->bio)
        return;
    trace_bio(r->bio);
    block_plug_add(&r->plug, r->bio);
    r->bio = NULL;
}

static bool start_bio(struct page_reader *r, u64 sector)
{
    u32 segments = MIN(MAX(r->pages_left, 1u), (u32)BIO_MAX_SEGMENTS);

    push_bio(r);
    r->bio = bio_alloc(r->device, segments);
    if (!r->bio)
        return false;
    r->bio->sector = r->next_sector = sector;
    r->bio->flags = r->flags;
    r->bio->done = bio_done;
    return true;
}

/* => whether it is in the bio. A piece that continues the last segment is no part of its own. */
static bool add_to_bio(struct page_reader *r, struct page *page, u32 offset, u32 bytes)
{
    u16 before = r->bio->n_segments;

    if (!bio_add(r->bio, page, offset, bytes))
        return false;
    if (r->bio->n_segments != before)
        atomic_add(&page->private_[PARTS_LEFT], 1);
    r->next_sector += bytes / SECTOR_SIZE;
    return true;
}

void page_reader_add(struct page_reader *r, struct page *page, u32 offset, u32 bytes, u64 sector)
{
    if (r->bio && r->next_sector == sector && add_to_bio(r, page, offset, bytes))
        return;
    if (!start_bio(r, sector) || !add_to_bio(r, page, offset, bytes))
        page->private_[PAGE_READ_ERROR] = (u64)-ENOMEM;
}

void page_reader_zero(struct page *page, u32 offset, u32 bytes)
{
    memset((char *)page_virt(page) + offset, 0, bytes);
}

void page_reader_end(struct page_reader *r, struct page *page, int error)
{
    if (r->pages_left)
        r->pages_left--;
    part_done(page, error);
}

void page_reader_submit(struct page_reader *r)
{
    push_bio(r);
    block_plug_finish(&r->plug);
}
