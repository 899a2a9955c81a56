/*
 * Symbolic links: a short target lies where the inode's block numbers would, a long one in one
 * block.
 */
#include "fs/ext2/ext2.h"

#include "lib/errno.h"
#include "lib/string.h"

static int copy_long_target(struct inode *inode, char *buf, size_t len)
{
    struct ext2_fs *fs = ext2_fs_of(inode);
    struct page *page;
    void *data;
    int error = ext2_read_block(fs, ext2_inode_of(inode)->block[0], &page, &data);

    if (error)
        return error;
    memcpy(buf, data, len);
    page_put(page);
    return 0;
}

static ssize_t ext2_readlink(struct inode *inode, char *buf, size_t size)
{
    struct ext2_inode *ext2 = ext2_inode_of(inode);
    size_t len = MIN(inode->cache.size_bytes, size); /* checked when the inode was read */
    int error = 0;

    if (ext2->is_inline_link)
        memcpy(buf, ext2->block, len);
    else
        error = copy_long_target(inode, buf, len);
    if (!error && memchr(buf, '\0', len))
        error = ext2_damage(ext2_fs_of(inode), "inode %lu: a link with a zero in it", inode->ino);
    return error ? error : (ssize_t)len;
}

const struct inode_ops ext2_symlink_ops = {
    .readlink = ext2_readlink,
    .evict = ext2_evict,
};
