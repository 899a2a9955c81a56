/*
 * Regular files and directories as open files: reading and mapping through the page cache. Writing
 * comes with a file system that can be written to.
 */
#include "fs/vfs.h"

#include "lib/errno.h"
#include "mm/file_read.h"

static ssize_t regular_read(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    ssize_t done = file_read_user(&file->mapped, *pos, user_buf, len);

    if (done > 0)
        *pos += done;
    return done;
}

static ssize_t directory_read(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    (void)file, (void)user_buf, (void)len, (void)pos;
    return -EISDIR;
}

ssize_t file_read_all_kernel(struct file *file, u64 pos, void *buf, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = file_read_kernel(&file->mapped, pos + done, (char *)buf + done, len - done);

        if (n < 0 && done == 0)
            return n;
        if (n <= 0)
            break;
        done += n;
    }
    return done;
}

const struct file_ops file_ops_regular = {
    .read = regular_read,
    .is_seekable = true,
    .can_map = true,
};

const struct file_ops file_ops_directory = {
    .read = directory_read,
    .is_seekable = true,
};
