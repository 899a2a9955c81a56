/*
 * The page cache: which pages of a file (or block device) are in memory.
 *
 * What keeps two operations on the same page apart:
 *
 *                 fault/read           insert+read        truncate/punch        reclaim              completion
 *   fault/read    page lock at the     finds it locked,   page lock; owner and  page lock; frozen    waits for unlock
 *                 store of the PTE     waits              size checked after    refs refuse lookup
 *   insert+read                        tree: -EEXIST      invalidate_lock       (not there yet)      own page only
 *   truncate                                              inode->rwlock         page lock            waits for unlock
 *   reclaim                                                                     page lock (try)      locked: skipped
 *
 * A page is inserted locked; whoever inserted it reads it; everybody else finds it and waits. Lookups take no lock:
 * radix tree read + page_try_get + "does it still belong here".
 */
#ifndef MM_PAGE_CACHE_H
#define MM_PAGE_CACHE_H

#include "kernel/sched/mutex.h"
#include "lib/radix.h"
#include "mm/page_lock.h"

struct page_cache;

struct page_cache_ops {
    /*
     * Starts reading `n` consecutive pages, pages[0] at index pages[0]->index; all are in the cache, locked, not up to date, pinned by the
     * caller for the call. For every page, now or later, page_read_done(page, error) is called exactly once (by bio completion,
     * or at once: a hole is cleared, gets PAGE_HOLE and is done with 0). Pages that lie side by side on the disk go into one bio.
     * May sleep for metadata. The blocks of the pages stay theirs meanwhile: whoever frees blocks holds cache->invalidate_lock
     * exclusive, which is held shared here, and has got hold of the page's lock first, which matters where a page is
     * read again (page_cache_reread_page: without invalidate_lock, since the page lock is held already).
     * readahead: nobody waits for it (a hint).
     */
    void (*read_pages)(struct page_cache *cache, struct page **pages, unsigned n, bool readahead);
    /* Optional: a locked page has just left the cache, whose tree_lock is held. For owners that count their pages. */
    void (*page_removed)(struct page_cache *cache, struct page *page);
    /* Nothing stands behind the pages: an absent one is made, not read. One that was never stored to (is clean) can be
     * made again; others stay. */
    bool is_memory;
};

struct page_cache {
    struct radix pages;        /* written under tree_lock, read without */
    struct spinlock tree_lock; /* interrupts off */
    u64 n_pages;               /* tree_lock */
    u64 size_bytes; /* of the file; set under the owner's rwlock (and invalidate_lock), read with READ_ONCE */
    struct rwsem
        invalidate_lock; /* shared: from insertion to submission of reads. exclusive: truncate, punch */
    struct mutex map_lock; /* guards mappings */
    struct list mappings;  /* struct vma.mapping_link: who maps this file */
    const struct page_cache_ops *ops;
    void *owner;           /* inode */
    u64 dev, ino;          /* as stat shows them */
    u32 max_request_pages; /* io_max of the device below */
    u32 *read_ahead_kb;    /* the device's knob; NULL: 128 */
    bool is_meta; /* a block device's cache: pages get PAGE_META, reads count as metadata */
};

static inline bool page_cache_is_memory(const struct page_cache *cache)
{
    return cache->ops && cache->ops->is_memory;
}

void page_cache_rooms_init(void); /* once at boot: slab of tree nodes, page lock queues */

void page_cache_init(struct page_cache *cache, const struct page_cache_ops *ops, void *owner,
                     bool is_meta);
/* Drops every page; nobody may use the cache any more. Waits for reads in flight, and for reclaim. May sleep. */
void page_cache_destroy(struct page_cache *cache);

static inline u64 page_cache_size_pages(const struct page_cache *cache)
{
    u64 bytes = READ_ONCE(cache->size_bytes);
    return bytes / PAGE_SIZE + (bytes % PAGE_SIZE != 0);
}

