/*
 * Reading the trace: the rings of all CPUs as one sequence in the order of time, while others write.
 *
 * Nobody is stopped. A record that is overwritten while it is read is noticed and passed over; one that is claimed but not
 * written yet ends what a cursor sees of that CPU.
 */
#ifndef KERNEL_LOG_TRACE_READ_H
#define KERNEL_LOG_TRACE_READ_H

#include "kernel/log/trace_ring.h"

/* A copy of one event. Large: not for the stack. */
struct trace_found {
    struct trace_record record;
    unsigned cpu;
    u64 lost;          /* slots of this CPU overwritten just before it, unread */
    size_t text_bytes; /* TRACE_ID_print */
    char text[TRACE_MARK_BYTES];
};

struct trace_cursor {
    u64 at[MAX_CPUS], end[MAX_CPUS]; /* slot numbers */
};

/* Rings may be replaced by others meanwhile: callers keep that from happening, by the readers' lock, or by not sleeping. */

/* All that is there now, from what is not taken out yet, or (all) from the oldest that is left. */
void trace_cursor_begin(struct trace_cursor *cursor, bool all);
/* => whether there was another one; it is passed */
bool trace_cursor_next(struct trace_cursor *cursor, struct trace_found *out);
/* Takes the oldest event out: readers' lock held. => whether there was one */
bool trace_take(struct trace_found *out);
bool trace_is_empty(void); /* nothing that trace_take() would find. Any context. */
void trace_clear(void);    /* takes all out, forgets all counts: readers' lock held */

/* Of one CPU, since it was cleared. */
struct trace_stats {
    u64 entries; /* there now, not taken out */
    u64 overrun; /* overwritten before anybody took them out */
    u64 taken;
    u64 bytes;     /* of the entries */
    u64 oldest_ns; /* 0: none */
};
void trace_stats_get(unsigned cpu, struct trace_stats *out);

/* ---- Text (trace_table.c) ---- */

struct trace_field {
    const char *declaration; /* "unsigned long addr" */
    unsigned offset, bytes;  /* in the record, from its `type` on */
    bool is_signed;
};

struct trace_event {
    const char *system, *name;
    const char *print; /* the format and its arguments, as the declaration has them */
    const struct trace_field *(*fields)(unsigned *n);
    int (*text)(const void *fields, char *buf,
                size_t size); /* => its length, as format_to() says */
};
extern const struct trace_event trace_events[TRACE_IDS]; /* [TRACE_ID_none] has no name */

/* One line as Linux writes it, newline last. => its length, which may exceed size */
size_t trace_format(const struct trace_found *found, char *buf, size_t size);
#define TRACE_LINE_BYTES (TRACE_MARK_BYTES + 256) /* enough for any */

#endif
