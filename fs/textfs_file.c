/*
 * Open generated files: show() makes the whole text into a buffer of the open file, which reads
 * then copy from; store() gets each write whole.
 */
#include "fs/textfs.h"

#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "mm/user_memory.h"

#define FIRST_TEXT_BYTES 4096ul
#define MAX_STORE_BYTES  4096ul

static SLEEP_LOCK_CLASS(text_lock_class, "generated text");

/* file->private_ */
struct open_text {
    struct mutex lock; /* the rest; two preads may come at once */
    char *text;        /* NULL: not made yet */
    size_t len, room;
};

static int text_open(struct inode *inode, struct file *file)
{
    const struct text_file *entry = text_file_of(inode);
    struct open_text *open;

    if (file->mapped.can_read && !entry->show)
        return -EACCES;
    if (file->mapped.can_write && !entry->store)
        return -EACCES;
    open = kzalloc(sizeof(*open));
    if (!open)
        return -ENOMEM;
    mutex_init(&open->lock, &text_lock_class);
    file->private_ = open;
    return 0;
}

static void text_close(struct file *file)
{
    struct open_text *open = file->private_;

    kfree(open->text);
    kfree(open);
}

static int text_make_room(struct open_text *open, size_t room)
{
    if (open->room >= room)
        return 0;
    kfree(open->text);
    open->room = 0;
    open->text = kmalloc(room);
    if (!open->text)
        return -ENOMEM;
    open->room = room;
    return 0;
}

/* Asks show() until the text fits; one of more than 1 MiB is cut. Lock held. => 0 or -ENOMEM */
static int text_make_locked(struct open_text *open, const struct text_file *entry)
{
    size_t room = FIRST_TEXT_BYTES;

    for (;;) {
        int error = text_make_room(open, room);
        size_t len;

        if (error)
            return error;
        len = entry->show(entry->arg, open->text, open->room);
        if (len < open->room || open->room >= KMALLOC_MAX_BYTES) {
            open->len = MIN(len, open->room - 1); /* the last byte may be a formatter's NUL */
            return 0;
        }
        room = open->room;
        while (room <= len && room < KMALLOC_MAX_BYTES)
            room *= 2;
    }
}

static ssize_t text_read(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    struct open_text *open = file->private_;
    ssize_t done = 0;

    mutex_lock(&open->lock);
    if (*pos == 0 || !open->text)
        done = text_make_locked(open, text_file_of(file->inode));
    if (!done && *pos < open->len) {
        size_t want = MIN(len, open->len - *pos);
        size_t copied = copy_to_user_partial(user_buf, open->text + *pos, want);

        done = copied || !want ? (ssize_t)copied : -EFAULT;
    }
    mutex_unlock(&open->lock);
    if (done > 0)
        *pos += done;
    return done;
}

static ssize_t text_write(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    const struct text_file *entry = text_file_of(file->inode);
    size_t text_len = len;
    char *text;
    int error;

    if (len > MAX_STORE_BYTES)
        return -EINVAL;
    text = kmalloc(len + 1);
    if (!text)
        return -ENOMEM;
    error = copy_from_user(text, user_buf, len);
    if (!error) {
        if (text_len && text[text_len - 1] == '\n')
            text_len--;
        text[text_len] = '\0';
        error = entry->store(entry->arg, text, text_len);
    }
    kfree(text);
    if (error)
        return error;
    *pos += len;
    return len;
}

static s64 text_end(struct file *file)
{
    (void)file;
    return 0; /* as /proc does: the length is not known before it is read */
}

const struct file_ops file_ops_text = {
    .open = text_open,
    .close = text_close,
    .read = text_read,
    .write = text_write,
    .seek_end = text_end,
    .is_seekable = true,
};
