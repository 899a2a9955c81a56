/*
 * trace_pipe, which takes out what it shows and waits for more, and trace_marker, by which a program puts its own words into
 * the trace.
 *
 * An event cannot wake a reader: it may come from within the scheduler, under its locks. So while somebody waits, a timer
 * looks for him, and goes on as long as there is nobody to wake. A mark wakes at once.
 */
#include "fs/poll.h"
#include "fs/trace/tracefs.h"
#include "kernel/cpu/clock.h"
#include "kernel/sched/timer.h"
#include "lib/errno.h"
#include "lib/format.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "mm/user_memory.h"

#define LOOK_NS 10000000ul

static SLEEP_LOCK_CLASS(pipe_lock_class, "trace_pipe");
static struct wait_queue readers = WAIT_QUEUE_INIT(readers);

/* file->private_ */
struct open_pipe {
    struct mutex lock; /* the rest; not held while waiting */
    bool has_given;    /* something, at some time */
    size_t at, length; /* of a line that has been taken out, and not been read to its end */
    struct trace_found found;
    char line[TRACE_LINE_BYTES];
};

/* ---- Waiting ---- */

static LOCK_CLASS(look_lock_class, "trace look");
static struct spinlock look_lock =
    SPINLOCK_INIT(&look_lock_class); /* one arms the timer at a time */
static struct timer look_timer;

static bool is_worth_waking(void)
{
    return !trace_is_empty() || !READ_ONCE(trace_on);
}

/* Somebody has queued. Either this sees that the timer has expired, or the timer sees him. */
static void look_later(void)
{
    bool irqs = spin_lock_irq(&look_lock);

    if (!READ_ONCE(look_timer.is_armed))
        timer_arm(&look_timer, clock_ns() + LOOK_NS);
    spin_unlock_irq(&look_lock, irqs);
}

static void look(struct timer *unused)
{
    (void)unused;
    if (wait_queue_is_empty(&readers))
        return;
    if (is_worth_waking())
        wait_wake_all(&readers);
    else
        look_later();
}

/* Until there may be something. => 0 or -ERESTARTSYS */
static int wait_for_events(void)
{
    struct waiter w;
    int error = 0;

    wait_begin(&readers, &w, "events in the trace", 0, 0);
    if (trace_is_empty()) {
        look_later();
        error = wait_sleep_interruptible(&w, 0);
    } else if (task_signal_is_pending(task_current())) {
        error = -EINTR; /* what is there is still being written, and this is asked in a loop */
    }
    wait_end(&readers, &w);
    return error ? -ERESTARTSYS : 0;
}

/* ---- trace_pipe ---- */

/* There is something of a line in hand. open->lock held. => false: the trace is empty */
static bool fill_locked(struct open_pipe *open)
{
    bool taken;
    size_t used = 0;

    if (open->at < open->length)
        return true;
    mutex_lock(&trace_read_lock);
    taken = trace_take(&open->found);
    mutex_unlock(&trace_read_lock);
    open->at = open->length = 0;
    if (!taken)
        return false;
    if (open->found.lost)
        format_append(open->line, sizeof(open->line), &used, "CPU:%u [LOST %lu EVENTS]\n",
                      open->found.cpu, open->found.lost);
    open->length = used + trace_format(&open->found, open->line + used, sizeof(open->line) - used);
    return true;
}

static ssize_t take_locked(struct open_pipe *open, u64 user_buf, size_t len)
{
    size_t done = 0;

    while (done < len && fill_locked(open)) {
        size_t want = MIN(len - done, open->length - open->at);
        size_t copied = copy_to_user_partial(user_buf + done, open->line + open->at, want);

        open->at += copied;
        done += copied;
        if (copied < want)
            return done ? (ssize_t)done : -EFAULT;
    }
    return done;
}

static ssize_t pipe_read(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    struct open_pipe *open = file->private_;
    ssize_t done = 0;

    (void)pos;
    while (len > 0) {
        int error;
        bool is_over;

        mutex_lock(&open->lock);
        done = take_locked(open, user_buf, len);
        open->has_given |= done > 0;
        is_over = open->has_given && !READ_ONCE(trace_on);
        mutex_unlock(&open->lock);
        if (done != 0 || is_over)
            break;
        if (file->flags & O_NONBLOCK)
            return -EAGAIN;
        error = wait_for_events();
        if (error)
            return error;
    }
    return done;
}

static u32 pipe_poll(struct file *file, struct poll_round *round)
{
    const struct open_pipe *open = file->private_;

    poll_wait_on(round, &readers);
    if (round)
        look_later();
    return READ_ONCE(open->at) < READ_ONCE(open->length) || !trace_is_empty() ? POLLIN | POLLRDNORM
                                                                              : 0;
}

static int pipe_open(struct inode *inode, struct file *file)
{
    struct open_pipe *open = kzalloc(sizeof(*open));

    (void)inode;
    if (!open)
        return -ENOMEM;
    mutex_init(&open->lock, &pipe_lock_class);
    file->private_ = open;
    return 0;
}

static void pipe_close(struct file *file)
{
    kfree(file->private_);
}

static const struct file_ops pipe_ops = {
    .open = pipe_open,
    .close = pipe_close,
    .read = pipe_read,
    .poll = pipe_poll,
};

/* ---- trace_marker ---- */

/* A longer text is cut: the rest is for the next write. */
static ssize_t marker_write(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    size_t bytes = MIN(len, (size_t)TRACE_MARK_BYTES);
    ssize_t result = bytes;
    char *text;

    (void)file;
    if (!READ_ONCE(trace_on))
        return -EBADF;
    text = kmalloc(TRACE_MARK_BYTES);
    if (!text)
        return -ENOMEM;
    if (copy_from_user(text, user_buf, bytes))
        result = -EFAULT;
    else if (!trace_write_mark(text, bytes, (u64)__builtin_return_address(0)))
        result = -EBADF;
    kfree(text);
    if (result < 0)
        return result;
    wait_wake_all(&readers);
    *pos += result;
    return result;
}

static const struct file_ops marker_ops = {.write = marker_write};

static const struct text_file files[] = {
    {.path = "trace_pipe", .ops = &pipe_ops},
    {.path = "trace_marker", .ops = &marker_ops},
};

void tracefs_add_pipes(struct super_block *super)
{
    timer_init(&look_timer, look);
    tracefs_add(super, files, ARRAY_SIZE(files));
}
