/*
 * System calls that change what a file is beside its bytes: size, permissions, owner, times.
 */
#include "fs/names.h"

#include "fs/inode_time.h"
#include "kernel/syscall/path.h"

/* ---- Size ---- */

s64 sys_truncate(const u64 *a)
{
    struct inode *inode;
    if ((s64)a[1] < 0)
        return -EINVAL;
    int error = syscall_lookup((u64)AT_FDCWD, a[0], 0, &inode);
    if (error)
        return error;
    error = vfs_set_size(inode, a[1]);
    inode_put(inode);
    return error;
}

s64 sys_ftruncate(const u64 *a)
{
    if ((s64)a[1] < 0)
        return -EINVAL;
    struct file *file = syscall_file(a[0]);
    if (!file)
        return -EBADF;
    s64 error = -EINVAL;
    if (file->flags & O_PATH)
        error = -EBADF;
    else if (file->mapped.can_write && inode_is(file->inode, S_IFREG))
        error = vfs_set_size(file->inode, a[1]);
    file_put(file);
    return error;
}

#define FALLOC_KNOWN 0xffu

s64 sys_fallocate(const u64 *a)
{
    struct file *file = syscall_file(a[0]);
    if (!file)
        return -EBADF;
    s64 error = -EBADF;
    if ((s64)a[2] < 0 || (s64)a[3] <= 0)
        error = -EINVAL;
    else if (((u32)a[1] & ~FALLOC_KNOWN) ||
             (a[1] & (FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE)) == FALLOC_PUNCH_HOLE)
        error = -EOPNOTSUPP;
    else if (file->mapped.can_write)
        error = vfs_allocate(file->inode, a[1], a[2], a[3]);
    file_put(file);
    return error;
}

/* ---- Permissions and owner ---- */

static s64 chmod_at(u64 dirfd, u64 user_path, u32 mode)
{
    struct inode *inode;
    int error = syscall_lookup(dirfd, user_path, 0, &inode);
    if (error)
        return error;
    error = vfs_set_mode(inode, mode);
    inode_put(inode);
    return error;
}

s64 sys_chmod(const u64 *a)
{
    return chmod_at((u64)AT_FDCWD, a[0], a[1]);
}

s64 sys_fchmodat(const u64 *a)
{
    return chmod_at(a[0], a[1], a[2]);
}

s64 sys_fchmod(const u64 *a)
{
    struct file *file = syscall_file(a[0]);
    if (!file)
        return -EBADF;
    s64 error = file->flags & O_PATH ? -EBADF : vfs_set_mode(file->inode, a[1]);
    file_put(file);
    return error;
}

static s64 chown_at(u64 dirfd, u64 user_path, u32 uid, u32 gid, u32 flags)
{
    struct inode *inode;
    if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
        return -EINVAL;
    int error = syscall_lookup(dirfd, user_path, flags, &inode);
    if (error)
        return error;
    error = vfs_set_owner(inode, uid, gid);
    inode_put(inode);
    return error;
}

s64 sys_chown(const u64 *a)
{
    return chown_at((u64)AT_FDCWD, a[0], a[1], a[2], 0);
}

s64 sys_lchown(const u64 *a)
{
    return chown_at((u64)AT_FDCWD, a[0], a[1], a[2], AT_SYMLINK_NOFOLLOW);
}

s64 sys_fchownat(const u64 *a)
{
    return chown_at(a[0], a[1], a[2], a[3], a[4]);
}

s64 sys_fchown(const u64 *a)
{
    struct file *file = syscall_file(a[0]);
    if (!file)
        return -EBADF;
    s64 error = file->flags & O_PATH ? -EBADF : vfs_set_owner(file->inode, a[1], a[2]);
    file_put(file);
    return error;
}

/* ---- Times ---- */

#define UTIME_NOW     0x3fffffffl
#define UTIME_OMIT    0x3ffffffel
#define US_PER_SECOND 1000000l
#define NS_PER_US     1000l

