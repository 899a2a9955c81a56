/*
 * Reading file pages: the pages of a window are mapped to disk blocks run by run and collected into
 * bios. What is collected is submitted before the walk has to wait for a block of numbers: the disk
 * works on the data before it while the numbers come.
 */
#include "fs/ext2/ext2.h"
#include "fs/page_read.h"

#include "lib/errno.h"

static void submit_before_wait(void *ctx)
{
    page_reader_submit(ctx);
}

/* Adds one page, whose blocks may lie apart, be holes, or be past the end of the file. */
static int add_page(struct page_reader *reader, struct ext2_map *map, struct page *page)
{
    struct ext2_fs *fs = ext2_fs_of(map->inode);
    u32 shift = fs->block_shift, offset = 0;
    u64 block = page->index << (PAGE_SHIFT - shift);
    u64 file_blocks = DIV_ROUND_UP(READ_ONCE(map->inode->cache.size_bytes), 1ul << shift);
    u64 end = MIN(block + (PAGE_SIZE >> shift), file_blocks);
    bool is_hole = true;

    while (block < end) {
        u64 disk, n;
        int error = ext2_map_run(map, block, end - block, &disk, &n);

        if (error)
            return error;
        if (disk)
            page_reader_add(reader, page, offset, n << shift, disk << (shift - SECTOR_SHIFT));
        else
            page_reader_zero(page, offset, n << shift);
        is_hole = is_hole && !disk;
        offset += n << shift;
        block += n;
    }
    if (is_hole)
        page_set(page, PAGE_HOLE);
    return 0; /* the rest of a last page is cleared when its read is done */
}

static void ext2_read_pages(struct page_cache *cache, struct page **pages, unsigned n,
                            bool readahead)
{
    struct inode *inode = cache->owner;
    struct page_reader reader;
    struct ext2_map map;

    page_reader_start(&reader, ext2_fs_of(inode)->device,
                      BIO_READ | (readahead ? BIO_READAHEAD : 0), n);
    ext2_map_start(&map, inode);
    map.before_wait = submit_before_wait;
    map.ctx = &reader;
    for (unsigned i = 0; i < n; i++) {
        page_reader_begin(&reader, pages[i]);
        page_reader_end(&reader, pages[i], add_page(&reader, &map, pages[i]));
    }
    page_reader_submit(&reader);
    ext2_map_end(&map);
}

const struct page_cache_ops ext2_cache_ops = {.read_pages = ext2_read_pages};

static s64 ext2_seek_data(struct inode *inode, u64 pos, bool want_hole)
{
    u32 shift = ext2_fs_of(inode)->block_shift;
    u64 size = READ_ONCE(inode->cache.size_bytes);
    u64 block = pos >> shift, end = DIV_ROUND_UP(size, 1ul << shift);
    s64 found = want_hole ? (s64)size : -ENXIO;
    struct ext2_map map;

    ext2_map_start(&map, inode);
    while (block < end) {
        u64 disk, n;
        int error = ext2_map_run(&map, block, end - block, &disk, &n);

        if (!error && task_kill_is_pending(task_current()))
            error = -EINTR;
        if (error || (disk == 0) == want_hole) {
            found = error ? error : (s64)MAX(pos, block << shift);
            break;
        }
        block += n;
    }
    ext2_map_end(&map);
    return found;
}

const struct inode_ops ext2_file_ops = {
    .seek_data = ext2_seek_data,
    .evict = ext2_evict,
};
