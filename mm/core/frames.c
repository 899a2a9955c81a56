/*
 * The frame allocator: buddy system and per-CPU lists. See frames.h.
 *
 * A free block of 2^n frames begins at a multiple of 2^n. Its head has PAGE_FREE as its only flag
 * and the order in `order`, and stands in the list of that order. Its buddy is the block whose
 * number differs in bit n; two free buddies of one order become one block of the next.
 *
 * Single frames go through a small array of the CPU. A frame there has PAGE_CPU_LIST instead of
 * PAGE_FREE: whether a neighbour can be merged is decided by one read of its flags, and only the
 * holder of the lock ever makes them exactly PAGE_FREE or changes them from that.
 *
 *     frame_alloc -> CPU's list -> (empty: a batch at once) buddy lists
 *     frame free  -> CPU's list -> (full: a batch at once)  buddy lists
 *
 * The reserve counts what is in the buddy lists. An ordinary request may take what is in its CPU's
 * list, but no frame of the reserve.
 *
 * Locks: frames.lock (interrupts off) guards lists, counts and limits. A CPU's list is touched by
 * that CPU with interrupts off only.
 */
#include "kernel/cpu/smp.h"
#include "kernel/log/log.h"
#include "kernel/sync/spin.h"
#include "lib/string.h"
#include "mm/core/frames_internal.h"
#include "mm/core/misuse.h"

#define RESERVE_MIN_FRAMES 64
#define RESERVE_MAX_FRAMES 1024
#define RESERVE_SHARE      256 /* of all frames, one in so many */
#define CPU_LIST_MIN       8
#define CPU_LIST_MAX       64
#define CPU_LIST_SHARE     1024 /* of all frames, one in so many, for each CPU */

struct cpu_list {
    struct cpu_list *self; /* anything else: never used on this CPU */
    u32 n;
    struct page *pages[CPU_LIST_MAX];
};

static PERCPU(struct cpu_list, cpu_list);

LOCK_CLASS(frames_lock_class, "frames");

static struct {
    struct spinlock lock;
    struct list free[FRAME_MAX_ORDER + 1];
    u64 n_blocks[FRAME_MAX_ORDER + 1]; /* length of each list */
    u64 n_free;                        /* frames in the lists */
    u64 total;
    u64 reserve;
    u32 list_high; /* a CPU's list holds at most so many */
    u64 inject_after, inject_count;
    bool inject_is_armed;
} frames = {.lock = SPINLOCK_INIT(&frames_lock_class)};

/* ---- Buddy system: all with frames.lock held ---- */

static void buddy_add_block(struct page *page, unsigned order)
{
    page->order = (u8)order;
    page->flags = PAGE_FREE;
    list_add_head(&frames.free[order], &page->lru);
    frames.n_blocks[order]++;
}

static void buddy_remove_block(struct page *page)
{
    list_del(&page->lru);
    page->flags = 0;
    frames.n_blocks[page->order]--;
}

static void buddy_free_locked(struct page *page, unsigned order)
{
    pfn_t pfn = page_pfn(page);

    frames.n_free += 1ul << order;
    for (; order < FRAME_MAX_ORDER; order++) {
        pfn_t buddy_pfn = pfn ^ (1ul << order);
        struct page *buddy = pfn_page(buddy_pfn);

        if (buddy_pfn + (1ul << order) > page_array_end || READ_ONCE(buddy->flags) != PAGE_FREE ||
            buddy->order != order)
            break;
        buddy_remove_block(buddy);
        pfn = MIN(pfn, buddy_pfn);
    }
    buddy_add_block(pfn_page(pfn), order);
}

static struct page *buddy_alloc_locked(unsigned order)
{
    unsigned from = order;

    while (from <= FRAME_MAX_ORDER && list_is_empty(&frames.free[from]))
        from++;
    if (from > FRAME_MAX_ORDER)
        return NULL;

