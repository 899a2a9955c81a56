/*
 * struct page: what the kernel knows about one physical frame.
 *
 * Who owns a frame decides the meaning of `cache`, `index` and `lru`:
 *   page cache  cache + index say where it belongs (changed only with the page locked and under
 *               cache->tree_lock), lru is guarded by the reclaim lists' lock
 *   anonymous   cache NULL, PAGE_ANON set
 *   slab, page tables, free   private to mm/core
 * The reference count holds the frame; a frame in the cache has one from the cache. Each page-table
 * entry that maps it has one and counts in mapcount.
 */
#ifndef MM_CORE_PAGE_H
#define MM_CORE_PAGE_H

#include "kernel/sync/atomic.h"
#include "lib/list.h"

struct page_cache;

enum page_flag {
    PAGE_LOCKED = 1u << 0,   /* the page lock; taken and handed over by mm/page_lock.h only */
    PAGE_UPTODATE = 1u << 1, /* contents are the file's */
    PAGE_ERROR = 1u << 2,    /* the last read failed */
    PAGE_DIRTY = 1u << 3,
    PAGE_WRITEBACK = 1u << 4,
    PAGE_READAHEAD = 1u << 5,  /* the mark: touching it starts the next window */
    PAGE_REFERENCED = 1u << 6, /* touched since reclaim looked last */
    PAGE_ACTIVE = 1u << 7,
    PAGE_ANON = 1u << 8,
    PAGE_SLAB = 1u << 9,
    PAGE_TABLE = 1u << 10,
    PAGE_FREE = 1u << 11,     /* in the buddy allocator */
    PAGE_RESERVED = 1u << 12, /* firmware, kernel image, holes: never allocated */
    PAGE_WAITERS = 1u << 13,  /* somebody may sleep for the page lock or its read */
    PAGE_HOLE = 1u << 14,     /* zeros, because the file has a hole there; nothing was read */
    PAGE_META = 1u << 15,     /* belongs to a block device's cache (lock class of its own) */
    PAGE_CPU_LIST = 1u << 16, /* free, in a CPU's list of single frames */
    PAGE_AHEAD = 1u << 18,    /* read ahead, and not used yet (mm/readahead_use.h) */
    PAGE_UNTOUCHED =
        1u
        << 17, /* of a file in memory: room was made for it (fallocate), nobody has read or written it */
};

struct page {
    union {
        struct {
            u32 flags; /* enum page_flag; atomically changed */
            s32 refs;
        };
        u64 flags_and_refs; /* for a step that concerns both */
    };
    s32 mapcount; /* page-table entries that map it */
    u8 order;     /* of the block this frame heads; of a slab, in each of its frames */
    u8 poisoned;  /* debug builds: free, and filled with the poison pattern */
    u8 unused[2];
    struct page_cache *cache;
    u64 index; /* page index in its cache */
    struct list lru;
    u64 private_
        [2]; /* owner's use (slab: cache and free list; free, in debug builds: who freed it) */
};
_Static_assert(sizeof(struct page) == 64, "one cache line");

extern struct page *page_array; /* indexed by pfn */
extern pfn_t page_array_end;    /* first pfn past it */

#define DIRECT_MAP_BASE   0xffff800000000000ul
#define KERNEL_IMAGE_BASE 0xffffffff80000000ul

static inline void *phys_to_virt(phys_t phys)
{
    return (void *)(DIRECT_MAP_BASE + phys);
}
/* Physical address of an object in the direct map or in the kernel image. */
static inline phys_t virt_to_phys(const void *virt)
{
    u64 v = (u64)virt;
    return v >= KERNEL_IMAGE_BASE ? v - KERNEL_IMAGE_BASE : v - DIRECT_MAP_BASE;
}
static inline pfn_t page_pfn(const struct page *page)
{
    return (pfn_t)(page - page_array);
}
static inline phys_t page_phys(const struct page *page)
{
    return page_pfn(page) << PAGE_SHIFT;
}
static inline void *page_virt(const struct page *page)
{
    return phys_to_virt(page_phys(page));
}
static inline struct page *pfn_page(pfn_t pfn)
{
    return &page_array[pfn];
}
static inline struct page *phys_page(phys_t phys)
{
    return pfn_page(phys >> PAGE_SHIFT);
}
static inline struct page *virt_page(const void *virt)
{
    return phys_page(virt_to_phys(virt));
}

static inline bool page_has(const struct page *page, u32 flags)
{
    return atomic_load(&page->flags) & flags;
}
static inline void page_set(struct page *page, u32 flags)
{
    atomic_or(&page->flags, flags);
}
static inline void page_unset(struct page *page, u32 flags)
{
    atomic_and(&page->flags, ~flags);
}
/* => whether any of the flags was set before */
static inline bool page_test_and_set(struct page *page, u32 flags)
{
    return atomic_or(&page->flags, flags) & flags;
}
static inline bool page_test_and_clear(struct page *page, u32 flags)
{
    return atomic_and(&page->flags, ~flags) & flags;
}

/*
 * Takes one more reference; the caller holds one already, or a lock that keeps the page's owner
 * from dropping its own.
 */
static inline void page_get(struct page *page)
{
    atomic_add(&page->refs, 1);
}

/*
 * Takes a reference unless the count is zero (the frame is being freed, or frozen by reclaim).
 * For lock-free lookups. => whether it was taken
 */
static inline bool page_try_get(struct page *page)
{
    s32 refs = atomic_load(&page->refs);
    while (refs > 0) {
        if (__atomic_compare_exchange_n(&page->refs, &refs, refs + 1, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return true;
    }
    return false;
}

/* Sets the count from `expected` to 0: no lookup can take the page. => whether it was that */
static inline bool page_freeze(struct page *page, s32 expected)
{
    return atomic_change(&page->refs, expected, 0);
}
static inline void page_unfreeze(struct page *page, s32 refs)
{
    atomic_store(&page->refs, refs);
}

/*
 * Drops a reference; the last one gives the frame (or the block of 2^order frames it heads) back.
 * Any context, never sleeps. Panics on an underflow, and when the last reference goes while the
 * page is mapped, locked or in a cache.
 */
void page_put(struct page *page);

#endif
