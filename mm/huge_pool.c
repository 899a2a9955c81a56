/*
 * The pool of huge pages: what it has, what it has promised. See huge_pool.h.
 */
#include "mm/huge_pool.h"

#include "kernel/log/log.h"
#include "kernel/sched/mutex.h"
#include "lib/errno.h"
#include "mm/reclaim.h"

#define RECLAIM_ROUNDS 32 /* at most, for one page */
#define SYSTEM_SHARE   32 /* of all frames, one in so many is left to the system */

static LOCK_CLASS(pool_lock_class, "huge page pool");
static SLEEP_LOCK_CLASS(resize_lock_class, "huge page pool resize");

static struct {
    struct spinlock lock;
    struct list free_pages;
    struct huge_pool_counts n;
} pool = {.lock = SPINLOCK_INIT(&pool_lock_class), .free_pages = LIST_INIT(pool.free_pages)};

static struct mutex resize_lock = MUTEX_INIT(resize_lock, &resize_lock_class);

/* ---- Pages come and go: pool.lock held ---- */

static void push_locked(struct page *page)
{
    list_add_head(&pool.free_pages, &page->lru);
    pool.n.free++;
}

static struct page *pop_locked(void)
{
    struct page *page = list_first(&pool.free_pages, struct page, lru);

    list_del(&page->lru);
    pool.n.free--;
    return page;
}

/* ---- From and to the frame allocator: no lock held ---- */

/* refs 0, as all pages in the pool. */
static struct page *block_alloc(void)
{
    struct page *page = NULL;

    if (frames_free_count() > frames_total() / SYSTEM_SHARE + HUGE_PAGE_FRAMES)
        page = frames_alloc(HUGE_PAGE_ORDER, 0);
    if (page)
        atomic_store(&page->refs, 0);
    return page;
}

static struct page *block_alloc_reclaim(void)
{
    struct page *page = block_alloc();

    for (unsigned round = 0; !page && round < RECLAIM_ROUNDS; round++) {
        if (!reclaim_pages(HUGE_PAGE_FRAMES))
            break;
        frames_drain_cpu_lists(); /* one frame in a list keeps a block apart */
        page = block_alloc();
    }
    return page;
}

static void block_free(struct page *page)
{
    frames_free(page, HUGE_PAGE_ORDER);
}

/* ---- Surplus ---- */

/* => whether there is one free page more */
static bool grow_surplus(void)
{
    spin_lock(&pool.lock);
    bool allowed = pool.n.surplus < pool.n.max_surplus;
    if (allowed) {
        pool.n.surplus++;
        pool.n.total++;
    }
    spin_unlock(&pool.lock);
    if (!allowed)
        return false;

    struct page *page = block_alloc();

    spin_lock(&pool.lock);
    if (page) {
        push_locked(page);
    } else {
        pool.n.surplus--;
        pool.n.total--;
    }
    spin_unlock(&pool.lock);
    return page != NULL;
}

/* Surplus pages that nobody uses or was promised go back. */
static void trim_surplus(void)
{
    for (;;) {
        struct page *page = NULL;

        spin_lock(&pool.lock);
        if (pool.n.surplus > 0 && pool.n.free > pool.n.reserved) {
            page = pop_locked();
            pool.n.surplus--;
            pool.n.total--;
        }
        spin_unlock(&pool.lock);
        if (!page)
            return;
        block_free(page);
    }
}

/* ---- Promises ---- */

static bool try_reserve(u64 n)
{
    spin_lock(&pool.lock);
    bool fits = pool.n.free - pool.n.reserved >= n;
    if (fits)
        pool.n.reserved += n;
    spin_unlock(&pool.lock);
    return fits;
}

int huge_pool_reserve(u64 n)
{
    while (!try_reserve(n)) {
        if (!grow_surplus()) {
            trim_surplus();
            return -ENOMEM;
        }
    }
    return 0;
}

