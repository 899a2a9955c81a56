/*
 * The frame allocator: counts, alignment, coalescing, running out, and the checks of debug builds.
 */
#include "kernel/cpu/cpu.h"
#include "kernel/sched/grace.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/misuse.h"
#include "tests/kernel/ktest.h"

#define ROUNDS 8
#define MANY   2100 /* more than two blocks of the largest order */

/* Takes single frames until `max` or none is left. => how many, linked in `list` */
static u64 take_frames(struct list *list, u64 max, unsigned flags)
{
    u64 n = 0;
    struct page *page;

    while (n < max && (page = frame_alloc(flags)) != NULL) {
        list_add_tail(list, &page->lru);
        n++;
    }
    return n;
}

static void give_frames(struct list *list)
{
    while (!list_is_empty(list)) {
        struct page *page = list_first(list, struct page, lru);

        list_del(&page->lru);
        frames_free(page, 0);
    }
}

static bool is_filled_with(const struct page *page, u8 byte, size_t bytes)
{
    const u8 *at = page_virt(page);

    for (size_t i = 0; i < bytes; i++)
        if (at[i] != byte)
            return false;
    return true;
}

KTEST(frames, freeing_returns_the_count)
{
    grace_barrier(); /* what earlier tests left to be freed */

    u64 before = frames_free_count();
    struct page *single = frame_alloc(0);
    struct page *block = frames_alloc(4, 0);

    KASSERT(single && block);
    KEXPECT_EQ(frames_free_count(), before - 17);
    KEXPECT_EQ(single->refs, 1);
    KEXPECT_EQ(single->flags, 0);
    frames_free(block, 4);
    page_put(single);
    KEXPECT_EQ(frames_free_count(), before);
}

KTEST(frames, blocks_are_aligned_to_their_size)
{
    for (unsigned order = 0; order <= FRAME_MAX_ORDER; order++) {
        struct page *block = frames_alloc(order, 0);

        KASSERT(block != NULL);
        KEXPECT_EQ(page_pfn(block) % (1ul << order), 0);
        frames_free(block, order);
    }
}

KTEST(frames, blocks_do_not_overlap)
{
    struct page *blocks[8];

    for (unsigned i = 0; i < ARRAY_SIZE(blocks); i++) {
        blocks[i] = frames_alloc(3, 0);
        KASSERT(blocks[i] != NULL);
        memset(page_virt(blocks[i]), (int)i + 1, 8 * PAGE_SIZE);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(blocks); i++) {
        KEXPECT(is_filled_with(blocks[i], (u8)(i + 1), 8 * PAGE_SIZE));
        frames_free(blocks[i], 3);
    }
}

KTEST(frames, freed_neighbours_become_large_blocks_again)
{
    grace_barrier(); /* what earlier tests left to be freed */

    struct list odd = LIST_INIT(odd), even = LIST_INIT(even), all = LIST_INIT(all);
    struct page *page, *next;

    frames_drain_cpu_lists();

    u64 before = frames_free_blocks(FRAME_MAX_ORDER);
    u64 n = 0;

    /* Smaller blocks that earlier tests left in use at their edges are taken first. */
    while (frames_free_blocks(FRAME_MAX_ORDER) == before && n < ROUNDS * MANY)
        n += take_frames(&all, MANY, 0);
    KEXPECT(frames_free_blocks(FRAME_MAX_ORDER) < before);
    list_for_each_safe (page, next, &all, lru) {
        list_del(&page->lru);
        list_add_tail(page_pfn(page) & 1 ? &odd : &even, &page->lru);
    }
    give_frames(&odd);
    give_frames(&even);
    frames_drain_cpu_lists();
    KEXPECT_EQ(frames_free_blocks(FRAME_MAX_ORDER), before);
}

KTEST(frames, zeroed_where_asked)
{
    struct page *dirty = frames_alloc(2, 0);

    KASSERT(dirty != NULL);
    memset(page_virt(dirty), 0xff, 4 * PAGE_SIZE);
    frames_free(dirty, 2);

    struct page *clean = frames_alloc(2, FRAME_ZERO);

    KASSERT(clean != NULL);
    KEXPECT_EQ(page_pfn(clean), page_pfn(dirty)); /* last freed, first used */
    KEXPECT(is_filled_with(clean, 0, 4 * PAGE_SIZE));
    frames_free(clean, 2);
}

