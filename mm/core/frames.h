/*
 * The frame allocator: a buddy system with small per-CPU lists of single frames. Never sleeps.
 *
 * Running out is an error that comes back (NULL). Below the reserve only FRAME_ATOMIC requests are served:
 * they come from places that cannot reclaim first (tree nodes under a spinlock, page tables, interrupts).
 * Callers that may sleep use mm/reclaim.h's frame_alloc_reclaim(), which reclaims and tries again.
 */
#ifndef MM_CORE_FRAMES_H
#define MM_CORE_FRAMES_H

#include "boot/boot_info.h"
#include "mm/core/page.h"

#define FRAME_MAX_ORDER 10 /* 4 MiB */

enum frame_flags {
    FRAME_ZERO = 1u << 0,   /* contents cleared */
    FRAME_ATOMIC = 1u << 1, /* may use the reserve */
};

/* Takes over the machine's memory. Kernel image, modules and everything not usable stay out. Panics with a message where there is too little, saying how much is needed. */
void frames_init(const struct boot_info *boot);

struct page *frame_alloc(unsigned flags);                  /* one frame, refs 1; NULL when out */
struct page *frames_alloc(unsigned order, unsigned flags); /* 2^order contiguous frames, refs 1 on the head */
void frames_free(struct page *page, unsigned order);       /* refs must be 0 or 1 (the caller's) */

u64 frames_free_count(void);  /* now, per-CPU lists included */
u64 frames_total(void);       /* handed to the allocator at boot */
u64 frames_reserve(void);     /* the reserve for FRAME_ATOMIC */
bool frames_are_low(void);    /* free <= reserve: an ordinary request would fail */
void frames_drain_cpu_lists(void); /* all CPUs' lists back to the buddy (tests that compare counts; uses smp_call) */

/* Test hook: the next `after` allocations succeed, then `count` fail. (0,0) switches it off. */
void frames_fail_inject(u64 after, u64 count);

#endif
