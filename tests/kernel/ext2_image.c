/*
 * A small ext2 image made in memory.
 */
#include "tests/kernel/ext2_image.h"

#include "drivers/block/ramdisk.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "tests/kernel/ktest.h"

#define IMAGE_BLOCKS   120
#define GARBAGE        0xbd
#define BASE_PATH      "/image"
#define ENTRY_BYTES(n) ALIGN_UP(sizeof(struct ext2_disk_entry) + (n), 4ul)
#define TYPE_FILE      1
#define TYPE_DIR       2
#define TYPE_LINK      7

void *image_block(struct ext2_image *image, u32 block)
{
    return image->data + (size_t)block * image->block_bytes;
}

struct ext2_disk_inode *image_inode(struct ext2_image *image, u32 ino)
{
    return (void *)((u8 *)image_block(image, image->table_block) +
                    (size_t)(ino - 1) * image->inode_bytes);
}

u32 image_new_block(struct ext2_image *image)
{
    KEXPECT(image->next_block < IMAGE_BLOCKS);
    return image->next_block++;
}

static void make_super(struct ext2_image *image)
{
    u32 first = image->block_bytes == 1024 ? 1 : 0;
    u32 table_blocks = DIV_ROUND_UP(IMAGE_INODES * image->inode_bytes, image->block_bytes);
    struct ext2_disk_super *super = (void *)(image->data + EXT2_SUPER_OFFSET);

    image->super = super;
    image->group = image_block(image, first + 1);
    image->table_block = first + 4;
    image->next_block = image->table_block + table_blocks;
    *super = (struct ext2_disk_super){
        .inodes_count = IMAGE_INODES,
        .blocks_count = IMAGE_BLOCKS,
        .first_data_block = first,
        .log_block_size = __builtin_ctz(image->block_bytes) - 10,
        .blocks_per_group = image->block_bytes * 8,
        .fragments_per_group = image->block_bytes * 8,
        .inodes_per_group = IMAGE_INODES,
        .magic = EXT2_SUPER_MAGIC,
        .state = 1,
        .revision = EXT2_REV_DYNAMIC,
        .first_ino = EXT2_OLD_FIRST_INO,
        .inode_bytes = (u16)image->inode_bytes,
        .incompatible = EXT2_INCOMPAT_FILETYPE,
        .read_only_compatible = EXT2_ROCOMPAT_SPARSE_SUPER | EXT2_ROCOMPAT_LARGE_FILE,
    };
    *image->group = (struct ext2_disk_group){
        .block_bitmap = first + 2, .inode_bitmap = first + 3, .inode_table = image->table_block};
}

static struct ext2_disk_inode *make_inode(struct ext2_image *image, u32 ino, u32 mode, u64 size)
{
    struct ext2_disk_inode *inode = image_inode(image, ino);

    *inode = (struct ext2_disk_inode){.mode = (u16)mode,
                                      .links_count = 1,
                                      .size = (u32)size,
                                      .size_high = (u32)(size >> 32),
                                      .mtime = 1000000 + ino};
    return inode;
}

/* The slot of block numbers at `index`, through `depth` blocks of numbers below *slot. */
static u32 *slot_in_tree(struct ext2_image *image, u32 *slot, u64 index, u32 depth)
{
    u32 shift = __builtin_ctz(image->block_bytes) - 2;

    while (depth-- > 0) {
        if (*slot == 0)
            *slot = image_new_block(image);
        slot = (u32 *)image_block(image, *slot) + ((index >> depth * shift) & ((1u << shift) - 1));
    }
    return slot;
}

/* A new data block at this place of the file, filled with its byte. */
static void add_data(struct ext2_image *image, u32 ino, u64 file_block)
{
    struct ext2_disk_inode *inode = image_inode(image, ino);
    u64 covers = image->block_bytes / 4, within = file_block;
    u32 depth = 0, *slot;

    if (file_block >= EXT2_DIRECT_BLOCKS) {
        within -= EXT2_DIRECT_BLOCKS;
        for (depth = 1; within >= covers; depth++, covers *= image->block_bytes / 4)
            within -= covers;
        slot = slot_in_tree(image, &inode->block[EXT2_DIRECT_BLOCKS + depth - 1], within, depth);
    } else {
        slot = &inode->block[file_block];
    }
    *slot = image_new_block(image);
    inode->blocks_512 += image->block_bytes / SECTOR_SIZE;
    memset(image_block(image, *slot), image_byte(file_block), image->block_bytes);
}

