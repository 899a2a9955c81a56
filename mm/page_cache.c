/*
 * The page cache: lookup, insertion, removal, and the reading of single pages.
 * Unmapping and truncation are in mm/page_cache_remove.c.
 */
#include "mm/page_cache.h"

#include "kernel/cpu/clock.h"
#include "kernel/log/log.h"
#include "kernel/log/trace.h"
#include "kernel/sched/grace.h"
#include "kernel/sched/sync_point.h"
#include "kernel/sync/counter.h"
#include "kernel/sync/mutant.h"
#include "lib/errno.h"
#include "mm/account.h"
#include "mm/core/slab.h"
#include "mm/readahead_use.h"
#include "mm/reclaim.h"

#define DEFAULT_MAX_REQUEST_PAGES 320
#define NODE_RECLAIM_PAGES        16 /* for a tree node: as many as are sure to fill a slab */

static SLEEP_LOCK_CLASS(invalidate_lock_class, "invalidate_lock");
static SLEEP_LOCK_CLASS(invalidate_lock_meta_class, "invalidate_lock (metadata)");
static SLEEP_LOCK_CLASS(map_lock_class, "map_lock");
static LOCK_CLASS(tree_lock_class, "tree_lock");

static struct slab_cache *radix_node_cache;
static COUNTER(cached_pages); /* goes up and down on different CPUs: only the sum means something */

static void *radix_node_alloc(void *ctx)
{
    (void)ctx;
    return slab_alloc(radix_node_cache);
}

static void radix_node_free(struct deferred *deferred)
{
    slab_free(radix_node_cache, container_of(deferred, struct radix_node, deferred));
}

static void radix_node_free_later(void *ctx, struct radix_node *node)
{
    (void)ctx;
    node->deferred.free = radix_node_free;
    grace_defer(&node->deferred);
}

static const struct radix_ops radix_ops = {radix_node_alloc, radix_node_free_later};

void page_cache_rooms_init(void)
{
    page_lock_init();
    radix_node_cache = slab_cache_create("radix_node", sizeof(struct radix_node), 0);
}

void page_cache_init(struct page_cache *cache, const struct page_cache_ops *ops, void *owner,
                     bool is_meta)
{
    *cache = (struct page_cache){.ops = ops,
                                 .owner = owner,
                                 .is_meta = is_meta,
                                 .max_request_pages = DEFAULT_MAX_REQUEST_PAGES};
    radix_init(&cache->pages, &radix_ops, NULL);
    spin_init(&cache->tree_lock, &tree_lock_class);
    rwsem_init(&cache->invalidate_lock,
               is_meta ? &invalidate_lock_meta_class : &invalidate_lock_class, "invalidate_lock");
    mutex_init(&cache->map_lock, &map_lock_class);
    list_init(&cache->mappings);
}

u64 page_cache_total_pages(void)
{
    return counter_sum(cached_pages);
}

/*
 * A lookup and a removal may cross: the tree still showed the page, then it was removed, freed, and is somebody
 * else's by the time the reference is taken. So: take it only while the count is above zero, then look
 * whether the page still says that it belongs here.
 */
static bool get_if_still_here(struct page_cache *cache, struct page *page, pgoff_t index)
{
    if (!page_try_get(page))
        return false;
    if (page_cache_owns(cache, page, index))
        return true;
    page_put(page);
    return false;
}

struct page *page_cache_find(struct page_cache *cache, pgoff_t index)
{
    for (;;) {
        struct page *page = radix_lookup(&cache->pages, index);
        if (!page || get_if_still_here(cache, page, index))
            return page;
        cpu_pause();
    }
}

unsigned page_cache_find_range(struct page_cache *cache, pgoff_t first, pgoff_t last,
                               struct page **pages, unsigned max)
{
    unsigned kept = 0;
    while (kept < max && first <= last) {
        u64 indices[16];
        void *items[16];
        size_t n = radix_gang_lookup(&cache->pages, first, last, items, indices,
                                     MIN(max - kept, (unsigned)ARRAY_SIZE(items)));
        if (n == 0)
            break;
        for (size_t i = 0; i < n; i++)
            if (get_if_still_here(cache, items[i], indices[i]))
                pages[kept++] = items[i];
        first = indices[n - 1] + 1;
    }
    return kept;
}

pgoff_t page_cache_next_absent(struct page_cache *cache, pgoff_t first, pgoff_t last)
{
    return radix_next_absent(&cache->pages, first, last);
}

u64 page_cache_count_before(struct page_cache *cache, pgoff_t index, u64 max)
{
    return radix_count_back(&cache->pages, index, max);
}

/* => 0, -EEXIST, -ENOMEM */
static int insert(struct page_cache *cache, struct page *page)
{
    bool irqs = spin_lock_irq(&cache->tree_lock);
    int error = radix_insert(&cache->pages, page->index, page);
    if (!error)
        cache->n_pages++;
    spin_unlock_irq(&cache->tree_lock, irqs);
    return error;
}

/*
 * A frame that is new here may be an old acquaintance of a lookup that has been on its way for long:
 *
 *     lookup                                  this CPU
 *     reads the pointer from the tree
 *                                             removes the page, frees it, gets the frame again
 *     takes a reference: the count is 2       makes it a page of this cache
 *
 * So the count is only ever added to, the page is locked before it says where it belongs, and if it does
 * not get into the tree, it is given up as any locked page is: somebody may wait for it.
 */
