/*
 * What ext2 looks like on the disk (The Second Extended File System: super block, block group
 * descriptor table, inode table, directory entries). All numbers are little-endian, as the CPU is.
 * Nothing here can be believed before it is checked.
 */
#ifndef FS_EXT2_DISK_H
#define FS_EXT2_DISK_H

#include "lib/types.h"

#define EXT2_SUPER_OFFSET    1024u
#define EXT2_SUPER_MAGIC     0xef53u
#define EXT2_MIN_BLOCK_BYTES 1024u
#define EXT2_MAX_LOG_BLOCK   2u /* 4 KiB: a block never crosses a page */

#define EXT2_REV_OLD     0u /* 128-byte inodes, no features */
#define EXT2_REV_DYNAMIC 1u

#define EXT2_ROOT_INO        2u
#define EXT2_OLD_FIRST_INO   11u
#define EXT2_OLD_INODE_BYTES 128u

#define EXT2_INCOMPAT_FILETYPE     0x0002u
#define EXT2_ROCOMPAT_SPARSE_SUPER 0x0001u
#define EXT2_ROCOMPAT_LARGE_FILE   0x0002u
#define EXT2_ROCOMPAT_BTREE_DIR    0x0004u

struct ext2_disk_super {
    u32 inodes_count;
    u32 blocks_count;
    u32 reserved_blocks_count;
    u32 free_blocks_count;
    u32 free_inodes_count;
    u32 first_data_block; /* block that holds the super block: 1 with 1 KiB blocks, else 0 */
    u32 log_block_size;   /* block size is 1024 << this */
    u32 log_fragment_size;
    u32 blocks_per_group;
    u32 fragments_per_group;
    u32 inodes_per_group;
    u32 mount_time;
    u32 write_time;
    u16 mount_count;
    u16 max_mount_count;
    u16 magic;
    u16 state;
    u16 errors;
    u16 minor_revision;
    u32 last_check;
    u32 check_interval;
    u32 creator_os;
    u32 revision;
    u16 default_reserved_uid;
    u16 default_reserved_gid;
    /* EXT2_REV_DYNAMIC from here on */
    u32 first_ino;
    u16 inode_bytes;
    u16 block_group;
    u32 compatible;
    u32 incompatible;
    u32 read_only_compatible;
    u8 uuid[16];
    char volume_name[16];
    char last_mounted[64];
    u8 rest[824];
};
_Static_assert(sizeof(struct ext2_disk_super) == 1024, "super block");
_Static_assert(offsetof(struct ext2_disk_super, magic) == 56, "magic");
_Static_assert(offsetof(struct ext2_disk_super, first_ino) == 84, "first_ino");
_Static_assert(offsetof(struct ext2_disk_super, incompatible) == 96, "features");

struct ext2_disk_group {
    u32 block_bitmap;
    u32 inode_bitmap;
    u32 inode_table; /* first block */
    u16 free_blocks_count;
    u16 free_inodes_count;
    u16 used_dirs_count;
    u16 padding;
    u8 reserved[12];
};
_Static_assert(sizeof(struct ext2_disk_group) == 32, "group descriptor");

#define EXT2_DIRECT_BLOCKS 12u
#define EXT2_BLOCK_SLOTS   15u /* direct, single, double, triple */
#define EXT2_MAX_DEPTH     3u

struct ext2_disk_inode {
    u16 mode;
    u16 uid;
    u32 size;
    u32 atime;
    u32 ctime;
    u32 mtime;
    u32 dtime;
    u16 gid;
    u16 links_count;
    u32 blocks_512;
    u32 flags;
    u32 os_specific_1;
    u32 block[EXT2_BLOCK_SLOTS]; /* or the target of a short symbolic link */
    u32 generation;
    u32 file_acl;  /* block with extended attributes, counted in blocks_512 */
    u32 size_high; /* regular files */
    u32 fragment_address;
    u8 fragment;
    u8 fragment_size;
    u16 padding;
    u16 uid_high;
    u16 gid_high;
    u32 reserved;
};
_Static_assert(sizeof(struct ext2_disk_inode) == EXT2_OLD_INODE_BYTES, "inode");
_Static_assert(offsetof(struct ext2_disk_inode, block) == 40, "block numbers");

/* Layouts of ext4 that an ext2 file system does not have. */
#define EXT2_FLAG_ENCRYPTED   0x00000800u
#define EXT2_FLAG_EXTENTS     0x00080000u
#define EXT2_FLAG_INLINE_DATA 0x10000000u

/* name_len bytes of name follow; entries fill their block without a gap, none crosses its end. */
struct ext2_disk_entry {
    u32 inode;   /* 0: unused */
    u16 rec_len; /* to the next entry; a multiple of 4 */
    u8 name_len;
    u8 file_type; /* with EXT2_INCOMPAT_FILETYPE */
    char name[];
};
_Static_assert(sizeof(struct ext2_disk_entry) == 8, "directory entry");

#endif