    struct page *page = list_first(&frames.free[from], struct page, lru);

    buddy_remove_block(page);
    while (from > order) {
        from--;
        buddy_add_block(page + (1ul << from), from);
    }
    frames.n_free -= 1ul << order;
    return page;
}

/* May 2^order frames be taken from the lists for a request with these flags? */
static bool may_take_locked(unsigned order, unsigned flags)
{
    u64 keep = flags & FRAME_ATOMIC ? 0 : frames.reserve;

    return frames.n_free >= keep + (1ul << order);
}

/* ---- The CPU's list: all with interrupts off ---- */

static struct cpu_list *own_list(void)
{
    struct cpu_list *list = percpu_this(cpu_list);

    if (unlikely(list->self != list)) {
        list->n = 0;
        list->self = list;
    }
    return list;
}

/* Moves one block of the buddy system, frame by frame, into the CPU's list: the last first out. */
static void take_block_apart(struct cpu_list *list, struct page *block, unsigned order)
{
    struct page **slot = &list->pages[list->n];

    for (struct page *page = block + (1ul << order); page-- > block;) {
        page->flags = PAGE_CPU_LIST;
        page->order = 0;
        *slot++ = page;
    }
    list->n += 1u << order;
}

/* The largest order whose block is not more than `frames`, and can be had without splitting one if possible. */
static unsigned order_to_take_locked(u32 n_frames)
{
    unsigned most = 31 - (unsigned)__builtin_clz(n_frames), order = 0;

    while (order < most && list_is_empty(&frames.free[order]))
        order++;
    return order;
}

/*
 * Fills the CPU's empty list half, as far as the reserve allows: with whole blocks, the smallest that there are
 * first. The reserve itself is taken one by one. => whether a frame is in it
 */
static bool refill_list(struct cpu_list *list, unsigned flags)
{
    u32 want = frames.list_high / 2;

    spin_lock(&frames.lock);
    while (list->n < want) {
        unsigned order = order_to_take_locked(want - list->n);

        if (!may_take_locked(order, 0))
            order = 0;
        if (!may_take_locked(order, 0) && (list->n > 0 || !may_take_locked(order, flags)))
            break;

        take_block_apart(list, buddy_alloc_locked(order), order);
    }
    spin_unlock(&frames.lock);
    return list->n > 0;
}

/* Gives frames back until `keep` are left. */
static void spill_list(struct cpu_list *list, u32 keep)
{
    spin_lock(&frames.lock);
    while (list->n > keep)
        buddy_free_locked(list->pages[--list->n], 0);
    spin_unlock(&frames.lock);
}

static void drain_own_list(void *unused)
{
    bool irqs = irq_save_disable();

    (void)unused;
    spill_list(own_list(), 0);
    irq_restore(irqs);
}

/* ---- Debug builds: poison ---- */

/* While a frame is free, its private_ words are the first steps of the way to who freed it. */
static void poison_block(struct page *page, unsigned order, u64 caller)
{
    struct way freed;

    way_take(&freed, caller);
    for (u64 i = 0; i < 1ul << order; i++) {
        poison_fill(page_virt(page + i), PAGE_SIZE);
        page[i].poisoned = 1;
        memcpy(page[i].private_, freed.places, sizeof(page[i].private_));
    }
}

static struct way freed_by(const struct page *page)
{
    struct way way = {0};

    memcpy(way.places, page->private_, sizeof(page->private_));
    return way;
}

size_t frames_check_poison(const struct page *page)
{
    return page->poisoned ? poison_check(page_virt(page), PAGE_SIZE) : PAGE_SIZE;
}

