/*
 * The mount table: which file system stands at which path.
 *
 * It is small, written at boot (and by tests), and searched by whole paths: a path walk asks at
 * every step whether something is mounted at the path it has come to.
 */
#include "fs/vfs.h"

#include "kernel/log/log.h"
#include "lib/errno.h"
#include "lib/string.h"

#define MOUNTS_MAX       16
#define MOUNT_PATH_BYTES 64

struct mount {
    char path[MOUNT_PATH_BYTES];
    struct super_block *super; /* NULL: the slot is free */
};

static LOCK_CLASS(mount_lock_class, "mounts");
static struct spinlock mount_lock = SPINLOCK_INIT(&mount_lock_class);
static struct mount mounts[MOUNTS_MAX]; /* mount_lock */

/* path NULL: a free slot */
static struct mount *find_locked(const char *path)
{
    for (struct mount *m = mounts; m < mounts + MOUNTS_MAX; m++)
        if (path ? m->super && strcmp(m->path, path) == 0 : !m->super)
            return m;
    return NULL;
}

int vfs_mount(const char *path, struct super_block *super)
{
    struct mount *slot;
    int error = 0;

    if (path[0] != '/' || strlen(path) >= MOUNT_PATH_BYTES)
        return path[0] == '/' ? -ENAMETOOLONG : -EINVAL;
    spin_lock(&mount_lock);
    slot = find_locked(NULL);
    if (find_locked(path))
        error = -EBUSY;
    else if (!slot)
        error = -ENOSPC;
    if (!error) {
        string_copy(slot->path, path, sizeof(slot->path));
        slot->super = super;
    }
    spin_unlock(&mount_lock);
    if (!error)
        log_debug("mounted %s at %s", super->type, path);
    return error;
}

int vfs_unmount(const char *path)
{
    struct mount *slot;

    spin_lock(&mount_lock);
    slot = find_locked(path);
    if (slot)
        slot->super = NULL;
    spin_unlock(&mount_lock);
    return slot ? 0 : -EINVAL;
}

struct super_block *vfs_mount_at(const char *path)
{
    struct super_block *super = NULL;
    struct mount *slot;

    spin_lock(&mount_lock);
    slot = find_locked(path);
    if (slot)
        super = slot->super;
    spin_unlock(&mount_lock);
    return super;
}

struct super_block *vfs_root(void)
{
    return vfs_mount_at("/");
}

void vfs_for_each_mount(void (*fn)(const char *path, const struct super_block *super, void *ctx),
                        void *ctx)
{
    struct mount *root;

    spin_lock(&mount_lock);
    root = find_locked("/");
    if (root)
        fn(root->path, root->super, ctx);
    for (struct mount *m = mounts; m < mounts + MOUNTS_MAX; m++)
        if (m->super && m != root)
            fn(m->path, m->super, ctx);
    spin_unlock(&mount_lock);
}
