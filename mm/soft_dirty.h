/*
 * Which pages a program has written to since somebody asked to forget it:
 * /proc/PID/clear_refs, bit 55 of pagemap (proc(5)).
 */
#ifndef MM_SOFT_DIRTY_H
#define MM_SOFT_DIRTY_H

#include "mm/vma.h"

/* Nothing is written any more: each page's next store will be seen. => 0, -EINTR. Takes mmap_lock exclusive. */
int soft_dirty_clear(struct mm *mm);

/* Did the area come into being after the last clear? Then all of it counts as written. mmap_lock held. */
static inline bool soft_dirty_area(const struct vma *vma)
{
    return vma->lineage > vma->mm->soft_clear_lineage;
}

#endif
