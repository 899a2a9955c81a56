/*
 * Mounting ext2: the super block, field by field, and the features.
 *
 * Rules: a field that is used is checked first, against the others and against the size of the
 * device, so that later arithmetic on block and inode numbers can neither overflow nor leave the
 * disk. Everything is mounted read-only, so features that only forbid writing are let through.
 */
#include "fs/ext2/ext2.h"

#include "kernel/log/log.h"
#include "lib/errno.h"
#include "lib/format.h"
#include "lib/string.h"
#include "mm/core/slab.h"

#define DAMAGE_LINES_MAX  8
#define DAMAGE_TEXT_BYTES 160

#define SUPPORTED_INCOMPAT EXT2_INCOMPAT_FILETYPE
#define KNOWN_ROCOMPAT \
    (EXT2_ROCOMPAT_SPARSE_SUPER | EXT2_ROCOMPAT_LARGE_FILE | EXT2_ROCOMPAT_BTREE_DIR)

bool ext2_is_quiet;

int ext2_damage(struct ext2_fs *fs, const char *fmt, ...)
{
    char text[DAMAGE_TEXT_BYTES];
    u32 line = atomic_add(&fs->damage_lines, 1);
    va_list args;

    if (ext2_is_quiet || line > DAMAGE_LINES_MAX)
        return -EUCLEAN;
    va_start(args, fmt);
    format_v(text, sizeof(text), fmt, args);
    va_end(args);
    log_warn("ext2 on %s is damaged: %s%s", fs->device->name, text,
             line == DAMAGE_LINES_MAX ? " (further damage is not reported)" : "");
    return -EUCLEAN;
}

static const struct {
    u32 bit;
    const char *name;
} incompat_names[] = {
    {0x00001, "compression"}, {0x00002, "filetype"},    {0x00004, "needs_recovery"},
    {0x00008, "journal_dev"}, {0x00010, "meta_bg"},     {0x00040, "extent"},
    {0x00080, "64bit"},       {0x00100, "mmp"},         {0x00200, "flex_bg"},
    {0x00400, "ea_inode"},    {0x01000, "dirdata"},     {0x02000, "metadata_csum_seed"},
    {0x04000, "large_dir"},   {0x08000, "inline_data"}, {0x10000, "encrypt"},
    {0x20000, "casefold"},
};

static const char *incompat_name(u32 bit)
{
    for (size_t i = 0; i < ARRAY_SIZE(incompat_names); i++)
        if (incompat_names[i].bit == bit)
            return incompat_names[i].name;
    return "unknown";
}

static int check_features(struct ext2_fs *fs, const struct ext2_disk_super *disk)
{
    u32 unsupported = disk->incompatible & ~SUPPORTED_INCOMPAT;
    u32 unknown = disk->read_only_compatible & ~KNOWN_ROCOMPAT;

    for (u32 bit = 1; bit && !ext2_is_quiet; bit <<= 1)
        if (unsupported & bit)
            log_error("%s: the file system has the feature \"%s\" (incompatible %#x), which this "
                      "kernel does not know",
                      fs->device->name, incompat_name(bit), bit);
    if (unsupported)
        return -EOPNOTSUPP;
    if (unknown && !ext2_is_quiet)
        log_info("%s: features %#x forbid writing; mounted read-only", fs->device->name, unknown);
    fs->has_file_types = disk->incompatible & EXT2_INCOMPAT_FILETYPE;
    return 0;
}

static int check_revision(struct ext2_fs *fs, const struct ext2_disk_super *disk)
{
    if (disk->revision > EXT2_REV_DYNAMIC) {
        if (!ext2_is_quiet)
            log_error("%s: ext2 revision %u is not known", fs->device->name, disk->revision);
        return -EOPNOTSUPP;
    }
    fs->first_ino = EXT2_OLD_FIRST_INO;
    fs->inode_bytes = EXT2_OLD_INODE_BYTES;
    if (disk->revision == EXT2_REV_OLD)
        return 0;
    fs->first_ino = disk->first_ino;
    fs->inode_bytes = disk->inode_bytes;
    return check_features(fs, disk);
}

