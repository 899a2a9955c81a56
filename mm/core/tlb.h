/*
 * TLB shootdown. Whoever removes or weakens page-table entries collects what it took away in a
 * batch; the flush happens once for the whole batch, on those CPUs that run the address space, and
 * only afterwards the frames are let go. (Intel SDM vol. 3, 4.10.4: a translation may be used until
 * it is invalidated.)
 */
#ifndef MM_CORE_TLB_H
#define MM_CORE_TLB_H

#include "kernel/log/log.h"
#include "kernel/sync/counter.h"
#include "mm/core/misuse.h"
#include "mm/core/page_table.h"

#define TLB_BATCH_PAGES     128
#define TLB_FLUSH_ALL_ABOVE 32 /* pages; more than these flush the whole address space */

struct tlb_batch {
    struct pt_space *space;
    u64 start, end; /* range touched; start >= end: nothing to flush */
    u32 n_pages;
    struct page *pages[TLB_BATCH_PAGES]; /* references to drop after the flush */
};

static inline void tlb_batch_init(struct tlb_batch *batch, struct pt_space *space)
{
    batch->space = space;
    batch->start = ~0ul;
    batch->end = 0;
    batch->n_pages = 0;
}
static inline bool tlb_batch_is_empty(const struct tlb_batch *batch)
{
    return batch->start >= batch->end;
}
/* The entries for [start,end), pages, were removed or weakened. pt_lock held. */
static inline void tlb_batch_add_range(struct tlb_batch *batch, u64 start, u64 end)
{
    if (MEMORY_CHECKS && tlb_batch_is_empty(batch))
        atomic_add(&batch->space->unflushed, 1);
    batch->start = MIN(batch->start, start);
    batch->end = MAX(batch->end, end);
}
/*
 * As above for the page at addr, whose reference is dropped at the flush. pt_lock held.
 * => true when the batch is full: release pt_lock and flush before going on
 */
MUST_CHECK static inline bool tlb_batch_add_page(struct tlb_batch *batch, u64 addr,
                                                 struct page *page)
{
    ASSERT(batch->n_pages < TLB_BATCH_PAGES);
    tlb_batch_add_range(batch, addr, addr + PAGE_SIZE);
    batch->pages[batch->n_pages++] = page;
    return batch->n_pages == TLB_BATCH_PAGES;
}
/*
 * Flushes and drops. Interrupts on, no pt_lock held (other CPUs answer while they wait for it). The
 * batch can be used again. Never sleeps.
 */
void tlb_batch_flush(struct tlb_batch *batch);

/*
 * Makes `space` the address space of this CPU; NULL: none is needed (a kernel thread): the old one
 * stays loaded, lazily, until it is flushed or ends. Interrupts off. Called by the scheduler.
 */
void tlb_switch_space(struct pt_space *space);
/* What this CPU was last switched to; NULL while it runs a kernel thread. */
struct pt_space *tlb_current_space(void);
/* One page, this CPU only: after strengthening an entry (spurious fault). */
void tlb_flush_local_page(u64 addr);
void tlb_flush_kernel_all(void); /* all CPUs, kernel mappings; interrupts on */

COUNTER_DECLARE(tlb_remote_flushes); /* shootdowns that had to interrupt another CPU */
COUNTER_DECLARE(tlb_lazy_leaves);    /* CPUs that left a space instead of flushing it */
extern bool tlb_check_is_off; /* tests: debug builds look for stale translations at each flush */
extern bool tlb_mutant_no_shootdown; /* tests: leave remote flushes out on purpose */

#endif
