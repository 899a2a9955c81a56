/*
 * The frame allocator: a buddy system with small per-CPU lists of single frames. Never sleeps.
 *
 * Running out is an error that comes back (NULL). Below the reserve only FRAME_ATOMIC requests are
 * served: they come from places that cannot reclaim first (tree nodes under a spinlock, page
 * tables, interrupts). Callers that may sleep use mm/reclaim.h's frame_alloc_reclaim(), which
 * reclaims and tries again.
 *
 * All functions but frames_init, frames_add_high and frames_drain_cpu_lists: any context, also
 * interrupts.
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

/*
 * Takes over the machine's memory below 4 GiB. Kernel image, modules and everything not usable stay
 * out. Panics with a message where there is too little, saying how much is needed. `boot` must
 * stay.
 * => per-CPU data of the boot CPU is set up
 */
void frames_init(const struct boot_info *boot);
/* The rest of the memory; by page_table_init, once the direct map covers it. */
void frames_add_high(void);

/* One frame, refs 1, mapcount 0, no flags; contents undefined without FRAME_ZERO. NULL when out. */
struct page *frame_alloc(unsigned flags);
/* 2^order contiguous frames, aligned to their size; refs 1 on the head. NULL: no such piece. */
struct page *frames_alloc(unsigned order, unsigned flags);
/*
 * Gives back what frames_alloc gave. refs is 0 (frozen) or the caller's 1; where a lock-free lookup
 * holds the page for a moment, its page_put frees it.
 */
void frames_free(struct page *page, unsigned order);

u64 frames_free_count(void);            /* now, per-CPU lists included; exact when nothing runs */
u64 frames_total(void);                 /* handed to the allocator at boot */
u64 frames_reserve(void);               /* the reserve for FRAME_ATOMIC */
bool frames_are_low(void);              /* free <= reserve: an ordinary request is about to fail */
u64 frames_free_blocks(unsigned order); /* free blocks of exactly that order */
/* All CPUs' lists back to the buddy (tests that compare counts). Interrupts on; uses smp_call. */
void frames_drain_cpu_lists(void);

/* A free page below 1 MiB for the start-up code of other CPUs; 0 if there is none. */
phys_t frames_trampoline_page(void);

/* Test hook: the next `after` allocations succeed, then `count` fail. (0,0) switches it off. */
void frames_fail_inject(u64 after, u64 count);
/* Test hook: another reserve, so that ordinary requests fail soon. => the old one */
u64 frames_set_reserve(u64 reserve);
/* Tests, debug builds: => offset of the first byte written since the free; PAGE_SIZE if none */
size_t frames_check_poison(const struct page *page);

#endif
