/*
 * /dev and generated files, as a program sees them: reads and writes go to user memory.
 */
#include "drivers/block/ramdisk.h"
#include "fs/textfs.h"
#include "lib/format.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "mm/user_memory.h"
#include "tests/kernel/ext2_image.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/test_mm.h"

#define USER_BASE  0x500000000ul
#define USER_PAGES 4
#define TEXT_MAX   256

static bool enter_user_memory(void)
{
    struct mm *mm = test_mm_enter();

    return mm && KEXPECT_EQ(mm_mmap(mm, USER_BASE, USER_PAGES * PAGE_SIZE, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL, 0),
                            USER_BASE);
}

static struct file *open_device(const char *path, u32 flags)
{
    int error;
    struct file *file = file_open(NULL, NULL, path, flags, 0, &error);

    if (!file)
        ktest_fail(__FILE__, __LINE__, "%s: error %d", path, -error);
    return file;
}

/* Reads to user memory and from there. => bytes or error; the text is terminated */
static ssize_t read_text(struct file *file, char *buf, size_t len, u64 *pos)
{
    ssize_t n = file_read(file, USER_BASE, len, pos);

    if (n > 0 && copy_from_user(buf, USER_BASE, n))
        return -EFAULT;
    buf[n > 0 ? n : 0] = '\0';
    return n;
}

static ssize_t write_text(struct file *file, const char *text)
{
    if (copy_to_user(USER_BASE, text, strlen(text)))
        return -EFAULT;
    return file_write(file, USER_BASE, strlen(text), NULL);
}

/* ---- Devices ---- */

KTEST(dev, null_is_empty_and_takes_everything)
{
    struct file *file = open_device("/dev/null", O_RDWR);

    KASSERT(file != NULL);
    KEXPECT_EQ(file_read(file, USER_BASE, 100, NULL), 0);
    KEXPECT_EQ(file_write(file, 0, 1ul << 40, NULL), 1l << 40);
    KEXPECT_EQ(file_seek(file, 0, SEEK_END), 0);
    KEXPECT(inode_is(file->inode, S_IFCHR));
    KEXPECT_EQ(file->inode->rdev, BLOCK_DEV(1, 3));
    file_put(file);
}

KTEST(dev, zero_fills_and_full_is_full)
{
    struct file *zero = open_device("/dev/zero", O_RDWR), *full = open_device("/dev/full", O_RDWR);

    KASSERT(zero && full);
    KASSERT(enter_user_memory());
    KEXPECT_EQ(user_poke(USER_BASE + 5000, 0x77), 0);
    KEXPECT_EQ(file_read(zero, USER_BASE, 6000, NULL), 6000);
    KEXPECT_EQ(user_peek(USER_BASE + 5000), 0);
    KEXPECT_EQ(file_read(zero, USER_BASE - PAGE_SIZE, 10, NULL), -EFAULT);
    KEXPECT_EQ(file_read(full, USER_BASE, 10, NULL), 10);
    KEXPECT_EQ(file_write(full, USER_BASE, 10, NULL), -ENOSPC);
    KEXPECT(zero->ops->maps_anonymous);
    test_mm_leave();
    file_put(zero);
    file_put(full);
}

KTEST(dev, urandom_gives_other_bytes_each_time)
{
    struct file *file = open_device("/dev/urandom", O_RDONLY);
    u8 first[64], second[64];

    KASSERT(file != NULL);
    KASSERT(enter_user_memory());
    KEXPECT_EQ(file_read(file, USER_BASE, 1000, NULL), 1000);
    KEXPECT_EQ(copy_from_user(first, USER_BASE, sizeof(first)), 0);
    KEXPECT_EQ(copy_from_user(second, USER_BASE + 500, sizeof(second)), 0);
    KEXPECT(memcmp(first, second, sizeof(first)) != 0);
    KEXPECT_EQ(file_read(file, USER_BASE + (USER_PAGES - 1) * PAGE_SIZE, 2 * PAGE_SIZE, NULL),
               PAGE_SIZE); /* short at the end of the memory */
    test_mm_leave();
    file_put(file);
}

KTEST(dev, the_console_is_no_terminal_and_takes_text)
{
    struct file *file = open_device("/dev/console", O_RDWR | O_NONBLOCK);
    u64 pos = 0;

    KASSERT(file != NULL);
    KASSERT(enter_user_memory());
    KEXPECT_EQ(write_text(file, "    # this line went through /dev/console\n"), 42);
    KEXPECT_EQ(file_write(file, USER_BASE - PAGE_SIZE, 3, NULL), -EFAULT);
    KEXPECT_EQ(file_read(file, USER_BASE, 0, NULL), 0);
    KEXPECT_EQ(file_ioctl(file, 0x5401, 0), -ENOTTY);
    KEXPECT_EQ(file_seek(file, 0, SEEK_CUR), -ESPIPE);
    KEXPECT_EQ(file_read(file, USER_BASE, 1, &pos), -ESPIPE);
    test_mm_leave();
    file_put(file);
}

