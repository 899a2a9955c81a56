/*
 * Between the parts of the frame allocator: frames_boot.c finds the machine's memory and hands it
 * over, frames.c gives it out, page.c counts references. For no one else.
 */
#ifndef MM_CORE_FRAMES_INTERNAL_H
#define MM_CORE_FRAMES_INTERNAL_H

#include "mm/core/frames.h"

/* Empties the free lists. Before frames_hand_over. */
void frames_start(void);

/*
 * Gives the frames [first, end) to the buddy system. Their struct pages are all zero. The memory
 * itself is not touched.
 */
void frames_hand_over(pfn_t first, pfn_t end);

/* Sizes reserve and per-CPU lists by what was handed over so far. */
void frames_set_limits(void);

/*
 * The block that `page` heads has no reference left: back to the free lists, poisoned in debug
 * builds together with who let it go (caller: a return address). Panics if it is mapped, locked or in a
 * cache. Any context.
 */
void frames_give_back(struct page *page, unsigned order, u64 caller);

#endif
