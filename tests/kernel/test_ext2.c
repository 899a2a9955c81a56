/*
 * Reading ext2: what a good image holds comes out, with no more disk requests than needed.
 */
#include "drivers/block/gate.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/slab.h"
#include "tests/kernel/ext2_image.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/test_mm.h"
#include "tests/kernel/threads.h"

#define PLAIN_BLOCK 4096
#define PLAIN_INODE 128

static bool mounted_image(struct ext2_image *image, u32 block_bytes, u32 inode_bytes)
{
    if (!image_create(image, block_bytes, inode_bytes))
        return false;
    if (KEXPECT_EQ(image_mount(image), 0))
        return true;
    image_destroy(image);
    return false;
}

static bool all_bytes_are(const u8 *buf, size_t len, u8 byte)
{
    for (size_t i = 0; i < len; i++)
        if (buf[i] != byte)
            return false;
    return true;
}

/* One byte of the file, or a negative error. */
static int byte_at(struct ext2_image *image, const char *path, u64 pos)
{
    u8 byte;
    ssize_t n = image_read(image, path, pos, &byte, 1);

    return n == 1 ? byte : n == 0 ? -ENXIO : (int)n;
}

static void expect_contents(u32 block_bytes, u32 inode_bytes)
{
    u64 p = block_bytes / 4, deep[] = {0, 12, 12 + p, 12 + p + p * p};
    struct ext2_image image;
    char text[64];

    KASSERT(mounted_image(&image, block_bytes, inode_bytes));
    KEXPECT_EQ(image_read(&image, "small.txt", 0, text, sizeof(text)), strlen(IMAGE_SMALL_TEXT));
    KEXPECT_EQ(memcmp(text, IMAGE_SMALL_TEXT, strlen(IMAGE_SMALL_TEXT)), 0);
    KEXPECT_EQ(image_read(&image, "dir/inner", 4, text, 5), 5);
    KEXPECT_EQ(memcmp(text, "inner", 5), 0);
    for (u32 i = 0; i < IMAGE_RUN_BLOCKS; i++)
        KEXPECT_EQ(byte_at(&image, "run", (u64)i * block_bytes + i), image_byte(i));
    for (u32 i = 0; i < ARRAY_SIZE(deep); i++) {
        KEXPECT_EQ(byte_at(&image, "deep", deep[i] * block_bytes + 7), image_byte(deep[i]));
        if (i > 0)
            KEXPECT_EQ(byte_at(&image, "deep", deep[i] * block_bytes - 1), 0);
    }
    image_destroy(&image);
}

KTEST(ext2, files_of_1_kib_blocks_and_128_byte_inodes)
{
    expect_contents(1024, 128);
}

KTEST(ext2, files_of_2_kib_blocks_and_256_byte_inodes)
{
    expect_contents(2048, 256);
}

KTEST(ext2, files_of_4_kib_blocks_and_256_byte_inodes)
{
    expect_contents(4096, 256);
}

static void expect_holes(u32 block_bytes)
{
    size_t size = 10 * block_bytes + 100;
    struct ext2_image image;
    u8 *buf = kmalloc(size);

    KASSERT(buf != NULL);
    if (mounted_image(&image, block_bytes, PLAIN_INODE)) {
        KEXPECT_EQ(image_read(&image, "holes", 0, buf, size), size);
        for (u32 i = 0; i < 10; i++)
            KEXPECT(all_bytes_are(buf + i * block_bytes, block_bytes,
                                  i == 1 || i == 9 ? image_byte(i) : 0));
        KEXPECT(all_bytes_are(buf + 10 * block_bytes, 100, image_byte(10)));
        image_destroy(&image);
    }
    kfree(buf);
}

KTEST(ext2, holes_read_as_zeros_between_data_of_small_blocks)
{
    expect_holes(1024);
}

KTEST(ext2, holes_read_as_zeros_between_data_of_whole_pages)
{
    expect_holes(4096);
}

