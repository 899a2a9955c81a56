/*
 * What an advice does to the pages of an area (madvise(2)). All: [start, end) lies in `vma`,
 * mmap_lock exclusive; they may sleep for a file's map_lock, never for I/O.
 */
#ifndef MM_MADVISE_PAGES_H
#define MM_MADVISE_PAGES_H

#include "mm/vma.h"

/* Private pages are gone, a file's are found again by the next touch. */
void madvise_zap(struct vma *vma, u64 start, u64 end);
/* Pages that nobody else maps count as not touched, and a file's are the next that reclaim looks at. */
void madvise_make_cold(struct vma *vma, u64 start, u64 end);
/* Takes back what reclaim could: a file's clean pages that nobody else maps, and freed memory. */
void madvise_page_out(struct vma *vma, u64 start, u64 end);

#endif
