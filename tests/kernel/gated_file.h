/*
 * A file for tests: a page cache over a stretch of a RAM disk, that a test can truncate, extend, punch and write, with the
 * I/O gate in front of the disk. What a file system does for its files, in small.
 */
#ifndef TESTS_KERNEL_GATED_FILE_H
#define TESTS_KERNEL_GATED_FILE_H

#include "drivers/block/gate.h"
#include "mm/mapped_file.h"

#define GATED_FILE_MAX_PAGES 512

struct gated_file {
    struct mapped_file mapped;
    struct page_cache cache;
    struct rwsem rwlock; /* as inode->rwlock: write, truncate, punch exclusive */
    struct block_device *disk;
    void *data;
    unsigned order;
    u8 is_hole[GATED_FILE_MAX_PAGES];
    bool was_released; /* the last reference is gone */
};

/* Page i is filled with u64 words gated_file_word(i, 0). pages: at most GATED_FILE_MAX_PAGES. => NULL when out of memory */
struct gated_file *gated_file_create(u64 pages);
/* Nobody maps it and no read is in flight. Gives everything back. */
void gated_file_destroy(struct gated_file *file);

/* The low byte is the same in all of them, so that a store of one byte does not hide which page it went to. */
#define GATED_FILE_WORD(page, version) \
    (0x5eed000000000000ul + (version)*0x100000000ul + ((u64)(page) << 8))

static inline u64 gated_file_word(pgoff_t page, u64 version)
{
    return GATED_FILE_WORD(page, version);
}

/* As write(2): waits for a page that is being read, changes it in the cache and on the disk. */
void gated_file_write(struct gated_file *file, pgoff_t page, u64 version);
/* As ftruncate(2), both ways; what is grown shows what the disk holds there. */
void gated_file_truncate(struct gated_file *file, u64 size_bytes);
/* As fallocate(FALLOC_FL_PUNCH_HOLE) of whole pages. */
void gated_file_punch(struct gated_file *file, pgoff_t first, pgoff_t last);
/* Sectors of a page, for the gate. */
static inline u64 gated_file_sector(pgoff_t page)
{
    return page * SECTORS_PER_PAGE;
}
/* Holds, or fails, every read that touches the pages from now on. */
void gated_file_hold(struct gated_file *file, pgoff_t first, pgoff_t last);
void gated_file_fail(struct gated_file *file, pgoff_t first, pgoff_t last);
/* Disk requests so far. */
u64 gated_file_requests(struct gated_file *file);

#endif
