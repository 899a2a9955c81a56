/*
 * Play: carries out steps on a file and says what that cost.
 *
 * A run opens the file afresh (so that its readahead state and window are fresh), drops its cached
 * pages, maps it whole and once where there is something to touch, gives the advice, makes itself
 * resident, and only then samples the counters. From there to the second sample it allocates
 * nothing and uses no stdio: every fault and every disk request in between is one of the file's.
 *
 * A touch behind the end of the file is a real one: it ends the program by SIGBUS.
 */
#ifndef USER_LIB_PLAY_H
#define USER_LIB_PLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "user/lib/stats.h"
#include "user/lib/steps.h"

enum play_advice {
    ADVICE_NONE,
    ADVICE_FILE_SEQUENTIAL,
    ADVICE_FILE_RANDOM,
    ADVICE_MAP_SEQUENTIAL,
    ADVICE_MAP_RANDOM,
    ADVICE_MAP_WILLNEED,
};

struct play_options {
    const char *path;
    enum play_advice advice;
    const char *io_prefix; /* not NULL: write the line of windows to stdout, behind this text */
};

struct play_result {
    uint64_t touched_pages;
    uint64_t checksum;
    int64_t resident_pages;  /* at the end; -1 where that cannot be told */
    int64_t undropped_pages; /* before the run; -1 where that cannot be told */
    uint64_t dev;            /* the file's device, as in st_dev */
    struct stats stats;
    bool has_io_log;
    uint64_t io_windows; /* these three from the log of windows */
    uint64_t io_window_pages;
    uint64_t io_lost;
    char error[200]; /* what went wrong, one line */
};

/* A name of an advice (none, fseq, frand, mseq, mrand, mwill). */
bool play_parse_advice(const char *name, enum play_advice *advice);

/* 0, or a negative errno with result->error filled in. */
int play_run(const struct play_options *options, const struct steps *steps,
             struct play_result *result);

#endif