KTEST(ext2, the_page_behind_the_end_of_a_file_is_zero_whatever_the_disk_has)
{
    static const u32 sizes[] = {1024, 4096};

    for (u32 i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct ext2_image image;
        struct inode *inode;
        struct page *page;
        u64 size = 10 * sizes[i] + 100;

        KASSERT(mounted_image(&image, sizes[i], PLAIN_INODE));
        if (KEXPECT_EQ(vfs_lookup(image.mounted->root, "/i", "holes", true, &inode, NULL), 0)) {
            pgoff_t last = size / PAGE_SIZE;

            if (KEXPECT_EQ(page_cache_get_page(&inode->cache, last, false, &page), 0)) {
                KEXPECT(all_bytes_are((u8 *)page_virt(page) + size % PAGE_SIZE,
                                      PAGE_SIZE - size % PAGE_SIZE, 0));
                page_put(page);
            }
            KEXPECT_EQ(page_cache_get_page(&inode->cache, last + 1, false, &page), -ENXIO);
            inode_put(inode);
        }
        image_destroy(&image);
    }
}

/* Inserts pages [first, first + n) and reads them by one call. */
static void read_window(struct inode *inode, pgoff_t first, unsigned n)
{
    struct page *pages[64];

    KASSERT(n <= ARRAY_SIZE(pages));
    for (unsigned i = 0; i < n; i++)
        KASSERT_EQ(page_cache_add_new(&inode->cache, first + i, &pages[i]), 0);
    rwsem_read_lock(&inode->cache.invalidate_lock);
    inode->cache.ops->read_pages(&inode->cache, pages, n, false);
    rwsem_read_unlock(&inode->cache.invalidate_lock);
    for (unsigned i = 0; i < n; i++) {
        bool slept;

        KEXPECT_EQ(page_wait_unlocked(pages[i], &slept), 0);
        page_put(pages[i]);
    }
}

struct requests {
    u64 data, data_pages, meta;
};

/* What reading a window of a file asks of the disk. */
static struct requests requests_for(struct ext2_image *image, const char *path, pgoff_t first,
                                    unsigned n)
{
    struct block_stats before, after;
    struct inode *inode;

    if (!KEXPECT_EQ(vfs_lookup(image->mounted->root, "/i", path, true, &inode, NULL), 0))
        return (struct requests){0};
    block_stats_get(image->device, &before);
    read_window(inode, first, n);
    block_stats_get(image->device, &after);
    inode_put(inode);
    return (struct requests){after.data_requests - before.data_requests,
                             after.data_pages - before.data_pages,
                             after.meta_requests - before.meta_requests};
}

KTEST(ext2, blocks_side_by_side_are_one_request_and_one_look_at_the_numbers)
{
    struct ext2_image image;
    struct requests r;

    KASSERT(mounted_image(&image, 4096, PLAIN_INODE));
    r = requests_for(&image, "run", 0, IMAGE_RUN_BLOCKS); /* the numbers lie behind block 11 */
    KEXPECT_EQ(r.data, 2);
    KEXPECT_EQ(r.data_pages, IMAGE_RUN_BLOCKS);
    KEXPECT_EQ(r.meta, 1);
    image_destroy(&image);
}

KTEST(ext2, small_blocks_side_by_side_are_one_request_too)
{
    struct ext2_image image;
    struct requests r;

    KASSERT(mounted_image(&image, 1024, PLAIN_INODE));
    r = requests_for(&image, "run", 0, IMAGE_RUN_BLOCKS / 4);
    KEXPECT_EQ(r.data, 2);
    KEXPECT(r.meta <= 1); /* the page with the numbers may have come with its neighbours */
    image_destroy(&image);
}

