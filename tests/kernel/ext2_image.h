/*
 * A small ext2 image made in memory, for tests to mount and to damage.
 *
 * One group, written from the layout in fs/ext2/disk.h. What is in it:
 *
 *     small.txt      IMAGE_SMALL_TEXT
 *     holes          10 blocks and 100 bytes: data in blocks 1 and 9 and in the tail, the rest hole
 *     deep           data at the first block of each tree (direct to triple indirect), else hole
 *     run            40 blocks side by side (but for the indirect block), data
 *     dir/inner      IMAGE_INNER_TEXT
 *     short          link to dir/inner
 *     long           link of more than 60 bytes to small.txt
 *     loop           link to loop
 *     up             link to dir/../small.txt
 *     zero, disk, pipe   device nodes (1,3), (1,200) and a FIFO
 *
 * A data block is filled with the byte image_byte(block of the file). Behind the end of a file its
 * last block is filled with garbage.
 */
#ifndef TESTS_KERNEL_EXT2_IMAGE_H
#define TESTS_KERNEL_EXT2_IMAGE_H

#include "fs/ext2/ext2.h"

#define IMAGE_SMALL_TEXT  "hello from ext2\n"
#define IMAGE_INNER_TEXT  "the inner file\n"
#define IMAGE_LONG_TARGET "./dir/.././dir/.././dir/.././dir/.././dir/.././dir/.././dir/../small.txt"
#define IMAGE_RUN_BLOCKS  40

enum image_ino {
    IMAGE_LOST = 11, /* an empty directory */
    IMAGE_SMALL,
    IMAGE_HOLES,
    IMAGE_DEEP,
    IMAGE_RUN,
    IMAGE_DIR,
    IMAGE_INNER,
    IMAGE_SHORT,
    IMAGE_LONG,
    IMAGE_LOOP,
    IMAGE_UP,
    IMAGE_ZERO,
    IMAGE_DISK,
    IMAGE_PIPE,
    IMAGE_INODES = 32 /* in all */
};

struct ext2_image {
    u8 *data;
    size_t bytes;
    u32 block_bytes, inode_bytes;
    u32 table_block; /* inode table */
    u32 next_block;  /* the first free one */
    struct ext2_disk_super *super;
    struct ext2_disk_group *group;
    struct block_device *device; /* NULL: not mounted before */
    struct super_block *mounted; /* NULL: not mounted */
};

static inline u8 image_byte(u64 file_block)
{
    return (u8)(file_block * 37 + 11);
}

/* => whether it was made (else a failed expectation). Not on a disk yet. */
bool image_create(struct ext2_image *image, u32 block_bytes, u32 inode_bytes);
void image_destroy(struct ext2_image *image); /* unmounts first */
/* Puts it on a RAM disk, the first time, and mounts that. => ext2_mount's result */
int image_mount(struct ext2_image *image);
void image_unmount(
    struct ext2_image *image); /* what the disk holds is read anew by the next mount */

struct ext2_disk_inode *image_inode(struct ext2_image *image, u32 ino);
void *image_block(struct ext2_image *image, u32 block);
u32 image_new_block(struct ext2_image *image);
/* The entry of this name in the (one block) directory. NULL: none */
struct ext2_disk_entry *image_entry(struct ext2_image *image, u32 dir, const char *name);

/* The file on the mounted image. => NULL and the error */
struct file *image_open(struct ext2_image *image, const char *path, u32 flags, int *error);
/* => bytes read into the kernel's buffer, or the error of opening or reading */
ssize_t image_read(struct ext2_image *image, const char *path, u64 pos, void *buf, size_t len);
/* => 0 or the error of looking it up */
int image_lookup(struct ext2_image *image, const char *path);

#endif
