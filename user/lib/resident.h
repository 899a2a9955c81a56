/*
 * Resident: which of a file's pages are in the page cache, and getting them out of it.
 */
#ifndef USER_LIB_RESIDENT_H
#define USER_LIB_RESIDENT_H

#include <stdint.h>

/*
 * How many of `count` pages from `first` on are in the cache; a count of 0 means up to the end of
 * the file. By cachestat, else, for a stretch of at most 4 GiB, by mincore over a mapping of its
 * own. -1 where neither is there.
 */
int64_t resident_pages(int fd, uint64_t first, uint64_t count);

/*
 * Drops these pages from the cache (a count of 0: up to the end). A page that is just being read
 * cannot be dropped, so it is tried again for up to about `patience_ms`. How many are left, or -1
 * where that cannot be told.
 */
int64_t resident_drop(int fd, uint64_t first, uint64_t count, unsigned int patience_ms);

#endif
