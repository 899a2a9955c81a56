/*
 * MADV_FREE: private memory whose contents the program can do without. It stays as it is until
 * frames run short; a store takes the permission back for its page (madvise(2)).
 */
#ifndef MM_LAZY_FREE_H
#define MM_LAZY_FREE_H

#include "mm/vma.h"

/* Marks the pages of [start, end), a part of the private anonymous area. mmap_lock exclusive. */
void lazy_free_mark(struct vma *vma, u64 start, u64 end);
/* Takes the marked pages of [start, end) that were not written since and belong to nobody else. No
 * page-table lock held; the space does not end meanwhile. */
void lazy_free_take(struct mm *mm, u64 start, u64 end);
/* The same in every space that has any, until `want` are free. => frames freed. For reclaim: its
 * rules hold. */
u64 lazy_free_reclaim(u64 want);
/* The child has the parent's marks, too. Both mmap_locks exclusive. */
void lazy_free_inherit(struct mm *child, const struct mm *parent);
/* The space ends: reclaim must not come by any more. */
void lazy_free_forget(struct mm *mm);
/* Pages marked, and marked pages taken, since boot. */
u64 lazy_free_marked_total(void);
u64 lazy_free_taken_total(void);

#endif