KTEST(ext2, a_hole_reads_no_data_and_only_the_numbers_above_it)
{
    struct ext2_image image;
    struct requests r;
    u64 p = 1024;

    KASSERT(mounted_image(&image, 4096, PLAIN_INODE));
    r = requests_for(&image, "deep", 1, 11); /* direct: in the inode */
    KEXPECT_EQ(r.data, 0);
    KEXPECT_EQ(r.meta, 0);
    r = requests_for(&image, "deep", 12 + 2 * p, 32); /* a zero in the upper block of numbers */
    KEXPECT_EQ(r.data, 0);
    KEXPECT_EQ(r.meta, 1);
    image_inode(&image, IMAGE_DEEP)->block[14] = 0; /* nothing in the whole triple tree */
    image_unmount(&image);
    KASSERT_EQ(image_mount(&image), 0);
    r = requests_for(&image, "deep", 12 + p + p * p - 16, 16);
    KEXPECT_EQ(r.data, 0);
    image_destroy(&image);
}

KTEST(ext2, pages_of_holes_say_so)
{
    struct ext2_image image;
    struct inode *inode;
    struct page *page;

    KASSERT(mounted_image(&image, 4096, PLAIN_INODE));
    if (KEXPECT_EQ(vfs_lookup(image.mounted->root, "/i", "holes", true, &inode, NULL), 0)) {
        if (KEXPECT_EQ(page_cache_get_page(&inode->cache, 0, false, &page), 0)) {
            KEXPECT(page_has(page, PAGE_HOLE));
            page_put(page);
        }
        if (KEXPECT_EQ(page_cache_get_page(&inode->cache, 1, false, &page), 0)) {
            KEXPECT(!page_has(page, PAGE_HOLE));
            page_put(page);
        }
        inode_put(inode);
    }
    image_destroy(&image);
}

KTEST(ext2, data_and_holes_are_found_by_seeking)
{
    u64 b = 1024, p = 256, triple = (12 + p + p * p) * b;
    struct ext2_image image;
    struct file *file;
    int error;

    KASSERT(mounted_image(&image, 1024, PLAIN_INODE));
    file = image_open(&image, "deep", O_RDONLY, &error);
    if (KEXPECT(file != NULL)) {
        KEXPECT_EQ(file_seek(file, 0, SEEK_DATA), 0);
        KEXPECT_EQ(file_seek(file, 5, SEEK_HOLE), b);
        KEXPECT_EQ(file_seek(file, b, SEEK_DATA), 12 * b);
        KEXPECT_EQ(file_seek(file, 13 * b + 3, SEEK_DATA), (12 + p) * b);
        KEXPECT_EQ(file_seek(file, (13 + p) * b, SEEK_DATA), triple);
        KEXPECT_EQ(file_seek(file, triple + 5, SEEK_DATA), triple + 5);
        KEXPECT_EQ(file_seek(file, triple + 5, SEEK_HOLE), triple + b); /* the end */
        KEXPECT_EQ(file_seek(file, triple + b, SEEK_DATA), -ENXIO);
        KEXPECT_EQ(file_seek(file, -1, SEEK_HOLE), -ENXIO);
        KEXPECT_EQ(file_seek(file, -100, SEEK_END), triple + b - 100);
        KEXPECT_EQ(file_seek(file, -100, SEEK_SET), -EINVAL);
        KEXPECT_EQ(file->pos, triple + b - 100);
        file_put(file);
    }
    image_destroy(&image);
}

KTEST(ext2, links_short_and_long_are_followed_and_a_loop_ends)
{
    struct ext2_image image;
    char text[32];

    KASSERT(mounted_image(&image, PLAIN_BLOCK, PLAIN_INODE));
    KEXPECT_EQ(image_read(&image, "short", 0, text, sizeof(text)), strlen(IMAGE_INNER_TEXT));
    KEXPECT_EQ(image_read(&image, "long", 0, text, sizeof(text)), strlen(IMAGE_SMALL_TEXT));
    KEXPECT_EQ(image_read(&image, "up", 0, text, sizeof(text)), strlen(IMAGE_SMALL_TEXT));
    KEXPECT_EQ(image_lookup(&image, "loop"), -ELOOP);
    KEXPECT_EQ(image_lookup(&image, "loop/x"), -ELOOP);
    image_destroy(&image);
}