static void check_poison_block(struct page *page, unsigned order)
{
    for (u64 i = 0; i < 1ul << order; i++) {
        size_t at = frames_check_poison(&page[i]);

        page[i].poisoned = 0;
        if (at == PAGE_SIZE)
            continue;
        struct way freed = freed_by(&page[i]);

        memory_misuse_of((u64)__builtin_return_address(0), NULL, &freed,
                         "frame %lu was written at offset %zu after it was freed (byte 0x%02x)",
                         page_pfn(&page[i]), at, ((u8 *)page_virt(&page[i]))[at]);
    }
}

/* ---- Allocating ---- */

static bool inject_failure(void)
{
    bool fail = false;
    bool irqs = spin_lock_irq(&frames.lock);

    if (frames.inject_after > 0) {
        frames.inject_after--;
    } else if (frames.inject_count > 0) {
        frames.inject_count--;
        fail = true;
    }
    if (frames.inject_count == 0)
        WRITE_ONCE(frames.inject_is_armed, false);
    spin_unlock_irq(&frames.lock, irqs);
    return fail;
}

/* Nobody else knows the frame yet: plain stores. */
static void set_up(struct page *page, unsigned order)
{
    page->flags = 0;
    page->order = (u8)order;
    page->mapcount = 0;
    page->cache = NULL;
    page->index = 0;
    list_init(&page->lru);
    /* Last: from now on a lock-free lookup with an old pointer can take a reference. */
    atomic_store(&page->refs, 1);
}

static struct page *prepare(struct page *page, unsigned order, unsigned flags)
{
    if (MEMORY_CHECKS)
        check_poison_block(page, order);
    if (flags & FRAME_ZERO)
        for (u64 i = 0; i < 1ul << order; i++)
            page_clear(page_virt(page + i));
    set_up(page, order);
    return page;
}

/* The fast half of frame_alloc: what the CPU's list has. => NULL: it is empty */
static inline struct page *take_from_list(void)
{
    bool irqs = irq_save_disable();
    struct cpu_list *list = own_list();
    struct page *page = likely(list->n > 0) ? list->pages[--list->n] : NULL;

    irq_restore(irqs);
    return page;
}

/* The list was empty, or a test wants failures. */
static __attribute__((noinline)) struct page *take_slowly(unsigned flags)
{
    struct page *page = NULL;

    if (READ_ONCE(frames.inject_is_armed) && inject_failure())
        return NULL;

    bool irqs = irq_save_disable();
    struct cpu_list *list = own_list();

    if (list->n > 0 || refill_list(list, flags))
        page = list->pages[--list->n];
    irq_restore(irqs);
    return page;
}

struct page *frame_alloc(unsigned flags)
{
    struct page *page = likely(!READ_ONCE(frames.inject_is_armed)) ? take_from_list() : NULL;

    if (unlikely(!page))
        page = take_slowly(flags);
    if (unlikely(!page))
        return NULL;
    if (MEMORY_CHECKS)
        check_poison_block(page, 0);
    if (flags & FRAME_ZERO)
        page_clear(page_virt(page));
    set_up(page, 0);
    return page;
}

static struct page *take_block(unsigned order, unsigned flags)
{
    bool irqs = spin_lock_irq(&frames.lock);
    struct page *page = may_take_locked(order, flags) ? buddy_alloc_locked(order) : NULL;

    spin_unlock_irq(&frames.lock, irqs);
    return page;
}

struct page *frames_alloc(unsigned order, unsigned flags)
{
    ASSERT(order <= FRAME_MAX_ORDER);
    if (order == 0)
        return frame_alloc(flags);
    if (unlikely(READ_ONCE(frames.inject_is_armed)) && inject_failure())
        return NULL;

    struct page *page = take_block(order, flags);

    if (!page) {
        /* Perhaps only frames of this CPU's list keep two blocks apart. */
        drain_own_list(NULL);
        page = take_block(order, flags);
    }
    return page ? prepare(page, order, flags) : NULL;
}

/* ---- Freeing ---- */