static int check_sizes(struct ext2_fs *fs, const struct ext2_disk_super *disk)
{
    u32 block_bytes;

    if (disk->log_block_size > EXT2_MAX_LOG_BLOCK) {
        if (!ext2_is_quiet)
            log_error("%s: blocks of 1024 << %u bytes are not supported (1, 2 and 4 KiB are)",
                      fs->device->name, disk->log_block_size);
        return -EOPNOTSUPP;
    }
    block_bytes = EXT2_MIN_BLOCK_BYTES << disk->log_block_size;
    fs->block_shift = __builtin_ctz(block_bytes);
    fs->pointer_shift = fs->block_shift - 2;
    fs->super.block_bytes = block_bytes;
    if (fs->inode_bytes < EXT2_OLD_INODE_BYTES || fs->inode_bytes > block_bytes ||
        (fs->inode_bytes & (fs->inode_bytes - 1)))
        return ext2_damage(fs, "inodes of %u bytes", fs->inode_bytes);
    u64 pointers = 1ul << fs->pointer_shift;

    fs->max_file_bytes =
        (EXT2_DIRECT_BLOCKS + pointers + pointers * pointers + pointers * pointers * pointers)
        << fs->block_shift;
    return 0;
}

static int check_blocks(struct ext2_fs *fs, const struct ext2_disk_super *disk)
{
    u64 device_blocks = fs->device->sectors >> (fs->block_shift - SECTOR_SHIFT);
    u32 bits = ext2_block_bytes(fs) * 8; /* in a bitmap block */

    fs->blocks_count = disk->blocks_count;
    fs->first_data_block = disk->first_data_block;
    fs->blocks_per_group = disk->blocks_per_group;
    if (fs->first_data_block != (disk->log_block_size == 0 ? 1u : 0u))
        return ext2_damage(fs, "the first data block is %u", fs->first_data_block);
    if (fs->blocks_count <= fs->first_data_block + 1)
        return ext2_damage(fs, "%u blocks in all", fs->blocks_count);
    if (fs->blocks_count > device_blocks)
        return ext2_damage(fs, "%u blocks on a device of %lu", fs->blocks_count, device_blocks);
    if (fs->blocks_per_group == 0 || fs->blocks_per_group > bits)
        return ext2_damage(fs, "%u blocks in a group", fs->blocks_per_group);
    fs->n_groups = DIV_ROUND_UP((u64)fs->blocks_count - fs->first_data_block, fs->blocks_per_group);
    return 0;
}

static int check_inodes(struct ext2_fs *fs, const struct ext2_disk_super *disk)
{
    u32 bits = ext2_block_bytes(fs) * 8;

    fs->inodes_count = disk->inodes_count;
    fs->inodes_per_group = disk->inodes_per_group;
    if (fs->inodes_per_group == 0 || fs->inodes_per_group > bits)
        return ext2_damage(fs, "%u inodes in a group", fs->inodes_per_group);
    if (fs->inodes_count != (u64)fs->inodes_per_group * fs->n_groups)
        return ext2_damage(fs, "%u inodes in %u groups of %u", fs->inodes_count, fs->n_groups,
                           fs->inodes_per_group);
    if (fs->first_ino < EXT2_OLD_FIRST_INO || fs->first_ino > fs->inodes_count)
        return ext2_damage(fs, "the first ordinary inode is %u", fs->first_ino);
    return 0;
}

/* The table of group descriptors follows the super block's block. */
static int check_groups(struct ext2_fs *fs)
{
    u64 bytes = (u64)fs->n_groups * sizeof(struct ext2_disk_group);
    u64 end = fs->first_data_block + 1 + DIV_ROUND_UP(bytes, ext2_block_bytes(fs));

    if (end > fs->blocks_count)
        return ext2_damage(fs, "descriptors of %u groups end behind the disk", fs->n_groups);
    return 0;
}

