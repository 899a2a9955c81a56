/*
 * What is recorded: tracing_on for all, and a switch for each event, for each system, and for all of them; set_event has the
 * same as words. The files of an event say how its records are laid out.
 */
#include "fs/trace/tracefs.h"
#include "lib/errno.h"
#include "lib/format.h"
#include "lib/parse.h"
#include "lib/string.h"

#define FIRST_EVENT (TRACE_ID_print + 1)
#define WORD_BYTES  96
#define PATH_BYTES  96

/* ---- Switches ---- */

/* Of which events? system NULL: any. name NULL: any. Both may have the wild cards of set_event. */
struct choice {
    const char *system, *name;
};

static bool is_chosen(const struct choice *choice, unsigned id)
{
    const struct trace_event *event = &trace_events[id];

    return (!choice->system || glob_match(choice->system, event->system)) &&
           (!choice->name || glob_match(choice->name, event->name));
}

/* => number of events that it is about */
static unsigned switch_events(const struct choice *choice, bool on)
{
    unsigned n = 0;

    for (unsigned id = FIRST_EVENT; id < TRACE_IDS; id++) {
        if (!is_chosen(choice, id))
            continue;
        if (on && n == 0)
            trace_buffer_expand();
        trace_enable(id, on);
        n++;
    }
    return n;
}

/* '0': all are off, '1': all are on, 'X': some */
static char state_of(const struct choice *choice)
{
    unsigned n = 0, n_on = 0;

    for (unsigned id = FIRST_EVENT; id < TRACE_IDS; id++) {
        if (!is_chosen(choice, id))
            continue;
        n++;
        n_on += READ_ONCE(trace_enabled[id]);
    }
    return n_on == 0 ? '0' : n_on == n ? '1' : 'X';
}

/* arg: one event; a system's first event; 0: all */
static struct choice choice_of(void *arg, bool of_system)
{
    const struct trace_event *event = &trace_events[(u64)arg];

    return (struct choice){event->system, of_system ? NULL : event->name};
}

static size_t put_state(char *buf, size_t size, const struct choice *choice)
{
    struct text_out out = {buf, size, 0};

    text_out_put(&out, "%c\n", state_of(choice));
    return out.len;
}

static int store_state(const char *text, size_t len, const struct choice *choice)
{
    u64 on;

    if (parse_u64(text, len, 10, &on) || on > 1)
        return -EINVAL;
    switch_events(choice, on);
    return 0;
}

static size_t show_event(void *arg, char *buf, size_t size)
{
    struct choice choice = choice_of(arg, false);

    return put_state(buf, size, &choice);
}

static int store_event(void *arg, const char *text, size_t len)
{
    struct choice choice = choice_of(arg, false);

    return store_state(text, len, &choice);
}

static size_t show_system(void *arg, char *buf, size_t size)
{
    struct choice choice = choice_of(arg, true);

    return put_state(buf, size, &choice);
}

static int store_system(void *arg, const char *text, size_t len)
{
    struct choice choice = choice_of(arg, true);

    return store_state(text, len, &choice);
}

static size_t show_on(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};

    (void)arg;
    text_out_put(&out, "%u\n", READ_ONCE(trace_on));
    return out.len;
}

static int store_on(void *arg, const char *text, size_t len)
{
    u64 on;

    (void)arg;
    if (parse_u64(text, len, 10, &on))
        return -EINVAL;
    WRITE_ONCE(trace_on, on != 0);
    return 0;
}

/* ---- Lists of events ---- */

/* arg NULL: all, else those that are on */
static size_t show_events(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};

    for (unsigned id = FIRST_EVENT; id < TRACE_IDS; id++)
        if (!arg || READ_ONCE(trace_enabled[id]))
            text_out_put(&out, "%s:%s\n", trace_events[id].system, trace_events[id].name);
    return out.len;
}

/* SYSTEM:EVENT, SYSTEM:, or a name that may be either; "!" in front switches it off. */
static int switch_word(char *word)
{
    bool on = word[0] != '!';
    char *first = on ? word : word + 1, *colon = strchr(first, ':');
    struct choice choice = {first, NULL};

    if (!colon) {
        unsigned n = switch_events(&choice, on);

        choice = (struct choice){NULL, first};
        return n + switch_events(&choice, on) ? 0 : -EINVAL;
    }
    *colon = '\0';
    choice.name = colon[1] ? colon + 1 : NULL;
    return switch_events(&choice, on) ? 0 : -EINVAL;
}

