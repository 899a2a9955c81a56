/*
 * /proc/PID/fd and /proc/PID/fdinfo: an entry for each open descriptor, by its number. In fd it is a
 * link with the name of what is open; following it opens that name. In fdinfo it is a file. The
 * first four lines are
 * those of proc(5); the ra_ lines are Faultline's own: the state of the open file's readahead, in
 * pages, and what it has asked the disk for since it was opened:
 *
 *     pos:            0
 *     flags:          0100000
 *     mnt_id:         2049            the device number: each file system has one of its own
 *     ino:            13
 *     ra_start:       64              the last window, and how many pages of it lie behind the mark
 *     ra_size:        32
 *     ra_async:       32
 *     ra_miss:        1               read-around's score
 *     ra_max_pages:   32              the largest window
 *     ra_windows:     3               windows of this open file that were read from the disk
 *     ra_pages:       96              pages in them
 *
 * A file holds on to nothing but pid and number: closed since, it reads as an empty text.
 */
#include "kernel/task/proc_fdinfo.h"

#include "fs/text_out.h"
#include "kernel/task/process.h"
#include "lib/errno.h"
#include "lib/format.h"
#include "lib/parse.h"
#include "lib/string.h"

#define DIGITS      12 /* of a u32, decimal or octal, with the NUL */
#define DOT_ENTRIES 2  /* "." and ".." come first */
#define PID_SHIFT   32

/* ---- An open file of a process ---- */

struct fd_view {
    u32 pid, fd;
    bool process_is_there;
    struct file *file; /* with a reference; NULL: not open */
    bool close_on_exec;
};

/* While the process has its address space, its table is not being taken down. */
static void take_view(struct process *process, void *ctx)
{
    struct fd_view *view = ctx;

    if (process->pid != view->pid || !process->mm)
        return;
    view->process_is_there = true;
    view->file = fd_get(process->files, (int)view->fd);
    view->close_on_exec = view->file && fd_flags(process->files, (int)view->fd, -1) > 0;
}

/* => whether the descriptor is open; then file_put(view->file) must follow */
static bool view_open(struct fd_view *view, u32 pid, u32 fd)
{
    *view = (struct fd_view){.pid = pid, .fd = fd};
    process_for_each(take_view, view);
    return view->file;
}

static bool is_open(u32 pid, u32 fd)
{
    struct fd_view view;

    if (!view_open(&view, pid, fd))
        return false;
    file_put(view.file);
    return true;
}

static bool process_is_there(u32 pid)
{
    struct fd_view view;

    if (view_open(&view, pid, 0))
        file_put(view.file);
    return view.process_is_there;
}

/* ---- The files ---- */

/* As C writes it: a leading zero. */
static void put_octal(struct text_out *out, u32 number)
{
    char digits[DIGITS];
    unsigned at = sizeof(digits) - 1;

    digits[at] = '\0';
    for (; number; number /= 8)
        digits[--at] = (char)('0' + number % 8);
    text_out_put(out, "0%s", digits + at);
}

static void put_readahead(struct text_out *out, struct readahead *ra)
{
    spin_lock(&ra->lock);
    text_out_put(out, "ra_start:\t%lu\nra_size:\t%u\nra_async:\t%u\n", ra->start, ra->size,
                 ra->async);
    text_out_put(out, "ra_miss:\t%u\nra_max_pages:\t%u\n", ra->miss, ra->max_pages);
    text_out_put(out, "ra_windows:\t%lu\nra_pages:\t%lu\n", ra->windows, ra->window_pages);
    spin_unlock(&ra->lock);
}

static size_t show_fdinfo(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct fd_view view;
    struct file *file;

    if (!view_open(&view, (u32)((u64)arg >> PID_SHIFT), (u32)(u64)arg))
        return 0;
    file = view.file;
    text_out_put(&out, "pos:\t%lu\nflags:\t", READ_ONCE(file->pos));
    put_octal(&out, file->flags | (view.close_on_exec ? O_CLOEXEC : 0));
    text_out_put(&out, "\nmnt_id:\t%lu\nino:\t%lu\n",
                 file->inode->super ? file->inode->super->dev : 0, file->inode->ino);
    if (file->ops->can_map)
        put_readahead(&out, &file->mapped.readahead);
    file_put(file);
    return out.len;
}