void huge_pool_unreserve(u64 n)
{
    spin_lock(&pool.lock);
    ASSERT(pool.n.reserved >= n);
    pool.n.reserved -= n;
    spin_unlock(&pool.lock);
    trim_surplus();
}

/* ---- Taking and giving back ---- */

static struct page *try_take(bool promised)
{
    struct page *page = NULL;

    spin_lock(&pool.lock);
    if (promised || pool.n.free > pool.n.reserved)
        page = pop_locked();
    if (promised)
        pool.n.reserved--;
    spin_unlock(&pool.lock);
    return page;
}

struct page *huge_pool_take(bool promised)
{
    struct page *page;

    do {
        page = try_take(promised);
    } while (!page && grow_surplus());
    if (page)
        atomic_store(&page->refs, 1);
    return page;
}

/* The last reference is gone. => whether the page is in the pool again */
static bool give_back(struct page *page, bool promise)
{
    if (page->mapcount != 0 || page->order != HUGE_PAGE_ORDER)
        panic("huge page at frame %lu freed in use: mapcount %d, order %u", page_pfn(page),
              page->mapcount, page->order);
    page->flags = 0;

    spin_lock(&pool.lock);
    bool is_surplus = pool.n.surplus > 0;
    if (is_surplus) {
        pool.n.surplus--;
        pool.n.total--;
    } else {
        push_locked(page);
        pool.n.reserved += promise;
    }
    spin_unlock(&pool.lock);
    if (is_surplus)
        block_free(page);
    return !is_surplus;
}

static bool put(struct page *page, bool promise)
{
    s32 refs = atomic_sub(&page->refs, 1);

    ASSERT(refs >= 0);
    return refs == 0 && give_back(page, promise);
}

void huge_page_put(struct page *page)
{
    (void)put(page, false);
}

bool huge_page_put_promised(struct page *page)
{
    return put(page, true);
}

/* ---- Size ---- */

static u64 persistent_locked(void)
{
    return pool.n.total - pool.n.surplus;
}

/* Surplus pages count as wanted ones first. => whether more are needed */
static bool adopt_surplus(u64 wanted)
{
    spin_lock(&pool.lock);
    while (pool.n.surplus > 0 && persistent_locked() < wanted)
        pool.n.surplus--;
    bool needs_more = persistent_locked() < wanted;
    spin_unlock(&pool.lock);
    return needs_more;
}

static void grow(u64 wanted)
{
    while (adopt_surplus(wanted)) {
        struct page *page = block_alloc_reclaim();

        if (!page)
            return;
        spin_lock(&pool.lock);
        push_locked(page);
        pool.n.total++;
        spin_unlock(&pool.lock);
    }
}

/* A free page that may leave; NULL: there is none, and what is too much is called surplus. */
static struct page *shrink_one(u64 wanted)
{
    struct page *page = NULL;

    spin_lock(&pool.lock);
    u64 kept = pool.n.reserved + pool.n.total - pool.n.free;
    if (persistent_locked() > MAX(wanted, kept)) {
        page = pop_locked();
        pool.n.total--;
    } else if (persistent_locked() > wanted) {
        pool.n.surplus += persistent_locked() - wanted;
    }
    spin_unlock(&pool.lock);
    return page;
}

void huge_pool_resize(u64 wanted)
{
    struct page *page;

    mutex_lock(&resize_lock);
    grow(wanted);
    while ((page = shrink_one(wanted)) != NULL)
        block_free(page);
    mutex_unlock(&resize_lock);
}

void huge_pool_set_max_surplus(u64 pages)
{
    spin_lock(&pool.lock);
    pool.n.max_surplus = pages;
    spin_unlock(&pool.lock);
}

void huge_pool_count(struct huge_pool_counts *out)
{
    spin_lock(&pool.lock);
    *out = pool.n;
    spin_unlock(&pool.lock);
}
