/*
 * Open files: from a path to a struct file, and reading, writing, seeking and listing through its
 * operations. What an operation does is the business of the inode's file_ops.
 */
#include "fs/file_limits.h"
#include "fs/file_lock.h"
#include "fs/names.h"
#include "fs/pipe.h"

#include "lib/errno.h"
#include "lib/format.h"
#include "lib/string.h"
#include "mm/core/slab.h"

static SLEEP_LOCK_CLASS(pos_lock_class, "file->pos_lock");

static const struct file_ops file_ops_path_only; /* O_PATH: a name for the inode, no access */

static void file_release(struct mapped_file *mapped)
{
    struct file *file = file_of_mapped(mapped);

    if (!list_is_empty(&file->inode->locks))
        file_lock_drop_owner(file->inode, file);
    if (file->ops->close)
        file->ops->close(file);
    inode_put(file->inode);
    readahead_end(&file->mapped.readahead);
    kfree(file);
    file_uncount();
}

static int file_punch(struct mapped_file *mapped, u64 offset, u64 bytes)
{
    return vfs_allocate(file_of_mapped(mapped)->inode, FALLOC_KEEP_SIZE | FALLOC_PUNCH_HOLE,
                        (s64)offset, (s64)bytes);
}

static void file_path(struct mapped_file *mapped, char *buf, size_t size)
{
    string_copy(buf, file_of_mapped(mapped)->path, size);
}

static void set_path(struct file *file, const char *path)
{
    size_t len = strlen(path), room = sizeof(file->path) - 1;

    string_copy(file->path, len > room ? path + len - room : path, sizeof(file->path));
}

static bool wants_read(u32 flags)
{
    u32 access = flags & O_ACCMODE;

    return !(flags & O_PATH) && (access == O_RDONLY || access == O_RDWR);
}

static bool wants_write(u32 flags)
{
    u32 access = flags & O_ACCMODE;

    return !(flags & O_PATH) && (access == O_WRONLY || access == O_RDWR);
}

/* The operations for what the inode is. => NULL: nobody is behind it */
static const struct file_ops *ops_of(const struct inode *inode, u32 flags)
{
    if (flags & O_PATH)
        return &file_ops_path_only;
    if (inode->file_ops)
        return inode->file_ops;
    switch (inode->mode & S_IFMT) {
    case S_IFREG: return &file_ops_regular;
    case S_IFDIR: return &file_ops_directory;
    case S_IFBLK: return &file_ops_block;
    case S_IFIFO: return &file_ops_fifo;
    case S_IFCHR: return device_file_ops(inode->rdev);
    }
    return NULL;
}

/* What the type of the inode and its file system refuse. => 0 or error */
static int check_open(const struct inode *inode, u32 flags)
{
    bool read_only = inode->super && inode->super->is_read_only;

    if (flags & O_PATH)
        return flags & O_DIRECTORY && !inode_is_dir(inode) ? -ENOTDIR : 0;
    if (inode_is(inode, S_IFLNK))
        return -ELOOP; /* O_NOFOLLOW: any other link has been followed */
    if (inode_is_dir(inode))
        return wants_write(flags) || flags & (O_CREAT | O_TRUNC) ? -EISDIR : 0;
    if (flags & O_DIRECTORY && !(flags & O_TMPFILE))
        return -ENOTDIR;
    if (inode_is(inode, S_IFREG) && read_only && (wants_write(flags) || flags & O_TRUNC))
        return -EROFS;
    return 0;
}

static int check_ops(const struct file_ops *ops, u32 flags)
{
    if (!ops)
        return -ENXIO;
    if ((wants_write(flags) && !ops->write) || (wants_read(flags) && !ops->read))
        return -EACCES;
    return 0;
}

static struct file *file_new(struct inode *inode, const struct file_ops *ops, u32 flags,
                             const char *path, int *error)
{
    bool is_counted = file_count_one();
    struct file *file = is_counted ? kzalloc(sizeof(*file)) : NULL;

    if (!file) {
        *error = is_counted ? -ENOMEM : -ENFILE;
        if (is_counted)
            file_uncount();
        return NULL;
    }
    file->mapped.refs = 1;
    file->mapped.cache = &inode->cache;
    file->mapped.can_read = wants_read(flags);
    file->mapped.can_write = wants_write(flags);
    file->mapped.can_map = ops->can_map;
    file->mapped.no_exec = inode->super && inode->super->is_no_exec;
    file->mapped.release = file_release;
    file->mapped.path = file_path;
    file->mapped.punch = file_punch;
    file->ops = ops;
    file->flags = flags & ~(O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC);
    mutex_init(&file->pos_lock, &pos_lock_class);
    set_path(file, path);
    inode_hold(inode);
    file->inode = inode;
    return file;
}

