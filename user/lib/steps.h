/*
 * Steps: what a run is to do with a file, page by page, held in little memory.
 *
 * A list of runs in arithmetic progression, so that a scan of a million pages is one entry and a
 * random trace takes 32 bytes for two requests. Blocks are allocated while a list is built; walking
 * it allocates nothing and touches nothing that was not written before, so it causes no fault.
 */
#ifndef USER_LIB_STEPS_H
#define USER_LIB_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAY_PAGE_BYTES 4096
/* The first page number whose byte position no longer fits a signed 64-bit offset. */
#define PLAY_PAGE_LIMIT ((uint64_t)INT64_MAX / PLAY_PAGE_BYTES)

enum step_kind {
    STEP_TOUCH,        /* load every byte of each page through the mapping */
    STEP_READ,         /* one read call for all the pages */
    STEP_MARKED_TOUCH, /* the same two, written M and R in a pattern and named so in the output */
    STEP_MARKED_READ,
    STEP_DROP,     /* drop the pages from the cache */
    STEP_WILLNEED, /* announce the pages */
    STEP_KINDS,
};

/* One step: `length_pages` pages from `page` on. */
struct step {
    uint64_t page;
    uint32_t length_pages;
    enum step_kind kind;
};

/* `count` steps of equal kind and length, each `stride_pages` behind the one before. */
struct step_run {
    uint64_t first_page;
    int64_t stride_pages;
    uint64_t count;
    uint32_t length_pages;
    uint32_t kind;
};

struct step_block;

struct steps {
    struct step_block *first_block;
    struct step_block *last_block;
    uint64_t step_count;
    uint64_t touched_end_page; /* one more than the highest page of any touch; 0 without a touch */
    uint32_t longest_read_pages;
    bool has_touches;
};

/* Where a walk stands. */
struct step_cursor {
    const struct step_block *block;
    size_t run;
    uint64_t done;
};

/* An empty list. */
void steps_init(struct steps *steps);

/* Gives the memory back; the list is empty afterwards. */
void steps_free(struct steps *steps);

/*
 * Appends one step, or a run of `count` steps (`count` > 0). The caller has checked that every page
 * of it lies between 0 and PLAY_PAGE_LIMIT. 0, or -ENOMEM with the list as it was.
 */
int steps_add(struct steps *steps, enum step_kind kind, uint64_t page, uint32_t length_pages);
int steps_add_run(struct steps *steps, const struct step_run *run);

/* Starts a walk at the first step; steps_next fills in *step, or returns false behind the last. */
void steps_rewind(const struct steps *steps, struct step_cursor *cursor);
bool steps_next(struct step_cursor *cursor, struct step *step);

#endif
