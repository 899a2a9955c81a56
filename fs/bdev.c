/*
 * Block devices as files: one inode for each, whose page cache holds the device's blocks. File
 * systems read their metadata through it (there is no other buffer cache), and /dev/NAME shows it.
 *
 * device->upper is the inode; it is made on first use under bdev_lock and stays.
 */
#include "fs/page_read.h"
#include "fs/vfs.h"

#include "lib/errno.h"
#include "mm/file_read.h"

static SLEEP_LOCK_CLASS(bdev_lock_class, "block device inodes");
static struct mutex bdev_lock = MUTEX_INIT(bdev_lock, &bdev_lock_class);

/* Straight: page n is sectors 8n to 8n + 7. */
static void bdev_read_pages(struct page_cache *cache, struct page **pages, unsigned n,
                            bool readahead)
{
    struct block_device *device = ((struct inode *)cache->owner)->fs_private;
    struct page_reader reader;

    page_reader_start(&reader, device, BIO_META | (readahead ? BIO_READAHEAD : 0), n);
    for (unsigned i = 0; i < n; i++) {
        struct page *page = pages[i];
        u64 sector = page->index * SECTORS_PER_PAGE;
        u64 left = sector < device->sectors ? device->sectors - sector : 0;

        page_reader_begin(&reader, page);
        if (left)
            page_reader_add(&reader, page, 0, MIN(left, SECTORS_PER_PAGE) * SECTOR_SIZE, sector);
        page_reader_end(&reader, page, 0);
    }
    page_reader_submit(&reader);
}

static const struct page_cache_ops bdev_cache_ops = {.read_pages = bdev_read_pages};

static struct inode *bdev_inode_create(struct block_device *device)
{
    struct inode *inode = inode_new_meta(S_IFBLK | 0600);

    if (!inode)
        return NULL;
    inode->ino = inode->cache.ino = device->dev;
    inode->rdev = device->dev;
    inode->fs_private = device;
    inode->cache.ops = &bdev_cache_ops;
    inode->cache.size_bytes = device->sectors * SECTOR_SIZE;
    inode->cache.max_request_pages = device->max_request_pages;
    inode->cache.read_ahead_kb = &device->read_ahead_kb;
    return inode;
}

struct inode *bdev_inode(struct block_device *device)
{
    struct inode *inode = atomic_load(&device->upper);

    if (inode)
        return inode;
    mutex_lock(&bdev_lock);
    if (!device->upper)
        atomic_store(&device->upper, bdev_inode_create(device));
    inode = device->upper;
    mutex_unlock(&bdev_lock);
    return inode;
}

void bdev_forget(struct block_device *device)
{
    struct inode *inode;

    mutex_lock(&bdev_lock);
    inode = device->upper;
    atomic_store(&device->upper, NULL);
    mutex_unlock(&bdev_lock);
    if (inode)
        inode_put(inode);
}

/* The node in /dev says which device; what is read and mapped is the device's own cache. */
static int block_open(struct inode *inode, struct file *file)
{
    struct block_device *device = block_device_find_dev(inode->rdev);
    struct inode *bdev = device ? bdev_inode(device) : NULL;

    if (!device)
        return -ENXIO;
    if (!bdev)
        return -ENOMEM;
    if (file->mapped.can_write)
        return -EROFS;
    file->mapped.cache = &bdev->cache;
    return 0;
}

static ssize_t block_read(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    ssize_t done = file_read_user(&file->mapped, *pos, user_buf, len);

    if (done > 0)
        *pos += done;
    return done;
}

/* Nobody writes to a disk here: to say so at open, there must be something to refuse. */
static ssize_t block_write(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    (void)file, (void)user_buf, (void)len, (void)pos;
    return -EROFS;
}

const struct file_ops file_ops_block = {
    .open = block_open,
    .read = block_read,
    .write = block_write,
    .is_seekable = true,
    .can_map = true,
};