/* A block device of our own has no node in /dev: its number is enough. */
KTEST(dev, a_disk_is_read_and_mapped_through_its_cache)
{
    struct ext2_image image;
    struct block_stats before, after;
    struct inode *node;
    struct file *file;
    struct mm *mm;
    int error;
    u16 magic;

    KASSERT(image_create(&image, 1024, 128));
    KASSERT_EQ(image_mount(&image), 0);
    node = inode_new_anonymous(NULL, S_IFBLK | 0600);
    KASSERT(node != NULL);
    node->rdev = image.device->dev;
    KEXPECT(!file_open_inode(node, O_RDWR, "/dev/test", &error));
    KEXPECT_EQ(error, -EROFS);
    file = file_open_inode(node, O_RDONLY, "/dev/test", &error);
    KASSERT(file != NULL);
    KEXPECT_EQ(file_seek(file, 0, SEEK_END), image.bytes);
    KEXPECT_EQ(file_read_all_kernel(file, 1024 + 56, &magic, 2), 2);
    KEXPECT_EQ(magic, EXT2_SUPER_MAGIC);
    mm = test_mm_enter();
    if (mm) {
        block_stats_get(image.device, &before);
        KEXPECT_EQ(mm_mmap(mm, USER_BASE, image.bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED,
                           &file->mapped, 0),
                   USER_BASE);
        KEXPECT_EQ(user_peek(USER_BASE + 1024 + 56), EXT2_SUPER_MAGIC & 0xff);
        KEXPECT_EQ(user_peek(USER_BASE + 20 * PAGE_SIZE + 3), image.data[20 * PAGE_SIZE + 3]);
        block_stats_get(image.device, &after);
        KEXPECT_EQ(after.data_requests, before.data_requests); /* the file system's own cache */
        KEXPECT(after.meta_requests > before.meta_requests);
        test_mm_leave();
    }
    file_put(file);
    inode_put(node);
    image_destroy(&image);
}

KTEST(dev, the_last_part_of_a_disk_that_is_no_whole_page_reads_short)
{
    u8 *data = kzalloc(PAGE_SIZE + 1536), last[16];
    struct block_device *device;
    struct inode *node;
    struct file *file;
    int error;

    KASSERT(data != NULL);
    memset(data + PAGE_SIZE + 1530, 0x3c, 6);
    device = ramdisk_create("oddtest", data, PAGE_SIZE + 1536);
    KASSERT(device != NULL);
    node = inode_new_anonymous(NULL, S_IFBLK | 0600);
    KASSERT(node != NULL);
    node->rdev = device->dev;
    file = file_open_inode(node, O_RDONLY, "/dev/odd", &error);
    if (KEXPECT(file != NULL)) {
        KEXPECT_EQ(file_read_all_kernel(file, PAGE_SIZE + 1530, last, sizeof(last)), 6);
        KEXPECT_EQ(last[5], 0x3c);
        file_put(file);
    }
    inode_put(node);
    bdev_forget(device);
    ramdisk_destroy(device);
    kfree(data);
}

/* ---- Generated files ---- */

struct counter_file {
    u32 shown, stored;
    size_t text_bytes; /* of show's text, 0: the number */
    char last[TEXT_MAX];
};

static size_t counter_show(void *arg, char *buf, size_t size)
{
    struct counter_file *counter = arg;

    counter->shown++;
    if (!counter->text_bytes)
        return format_to(buf, size, "%u\n", counter->shown);
    for (size_t i = 0; i < MIN(size, counter->text_bytes); i++)
        buf[i] = 'a' + i % 26;
    return counter->text_bytes;
}

static int counter_store(void *arg, const char *text, size_t len)
{
    struct counter_file *counter = arg;

    counter->stored++;
    string_copy(counter->last, text, sizeof(counter->last));
    return len == 3 && memcmp(text, "bad", 3) == 0 ? -EINVAL : 0;
}

static ssize_t counter_link(void *arg, char *buf, size_t size)
{
    (void)arg, (void)size;
    memcpy(buf, "b/counter", 9);
    return 9;
}

static struct counter_file counter;
static const struct text_file counter_entries[] = {
    {.path = "b/counter", .show = counter_show, .store = counter_store, .arg = &counter},
    {.path = "b/readonly", .show = counter_show, .arg = &counter},
    {.path = "b/writeonly", .store = counter_store, .arg = &counter},
    {.path = "link", .link = counter_link},
};

static struct super_block *tree_enter(void)
{
    struct super_block *tree = textfs_create("test");

    counter = (struct counter_file){0};
    for (size_t i = 0; i < ARRAY_SIZE(counter_entries); i++)
        KEXPECT_EQ(textfs_add(tree, &counter_entries[i]), 0);
    KEXPECT_EQ(vfs_mount("/textfs-test", tree), 0);
    KEXPECT(enter_user_memory());
    return tree;
}

static void tree_leave(struct super_block *tree)
{
    test_mm_leave();
    KEXPECT_EQ(vfs_unmount("/textfs-test"), 0);
    textfs_destroy(tree);
}

