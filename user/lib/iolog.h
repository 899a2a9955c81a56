/*
 * I/O log: every window of readahead, beside the access that caused it, as one line of text.
 *
 * Reads the kernel's /proc/readahead_log after each access: lines of exactly 64 bytes,
 * `SEQ DEV:INO KIND ACCESS START N MARK`, so that record k lies at byte 64*k. Records of other
 * files are skipped. The line is written out in pieces as it grows, and nothing is allocated.
 */
#ifndef USER_LIB_IOLOG_H
#define USER_LIB_IOLOG_H

#include <stdint.h>

#include "user/lib/steps.h"

#define IOLOG_TEXT_BYTES 32768

struct iolog {
    int log_fd; /* -1 where the kernel has no such log */
    int out_fd;
    uint64_t dev;
    uint64_t ino;
    uint64_t windows;
    uint64_t window_pages;
    uint64_t lost; /* records overwritten, or not understood, before they were read */
    size_t used;
    char text[IOLOG_TEXT_BYTES];
};

/*
 * Opens the log at its present end, for windows of the file behind `file_fd`; the text goes to
 * `out_fd`. 0, -ENOENT where the kernel has no log (the rest may be called all the same), or
 * another negative errno.
 */
int iolog_open(struct iolog *log, int file_fd, int out_fd);

/* Begins the line with `prefix`. */
void iolog_begin(struct iolog *log, const char *prefix);

/* Appends the windows that came up since the last call, as caused by `step`. */
void iolog_take(struct iolog *log, const struct step *step);

/* Ends the line, writes the rest of it out and closes the log. */
void iolog_end(struct iolog *log);

#endif
