/*
 * System calls that make, remove and move names.
 */
#include "fs/names.h"

#include "kernel/syscall/path.h"

#define MODE_BITS 07777u

static u32 masked(u32 mode)
{
    return mode & ~process_current()->fs->umask & MODE_BITS;
}

static s64 create_at(u64 dirfd, u64 user_path, const struct inode_new *what)
{
    struct syscall_at at;
    int error = syscall_at_begin(&at, dirfd, user_path);
    if (error)
        return error;
    error = vfs_create(at.dir, at.dir_path, at.path, what, NULL);
    syscall_at_end(&at);
    return error;
}

static s64 mkdir_at(u64 dirfd, u64 user_path, u32 mode)
{
    struct inode_new what = {.mode = S_IFDIR | masked(mode & 01777)};
    return create_at(dirfd, user_path, &what);
}

s64 sys_mkdir(const u64 *a)
{
    return mkdir_at((u64)AT_FDCWD, a[0], a[1]);
}

s64 sys_mkdirat(const u64 *a)
{
    return mkdir_at(a[0], a[1], a[2]);
}

static s64 mknod_at(u64 dirfd, u64 user_path, u32 mode, u32 dev)
{
    struct inode_new what = {.mode = (mode & S_IFMT) | masked(mode), .rdev = dev};
    switch (mode & S_IFMT) {
    case 0: what.mode |= S_IFREG; break;
    case S_IFREG:
    case S_IFIFO:
    case S_IFSOCK:
    case S_IFCHR:
    case S_IFBLK: break;
    case S_IFDIR: return -EPERM;
    default: return -EINVAL;
    }
    return create_at(dirfd, user_path, &what);
}

s64 sys_mknod(const u64 *a)
{
    return mknod_at((u64)AT_FDCWD, a[0], a[1], a[2]);
}

s64 sys_mknodat(const u64 *a)
{
    return mknod_at(a[0], a[1], a[2], a[3]);
}

static s64 symlink_at(u64 user_target, u64 dirfd, u64 user_path)
{
    char *target = NULL;
    s64 error = syscall_path(user_target, &target);
    if (error)
        return error;
    struct inode_new what = {.mode = S_IFLNK | 0777, .target = target};
    error = target[0] ? create_at(dirfd, user_path, &what) : -ENOENT;
    kfree(target);
    return error;
}

s64 sys_symlink(const u64 *a)
{
    return symlink_at(a[0], (u64)AT_FDCWD, a[1]);
}

s64 sys_symlinkat(const u64 *a)
{
    return symlink_at(a[0], a[1], a[2]);
}

/* ---- Removing ---- */

static s64 unlink_at(u64 dirfd, u64 user_path, bool is_dir)
{
    struct syscall_at at;
    int error = syscall_at_begin(&at, dirfd, user_path);
    if (error)
        return error;
    error = vfs_unlink(at.dir, at.dir_path, at.path, is_dir);
    syscall_at_end(&at);
    return error;
}

s64 sys_unlink(const u64 *a)
{
    return unlink_at((u64)AT_FDCWD, a[0], false);
}

s64 sys_rmdir(const u64 *a)
{
    return unlink_at((u64)AT_FDCWD, a[0], true);
}

s64 sys_unlinkat(const u64 *a)
{
    return (u32)a[2] & ~AT_REMOVEDIR ? -EINVAL : unlink_at(a[0], a[1], a[2] & AT_REMOVEDIR);
}

/* ---- Two paths ---- */

static s64 link_at(u64 old_dirfd, u64 old_path, u64 new_dirfd, u64 new_path, u32 flags)
{
    struct syscall_at at;
    struct inode *inode;
    if (flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH))
        return -EINVAL;
    u32 how = (flags & AT_EMPTY_PATH) | (flags & AT_SYMLINK_FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW);
    int error = syscall_lookup(old_dirfd, old_path, how, &inode);
    if (error)
        return error;
    error = syscall_at_begin(&at, new_dirfd, new_path);
    if (!error) {
        error = vfs_link(inode, at.dir, at.dir_path, at.path);
        syscall_at_end(&at);
    }
    inode_put(inode);
    return error;
}

s64 sys_link(const u64 *a)
{
    return link_at((u64)AT_FDCWD, a[0], (u64)AT_FDCWD, a[1], 0);
}

s64 sys_linkat(const u64 *a)
{
    return link_at(a[0], a[1], a[2], a[3], a[4]);
}

#define RENAME_FLAGS 7u /* NOREPLACE, EXCHANGE, WHITEOUT: what Linux knows */

static s64 rename_at(u64 old_dirfd, u64 old_path, u64 new_dirfd, u64 new_path, u32 flags)
{
    struct syscall_at from, to;
    if (flags & ~RENAME_FLAGS)
        return -EINVAL;
    int error = syscall_at_begin(&from, old_dirfd, old_path);
    if (error)
        return error;
    error = syscall_at_begin(&to, new_dirfd, new_path);
    if (!error) {
        error = vfs_rename(&(struct rename_path){from.dir, from.dir_path, from.path},
                           &(struct rename_path){to.dir, to.dir_path, to.path}, flags);
        syscall_at_end(&to);
    }
    syscall_at_end(&from);
    return error;
}

s64 sys_rename(const u64 *a)
{
    return rename_at((u64)AT_FDCWD, a[0], (u64)AT_FDCWD, a[1], 0);
}

s64 sys_renameat(const u64 *a)
{
    return rename_at(a[0], a[1], a[2], a[3], 0);
}

s64 sys_renameat2(const u64 *a)
{
    return rename_at(a[0], a[1], a[2], a[3], a[4]);
}
