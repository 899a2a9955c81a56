/*
 * Traces: requests from a text file, read in pieces of fixed size and parsed a character at a time,
 * so that a file of a million lines needs no more memory than the list it becomes. See pattern.h.
 */
#include "user/lib/pattern.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define FIELDS_PER_LINE 2
/* The pages of one read call or one touch are counted in 32 bits. */
#define LENGTH_LIMIT UINT32_MAX

struct trace_parser {
    struct steps *steps;
    struct pattern_error *error;
    unsigned long line;
    unsigned long column;
    unsigned long field_column; /* where the field being read began */
    uint64_t fields[FIELDS_PER_LINE];
    size_t field_count; /* begun, the one being read included */
    bool in_field;
    bool in_comment;
};

static int fail_here(struct trace_parser *t, unsigned long column, const char *message)
{
    snprintf(t->error->text, sizeof(t->error->text), "%s", message);
    t->error->line = t->line;
    t->error->column = column;
    return -EINVAL;
}

/* The line is complete: makes its steps. A long request is a run of single pages. */
static int end_line(struct trace_parser *t)
{
    struct step_run run = {t->fields[0], 1, 1, 1, STEP_TOUCH};
    size_t fields = t->field_count;

    t->field_count = 0;
    t->in_field = false;
    t->in_comment = false;
    if (fields == 0)
        return 0;
    if (fields == 1)
        return steps_add(t->steps, STEP_TOUCH, t->fields[0], 1);
    if (t->fields[1] == 0)
        return fail_here(t, t->field_column, "the length must not be 0");
    if (t->fields[0] + t->fields[1] > PLAY_PAGE_LIMIT)
        return fail_here(t, t->field_column, "this request ends behind every possible file");
    run.count = t->fields[1];
    if (run.count == 1)
        return steps_add(t->steps, STEP_TOUCH, run.first_page, 1);
    return steps_add_run(t->steps, &run);
}

static int take_digit(struct trace_parser *t, unsigned int digit)
{
    uint64_t limit;

    if (!t->in_field) {
        if (t->field_count == FIELDS_PER_LINE)
            return fail_here(t, t->column, "a request has two numbers at most");
        t->in_field = true;
        t->field_column = t->column;
        t->fields[t->field_count++] = 0;
    }

    uint64_t *field = &t->fields[t->field_count - 1];

    limit = t->field_count == 1 ? PLAY_PAGE_LIMIT - 1 : LENGTH_LIMIT;
    *field = *field * 10 + digit;
    return *field > limit ? fail_here(t, t->field_column, "this number is too large") : 0;
}

static int take_character(struct trace_parser *t, unsigned char c)
{
    char message[80];

    t->column++;
    if (c == '\n') {
        int error = end_line(t);

        t->line++;
        t->column = 0;
        return error;
    }
    if (t->in_comment)
        return 0;
    if (c >= '0' && c <= '9')
        return take_digit(t, c - '0');
    t->in_field = false;
    if (c == ' ' || c == '\t' || c == '\r')
        return 0;
    if (c == '#') {
        t->in_comment = true;
        return 0;
    }
    if (c > ' ' && c < 127)
        snprintf(message, sizeof(message), "expected a page number, found '%c'", c);
    else
        snprintf(message, sizeof(message), "expected a page number, found byte 0x%02x", c);
    return fail_here(t, t->column, message);
}

int trace_parse(int fd, struct steps *steps, struct pattern_error *error)
{
    struct trace_parser t = {.steps = steps, .error = error, .line = 1};
    static unsigned char piece[16384];
    int result = 0;

    while (!result) {
        ssize_t got = read(fd, piece, sizeof(piece));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            result = -errno;
        if (got <= 0)
            break;
        for (ssize_t i = 0; !result && i < got; i++)
            result = take_character(&t, piece[i]);
    }
    if (!result)
        result = end_line(&t);
    if (result)
        steps_free(steps);
    return result;
}