struct file *file_open_inode(struct inode *inode, u32 flags, const char *path, int *error)
{
    const struct file_ops *ops = ops_of(inode, flags);
    struct file *file;

    *error = check_open(inode, flags);
    if (!*error)
        *error = check_ops(ops, flags);
    if (*error)
        return NULL;
    file = file_new(inode, ops, flags, path, error);
    if (!file)
        return NULL;
    if (ops->open)
        *error = ops->open(inode, file);
    if (*error) {
        inode_put(inode);
        kfree(file);
        file_uncount();
        return NULL;
    }
    readahead_init(&file->mapped.readahead, file->mapped.cache);
    return file;
}

/* The name at the end of a normalised path. */
static const char *last_name(const char *full)
{
    const char *name = full;

    for (const char *p = full; *p; p++)
        if (*p == '/')
            name = p + 1;
    return name;
}

/* The last name of `path` is not there; `dir` is where it belongs, `full` ends with it.
 * => 0 and *out with a reference, or error */
static int create_missing(struct inode *dir, const char *path, const char *full, u32 mode,
                          bool *is_new, struct inode **out)
{
    struct inode_new what = {.mode = S_IFREG | (mode & 07777)};
    const char *name = last_name(full);
    size_t path_len = strlen(path);

    if (path_len > 0 && path[path_len - 1] == '/')
        return -EISDIR;
    return vfs_create_in(dir, name, strlen(name), &what, is_new, out);
}

/* => the inode that open() is about, with a reference; it may be made. full: PATH_MAX_BYTES */
static int find_or_create(struct inode *base, const char *base_path, const char *path, u32 flags,
                          u32 mode, char *full, bool *is_new, struct inode **out)
{
    bool exclusive = flags & O_CREAT && flags & O_EXCL, missing_last;
    struct inode *dir;
    int error = vfs_lookup_missing(base, base_path, path, !exclusive && !(flags & O_NOFOLLOW), out,
                                   full, &missing_last);

    *is_new = false;
    if (missing_last) {
        dir = *out;
        if (flags & O_CREAT)
            error = create_missing(dir, path, full, mode, is_new, out);
        inode_put(dir);
    }
    if (!error && exclusive && !*is_new) {
        inode_put(*out);
        error = -EEXIST;
    }
    return error;
}

/* O_TMPFILE: *out becomes a new file in place of the directory that it is; `full` is shown as its
 * path. => 0 or error, with the directory's reference dropped */
static int replace_by_unnamed(u32 mode, char *full, struct inode **out)
{
    struct inode_new what = {.mode = S_IFREG | (mode & 07777)};
    struct inode *dir = *out;
    int error = vfs_create_unnamed(dir, &what, out);

    inode_put(dir);
    if (!error) {
        size_t len = strlen(full);

        format_to(full + len, PATH_MAX_BYTES - len, "/#%lu (deleted)", (*out)->ino);
    }
    return error;
}

static struct file *open_found(struct inode *inode, u32 flags, const char *full, bool is_new,
                               int *error)
{
    bool truncates = flags & O_TRUNC && !is_new && inode_is(inode, S_IFREG);
    struct file *file;

    if (is_new)
        flags &= ~(u32)O_CREAT;
    file = file_open_inode(inode, flags, full, error);
    if (file && truncates && !(flags & O_PATH)) {
        *error = vfs_set_size(inode, 0);
        if (*error == -EPERM) /* a generated file: every write replaces it */
            *error = 0;
    }
    if (file && *error) {
        file_put(file);
        file = NULL;
    }
    return file;
}