void frames_give_back(struct page *page, unsigned order, u64 caller)
{
    if (page_has(page, PAGE_LOCKED) || page->mapcount != 0 || page->cache)
        panic("frame %lu freed in use: flags 0x%x, mapcount %d, cache %p, index %lu",
              page_pfn(page), page->flags, page->mapcount, (void *)page->cache, page->index);
    if (MEMORY_CHECKS)
        poison_block(page, order, caller);

    bool irqs = irq_save_disable();

    if (order == 0) {
        struct cpu_list *list = own_list();

        if (unlikely(list->n >= frames.list_high))
            spill_list(list, frames.list_high / 2);
        page->flags = PAGE_CPU_LIST;
        list->pages[list->n++] = page;
    } else {
        spin_lock(&frames.lock);
        buddy_free_locked(page, order);
        spin_unlock(&frames.lock);
    }
    irq_restore(irqs);
}

void frames_free(struct page *page, unsigned order)
{
    if (page_has(page, PAGE_FREE | PAGE_CPU_LIST | PAGE_RESERVED) || page->order != order) {
        memory_misuse("frame %lu freed with order %u: free already, or has order %u (flags 0x%x)",
                      page_pfn(page), order, page->order, page->flags);
        return;
    }
    if (atomic_load(&page->refs) > 0)
        page_put(page);
    else
        frames_give_back(page, order, (u64)__builtin_return_address(0));
}

/* ---- Counts, limits, hooks ---- */

void frames_start(void)
{
    for (unsigned order = 0; order <= FRAME_MAX_ORDER; order++)
        list_init(&frames.free[order]);
    frames.list_high = CPU_LIST_MIN;
}

void frames_hand_over(pfn_t first, pfn_t end)
{
    bool irqs = spin_lock_irq(&frames.lock);

    frames.total += end - first;
    while (first < end) {
        unsigned order = first == 0 ? FRAME_MAX_ORDER : (unsigned)__builtin_ctzl(first);

        order = MIN(order, FRAME_MAX_ORDER);
        while (first + (1ul << order) > end)
            order--;
        buddy_free_locked(pfn_page(first), order);
        first += 1ul << order;
    }
    spin_unlock_irq(&frames.lock, irqs);
}

void frames_set_limits(void)
{
    frames.reserve = MAX(RESERVE_MIN_FRAMES, MIN(frames.total / RESERVE_SHARE, RESERVE_MAX_FRAMES));
    frames.list_high = (u32)MAX(CPU_LIST_MIN, MIN(frames.total / CPU_LIST_SHARE, CPU_LIST_MAX));
}

u64 frames_free_count(void)
{
    u64 count = READ_ONCE(frames.n_free);

    for (unsigned i = 0; i < cpu_count(); i++) {
        const struct cpu_list *list = percpu_of(cpu_list, i);

        if (list->self == list)
            count += READ_ONCE(list->n);
    }
    return count;
}

u64 frames_total(void)
{
    return frames.total;
}

u64 frames_reserve(void)
{
    return frames.reserve;
}

u64 frames_free_blocks(unsigned order)
{
    return READ_ONCE(frames.n_blocks[order]);
}

u64 frames_set_reserve(u64 reserve)
{
    bool irqs = spin_lock_irq(&frames.lock);
    u64 old = frames.reserve;

    frames.reserve = reserve;
    spin_unlock_irq(&frames.lock, irqs);
    return old;
}

bool frames_are_low(void)
{
    return READ_ONCE(frames.n_free) <= frames.reserve;
}

void frames_drain_cpu_lists(void)
{
    drain_own_list(NULL);
    smp_call(cpu_online_mask() & ~(1ul << cpu_index()), drain_own_list, NULL);
}

void frames_fail_inject(u64 after, u64 count)
{
    bool irqs = spin_lock_irq(&frames.lock);

    frames.inject_after = after;
    frames.inject_count = count;
    WRITE_ONCE(frames.inject_is_armed, count > 0);
    spin_unlock_irq(&frames.lock, irqs);
}