static int fill_from_disk(struct ext2_fs *fs, const struct ext2_disk_super *disk)
{
    int error;

    if (disk->magic != EXT2_SUPER_MAGIC)
        return -EINVAL;
    error = check_revision(fs, disk);
    if (!error)
        error = check_sizes(fs, disk);
    if (!error)
        error = check_blocks(fs, disk);
    if (!error)
        error = check_inodes(fs, disk);
    if (!error)
        error = check_groups(fs);
    fs->free_blocks = MIN(disk->free_blocks_count, disk->blocks_count);
    fs->free_inodes = MIN(disk->free_inodes_count, disk->inodes_count);
    return error;
}

static int read_super(struct ext2_fs *fs)
{
    struct page *page;
    int error = page_cache_get_page(fs->metadata, EXT2_SUPER_OFFSET / PAGE_SIZE, false, &page);

    if (error)
        return error == -ENXIO ? -EINVAL : error;
    if (fs->device->sectors * SECTOR_SIZE < EXT2_SUPER_OFFSET + sizeof(struct ext2_disk_super))
        error = -EINVAL;
    else
        error = fill_from_disk(fs, (void *)((u8 *)page_virt(page) + EXT2_SUPER_OFFSET));
    page_put(page);
    return error;
}

static int read_root(struct ext2_fs *fs)
{
    int error = ext2_inode_get(fs, EXT2_ROOT_INO, &fs->super.root);

    if (error || inode_is_dir(fs->super.root))
        return error;
    inode_put(fs->super.root);
    return ext2_damage(fs, "the root is no directory");
}

int ext2_read_block(struct ext2_fs *fs, u64 block, struct page **page, void **data)
{
    u64 at = block << fs->block_shift;
    int error;

    if (!ext2_block_is_valid(fs, block))
        return ext2_damage(fs, "block %lu of %u", block, fs->blocks_count);
    error = page_cache_get_page(fs->metadata, at / PAGE_SIZE, true, page);
    if (!error)
        *data = (u8 *)page_virt(*page) + at % PAGE_SIZE;
    return error == -ENXIO ? -EIO : error;
}

bool ext2_block_is_cached(struct ext2_fs *fs, u64 block)
{
    struct page *page = page_cache_find(fs->metadata, (block << fs->block_shift) / PAGE_SIZE);
    bool is_there = page && page_has(page, PAGE_UPTODATE);

    if (page)
        page_put(page);
    return is_there;
}

static void ext2_statfs(struct super_block *sb, u64 *blocks, u64 *free_blocks, u64 *files,
                        u64 *free_files)
{
    struct ext2_fs *fs = sb->fs_private;

    *blocks = fs->blocks_count;
    *free_blocks = fs->free_blocks;
    *files = fs->inodes_count;
    *free_files = fs->free_inodes;
}

int ext2_mount(struct block_device *device, struct super_block **out)
{
    struct inode *bdev = bdev_inode(device);
    struct ext2_fs *fs = kzalloc(sizeof(*fs));
    int error = -ENOMEM;

    if (!bdev || !fs)
        goto fail;
    fs->device = device;
    fs->metadata = &bdev->cache;
    fs->super = (struct super_block){.type = "ext2",
                                     .dev = device->dev,
                                     .is_read_only = true,
                                     .statfs = ext2_statfs,
                                     .fs_private = fs};
    error = read_super(fs);
    if (!error)
        error = read_root(fs);
    if (error)
        goto fail;
    if (!ext2_is_quiet)
        log_info("%s: ext2, %u blocks of %u bytes, %u inodes of %u bytes, read-only", device->name,
                 fs->blocks_count, ext2_block_bytes(fs), fs->inodes_count, fs->inode_bytes);
    *out = &fs->super;
    return 0;
fail:
    if (fs)
        inode_evict_super(&fs->super);
    kfree(fs);
    return error;
}

int ext2_unmount(struct super_block *super)
{
    struct ext2_fs *fs = super->fs_private;

    /* In use without us: the root, and that only by the super block. */
    if (inode_evict_super(super) != 1 || atomic_load(&super->root->refs) != 1)
        return -EBUSY;
    inode_put(super->root);
    inode_evict_super(super);
    bdev_forget(fs->device);
    kfree(fs);
    return 0;
}
