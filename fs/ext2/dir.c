/*
 * Directories: blocks of entries, searched one after the other (an index of dir_index lies in
 * blocks that look like unused entries, and is passed over).
 *
 * A position in a listing is the byte offset of an entry. It comes back from user space, so it is
 * believed only as far as the block: entries are walked from the block's beginning up to it.
 */
#include "fs/ext2/ext2.h"

#include "lib/errno.h"
#include "lib/string.h"

#define ENTRY_ALIGN     4u
#define MIN_ENTRY_BYTES 12u /* header and a name of one letter */

/* A block of a directory, pinned. */
struct dir_block {
    struct ext2_map map;
    struct page *page; /* NULL: none */
    const u8 *data;
    u64 number; /* which block of the directory */
};

static void dir_block_start(struct dir_block *block, struct inode *dir)
{
    *block = (struct dir_block){.page = NULL};
    ext2_map_start(&block->map, dir);
}

static void dir_block_end(struct dir_block *block)
{
    if (block->page)
        page_put(block->page);
    ext2_map_end(&block->map);
}

/* Pins another block of the directory. => 0, -EIO, -EUCLEAN, -ENOMEM */
static int dir_block_load(struct dir_block *block, u64 number)
{
    struct inode *dir = block->map.inode;
    struct page *page;
    void *data;
    u64 disk, n;
    int error = ext2_map_run(&block->map, number, 1, &disk, &n);

    if (!error && disk == 0)
        error = ext2_damage(ext2_fs_of(dir), "inode %lu: a directory with a hole", dir->ino);
    if (!error)
        error = ext2_read_block(ext2_fs_of(dir), disk, &page, &data);
    if (error)
        return error;
    if (block->page)
        page_put(block->page);
    block->page = page;
    block->data = data;
    block->number = number;
    return 0;
}

/* A name that no path can spell is found by no lookup, but a listing must not show it. */
static bool name_is_good(const struct ext2_disk_entry *entry)
{
    return !memchr(entry->name, '/', entry->name_len) &&
           !memchr(entry->name, '\0', entry->name_len);
}

/* What is wrong with the entry at this offset of the block; NULL: nothing. */
static const char *entry_fault(const struct ext2_fs *fs, const struct ext2_disk_entry *entry,
                               u32 offset)
{
    u32 left = ext2_block_bytes(fs) - offset;

    if (left < MIN_ENTRY_BYTES || entry->rec_len > left)
        return "crosses the end of its block";
    if (entry->rec_len < MIN_ENTRY_BYTES || entry->rec_len % ENTRY_ALIGN)
        return "has a bad length";
    if (sizeof(*entry) + entry->name_len > entry->rec_len)
        return "has a name longer than itself";
    if (entry->inode > fs->inodes_count)
        return "has an inode number out of range";
    if (entry->inode && entry->name_len == 0)
        return "has no name";
    return NULL;
}

/* The entry at an offset of the loaded block. => 0, -EUCLEAN */
static int get_entry(struct dir_block *block, u32 offset, const struct ext2_disk_entry **entry)
{
    struct inode *dir = block->map.inode;
    struct ext2_fs *fs = ext2_fs_of(dir);
    const char *fault;

    *entry = (const void *)(block->data + offset);
    fault = entry_fault(fs, *entry, offset);
    if (!fault)
        return 0;
    return ext2_damage(fs, "inode %lu: the directory entry at %lu %s", dir->ino,
                       (block->number << fs->block_shift) + offset, fault);
}

/* Searches the loaded block. => 0 with the inode number (0: not here), -EUCLEAN */
static int search_block(struct dir_block *block, const char *name, size_t len, u32 *ino)
{
    u32 block_bytes = ext2_block_bytes(ext2_fs_of(block->map.inode));
    const struct ext2_disk_entry *entry;

    *ino = 0;
    for (u32 offset = 0; offset < block_bytes; offset += entry->rec_len) {
        int error = get_entry(block, offset, &entry);

        if (error)
            return error;
        if (entry->inode && entry->name_len == len && memcmp(entry->name, name, len) == 0) {
            *ino = entry->inode;
            return 0;
        }
    }
    return 0;
}

static int ext2_lookup(struct inode *dir, const char *name, size_t len, struct inode **out)
{
    u64 n_blocks = dir->cache.size_bytes >> ext2_fs_of(dir)->block_shift;
    struct dir_block block;
    u32 ino = 0;
    int error = 0;

    dir_block_start(&block, dir);
    for (u64 i = 0; i < n_blocks && !error && !ino; i++) {
        error = dir_block_load(&block, i);
        if (!error)
            error = search_block(&block, name, len, &ino);
    }
    dir_block_end(&block);
    if (error)
        return error;
    return ino ? ext2_inode_get(ext2_fs_of(dir), ino, out) : -ENOENT;
}

static unsigned entry_type(const struct ext2_fs *fs, const struct ext2_disk_entry *entry)
{
    /* ext2's numbers, from "unknown" on */
    static const u32 modes[] = {0, S_IFREG, S_IFDIR, S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK, S_IFLNK};

    if (!fs->has_file_types || entry->file_type >= ARRAY_SIZE(modes))
        return 0;
    return DT_OF_MODE(modes[entry->file_type]);
}

/* Emits the entries of the loaded block from *pos on. => 0; 1: the reader is full; -EUCLEAN */
static int list_block(struct dir_block *block, u64 *pos, dir_emit emit, void *ctx)
{
    struct ext2_fs *fs = ext2_fs_of(block->map.inode);
    u64 start = block->number << fs->block_shift;
    const struct ext2_disk_entry *entry;

    for (u32 offset = 0; offset < ext2_block_bytes(fs); offset += entry->rec_len) {
        int error = get_entry(block, offset, &entry);
        u64 next;

        if (error)
            return error;
        if (start + offset < *pos)
            continue;
        next = start + offset + entry->rec_len;
        if (entry->inode && !name_is_good(entry))
            return ext2_damage(fs, "inode %lu: a name with a slash or a zero",
                               block->map.inode->ino);
        if (entry->inode &&
            emit(ctx, entry->name, entry->name_len, entry->inode, entry_type(fs, entry), next))
            return 1;
        *pos = next;
    }
    return 0;
}

static int ext2_iterate(struct inode *dir, u64 *pos, dir_emit emit, void *ctx)
{
    u32 shift = ext2_fs_of(dir)->block_shift;
    u64 n_blocks = dir->cache.size_bytes >> shift;
    struct dir_block block;
    int status = 0;

    dir_block_start(&block, dir);
    while (!status && *pos >> shift < n_blocks) {
        u64 number = *pos >> shift;

        status = dir_block_load(&block, number);
        if (!status)
            status = list_block(&block, pos, emit, ctx);
        if (!status)
            *pos = (number + 1) << shift; /* a position behind the last entry is none of ours */
    }
    dir_block_end(&block);
    return status < 0 ? status : 0;
}

const struct inode_ops ext2_dir_ops = {
    .lookup = ext2_lookup,
    .iterate = ext2_iterate,
    .evict = ext2_evict,
};
