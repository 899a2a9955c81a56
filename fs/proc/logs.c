/*
 * /proc files that are logs: readahead_log, a growing file of lines of fixed width, one for each
 * window; and trace, the last events of the trace (writing 1 or 0 switches all events on or off).
 * More of it is below /sys/kernel/tracing.
 */
#include "fs/proc/proc.h"
#include "fs/text_out.h"
#include "kernel/log/trace.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/readahead.h"
#include "mm/user_memory.h"

#define TRACE_EVENTS_SHOWN 1024
#define LOG_CHUNK_BYTES    (16 * READAHEAD_LOG_LINE) /* on the stack */

/* Whole lines as long as the position is at the beginning of one and `len` holds them. */
static ssize_t readahead_log_file_read(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    char chunk[LOG_CHUNK_BYTES];
    size_t done = 0;

    (void)file;
    while (done < len) {
        size_t got = readahead_log_read(*pos + done, chunk, MIN(len - done, sizeof(chunk)));
        size_t copied = got ? copy_to_user_partial(user_buf + done, chunk, got) : 0;

        done += copied;
        if (got && copied < got && !done)
            return -EFAULT;
        if (!got || copied < got)
            break;
    }
    *pos += done;
    return done;
}

static s64 readahead_log_file_end(struct file *file)
{
    (void)file;
    return readahead_log_end();
}

static const struct file_ops readahead_log_ops = {
    .read = readahead_log_file_read,
    .seek_end = readahead_log_file_end,
    .is_seekable = true,
};

static SLEEP_LOCK_CLASS(trace_lock_class, "trace text");
static struct mutex trace_lock = MUTEX_INIT(trace_lock, &trace_lock_class);
static struct text_out *trace_out; /* trace_lock: where trace_line puts its text */

static PRINTF_LIKE(1, 2) void trace_line(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    text_out_put_v(trace_out, fmt, args);
    va_end(args);
    text_out_bytes(trace_out, "\n", 1);
}

static size_t show_trace(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};

    (void)arg;
    mutex_lock(&trace_lock);
    trace_out = &out;
    text_out_put(&out, "tracing is %s\n",
                 READ_ONCE(trace_on) && trace_is_any_enabled() ? "on" : "off");
    trace_print_last(TRACE_EVENTS_SHOWN, trace_line);
    trace_out = NULL;
    mutex_unlock(&trace_lock);
    return out.len;
}

static int store_trace(void *arg, const char *text, size_t len)
{
    (void)arg;
    if (len != 1 || (text[0] != '0' && text[0] != '1'))
        return -EINVAL;
    trace_enable_all(text[0] == '1');
    return 0;
}

static const struct text_file files[] = {
    {.path = "readahead_log", .ops = &readahead_log_ops},
    {.path = "trace", .show = show_trace, .store = store_trace},
};

void proc_add_log_files(struct super_block *proc)
{
    proc_add_table(proc, files, ARRAY_SIZE(files));
}
