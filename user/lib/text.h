/*
 * Text: small things for the text files of /proc and /sys, without stdio and without allocating, so
 * that they may be used in the middle of a measurement.
 */
#ifndef USER_LIB_TEXT_H
#define USER_LIB_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Reads a whole text file into `buffer` and closes it with a zero; what does not fit is left out.
 * The number of bytes, or a negative errno.
 */
ssize_t text_read_file(const char *path, char *buffer, size_t size);

/* Writes the text to an existing file in one call. 0 or a negative errno. */
int text_write_file(const char *path, const char *text);

/* Writes all bytes. 0 or a negative errno. */
int text_write_all(int fd, const char *data, size_t bytes);

/*
 * Takes a decimal number off *at, spaces before it skipped; *at then stands behind it. False where
 * there is none or it does not fit.
 */
bool text_take_number(const char **at, uint64_t *value);

/* A whole word as a number: digits and nothing else, at most `limit`. */
bool text_parse_number(const char *word, uint64_t limit, uint64_t *value);

/* Writes a number in decimal to `at`, which has room for 20 characters; what stands behind it. */
char *text_put_number(char *at, uint64_t value);

#endif