struct file *file_open(struct inode *base, const char *base_path, const char *path, u32 flags,
                       u32 mode, int *error)
{
    struct file *file = NULL;
    struct inode *inode;
    bool is_new;
    char *full;

    if (flags & O_PATH)
        flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    full = kmalloc(PATH_MAX_BYTES);
    *error = -ENOMEM;
    if (!full)
        return NULL;
    *error = find_or_create(base, base_path, path, flags, mode, full, &is_new, &inode);
    if (!*error && flags & O_TMPFILE)
        *error = replace_by_unnamed(mode, full, &inode);
    if (!*error) {
        file = open_found(inode, flags, full, is_new, error);
        inode_put(inode);
    }
    kfree(full);
    return file;
}

typedef ssize_t (*transfer_fn)(struct file *file, u64 user_buf, size_t len, u64 *pos);

/* With the caller's position, or with the file's own one, which two threads may not move at once.
 */
static ssize_t transfer(struct file *file, transfer_fn fn, u64 user_buf, size_t len, u64 *pos)
{
    ssize_t done = -EINVAL;

    if (pos && !file->ops->is_seekable && pos != &file->pos)
        return -ESPIPE;
    if (len > (size_t)INT64_MAX)
        return -EINVAL;
    if (!file->ops->is_seekable)
        return fn(file, user_buf, len, &file->pos);
    if (pos)
        return *pos > INT64_MAX - len ? done : fn(file, user_buf, len, pos);
    mutex_lock(&file->pos_lock);
    if (file->pos <= INT64_MAX - len)
        done = fn(file, user_buf, len, &file->pos);
    mutex_unlock(&file->pos_lock);
    return done;
}

ssize_t file_read(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    if (!file->mapped.can_read)
        return -EBADF;
    return file->ops->read ? transfer(file, file->ops->read, user_buf, len, pos) : -EINVAL;
}

ssize_t file_write(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    if (!file->mapped.can_write)
        return -EBADF;
    return file->ops->write ? transfer(file, file->ops->write, user_buf, len, pos) : -EINVAL;
}

int file_ioctl(struct file *file, u64 request, u64 argument)
{
    if (file->flags & O_PATH)
        return -EBADF;
    return file->ops->ioctl ? file->ops->ioctl(file, request, argument) : -ENOTTY;
}

static s64 end_of(struct file *file)
{
    if (file->ops->seek_end)
        return file->ops->seek_end(file);
    return READ_ONCE(file->mapped.cache->size_bytes);
}

/* A file system that keeps no map of holes has one: behind the end. */
static s64 seek_data_or_hole(struct file *file, s64 offset, bool want_hole)
{
    struct inode *inode = file->inode;
    s64 end = end_of(file);

    if (offset < 0 || offset >= end)
        return -ENXIO;
    if (inode->ops && inode->ops->seek_data && file->mapped.cache == &inode->cache)
        return inode->ops->seek_data(inode, offset, want_hole);
    return want_hole ? end : offset;
}

static s64 seek_target(struct file *file, s64 offset, int whence)
{
    s64 base = 0;

    switch (whence) {
    case SEEK_SET: break;
    case SEEK_CUR: base = file->pos; break;
    case SEEK_END: base = end_of(file); break;
    case SEEK_DATA:
    case SEEK_HOLE: return seek_data_or_hole(file, offset, whence == SEEK_HOLE);
    default: return -EINVAL;
    }
    if (base < 0)
        return base;
    return __builtin_add_overflow(base, offset, &base) || base < 0 ? -EINVAL : base;
}

s64 file_seek(struct file *file, s64 offset, int whence)
{
    s64 target;

    if (file->flags & O_PATH)
        return -EBADF;
    if (!file->ops->is_seekable)
        return -ESPIPE;
    mutex_lock(&file->pos_lock);
    target = seek_target(file, offset, whence);
    if (target >= 0)
        file->pos = target;
    mutex_unlock(&file->pos_lock);
    return target;
}

int file_iterate(struct file *file, dir_emit emit, void *ctx)
{
    struct inode *dir = file->inode;
    u64 before;
    int error;

    if (file->flags & O_PATH)
        return -EBADF;
    if (!inode_is_dir(dir) || !dir->ops || !dir->ops->iterate)
        return -ENOTDIR;
    mutex_lock(&file->pos_lock);
    before = file->pos;
    rwsem_read_lock(&dir->rwlock);
    error = dir->ops->iterate(dir, &file->pos, emit, ctx);
    rwsem_read_unlock(&dir->rwlock);
    if (error && file->pos != before)
        error = 0; /* what was found first; the error comes again */
    mutex_unlock(&file->pos_lock);
    return error;
}
