/*
 * Patterns: a recursive-descent parser for the one-word language that pattern.h describes.
 *
 * Rules: the parser stands at `at`, never reads behind the closing zero, and leaves at the first
 * error, with the column of the place that does not fit.
 */
#include "user/lib/pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct parser {
    const char *text;
    const char *at;
    struct steps *steps;
    struct pattern_error *error;
    enum step_kind kind;   /* of plain items */
    uint32_t length_pages; /* of plain items */
};

static int fail_at(struct parser *p, const char *where, const char *message)
{
    snprintf(p->error->text, sizeof(p->error->text), "%s", message);
    p->error->line = 1;
    p->error->column = (unsigned long)(where - p->text) + 1;
    return -EINVAL;
}

static int fail_expected(struct parser *p, const char *what)
{
    char message[120];

    if (*p->at)
        snprintf(message, sizeof(message), "expected %s, found '%c'", what, *p->at);
    else
        snprintf(message, sizeof(message), "expected %s, found the end", what);
    return fail_at(p, p->at, message);
}

static bool take(struct parser *p, char wanted)
{
    if (*p->at != wanted)
        return false;
    p->at++;
    return true;
}

static int parse_number(struct parser *p, const char *what, uint64_t limit, uint64_t *value)
{
    const char *start = p->at;
    uint64_t number = 0;

    if (!isdigit((unsigned char)*p->at))
        return fail_expected(p, what);
    while (isdigit((unsigned char)*p->at)) {
        number = number * 10 + (uint64_t)(*p->at++ - '0');
        if (number > limit)
            return fail_at(p, start, "this number is too large");
    }
    *value = number;
    return 0;
}

/* A page number such that `length_pages` pages from there on still have a byte position. */
static int parse_page(struct parser *p, uint32_t length_pages, uint64_t *page)
{
    return parse_number(p, "a page number", PLAY_PAGE_LIMIT - length_pages, page);
}

/* A number from 1 to what fits 32 bits. */
static int parse_count(struct parser *p, const char *what, uint64_t *value)
{
    const char *start = p->at;
    int error = parse_number(p, what, UINT32_MAX, value);

    if (!error && *value == 0)
        return fail_at(p, start, "this number must not be 0");
    return error;
}

/* a, a-b, a-b/step */
static int parse_range(struct parser *p)
{
    struct step_run run = {.count = 1, .length_pages = p->length_pages, .kind = p->kind};
    uint64_t last, step = 1;
    int error = parse_page(p, p->length_pages, &run.first_page);

    if (error)
        return error;
    if (!take(p, '-'))
        return steps_add(p->steps, p->kind, run.first_page, p->length_pages);
    error = parse_page(p, p->length_pages, &last);
    if (!error && take(p, '/'))
        error = parse_count(p, "a step", &step);
    if (error)
        return error;
    if (last >= run.first_page) {
        run.count = (last - run.first_page) / step + 1;
        run.stride_pages = (int64_t)step;
    } else {
        run.count = (run.first_page - last) / step + 1;
        run.stride_pages = -(int64_t)step;
    }
    return steps_add_run(p->steps, &run);
}

#define INTERLEAVED_MAX 16

/* i1000/5000x60, behind its i */
static int parse_interleaved(struct parser *p)
{
    uint64_t first[INTERLEAVED_MAX], rounds;
    size_t streams = 0;
    int error;

    do {
        if (streams == INTERLEAVED_MAX)
            return fail_at(p, p->at, "at most 16 streams can be interleaved");
        error = parse_page(p, p->length_pages, &first[streams++]);
        if (error)
            return error;
    } while (take(p, '/'));
    if (!take(p, 'x'))
        return fail_expected(p, "'/' and another stream, or 'x' and the number of rounds");

    const char *start = p->at;

    error = parse_count(p, "a number of rounds", &rounds);
    if (error)
        return error;
    for (size_t s = 0; s < streams; s++)
        if (first[s] + rounds > PLAY_PAGE_LIMIT - p->length_pages)
            return fail_at(p, start, "this number is too large");
    for (uint64_t round = 0; !error && round < rounds; round++)
        for (size_t s = 0; !error && s < streams; s++)
            error = steps_add(p->steps, p->kind, first[s] + round, p->length_pages);
    return error;
}

/* A-B or A, behind the d or w: one step over all these pages */
static int parse_hint(struct parser *p, enum step_kind kind)
{
    const char *start = p->at;
    uint64_t first, last;
    int error = parse_page(p, 1, &first);

    if (error)
        return error;
    last = first;
    if (take(p, '-'))
        error = parse_page(p, 1, &last);
    if (error)
        return error;
    if (last < first)
        return fail_at(p, start, "the last page of d or w must not lie before the first");
    if (last - first >= UINT32_MAX)
        return fail_at(p, start, "these are too many pages");
    return steps_add(p->steps, kind, first, (uint32_t)(last - first + 1));
}

/* Ra, Ma, behind the letter */
static int parse_marked(struct parser *p, enum step_kind kind)
{
    uint64_t page;
    int error;

    if (p->kind != STEP_TOUCH)
        return fail_at(p, p->at - 1, "R and M belong into an m: pattern");
    error = parse_page(p, 1, &page);
    return error ? error : steps_add(p->steps, kind, page, 1);
}

static int parse_item(struct parser *p)
{
    if (take(p, 'i'))
        return parse_interleaved(p);
    if (take(p, 'd'))
        return parse_hint(p, STEP_DROP);
    if (take(p, 'w'))
        return parse_hint(p, STEP_WILLNEED);
    if (take(p, 'R'))
        return parse_marked(p, STEP_MARKED_READ);
    if (take(p, 'M'))
        return parse_marked(p, STEP_MARKED_TOUCH);
    return parse_range(p);
}

/* m:, r:, rxN: */
static int parse_head(struct parser *p)
{
    uint64_t length = 1;
    int error = 0;

    if (take(p, 'm')) {
        p->kind = STEP_TOUCH;
    } else if (take(p, 'r')) {
        p->kind = STEP_READ;
        if (take(p, 'x'))
            error = parse_count(p, "the pages of one read", &length);
    } else {
        return fail_expected(p, "m:, r: or rxN:");
    }
    if (error)
        return error;
    p->length_pages = (uint32_t)length;
    return take(p, ':') ? 0 : fail_expected(p, "':'");
}

int pattern_parse(const char *text, struct steps *steps, struct pattern_error *error)
{
    struct parser p = {.text = text, .at = text, .steps = steps, .error = error};
    int result = parse_head(&p);

    while (!result) {
        result = parse_item(&p);
        if (result || !*p.at)
            break;
        if (!take(&p, ','))
            result = fail_expected(&p, "','");
    }
    if (result)
        steps_free(steps);
    return result;
}
