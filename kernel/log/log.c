/*
 * Log lines: formatted into one buffer, handed whole to every sink, one line at a time.
 *
 * The lock is a bare word and not a spinlock: the lock-order checker logs too, and a panic must get
 * through whoever holds it. Interrupts are off while it is held, so no handler waits for its own
 * CPU.
 */
#include "kernel/log/log.h"

#include "kernel/cpu/clock.h"
#include "kernel/cpu/cpu.h"
#include "kernel/log/internal.h"
#include "kernel/sync/atomic.h"
#include "lib/format.h"

#define NS_PER_SECOND      1000000000ul
#define NS_PER_MICROSECOND 1000ul

static u32 line_lock;                    /* 1: a line is being written */
static char line_buffer[LOG_LINE_BYTES]; /* guarded by line_lock */
static struct log_sink *sinks;           /* grows at the head only; under line_lock */
static enum log_level max_level = LOG_INFO;

/*
 * The CPU that panics passes over the lock: its holder has been stopped, or is itself. Others wait
 * to be stopped.
 */
static bool take_line(void)
{
    bool irqs = irq_save_disable();

    while (!panic_is_ours() && atomic_exchange(&line_lock, 1) != 0)
        cpu_pause();
    return irqs;
}

static void give_line(bool irqs)
{
    atomic_store(&line_lock, 0);
    irq_restore(irqs);
}

void log_set_level(enum log_level level)
{
    WRITE_ONCE(max_level, level);
}

void log_add_sink(struct log_sink *sink)
{
    bool irqs = take_line();

    sink->next = sinks;
    atomic_store(&sinks, sink);
    give_line(irqs);
}

static void write_to_logs(const char *text, size_t len, bool panicking)
{
    bool written = false;

    for (struct log_sink *sink = atomic_load(&sinks); sink; sink = sink->next) {
        if (sink->is_console && !panicking)
            continue;
        sink->write(sink, text, len, panicking);
        written = true;
    }
    if (!written)
        early_write(text, len);
}

void log_write_panicking(const char *text, size_t len)
{
    write_to_logs(text, len, true);
}

void log_write_v(enum log_level level, const char *fmt, va_list args)
{
    if (level > READ_ONCE(max_level))
        return;
    bool irqs = take_line();
    u64 now = clock_ns();
    size_t used = 0;

    format_append(line_buffer, sizeof line_buffer - 1, &used, "[%4lu.%06lu] ", now / NS_PER_SECOND,
                  now % NS_PER_SECOND / NS_PER_MICROSECOND);
    int len = format_v(line_buffer + used, sizeof line_buffer - 1 - used, fmt, args);
    used = MIN(used + (size_t)len, sizeof line_buffer - 2);
    line_buffer[used++] = '\n';
    write_to_logs(line_buffer, used, panic_is_ours());
    give_line(irqs);
}

void log_write(enum log_level level, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    log_write_v(level, fmt, args);
    va_end(args);
}
