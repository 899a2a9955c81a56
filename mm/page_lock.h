/*
 * The page lock: one bit in struct page, sleeping in a hashed wait queue, handed to the first who waits.
 *
 * Two owners exist: a task (page_lock … page_unlock), and a read in flight: a page is inserted into a cache locked, and
 * the completion of its read unlocks it from interrupt context (page_read_done in mm/page_cache.h).
 */
#ifndef MM_PAGE_LOCK_H
#define MM_PAGE_LOCK_H

#include "kernel/sched/wait.h"
#include "mm/core/page.h"

void page_lock_init(void); /* once, before the first page is locked */

/* Takes the lock; sleeps, not killable. Only in rising index within a cache. */
void page_lock(struct page *page);
/* => 0, or -EINTR with a fatal signal pending (not taken). May sleep. */
MUST_CHECK int page_lock_killable(struct page *page);
bool page_trylock(struct page *page);
/* By the task that locked it. Hands the lock to the first page_lock() waiter, wakes all page_wait_unlocked() ones. */
void page_unlock(struct page *page);
/* The same for a lock that a read (not a task) held. Any context. */
void page_unlock_io(struct page *page);

/*
 * Sleeps until the page has been unlocked once; does not take the lock. The caller holds a reference, and must look at everything again.
 * => 0 (*slept tells whether it had to sleep), or -EINTR with a fatal signal pending
 */
MUST_CHECK int page_wait_unlocked(struct page *page, bool *slept);

/* The lock passes from the calling task to a read that it is about to submit; page_unlock_io() will end it. */
void page_lock_give_to_io(struct page *page);

static inline bool page_is_locked(const struct page *page)
{
    return page_has(page, PAGE_LOCKED);
}
static inline bool page_is_uptodate(const struct page *page)
{
    return page_has(page, PAGE_UPTODATE);
}

#endif
