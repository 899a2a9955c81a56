/*
 * Within fs/ext2: a mounted file system, its inodes, and the map from file blocks to disk blocks.
 *
 *     super.c      mount: super block and its checks, features, group descriptors
 *     inode.c      from an inode number to an inode
 *     block_map.c  from file blocks to runs of disk blocks, holes
 *     read.c       page_cache_ops->read_pages, SEEK_DATA and SEEK_HOLE
 *     dir.c        lookup and listing
 *     symlink.c    targets
 *
 * Everything is read-only, so the map needs no lock. All metadata is read through the block
 * device's page cache.
 */
#ifndef FS_EXT2_EXT2_H
#define FS_EXT2_EXT2_H

#include "drivers/block/block.h"
#include "fs/ext2/disk.h"
#include "fs/vfs.h"

struct ext2_fs {
    struct super_block super;
    struct block_device *device;
    struct page_cache *metadata; /* the device's */
    u32 blocks_count;
    u32 first_data_block;
    u32 blocks_per_group;
    u32 inodes_per_group;
    u32 inodes_count;
    u32 first_ino;
    u32 inode_bytes;
    u32 n_groups;
    u32 block_shift;     /* log2 of the block size */
    u32 pointer_shift;   /* log2 of block numbers in a block */
    u64 max_file_bytes;  /* what direct to triple-indirect blocks reach */
    bool has_file_types; /* in directory entries */
    u32 damage_lines;    /* log lines about damage so far; changed atomically */
    u32 free_blocks, free_inodes;
};

/* inode->fs_private */
struct ext2_inode {
    u32 block[EXT2_BLOCK_SLOTS];
    bool is_inline_link; /* `block` holds the target */
};

static inline struct ext2_fs *ext2_fs_of(const struct inode *inode)
{
    return inode->super->fs_private;
}
static inline struct ext2_inode *ext2_inode_of(const struct inode *inode)
{
    return inode->fs_private;
}
static inline u32 ext2_block_bytes(const struct ext2_fs *fs)
{
    return 1u << fs->block_shift;
}
/* May a file's data or metadata be in this block? (Block 0 in a pointer is a hole.) */
static inline bool ext2_block_is_valid(const struct ext2_fs *fs, u64 block)
{
    return block > fs->first_data_block && block < fs->blocks_count;
}

/* One log line about damage (the first few of a mount, then silence). => -EUCLEAN */
int ext2_damage(struct ext2_fs *fs, const char *fmt, ...) PRINTF_LIKE(2, 3);
extern bool ext2_is_quiet; /* tests: no lines about bad images */

/*
 * Reads a block of metadata. => 0 with its page (page_put it) and its bytes, which stay valid as
 * long; -EIO, -ENOMEM; -EUCLEAN: no such block; -EINTR: a fatal signal is pending. Sleeps, killably.
 */
int ext2_read_block(struct ext2_fs *fs, u64 block, struct page **page, void **data);
/* Is that block in memory, so that reading it does not wait? A hint. Never sleeps. */
bool ext2_block_is_cached(struct ext2_fs *fs, u64 block);

/* => 0 and *out with a reference; -EUCLEAN (number or contents), -EOPNOTSUPP, -EIO, -ENOMEM.
 * Sleeps. */
int ext2_inode_get(struct ext2_fs *fs, u64 ino, struct inode **out);

/*
 * A walk through the map of one file, for rising block numbers: it keeps the last indirect block
 * pinned, so that its neighbours cost nothing.
 */
struct ext2_map {
    struct inode *inode;
    /* Called before a wait for the disk; NULL: nothing to do. */
    void (*before_wait)(void *ctx);
    void *ctx;
    /* The pinned block of numbers, which maps file blocks [first, first + numbers in a block): */
    struct page *page; /* NULL: none */
    const u32 *numbers;
    u64 first;
    u32 path[EXT2_MAX_DEPTH]; /* it and the blocks above it: no number may point back at them */
    u32 depth;
    /* What could not be read, so that its neighbours need not try again: */
    u64 bad_first, bad_end;
    int bad_error;
};
void ext2_map_start(struct ext2_map *map, struct inode *inode);
void ext2_map_end(struct ext2_map *map);
/*
 * The run of at most `max` file blocks from `block` on that lie side by side on the disk, or are
 * all hole. max > 0. A hole is as long as one look at the numbers shows: not more is read for it.
 * => 0, *disk the first disk block (0: a hole), *n at least 1; -EIO, -EUCLEAN, -ENOMEM. Sleeps.
 */
int ext2_map_run(struct ext2_map *map, u64 block, u64 max, u64 *disk, u64 *n);

extern const struct inode_ops ext2_file_ops, ext2_dir_ops, ext2_symlink_ops;
extern const struct inode_ops ext2_special_ops;
extern const struct page_cache_ops ext2_cache_ops;
void ext2_evict(struct inode *inode);

#endif
