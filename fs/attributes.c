/*
 * What a file is beside its name and bytes: size, permissions, owner, times. Everybody is root, so
 * only the file system can refuse.
 */
#include "fs/names.h"

#include "fs/file_limits.h"
#include "fs/inode_time.h"
#include "lib/errno.h"

#define PERMISSION_BITS 07777u
#define SET_UID         04000u
#define SET_GID_EXEC    02010u /* without the group's execute bit, set-gid means something else */

static bool is_read_only(const struct inode *inode)
{
    return inode->super && inode->super->is_read_only;
}

int vfs_set_size(struct inode *inode, u64 size_bytes)
{
    int error;

    if (inode_is_dir(inode))
        return -EISDIR;
    if (!inode_is(inode, S_IFREG))
        return -EINVAL;
    if (is_read_only(inode))
        return -EROFS;
    if (!inode->ops || !inode->ops->set_size)
        return -EPERM;
    rwsem_write_lock(&inode->rwlock);
    error = file_limit_size(inode->cache.size_bytes, size_bytes);
    if (!error)
        error = inode->ops->set_size(inode, size_bytes);
    rwsem_write_unlock(&inode->rwlock);
    return error;
}

int vfs_allocate(struct inode *inode, u32 mode, s64 offset, s64 len)
{
    s64 end;
    int error;

    if (offset < 0 || len <= 0)
        return -EINVAL;
    if (mode & ~(FALLOC_KEEP_SIZE | FALLOC_PUNCH_HOLE) || mode == FALLOC_PUNCH_HOLE)
        return -EOPNOTSUPP; /* a hole never changes the size */
    if (inode_is(inode, S_IFIFO))
        return -ESPIPE;
    if (inode_is_dir(inode))
        return -EISDIR;
    if (!inode_is(inode, S_IFREG))
        return -ENODEV;
    if (__builtin_add_overflow(offset, len, &end))
        return -EFBIG;
    if (is_read_only(inode))
        return -EROFS;
    if (!inode->ops || !inode->ops->allocate)
        return -EOPNOTSUPP;
    rwsem_write_lock(&inode->rwlock);
    error = mode ? 0 : file_limit_size(inode->cache.size_bytes, end);
    if (!error)
        error = inode->ops->allocate(inode, mode, offset, len);
    rwsem_write_unlock(&inode->rwlock);
    return error;
}

int vfs_set_mode(struct inode *inode, u32 permissions)
{
    if (is_read_only(inode))
        return -EROFS;
    if (inode_is(inode, S_IFLNK))
        return -EOPNOTSUPP;
    rwsem_write_lock(&inode->rwlock);
    inode->mode = (inode->mode & S_IFMT) | (permissions & PERMISSION_BITS);
    inode_touch(inode, INODE_CTIME);
    rwsem_write_unlock(&inode->rwlock);
    return 0;
}

int vfs_set_owner(struct inode *inode, u32 uid, u32 gid)
{
    if (is_read_only(inode))
        return -EROFS;
    rwsem_write_lock(&inode->rwlock);
    if (uid != ~0u)
        inode->uid = uid;
    if (gid != ~0u)
        inode->gid = gid;
    if (!inode_is_dir(inode)) { /* what runs as its owner must not run as another */
        inode->mode &= ~SET_UID;
        if ((inode->mode & SET_GID_EXEC) == SET_GID_EXEC)
            inode->mode &= ~(SET_GID_EXEC & ~0777u);
    }
    inode_touch(inode, INODE_CTIME);
    rwsem_write_unlock(&inode->rwlock);
    return 0;
}

int vfs_set_times(struct inode *inode, const struct inode_times *times)
{
    if (is_read_only(inode))
        return -EROFS;
    rwsem_write_lock(&inode->rwlock);
    if (times->set_atime) {
        inode->atime = times->atime;
        inode->atime_ns = times->atime_ns;
    }
    if (times->set_mtime) {
        inode->mtime = times->mtime;
        inode->mtime_ns = times->mtime_ns;
    }
    inode_touch(inode, INODE_CTIME);
    rwsem_write_unlock(&inode->rwlock);
    return 0;
}