static void make_text(struct ext2_image *image, u32 ino, const char *text)
{
    struct ext2_disk_inode *inode = make_inode(image, ino, S_IFREG | 0644, strlen(text));

    add_data(image, ino, 0);
    memset(image_block(image, inode->block[0]), GARBAGE, image->block_bytes);
    memcpy(image_block(image, inode->block[0]), text, strlen(text));
}

static void make_short_link(struct ext2_image *image, u32 ino, const char *target)
{
    struct ext2_disk_inode *inode = make_inode(image, ino, S_IFLNK | 0777, strlen(target));

    memcpy(inode->block, target, strlen(target));
}

static void make_long_link(struct ext2_image *image, u32 ino, const char *target)
{
    make_text(image, ino, target);
    image_inode(image, ino)->mode = S_IFLNK | 0777;
}

struct name {
    u32 ino;
    const char *name;
    u8 type;
};

static void make_dir(struct ext2_image *image, u32 ino, const struct name *names, u32 n)
{
    struct ext2_disk_inode *inode = make_inode(image, ino, S_IFDIR | 0755, image->block_bytes);
    u32 offset = 0;
    u8 *block;

    inode->links_count = 2;
    add_data(image, ino, 0);
    block = image_block(image, inode->block[0]);
    memset(block, 0, image->block_bytes);
    for (u32 i = 0; i < n; i++) {
        struct ext2_disk_entry *entry = (void *)(block + offset);
        u8 len = (u8)strlen(names[i].name);
        u32 bytes = i + 1 < n ? ENTRY_BYTES(len) : image->block_bytes - offset;

        *entry = (struct ext2_disk_entry){.inode = names[i].ino,
                                          .rec_len = (u16)bytes,
                                          .name_len = len,
                                          .file_type = names[i].type};
        memcpy(entry->name, names[i].name, len);
        offset += bytes;
    }
}

static void make_dirs(struct ext2_image *image)
{
    static const struct name root[] = {
        {EXT2_ROOT_INO, ".", TYPE_DIR},
        {EXT2_ROOT_INO, "..", TYPE_DIR},
        {IMAGE_LOST, "lost+found", TYPE_DIR},
        {IMAGE_SMALL, "small.txt", TYPE_FILE},
        {IMAGE_HOLES, "holes", TYPE_FILE},
        {IMAGE_DEEP, "deep", TYPE_FILE},
        {IMAGE_RUN, "run", TYPE_FILE},
        {0, "unused", TYPE_FILE},
        {IMAGE_DIR, "dir", TYPE_DIR},
        {IMAGE_SHORT, "short", TYPE_LINK},
        {IMAGE_LONG, "long", TYPE_LINK},
        {IMAGE_LOOP, "loop", TYPE_LINK},
        {IMAGE_UP, "up", TYPE_LINK},
        {IMAGE_ZERO, "zero", 3},
        {IMAGE_DISK, "disk", 4},
        {IMAGE_PIPE, "pipe", 5},
    };
    static const struct name dir[] = {{IMAGE_DIR, ".", TYPE_DIR},
                                      {EXT2_ROOT_INO, "..", TYPE_DIR},
                                      {IMAGE_INNER, "inner", TYPE_FILE}};
    static const struct name lost[] = {{IMAGE_LOST, ".", TYPE_DIR},
                                       {EXT2_ROOT_INO, "..", TYPE_DIR}};

    make_dir(image, EXT2_ROOT_INO, root, ARRAY_SIZE(root));
    make_dir(image, IMAGE_DIR, dir, ARRAY_SIZE(dir));
    make_dir(image, IMAGE_LOST, lost, ARRAY_SIZE(lost));
}