static struct file *open_text(struct super_block *tree, const char *path, u32 flags, int *error)
{
    return file_open(tree->root, "/textfs-test", path, flags, 0, error);
}

KTEST(textfs, a_text_is_one_state_until_it_is_read_from_its_beginning_again)
{
    struct super_block *tree = tree_enter();
    char text[TEXT_MAX];
    struct file *file;
    int error;
    u64 pos = 1;

    counter.shown = 99;
    file = open_text(tree, "link", O_RDONLY, &error); /* through the link */
    KASSERT(file != NULL);
    KEXPECT_EQ(read_text(file, text, 1, NULL), 1);
    KEXPECT_EQ(read_text(file, text, 100, NULL), 3);
    KEXPECT_STREQ(text, "00\n");
    KEXPECT_EQ(read_text(file, text, 100, NULL), 0);
    KEXPECT_EQ(read_text(file, text, 100, &pos), 3); /* pread in the middle: the same text */
    KEXPECT_EQ(counter.shown, 100);
    KEXPECT_EQ(file_seek(file, 0, SEEK_SET), 0);
    KEXPECT_EQ(read_text(file, text, 100, NULL), 4);
    KEXPECT_STREQ(text, "101\n");
    file_put(file);
    tree_leave(tree);
}

KTEST(textfs, a_long_text_comes_whole)
{
    struct super_block *tree = tree_enter();
    struct file *file;
    size_t total = 0;
    ssize_t n;
    int error;

    counter.text_bytes = 100000;
    file = open_text(tree, "b/readonly", O_RDONLY, &error);
    KASSERT(file != NULL);
    while ((n = file_read(file, USER_BASE, 3 * PAGE_SIZE, NULL)) > 0) {
        KEXPECT_EQ(user_peek(USER_BASE), 'a' + total % 26);
        total += n;
    }
    KEXPECT_EQ(n, 0);
    KEXPECT_EQ(total, 100000);
    file_put(file);
    tree_leave(tree);
}

KTEST(textfs, a_write_is_one_store_without_its_newline)
{
    struct super_block *tree = tree_enter();
    struct file *file;
    int error;

    file = open_text(tree, "b/counter", O_WRONLY | O_TRUNC, &error);
    KASSERT(file != NULL);
    KEXPECT_EQ(write_text(file, "value 1\n"), 8);
    KEXPECT_STREQ(counter.last, "value 1");
    KEXPECT_EQ(write_text(file, "bad"), -EINVAL);
    KEXPECT_EQ(file_write(file, USER_BASE, PAGE_SIZE + 1, NULL), -EINVAL);
    KEXPECT_EQ(file_write(file, USER_BASE - PAGE_SIZE, 4, NULL), -EFAULT);
    KEXPECT_EQ(counter.stored, 2);
    file_put(file);
    tree_leave(tree);
}

KTEST(textfs, what_an_entry_cannot_do_is_refused_at_open)
{
    struct super_block *tree = tree_enter();
    struct inode *inode;
    int error;

    KEXPECT(!open_text(tree, "b/readonly", O_RDWR, &error));
    KEXPECT_EQ(error, -EACCES);
    KEXPECT(!open_text(tree, "b/writeonly", O_RDONLY, &error));
    KEXPECT_EQ(error, -EACCES);
    KEXPECT(!open_text(tree, "b/missing", O_CREAT | O_RDWR, &error));
    KEXPECT_EQ(error, -EROFS);
    if (KEXPECT_EQ(vfs_lookup(tree->root, "/", "b/counter", true, &inode, NULL), 0)) {
        KEXPECT_EQ(inode->mode, S_IFREG | 0644);
        inode_put(inode);
    }
    tree_leave(tree);
}

static int collect(void *ctx, const char *name, size_t len, u64 ino, unsigned type, u64 next_pos)
{
    char *text = ctx;
    size_t used = strlen(text);

    (void)ino, (void)next_pos;
    if (used + len + 3 > TEXT_MAX)
        return 1;
    memcpy(text + used, name, len);
    text[used + len] = '0' + type % 10;
    text[used + len + 1] = ' ';
    text[used + len + 2] = '\0';
    return 0;
}

KTEST(textfs, directories_list_what_was_added)
{
    static const struct text_file again = {.path = "b/counter"}, below = {.path = "link/x"};
    struct super_block *tree = tree_enter();
    char text[TEXT_MAX] = "";
    struct file *dir;
    int error;

    KEXPECT_EQ(textfs_add(tree, &again), -EEXIST);
    KEXPECT_EQ(textfs_add(tree, &below), -ENOTDIR);
    dir = open_text(tree, ".", O_RDONLY | O_DIRECTORY, &error);
    KASSERT(dir != NULL);
    KEXPECT_EQ(file_iterate(dir, collect, text), 0);
    KEXPECT_STREQ(text, ".4 ..4 b4 link0 ");
    KEXPECT_EQ(file_read(dir, USER_BASE, 10, NULL), -EISDIR);
    KEXPECT_EQ(dir->inode->nlink, 3);
    file_put(dir);
    tree_leave(tree);
}
