/*
 * Paths, mounts, the inode table and open files.
 */
#include "fs/textfs.h"
#include "kernel/sched/task.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "tests/kernel/ext2_image.h"
#include "tests/kernel/ktest.h"

/* An image mounted at /t, and where there is no root, at / too: ".." out of a mount needs one. */
struct place {
    struct ext2_image image;
    bool is_root;
};

static bool place_enter(struct place *place)
{
    struct ext2_image *image = &place->image;

    place->is_root = vfs_root() == NULL;
    if (!image_create(image, 4096, 128))
        return false;
    if (!KEXPECT_EQ(image_mount(image), 0)) {
        image_destroy(image);
        return false;
    }
    KEXPECT_EQ(vfs_mount("/t", image->mounted), 0);
    if (place->is_root)
        KEXPECT_EQ(vfs_mount("/", image->mounted), 0);
    return true;
}

static void place_leave(struct place *place)
{
    KEXPECT_EQ(vfs_unmount("/t"), 0);
    if (place->is_root)
        KEXPECT_EQ(vfs_unmount("/"), 0);
    image_destroy(&place->image);
}

/* Walks from the root; the normalised path must come out as `full`. */
static void expect_path(const char *path, const char *full)
{
    char *buf = kmalloc(PATH_MAX_BYTES);
    struct inode *inode;

    KASSERT(buf != NULL);
    if (KEXPECT_EQ(vfs_lookup(NULL, NULL, path, true, &inode, buf), 0)) {
        KEXPECT_STREQ(buf, full);
        inode_put(inode);
    } else {
        ktest_note("path %s", path);
    }
    kfree(buf);
}

static void expect_path_error(const char *path, int expected)
{
    struct inode *inode;
    int error = vfs_lookup(NULL, NULL, path, true, &inode, NULL);

    if (!KEXPECT_EQ(error, expected))
        ktest_note("path %s", path);
    if (!error)
        inode_put(inode);
}

KTEST(vfs, paths_are_normalised)
{
    struct place place;

    KASSERT(place_enter(&place));
    expect_path("/t/small.txt", "/t/small.txt");
    expect_path("//t///dir//./inner", "/t/dir/inner");
    expect_path("/t/dir/../small.txt", "/t/small.txt");
    expect_path("/t/dir/../../t/dir/.", "/t/dir");
    expect_path("/t/dir/", "/t/dir");
    expect_path("/t/short", "/t/dir/inner");
    expect_path("/t/up", "/t/small.txt");
    expect_path("/", "/");
    expect_path("/..", "/");
    expect_path("/../../t/..", "/");
    place_leave(&place);
}

KTEST(vfs, bad_paths_have_their_own_errors)
{
    struct place place;
    char *path = kmalloc(PATH_MAX_BYTES + 2);

    KASSERT(path != NULL);
    KASSERT(place_enter(&place));
    expect_path_error("", -ENOENT);
    expect_path_error("/t/nothing", -ENOENT);
    expect_path_error("/t/nothing/else", -ENOENT);
    expect_path_error("/t/small.txt/", -ENOTDIR);
    expect_path_error("/t/small.txt/x", -ENOTDIR);
    expect_path_error("/t/small.txt/..", -ENOTDIR);
    expect_path_error("/t/small.txt/.", -ENOTDIR);
    expect_path_error("/t/loop", -ELOOP);
    memset(path, 'x', PATH_MAX_BYTES + 1);
    memcpy(path, "/t/", 3);
    path[3 + NAME_MAX_BYTES + 1] = '\0';
    expect_path_error(path, -ENAMETOOLONG); /* one name of 256 */
    path[3 + NAME_MAX_BYTES] = '\0';
    expect_path_error(path, -ENOENT);
    for (size_t i = 0; i < PATH_MAX_BYTES; i++)
        path[i] = i % 2 ? '.' : '/';
    path[PATH_MAX_BYTES] = '\0';
    expect_path_error(path, -ENAMETOOLONG);
    path[PATH_MAX_BYTES - 1] = '\0';
    expect_path(path, "/");
    place_leave(&place);
    kfree(path);
}

KTEST(vfs, relative_paths_start_at_their_directory)
{
    struct place place;
    struct inode *dir, *inode;
    char *full = kmalloc(PATH_MAX_BYTES);

    KASSERT(full != NULL);
    KASSERT(place_enter(&place));
    if (KEXPECT_EQ(vfs_lookup(NULL, NULL, "/t/dir", true, &dir, NULL), 0)) {
        if (KEXPECT_EQ(vfs_lookup(dir, "/t/dir", "../small.txt", true, &inode, full), 0)) {
            KEXPECT_STREQ(full, "/t/small.txt");
            KEXPECT_EQ(inode->ino, IMAGE_SMALL);
            inode_put(inode);
        }
        if (KEXPECT_EQ(vfs_lookup(dir, "/t/dir", "/t/long", false, &inode, full), 0)) {
            KEXPECT(inode_is(inode, S_IFLNK)); /* the last link itself */
            inode_put(inode);
        }
        inode_put(dir);
    }
    place_leave(&place);
    kfree(full);
}

