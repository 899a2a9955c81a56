/*
 * Knobs: the text files that steer the kernel, set for the time of a run and put back afterwards.
 *
 * The window of readahead is taken when a file is opened: set it before.
 */
#ifndef USER_LIB_KNOBS_H
#define USER_LIB_KNOBS_H

#include <stddef.h>

#define KNOB_POLICY     "/proc/sys/vm/readahead"
#define KNOB_MAP_AROUND "/proc/sys/vm/map_around_bytes"

#define KNOBS_MAX        24
#define KNOB_PATH_BYTES  96
#define KNOB_VALUE_BYTES 64

struct knobs {
    struct {
        char path[KNOB_PATH_BYTES];
        char value[KNOB_VALUE_BYTES];
    } saved[KNOBS_MAX];
    size_t saved_count;
    char failed_path[KNOB_PATH_BYTES]; /* after an error: the file it happened with */
};

/* The value of a text file without its newline; `value` is empty after an error. 0 or a negative
 * errno. */
int knob_read(const char *path, char *value, size_t size);

/* Writes a knob and remembers what was there, once. 0 or a negative errno. */
int knobs_set(struct knobs *knobs, const char *path, const char *value);

/* Sets read_ahead_kb of every block device. 0; -ENODEV where there is none; or a negative errno. */
int knobs_set_readahead_kb(struct knobs *knobs, const char *value);

/* The read_ahead_kb that holds for a file on device `dev` (st_dev). 0 or a negative errno. */
int knob_read_readahead_kb(unsigned long dev, char *value, size_t size);

/* Puts everything back, last first. */
void knobs_restore(struct knobs *knobs);

#endif
