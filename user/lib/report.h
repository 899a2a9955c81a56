/*
 * Report: the numbers of a run as lines `name: value`, always the same names in the same order, so
 * that scripts can look for them. What the kernel does not count reads `n/a (needs Faultline)`.
 */
#ifndef USER_LIB_REPORT_H
#define USER_LIB_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "user/lib/play.h"

#define REPORT_NOT_AVAILABLE "n/a (needs Faultline)"
#define REPORT_TIME_BYTES    32

/* Prints every line about one run. */
void report_print(FILE *out, const struct play_result *result);

/* A time as a shell's `time` shows it: 1m2.345s. `text` has REPORT_TIME_BYTES. */
void report_format_time(char *text, uint64_t microseconds);

/* A counter in decimal, or "n/a". */
void report_format_stat(char *text, size_t size, const struct stats *stats, enum stat_id id);

#endif
