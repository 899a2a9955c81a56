/*
 * System calls about names, descriptors and what stat(2) tells of a file.
 */
#include "kernel/syscall/syscall.h"

#define AT_FDCWD (-100)
#define AT_SYMLINK_NOFOLLOW 0x100
#define AT_EMPTY_PATH 0x1000

int syscall_path(u64 user_path, char **out)
{
    char *path = kmalloc(PATH_MAX_BYTES);
    if (!path)
        return -ENOMEM;
    ssize_t n = copy_string_from_user(path, user_path, PATH_MAX_BYTES);
    if (n < 0) {
        kfree(path);
        return n;
    }
    *out = path;
    return 0;
}

int syscall_base(int dirfd, const char *path, struct inode **base, const char **base_path)
{
    struct fs_context *fs = process_current()->fs;
    if (path[0] == '/' || dirfd == AT_FDCWD) {
        *base = fs_context_dir(fs, NULL);
        *base_path = fs->working_path; /* only names files; whole but for a chdir() at the same moment */
        return 0;
    }
    struct file *file = syscall_file(dirfd);
    if (!file)
        return -EBADF;
    int error = (file->inode->mode & S_IFMT) == S_IFDIR ? 0 : -ENOTDIR;
    if (!error) {
        *base = file->inode;
        *base_path = "/"; /* only to name the file in /proc/self/maps; ".." goes through the inodes */
        inode_hold(*base);
    }
    file_put(file);
    return error;
}

static s64 open_at(int dirfd, u64 user_path, u32 flags, u32 mode)
{
    struct inode *base;
    const char *base_path;
    char *path = NULL;
    int error = syscall_path(user_path, &path);
    if (error)
        return error;
    error = syscall_base(dirfd, path, &base, &base_path);
    if (error) {
        kfree(path);
        return error;
    }
    struct file *file = file_open(base, base_path, path, flags, mode, &error);
    inode_put(base);
    kfree(path);
    if (!file)
        return error;
    int fd = fd_install(process_current()->files, file, 0, flags & O_CLOEXEC);
    if (fd < 0)
        file_put(file);
    return fd;
}

s64 sys_open(const u64 *a)
{
    return open_at(AT_FDCWD, a[0], a[1], a[2]);
}

s64 sys_openat(const u64 *a)
{
    return open_at(a[0], a[1], a[2], a[3]);
}

s64 sys_close(const u64 *a)
{
    return fd_close(process_current()->files, a[0]);
}

static s64 duplicate(u64 fd, int min, bool close_on_exec)
{
    struct file *file = syscall_file(fd);
    if (!file)
        return -EBADF;
    int new_fd = fd_install(process_current()->files, file, min, close_on_exec);
    if (new_fd < 0)
        file_put(file);
    return new_fd;
}

s64 sys_dup(const u64 *a)
{
    return duplicate(a[0], 0, false);
}

static s64 duplicate_to(u64 fd, u64 target, bool close_on_exec)
{
    struct file *file = syscall_file(fd);
    if (!file)
        return -EBADF;
    int result = fd_replace(process_current()->files, target, file, close_on_exec);
    if (result < 0)
        file_put(file);
    return result;
}

s64 sys_dup2(const u64 *a)
{
    if (a[0] != a[1])
        return duplicate_to(a[0], a[1], false);
    return fd_flags(process_current()->files, a[0], -1) < 0 ? -EBADF : (s64)a[0];
}

s64 sys_dup3(const u64 *a)
{
    if (a[0] == a[1] || (a[2] & ~(u64)O_CLOEXEC))
        return -EINVAL;
    return duplicate_to(a[0], a[1], a[2] & O_CLOEXEC);
}

enum { F_DUPFD = 0, F_GETFD = 1, F_SETFD = 2, F_GETFL = 3, F_SETFL = 4, F_DUPFD_CLOEXEC = 1030 };
#define SETTABLE_FLAGS (O_APPEND | O_NONBLOCK)

static s64 file_flags(u64 fd, bool set, u32 flags)
{
    struct file *file = syscall_file(fd);
    if (!file)
        return -EBADF;
    if (set)
        file->flags = (file->flags & ~SETTABLE_FLAGS) | (flags & SETTABLE_FLAGS);
    s64 result = set ? 0 : (s64)(file->flags & ~(u32)O_CLOEXEC);
    file_put(file);
    return result;
}

s64 sys_fcntl(const u64 *a)
{
    struct fd_table *files = process_current()->files;
    switch (a[1]) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
        return a[2] >= FD_MAX ? -EINVAL : duplicate(a[0], a[2], a[1] == F_DUPFD_CLOEXEC);
    case F_GETFD:
        return fd_flags(files, a[0], -1);
    case F_SETFD: {
        int result = fd_flags(files, a[0], a[2] & 1);
        return MIN(result, 0);
    }
    case F_GETFL:
        return file_flags(a[0], false, 0);
    case F_SETFL:
        return file_flags(a[0], true, a[2]);
    default:
        return fd_flags(files, a[0], -1) < 0 ? -EBADF : -EINVAL;
    }
}

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
        .blksize = inode->super ? MAX(inode->super->block_bytes, 512u) : PAGE_SIZE,
        .blocks = inode->blocks_512,
        .atime = inode->atime,
        .mtime = inode->mtime,
        .ctime = inode->ctime,
    };
    return copy_to_user(user, &st, sizeof(st));
}

