/*
 * The page lock: one bit in struct page, sleeping in a hashed wait queue, handed to the first who waits.
 *
 * Two owners exist: a task (page_lock … page_unlock), and a read in flight: a page is inserted into a cache locked, and
 * the completion of its read unlocks it from interrupt context (page_read_done in mm/page_cache.h).
 */
#ifndef MM_PAGE_LOCK_H
#define MM_PAGE_LOCK_H

#include "kernel/log/log.h"
#include "kernel/sched/wait.h"
#include "mm/core/page.h"

void page_lock_init(void); /* once, before the first page is locked */

/* Takes the lock; sleeps, not killable. Only in rising index within a cache. */
void page_lock(struct page *page);
/* => 0, or -EINTR with a fatal signal pending (not taken). May sleep. */
MUST_CHECK int page_lock_killable(struct page *page);
bool page_trylock(struct page *page);

/*
 * Sleeps until the page has been unlocked once; does not take the lock. The caller holds a reference, and must look at everything again.
 * => 0 (*slept tells whether it had to sleep), or -EINTR with a fatal signal pending
 */
MUST_CHECK int page_wait_unlocked(struct page *page, bool *slept);

/* The lock passes from the calling task to a read that it is about to submit; page_unlock_io() will end it. */
void page_lock_give_to_io(struct page *page);

/* The parts of the two below that are not inline: the lock-order checker, and an unlock with waiters. */
void page_lock_note_taken(struct page *page);
void page_lock_note_released(struct page *page);
void page_unlock_with_waiters(struct page *page);

/*
 * A reference and the lock in one step, if the page is not being freed, nobody has the lock, and of the flags in `mask`
 * exactly `wanted` are set. For lock-free lookups: what is found may be somebody else's page by now, so the mask must
 * leave no page but a cache's. => whether both were taken
 */
static inline bool page_try_get_locked(struct page *page, u32 mask, u32 wanted)
{
    u64 old = READ_ONCE(page->flags_and_refs);
    do {
        if (((u32)old & (mask | PAGE_LOCKED)) != wanted || (s32)(old >> 32) <= 0)
            return false;
    } while (unlikely(!__atomic_compare_exchange_n(&page->flags_and_refs, &old,
                                                   (old | PAGE_LOCKED) + (1ul << 32), false,
                                                   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)));
    if (LOCKORDER_IS_ON)
        page_lock_note_taken(page);
    return true;
}

/*
 * Ends a read's hold of the lock (not a task's): hands the lock to the first page_lock() waiter, wakes all page_wait_unlocked() ones.
 * Any context. Whether there are waiters is tested in the step that clears the bit.
 */
static inline void page_unlock_io(struct page *page)
{
    u32 flags = READ_ONCE(page->flags);
    ASSERT(flags & PAGE_LOCKED);
    do {
        if (unlikely(flags & PAGE_WAITERS)) {
            page_unlock_with_waiters(page);
            return;
        }
    } while (unlikely(!__atomic_compare_exchange_n(&page->flags, &flags, flags & ~PAGE_LOCKED,
                                                   false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)));
}
/* The same by the task that locked it. */
static inline void page_unlock(struct page *page)
{
    if (LOCKORDER_IS_ON)
        page_lock_note_released(page);
    page_unlock_io(page);
}

static inline bool page_is_locked(const struct page *page)
{
    return page_has(page, PAGE_LOCKED);
}
static inline bool page_is_uptodate(const struct page *page)
{
    return page_has(page, PAGE_UPTODATE);
}

#endif
