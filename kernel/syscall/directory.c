/*
 * System calls about directories: the working directory, listings, umask.
 */
#include "kernel/syscall/path.h"

s64 sys_getcwd(const u64 *a)
{
    char *path = kmalloc(PATH_MAX_BYTES);
    if (!path)
        return -ENOMEM;
    inode_put(fs_context_dir(process_current()->fs, path));
    size_t n = strlen(path) + 1;
    s64 result = a[1] < n ? -ERANGE : copy_to_user(a[0], path, n) ? -EFAULT : (s64)n;
    kfree(path);
    return result;
}

/* The reference on the directory passes on. */
static s64 move_to(struct inode *dir, const char *path)
{
    if (!inode_is_dir(dir)) {
        inode_put(dir);
        return -ENOTDIR;
    }
    fs_context_set_dir(process_current()->fs, dir, path);
    return 0;
}

s64 sys_chdir(const u64 *a)
{
    struct syscall_at at;
    struct inode *dir;
    char *full = kmalloc(PATH_MAX_BYTES);
    s64 error = full ? syscall_at_begin(&at, (u64)AT_FDCWD, a[0]) : -ENOMEM;
    if (!error) {
        error = vfs_lookup(at.dir, at.dir_path, at.path, true, &dir, full);
        syscall_at_end(&at);
        if (!error)
            error = move_to(dir, full);
    }
    kfree(full);
    return error;
}

s64 sys_fchdir(const u64 *a)
{
    struct file *file = syscall_file_or_path(a[0]);
    if (!file)
        return -EBADF;
    inode_hold(file->inode);
    s64 error = move_to(file->inode, file->path[0] == '/' ? file->path : "/");
    file_put(file);
    return error;
}

s64 sys_umask(const u64 *a)
{
    return atomic_exchange(&process_current()->fs->umask, (u32)a[0] & 0777);
}

/* struct linux_dirent64: fixed part, then the name. */
struct dirent_head {
    u64 ino;
    s64 next_pos;
    u16 reclen;
    u8 type;
} PACKED;
#define DIRENT_NAME_OFFSET 19

/* Entries are collected in kernel memory and copied when the directory's lock is free again. */
struct dirent_buffer {
    char *bytes;
    size_t used, size;
    bool is_full; /* there was one more, for which there was no room */
};

static int emit_entry(void *ctx, const char *name, size_t len, u64 ino, unsigned type, u64 next_pos)
{
    struct dirent_buffer *b = ctx;
    size_t reclen = ALIGN_UP(DIRENT_NAME_OFFSET + len + 1, 8ul);
    if (len > NAME_MAX_BYTES || b->used + reclen > b->size) {
        b->is_full = true;
        return 1;
    }
    char *at = b->bytes + b->used;
    struct dirent_head head = {ino, next_pos, reclen, type};
    memset(at, 0, reclen);
    memcpy(at, &head, sizeof(head));
    memcpy(at + DIRENT_NAME_OFFSET, name, len);
    b->used += reclen;
    return 0;
}

#define DIRENT_BUFFER_MAX 32768ul

s64 sys_getdents64(const u64 *a)
{
    struct file *file = syscall_file(a[0]);
    if (!file)
        return -EBADF;
    struct dirent_buffer b = {.size = MIN((u32)a[2], DIRENT_BUFFER_MAX),
                              .bytes = kmalloc(DIRENT_BUFFER_MAX)};
    s64 result = b.bytes ? file_iterate(file, emit_entry, &b) : -ENOMEM;
    if (b.used)
        result = copy_to_user(a[1], b.bytes, b.used) ? -EFAULT : (s64)b.used;
    else if (!result && b.is_full)
        result = -EINVAL; /* not even one entry fits */
    kfree(b.bytes);
    file_put(file);
    return result;
}
