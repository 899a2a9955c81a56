/*
 * Working directory and umask.
 */
#include "kernel/task/fs_context.h"

#include "kernel/sync/atomic.h"
#include "lib/string.h"
#include "mm/core/slab.h"

#define DEFAULT_UMASK 022

static LOCK_CLASS(fs_context_class, "fs context");

static struct fs_context *create(struct inode *dir, const char *path, u32 umask)
{
    struct fs_context *fs = kzalloc(sizeof(*fs));
    if (!fs)
        return NULL;
    fs->refs = 1;
    fs->umask = umask;
    fs->working_dir = dir;
    spin_init(&fs->lock, &fs_context_class);
    strlcpy(fs->working_path, path, sizeof(fs->working_path));
    return fs;
}

struct fs_context *fs_context_create(void)
{
    struct inode *root = vfs_root()->root;
    struct fs_context *fs = create(root, "/", DEFAULT_UMASK);
    if (fs)
        inode_hold(root);
    return fs;
}

struct fs_context *fs_context_copy(struct fs_context *from)
{
    struct fs_context *fs = create(NULL, "", READ_ONCE(from->umask));
    if (fs)
        fs->working_dir = fs_context_dir(from, fs->working_path);
    return fs;
}

void fs_context_get(struct fs_context *fs)
{
    atomic_add(&fs->refs, 1);
}

void fs_context_put(struct fs_context *fs)
{
    if (atomic_sub(&fs->refs, 1) > 0)
        return;
    inode_put(fs->working_dir);
    kfree(fs);
}

struct inode *fs_context_dir(struct fs_context *fs, char *path)
{
    spin_lock(&fs->lock);
    struct inode *dir = fs->working_dir;
    inode_hold(dir);
    if (path)
        strlcpy(path, fs->working_path, PATH_MAX_BYTES);
    spin_unlock(&fs->lock);
    return dir;
}

void fs_context_set_dir(struct fs_context *fs, struct inode *dir, const char *path)
{
    spin_lock(&fs->lock);
    struct inode *old = fs->working_dir;
    fs->working_dir = dir;
    strlcpy(fs->working_path, path, sizeof(fs->working_path));
    spin_unlock(&fs->lock);
    inode_put(old);
}
