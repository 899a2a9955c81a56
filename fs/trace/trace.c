/*
 * The file `trace`: what the rings hold, oldest first, as text. Reading takes nothing out; writing is accepted and means
 * nothing; opening with O_TRUNC clears.
 *
 * The text is made line by line as it is read. What is recorded after the reading began is not part of it, so it ends even
 * where reading itself is recorded.
 */
#include "fs/trace/tracefs.h"

#include "lib/errno.h"
#include "lib/format.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "mm/user_memory.h"

static SLEEP_LOCK_CLASS(open_lock_class, "trace text");

/* file->private_ */
struct open_trace {
    struct mutex lock; /* the rest */
    struct trace_cursor cursor;
    bool has_begun;
    u64 at;                 /* position in the file of line[line_at] */
    size_t line_at, length; /* of the line in hand */
    struct trace_found found;
    char line[TRACE_LINE_BYTES]; /* the header too */
};

static const char columns[] = "#                                _-----=> irqs-off/BH-disabled\n"
                              "#                               / _----=> need-resched\n"
                              "#                              | / _---=> hardirq/softirq\n"
                              "#                              || / _--=> preempt-depth\n"
                              "#                              ||| / _-=> migrate-disable\n"
                              "#                              |||| /     delay\n"
                              "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
                              "#              | |         |   |||||     |         |\n";

/* The text from its beginning, of what is there now. open->lock held. */
static void start_locked(struct open_trace *open)
{
    u64 entries = 0, overrun = 0;

    mutex_lock(&trace_read_lock);
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        struct trace_stats stats;

        trace_stats_get(cpu, &stats);
        entries += stats.entries;
        overrun += stats.overrun;
    }
    trace_cursor_begin(&open->cursor, false);
    mutex_unlock(&trace_read_lock);
    open->has_begun = true;
    open->at = open->line_at = 0;
    open->length =
        format_to(open->line, sizeof(open->line),
                  "# tracer: nop\n#\n# entries-in-buffer/entries-written: %lu/%lu   #P:%u\n#\n%s",
                  entries, entries + overrun, cpu_count(), columns);
}

/* There is something of a line in hand. open->lock held. => false: the text is at its end */
static bool fill_locked(struct open_trace *open)
{
    bool found;

    if (open->line_at < open->length)
        return true;
    mutex_lock(&trace_read_lock);
    found = trace_cursor_next(&open->cursor, &open->found);
    mutex_unlock(&trace_read_lock);
    open->line_at = 0;
    open->length = found ? trace_format(&open->found, open->line, sizeof(open->line)) : 0;
    return found;
}

static void pass_locked(struct open_trace *open, size_t n)
{
    open->line_at += n;
    open->at += n;
}

/* Moves to a position; going back means to start over. open->lock held. */
static void seek_locked(struct open_trace *open, u64 pos)
{
    if (pos == 0 || pos < open->at || !open->has_begun)
        start_locked(open);
    while (open->at < pos && fill_locked(open))
        pass_locked(open, MIN(open->length - open->line_at, pos - open->at));
}

static ssize_t read_locked(struct open_trace *open, u64 user_buf, size_t len)
{
    size_t done = 0;

    while (done < len && fill_locked(open)) {
        size_t want = MIN(len - done, open->length - open->line_at);
        size_t copied = copy_to_user_partial(user_buf + done, open->line + open->line_at, want);

        pass_locked(open, copied);
        done += copied;
        if (copied < want)
            return done ? (ssize_t)done : -EFAULT;
    }
    return done;
}

static ssize_t trace_read(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    struct open_trace *open = file->private_;
    ssize_t done = 0;

    mutex_lock(&open->lock);
    seek_locked(open, *pos);
    if (open->at == *pos)
        done = read_locked(open, user_buf, len);
    mutex_unlock(&open->lock);
    if (done > 0)
        *pos += done;
    return done;
}

static ssize_t trace_write_nothing(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    (void)file, (void)user_buf;
    *pos += len;
    return len;
}

static int trace_open(struct inode *inode, struct file *file)
{
    struct open_trace *open = kzalloc(sizeof(*open));

    (void)inode;
    if (!open)
        return -ENOMEM;
    mutex_init(&open->lock, &open_lock_class);
    file->private_ = open;
    return 0;
}

static void trace_close(struct file *file)
{
    kfree(file->private_);
}

static s64 trace_end(struct file *file)
{
    (void)file;
    return 0; /* the length is not known before it is read */
}

static const struct file_ops trace_ops = {
    .open = trace_open,
    .close = trace_close,
    .read = trace_read,
    .write = trace_write_nothing,
    .seek_end = trace_end,
    .is_seekable = true,
};

static void truncate(void *arg)
{
    (void)arg;
    trace_clear_all();
}

void trace_clear_all(void)
{
    mutex_lock(&trace_read_lock);
    trace_clear();
    mutex_unlock(&trace_read_lock);
}

static const struct text_file files[] = {
    {.path = "trace", .ops = &trace_ops, .truncate = truncate},
};

void tracefs_add_readers(struct super_block *super)
{
    tracefs_add(super, files, ARRAY_SIZE(files));
}
