/*
 * From an inode number to an inode: where it lies in its group's table, and what in it can be
 * believed.
 */
#include "fs/ext2/ext2.h"

#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"

#define LINK_MAX_BYTES 4095u /* a path without its NUL */

void ext2_evict(struct inode *inode)
{
    kfree(inode->fs_private);
}

const struct inode_ops ext2_special_ops = {.evict = ext2_evict};

/* The first block of the group's part of the inode table. => 0 or error */
static int inode_table_of(struct ext2_fs *fs, u32 group, u64 *table)
{
    u32 per_block = ext2_block_bytes(fs) / sizeof(struct ext2_disk_group);
    u64 table_blocks =
        DIV_ROUND_UP((u64)fs->inodes_per_group * fs->inode_bytes, ext2_block_bytes(fs));
    const struct ext2_disk_group *groups;
    struct page *page;
    void *data;
    int error = ext2_read_block(fs, fs->first_data_block + 1 + group / per_block, &page, &data);

    if (error)
        return error;
    groups = data;
    *table = groups[group % per_block].inode_table;
    page_put(page);
    if (!ext2_block_is_valid(fs, *table) || !ext2_block_is_valid(fs, *table + table_blocks - 1))
        return ext2_damage(fs, "the inode table of group %u is at block %lu", group, *table);
    return 0;
}

static int read_disk_inode(struct ext2_fs *fs, u64 ino, struct ext2_disk_inode *disk)
{
    u64 in_group = (ino - 1) % fs->inodes_per_group, table, at;
    struct page *page;
    void *data;
    int error = inode_table_of(fs, (ino - 1) / fs->inodes_per_group, &table);

    if (error)
        return error;
    at = in_group * fs->inode_bytes;
    error = ext2_read_block(fs, table + (at >> fs->block_shift), &page, &data);
    if (error)
        return error;
    memcpy(disk, (u8 *)data + at % ext2_block_bytes(fs), sizeof(*disk));
    page_put(page);
    return 0;
}

static int check_regular(struct ext2_fs *fs, struct inode *inode,
                         const struct ext2_disk_inode *disk)
{
    (void)disk;
    if (inode->cache.size_bytes > fs->max_file_bytes)
        return ext2_damage(fs, "inode %lu: a file of %lu bytes", inode->ino,
                           inode->cache.size_bytes);
    return 0;
}

static int check_directory(struct ext2_fs *fs, struct inode *inode,
                           const struct ext2_disk_inode *disk)
{
    u64 size = inode->cache.size_bytes;

    (void)disk;
    if (size == 0 || size % ext2_block_bytes(fs) || size >> fs->block_shift > fs->blocks_count)
        return ext2_damage(fs, "inode %lu: a directory of %lu bytes", inode->ino, size);
    return 0;
}

/* A target of less than 60 bytes lies in the inode, which then has no block for it. */
static int check_symlink(struct ext2_fs *fs, struct inode *inode,
                         const struct ext2_disk_inode *disk)
{
    u32 attribute_sectors = disk->file_acl ? ext2_block_bytes(fs) / SECTOR_SIZE : 0;
    u64 size = inode->cache.size_bytes;
    bool is_inline = disk->blocks_512 == attribute_sectors;
    u64 limit = is_inline ? sizeof(disk->block) - 1 : MIN(LINK_MAX_BYTES, ext2_block_bytes(fs) - 1);

    ext2_inode_of(inode)->is_inline_link = is_inline;
    if (size == 0 || size > limit)
        return ext2_damage(fs, "inode %lu: a link of %lu bytes", inode->ino, size);
    return 0;
}

static int check_special(struct ext2_fs *fs, struct inode *inode,
                         const struct ext2_disk_inode *disk)
{
    (void)fs;
    /* The device number: the old form in the first word, or the new one in the second. */
    u32 old = disk->block[0], new = disk->block[1];

    inode->rdev = old ? old & 0xffff : (new & 0xfff00) | (new & 0xff);
    inode->cache.size_bytes = 0;
    return 0;
}

