/*
 * Committed memory: pages that were promised and may all be written some day (proc(5),
 * overcommit_memory). Promised are private areas that can be written (VMA_ACCOUNT), shared memory
 * without a file at its full size, and the pages of files in memory.
 */
#ifndef MM_COMMIT_H
#define MM_COMMIT_H

#include "lib/types.h"

struct mm;

/*
 * Promises n more pages, if the mode of vm.overcommit_memory allows it.
 *   mm  who asks, for the reserve of mode 2; may be NULL
 * => 0, -ENOMEM: nothing is promised. Any task context; never sleeps.
 */
MUST_CHECK int commit_charge(const struct mm *mm, u64 n_pages);
void commit_uncharge(u64 n_pages);

/* Does a private area of this protection (PROT_*) and these flags (VMA_*) get charged? */
bool commit_is_due(u32 prot, u32 vma_flags);
/* Is MAP_NORESERVE heard? In mode 2 everything is charged. */
bool commit_honours_noreserve(void);

/* Pages promised now (exact when nothing runs), and how many mode 2 promises at most. */
u64 commit_total_pages(void);
u64 commit_limit_pages(void);

/* Knobs, see mm/knobs.h. */
int commit_set_mode(const char *value);
void commit_get_mode(char *buf, size_t size);
int commit_set_ratio(const char *value);
void commit_get_ratio(char *buf, size_t size);
int commit_set_kbytes(const char *value);
void commit_get_kbytes(char *buf, size_t size);
int commit_set_user_reserve(const char *value);
void commit_get_user_reserve(char *buf, size_t size);

#endif
