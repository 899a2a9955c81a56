/*
 * Trace events: what happened, when, on which CPU, in which task. A place in the code says
 *
 *     TRACE(fault_retry, .addr = f->addr, .attempt = f->attempt);
 *
 * which costs one load and one branch while the event is off; the arguments are looked at only when it is on. What events
 * there are, and their fields, stands in kernel/log/trace_events.h. Records go into rings, one for each CPU, without any lock:
 *
 *     - a CPU writes only its own ring; an interrupt in the middle of a record takes the slots behind it;
 *     - slots are claimed by one compare-and-exchange together with the time, so the order in a ring is that of time;
 *     - when a ring is full, the oldest records are overwritten; whoever reads counts what is lost (kernel/log/trace_read.h).
 */
#ifndef KERNEL_LOG_TRACE_H
#define KERNEL_LOG_TRACE_H

#include "lib/types.h"

#define TRACE_FIELD_BYTES 56
#define TRACE_NAME_BYTES  16
#define TRACE_MARK_BYTES  4096 /* longest text that a program can record at once */

/* ---- The events ---- */

struct trace_text8 {
    char text[8];
};
struct trace_text16 {
    char text[16];
};

#define UNSIGNED(type, linux_type, name) type name;
#define SIGNED(type, linux_type, name)   type name;
#define TEXT(bytes, name)                struct trace_text##bytes name;
#define STRING(name)                     const char *name;
#define TRACE_EVENT(system, name, fields, ...) \
    struct trace_##name {                      \
        fields                                 \
    };                                         \
    _Static_assert(sizeof(struct trace_##name) <= TRACE_FIELD_BYTES, "record too large");
#include "kernel/log/trace_events.h"

enum trace_id {
    TRACE_ID_none,
    TRACE_ID_print, /* a program's own words, through trace_marker */
#define UNSIGNED(type, linux_type, name)
#define SIGNED(type, linux_type, name)
#define TEXT(bytes, name)
#define STRING(name)
#define TRACE_EVENT(system, name, fields, ...) TRACE_ID_##name,
#include "kernel/log/trace_events.h"
    TRACE_IDS
};

/* The text of TRACE_ID_print: what does not fit here is in the slots that follow. */
#define TRACE_PRINT_FIRST_BYTES 44
struct trace_print {
    u64 ip;
    u32 bytes;
    char buf[TRACE_PRINT_FIRST_BYTES];
};

/* ---- Recording ---- */

extern bool trace_on;               /* all of it: tracing_on */
extern u8 trace_enabled[TRACE_IDS]; /* each event */

/* In any context, also in interrupts; not in NMIs. Takes no lock, never sleeps. */
void trace_write(enum trace_id id, const void *fields, size_t bytes);

#define TRACE(event, ...)                                                       \
    do {                                                                        \
        if (unlikely(READ_ONCE(trace_enabled[TRACE_ID_##event])))               \
            trace_write(TRACE_ID_##event, &(struct trace_##event){__VA_ARGS__}, \
                        sizeof(struct trace_##event));                          \
    } while (0)

/* A program's words: at most TRACE_MARK_BYTES. ip: whose they are. => whether they were recorded (tracing is on) */
bool trace_write_mark(const char *text, size_t bytes, u64 ip);

/* Texts for records; what is too long is cut. */
struct trace_text8 trace_text8(const char *text);
struct trace_text16 trace_text16(const char *text);
/* A device number (major << 8 | minor) as records have it (major << 20 | minor). */
static inline u32 trace_dev(u64 dev)
{
    return (u32)(dev >> 8) << 20 | (u32)(dev & 0xff);
}

/* Switches one event, or all. */
void trace_enable(enum trace_id id, bool on);
void trace_enable_all(bool on);
bool trace_is_any_enabled(void);

/*
 * Calls `line` for the last `max` events of all CPUs, oldest first, also those that a reader has taken out. Racy by nature;
 * for panics and tests.
 */
void trace_print_last(unsigned max, void (*line)(const char *fmt, ...));

/* ---- Set by kernel/sched ---- */

struct trace_task {
    s32 pid;
    const char *name;
    bool needs_resched; /* its slice on this CPU is over */
};
/* The task that runs on this CPU; of an interrupt, the one that it came upon. Until then records have pid 0. */
void trace_set_task_source(struct trace_task (*current_task)(void));
/* This CPU may record from now on. Once on each CPU. */
void trace_init_cpu(void);

#endif
