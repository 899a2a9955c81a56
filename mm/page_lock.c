/*
 * The page lock: the bit PAGE_LOCKED, and a hashed table of wait queues for those who find it set.
 *
 * Two kinds of waiters share a queue. Those who want the lock get it handed over, first come first served: the bit
 * stays set and never becomes free in between, so nobody can be overtaken for ever. Those who only wait for the page
 * (a fault after letting go) are all woken, and look at everything again.
 *
 * PAGE_WAITERS tells the unlocking side that somebody may be queued. The story of the wake-up that is not lost:
 *   waiter    queues itself, sets PAGE_WAITERS, then tests PAGE_LOCKED, then sleeps
 *   unlocker  clears PAGE_LOCKED only by an exchange that fails where PAGE_WAITERS is set, else goes
 *             through the queue
 * Whichever comes first, either the waiter sees the lock free or the unlocker sees the waiter.
 */
#include "mm/page_cache.h"

#include "kernel/log/log.h"
#include "kernel/sched/sync_point.h"
#include "kernel/sync/mutant.h"
#include "lib/errno.h"
#include "lib/hash.h"

#define PAGE_WAIT_QUEUES 256

/* Data pages and metadata pages are two classes: a block-map walk locks the second with the first held. */
static NESTING_SLEEP_LOCK_CLASS(page_lock_class, "page lock (file)");
static NESTING_SLEEP_LOCK_CLASS(page_lock_meta_class, "page lock (metadata)");

static struct wait_queue page_queues[PAGE_WAIT_QUEUES];

static struct lock_class *class_of(const struct page *page)
{
    return page_has(page, PAGE_META) ? &page_lock_meta_class : &page_lock_class;
}

static struct wait_queue *queue_of(const struct page *page)
{
    return &page_queues[mix64(page_pfn(page)) % PAGE_WAIT_QUEUES];
}

void page_lock_init(void)
{
    for (unsigned i = 0; i < PAGE_WAIT_QUEUES; i++)
        wait_queue_init(&page_queues[i]);
}

static bool try_set_locked(struct page *page)
{
    return !page_test_and_set(page, PAGE_LOCKED);
}

bool page_trylock(struct page *page)
{
    if (!try_set_locked(page))
        return false;
    page_lock_note_taken(page);
    return true;
}

/*
 * Takes a wake-up out of the waiters of this page. Called with the queue's lock held.
 * => whether the lock was handed to somebody
 */
static bool wake_waiters_locked(struct wait_queue *queue, struct page *page)
{
    bool handed_over = false;
    struct waiter *w;
    list_for_each (w, &queue->waiters, link) {
        if (w->key != page)
            continue;
        if (!w->wants_handoff) {
            sched_wake(w->task);
        } else if (!handed_over && !w->granted) {
            WRITE_ONCE(w->granted, true);
            handed_over = true;
            sched_wake(w->task);
        }
    }
    return handed_over;
}

void page_unlock_with_waiters(struct page *page)
{
    struct wait_queue *queue = queue_of(page);
    bool irqs = spin_lock_irq(&queue->lock);
    if (!wake_waiters_locked(queue, page))
        page_unset(page, PAGE_LOCKED | PAGE_WAITERS);
    spin_unlock_irq(&queue->lock, irqs);
}

void page_lock_note_taken(struct page *page)
{
    lockorder_after(class_of(page), page, false, (u64)__builtin_return_address(0));
}

void page_lock_note_released(struct page *page)
{
    lockorder_release(class_of(page), page);
}

void page_lock_give_to_io(struct page *page)
{
    lockorder_release(class_of(page), page);
}

static void print_holder(const void *object, void (*line)(const char *fmt, ...))
{
    const struct page *page = object;

    if (task_print_holders(page, line))
        return;
    line("the page is %s%s%s, frame %lu", page_is_locked(page) ? "locked by its read" : "unlocked",
         page_is_uptodate(page) ? ", up to date" : "", page->mapcount ? ", mapped" : "",
         page_pfn(page));
}

/* Queues the caller for the page and announces it. */
static void begin_wait(struct page *page, struct waiter *w, bool wants_handoff)
{
    struct wait_queue *queue = queue_of(page);
    struct page_cache *cache = READ_ONCE(page->cache);
    wait_begin(queue, w, "page %lu of inode %lu", page->index, cache ? cache->ino : 0);
    wait_on(w, page, print_holder);
    /* Under the queue's lock, so that an unlock that empties the flag and this announcement do not cross. */
    bool irqs = spin_lock_irq(&queue->lock);
    w->key = page;
    w->wants_handoff = wants_handoff;
    w->granted = false;
    page_set(page, PAGE_WAITERS);
    spin_unlock_irq(&queue->lock, irqs);
}

/* The lock may have been handed to us while a signal made us give up: pass it on. */
static void give_back_if_granted(struct page *page, struct waiter *w)
{
    bool irqs = spin_lock_irq(&queue_of(page)->lock);
    bool granted = w->granted;
    spin_unlock_irq(&queue_of(page)->lock, irqs);
    if (granted)
        page_unlock_io(page);
}

static int lock_slowly(struct page *page, bool killable)
{
    struct waiter w;
    int error = 0;
    begin_wait(page, &w, true);
    while (!READ_ONCE(w.granted) && !try_set_locked(page)) {
        if (!killable) {
            wait_sleep(&w);
        } else if ((error = wait_sleep_killable(&w, 0)) != 0) {
            break;
        }
    }
    if (error)
        SYNC_POINT(page_lock_killed);
    wait_end(queue_of(page), &w);
    if (error)
        give_back_if_granted(page, &w);
    return error;
}

void page_lock(struct page *page)
{
    u64 caller = (u64)__builtin_return_address(0);
    lockorder_might_sleep("page_lock");
    lockorder_before(class_of(page), page, caller);
    if (!try_set_locked(page))
        lock_slowly(page, false);
    lockorder_after(class_of(page), page, false, caller);
}

int page_lock_killable(struct page *page)
{
    u64 caller = (u64)__builtin_return_address(0);
    lockorder_might_sleep("page_lock_killable");
    lockorder_before(class_of(page), page, caller);
    if (!try_set_locked(page)) {
        int error = lock_slowly(page, true);
        if (error)
            return error;
    }
    lockorder_after(class_of(page), page, false, caller);
    return 0;
}

int page_wait_unlocked(struct page *page, bool *slept)
{
    struct waiter w;
    int error = 0;
    *slept = false;
    if (!page_is_locked(page))
        return 0;
    lockorder_might_sleep("page_wait_unlocked");
    SYNC_POINT(page_wait_begins);
    begin_wait(page, &w, false);
    /* One wake-up is enough, even if the page is locked again by then: the caller re-validates everything. */
    if (page_is_locked(page) || MUTANT(lost_wakeup)) {
        *slept = true;
        error = wait_sleep_killable(&w, 0);
        if (!error && page_is_locked(page) && task_kill_is_pending(w.task))
            error = -EINTR; /* it was the kill that woke us */
    }
    wait_end(queue_of(page), &w);
    return error;
}
