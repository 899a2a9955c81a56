/*
 * Reclaim: one list of all cached pages, oldest first, walked like a clock.
 *
 *   head → page → page → page → tail        new pages come in at the tail
 *
 * The page at the head goes to the tail first, whatever becomes of it, so that several tasks that reclaim at once look at different
 * ones. Touched since the last look: that was its second chance. Otherwise it is unmapped everywhere and leaves its cache, if
 * nobody took a reference meanwhile: the count is frozen from "the cache's and mine" to zero, after which no lookup can get hold of it.
 *
 * Before all of them go anonymous pages that their owner gave up by MADV_FREE (mm/lazy_free.c).
 */
#include "mm/reclaim.h"

#include "kernel/cpu/clock.h"
#include "kernel/log/log.h"
#include "kernel/sched/task.h"
#include "kernel/sched/wait.h"
#include "mm/lazy_free.h"

#define RECLAIM_BATCH   32
#define PATIENCE_ROUNDS 10 /* times to wait for pages that are being read */
#define PATIENCE_NS     1000000ul

static LOCK_CLASS(list_lock_class, "reclaim list");
static struct spinlock list_lock =
    SPINLOCK_INIT(&list_lock_class); /* guards page->lru of cached pages, and the count */
static struct list all_cached = LIST_INIT(all_cached);
static u64 n_cached;
static u64 n_reclaimed; /* atomic */

void reclaim_list_add(struct page *page)
{
    spin_lock(&list_lock);
    list_add_tail(&all_cached, &page->lru);
    n_cached++;
    spin_unlock(&list_lock);
}

void reclaim_list_remove(struct page *page)
{
    spin_lock(&list_lock);
    if (!list_is_empty(&page->lru)) {
        list_del(&page->lru);
        n_cached--;
    }
    spin_unlock(&list_lock);
}

u64 reclaim_total(void)
{
    return atomic_load(&n_reclaimed);
}

static u64 cached_count(void)
{
    spin_lock(&list_lock);
    u64 n = n_cached;
    spin_unlock(&list_lock);
    return n;
}

/* The oldest page, moved to the young end, with a reference; NULL: the list is empty, or that page is going away just now. */
static struct page *take_oldest(void)
{
    struct page *page = NULL;
    spin_lock(&list_lock);
    if (!list_is_empty(&all_cached)) {
        page = list_first(&all_cached, struct page, lru);
        list_del(&page->lru);
        list_add_tail(&all_cached, &page->lru);
        if (!page_try_get(page))
            page = NULL;
    }
    spin_unlock(&list_lock);
    return page;
}

static bool was_touched(struct page_cache *cache, struct page *page)
{
    bool accessed = page_test_clear_accessed(cache, page);
    return page_test_and_clear(page, PAGE_REFERENCED) || accessed;
}

/* The page is locked and referenced. => whether it was given back (then both are gone) */
static bool reclaim_locked(struct page *page)
{
    struct page_cache *cache = page->cache;
    if (!cache || was_touched(cache, page))
        return false;
    page_unmap_everywhere(cache, page);
    if (page_has(page, PAGE_DIRTY))
        return false;
    return page_cache_remove_frozen(cache, page);
}

static bool reclaim_one(struct page *page)
{
    if (!page_has(page, PAGE_DIRTY | PAGE_WRITEBACK) && page_trylock(page)) {
        if (reclaim_locked(page))
            return true;
        page_unlock(page);
    }
    page_put(page);
    return false;
}

u64 reclaim_pages(u64 want)
{
    /* Memory whose owner said that it can go. */
    u64 freed = lazy_free_reclaim(want);
    /* Twice round: the first may only take second chances away. */
    for (u64 looks = 2 * cached_count(); looks > 0 && freed < want; looks--) {
        struct page *page = take_oldest();
        if (page && reclaim_one(page))
            freed++;
    }
    atomic_add(&n_reclaimed, freed);
    return freed;
}

void reclaim_page(struct page *page)
{
    atomic_add(&n_reclaimed, reclaim_one(page));
}

void reclaim_make_oldest(struct page *page)
{
    spin_lock(&list_lock);
    if (!list_is_empty(&page->lru)) {
        list_del(&page->lru);
        list_add_head(&all_cached, &page->lru);
    }
    spin_unlock(&list_lock);
    page_put(page);
}

struct page *frame_alloc_after_reclaim(unsigned flags)
{
    unsigned patience = PATIENCE_ROUNDS;
    struct page *page;
    do {
        if (reclaim_pages(RECLAIM_BATCH) > 0)
            continue;
        /* Everything cached may be on its way from the disk: that ends. A kill, or nothing to wait for, does not. */
        if (patience-- == 0 || cached_count() == 0 || task_kill_is_pending(task_current()))
            return NULL;
        sleep_until_ns(clock_ns() + PATIENCE_NS);
    } while (!(page = frame_alloc(flags)));
    return page;
}
