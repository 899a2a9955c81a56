/*
 * /dev/console, /dev/ttyS1 and /dev/tty. Where nobody sits in front of it (console=raw) the console
 * is a plain port: bytes as they are, no lines, no echo, and ioctl says -ENOTTY, so programs buffer
 * their output as they do into a pipe. Otherwise the files are the terminal's (fs/tty).
 */
#include "fs/dev/devices.h"

#include "drivers/devices.h"
#include "fs/tty/tty.h"
#include "lib/errno.h"
#include "mm/user_memory.h"

#define CHUNK_BYTES 512

static ssize_t console_file_read(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    char chunk[CHUNK_BYTES];
    bool wait = !(file->flags & O_NONBLOCK);
    ssize_t n;

    (void)pos;
    if (len == 0)
        return 0;
    n = console_read(chunk, MIN(len, sizeof(chunk)), wait);
    if (n == 0)
        return wait ? 0 : -EAGAIN;
    if (n < 0)
        return n;
    return copy_to_user(user_buf, chunk, n) ? -EFAULT : n;
}

static ssize_t console_file_write(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    char chunk[CHUNK_BYTES];
    size_t done = 0;

    (void)file, (void)pos;
    while (done < len) {
        size_t n = MIN(len - done, sizeof(chunk));
        size_t copied = copy_from_user_partial(chunk, user_buf + done, n);

        if (copied)
            console_write(chunk, copied);
        done += copied;
        if (copied < n)
            return done ? (ssize_t)done : -EFAULT;
    }
    return done;
}

static int open_terminal(struct file *file, struct tty *tty)
{
    file->ops = &file_ops_tty;
    file->private_ = tty;
    return 0;
}

static int console_file_open(struct inode *inode, struct file *file)
{
    struct tty *tty = tty_console();

    (void)inode;
    return tty ? open_terminal(file, tty) : 0;
}

/* /dev/tty is whatever controls the caller. */
static int controlling_file_open(struct inode *inode, struct file *file)
{
    struct tty *tty = tty_of_caller();

    (void)inode;
    if (!tty_console())
        return 0;
    return tty ? open_terminal(file, tty) : -ENXIO;
}

const struct file_ops file_ops_console = {
    .open = console_file_open,
    .read = console_file_read,
    .write = console_file_write,
};

const struct file_ops file_ops_controlling = {
    .open = controlling_file_open,
    .read = console_file_read,
    .write = console_file_write,
};
