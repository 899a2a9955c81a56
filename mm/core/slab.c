/*
 * Slab caches. See slab.h.
 *
 * A slab is a block of 1 to 8 frames cut into objects of one cache; its head's struct page
 * describes it:
 *
 *     private_[0]  the cache
 *     private_[1]  first free object, linked through the objects
 *     index        objects handed out
 *     lru          in the cache's list: partial or full; one slab at most is kept empty, in none
 *
 * Blocks are aligned to their size and every frame of a slab has PAGE_SLAB and the slab's order, so
 * the head is found from any address inside.
 *
 * An object in memory:
 *
 *     release   | object, or link while free |
 *     debug     | object, poisoned while free | redzone, who made and freed it | link while free |
 *
 * What debug builds look for is in slab_check.c.
 *
 * Locks: cache->lock (interrupts off) guards a cache and its slabs. Frames are taken and given back
 * outside it. caches.lock guards the list of caches; outer to cache->lock.
 */
#include "kernel/log/log.h"
#include "kernel/sync/spin.h"
#include "lib/format.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/misuse.h"
#include "mm/core/slab_internal.h"

#define MAX_SLAB_ORDER  3
#define DEFAULT_ALIGN   8
#define MAX_WASTE_SHARE 8 /* a larger slab is tried while more than 1/8 of it is wasted */

LOCK_CLASS(slab_lock_class, "slab");
LOCK_CLASS(slab_list_lock_class, "slab caches");

static struct {
    struct spinlock lock;
    struct list list;
    bool is_ready;
} caches = {.lock = SPINLOCK_INIT(&slab_list_lock_class), .list = LIST_INIT(caches.list)};

static struct slab_cache cache_cache; /* what slab_cache_create allocates from */

/* ---- Layout ---- */

static void choose_layout(struct slab_cache *cache, size_t align)
{
    size_t size = MAX(cache->object_bytes, sizeof(void *));

    if (MEMORY_CHECKS) {
        cache->trailer = ALIGN_UP(size, sizeof(u64));
        cache->link = cache->trailer + sizeof(struct trailer);
        size = cache->link + sizeof(void *);
    }
    cache->stride = ALIGN_UP(size, align);
    for (cache->order = 0; cache->order < MAX_SLAB_ORDER; cache->order++) {
        size_t bytes = PAGE_SIZE << cache->order;

        if (bytes >= cache->stride && bytes % cache->stride <= bytes / MAX_WASTE_SHARE)
            break;
    }
    cache->per_slab = (unsigned)((PAGE_SIZE << cache->order) / cache->stride);
}

static void cache_setup(struct slab_cache *cache, const char *name, size_t object_bytes,
                        size_t align)
{
    if (align == 0)
        align = DEFAULT_ALIGN;
    ASSERT(object_bytes > 0 && object_bytes <= SLAB_MAX_OBJECT_BYTES);
    ASSERT((align & (align - 1)) == 0 && align <= PAGE_SIZE);
    *cache = (struct slab_cache){.name = name, .object_bytes = object_bytes};
    spin_init(&cache->lock, &slab_lock_class);
    list_init(&cache->partial);
    list_init(&cache->full);
    choose_layout(cache, MAX(align, sizeof(void *)));

    bool irqs = spin_lock_irq(&caches.lock);

    list_add_tail(&caches.list, &cache->all_link);
    spin_unlock_irq(&caches.lock, irqs);
}

static void **link_of(const struct slab_cache *cache, void *object)
{
    return (void **)((char *)object + cache->link);
}

/* ---- Slabs ---- */

static struct page *slab_make(struct slab_cache *cache)
{
    struct page *slab = frames_alloc(cache->order, FRAME_ATOMIC);

    if (!slab)
        return NULL;
    for (u64 i = 0; i < 1ul << cache->order; i++) {
        slab[i].order = (u8)cache->order;
        page_set(&slab[i], PAGE_SLAB);
    }

    char *object = (char *)page_virt(slab) + (cache->per_slab - 1) * cache->stride;
    void *next = NULL;

