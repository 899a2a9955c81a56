/*
 * Renaming: the one change that locks two directories.
 *
 * One rename at a time (rename_lock, outermost), so no directory moves while two of them are
 * compared and locked: the one above first, unrelated ones in the order of their addresses. Since
 * all others lock only a directory below its parent, no circle can close. A directory that is
 * replaced is locked last; it is never above one of the two, for then it is not empty.
 */
#include "fs/names.h"

#include "lib/errno.h"

static SLEEP_LOCK_CLASS(rename_lock_class, "rename");
static struct mutex rename_lock = MUTEX_INIT(rename_lock, &rename_lock_class);

static bool is_below(struct inode *dir, const struct inode *ancestor)
{
    return dir->ops->is_below(dir, ancestor);
}

static void lock_both(struct inode *a, struct inode *b)
{
    if (a == b) {
        rwsem_write_lock(&a->rwlock);
        return;
    }
    if (is_below(a, b) || (!is_below(b, a) && a > b)) {
        struct inode *first = b;

        b = a;
        a = first;
    }
    rwsem_write_lock(&a->rwlock);
    rwsem_write_lock(&b->rwlock);
}

static void unlock_both(struct inode *a, struct inode *b)
{
    rwsem_write_unlock(&a->rwlock);
    if (a != b)
        rwsem_write_unlock(&b->rwlock);
}

static int check_kinds(const struct name_place *from, const struct name_place *to, u32 flags)
{
    if (from->kind != NAME_PLAIN)
        return -EBUSY;
    if (to->kind != NAME_PLAIN)
        return flags & RENAME_NOREPLACE ? -EEXIST : -EBUSY;
    if (from->dir->super != to->dir->super)
        return -EXDEV;
    if (vfs_mount_at(from->full) || vfs_mount_at(to->full))
        return -EBUSY;
    return 0;
}

/* What moves onto what? Both directories are locked. */
static int check_types(const struct inode_rename *r, const struct name_place *from,
                       const struct name_place *to)
{
    bool is_dir = inode_is_dir(r->moved);

    if (!is_dir && (from->has_slash || (to->has_slash && !r->exchange)))
        return -ENOTDIR;
    if (is_dir && is_below(r->to_dir, r->moved))
        return -EINVAL;
    if (!r->replaced)
        return 0;
    if (r->exchange)
        return inode_is_dir(r->replaced) && is_below(r->from_dir, r->replaced) ? -EINVAL : 0;
    if (inode_is_dir(r->replaced) && is_below(r->from_dir, r->replaced))
        return -ENOTEMPTY;
    if (is_dir && !inode_is_dir(r->replaced))
        return -ENOTDIR;
    return !is_dir && inode_is_dir(r->replaced) ? -EISDIR : 0;
}

/* Looks both names up again. => 0 with references in r; -ENOENT, -EEXIST */
static int find_both(struct inode_rename *r, u32 flags)
{
    int error = r->from_dir->ops->lookup(r->from_dir, r->from_name, r->from_len, &r->moved);

    if (error) {
        r->moved = NULL;
        return error;
    }
    error = r->to_dir->ops->lookup(r->to_dir, r->to_name, r->to_len, &r->replaced);
    if (error) {
        r->replaced = NULL;
        return error == -ENOENT && !r->exchange ? 0 : error;
    }
    return flags & RENAME_NOREPLACE ? -EEXIST : 0;
}

static int rename_locked(struct inode_rename *r, const struct name_place *from,
                         const struct name_place *to)
{
    bool locks_replaced = r->replaced && inode_is_dir(r->replaced) && !r->exchange;
    int error = check_types(r, from, to);

    if (error || r->moved == r->replaced) /* two names of one file: nothing to do */
        return error;
    if (locks_replaced)
        rwsem_write_lock(&r->replaced->rwlock);
    error = r->from_dir->ops->rename(r);
    if (locks_replaced)
        rwsem_write_unlock(&r->replaced->rwlock);
    return error;
}

static int rename_places(const struct name_place *from, const struct name_place *to, u32 flags)
{
    struct inode_rename r = {
        .from_dir = from->dir,
        .to_dir = to->dir,
        .from_name = from->name,
        .to_name = to->name,
        .from_len = from->len,
        .to_len = to->len,
        .exchange = flags & RENAME_EXCHANGE,
    };
    int error = check_kinds(from, to, flags);

    if (error)
        return error;
    if (!from->dir->ops || !from->dir->ops->rename)
        return -EROFS;
    mutex_lock(&rename_lock);
    lock_both(r.from_dir, r.to_dir);
    error = find_both(&r, flags);
    if (!error)
        error = rename_locked(&r, from, to);
    unlock_both(r.from_dir, r.to_dir);
    mutex_unlock(&rename_lock);
    if (r.moved)
        inode_put(r.moved);
    if (r.replaced)
        inode_put(r.replaced);
    return error;
}

int vfs_rename(const struct rename_path *from, const struct rename_path *to, u32 flags)
{
    struct name_place from_place, to_place;
    int error;

    if (flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE) ||
        flags == (RENAME_NOREPLACE | RENAME_EXCHANGE))
        return -EINVAL;
    error = vfs_lookup_parent(from->base, from->base_path, from->path, &from_place);
    if (error)
        return error;
    error = vfs_lookup_parent(to->base, to->base_path, to->path, &to_place);
    if (!error) {
        error = rename_places(&from_place, &to_place, flags);
        name_place_put(&to_place);
    }
    name_place_put(&from_place);
    return error;
}
