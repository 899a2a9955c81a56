/*
 * Patterns and traces: the two ways to write down what a run is to do.
 *
 * A pattern is one word, `KIND:ITEM,ITEM,...`:
 *
 *     m:            each page of an item is touched through the mapping
 *     r:  rxN:      each page of an item is the start of one read of 1, of N pages
 *
 *     a             page a                        a-b       a up (or down) to b
 *     a-b/step      every step-th of them         i1/5x60   60 rounds: 1 5 2 6 3 7 ...
 *     dA-B          drop these pages (also dA)    wA-B      announce these pages (also wA)
 *     Ra  Ma        in m: only: read, or touch, page a, and say so in the output
 *
 * A trace is a text file, one request a line: `position [length]` in pages, length 1 where it is
 * left out; `#` starts a comment. Each of its pages is touched through the mapping, in order.
 */
#ifndef USER_LIB_PATTERN_H
#define USER_LIB_PATTERN_H

#include "user/lib/steps.h"

/* What was wrong with the text, and where: the first line and column have number 1. */
struct pattern_error {
    char text[160];
    unsigned long line;
    unsigned long column;
};

/*
 * Parses a pattern into an empty list. 0; -EINVAL with *error filled in and the list empty;
 * -ENOMEM.
 */
int pattern_parse(const char *text, struct steps *steps, struct pattern_error *error);

/*
 * Parses a trace from an open descriptor to its end, a piece at a time. As pattern_parse; a failed
 * read gives its own negative errno.
 */
int trace_parse(int fd, struct steps *steps, struct pattern_error *error);

#endif
