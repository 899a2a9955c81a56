/*
 * Between the files of this room.
 */
#ifndef KERNEL_LOG_INTERNAL_H
#define KERNEL_LOG_INTERNAL_H

#include "kernel/log/log.h"

/* COM1, polled: where text goes before a serial driver has registered a sink. */
void early_write(const char *text, size_t len);

/* Hands text to every sink (consoles too), without any lock. Only the CPU that panics calls it. */
void log_write_panicking(const char *text, size_t len);

/* Is this the CPU that panics? */
bool panic_is_ours(void);

/* Panic reports: one line, formatted, to every sink. */
void panic_line(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* "symbol+0x12", or the bare address. The buffer's size is that of the array. */
#define SYMBOL_TEXT_BYTES 96
const char *symbol_format(u64 addr, char buf[SYMBOL_TEXT_BYTES]);

/*
 * How many functions the frame's stack holds (door not crossed); *function is one from the middle of
 * it, which comes *times times: where a function calls itself without end, that one.
 */
unsigned backtrace_depth(const struct trap_frame *frame, u64 *function, unsigned *times);

#endif
