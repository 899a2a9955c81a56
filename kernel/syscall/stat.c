/*
 * System calls that tell what a file is: stat and its like, access, readlink, statfs.
 */
#include "kernel/syscall/path.h"

/* struct stat of Linux x86-64. */
struct stat64 {
    u64 dev, ino, nlink;
    u32 mode, uid, gid, pad0;
    u64 rdev;
    s64 size, blksize, blocks;
    s64 atime, atime_ns, mtime, mtime_ns, ctime, ctime_ns;
    s64 unused[3];
};
_Static_assert(sizeof(struct stat64) == 144, "struct stat of x86-64");

static u32 block_size_of(const struct inode *inode)
{
    return inode->super ? MAX(inode->super->block_bytes, 512u) : PAGE_SIZE;
}

static int copy_stat(struct inode *inode, u64 user)
{
    struct stat64 st = {
        .dev = inode->super ? inode->super->dev : 0,
        .ino = inode->ino,
        .nlink = inode->nlink,
        .mode = inode->mode,
        .uid = inode->uid,
        .gid = inode->gid,
        .rdev = inode->rdev,
        .size = READ_ONCE(inode->cache.size_bytes),
        .blksize = block_size_of(inode),
        .blocks = inode->blocks_512,
        .atime = inode->atime,
        .atime_ns = inode->atime_ns,
        .mtime = inode->mtime,
        .mtime_ns = inode->mtime_ns,
        .ctime = inode->ctime,
        .ctime_ns = inode->ctime_ns,
    };
    return copy_to_user(user, &st, sizeof(st));
}

static s64 stat_at(u64 dirfd, u64 user_path, u64 user_stat, u32 flags)
{
    struct inode *inode;
    if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_SYNC))
        return -EINVAL;
    int error = syscall_lookup(dirfd, user_path, flags, &inode);
    if (error)
        return error;
    error = copy_stat(inode, user_stat);
    inode_put(inode);
    return error;
}

s64 sys_stat(const u64 *a)
{
    return stat_at((u64)AT_FDCWD, a[0], a[1], 0);
}

s64 sys_lstat(const u64 *a)
{
    return stat_at((u64)AT_FDCWD, a[0], a[1], AT_SYMLINK_NOFOLLOW);
}

s64 sys_newfstatat(const u64 *a)
{
    return stat_at(a[0], a[1], a[2], a[3]);
}

s64 sys_fstat(const u64 *a)
{
    struct file *file = syscall_file_or_path(a[0]);
    if (!file)
        return -EBADF;
    int error = copy_stat(file->inode, a[1]);
    file_put(file);
    return error;
}

/* ---- statx ---- */

struct statx_time {
    s64 seconds;
    u32 ns;
    s32 pad;
};

/* struct statx of Linux. */
struct statx {
    u32 mask, blksize;
    u64 attributes;
    u32 nlink, uid, gid;
    u16 mode, pad0;
    u64 ino, size, blocks, attributes_mask;
    struct statx_time atime, btime, ctime, mtime;
    u32 rdev_major, rdev_minor, dev_major, dev_minor;
    u64 spare[14];
};
_Static_assert(sizeof(struct statx) == 256, "struct statx");

#define STATX_BASIC_STATS 0x7ffu
#define STATX_RESERVED    0x80000000u

/* The 32-bit form of a device number: mmmM MMmm, M for major. */
static u32 major_of(u64 dev)
{
    return dev >> 8 & 0xfff;
}

static u32 minor_of(u64 dev)
{
    return (dev & 0xff) | (dev >> 12 & 0xfff00);
}

static int copy_statx(struct inode *inode, u64 user)
{
    u64 dev = inode->super ? inode->super->dev : 0;
    struct statx st = {
        .mask = STATX_BASIC_STATS,
        .blksize = block_size_of(inode),
        .nlink = inode->nlink,
        .uid = inode->uid,
        .gid = inode->gid,
        .mode = inode->mode,
        .ino = inode->ino,
        .size = READ_ONCE(inode->cache.size_bytes),
        .blocks = inode->blocks_512,
        .atime = {.seconds = inode->atime, .ns = inode->atime_ns},
        .mtime = {.seconds = inode->mtime, .ns = inode->mtime_ns},
        .ctime = {.seconds = inode->ctime, .ns = inode->ctime_ns},
        .rdev_major = major_of(inode->rdev),
        .rdev_minor = minor_of(inode->rdev),
        .dev_major = major_of(dev),
        .dev_minor = minor_of(dev),
    };
    return copy_to_user(user, &st, sizeof(st));
}

s64 sys_statx(const u64 *a)
{
    struct inode *inode;
    u32 flags = a[2];
    if (((u32)a[3] & STATX_RESERVED) || (flags & AT_STATX_SYNC) == AT_STATX_SYNC ||
        (flags & ~(AT_STATX_SYNC | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH)))
        return -EINVAL;
    int error = syscall_lookup(a[0], a[1], flags, &inode);
    if (error)
        return error;
    error = copy_statx(inode, a[4]);
    inode_put(inode);
    return error;
}

/* ---- access and readlink ---- */

#define ACCESS_EXEC  1u
#define ACCESS_WRITE 2u
#define ACCESS_ALL   7u

