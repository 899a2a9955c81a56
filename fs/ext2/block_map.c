/*
 * The block map: file blocks to runs of disk blocks.
 *
 *     inode.block[0..11]   direct
 *     inode.block[12]      -> numbers                          p     file blocks (p numbers a
 * block) inode.block[13]      -> numbers -> numbers               p^2 inode.block[14]      ->
 * numbers -> numbers -> numbers    p^3
 *
 * A zero anywhere is a hole over everything below it, so a hole is found without reading what is
 * not there. The block of numbers at the bottom stays pinned while consecutive blocks are asked
 * for: each is read and looked up once for p blocks.
 *
 * Whatever the numbers say, the walk is at most three deep, so it ends; a number outside the file
 * system, or one of the blocks it was reached through, is damage.
 */
#include "fs/ext2/ext2.h"

#include "lib/errno.h"

void ext2_map_start(struct ext2_map *map, struct inode *inode)
{
    *map = (struct ext2_map){.inode = inode};
}

static void unpin(struct ext2_map *map)
{
    if (map->page)
        page_put(map->page);
    map->page = NULL;
}

void ext2_map_end(struct ext2_map *map)
{
    unpin(map);
}

/* Length of the run that starts at numbers[i]: of holes, or of consecutive disk blocks. */
static u64 run_length(const u32 *numbers, u64 i, u64 count, u64 max)
{
    u64 n = 1, end = MIN(max, count - i);
    u32 step = numbers[i] != 0;

    while (n < end && numbers[i + n] == numbers[i] + n * step)
        n++;
    return n;
}

/* One of the blocks of numbers that the walk came through? Then *n is cut before the next one. */
static bool is_on_path(const struct ext2_map *map, u64 block, u64 *n)
{
    for (u32 level = 0; level < map->depth; level++) {
        u64 above = map->path[level];

        if (above == block)
            return true;
        if (above > block)
            *n = MIN(*n, above - block);
    }
    return false;
}

/* The answer from a block's numbers (or the inode's direct ones), checked. */
static int answer(struct ext2_map *map, const u32 *numbers, u64 i, u64 count, u64 max, u64 *disk,
                  u64 *n)
{
    struct ext2_fs *fs = ext2_fs_of(map->inode);

    *disk = numbers[i];
    *n = run_length(numbers, i, count, max);
    if (*disk == 0)
        return 0;
    if (!ext2_block_is_valid(fs, *disk))
        return ext2_damage(fs, "inode %lu: block %lu of %u", map->inode->ino, *disk,
                           fs->blocks_count);
    *n = MIN(*n, fs->blocks_count - *disk); /* what is beyond is damage when it is asked for */
    if (is_on_path(map, *disk, n))
        return ext2_damage(fs, "inode %lu: block %lu is data and block numbers", map->inode->ino,
                           *disk);
    return 0;
}

/* Pins the block of numbers at `level` of the walk in the place of the one before. */
static int descend(struct ext2_map *map, u32 block, u32 level)
{
    struct ext2_fs *fs = ext2_fs_of(map->inode);
    struct page *page;
    void *data;
    u64 one = 1;
    int error;

    map->depth = level;
    if (is_on_path(map, block, &one))
        return ext2_damage(fs, "inode %lu: block %u of numbers leads to itself", map->inode->ino,
                           block);
    if (map->before_wait && ext2_block_is_valid(fs, block) && !ext2_block_is_cached(fs, block))
        map->before_wait(map->ctx);
    error = ext2_read_block(fs, block, &page, &data);
    if (error)
        return error;
    unpin(map);
    map->page = page;
    map->numbers = data;
    map->path[level] = block;
    map->depth = level + 1;
    return 0;
}

/*
 * Which tree an indirect block belongs to, its depth in blocks of numbers, and the number of the
 * file block within that tree.
 */
static u32 tree_of(const struct ext2_fs *fs, u64 block, u64 *within)
{
    *within = block - EXT2_DIRECT_BLOCKS;
    for (u32 depth = 1; depth <= EXT2_MAX_DEPTH; depth++) {
        u64 covers = 1ul << depth * fs->pointer_shift;

        if (*within < covers)
            return depth;
        *within -= covers;
    }
    return 0;
}

static int remember_bad(struct ext2_map *map, u64 first, u64 n, int error)
{
    unpin(map);
    map->bad_first = first;
    map->bad_end = first + n;
    map->bad_error = error;
    return error;
}

/* From the inode down to the block of numbers that has `block`, or to a hole above it. */
static int walk_tree(struct ext2_map *map, u64 block, u64 max, u64 *disk, u64 *n)
{
    struct ext2_fs *fs = ext2_fs_of(map->inode);
    u64 within, p_mask = (1ul << fs->pointer_shift) - 1;
    u32 depth = tree_of(fs, block, &within);
    u32 number;

    if (depth == 0)
        return ext2_damage(fs, "inode %lu: file block %lu", map->inode->ino, block);
    number = ext2_inode_of(map->inode)->block[EXT2_DIRECT_BLOCKS + depth - 1];
    for (u32 level = 0; level < depth; level++) {
        u64 covers = 1ul << (depth - level) * fs->pointer_shift; /* below this number */
        u64 offset = within & (covers - 1);
        int error;

        if (number == 0) {
            unpin(map); /* it is no bottom block */
            *disk = 0;
            *n = MIN(max, covers - offset);
            return 0;
        }
        error = descend(map, number, level);
        if (error)
            return remember_bad(map, block - offset, covers, error);
        map->first = block - (within & p_mask); /* what the lowest one covers */
        number = map->numbers[offset >> (depth - level - 1) * fs->pointer_shift];
    }
    return answer(map, map->numbers, within & p_mask, p_mask + 1, max, disk, n);
}

int ext2_map_run(struct ext2_map *map, u64 block, u64 max, u64 *disk, u64 *n)
{
    struct ext2_fs *fs = ext2_fs_of(map->inode);
    u64 pointers = 1ul << fs->pointer_shift;

    if (block < EXT2_DIRECT_BLOCKS) {
        map->depth = 0;
        unpin(map);
        return answer(map, ext2_inode_of(map->inode)->block, block, EXT2_DIRECT_BLOCKS, max, disk,
                      n);
    }
    if (block >= map->bad_first && block < map->bad_end)
        return map->bad_error;
    if (map->page && block >= map->first && block - map->first < pointers)
        return answer(map, map->numbers, block - map->first, pointers, max, disk, n);
    return walk_tree(map, block, max, disk, n);
}