static ssize_t link_fd(void *arg, char *buf, size_t size)
{
    struct fd_view view;
    size_t len;

    if (!view_open(&view, (u32)((u64)arg >> PID_SHIFT), (u32)(u64)arg))
        return -ENOENT;
    len = string_copy(buf, view.file->path, size);
    file_put(view.file);
    return MIN(len, size - 1);
}

/* ---- The directories ---- */

static u32 pid_of(const struct inode *dir)
{
    return (u32)(u64)dir->fs_private;
}

static const struct inode_ops fd_ops, fdinfo_ops;

static int fd_lookup(struct inode *dir, const char *name, size_t len, struct inode **out)
{
    struct text_file entry = {0};
    u64 fd;

    if (len == 2 && memcmp(name, "..", 2) == 0) {
        *out = proc_pid_dir_create(dir->super, pid_of(dir));
        return *out ? 0 : -ENOMEM;
    }
    if ((name[0] == '0' && len > 1) || parse_u64(name, len, 10, &fd) || fd >= FD_MAX ||
        !is_open(pid_of(dir), (u32)fd))
        return -ENOENT;
    if (dir->ops == &fd_ops)
        entry.link = link_fd;
    else
        entry.show = show_fdinfo;
    entry.arg = (void *)((u64)pid_of(dir) << PID_SHIFT | fd);
    *out = textfs_leaf_create(dir->super, &entry, dir->ino + 1 + fd);
    return *out ? 0 : -ENOMEM;
}

/* Positions: the two dots, then DOT_ENTRIES + number. */
static int fd_iterate(struct inode *dir, u64 *pos, dir_emit emit, void *ctx)
{
    static const char *const dots[DOT_ENTRIES] = {".", ".."};
    u32 type = DT_OF_MODE(dir->ops == &fd_ops ? S_IFLNK : S_IFREG);

    if (!process_is_there(pid_of(dir)))
        return -ENOENT;
    for (; *pos < DOT_ENTRIES; ++*pos)
        if (emit(ctx, dots[*pos], *pos + 1, dir->ino, DT_OF_MODE(S_IFDIR), *pos + 1))
            return 0;
    for (; *pos < DOT_ENTRIES + FD_MAX; ++*pos) {
        u32 fd = (u32)(*pos - DOT_ENTRIES);
        char name[DIGITS];
        int len;

        if (!is_open(pid_of(dir), fd))
            continue;
        len = format_to(name, sizeof(name), "%u", fd);
        if (emit(ctx, name, (size_t)len, dir->ino + 1 + fd, type, *pos + 1))
            return 0;
    }
    return 0;
}

static const struct inode_ops fd_ops = {.lookup = fd_lookup, .iterate = fd_iterate};
static const struct inode_ops fdinfo_ops = {.lookup = fd_lookup, .iterate = fd_iterate};

static struct inode *create(struct super_block *super, u32 pid, u64 ino,
                            const struct inode_ops *ops)
{
    struct inode *inode = inode_new_anonymous(super, S_IFDIR | 0555);

    if (!inode)
        return NULL;
    inode->ino = inode->cache.ino = ino;
    inode->nlink = 2;
    inode->fs_private = (void *)(u64)pid;
    inode->ops = ops;
    inode->file_ops = &file_ops_directory;
    return inode;
}

struct inode *proc_fd_create(struct super_block *super, u32 pid, u64 ino)
{
    return create(super, pid, ino, &fd_ops);
}

struct inode *proc_fdinfo_create(struct super_block *super, u32 pid, u64 ino)
{
    return create(super, pid, ino, &fdinfo_ops);
}
