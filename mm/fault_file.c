/*
 * Faults on file pages: FAULTS.md section 2, in its order.
 *
 * A file page is mapped only with its page lock held, in an attempt that held its lock from the VMA lookup to here. After the
 * page's lock is taken: does the page still belong to the file, is it inside the file's size, is it up to date? A truncation that
 * runs at the same time sets the size, locks the page, unmaps it everywhere, removes it. Whoever gets the page lock first:
 *   the fault       maps it; the truncation then finds it mapped and unmaps it
 *   the truncation  removes it; the fault then finds that it does not belong to the file any more
 */
#include "kernel/log/trace.h"
#include "kernel/sched/sync_point.h"
#include "kernel/sync/mutant.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/account.h"
#include "mm/fault_internal.h"
#include "mm/knobs.h"
#include "mm/readahead_use.h"
#include "mm/reclaim.h"

static struct readahead_call make_call(const struct fault *f)
{
    return (struct readahead_call){
        .file = f->vma->file,
        .kind = READAHEAD_FAULT,
        .index = f->pgoff,
        .wanted_pages = 1,
        .access = f->pgoff,
        .hint_random = f->vma->flags & VMA_RANDOM,
        .hint_sequential = f->vma->flags & VMA_SEQUENTIAL,
    };
}

/*
 * The page is not there: ask the disk, after letting go, and wait. A file in memory has no disk: the lock is kept.
 * => RETRY, DONE (lock kept: look again), KILLED, OOM
 */
static enum fault_result read_absent(struct fault *f)
{
    struct readahead_call call = make_call(f);
    struct page_cache *cache = f->vma->file->cache;
    struct mapped_file *let_go = cache->ops->is_memory ? NULL : fault_let_go_to_ask(f);

    call.keeps_page = !MUTANT(asked_not_kept);
    readahead_on_fault_miss(&call);
    f->started_read |= call.started;
    SYNC_POINT(fault_asked);
    struct page *page = call.page ? call.page : page_cache_find(cache, call.index);
    if (page)
        return fault_wait_for_asked(f, page, let_go);

    /* Not inserted: out of frames, or the file has shrunk, which the next look will find. */
    if (let_go)
        mapped_file_put(let_go);
    if (call.error)
        return call.error == -EINTR ? FAULT_KILLED : FAULT_OOM;
    return let_go ? FAULT_RETRY : FAULT_DONE;
}

/*
 * First look at a page that is there: its mark starts the next window, whether the page is locked or not; a plain hit
 * is noted for the policy.
 * => DONE: go on with the page, or, *look_again, look it up again: the reference is dropped. RETRY, KILLED: over, and dropped.
 */
static enum fault_result look_first(struct fault *f, struct page *page, bool *look_again)
{
    *look_again = false;
    if (!page_is_locked(page) && page_is_uptodate(page))
        readahead_on_fault_hit(f->vma->file);
    if (!page_has(page, PAGE_READAHEAD) || !page_test_and_clear(page, PAGE_READAHEAD))
        return FAULT_DONE;
    struct readahead_call call = make_call(f);
    struct mapped_file *let_go = fault_let_go_to_ask(f);
    readahead_on_fault_mark(&call);
    if (!let_go)
        return FAULT_DONE;
    *look_again = true;
    return fault_wait_unlocked(f, page, let_go);
}

/*
 * Gets the page lock. A page that is being read is waited for after letting go; one that is up to date is locked only for
 * moments (by another fault, or a truncation), and is waited for with the lock kept.
 * => DONE with the lock; otherwise the reference is dropped: RETRY, KILLED
 */
static enum fault_result lock_for_mapping(struct fault *f, struct page *page, bool *look_again)
{
    *look_again = false;
    if (page_trylock(page))
        return FAULT_DONE;
    if (page_is_uptodate(page)) {
        if (page_lock_killable(page) == 0)
            return FAULT_DONE;
        page_put(page);
        return FAULT_KILLED;
    }
    *look_again = true;
    return fault_wait_for_read(f, page);
}

/*
 * The page is locked and unlocked again without being up to date: its read failed. Read it once more by itself, so that one
 * bad sector in a window costs its neighbours nothing but a read of their own.
 * => RETRY, DONE (look again), KILLED, SIGBUS
 */
static enum fault_result reread_failed(struct fault *f, struct page *page)
{
    if (f->reread) {
        page_unlock(page);
        page_put(page);
        /* A fatal signal ends the read of block numbers, too: that says nothing about the disk. */
        return task_kill_is_pending(task_current()) ? FAULT_KILLED : FAULT_SIGBUS_ADRERR;
    }
    f->reread = true;
    f->started_read = true;
    struct page_cache *cache = f->vma->file->cache;
    struct mapped_file *let_go = fault_let_go_to_ask(f);
    account_fault_read(1);
    page_cache_reread_page(cache, page);
    return fault_wait_for_asked(f, page, let_go);
}