    for (unsigned i = 0; i < cache->per_slab; i++, object -= cache->stride) {
        if (MEMORY_CHECKS)
            slab_mark_new(cache, object);
        *link_of(cache, object) = next;
        next = object;
    }
    slab->private_[0] = (u64)cache;
    slab->private_[1] = (u64)next;
    slab->index = 0;
    return slab;
}

static void slab_give_back(struct slab_cache *cache, struct page *slab)
{
    for (u64 i = 0; i < 1ul << cache->order; i++) {
        page_unset(&slab[i], PAGE_SLAB);
        slab[i].order = i == 0 ? (u8)cache->order : 0;
    }
    slab->index = 0;
    frames_free(slab, cache->order);
}

/* => a slab with a free object; NULL: a new one must be made. cache->lock held */
static struct page *pick_slab_locked(struct slab_cache *cache)
{
    if (!list_is_empty(&cache->partial))
        return list_first(&cache->partial, struct page, lru);
    if (!cache->empty)
        return NULL;

    struct page *slab = cache->empty;

    cache->empty = NULL;
    list_add_head(&cache->partial, &slab->lru);
    return slab;
}

static void *take_object_locked(struct slab_cache *cache, struct page *slab)
{
    void *object = (void *)slab->private_[1];

    slab->private_[1] = (u64)*link_of(cache, object);
    slab->index++;
    cache->live++;
    if (slab->index == cache->per_slab) {
        list_del(&slab->lru);
        list_add_head(&cache->full, &slab->lru);
    }
    return object;
}

/* ---- Allocations that fail on purpose (debug builds) ---- */

static u64 inject_after, inject_left, inject_failed; /* atomic; nothing left: switched off */

u64 slab_fail_inject(u64 after, u64 count)
{
    atomic_store(&inject_left, 0ul);
    atomic_store(&inject_after, after);
    atomic_store(&inject_left, MEMORY_CHECKS ? count : 0);
    return atomic_exchange(&inject_failed, 0ul);
}

static bool fails_on_purpose(void)
{
    if (likely(READ_ONCE(inject_left) == 0))
        return false;
    if (READ_ONCE(inject_after) > 0) {
        atomic_sub(&inject_after, 1);
        return false;
    }
    atomic_sub(&inject_left, 1);
    atomic_add(&inject_failed, 1);
    return true;
}

void *slab_alloc_for(struct slab_cache *cache, u64 caller)
{
    if (MEMORY_CHECKS && fails_on_purpose())
        return NULL;

    bool irqs = spin_lock_irq(&cache->lock);
    struct page *slab = pick_slab_locked(cache);

    if (unlikely(!slab)) {
        spin_unlock_irq(&cache->lock, irqs);
        slab = slab_make(cache);
        if (!slab)
            return NULL;
        irqs = spin_lock_irq(&cache->lock);
        cache->n_slabs++;
        list_add_tail(&cache->partial, &slab->lru);
    }

    void *object = take_object_locked(cache, slab);

    if (MEMORY_CHECKS)
        slab_check_and_mark_live(cache, object, caller);
    spin_unlock_irq(&cache->lock, irqs);
    return object;
}

/* => a slab to give back, or NULL */
static struct page *put_object_locked(struct slab_cache *cache, void *object)
{
    struct page *slab = slab_head_of(object);
    struct page *surplus = NULL;

    *link_of(cache, object) = (void *)slab->private_[1];
    slab->private_[1] = (u64)object;
    cache->live--;
    if (slab->index-- == cache->per_slab) {
        list_del(&slab->lru);
        list_add_head(&cache->partial, &slab->lru);
    }
    if (slab->index == 0) {
        list_del(&slab->lru);
        surplus = cache->empty;
        cache->empty = slab;
        if (surplus)
            cache->n_slabs--;
    }
    return surplus;
}

void slab_free_for(struct slab_cache *cache, void *object, u64 caller)
{
    struct page *surplus = NULL;
    bool irqs = spin_lock_irq(&cache->lock);

    if (!MEMORY_CHECKS || slab_check_live(cache, object, caller)) {
        if (MEMORY_CHECKS)
            slab_mark_free(cache, object, caller);
        surplus = put_object_locked(cache, object);
    }
    spin_unlock_irq(&cache->lock, irqs);
    if (surplus)
        slab_give_back(cache, surplus);
}

