/*
 * A copy of an address space, made by sharing its pages.
 */
#ifndef MM_FORK_H
#define MM_FORK_H

#include "mm/vma.h"

/*
 * *child: what `parent`, the current task's space, is at this moment; private pages are shared until one of the two
 * writes. Other threads' calls, and faults that store into private memory, wait meanwhile. The time goes with the number of areas and of mapped pages.
 * => 0; -ENOMEM: frames have run out, or a page has too many owners; -EINTR: a fatal signal. No lock held; sleeps.
 */
int mm_fork(struct mm *parent, struct mm **child);

#endif
