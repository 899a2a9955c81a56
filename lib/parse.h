/*
 * Reading numbers, sizes, patterns and command lines. Pure; nothing here allocates.
 */
#ifndef LIB_PARSE_H
#define LIB_PARSE_H

#include "lib/types.h"

/* For `len`: the text ends at its zero byte. */
#define PARSE_WHOLE_STRING ((size_t)-1)

/*
 * Reads an unsigned number that fills the whole text (no blanks, no sign). The text ends after
 * `len` bytes or at a zero byte, whichever comes first; one trailing newline is accepted, since
 * files of /proc/sys are written by echo.
 * => base: 2 to 36, or 0 for C's rule (0x hexadecimal, leading 0 octal, else decimal)
 * => 0 and *out; -EINVAL: empty or not a number; -ERANGE: does not fit. *out is untouched on error.
 */
int parse_u64(const char *s, size_t len, unsigned base, u64 *out) MUST_CHECK;

/* As parse_u64 with an optional leading + or -. */
int parse_s64(const char *s, size_t len, unsigned base, s64 *out) MUST_CHECK;

/* As parse_u64 with base 0 and an optional suffix K, M, G or T (powers of 1024, either case). */
int parse_size(const char *s, size_t len, u64 *out) MUST_CHECK;

/*
 * Does the whole string match the pattern? `*` stands for any characters (also none, also '/'),
 * `?` for exactly one; everything else for itself. Time: length of pattern times length of string.
 */
bool glob_match(const char *pattern, const char *string);

/*
 * Takes the next word of a command line. Words are separated by blanks; within double quotes
 * blanks belong to the word; a backslash makes the next character an ordinary one. Quotes may stand
 * anywhere in a word (a="b c"), and "" is an empty word. An unclosed quote ends with the line.
 * => *cursor moves behind the word
 * => 1: a word in buf; 0: no more words; -E2BIG: the word did not fit into `size` bytes: buf holds
 *    its beginning, and the cursor has passed all of it
 */
int cmdline_next_word(const char **cursor, char *buf, size_t size);

/*
 * If the word is `key=value` with this key, returns the value within it, else NULL.
 */
const char *cmdline_value(const char *word, const char *key);

#endif
