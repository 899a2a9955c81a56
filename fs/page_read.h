/*
 * From pages and disk sectors to bios: what every page_cache_ops->read_pages of a file system on a
 * block device shares.
 *
 *     page_reader_start(&r, device, flags, n)
 *     for each page:  page_reader_begin(&r, page)
 *                         page_reader_add(&r, page, offset, bytes, sector)   for each piece on disk
 *                         page_reader_zero(page, offset, bytes)              for each hole
 *                     page_reader_end(&r, page, error)
 *     page_reader_submit(&r)
 *
 * Pieces that lie side by side on the disk go into one bio, and bios that do are merged. A page may
 * have several pieces: it is done when all of them are, with an error if any failed. Until the read
 * is done page->private_ belongs to this file: pieces outstanding (the reader's own part counts as
 * one until page_reader_end), and the error.
 */
#ifndef FS_PAGE_READ_H
#define FS_PAGE_READ_H

#include "drivers/block/block.h"
#include "mm/page_cache.h"

struct page_reader {
    struct block_device *device;
    u32 flags;       /* BIO_* */
    u32 pages_left;  /* a bio made now needs at most so many segments */
    struct bio *bio; /* being filled; NULL: none */
    u64 next_sector; /* behind it */
    struct block_plug plug;
};

void page_reader_start(struct page_reader *r, struct block_device *device, u32 flags, u32 n_pages);
/* The page is locked by its read, in a cache, not up to date. */
void page_reader_begin(struct page_reader *r, struct page *page);
/* offset and bytes: multiples of 512 within the page. Out of memory is kept as the page's error. */
void page_reader_add(struct page_reader *r, struct page *page, u32 offset, u32 bytes, u64 sector);
void page_reader_zero(struct page *page, u32 offset, u32 bytes);
/* The page may be done, and unlocked, from here on: its contents past the end of the file are
 * cleared first. */
void page_reader_end(struct page_reader *r, struct page *page, int error);
/* What was collected goes to the disk; r may be used further. May sleep for a free request. */
void page_reader_submit(struct page_reader *r);

#endif
