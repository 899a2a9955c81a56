/*
 * Steps: building and walking a list of runs. See steps.h.
 */
#include "user/lib/steps.h"

#include <errno.h>
#include <stdlib.h>

/* A block is a little less than 64 KiB, so that an allocator's header still fits. */
#define RUNS_PER_BLOCK 2040

struct step_block {
    struct step_block *next;
    size_t used;
    struct step_run runs[RUNS_PER_BLOCK];
};

void steps_init(struct steps *steps)
{
    *steps = (struct steps){0};
}

void steps_free(struct steps *steps)
{
    struct step_block *block = steps->first_block;

    while (block) {
        struct step_block *next = block->next;

        free(block);
        block = next;
    }
    steps_init(steps);
}

static bool is_touch(enum step_kind kind)
{
    return kind == STEP_TOUCH || kind == STEP_MARKED_TOUCH;
}

static bool is_read(enum step_kind kind)
{
    return kind == STEP_READ || kind == STEP_MARKED_READ;
}

/* Keeps the sums over all steps; the pages of a run are highest at one of its two ends. */
static void account_run(struct steps *steps, const struct step_run *run)
{
    uint64_t last = run->first_page + (uint64_t)run->stride_pages * (run->count - 1);
    uint64_t end = (last > run->first_page ? last : run->first_page) + run->length_pages;

    steps->step_count += run->count;
    if (is_read(run->kind) && run->length_pages > steps->longest_read_pages)
        steps->longest_read_pages = run->length_pages;
    if (!is_touch(run->kind))
        return;
    steps->has_touches = true;
    if (end > steps->touched_end_page)
        steps->touched_end_page = end;
}

static int append_run(struct steps *steps, const struct step_run *run)
{
    struct step_block *block = steps->last_block;

    if (!block || block->used == RUNS_PER_BLOCK) {
        block = malloc(sizeof(*block));
        if (!block)
            return -ENOMEM;
        block->next = NULL;
        block->used = 0;
        if (steps->last_block)
            steps->last_block->next = block;
        else
            steps->first_block = block;
        steps->last_block = block;
    }
    block->runs[block->used++] = *run;
    return 0;
}

int steps_add_run(struct steps *steps, const struct step_run *run)
{
    int error = append_run(steps, run);

    if (!error)
        account_run(steps, run);
    return error;
}

/* Does a step at `page` continue the run? A run of one takes any next page and so gets its stride.
 */
static bool continues_run(const struct step_run *run, enum step_kind kind, uint64_t page,
                          uint32_t length_pages)
{
    if (run->kind != (uint32_t)kind || run->length_pages != length_pages)
        return false;
    return run->count == 1 || page == run->first_page + (uint64_t)run->stride_pages * run->count;
}

int steps_add(struct steps *steps, enum step_kind kind, uint64_t page, uint32_t length_pages)
{
    struct step_run one = {page, 0, 1, length_pages, kind};
    struct step_block *block = steps->last_block;

    if (block && block->used > 0) {
        struct step_run *last = &block->runs[block->used - 1];

        if (continues_run(last, kind, page, length_pages)) {
            if (last->count == 1)
                last->stride_pages = (int64_t)(page - last->first_page);
            last->count++;
            account_run(steps, &one);
            return 0;
        }
    }
    return steps_add_run(steps, &one);
}

void steps_rewind(const struct steps *steps, struct step_cursor *cursor)
{
    *cursor = (struct step_cursor){.block = steps->first_block};
}

bool steps_next(struct step_cursor *cursor, struct step *step)
{
    while (cursor->block) {
        if (cursor->run == cursor->block->used) {
            cursor->block = cursor->block->next;
            cursor->run = 0;
            continue;
        }

        const struct step_run *run = &cursor->block->runs[cursor->run];

        step->page = run->first_page + (uint64_t)run->stride_pages * cursor->done;
        step->length_pages = run->length_pages;
        step->kind = run->kind;
        if (++cursor->done == run->count) {
            cursor->done = 0;
            cursor->run++;
        }
        return true;
    }
    return false;
}