static void make_files(struct ext2_image *image)
{
    u64 p = image->block_bytes / 4, deep[4] = {0, 12, 12 + p, 12 + p + p * p};
    u8 *last;

    make_text(image, IMAGE_SMALL, IMAGE_SMALL_TEXT);
    make_text(image, IMAGE_INNER, IMAGE_INNER_TEXT);
    make_inode(image, IMAGE_HOLES, S_IFREG | 0644, 10 * image->block_bytes + 100);
    add_data(image, IMAGE_HOLES, 1);
    add_data(image, IMAGE_HOLES, 9);
    add_data(image, IMAGE_HOLES, 10);
    last = image_block(image, image_inode(image, IMAGE_HOLES)->block[10]);
    memset(last + 100, GARBAGE, image->block_bytes - 100);
    make_inode(image, IMAGE_DEEP, S_IFREG | 0644, (deep[3] + 1) * image->block_bytes);
    for (u32 i = 0; i < ARRAY_SIZE(deep); i++)
        add_data(image, IMAGE_DEEP, deep[i]);
    make_inode(image, IMAGE_RUN, S_IFREG | 0644, IMAGE_RUN_BLOCKS * image->block_bytes);
    for (u32 i = 0; i < IMAGE_RUN_BLOCKS; i++)
        add_data(image, IMAGE_RUN, i);
}

static void make_special(struct ext2_image *image)
{
    make_short_link(image, IMAGE_SHORT, "dir/inner");
    make_long_link(image, IMAGE_LONG, IMAGE_LONG_TARGET);
    make_short_link(image, IMAGE_LOOP, "loop");
    make_short_link(image, IMAGE_UP, "dir/../small.txt");
    make_inode(image, IMAGE_ZERO, S_IFCHR | 0666, 0)->block[0] = BLOCK_DEV(1, 3);
    make_inode(image, IMAGE_DISK, S_IFBLK | 0600, 0)->block[0] = BLOCK_DEV(1, 200);
    make_inode(image, IMAGE_PIPE, S_IFIFO | 0600, 0);
}

bool image_create(struct ext2_image *image, u32 block_bytes, u32 inode_bytes)
{
    *image = (struct ext2_image){.bytes = (size_t)IMAGE_BLOCKS * block_bytes,
                                 .block_bytes = block_bytes,
                                 .inode_bytes = inode_bytes};
    image->data = kzalloc(image->bytes);
    if (!KEXPECT(image->data != NULL))
        return false;
    make_super(image);
    make_dirs(image);
    make_files(image);
    make_special(image);
    return true;
}

int image_mount(struct ext2_image *image)
{
    int error;

    if (!image->device)
        image->device = ramdisk_create("ext2test", image->data, image->bytes);
    if (!image->device)
        return -ENOMEM;
    error = ext2_mount(image->device, &image->mounted);
    if (error)
        bdev_forget(image->device);
    return error;
}

void image_unmount(struct ext2_image *image)
{
    if (image->mounted)
        KEXPECT_EQ(ext2_unmount(image->mounted), 0);
    image->mounted = NULL;
}

void image_destroy(struct ext2_image *image)
{
    image_unmount(image);
    if (image->device)
        ramdisk_destroy(image->device);
    kfree(image->data);
}

struct ext2_disk_entry *image_entry(struct ext2_image *image, u32 dir, const char *name)
{
    u8 *block = image_block(image, image_inode(image, dir)->block[0]);

    for (u32 offset = 0; offset < image->block_bytes;) {
        struct ext2_disk_entry *entry = (void *)(block + offset);

        if (entry->name_len == strlen(name) && memcmp(entry->name, name, entry->name_len) == 0)
            return entry;
        offset += entry->rec_len;
    }
    return NULL;
}

struct file *image_open(struct ext2_image *image, const char *path, u32 flags, int *error)
{
    return file_open(image->mounted->root, BASE_PATH, path, flags, 0, error);
}

ssize_t image_read(struct ext2_image *image, const char *path, u64 pos, void *buf, size_t len)
{
    int error;
    struct file *file = image_open(image, path, O_RDONLY, &error);
    ssize_t done;

    if (!file)
        return error;
    done = file_read_all_kernel(file, pos, buf, len);
    file_put(file);
    return done;
}

int image_lookup(struct ext2_image *image, const char *path)
{
    struct inode *inode;
    int error = vfs_lookup(image->mounted->root, BASE_PATH, path, true, &inode, NULL);

    if (!error)
        inode_put(inode);
    return error;
}