static const struct ext2_type {
    u32 type;
    const struct inode_ops *ops;
    int (*check)(struct ext2_fs *fs, struct inode *inode, const struct ext2_disk_inode *disk);
} types[] = {
    {S_IFREG, &ext2_file_ops, check_regular},     {S_IFDIR, &ext2_dir_ops, check_directory},
    {S_IFLNK, &ext2_symlink_ops, check_symlink},  {S_IFCHR, &ext2_special_ops, check_special},
    {S_IFBLK, &ext2_special_ops, check_special},  {S_IFIFO, &ext2_special_ops, check_special},
    {S_IFSOCK, &ext2_special_ops, check_special},
};

static const struct ext2_type *type_of(u32 mode)
{
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (types[i].type == (mode & S_IFMT))
            return &types[i];
    return NULL;
}

static void copy_fields(struct inode *inode, const struct ext2_disk_inode *disk)
{
    inode->mode = disk->mode;
    inode->uid = disk->uid | (u32)disk->uid_high << 16;
    inode->gid = disk->gid | (u32)disk->gid_high << 16;
    inode->nlink = disk->links_count;
    inode->blocks_512 = disk->blocks_512;
    inode->atime = (s32)disk->atime;
    inode->mtime = (s32)disk->mtime;
    inode->ctime = (s32)disk->ctime;
    inode->cache.size_bytes = disk->size;
    if (inode_is(inode, S_IFREG))
        inode->cache.size_bytes |= (u64)disk->size_high << 32;
    memcpy(ext2_inode_of(inode)->block, disk->block, sizeof(disk->block));
}

static void set_cache(struct ext2_fs *fs, struct inode *inode)
{
    inode->cache.ops = &ext2_cache_ops;
    inode->cache.max_request_pages = fs->device->max_request_pages;
    inode->cache.read_ahead_kb = &fs->device->read_ahead_kb;
}

static int fill(struct ext2_fs *fs, struct inode *inode, const struct ext2_disk_inode *disk)
{
    const struct ext2_type *type = type_of(disk->mode);

    if (!type)
        return ext2_damage(fs, "inode %lu: mode %#o", inode->ino, disk->mode);
    if (disk->links_count == 0)
        return ext2_damage(fs, "inode %lu is named but not in use", inode->ino);
    if (disk->flags & (EXT2_FLAG_EXTENTS | EXT2_FLAG_INLINE_DATA | EXT2_FLAG_ENCRYPTED)) {
        ext2_damage(fs, "inode %lu: a layout of ext4 (flags %#x)", inode->ino, disk->flags);
        return -EOPNOTSUPP;
    }
    inode->fs_private = kzalloc(sizeof(struct ext2_inode));
    if (!inode->fs_private)
        return -ENOMEM;
    inode->ops = &ext2_special_ops; /* gives fs_private back, should the check fail */
    copy_fields(inode, disk);
    set_cache(fs, inode);
    int error = type->check(fs, inode, disk);

    if (!error)
        inode->ops = type->ops;
    return error;
}

int ext2_inode_get(struct ext2_fs *fs, u64 ino, struct inode **out)
{
    struct ext2_disk_inode disk;
    struct inode *inode;
    bool is_new;
    int error;

    if (ino == 0 || ino > fs->inodes_count || (ino < fs->first_ino && ino != EXT2_ROOT_INO))
        return ext2_damage(fs, "inode %lu is named", ino);
    inode = inode_get(&fs->super, ino, &is_new);
    if (!inode)
        return -ENOMEM;
    if (is_new) {
        error = read_disk_inode(fs, ino, &disk);
        if (!error)
            error = fill(fs, inode, &disk);
        if (error) {
            inode_failed(inode);
            return error;
        }
        inode_ready(inode);
    }
    *out = inode;
    return 0;
}