struct pair {
    s64 seconds, fraction; /* ns or us */
};

static bool is_valid_ns(s64 ns)
{
    return (ns >= 0 && ns < (s64)NS_PER_SECOND) || ns == UTIME_NOW || ns == UTIME_OMIT;
}

static void resolve_now(struct pair *time)
{
    u64 now = clock_wall_ns();
    if (time->fraction == UTIME_NOW)
        *time = (struct pair){now / NS_PER_SECOND, now % NS_PER_SECOND};
}

/* times NULL: now. Fractions are nanoseconds. */
static s64 set_times(struct inode *inode, const struct pair *given)
{
    struct pair times[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
    if (given)
        memcpy(times, given, sizeof(times));
    if (!is_valid_ns(times[0].fraction) || !is_valid_ns(times[1].fraction))
        return -EINVAL;
    resolve_now(&times[0]);
    resolve_now(&times[1]);
    struct inode_times change = {
        .set_atime = times[0].fraction != UTIME_OMIT,
        .set_mtime = times[1].fraction != UTIME_OMIT,
        .atime = times[0].seconds,
        .atime_ns = times[0].fraction,
        .mtime = times[1].seconds,
        .mtime_ns = times[1].fraction,
    };
    if (!change.set_atime && !change.set_mtime)
        return 0;
    return vfs_set_times(inode, &change);
}

static bool omits_all(const struct pair *times)
{
    return times && times[0].fraction == UTIME_OMIT && times[1].fraction == UTIME_OMIT;
}

static s64 set_times_of(u64 fd, const struct pair *times)
{
    struct file *file = syscall_file(fd);
    if (!file)
        return -EBADF;
    s64 error = set_times(file->inode, times);
    file_put(file);
    return error;
}

/* user_path 0: dirfd itself */
static s64 set_times_at(u64 dirfd, u64 user_path, const struct pair *times, u32 flags)
{
    struct inode *inode;
    if (omits_all(times))
        return 0;
    if (!user_path)
        return flags ? -EINVAL : set_times_of(dirfd, times);
    if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
        return -EINVAL;
    s64 error = syscall_lookup(dirfd, user_path, flags, &inode);
    if (error)
        return error;
    error = set_times(inode, times);
    inode_put(inode);
    return error;
}

s64 sys_utimensat(const u64 *a)
{
    struct pair times[2];
    if (!a[1] && (s32)a[0] == AT_FDCWD)
        return -EFAULT;
    if (a[2] && copy_from_user(times, a[2], sizeof(times)))
        return -EFAULT;
    return set_times_at(a[0], a[1], a[2] ? times : NULL, a[3]);
}

static s64 set_times_us(u64 dirfd, u64 user_path, u64 user_times)
{
    struct pair times[2];
    if (user_times && copy_from_user(times, user_times, sizeof(times)))
        return -EFAULT;
    for (unsigned i = 0; user_times && i < ARRAY_SIZE(times); i++) {
        if (times[i].fraction < 0 || times[i].fraction >= US_PER_SECOND)
            return -EINVAL;
        times[i].fraction *= NS_PER_US;
    }
    return set_times_at(dirfd, user_path, user_times ? times : NULL, 0);
}

s64 sys_utimes(const u64 *a)
{
    return set_times_us((u64)AT_FDCWD, a[0], a[1]);
}

s64 sys_futimesat(const u64 *a)
{
    return set_times_us(a[0], a[1], a[2]);
}

s64 sys_utime(const u64 *a)
{
    s64 seconds[2] = {0};
    if (a[1] && copy_from_user(seconds, a[1], sizeof(seconds)))
        return -EFAULT;
    struct pair times[2] = {{seconds[0], 0}, {seconds[1], 0}};
    return set_times_at((u64)AT_FDCWD, a[0], a[1] ? times : NULL, 0);
}
