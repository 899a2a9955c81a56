/*
 * Bad ext2 images: each damage is an error of its own, never a panic, a hang or a read elsewhere.
 */
#include "lib/rng.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "tests/kernel/ext2_image.h"
#include "tests/kernel/ktest.h"

/* Makes an image, damages it, and expects this of the mount. */
static void expect_mount(void (*damage)(struct ext2_image *image), int expected)
{
    struct ext2_image image;

    KASSERT(image_create(&image, 1024, 128));
    damage(&image);
    ext2_is_quiet = true;
    KEXPECT_EQ(image_mount(&image), expected);
    ext2_is_quiet = false;
    image_destroy(&image);
}

/*
 * Makes an image, damages it, mounts it, and expects this of a lookup or, with pos given, a read (a
 * page that cannot be mapped to the disk is a failed read: -EIO).
 */
#define ONLY_LOOKUP (-1)

static void expect_error(void (*damage)(struct ext2_image *image), const char *path, s64 pos,
                         int expected)
{
    struct ext2_image image;
    u8 byte;

    KASSERT(image_create(&image, 1024, 128));
    damage(&image);
    ext2_is_quiet = true;
    if (KEXPECT_EQ(image_mount(&image), 0)) {
        if (pos == ONLY_LOOKUP)
            KEXPECT_EQ(image_lookup(&image, path), expected);
        else
            KEXPECT_EQ(image_read(&image, path, pos, &byte, 1), expected);
        KEXPECT_EQ(image_lookup(&image, "lost+found") == 0 ||
                       image_lookup(&image, "lost+found") == -EUCLEAN,
                   1); /* still answers */
    }
    ext2_is_quiet = false;
    image_destroy(&image);
}

/* ---- The super block ---- */