struct listing {
    char text[512];
    size_t used;
    u32 left; /* entries taken before it says "full" */
};

static int list_entry_name(void *ctx, const char *name, size_t len, u64 ino, unsigned type,
                           u64 next_pos)
{
    struct listing *list = ctx;

    (void)next_pos;
    if (list->left == 0)
        return 1;
    list->left--;
    if (list->used + len + 8 < sizeof(list->text)) {
        memcpy(list->text + list->used, name, len);
        list->used += len;
        list->text[list->used++] = '0' + type % 10;
        list->text[list->used++] = ino ? ' ' : '!';
    }
    list->text[list->used] = '\0';
    return 0;
}

KTEST(ext2, a_directory_lists_every_used_entry_once_however_small_the_buffer)
{
    static const char expected[] = ".4 ..4 lost+found4 small.txt8 holes8 deep8 run8 dir4 short0 "
                                   "long0 loop0 up0 zero2 disk6 pipe1 ";
    struct ext2_image image;
    struct listing list = {.used = 0};
    struct file *file;
    int error;

    KASSERT(mounted_image(&image, 1024, PLAIN_INODE));
    file = image_open(&image, ".", O_RDONLY | O_DIRECTORY, &error);
    if (KEXPECT(file != NULL)) {
        for (u32 i = 0; i < 15; i++) {
            list.left = 1;
            KEXPECT_EQ(file_iterate(file, list_entry_name, &list), 0);
        }
        KEXPECT_STREQ(list.text, expected);
        list.left = 1;
        KEXPECT_EQ(file_iterate(file, list_entry_name, &list), 0);
        KEXPECT_EQ(list.left, 1);                    /* nothing more */
        KEXPECT_EQ(file_seek(file, 3, SEEK_SET), 3); /* in the middle of an entry */
        list = (struct listing){.left = 1};
        KEXPECT_EQ(file_iterate(file, list_entry_name, &list), 0);
        KEXPECT_STREQ(list.text, "..4 ");
        file_put(file);
    }
    image_destroy(&image);
}

KTEST(ext2, a_read_only_file_system_refuses_what_would_change_it)
{
    struct ext2_image image;
    int error;

    KASSERT(mounted_image(&image, PLAIN_BLOCK, PLAIN_INODE));
    KEXPECT(!image_open(&image, "small.txt", O_RDWR, &error));
    KEXPECT_EQ(error, -EROFS);
    KEXPECT(!image_open(&image, "small.txt", O_TRUNC, &error));
    KEXPECT_EQ(error, -EROFS);
    KEXPECT(!image_open(&image, "new", O_CREAT | O_WRONLY, &error));
    KEXPECT_EQ(error, -EROFS);
    KEXPECT(!image_open(&image, "new", O_RDONLY, &error));
    KEXPECT_EQ(error, -ENOENT);
    KEXPECT(!image_open(&image, "nowhere/new", O_CREAT | O_WRONLY, &error));
    KEXPECT_EQ(error, -ENOENT);
    KEXPECT(!image_open(&image, "small.txt", O_CREAT | O_EXCL, &error));
    KEXPECT_EQ(error, -EEXIST);
    KEXPECT(!image_open(&image, "dir", O_WRONLY, &error));
    KEXPECT_EQ(error, -EISDIR);
    KEXPECT(!image_open(&image, "small.txt", O_DIRECTORY, &error));
    KEXPECT_EQ(error, -ENOTDIR);
    KEXPECT(!image_open(&image, "short", O_NOFOLLOW, &error));
    KEXPECT_EQ(error, -ELOOP);
    KEXPECT(!image_open(&image, "pipe", O_WRONLY | O_NONBLOCK, &error)); /* nobody reads */
    KEXPECT_EQ(error, -ENXIO);
    KEXPECT(!image_open(&image, "disk", O_RDONLY, &error));
    KEXPECT_EQ(error, -ENXIO);
    image_destroy(&image);
}

