/*
 * The table of events, made of their declarations, and the text of a record.
 */
#include "kernel/cpu/clock.h"
#include "kernel/log/trace_read.h"
#include "lib/format.h"
#include "lib/string.h"

#define NS_PER_S  1000000000ul
#define NS_PER_US 1000ul

/* A record as its `print` sees it: texts are plain arrays. Laid out as struct trace_NAME. */
#define UNSIGNED(type, linux_type, name) type name;
#define SIGNED(type, linux_type, name)   type name;
#define TEXT(bytes, name)                char name[bytes];
#define STRING(name)                     const char *name;
#define TRACE_EVENT(system, name, fields, ...)                                      \
    struct shown_##name {                                                           \
        fields                                                                      \
    };                                                                              \
    _Static_assert(sizeof(struct shown_##name) == sizeof(struct trace_##name), ""); \
    static int text_##name(const void *record, char *buf, size_t size)              \
    {                                                                               \
        const struct shown_##name *REC = record;                                    \
        return format_to(buf, size, __VA_ARGS__);                                   \
    }
#include "kernel/log/trace_events.h"

#define FIELD(text, name, is_signed)                                                         \
    {text, TRACE_COMMON_BYTES + offsetof(this_event, name), sizeof(((this_event *)0)->name), \
     is_signed},
#define UNSIGNED(type, linux_type, name) FIELD(linux_type " " #name, name, false)
#define SIGNED(type, linux_type, name)   FIELD(linux_type " " #name, name, true)
#define TEXT(bytes, name)                FIELD("char " #name "[" #bytes "]", name, false)
#define STRING(name)                     FIELD("const char *" #name, name, false)
#define TRACE_EVENT(system, name, list, ...)                    \
    static const struct trace_field *fields_##name(unsigned *n) \
    {                                                           \
        typedef struct shown_##name this_event;                 \
        static const struct trace_field fields[] = {list};      \
        *n = ARRAY_SIZE(fields);                                \
        return fields;                                          \
    }
#include "kernel/log/trace_events.h"

static const struct trace_field *fields_of_print(unsigned *n)
{
    typedef struct trace_print this_event;
    static const struct trace_field fields[] = {FIELD("unsigned long ip", ip, false) FIELD(
        "unsigned int bytes", bytes, false) FIELD("char buf[]", buf, false)};
    *n = ARRAY_SIZE(fields);
    return fields;
}

const struct trace_event trace_events[TRACE_IDS] = {
    [TRACE_ID_print] = {"ftrace", "print", "\"%ps: %s\", (void *)REC->ip, REC->buf",
                        fields_of_print, NULL},
#define UNSIGNED(type, linux_type, name)
#define SIGNED(type, linux_type, name)
#define TEXT(bytes, name)
#define STRING(name)
#define TRACE_EVENT(system, name, list, ...) \
    [TRACE_ID_##name] = {#system, #name, #__VA_ARGS__, fields_##name, text_##name},
#include "kernel/log/trace_events.h"
};

/* Who, where, when: the part of the line that all events have. */
static void put_common(const struct trace_found *found, char *buf, size_t size, size_t *used)
{
    const struct trace_record *r = &found->record;
    char flags[] = ".....";

    if (r->flags & TRACE_FLAG_IRQS_OFF)
        flags[0] = 'd';
    if (r->flags & TRACE_FLAG_NEED_RESCHED)
        flags[1] = 'N';
    if (r->flags & TRACE_FLAG_HARDIRQ)
        flags[2] = 'h';
    format_append(buf, size, used, "%16s-%-7d [%03u] %s %5lu.%06lu: ", r->task, r->pid, found->cpu,
                  flags, r->time_ns / NS_PER_S, r->time_ns % NS_PER_S / NS_PER_US);
}

size_t trace_format(const struct trace_found *found, char *buf, size_t size)
{
    const struct trace_record *r = &found->record;
    size_t used = 0;

    put_common(found, buf, size, &used);
    if (r->type == TRACE_ID_print) {
        format_append(buf, size, &used, "tracing_mark_write: %.*s", (int)found->text_bytes,
                      found->text);
        if (used > 0 && buf[used - 1] == '\n')
            used--;
    } else if (r->type > TRACE_ID_print && r->type < TRACE_IDS) {
        const struct trace_event *event = &trace_events[r->type];

        format_append(buf, size, &used, "%s: ", event->name);
        used += event->text(r->fields, buf + used, size - used);
    }
    used = MIN(used, size - 2);
    buf[used++] = '\n';
    buf[used] = '\0';
    return used;
}

void trace_print_last(unsigned max, void (*line)(const char *fmt, ...))
{
    static struct trace_cursor cursor; /* too large for a stack that may be nearly full */
    static struct trace_found found;
    static char text[TRACE_LINE_BYTES];
    unsigned n = 0;

    trace_cursor_begin(&cursor, true);
    while (trace_cursor_next(&cursor, &found))
        n++;
    if (n == 0)
        return;
    line("last %u trace events:", MIN(n, max));
    trace_cursor_begin(&cursor, true);
    for (unsigned i = 0; i < n && trace_cursor_next(&cursor, &found); i++) {
        if (i + max < n)
            continue;
        text[trace_format(&found, text, sizeof(text)) - 1] = '\0';
        line("  %s", text);
    }
}
