/*
 * Making, removing and linking names. Renaming is in fs/rename.c, attributes are in
 * fs/attributes.c.
 *
 * Every change follows one order: walk to the directory, lock it exclusively, look the name up
 * again under that lock, check, let the file system do it. A directory that is removed is locked
 * below its parent, so that nothing is made in it meanwhile.
 */
#include "fs/names.h"

#include "lib/errno.h"

/* Under dir->rwlock. => 0 with a reference; -ENOENT */
static int find(struct inode *dir, const char *name, size_t len, struct inode **out)
{
    return dir->ops && dir->ops->lookup ? dir->ops->lookup(dir, name, len, out) : -ENOTDIR;
}

int vfs_create_in(struct inode *dir, const char *name, size_t len, const struct inode_new *what,
                  bool *is_new, struct inode **out)
{
    int error;

    *is_new = false;
    rwsem_write_lock(&dir->rwlock);
    error = find(dir, name, len, out);
    if (error == -ENOENT) {
        error = dir->ops->create ? dir->ops->create(dir, name, len, what, out) : -EROFS;
        *is_new = !error;
    }
    rwsem_write_unlock(&dir->rwlock);
    return error;
}

int vfs_create_unnamed(struct inode *dir, const struct inode_new *what, struct inode **out)
{
    int error = -EOPNOTSUPP;

    if (!inode_is_dir(dir))
        return -ENOTDIR;
    if (dir->super && dir->super->is_read_only)
        return -EROFS;
    rwsem_write_lock(&dir->rwlock);
    if (dir->ops && dir->ops->create_unnamed)
        error = dir->ops->create_unnamed(dir, what, out);
    rwsem_write_unlock(&dir->rwlock);
    return error;
}

static int create_at(const struct name_place *place, const struct inode_new *what,
                     struct inode **out)
{
    struct inode *inode;
    bool is_new;
    int error;

    if (place->kind != NAME_PLAIN || vfs_mount_at(place->full))
        return -EEXIST;
    if (place->has_slash && (what->mode & S_IFMT) != S_IFDIR)
        return -ENOENT;
    error = vfs_create_in(place->dir, place->name, place->len, what, &is_new, &inode);
    if (error)
        return error;
    if (!is_new || !out)
        inode_put(inode);
    else
        *out = inode;
    return is_new ? 0 : -EEXIST;
}

int vfs_create(struct inode *base, const char *base_path, const char *path,
               const struct inode_new *what, struct inode **out)
{
    struct name_place place;
    int error = vfs_lookup_parent(base, base_path, path, &place);

    if (error)
        return error;
    error = create_at(&place, what, out);
    name_place_put(&place);
    return error;
}

/* ---- Removing ---- */

static int check_unlink(const struct name_place *place, const struct inode *inode, bool wants_dir)
{
    if (wants_dir)
        return inode_is_dir(inode) ? 0 : -ENOTDIR;
    if (inode_is_dir(inode))
        return -EISDIR;
    return place->has_slash ? -ENOTDIR : 0;
}

/* A name that is none. */
static int check_kind(enum name_kind kind, bool wants_dir)
{
    static const int rmdir_errors[] = {0, -EBUSY, -EINVAL, -ENOTEMPTY};

    if (kind == NAME_PLAIN)
        return 0;
    return wants_dir ? rmdir_errors[kind] : -EISDIR;
}

/* dir->rwlock held exclusive. */
static int unlink_locked(const struct name_place *place, struct inode *inode, bool wants_dir)
{
    struct inode *dir = place->dir;
    int error = check_unlink(place, inode, wants_dir);

    if (error)
        return error;
    if (wants_dir)
        rwsem_write_lock(&inode->rwlock);
    error = dir->ops->unlink(dir, place->name, place->len, inode);
    if (wants_dir)
        rwsem_write_unlock(&inode->rwlock);
    return error;
}

static int unlink_at(const struct name_place *place, bool wants_dir)
{
    struct inode *dir = place->dir, *inode = NULL;
    int error = check_kind(place->kind, wants_dir);

    if (error)
        return error;
    if (vfs_mount_at(place->full))
        return wants_dir ? -EBUSY : -EISDIR;
    if (!dir->ops || !dir->ops->unlink)
        return -EROFS;
    rwsem_write_lock(&dir->rwlock);
    error = find(dir, place->name, place->len, &inode);
    if (!error)
        error = unlink_locked(place, inode, wants_dir);
    rwsem_write_unlock(&dir->rwlock);
    if (inode)
        inode_put(inode); /* perhaps the last one: its pages go, with no lock held */
    return error;
}

int vfs_unlink(struct inode *base, const char *base_path, const char *path, bool wants_dir)
{
    struct name_place place;
    int error = vfs_lookup_parent(base, base_path, path, &place);

    if (error)
        return error;
    error = unlink_at(&place, wants_dir);
    name_place_put(&place);
    return error;
}

/* ---- Linking ---- */

static int link_at(const struct name_place *place, struct inode *inode)
{
    struct inode *dir = place->dir, *found;
    int error;

    if (place->kind != NAME_PLAIN || vfs_mount_at(place->full))
        return -EEXIST;
    if (dir->super != inode->super)
        return -EXDEV;
    if (inode_is_dir(inode))
        return -EPERM;
    rwsem_write_lock(&dir->rwlock);
    error = find(dir, place->name, place->len, &found);
    if (error == -ENOENT) {
        found = NULL;
        error = place->has_slash ? -ENOENT : 0;
    } else if (!error) {
        error = -EEXIST;
    }
    if (!error)
        error = dir->ops->link ? dir->ops->link(dir, place->name, place->len, inode) : -EROFS;
    rwsem_write_unlock(&dir->rwlock);
    if (error == -EEXIST)
        inode_put(found);
    return error;
}

int vfs_link(struct inode *inode, struct inode *base, const char *base_path, const char *path)
{
    struct name_place place;
    int error = vfs_lookup_parent(base, base_path, path, &place);

    if (error)
        return error;
    error = link_at(&place, inode);
    name_place_put(&place);
    return error;
}
