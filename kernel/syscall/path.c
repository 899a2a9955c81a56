/*
 * Paths of system calls.
 */
#include "kernel/syscall/path.h"

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

/* The directory that a relative path starts from. dir_path: PATH_MAX_BYTES */
static int start_of(int dirfd, const char *path, char *dir_path, struct inode **dir)
{
    if (path[0] == '\0')
        return -ENOENT;
    if (path[0] == '/' || dirfd == AT_FDCWD) {
        *dir = fs_context_dir(process_current()->fs, dir_path);
        return 0;
    }
    struct file *file = syscall_file_or_path(dirfd);
    if (!file)
        return -EBADF;
    int error = inode_is_dir(file->inode) ? 0 : -ENOTDIR;
    if (!error) {
        *dir = file->inode;
        inode_hold(*dir);
        /* A path too long for the open file is cut: then mounts below are not seen from here. */
        strlcpy(dir_path, file->path[0] == '/' ? file->path : "/", PATH_MAX_BYTES);
    }
    file_put(file);
    return error;
}

int syscall_at_begin(struct syscall_at *at, u64 dirfd, u64 user_path)
{
    *at = (struct syscall_at){.dir_path = kmalloc(PATH_MAX_BYTES)};
    int error = at->dir_path ? syscall_path(user_path, &at->path) : -ENOMEM;
    if (!error)
        error = start_of((int)dirfd, at->path, at->dir_path, &at->dir);
    if (error)
        syscall_at_end(at);
    return error;
}

void syscall_at_end(struct syscall_at *at)
{
    if (at->dir)
        inode_put(at->dir);
    kfree(at->path);
    kfree(at->dir_path);
}

/* An empty path: the descriptor itself. */
static int lookup_itself(int dirfd, struct inode **out)
{
    if (dirfd == AT_FDCWD) {
        *out = fs_context_dir(process_current()->fs, NULL);
        return 0;
    }
    struct file *file = syscall_file_or_path(dirfd);
    if (!file)
        return -EBADF;
    *out = file->inode;
    inode_hold(*out);
    file_put(file);
    return 0;
}

/* => whether the program's path is empty, or is none at all, which AT_EMPTY_PATH takes for the same
 */
static bool is_empty(u64 user_path, int *error)
{
    char first = '\0';
    *error = user_path ? copy_from_user(&first, user_path, 1) : 0;
    return !*error && first == '\0';
}

int syscall_lookup(u64 dirfd, u64 user_path, u32 flags, struct inode **out)
{
    struct syscall_at at;
    int error = 0;
    if ((flags & AT_EMPTY_PATH) && is_empty(user_path, &error))
        return lookup_itself((int)dirfd, out);
    if (!error)
        error = syscall_at_begin(&at, dirfd, user_path);
    if (error)
        return error;
    error = vfs_lookup(at.dir, at.dir_path, at.path, !(flags & AT_SYMLINK_NOFOLLOW), out, NULL);
    syscall_at_end(&at);
    return error;
}