int page_cache_add_new(struct page_cache *cache, pgoff_t index, struct page **out)
{
    int error;
    struct page *page = frame_alloc_reclaim(0);
    if (!page)
        return -ENOMEM;
    /* Counts as touched: else what was read ahead, and is still to be used, would be reclaimed before what was used already. */
    page_set(page, PAGE_LOCKED | PAGE_REFERENCED | (cache->is_meta ? PAGE_META : 0));
    page_get(page); /* the cache's; the first is the caller's */
    page->index = index;
    atomic_store(&page->cache, cache);
    SYNC_POINT(page_cache_insert);
    while ((error = insert(cache, page)) == -ENOMEM && reclaim_pages(NODE_RECLAIM_PAGES) > 0)
        ; /* a node of the tree is not there either */
    if (error) {
        WRITE_ONCE(page->cache, NULL);
        page_unlock_io(page);
        page_put(page);
        page_put(page);
        return error;
    }
    counter_inc(cached_pages);
    TRACE(mm_filemap_add_to_page_cache, .pfn = page_pfn(page), .i_ino = cache->ino, .index = index,
          .s_dev = trace_dev(cache->dev));
    reclaim_list_add(page);
    *out = page;
    return 0;
}

static void forget_locked(struct page_cache *cache, struct page *page)
{
    TRACE(mm_filemap_delete_from_page_cache, .pfn = page_pfn(page), .i_ino = cache->ino,
          .index = page->index, .s_dev = trace_dev(cache->dev));
    radix_remove(&cache->pages, page->index);
    cache->n_pages--;
    WRITE_ONCE(page->cache, NULL);
    readahead_page_gone(page);
    if (cache->ops && cache->ops->page_removed)
        cache->ops->page_removed(cache, page);
}

void page_cache_remove(struct page_cache *cache, struct page *page)
{
    ASSERT(page_is_locked(page) && page->cache == cache && page->mapcount == 0);
    reclaim_list_remove(page);
    bool irqs = spin_lock_irq(&cache->tree_lock);
    forget_locked(cache, page);
    spin_unlock_irq(&cache->tree_lock, irqs);
    counter_add(cached_pages, -1);
    page_put(page);
}

bool page_cache_remove_frozen(struct page_cache *cache, struct page *page)
{
    bool irqs = spin_lock_irq(&cache->tree_lock);
    /* Whoever found the page just now has a reference, and the count is not two: it stays. */
    bool frozen = page_freeze(page, MUTANT(reclaim_no_freeze) ? atomic_load(&page->refs) : 2);
    if (frozen)
        forget_locked(cache, page);
    spin_unlock_irq(&cache->tree_lock, irqs);
    if (!frozen)
        return false;
    reclaim_list_remove(page);
    counter_add(cached_pages, -1);
    page_unlock(page);
    page_unfreeze(page, 1);
    page_put(page);
    return true;
}

void page_read_done(struct page *page, int error)
{
    if (error) {
        page_set(page, PAGE_ERROR);
    } else {
        page_unset(page, PAGE_ERROR);
        page_set(page, PAGE_UPTODATE);
    }
    page_unlock_io(page);
}

void page_cache_reread_page(struct page_cache *cache, struct page *page)
{
    ASSERT(page_is_locked(page) && !page_is_uptodate(page));
    page_unset(page, PAGE_ERROR);
    page_lock_give_to_io(page);
    cache->ops->read_pages(cache, &page, 1, false);
}

/*
 * Inserts the page and starts its read.
 * => 0 with a reference, -EEXIST, -ENOMEM, -ENXIO, -EINTR
 */
static int add_and_read(struct page_cache *cache, pgoff_t index, bool killable, struct page **page)
{
    if (!killable)
        rwsem_read_lock(&cache->invalidate_lock);
    else if (rwsem_read_lock_killable(&cache->invalidate_lock))
        return -EINTR;
    int error =
        index < page_cache_size_pages(cache) ? page_cache_add_new(cache, index, page) : -ENXIO;
    if (!error)
        cache->ops->read_pages(cache, page, 1, false);
    rwsem_read_unlock(&cache->invalidate_lock);
    return error;
}

/* The page was not up to date when it was looked at: as a rule its read is what is waited for. */
static int lock_found(struct page_cache *cache, struct page *page, bool killable)
{
    int error = 0;
    if (page_trylock(page))
        return 0;
    u64 begin_ns = clock_ns();
    if (cache->is_meta)
        account_metadata_wait();
    if (killable)
        error = page_lock_killable(page);
    else
        page_lock(page);
    if (!cache->is_meta)
        account_read_wait(clock_ns() - begin_ns);
    return error;
}

int page_cache_get_page(struct page_cache *cache, pgoff_t index, bool killable, struct page **out)
{
    bool reread = false;
    for (;;) {
        int error = 0;
        struct page *page = page_cache_find(cache, index);
        if (!page)
            error = add_and_read(cache, index, killable, &page);
        if (error == -EEXIST)
            continue;
        if (error)
            return error;
        if (page_is_uptodate(page) && page_cache_owns(cache, page, index)) {
            page_set(page, PAGE_REFERENCED);
            readahead_page_used(page);
            *out = page;
            return 0;
        }
        error = lock_found(cache, page, killable);
        if (error) {
            page_put(page);
            return error;
        }
        bool here = page_cache_owns(cache, page, index);
        if (here && !page_is_uptodate(page)) {
            if (reread) {
                page_unlock(page);
                page_put(page);
                return -EIO;
            }
            reread = true;
            page_cache_reread_page(cache, page);
        } else {
            page_unlock(page);
        }
        page_put(page); /* found again, or returned, by the next round */
    }
}