KTEST(ext2, a_device_node_on_the_disk_is_the_device)
{
    struct ext2_image image;
    struct file *file;
    int error;

    KASSERT(mounted_image(&image, PLAIN_BLOCK, PLAIN_INODE));
    file = image_open(&image, "zero", O_RDWR, &error); /* (1,3): null */
    if (KEXPECT(file != NULL)) {
        KEXPECT_EQ(file_write(file, 0, 77, NULL), 77);
        KEXPECT_EQ(file_read(file, 0, 77, NULL), 0);
        file_put(file);
    }
    image_destroy(&image);
}

KTEST(ext2, a_bad_sector_costs_the_page_and_not_its_neighbours)
{
    struct ext2_image image;
    u8 byte;

    KASSERT(mounted_image(&image, 4096, PLAIN_INODE));
    u64 sector = (u64)image_inode(&image, IMAGE_RUN)->block[3] * SECTORS_PER_PAGE;

    KEXPECT_EQ(gate_fail(image.device, sector, sector, -EIO, 0), 0);
    KEXPECT_EQ(image_read(&image, "run", 3 * PAGE_SIZE, &byte, 1), -EIO);
    KEXPECT_EQ(byte_at(&image, "run", 2 * PAGE_SIZE), image_byte(2));
    KEXPECT_EQ(byte_at(&image, "run", 4 * PAGE_SIZE), image_byte(4));
    gate_open(image.device);
    KEXPECT_EQ(byte_at(&image, "run", 3 * PAGE_SIZE), image_byte(3)); /* not remembered */
    image_destroy(&image);
}

KTEST(ext2, one_bad_block_of_a_page_of_four_fails_the_page_once)
{
    struct ext2_image image;
    u8 byte;

    KASSERT(mounted_image(&image, 1024, PLAIN_INODE));
    u64 sector = (u64)image_inode(&image, IMAGE_HOLES)->block[1] * 2;

    KEXPECT_EQ(gate_fail(image.device, sector, sector, -EIO, 0), 0);
    KEXPECT_EQ(image_read(&image, "holes", 0, &byte, 1), -EIO);
    KEXPECT_EQ(byte_at(&image, "holes", 9 * 1024), image_byte(9));
    gate_open(image.device);
    KEXPECT_EQ(byte_at(&image, "holes", 1024), image_byte(1));
    image_destroy(&image);
}

KTEST(ext2, unreadable_block_numbers_are_asked_for_twice_and_not_for_each_page)
{
    struct block_stats before, after;
    struct ext2_image image;
    struct inode *inode;

    KASSERT(mounted_image(&image, 4096, PLAIN_INODE));
    u64 sector = (u64)image_inode(&image, IMAGE_RUN)->block[12] * SECTORS_PER_PAGE;

    KEXPECT_EQ(gate_fail(image.device, sector, sector, -EIO, 0), 0);
    if (KEXPECT_EQ(vfs_lookup(image.mounted->root, "/i", "run", true, &inode, NULL), 0)) {
        block_stats_get(image.device, &before);
        read_window(inode, 8, 24);
        block_stats_get(image.device, &after);
        KEXPECT_EQ(after.meta_requests - before.meta_requests, 2);
        KEXPECT_EQ(after.data_pages - before.data_pages, 4); /* blocks 8 to 11 are known */
        inode_put(inode);
    }
    gate_open(image.device);
    KEXPECT_EQ(byte_at(&image, "run", 20 * PAGE_SIZE), image_byte(20));
    image_destroy(&image);
}

