/*
 * The kernel's log and its last words.
 *
 * A message is formatted into one buffer and handed whole to every sink under one lock, so lines of
 * several CPUs never mix. Usable from the first instruction of C, in interrupts, with any lock
 * held.
 */
#ifndef KERNEL_LOG_LOG_H
#define KERNEL_LOG_LOG_H

#include <stdarg.h>

#include "lib/types.h"

struct trap_frame;

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_write(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);
void log_set_level(enum log_level level); /* messages above it are dropped; default LOG_INFO */

/*
 * One line each; the newline is added. A prefix "[   1.234567] " (seconds of clock_ns) goes before
 * it.
 */
#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_write(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)

/* The same with a va_list, and how many bytes a line has at most (longer ones are cut). */
#define LOG_LINE_BYTES 1024
void log_write_v(enum log_level level, const char *fmt, va_list args) PRINTF_LIKE(2, 0);

/*
 * Where log lines go. Until there is one they go to COM1, polled. `write` must not sleep or log;
 * with `panicking` set it must not wait for interrupts or locks.
 */
struct log_sink {
    void (*write)(struct log_sink *sink, const char *text, size_t len, bool panicking);
    bool is_console; /* gets panics only, not ordinary log lines */
    struct log_sink *next;
};
void log_add_sink(struct log_sink *sink);

/*
 * Ends the machine after a report (kernel/log/report.h) on every sink. Registers are those of the trap frame; none where it
 * is NULL, or in panic(). Other CPUs are stopped first.
 */
NORETURN void panic(const char *fmt, ...) PRINTF_LIKE(1, 2);
NORETURN void panic_frame(const struct trap_frame *frame, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool panic_in_progress(void);
/*
 * The part of a panic that shows the way to `frame` (NULL: to the caller): one line for each
 * function, through trap frames.
 */
void backtrace_print(const struct trap_frame *frame, void (*line)(const char *fmt, ...));

#define ASSERT(cond)                                                          \
    do {                                                                      \
        if (unlikely(!(cond)))                                                \
            panic("assertion failed: %s (%s:%d)", #cond, __FILE__, __LINE__); \
    } while (0)

/* Name of the kernel function at addr and the offset in it; NULL outside the kernel's text. */
const char *symbol_find(u64 addr, u64 *offset);

/* How the machine ends: writes the status line to the debugcon port, then leaves QEMU. */
enum machine_end { MACHINE_EXIT, MACHINE_POWEROFF, MACHINE_PANIC };
NORETURN void machine_end(enum machine_end kind, int status);
/*
 * Called by machine_end() before the status is sent: flush consoles; and the ACPI way to switch
 * off.
 */
void machine_end_set_hooks(void (*flush)(void), void (*power_off)(void));

#endif
