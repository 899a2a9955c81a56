/*
 * The trace ring: the last events of each CPU, for panics, gdb and tests. No lock: a CPU writes
 * only its own ring, interrupts take the next slot. Next to nothing when switched off.
 */
#ifndef KERNEL_LOG_TRACE_H
#define KERNEL_LOG_TRACE_H

#include "lib/types.h"

#define TRACE_RING_EVENTS 256 /* for each CPU */

struct trace_record {
    u64 time_ns;
    const char *format; /* a printf format taking up to four u64 (%lu, %lx) */
    u64 args[4];
    u32 pid;
    u32 cpu;
};

extern bool trace_on;
void trace_write(const char *format, u64 a, u64 b, u64 c, u64 d);

#define TRACE(format, a, b, c, d)                                        \
    do {                                                                 \
        if (unlikely(READ_ONCE(trace_on)))                               \
            trace_write(format, (u64)(a), (u64)(b), (u64)(c), (u64)(d)); \
    } while (0)

/*
 * Set by kernel/sched: pid of the task that runs on this CPU (any context). Until then events have
 * pid 0.
 */
void trace_set_pid_source(u32 (*current_pid)(void));

/*
 * Calls `line` for the last `max` events of all CPUs, oldest first. Racy by nature; for panics and
 * tests.
 */
void trace_print_last(unsigned max, void (*line)(const char *fmt, ...));

#endif