KTEST(vfs, a_mounted_tree_covers_its_path_and_dotdot_leads_out)
{
    struct super_block *tree = textfs_create("test");
    static const struct text_file entry = {.path = "deep/down/file", .mode = S_IFREG | 0444};
    struct place place;
    struct inode *inode;

    KEXPECT_EQ(textfs_add(tree, &entry), 0);
    KASSERT(place_enter(&place));
    KEXPECT_EQ(vfs_mount("/t/dir", tree), 0);
    KEXPECT_EQ(vfs_mount("/t/dir", tree), -EBUSY);
    expect_path("/t/dir/deep/down/file", "/t/dir/deep/down/file");
    expect_path("/t/dir/deep/down/../../../small.txt", "/t/small.txt");
    expect_path("/t/dir/..", "/t");
    expect_path_error("/t/dir/inner", -ENOENT); /* covered */
    if (KEXPECT_EQ(vfs_lookup(NULL, NULL, "/t/dir/..", true, &inode, NULL), 0)) {
        KEXPECT(inode == place.image.mounted->root);
        inode_put(inode);
    }
    KEXPECT_EQ(vfs_unmount("/t/dir"), 0);
    expect_path("/t/dir/inner", "/t/dir/inner");
    place_leave(&place);
    textfs_destroy(tree);
}

KTEST(vfs, one_file_is_one_inode_with_one_cache)
{
    struct place place;
    struct inode *a, *b;

    KASSERT(place_enter(&place));
    KASSERT_EQ(vfs_lookup(NULL, NULL, "/t/small.txt", true, &a, NULL), 0);
    if (KEXPECT_EQ(vfs_lookup(NULL, NULL, "/t/long", true, &b, NULL), 0)) {
        KEXPECT(a == b);
        inode_put(b);
    }
    inode_put(a);
    place_leave(&place);
}

#define RACERS 4
#define ROUNDS 20

static struct super_block *racing_super;
static s64 racing_errors;

static void racer(void *arg)
{
    (void)arg;
    for (u32 i = 0; i < ROUNDS; i++) {
        struct inode *inode;
        int error =
            vfs_lookup(racing_super->root, "/r", i % 2 ? "run" : "dir/inner", true, &inode, NULL);

        if (error || inode->ino != (i % 2 ? IMAGE_RUN : IMAGE_INNER))
            atomic_add(&racing_errors, 1);
        if (!error)
            inode_put(inode);
        inode_cache_shrink();
    }
}

KTEST(vfs, lookups_and_evictions_at_once_find_whole_inodes)
{
    struct task *tasks[RACERS];
    struct place place;

    KASSERT(place_enter(&place));
    racing_super = place.image.mounted;
    racing_errors = 0;
    for (u32 i = 0; i < RACERS; i++)
        tasks[i] = task_create("racer", racer, NULL, -1);
    for (u32 i = 0; i < RACERS; i++)
        if (KEXPECT(tasks[i] != NULL))
            task_join(tasks[i]);
    KEXPECT_EQ(racing_errors, 0);
    place_leave(&place);
}

KTEST(vfs, an_open_file_knows_its_path_and_mode)
{
    struct place place;
    struct file *file;
    char path[64];
    int error;

    KASSERT(place_enter(&place));
    file = file_open(NULL, NULL, "/t/dir/../short", O_RDONLY | O_CLOEXEC, 0, &error);
    if (KEXPECT(file != NULL)) {
        file->mapped.path(&file->mapped, path, sizeof(path));
        KEXPECT_STREQ(path, "/t/dir/inner");
        KEXPECT(file->mapped.can_read && !file->mapped.can_write);
        KEXPECT_EQ(file_write(file, 0, 1, NULL), -EBADF);
        KEXPECT_EQ(file_ioctl(file, 0x5401, 0), -ENOTTY);
        KEXPECT_EQ(file_iterate(file, NULL, NULL), -ENOTDIR);
        file_hold(file);
        file_put(file);
        file_put(file);
    }
    file = file_open(NULL, NULL, "/t/short", O_PATH | O_NOFOLLOW, 0, &error);
    if (KEXPECT(file != NULL)) {
        KEXPECT(inode_is(file->inode, S_IFLNK));
        KEXPECT_EQ(file_read(file, 0, 1, NULL), -EBADF);
        KEXPECT_EQ(file_seek(file, 0, SEEK_SET), -EBADF);
        file_put(file);
    }
    place_leave(&place);
}

KTEST(vfs, a_long_path_is_cut_at_its_front)
{
    char path[60 * 8 + 1];
    struct place place;
    struct file *file;
    int error;

    for (u32 i = 0; i < 60; i++)
        memcpy(path + i * 8, "/0123456", 9);
    KASSERT(place_enter(&place));
    file = file_open_inode(place.image.mounted->root, O_RDONLY, path, &error);
    if (KEXPECT(file != NULL)) {
        KEXPECT_EQ(strlen(file->path), sizeof(file->path) - 1);
        KEXPECT(string_ends_with(path, file->path));
        file_put(file);
    }
    place_leave(&place);
}

KTEST(vfs, the_root_image_has_its_files)
{
    char text[64];
    struct file *file;
    int error;

    if (!vfs_root())
        KTEST_SKIP("no root file system");
    file = file_open(NULL, NULL, "/data/small.txt", O_RDONLY, 0, &error);
    if (!file)
        KTEST_SKIP("no /data/small.txt");
    KEXPECT_EQ(file_read_all_kernel(file, 10, text, 15), 15);
    KEXPECT_EQ(memcmp(text, "small text file", 15), 0);
    file_put(file);
}