/* => the page at index with a reference, or NULL. It may be locked, and may leave the cache at any time unless locked. Never sleeps. */
struct page *page_cache_find(struct page_cache *cache, pgoff_t index);
/* Does the page (reference held) still belong here? Reliable only with the page locked. */
static inline bool page_cache_owns(const struct page_cache *cache, const struct page *page,
                                   pgoff_t index)
{
    return READ_ONCE(page->cache) == cache && READ_ONCE(page->index) == index;
}
/*
 * Up to `max` pages present in [first, last], in order, each with a reference. => count. Never sleeps.
 */
unsigned page_cache_find_range(struct page_cache *cache, pgoff_t first, pgoff_t last,
                               struct page **pages, unsigned max);
/* First index >= first and <= last that is absent; last + 1 if none is. Never sleeps; a snapshot. */
pgoff_t page_cache_next_absent(struct page_cache *cache, pgoff_t first, pgoff_t last);
/* Number of consecutive present pages right before index, looking at most `max` back. */
u64 page_cache_count_before(struct page_cache *cache, pgoff_t index, u64 max);

/*
 * Inserts a new locked page. Allocates the frame with reclaim: may sleep.
 * => 0 with *page (locked, one reference for the caller beside the cache's), -EEXIST, -ENOMEM
 */
int page_cache_add_new(struct page_cache *cache, pgoff_t index, struct page **page);
/* Removes a locked page that nobody maps; drops the cache's reference. The caller keeps its own and unlocks. */
void page_cache_remove(struct page_cache *cache, struct page *page);
/* Reclaim: removes the locked page if exactly the cache and the caller hold it, leaving it with no references at all. => whether. */
bool page_cache_remove_frozen(struct page_cache *cache, struct page *page);

/* The read of a page ended: sets PAGE_UPTODATE or PAGE_ERROR and unlocks. Any context. */
void page_read_done(struct page *page, int error);

/*
 * Reads a page for the kernel's own use (metadata, ELF headers, file reads without readahead): finds it, or inserts and reads that page alone;
 * a page whose read failed is read again once. Sleeps; not killable unless `killable`.
 * => 0 with *page up to date, unlocked, referenced (page_put it); -EIO, -ENOMEM, -EINTR; -ENXIO past the end
 */
int page_cache_get_page(struct page_cache *cache, pgoff_t index, bool killable, struct page **page);
/*
 * Reads one already inserted, locked page by itself (again): clears PAGE_ERROR and submits. The page must be locked and not up to date; the read now owns the lock.
 */
void page_cache_reread_page(struct page_cache *cache, struct page *page);

/* Unmaps the locked page from every address space (through map_lock), flushing TLBs. May sleep. */
void page_unmap_everywhere(struct page_cache *cache, struct page *page);
/* => whether any page-table entry had the accessed bit set since the last call (clears them, flushed). Page locked. May sleep. */
bool page_test_clear_accessed(struct page_cache *cache, struct page *page);

/*
 * Truncation from `new_size` on (also growing): sets the size first, then for each page past it: lock, unmap everywhere, remove; private copies of them go, too. The tail of
 * the last page is cleared (where the file grows: of the old one). Caller holds the inode exclusively; takes invalidate_lock exclusive. Sleeps for page locks.
 */
void page_cache_truncate(struct page_cache *cache, u64 new_size_bytes);
/* Removes the pages wholly inside [first, last]: lock (waits for reads), unmap, remove. For punching holes. Caller holds invalidate_lock exclusive. */
void page_cache_remove_range(struct page_cache *cache, pgoff_t first, pgoff_t last);
/* POSIX_FADV_DONTNEED: drops clean, unmapped, unlocked pages of [first, last]. => pages dropped. Never waits for a page. */
u64 page_cache_drop_range(struct page_cache *cache, pgoff_t first, pgoff_t last);
u64 page_cache_total_pages(void); /* all caches */

#endif