KTEST(frames, reserve_is_for_atomic_requests_only)
{
    grace_barrier(); /* what earlier tests left to be freed */

    struct list taken = LIST_INIT(taken);

    frames_drain_cpu_lists();

    u64 old = frames_set_reserve(frames_free_count() - 100);
    u64 n = take_frames(&taken, MANY, 0);

    KEXPECT_EQ(n, 100);
    KEXPECT(frames_are_low());
    KEXPECT(frame_alloc(0) == NULL);
    KEXPECT(frames_alloc(1, 0) == NULL);

    struct page *atomic = frame_alloc(FRAME_ATOMIC);
    struct page *block = frames_alloc(1, FRAME_ATOMIC);

    KEXPECT(atomic != NULL);
    KEXPECT(block != NULL);
    if (atomic)
        frames_free(atomic, 0);
    if (block)
        frames_free(block, 1);
    give_frames(&taken);
    frames_set_reserve(old);
    KEXPECT(!frames_are_low());
}

KTEST(frames, injected_failures_come_in_the_order_asked_for)
{
    struct page *pages[7];

    frames_fail_inject(2, 3);
    for (unsigned i = 0; i < ARRAY_SIZE(pages); i++)
        pages[i] = i == 3 ? frames_alloc(2, FRAME_ATOMIC) : frame_alloc(FRAME_ATOMIC);
    frames_fail_inject(0, 0);
    for (unsigned i = 0; i < ARRAY_SIZE(pages); i++) {
        KEXPECT_EQ(pages[i] == NULL, i >= 2 && i < 5);
        if (pages[i])
            frames_free(pages[i], pages[i]->order);
    }
}

KTEST(frames, use_after_free_is_caught)
{
    if (!MEMORY_CHECKS)
        KTEST_SKIP("debug builds only");

    struct page *page = frame_alloc(0);

    KASSERT(page != NULL);

    u8 *memory = page_virt(page);

    frames_free(page, 0);
    KEXPECT_EQ(frames_check_poison(page), PAGE_SIZE);
    memory[123] = 1;
    KEXPECT_EQ(frames_check_poison(page), 123);
    memory_misuse_expect();

    struct page *again = frame_alloc(0);
    const char *report = memory_misuse_take();

    KEXPECT(report && strstr(report, "offset 123"));
    KASSERT(again != NULL);
    KEXPECT_EQ(page_pfn(again), page_pfn(page));
    frames_free(again, 0);
}

KTEST(frames, double_free_is_caught)
{
    grace_barrier(); /* what earlier tests left to be freed */

    u64 before = frames_free_count();
    struct page *page = frame_alloc(0);

    KASSERT(page != NULL);
    frames_free(page, 0);
    memory_misuse_expect();
    frames_free(page, 0);
    KEXPECT(memory_misuse_take() != NULL);
    memory_misuse_expect();
    page_put(page);
    KEXPECT(memory_misuse_take() != NULL);
    KEXPECT_EQ(page->refs, 0);
    KEXPECT_EQ(frames_free_count(), before);
}

KTEST(frames, free_with_the_wrong_order_is_caught)
{
    struct page *block = frames_alloc(2, 0);

    KASSERT(block != NULL);
    memory_misuse_expect();
    frames_free(block, 1);
    KEXPECT(memory_misuse_take() != NULL);
    frames_free(block, 2);
}

KTEST(frames, last_reference_frees)
{
    grace_barrier(); /* what earlier tests left to be freed */

    u64 before = frames_free_count();
    struct page *block = frames_alloc(1, 0);

    KASSERT(block != NULL);
    KEXPECT(page_try_get(block));
    frames_free(block, 1); /* the owner's; a lock-free lookup still holds it */
    KEXPECT_EQ(frames_free_count(), before - 2);
    page_put(block);
    KEXPECT_EQ(frames_free_count(), before);
    KEXPECT(!page_try_get(block));
}

KTEST(frames, frozen_page_cannot_be_taken)
{
    struct page *page = frame_alloc(0);

    KASSERT(page != NULL);
    KEXPECT(!page_freeze(page, 2));
    KEXPECT(page_freeze(page, 1));
    KEXPECT(!page_try_get(page));
    frames_free(page, 0); /* straight from frozen */
}

KTEST(frames, what_is_not_ours_stays_reserved)
{
    grace_barrier(); /* what earlier tests left to be freed */

    extern char __kernel_phys_start[], __kernel_phys_end[];
    phys_t trampoline = frames_trampoline_page();

    KEXPECT(trampoline > 0 && trampoline < 0x100000 && IS_ALIGNED(trampoline, PAGE_SIZE));
    KEXPECT(page_has(phys_page(trampoline), PAGE_RESERVED));
    KEXPECT(page_has(virt_page(page_array), PAGE_RESERVED));
    for (phys_t phys = (phys_t)__kernel_phys_start; phys < (phys_t)__kernel_phys_end;
         phys += PAGE_SIZE)
        KASSERT(page_has(phys_page(phys), PAGE_RESERVED));
    KEXPECT(frames_free_count() <= frames_total());
}
