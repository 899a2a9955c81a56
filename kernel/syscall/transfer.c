/*
 * sendfile and copy_file_range: bytes from one file to another without the program's help.
 *
 * They go through a stretch of the program's own address space that exists for the call only: reads
 * and writes know user memory, and their rules for faults hold here as everywhere.
 */
#include "kernel/syscall/syscall.h"
#include "kernel/task/signal.h"
#include "mm/mmap.h"

#define STRETCH_BYTES 65536ul
#define TRANSFER_MAX  0x7ffff000ul

/* A position of the program's, or the file's own one. */
struct side {
    struct file *file;
    u64 user_pos; /* address; 0: the file's own position */
    u64 pos;
};

static int side_begin(struct side *side, u64 fd, u64 user_pos)
{
    side->file = syscall_file(fd);
    side->user_pos = user_pos;
    if (!side->file)
        return -EBADF;
    if (user_pos && copy_from_user(&side->pos, user_pos, sizeof(side->pos)))
        return -EFAULT;
    return user_pos && (s64)side->pos < 0 ? -EINVAL : 0;
}

static void side_end(struct side *side)
{
    if (side->file)
        file_put(side->file);
}

static u64 *pos_of(struct side *side)
{
    return side->user_pos ? &side->pos : NULL;
}

/* What was read but could not be written is read again next time. */
static void step_back(struct side *side, size_t bytes)
{
    if (side->user_pos)
        side->pos -= bytes;
    else if (bytes)
        file_seek(side->file, -(s64)bytes, SEEK_CUR);
}

/* => bytes; 0 at the end; an error */
static s64 copy_stretch(struct side *in, struct side *out, u64 buffer, size_t len)
{
    ssize_t got = file_read(in->file, buffer, len, pos_of(in)), put = 0, done = 0;
    if (got <= 0)
        return got;
    while (done < got) {
        put = file_write(out->file, buffer + done, got - done, pos_of(out));
        if (put <= 0)
            break;
        done += put;
    }
    step_back(in, got - done);
    return done ? done : put;
}

static s64 copy_all(struct side *in, struct side *out, u64 len)
{
    struct mm *mm = process_current()->mm;
    s64 buffer =
        mm_mmap(mm, 0, STRETCH_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, NULL, 0);
    s64 done = 0, n = 0;
    if (buffer < 0)
        return buffer;
    while ((u64)done < len) {
        size_t want = MIN(len - done, STRETCH_BYTES);
        n = copy_stretch(in, out, buffer, want);
        if (n <= 0)
            break;
        done += n;
        if ((size_t)n < want || task_signal_is_pending(task_current()))
            break;
    }
    mm_munmap(mm, buffer, STRETCH_BYTES);
    return done ? done : n;
}

static s64 transfer(struct side *in, struct side *out, u64 len)
{
    if (!in->file->mapped.can_read || !out->file->mapped.can_write)
        return -EBADF;
    s64 done = copy_all(in, out, MIN(len, TRANSFER_MAX));
    if (done == -EPIPE)
        signal_send_self(SIGPIPE);
    if ((in->user_pos && copy_to_user(in->user_pos, &in->pos, sizeof(in->pos))) ||
        (out->user_pos && copy_to_user(out->user_pos, &out->pos, sizeof(out->pos))))
        return -EFAULT;
    return done;
}

/* sendfile(out, in, position of in, len) */
s64 sys_sendfile(const u64 *a)
{
    struct side in = {0}, out = {0};
    s64 result = side_begin(&in, a[1], a[2]);
    if (!result)
        result = side_begin(&out, a[0], 0);
    if (!result && a[2] && !in.file->ops->is_seekable)
        result = -ESPIPE;
    if (!result && !in.file->ops->can_map)
        result = -EINVAL; /* only what has pages can be sent */
    if (!result && (out.file->flags & O_APPEND))
        result = -EINVAL;
    if (!result)
        result = transfer(&in, &out, a[3]);
    side_end(&in);
    side_end(&out);
    return result;
}

static int check_copy(const struct side *in, const struct side *out, u64 len, u64 flags)
{
    if (flags)
        return -EINVAL;
    if (inode_is_dir(in->file->inode) || inode_is_dir(out->file->inode))
        return -EISDIR;
    if (!inode_is(in->file->inode, S_IFREG) || !inode_is(out->file->inode, S_IFREG))
        return -EINVAL;
    if (!in->file->mapped.can_read || !out->file->mapped.can_write || (out->file->flags & O_APPEND))
        return -EBADF;
    u64 in_pos = in->user_pos ? in->pos : in->file->pos,
        out_pos = out->user_pos ? out->pos : out->file->pos;
    bool overlap = in_pos < out_pos + len && out_pos < in_pos + len;
    return in->file->inode == out->file->inode && overlap ? -EINVAL : 0;
}

/* copy_file_range(in, position, out, position, len, flags) */
s64 sys_copy_file_range(const u64 *a)
{
    struct side in = {0}, out = {0};
    s64 result = side_begin(&in, a[0], a[1]);
    if (!result)
        result = side_begin(&out, a[2], a[3]);
    if (!result)
        result = check_copy(&in, &out, a[4], a[5]);
    if (!result)
        result = transfer(&in, &out, a[4]);
    side_end(&in);
    side_end(&out);
    return result;
}
