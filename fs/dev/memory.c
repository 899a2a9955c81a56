/*
 * /dev/null, /dev/zero, /dev/full.
 */
#include "fs/dev/devices.h"

#include "lib/errno.h"
#include "mm/user_memory.h"

static ssize_t read_nothing(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    (void)file, (void)user_buf, (void)len, (void)pos;
    return 0;
}

static ssize_t read_zeros(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    (void)file, (void)pos;
    return clear_user(user_buf, len) ? -EFAULT : (ssize_t)len;
}

static ssize_t write_away(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    (void)file, (void)user_buf, (void)pos;
    return len;
}

static ssize_t write_no_space(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    (void)file, (void)user_buf, (void)len, (void)pos;
    return -ENOSPC;
}

static s64 seek_end_none(struct file *file)
{
    (void)file;
    return 0;
}

const struct file_ops file_ops_null = {
    .read = read_nothing,
    .write = write_away,
    .seek_end = seek_end_none,
    .is_seekable = true,
};

const struct file_ops file_ops_zero = {
    .read = read_zeros,
    .write = write_away,
    .seek_end = seek_end_none,
    .is_seekable = true,
    .maps_anonymous = true,
};

const struct file_ops file_ops_full = {
    .read = read_zeros,
    .write = write_no_space,
    .seek_end = seek_end_none,
    .is_seekable = true,
};