/* The page at f->pgoff, locked, up to date and inside the file, with the address-space lock still held. */
static enum fault_result get_page_locked(struct fault *f, struct page **out)
{
    struct page_cache *cache = f->vma->file->cache;
    for (;;) {
        if (f->pgoff >= page_cache_size_pages(cache))
            return FAULT_SIGBUS_ADRERR;

        bool first_look = !f->looked, look_again = false;
        enum fault_result result;
        SYNC_POINT(fault_before_lookup);
        struct page *page = page_cache_find(cache, f->pgoff);
        f->looked = true;
        fault_note_restart_lookup(f, page);
        if (!page) {
            if (!cache->ops->is_memory) {
                f->absent |= first_look;
                f->absent_looks++;
            }
            result = read_absent(f);
            if (result != FAULT_DONE)
                return result;
            continue;
        }
        result = first_look ? look_first(f, page, &look_again) : FAULT_DONE;
        if (result == FAULT_DONE && !look_again)
            result = lock_for_mapping(f, page, &look_again);
        if (result != FAULT_DONE)
            return result;
        if (look_again)
            continue;
        bool is_owned = page_cache_owns(cache, page, f->pgoff) || MUTANT(no_owner_check);
        if (!is_owned || f->pgoff >= page_cache_size_pages(cache)) {
            page_unlock(page);
            page_put(page);
            continue;
        }
        if (!page_is_uptodate(page)) {
            result = reread_failed(f, page);
            if (result != FAULT_DONE)
                return result;
            continue;
        }
        if (page_has(page, PAGE_UNTOUCHED))
            page_unset(page, PAGE_UNTOUCHED);
        readahead_page_used(page);
        *out = page;
        return FAULT_DONE;
    }
}

/* Stores a locked, up-to-date cache page in the entry; takes its own reference. pt_lock held. => whether the entry was empty */
static bool store_entry(struct fault *f, pte_t *ptep, struct page *page)
{
    if (*ptep)
        return false;
    bool writable = f->access == FAULT_WRITE && (f->vma->flags & VMA_SHARED);
    page_get(page);
    atomic_add(&page->mapcount, 1);
    atomic_add(&f->mm->rss_file, 1);
    WRITE_ONCE(*ptep, page_phys(page) | vma_pte_bits(f->vma, writable));
    return true;
}

/* Maps the locked page itself. */
static enum fault_result map_page(struct fault *f, struct page *page)
{
    enum fault_result result = FAULT_OOM;
    pt_lock(&f->mm->space);
    pte_t *ptep = fault_ensure_entry(f);
    if (ptep) {
        bool stored = store_entry(f, ptep, page);
        f->reason = stored ? FAULT_REASON_CACHE : FAULT_REASON_SPURIOUS;
        result = FAULT_DONE;
    }
    pt_unlock(&f->mm->space);
    if (result == FAULT_DONE && f->access == FAULT_WRITE)
        page_set(page, PAGE_DIRTY);
    return result;
}

/* A write to a private mapping: the program gets a copy of its own, straight away. */
static enum fault_result map_private_copy(struct fault *f, struct page *page)
{
    struct page *copy = frame_alloc_reclaim(0);
    if (!copy)
        return FAULT_OOM;
    page_copy(page_virt(copy), page_virt(page));
    return fault_install_anon(f, copy, 0, FAULT_REASON_COW);
}

/* The area is to own a page: it counts as one that does from here on, as on Linux, even if the file has none to copy. */
static void name_area(struct fault *f)
{
    pt_lock(&f->mm->space);
    vma_name_anon(f->vma);
    pt_unlock(&f->mm->space);
}

enum fault_result fault_file(struct fault *f)
{
    struct page *page;
    TRACE(fault_file, .addr = f->addr, .dev = trace_dev(f->vma->file->cache->dev),
          .ino = f->vma->file->cache->ino, .page = f->pgoff, .attempt = f->attempt);
    if (f->access == FAULT_WRITE && !(f->vma->flags & VMA_SHARED) && !vma_owns_anon(f->vma))
        name_area(f);
    if (f->pgoff >= page_cache_size_pages(f->vma->file->cache))
        return FAULT_SIGBUS_ADRERR;
    bool maps_around = map_around_bytes > PAGE_SIZE && f->access != FAULT_WRITE;
    if (maps_around && fault_map_around(f)) {
        if (!f->looked)
            readahead_on_fault_hit(f->vma->file);
        fault_note_restart_lookup(f, f->awaited.page);
        f->reason = FAULT_REASON_CACHE;
        return FAULT_DONE;
    }
    enum fault_result result = get_page_locked(f, &page);
    if (result != FAULT_DONE)
        return result;
    if (f->access == FAULT_WRITE && !(f->vma->flags & VMA_SHARED))
        result = map_private_copy(f, page);
    else
        result = map_page(f, page);
    page_unlock(page);
    page_put(page);
    return result;
}
