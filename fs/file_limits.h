/*
 * What limits files: how large one program may make them, and how many may be open at once.
 *
 * The limits of a program belong to the rooms of processes, which are above: they say them through a
 * table that is set at boot.
 */
#ifndef FS_FILE_LIMITS_H
#define FS_FILE_LIMITS_H

#include "lib/types.h"

struct file_limits {
    u64 (*size_bytes)(void);     /* the caller's RLIMIT_FSIZE; ~0: none */
    void (*size_exceeded)(void); /* it wanted more: SIGXFSZ. Never sleeps. */
    bool (*may_use_reserve)(
        void); /* one of those that must go on when others have opened too much */
};

/* Once, at boot, before the first program. Until then there are no limits. */
void file_set_limits(const struct file_limits *limits);

/*
 * The caller is about to write *len bytes at pos of a regular file: *len is cut at its limit.
 * => 0; -EFBIG, with the signal sent: pos is at the limit or behind it. Never sleeps.
 */
int file_limit_write(u64 pos, size_t *len);
/* It is about to make a regular file larger. => 0; -EFBIG, with the signal sent. Never sleeps. */
int file_limit_size(u64 old_bytes, u64 new_bytes);

/*
 * All open files of all programs: a tenth of memory, a KiB for each, at most. Some more are left to
 * those that may use the reserve. => whether there may be one more; then file_uncount() at its end
 */
bool file_count_one(void);
void file_uncount(void);
u64 file_count(void);     /* open now */
u64 file_count_max(void); /* without the reserve */

#endif