#define SUPER_TEST(name, expected, change)              \
    static void damage_##name(struct ext2_image *image) \
    {                                                   \
        struct ext2_disk_super *super = image->super;   \
        (void)super;                                    \
        change;                                         \
    }                                                   \
    KTEST(ext2_damage, name)                            \
    {                                                   \
        expect_mount(damage_##name, expected);          \
    }

SUPER_TEST(another_magic_is_no_ext2, -EINVAL, super->magic = 0x1234)
SUPER_TEST(an_unknown_incompatible_feature_is_refused, -EOPNOTSUPP, super->incompatible |= 0x40)
SUPER_TEST(a_feature_without_a_name_is_refused, -EOPNOTSUPP, super->incompatible |= 1u << 31)
SUPER_TEST(an_unknown_read_only_feature_is_mounted, 0, super->read_only_compatible = ~0u)
SUPER_TEST(compatible_features_are_ignored, 0, super->compatible = ~0u)
SUPER_TEST(an_unknown_revision_is_refused, -EOPNOTSUPP, super->revision = 2)
SUPER_TEST(blocks_of_8_kib_are_refused, -EOPNOTSUPP, super->log_block_size = 3)
SUPER_TEST(a_block_size_out_of_range_is_refused, -EOPNOTSUPP, super->log_block_size = ~0u)
SUPER_TEST(more_blocks_than_the_disk_are_damage, -EUCLEAN, super->blocks_count = 100000)
SUPER_TEST(no_blocks_are_damage, -EUCLEAN, super->blocks_count = 0)
SUPER_TEST(empty_groups_are_damage, -EUCLEAN, super->blocks_per_group = 0)
SUPER_TEST(groups_without_inodes_are_damage, -EUCLEAN, super->inodes_per_group = 0)
SUPER_TEST(too_many_inodes_in_a_group_are_damage, -EUCLEAN, super->inodes_per_group = 1u << 30)
SUPER_TEST(another_number_of_inodes_is_damage, -EUCLEAN, super->inodes_count = ~0u)
SUPER_TEST(an_odd_inode_size_is_damage, -EUCLEAN, super->inode_bytes = 160)
SUPER_TEST(inodes_larger_than_a_block_are_damage, -EUCLEAN, super->inode_bytes = 4096)
SUPER_TEST(a_wrong_first_block_is_damage, -EUCLEAN, super->first_data_block = 0)
SUPER_TEST(an_inode_table_out_of_range_is_damage, -EUCLEAN, image->group->inode_table = 5000)
SUPER_TEST(an_inode_table_that_ends_behind_the_disk_is_damage, -EUCLEAN,
           image->group->inode_table = super->blocks_count - 1)
SUPER_TEST(a_root_that_is_a_file_is_damage, -EUCLEAN,
           image_inode(image, EXT2_ROOT_INO)->mode = S_IFREG | 0644)
SUPER_TEST(a_root_of_odd_size_is_damage, -EUCLEAN, image_inode(image, EXT2_ROOT_INO)->size = 1000)

KTEST(ext2_damage, a_disk_too_small_for_a_super_block_is_no_ext2)
{
    struct ext2_image image;

    KASSERT(image_create(&image, 1024, 128));
    image.bytes = 1536;
    KEXPECT_EQ(image_mount(&image), -EINVAL);
    image_destroy(&image);
}

KTEST(ext2_damage, old_revision_images_are_mounted)
{
    struct ext2_image image;
    u8 byte;

    KASSERT(image_create(&image, 1024, 128));
    image.super->revision = EXT2_REV_OLD;
    image.super->inode_bytes = 0;
    image.super->first_ino = 0;
    if (KEXPECT_EQ(image_mount(&image), 0))
        KEXPECT_EQ(image_read(&image, "dir/inner", 0, &byte, 1), 1);
    image_destroy(&image);
}

/* ---- Inodes, block numbers, directories ---- */

#define FILE_TEST(name, path, pos, expected, change)      \
    static void damage_##name(struct ext2_image *image)   \
    {                                                     \
        change;                                           \
    }                                                     \
    KTEST(ext2_damage, name)                              \
    {                                                     \
        expect_error(damage_##name, path, pos, expected); \
    }

#define INODE(ino)       image_inode(image, ino)
#define ENTRY(dir, name) image_entry(image, dir, name)
#define NUMBERS(block)   ((u32 *)image_block(image, block))

FILE_TEST(a_block_out_of_range_is_an_error, "small.txt", 0, -EIO,
          INODE(IMAGE_SMALL)->block[0] = 5000)
FILE_TEST(a_block_number_of_all_ones_is_an_error, "small.txt", 0, -EIO,
          INODE(IMAGE_SMALL)->block[0] = ~0u)
FILE_TEST(numbers_out_of_range_are_an_error, "run", 20 * 1024, -EIO,
          INODE(IMAGE_RUN)->block[12] = 5000)
FILE_TEST(the_part_before_bad_numbers_is_read, "run", 0, 1, INODE(IMAGE_RUN)->block[12] = 5000)
FILE_TEST(numbers_that_lead_to_themselves_are_an_error, "deep", (12 + 256) * 1024, -EIO,
          NUMBERS(INODE(IMAGE_DEEP)->block[13])[0] = INODE(IMAGE_DEEP)->block[13])
FILE_TEST(data_in_its_own_numbers_is_an_error, "run", 12 * 1024, -EIO,
          NUMBERS(INODE(IMAGE_RUN)->block[12])[0] = INODE(IMAGE_RUN)->block[12])
FILE_TEST(a_file_larger_than_blocks_can_reach_is_an_error, "small.txt", ONLY_LOOKUP, -EUCLEAN,
          INODE(IMAGE_SMALL)->size_high = 0x7fffffff)
FILE_TEST(a_file_of_no_type_is_an_error, "small.txt", ONLY_LOOKUP, -EUCLEAN,
          INODE(IMAGE_SMALL)->mode = 0644)
FILE_TEST(a_named_inode_without_links_is_an_error, "small.txt", ONLY_LOOKUP, -EUCLEAN,
          INODE(IMAGE_SMALL)->links_count = 0)
FILE_TEST(an_inode_with_extents_is_refused, "small.txt", ONLY_LOOKUP, -EOPNOTSUPP,
          INODE(IMAGE_SMALL)->flags = EXT2_FLAG_EXTENTS)
FILE_TEST(an_entry_of_no_length_is_an_error, "small.txt", ONLY_LOOKUP, -EUCLEAN,
          ENTRY(EXT2_ROOT_INO, "lost+found")->rec_len = 0)
FILE_TEST(an_entry_across_the_end_of_the_block_is_an_error, "small.txt", ONLY_LOOKUP, -EUCLEAN,
          ENTRY(EXT2_ROOT_INO, "lost+found")->rec_len = 1020)
FILE_TEST(an_entry_of_odd_length_is_an_error, "small.txt", ONLY_LOOKUP, -EUCLEAN,
          ENTRY(EXT2_ROOT_INO, "lost+found")->rec_len = 21)
FILE_TEST(a_name_longer_than_its_entry_is_an_error, "small.txt", ONLY_LOOKUP, -EUCLEAN,
          ENTRY(EXT2_ROOT_INO, "lost+found")->name_len = 200)
FILE_TEST(an_entry_without_a_name_is_an_error, "small.txt", ONLY_LOOKUP, -EUCLEAN,
          ENTRY(EXT2_ROOT_INO, "lost+found")->name_len = 0)
FILE_TEST(an_unused_entry_has_no_name, "small.txt", ONLY_LOOKUP, -ENOENT,
          ENTRY(EXT2_ROOT_INO, "small.txt")->inode = 0)
FILE_TEST(an_inode_number_out_of_range_is_an_error, "small.txt", ONLY_LOOKUP, -EUCLEAN,
          ENTRY(EXT2_ROOT_INO, "small.txt")->inode = 5000)
FILE_TEST(a_reserved_inode_with_a_name_is_an_error, "small.txt", ONLY_LOOKUP, -EUCLEAN,
          ENTRY(EXT2_ROOT_INO, "small.txt")->inode = 8)
FILE_TEST(a_directory_of_odd_size_is_an_error, "dir", ONLY_LOOKUP, -EUCLEAN,
          INODE(IMAGE_DIR)->size = 1500)
FILE_TEST(an_empty_directory_is_an_error, "dir", ONLY_LOOKUP, -EUCLEAN, INODE(IMAGE_DIR)->size = 0)
FILE_TEST(a_directory_larger_than_the_disk_is_an_error, "dir", ONLY_LOOKUP, -EUCLEAN,
          INODE(IMAGE_DIR)->size = 1u << 30)
FILE_TEST(a_directory_with_a_hole_is_an_error, "dir/inner", ONLY_LOOKUP, -EUCLEAN,
          INODE(IMAGE_DIR)->block[0] = 0)
FILE_TEST(a_short_link_longer_than_its_room_is_an_error, "short", ONLY_LOOKUP, -EUCLEAN,
          INODE(IMAGE_SHORT)->size = 60)
FILE_TEST(a_long_link_longer_than_a_block_is_an_error, "long", ONLY_LOOKUP, -EUCLEAN,
          INODE(IMAGE_LONG)->size = 2000)
FILE_TEST(a_link_of_no_length_is_an_error, "short", ONLY_LOOKUP, -EUCLEAN,
          INODE(IMAGE_SHORT)->size = 0)
FILE_TEST(a_link_with_a_zero_in_it_is_an_error, "short", ONLY_LOOKUP, -EUCLEAN,
          INODE(IMAGE_SHORT)->block[1] = 0)
FILE_TEST(a_long_link_without_a_block_is_an_error, "long", ONLY_LOOKUP, -EUCLEAN,
          INODE(IMAGE_LONG)->block[0] = 0)
FILE_TEST(a_parent_that_is_a_file_is_no_directory, "dir/../small.txt", ONLY_LOOKUP, -ENOTDIR,
          ENTRY(IMAGE_DIR, "..")->inode = IMAGE_SMALL)

static int emit_nothing(void *ctx, const char *name, size_t len, u64 ino, unsigned type,
                        u64 next_pos)
{
    (void)ctx, (void)name, (void)len, (void)ino, (void)type, (void)next_pos;
    return 0;
}

KTEST(ext2_damage, a_name_with_a_slash_is_not_listed)
{
    struct ext2_image image;
    u64 pos = 0;

    KASSERT(image_create(&image, 1024, 128));
    image_entry(&image, EXT2_ROOT_INO, "lost+found")->name[4] = '/';
    ext2_is_quiet = true;
    if (KEXPECT_EQ(image_mount(&image), 0)) {
        struct inode *root = image.mounted->root;

        KEXPECT_EQ(root->ops->iterate(root, &pos, emit_nothing, NULL), -EUCLEAN);
        KEXPECT_EQ(pos, 24); /* behind "." and ".." */
        KEXPECT_EQ(image_lookup(&image, "small.txt"), 0);
    }
    ext2_is_quiet = false;
    image_destroy(&image);
}

/* ---- Random damage ---- */

#define FLIP_ROUNDS  2000
#define FLIPS_MAX    8
#define WALK_DEPTH   4
#define WALK_ENTRIES 200 /* in one round */
#define NAMES_MAX    32
#define READ_BYTES   (2 * PAGE_SIZE)
#define SEEKS_MAX    16

struct names {
    u32 n;
    struct {
        u8 len;
        char name[NAME_MAX_BYTES + 1];
    } list[NAMES_MAX];
};

static int collect_name(void *ctx, const char *name, size_t len, u64 ino, unsigned type,
                        u64 next_pos)
{
    struct names *names = ctx;

    (void)ino, (void)type, (void)next_pos;
    if (names->n == NAMES_MAX)
        return 1;
    names->list[names->n].len = (u8)len;
    memcpy(names->list[names->n].name, name, len);
    names->n++;
    return 0;
}

/* Reads at both ends, and seeks through the map. Errors are fine. */
static void exercise_file(struct inode *inode, u8 *buf)
{
    u64 size = inode->cache.size_bytes;
    int error;
    struct file *file = file_open_inode(inode, O_RDONLY, "", &error);
    s64 pos = 0;

    if (!file)
        return;
    file_read_all_kernel(file, 0, buf, READ_BYTES);
    if (size > READ_BYTES)
        file_read_all_kernel(file, size - READ_BYTES, buf, READ_BYTES);
    for (u32 i = 0; i < SEEKS_MAX && pos >= 0; i++)
        pos = file_seek(file, pos, i % 2 ? SEEK_HOLE : SEEK_DATA);
    file_put(file);
}

static void walk(struct inode *inode, u8 *buf, u32 depth, u32 *budget)
{
    struct names *names;
    u64 pos = 0;

    if (inode_is(inode, S_IFREG))
        exercise_file(inode, buf);
    if (inode_is(inode, S_IFLNK))
        inode->ops->readlink(inode, (char *)buf, PATH_MAX_BYTES);
    if (!inode_is_dir(inode) || depth == WALK_DEPTH)
        return;
    names = kzalloc(sizeof(*names));
    if (!names)
        return;
    rwsem_read_lock(&inode->rwlock);
    inode->ops->iterate(inode, &pos, collect_name, names);
    rwsem_read_unlock(&inode->rwlock);
    for (u32 i = 0; i<names->n && * budget> 0; i++, --*budget) {
        struct inode *child;

        rwsem_read_lock(&inode->rwlock);
        int error = inode->ops->lookup(inode, names->list[i].name, names->list[i].len, &child);

        rwsem_read_unlock(&inode->rwlock);
        if (error)
            continue;
        if (names->list[i].name[0] != '.') /* "." and ".." would lead round and round */
            walk(child, buf, depth + 1, budget);
        inode_put(child);
    }
    kfree(names);
}

/* Half of the flips hit what steers the walk: super block, descriptors, inodes, directories. */
static void flip(struct rng *rng, struct ext2_image *image)
{
    u64 end = rng_one_in(rng, 2) ? (u64)image->next_block : 16;
    u64 at = EXT2_SUPER_OFFSET + rng_below(rng, end * image->block_bytes - EXT2_SUPER_OFFSET);

    if (rng_one_in(rng, 16)) /* mounting would mostly end here */
        at = EXT2_SUPER_OFFSET + rng_below(rng, 104);
    else if (at < EXT2_SUPER_OFFSET + 104)
        at += 2048;
    image->data[at] ^= (u8)(1 + rng_below(rng, 255));
}

KTEST(ext2_damage, random_bytes_never_crash_the_walk)
{
    struct ext2_image image;
    struct rng rng;
    u32 mounted = 0, paths[3] = {0};
    u8 *good, *buf = kmalloc(READ_BYTES);

    rng_seed(&rng, 20240229);
    KASSERT(buf != NULL && image_create(&image, 1024, 128));
    good = kmalloc(image.bytes);
    KASSERT(good != NULL);
    memcpy(good, image.data, image.bytes);
    ext2_is_quiet = true;
    for (u32 round = 0; round < FLIP_ROUNDS; round++) {
        u32 budget = WALK_ENTRIES;

        memcpy(image.data, good, image.bytes);
        for (u64 n = 1 + rng_below(&rng, FLIPS_MAX); n > 0; n--)
            flip(&rng, &image);
        if (image_mount(&image))
            continue;
        mounted++;
        walk(image.mounted->root, buf, 0, &budget);
        paths[0] += image_lookup(&image, "long") == 0;
        paths[1] += image_lookup(&image, "up") == 0;
        paths[2] += image_lookup(&image, "dir/../dir/../dir/inner") == 0;
        image_unmount(&image);
    }
    ext2_is_quiet = false;
    ktest_note("%u of %u mounted; %u, %u, %u paths found", mounted, FLIP_ROUNDS, paths[0], paths[1],
               paths[2]);
    KEXPECT(mounted > FLIP_ROUNDS / 4);
    kfree(good);
    kfree(buf);
    image_destroy(&image);
}