static int store_events(void *arg, const char *text, size_t len)
{
    char word[WORD_BYTES];
    int error = 0;

    (void)arg, (void)len;
    while (!error) {
        size_t n = 0;

        while (*text == ' ' || *text == '\t' || *text == '\n')
            text++;
        if (!*text)
            return 0;
        for (; *text && *text != ' ' && *text != '\t' && *text != '\n'; text++)
            if (n < sizeof(word) - 1)
                word[n++] = *text;
        word[n] = '\0';
        error = switch_word(word);
    }
    return error;
}

static void truncate_events(void *arg)
{
    (void)arg;
    trace_enable_all(false);
}

/* ---- The files of an event ---- */

static void put_field(struct text_out *out, const char *declaration, unsigned offset,
                      unsigned bytes, bool is_signed)
{
    text_out_put(out, "\tfield:%s;\toffset:%u;\tsize:%u;\tsigned:%u;\n", declaration, offset, bytes,
                 is_signed);
}

static size_t show_format(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    const struct trace_event *event = &trace_events[(u64)arg];
    unsigned n;
    const struct trace_field *fields = event->fields(&n);

    text_out_put(&out, "name: %s\nID: %lu\nformat:\n", event->name, (u64)arg);
    put_field(&out, "unsigned short common_type", 0, 2, false);
    put_field(&out, "unsigned char common_flags", 2, 1, false);
    put_field(&out, "unsigned char common_preempt_count", 3, 1, false);
    put_field(&out, "int common_pid", 4, 4, true);
    text_out_put(&out, "\n");
    for (unsigned i = 0; i < n; i++)
        put_field(&out, fields[i].declaration, fields[i].offset, fields[i].bytes,
                  fields[i].is_signed);
    text_out_put(&out, "\nprint fmt: %s\n", event->print);
    return out.len;
}

static size_t show_id(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};

    text_out_put(&out, "%lu\n", (u64)arg);
    return out.len;
}

/* ---- The tree ---- */

static size_t show_nop(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};

    (void)arg;
    text_out_put(&out, "nop\n");
    return out.len;
}

static int store_nop(void *arg, const char *text, size_t len)
{
    (void)arg, (void)len;
    return strcmp(text, "nop") == 0 ? 0 : -EINVAL;
}

static const struct text_file files[] = {
    {.path = "tracing_on", .show = show_on, .store = store_on},
    {.path = "available_events", .show = show_events},
    {.path = "set_event",
     .show = show_events,
     .store = store_events,
     .truncate = truncate_events,
     .arg = (void *)1},
    {.path = "available_tracers", .show = show_nop},
    {.path = "current_tracer", .show = show_nop, .store = store_nop},
    {.path = "events/enable", .show = show_system, .store = store_system},
};

static void add_event_file(struct super_block *super, u64 id, const char *name,
                           const struct text_file *file)
{
    const struct trace_event *event = &trace_events[id];
    struct text_file with_arg = *file;
    char path[PATH_BYTES];

    with_arg.arg = (void *)id;
    if (name[0] == '/') /* the system's own */
        format_to(path, sizeof(path), "events/%s%s", event->system, name);
    else
        format_to(path, sizeof(path), "events/%s/%s/%s", event->system, event->name, name);
    tracefs_add_one(super, path, &with_arg);
}

static bool is_first_of_system(unsigned id)
{
    for (unsigned other = FIRST_EVENT; other < id; other++)
        if (strcmp(trace_events[other].system, trace_events[id].system) == 0)
            return false;
    return true;
}

void tracefs_add_switches(struct super_block *super)
{
    static const struct text_file format = {.show = show_format}, number = {.show = show_id};
    static const struct text_file event = {.show = show_event, .store = store_event};
    static const struct text_file system = {.show = show_system, .store = store_system};

    tracefs_add(super, files, ARRAY_SIZE(files));
    for (unsigned id = TRACE_ID_print; id < TRACE_IDS; id++) {
        add_event_file(super, id, "format", &format);
        add_event_file(super, id, "id", &number);
        if (id == TRACE_ID_print)
            continue;
        add_event_file(super, id, "enable", &event);
        if (is_first_of_system(id))
            add_event_file(super, id, "/enable", &system);
    }
}