struct slab_cache *slab_cache_of(const void *object)
{
    const struct page *slab = slab_head_of(object);

    return page_has(slab, PAGE_SLAB) ? (struct slab_cache *)slab->private_[0] : NULL;
}

size_t slab_object_bytes(const struct slab_cache *cache)
{
    return cache->object_bytes;
}

/* ---- The door ---- */

void *slab_alloc(struct slab_cache *cache)
{
    return slab_alloc_for(cache, (u64)__builtin_return_address(0));
}

void *slab_alloc_zeroed(struct slab_cache *cache)
{
    void *object = slab_alloc_for(cache, (u64)__builtin_return_address(0));

    if (object)
        memset(object, 0, cache->object_bytes);
    return object;
}

void slab_free(struct slab_cache *cache, void *object)
{
    slab_free_for(cache, object, (u64)__builtin_return_address(0));
}

void slab_init(void)
{
    cache_setup(&cache_cache, "slab_cache", sizeof(struct slab_cache), 64);
    caches.is_ready = true;
    kmalloc_init();
    misuse_init();
}

struct slab_cache *slab_cache_create(const char *name, size_t object_bytes, size_t align)
{
    struct slab_cache *cache = caches.is_ready ? slab_alloc(&cache_cache) : NULL;

    if (!cache)
        panic("cannot create slab cache %s: %s", name,
              caches.is_ready ? "out of memory" : "called before slab_init");
    cache_setup(cache, name, object_bytes, align);
    return cache;
}

/* => the empty slab the cache kept, or NULL */
static struct page *take_empty(struct slab_cache *cache)
{
    bool irqs = spin_lock_irq(&cache->lock);
    struct page *slab = cache->empty;

    cache->empty = NULL;
    if (slab)
        cache->n_slabs--;
    spin_unlock_irq(&cache->lock, irqs);
    return slab;
}

void slab_cache_destroy(struct slab_cache *cache)
{
    struct page *slab = take_empty(cache);

    if (cache->live || cache->n_slabs)
        panic("slab cache %s ends with %lu live objects", cache->name, cache->live);

    bool irqs = spin_lock_irq(&caches.lock);

    list_del(&cache->all_link);
    spin_unlock_irq(&caches.lock, irqs);
    if (slab)
        slab_give_back(cache, slab);
    slab_free(&cache_cache, cache);
}

u64 slab_cache_live(const struct slab_cache *cache)
{
    return READ_ONCE(cache->live);
}

void slab_for_each(void (*fn)(void *ctx, const char *name, u64 live, size_t object_bytes,
                              u64 frames),
                   void *ctx)
{
    struct slab_cache *cache;
    bool irqs = spin_lock_irq(&caches.lock);

    list_for_each (cache, &caches.list, all_link)
        fn(ctx, cache->name, READ_ONCE(cache->live), cache->object_bytes,
           READ_ONCE(cache->n_slabs) << cache->order);
    spin_unlock_irq(&caches.lock, irqs);
}

static void add_frames(void *ctx, const char *name, u64 live, size_t object_bytes, u64 n_frames)
{
    (void)name, (void)live, (void)object_bytes;
    *(u64 *)ctx += n_frames;
}

u64 slab_frames_total(void)
{
    u64 total = kmalloc_large_frames();

    slab_for_each(add_frames, &total);
    return total;
}

u64 slab_release_empty(void)
{
    struct slab_cache *cache;
    u64 n_freed = 0;
    bool irqs = spin_lock_irq(&caches.lock);

    list_for_each (cache, &caches.list, all_link) {
        struct page *slab = take_empty(cache);

        if (!slab)
            continue;
        n_freed += 1ul << cache->order;
        slab_give_back(cache, slab);
    }
    spin_unlock_irq(&caches.lock, irqs);
    return n_freed;
}