KTEST(ext2, pages_stay_when_the_file_is_closed_and_go_when_the_cache_is_shrunk)
{
    struct block_stats before, after;
    struct ext2_image image;

    KASSERT(mounted_image(&image, 4096, PLAIN_INODE));
    KEXPECT_EQ(byte_at(&image, "run", 0), image_byte(0));
    block_stats_get(image.device, &before);
    KEXPECT_EQ(byte_at(&image, "run", 1), image_byte(0));
    block_stats_get(image.device, &after);
    KEXPECT_EQ(after.data_requests, before.data_requests);
    KEXPECT(inode_cache_shrink() > 0);
    KEXPECT_EQ(byte_at(&image, "run", 1), image_byte(0));
    block_stats_get(image.device, &after);
    KEXPECT(after.data_requests > before.data_requests);
    image_destroy(&image);
}

/* One byte of the open file, by a thread of its own; or a negative error. */
struct reader {
    struct file *file;
    u64 pos;
    int result;
};

static void read_byte(void *arg)
{
    struct reader *reader = arg;
    u8 byte;
    ssize_t n = file_read_all_kernel(reader->file, reader->pos, &byte, 1);

    reader->result = n == 1 ? byte : (int)n;
}

static void look_up(void *arg)
{
    struct reader *reader = arg;
    struct inode *inode;
    struct super_block *super = reader->file->inode->super;

    reader->result = vfs_lookup(super->root, "/", "dir/inner", true, &inode, NULL);
    if (!reader->result)
        inode_put(inode);
}

/* The thread waits for metadata, the disk does not answer, and a fatal signal ends the wait. */
static void expect_killed(struct ext2_image *image, struct reader *reader, void (*fn)(void *))
{
    struct test_threads threads = {0};
    struct task *task;

    page_cache_drop_range(&bdev_inode(image->device)->cache, 0, ~0ul - 1);
    gate_hold(image->device, 0, ~0ul, 0);
    task = threads_add_and_wait_asleep(&threads, fn, reader);
    if (KEXPECT(task != NULL)) {
        KEXPECT(gate_held(image->device) == 1);
        task_kill(task);
    }
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT(reader->result < 0);
    KEXPECT_EQ(gate_held(image->device), 1); /* before the disk has answered */
    gate_open(image->device);
    fn(reader); /* who is not killed gets it */
    KEXPECT(reader->result >= 0);
}

KTEST(ext2, a_fatal_signal_does_not_wait_for_metadata)
{
    struct ext2_image image;
    struct reader reader = {.pos = 12 * 4096};
    int error;

    KASSERT(mounted_image(&image, 4096, PLAIN_INODE));
    reader.file = image_open(&image, "deep", O_RDONLY, &error);
    if (KEXPECT(reader.file != NULL)) {
        expect_killed(&image, &reader, read_byte); /* a block of numbers */
        expect_killed(&image, &reader, look_up);   /* a directory, or an inode */
        file_put(reader.file);
    }
    image_destroy(&image);
}

KTEST(ext2, a_file_system_in_use_is_not_unmounted)
{
    struct ext2_image image;
    struct file *file;
    int error;

    KASSERT(mounted_image(&image, 4096, PLAIN_INODE));
    file = image_open(&image, "small.txt", O_RDONLY, &error);
    if (KEXPECT(file != NULL)) {
        KEXPECT_EQ(ext2_unmount(image.mounted), -EBUSY);
        file_put(file);
    }
    image_destroy(&image);
}

KTEST(ext2, mounting_reading_and_unmounting_leaves_no_frame_behind)
{
    struct ext2_image image;

    expect_contents(1024, 128); /* slabs that stay are made */
    u64 before = test_frames_settled();

    for (u32 i = 0; i < 3; i++) {
        KASSERT(mounted_image(&image, 1024, 128));
        for (u64 block = 0; block < IMAGE_RUN_BLOCKS; block++)
            byte_at(&image, "run", block * 1024);
        image_lookup(&image, "long");
        image_destroy(&image);
    }
    KEXPECT_EQ(test_frames_settled(), before);
}