/* Looks the path of an *at call up. */
static int lookup_at(int dirfd, u64 user_path, bool follow, bool may_be_empty, struct inode **out)
{
    struct inode *base;
    const char *base_path;
    char *path = NULL;
    int error = syscall_path(user_path, &path);
    if (error)
        return error;
    if (path[0] == '\0' && may_be_empty) {
        struct file *file = dirfd == AT_FDCWD ? NULL : syscall_file(dirfd);
        *out = file ? file->inode : NULL;
        if (file)
            inode_hold(*out);
        else if (dirfd == AT_FDCWD)
            *out = fs_context_dir(process_current()->fs, NULL);
        error = *out ? 0 : -EBADF;
        if (file)
            file_put(file);
    } else if ((error = syscall_base(dirfd, path, &base, &base_path)) == 0) {
        error = vfs_lookup(base, base_path, path, follow, out, NULL);
        inode_put(base);
    }
    kfree(path);
    return error;
}

static s64 stat_at(int dirfd, u64 user_path, u64 user_stat, bool follow, bool may_be_empty)
{
    struct inode *inode;
    int error = lookup_at(dirfd, user_path, follow, may_be_empty, &inode);
    if (error)
        return error;
    error = copy_stat(inode, user_stat);
    inode_put(inode);
    return error;
}

s64 sys_stat(const u64 *a)
{
    return stat_at(AT_FDCWD, a[0], a[1], true, false);
}

s64 sys_lstat(const u64 *a)
{
    return stat_at(AT_FDCWD, a[0], a[1], false, false);
}

s64 sys_newfstatat(const u64 *a)
{
    return stat_at(a[0], a[1], a[2], !(a[3] & AT_SYMLINK_NOFOLLOW), a[3] & AT_EMPTY_PATH);
}

s64 sys_fstat(const u64 *a)
{
    struct file *file = syscall_file(a[0]);
    if (!file)
        return -EBADF;
    int error = copy_stat(file->inode, a[1]);
    file_put(file);
    return error;
}

#define ACCESS_EXEC 1
#define ACCESS_WRITE 2

/* Everybody is root: what exists can be read; written unless its file system cannot; executed if anybody may. */
static s64 access_at(int dirfd, u64 user_path, u64 mode)
{
    struct inode *inode;
    if (mode & ~7ul)
        return -EINVAL;
    int error = lookup_at(dirfd, user_path, true, false, &inode);
    if (error)
        return error;
    bool is_file = (inode->mode & S_IFMT) == S_IFREG;
    if ((mode & ACCESS_WRITE) && inode->super && inode->super->is_read_only)
        error = -EROFS;
    else if ((mode & ACCESS_EXEC) && is_file && !(inode->mode & 0111))
        error = -EACCES;
    inode_put(inode);
    return error;
}

s64 sys_access(const u64 *a)
{
    return access_at(AT_FDCWD, a[0], a[1]);
}

s64 sys_faccessat(const u64 *a)
{
    return access_at(a[0], a[1], a[2]);
}

static s64 readlink_at(int dirfd, u64 user_path, u64 buf, s64 size)
{
    struct inode *inode;
    if (size <= 0)
        return -EINVAL;
    s64 result = lookup_at(dirfd, user_path, false, false, &inode);
    if (result)
        return result;
    char *target = kmalloc(PATH_MAX_BYTES);
    if (!target)
        result = -ENOMEM;
    else if ((inode->mode & S_IFMT) != S_IFLNK || !inode->ops->readlink)
        result = -EINVAL;
    else
        result = inode->ops->readlink(inode, target, PATH_MAX_BYTES);
    if (result > 0) {
        result = MIN(result, size);
        if (copy_to_user(buf, target, result))
            result = -EFAULT;
    }
    kfree(target);
    inode_put(inode);
    return result;
}

s64 sys_readlink(const u64 *a)
{
    return readlink_at(AT_FDCWD, a[0], a[1], (int)a[2]);
}

s64 sys_readlinkat(const u64 *a)
{
    return readlink_at(a[0], a[1], a[2], (int)a[3]);
}

s64 sys_getcwd(const u64 *a)
{
    char *path = kmalloc(PATH_MAX_BYTES);
    if (!path)
        return -ENOMEM;
    inode_put(fs_context_dir(process_current()->fs, path));
    s64 n = strlen(path) + 1;
    if (a[1] < (u64)n)
        n = -ERANGE;
    else if (copy_to_user(a[0], path, n))
        n = -EFAULT;
    kfree(path);
    return n;
}