/* Everybody is root: what exists can be read; written unless its file system cannot; executed if
 * anybody may. */
static s64 access_at(u64 dirfd, u64 user_path, u32 mode, u32 flags)
{
    struct inode *inode;
    if ((mode & ~ACCESS_ALL) || (flags & ~(AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)))
        return -EINVAL;
    int error = syscall_lookup(dirfd, user_path, flags & ~AT_EACCESS, &inode);
    if (error)
        return error;
    bool is_special = inode_is(inode, S_IFCHR) || inode_is(inode, S_IFBLK) ||
                      inode_is(inode, S_IFIFO) || inode_is(inode, S_IFSOCK);
    if ((mode & ACCESS_WRITE) && !is_special && inode->super && inode->super->is_read_only)
        error = -EROFS;
    else if ((mode & ACCESS_EXEC) && !inode_is_dir(inode) && !(inode->mode & 0111))
        error = -EACCES;
    inode_put(inode);
    return error;
}

s64 sys_access(const u64 *a)
{
    return access_at((u64)AT_FDCWD, a[0], a[1], 0);
}

s64 sys_faccessat(const u64 *a)
{
    return access_at(a[0], a[1], a[2], 0);
}

s64 sys_faccessat2(const u64 *a)
{
    return access_at(a[0], a[1], a[2], a[3]);
}

static s64 readlink_inode(struct inode *inode, u64 buf, s64 size)
{
    if (!inode_is(inode, S_IFLNK) || !inode->ops->readlink)
        return -EINVAL;
    char *target = kmalloc(PATH_MAX_BYTES);
    if (!target)
        return -ENOMEM;
    s64 result = inode->ops->readlink(inode, target, PATH_MAX_BYTES);
    if (result > 0) {
        result = MIN(result, size);
        if (copy_to_user(buf, target, result))
            result = -EFAULT;
    }
    kfree(target);
    return result;
}

static bool is_empty(u64 user_path)
{
    char first;
    return copy_from_user(&first, user_path, 1) == 0 && first == '\0';
}

static s64 readlink_at(u64 dirfd, u64 user_path, u64 buf, s64 size)
{
    struct inode *inode;
    if (size <= 0)
        return -EINVAL;
    /* An empty path is a link that was opened itself. */
    u32 empty = (int)dirfd == AT_FDCWD ? 0 : AT_EMPTY_PATH;
    s64 result = syscall_lookup(dirfd, user_path, AT_SYMLINK_NOFOLLOW | empty, &inode);
    if (result)
        return result;
    bool is_link = inode_is(inode, S_IFLNK);
    result = is_link || !is_empty(user_path) ? readlink_inode(inode, buf, size) : -ENOENT;
    inode_put(inode);
    return result;
}

s64 sys_readlink(const u64 *a)
{
    return readlink_at((u64)AT_FDCWD, a[0], a[1], (int)a[2]);
}

s64 sys_readlinkat(const u64 *a)
{
    return readlink_at(a[0], a[1], a[2], (int)a[3]);
}

/* ---- statfs ---- */

/* struct statfs of Linux x86-64. */
struct statfs64 {
    s64 type, bsize;
    u64 blocks, bfree, bavail, files, ffree;
    s32 fsid[2];
    s64 namelen, frsize, flags, spare[4];
};
_Static_assert(sizeof(struct statfs64) == 120, "struct statfs of x86-64");

#define STATFS_FLAG_READ_ONLY 1

/* f_type by the name of the file system (statfs(2)). */
static s64 magic_of(const char *type)
{
    static const struct {
        const char *type;
        s64 magic;
    } table[] = {
        {"ext2", 0xef53},      {"tmpfs", 0x01021994}, {"proc", 0x9fa0},
        {"sysfs", 0x62656572}, {"devfs", 0x01021994}, {"pipefs", 0x50495045},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(table); i++)
        if (strcmp(table[i].type, type) == 0)
            return table[i].magic;
    return 0;
}

static int copy_statfs(struct inode *inode, u64 user)
{
    struct super_block *sb = inode->super;
    struct statfs64 st = {.namelen = NAME_MAX_BYTES, .bsize = PAGE_SIZE, .frsize = PAGE_SIZE};
    if (sb) {
        st.type = magic_of(sb->type);
        st.bsize = st.frsize = sb->block_bytes ? sb->block_bytes : PAGE_SIZE;
        st.flags = sb->is_read_only ? STATFS_FLAG_READ_ONLY : 0;
        if (sb->statfs)
            sb->statfs(sb, &st.blocks, &st.bfree, &st.files, &st.ffree);
        st.bavail = st.bfree;
    }
    return copy_to_user(user, &st, sizeof(st));
}

s64 sys_statfs(const u64 *a)
{
    struct inode *inode;
    int error = syscall_lookup((u64)AT_FDCWD, a[0], 0, &inode);
    if (error)
        return error;
    error = copy_statfs(inode, a[1]);
    inode_put(inode);
    return error;
}

s64 sys_fstatfs(const u64 *a)
{
    struct file *file = syscall_file_or_path(a[0]);
    if (!file)
        return -EBADF;
    int error = copy_statfs(file->inode, a[1]);
    file_put(file);
    return error;
}
