/*
 * The log of windows behind /proc/readahead_log, and the two counters beside it.
 */
#ifndef MM_READAHEAD_LOG_H
#define MM_READAHEAD_LOG_H

#include "mm/readahead.h"

/* Appends one line and counts one window of n pages. mark: as given to readahead_submit(). Never sleeps. */
void readahead_log_add(const struct readahead_call *call, pgoff_t start, u64 n_pages, pgoff_t mark);

/* System-wide since boot. */
void readahead_counts(u64 *windows, u64 *pages);

#endif
