/*
 * The wait of a fault for the disk: the one place where a fault sleeps for data.
 */
#include "kernel/cpu/clock.h"
#include "kernel/log/trace.h"
#include "kernel/sched/sync_point.h"
#include "kernel/sync/mutant.h"
#include "lib/errno.h"
#include "mm/account.h"
#include "mm/fault_internal.h"
#include "mm/knobs.h"

void fault_unpin_page(struct fault *f)
{
    page_put(f->pinned);
    f->pinned = NULL;
}

void fault_note_restart_lookup(struct fault *f, const struct page *found)
{
    if (f->awaited.page && f->awaited.page != found && f->awaited.cache == f->vma->file->cache &&
        f->awaited.index == f->pgoff)
        account_retry_miss();
    f->awaited.page = NULL;
    fault_unpin(f);
}

/* Sleeps for the page and records that it did. => 0 or -EINTR */
static int sleep_for_page(struct fault *f, struct page *page)
{
    bool slept, was_read = !page_is_uptodate(page);
    u64 begin = was_read ? clock_ns() : 0;
    TRACE(fault_wait, .addr = f->addr, .page = page->index, .locked = f->locked);
    SYNC_POINT(fault_before_wait);
    int error = page_wait_unlocked(page, &slept);
    if (slept && was_read) {
        f->slept = true;
        f->slept_again |= f->attempt > 0;
        f->wait_ns += clock_ns() - begin;
        if (f->locked)
            f->kept_lock_across_io = true;
    }
    SYNC_POINT(fault_after_wait);
    return error;
}

enum fault_result fault_wait_unlocked(struct fault *f, struct page *page, struct mapped_file *file)
{
    if (MUTANT(no_pin))
        page_put(page);
    int error = sleep_for_page(f, page);
    if (MUTANT(no_pin))
        page_get(page);
    /* With the lock kept there is no next attempt to hope for: nobody may drop the page before it is found again. */
    if (!error && (fault_pin || !file) && !MUTANT(not_kept))
        f->pinned = page;
    else
        page_put(page);
    if (file) {
        f->awaited.page = error ? NULL : page;
        f->awaited.cache = file->cache;
        f->awaited.index = f->pgoff;
        mapped_file_put(file);
    }
    if (error)
        return FAULT_KILLED;
    return !file || fault_take_back(f) ? FAULT_DONE : FAULT_RETRY;
}

enum fault_result fault_wait_for_asked(struct fault *f, struct page *page, struct mapped_file *file)
{
    if (file || (MUTANT(wait_anyway) && !page_is_locked(page)))
        return fault_wait_unlocked(f, page, file);
    if (page_is_locked(page))
        return fault_wait_for_read(f, page);
    /*
     * It is there, or its read has failed already, and the lock is kept. No wait: by now somebody else may read it again, and
     * that is not to be waited for with the lock. The next look will see.
     */
    f->pinned = page;
    return FAULT_DONE;
}

enum fault_result fault_wait_for_read(struct fault *f, struct page *page)
{
    fault_unpin(f);
    return fault_wait_unlocked(f, page, fault_may_let_go(f) ? fault_let_go(f) : NULL);
}