s64 sys_chdir(const u64 *a)
{
    struct fs_context *fs = process_current()->fs;
    struct inode *inode;
    char *path = NULL, *full = kmalloc(PATH_MAX_BYTES);
    int error = full ? syscall_path(a[0], &path) : -ENOMEM;
    if (error) {
        kfree(full);
        return error;
    }
    struct inode *from = fs_context_dir(fs, NULL);
    error = vfs_lookup(from, fs->working_path, path, true, &inode, full);
    inode_put(from);
    if (!error && (inode->mode & S_IFMT) != S_IFDIR) {
        inode_put(inode);
        error = -ENOTDIR;
    }
    if (!error)
        fs_context_set_dir(fs, inode, full);
    kfree(path);
    kfree(full);
    return error;
}

/* struct linux_dirent64: fixed part, then the name. */
struct dirent_head {
    u64 ino;
    s64 next_pos;
    u16 reclen;
    u8 type;
} PACKED;
#define DIRENT_NAME_OFFSET 19
#define DIRENT_MAX_BYTES ALIGN_UP(DIRENT_NAME_OFFSET + NAME_MAX_BYTES + 1ul, 8ul)

/* Entries are collected in kernel memory and copied when the directory's lock is free again. */
struct dirent_buffer {
    char *bytes;
    size_t used, size;
};

static int emit_entry(void *ctx, const char *name, size_t len, u64 ino, unsigned type, u64 next_pos)
{
    struct dirent_buffer *b = ctx;
    size_t reclen = ALIGN_UP(DIRENT_NAME_OFFSET + len + 1, 8ul);
    if (len > NAME_MAX_BYTES || b->used + reclen > b->size)
        return 1;
    char *at = b->bytes + b->used;
    struct dirent_head head = {ino, next_pos, reclen, type};
    memset(at, 0, reclen);
    memcpy(at, &head, sizeof(head));
    memcpy(at + DIRENT_NAME_OFFSET, name, len);
    b->used += reclen;
    return 0;
}

#define DIRENT_BUFFER_MAX 32768ul

static s64 read_directory(struct file *file, u64 user_buf, struct dirent_buffer *b)
{
    mutex_lock(&file->pos_lock);
    u64 pos = file->pos;
    rwsem_read_lock(&file->inode->rwlock);
    int error = file->inode->ops->iterate(file->inode, &pos, emit_entry, b);
    rwsem_read_unlock(&file->inode->rwlock);
    if (!error)
        file->pos = pos;
    mutex_unlock(&file->pos_lock);
    if (error && b->used == 0)
        return error;
    if (b->used == 0)
        return 0;
    return copy_to_user(user_buf, b->bytes, b->used) ? -EFAULT : (s64)b->used;
}

s64 sys_getdents64(const u64 *a)
{
    struct file *file = syscall_file(a[0]);
    if (!file)
        return -EBADF;
    struct dirent_buffer b = {.size = MIN(a[2] & 0xffffffff, DIRENT_BUFFER_MAX)};
    s64 result = -ENOTDIR;
    if ((file->inode->mode & S_IFMT) == S_IFDIR && file->inode->ops->iterate) {
        b.bytes = kmalloc(DIRENT_BUFFER_MAX);
        result = b.size < DIRENT_MAX_BYTES && b.size < 24 ? -EINVAL
                 : b.bytes                                ? read_directory(file, a[1], &b)
                                                          : -ENOMEM;
        kfree(b.bytes);
    }
    file_put(file);
    return result;
}

/* struct statfs of Linux x86-64. */
struct statfs64 {
    s64 type, bsize;
    u64 blocks, bfree, bavail, files, ffree;
    s32 fsid[2];
    s64 namelen, frsize, flags, spare[4];
};
_Static_assert(sizeof(struct statfs64) == 120, "struct statfs of x86-64");

#define EXT2_MAGIC 0xef53
#define STATFS_FLAG_READ_ONLY 1

static int copy_statfs(struct inode *inode, u64 user)
{
    struct super_block *sb = inode->super;
    struct statfs64 st = {.namelen = NAME_MAX_BYTES, .bsize = PAGE_SIZE, .frsize = PAGE_SIZE};
    if (sb) {
        st.type = strcmp(sb->type, "ext2") == 0 ? EXT2_MAGIC : 0;
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
    int error = lookup_at(AT_FDCWD, a[0], true, false, &inode);
    if (error)
        return error;
    error = copy_statfs(inode, a[1]);
    inode_put(inode);
    return error;
}

s64 sys_fstatfs(const u64 *a)
{
    struct file *file = syscall_file(a[0]);
    if (!file)
        return -EBADF;
    int error = copy_statfs(file->inode, a[1]);
    file_put(file);
    return error;
}

s64 sys_umask(const u64 *a)
{
    return atomic_exchange(&process_current()->fs->umask, (u32)a[0] & 0777);
}
