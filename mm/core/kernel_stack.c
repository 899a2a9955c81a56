/*
 * Kernel stacks, each in a slot of its own in the vmap area:
 *
 *     | guard, never mapped, 16 KiB | stack, 16 KiB | next slot ...
 *
 * A stack that overflows runs into its guard; the page fault cannot be delivered there and becomes
 * a double fault, which has a stack of its own.
 *
 * Some freed stacks are kept as they are, mapped, and given out again. When one too many is freed,
 * it is unmapped and its frames go back. Its addresses are stale then: another CPU may still have
 * translations of them, to frames that are somebody else's now. So a slot is reused only after a
 * flush of all CPUs, and that is put off until no clean slot is left.
 *
 * Lock: stacks.lock (interrupts off; a stack is freed by the scheduler).
 */
#include "kernel/log/log.h"
#include "lib/bitmap.h"
#include "mm/core/frames.h"
#include "mm/core/page_table.h"
#include "mm/core/tlb.h"

#define SLOT_BYTES  (2 * KERNEL_STACK_BYTES)
#define GUARD_BYTES (SLOT_BYTES - KERNEL_STACK_BYTES)
#define MAX_STACKS  32768u
#define MAX_CACHED  8
#define STACKS_END  (VMAP_BASE + MAX_STACKS * SLOT_BYTES)

LOCK_CLASS(stacks_lock_class, "kernel stacks");
LOCK_CLASS(flush_lock_class, "kernel stacks' flush");

static struct {
    struct spinlock lock;
    u64 taken[BITMAP_WORDS(MAX_STACKS)]; /* slots that are in use, cached or stale */
    u64 stale[BITMAP_WORDS(MAX_STACKS)]; /* unmapped since the last flush of all CPUs */
    u32 cached[MAX_CACHED];
    u32 n_cached;
    size_t search_from; /* no clean slot below */
} stacks = {.lock = SPINLOCK_INIT(&stacks_lock_class)};

static u64 slot_stack(size_t slot)
{
    return VMAP_BASE + slot * SLOT_BYTES + GUARD_BYTES;
}

static size_t stack_slot(u64 addr)
{
    return (addr - VMAP_BASE) / SLOT_BYTES;
}

/* => a slot that no CPU has translations of, or MAX_STACKS */
static size_t take_clean_slot_locked(void)
{
    size_t slot = bitmap_next_zero(stacks.taken, MAX_STACKS, stacks.search_from);

    stacks.search_from = slot;
    if (slot < MAX_STACKS)
        bitmap_set(stacks.taken, slot);
    return slot;
}

/* All stale slots become clean: whatever was unmapped before this call is flushed everywhere. */
static void clean_stale_slots(void)
{
    static u64 flushed[BITMAP_WORDS(MAX_STACKS)]; /* guarded by flush_lock */
    static struct spinlock flush_lock = SPINLOCK_INIT(&flush_lock_class);

    /* Somebody else is at it, or may not wait for other CPUs: then the caller finds nothing. */
    if (!irqs_are_on() || !spin_trylock(&flush_lock))
        return;

    bool irqs = spin_lock_irq(&stacks.lock);

    for (size_t i = 0; i < ARRAY_SIZE(flushed); i++) {
        flushed[i] = stacks.stale[i];
        stacks.stale[i] = 0;
    }
    spin_unlock_irq(&stacks.lock, irqs);
    tlb_flush_kernel_all();
    irqs = spin_lock_irq(&stacks.lock);
    for (size_t i = 0; i < ARRAY_SIZE(flushed); i++)
        stacks.taken[i] &= ~flushed[i];
    stacks.search_from = 0;
    spin_unlock_irq(&stacks.lock, irqs);
    spin_unlock(&flush_lock);
}

static void unmap_pages(u64 stack, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += PAGE_SIZE) {
        struct page *page = phys_page(pt_kernel_translate(stack + at));

        pt_unmap_kernel(stack + at, PAGE_SIZE);
        frames_free(page, 0);
    }
}

/*
 * Cleared, since a stack is hardly ever written whole: where firmware has run code in a frame, QEMU looks at each store to it
 * until the last byte of that code is gone (a boot by UEFI was ten times slower for it).
 * => whether all pages of the stack are mapped; else none is
 */
static bool map_pages(u64 stack)
{
    for (size_t at = 0; at < KERNEL_STACK_BYTES; at += PAGE_SIZE) {
        struct page *page = frame_alloc(FRAME_ATOMIC | FRAME_ZERO);

        if (page && pt_map_kernel(stack + at, page_phys(page), PAGE_SIZE, PTE_WRITE | PTE_NX) == 0)
            continue;
        if (page)
            frames_free(page, 0);
        unmap_pages(stack, at);
        return false;
    }
    return true;
}

static void mark_stale(size_t slot)
{
    bool irqs = spin_lock_irq(&stacks.lock);

    bitmap_set(stacks.stale, slot);
    spin_unlock_irq(&stacks.lock, irqs);
}

void *kernel_stack_alloc(void)
{
    bool irqs = spin_lock_irq(&stacks.lock);
    bool is_mapped = stacks.n_cached > 0;
    size_t slot = is_mapped ? stacks.cached[--stacks.n_cached] : take_clean_slot_locked();

    spin_unlock_irq(&stacks.lock, irqs);
    if (slot == MAX_STACKS) {
        clean_stale_slots();
        irqs = spin_lock_irq(&stacks.lock);
        slot = take_clean_slot_locked();
        spin_unlock_irq(&stacks.lock, irqs);
        if (slot == MAX_STACKS)
            return NULL;
    }
    if (!is_mapped && !map_pages(slot_stack(slot))) {
        mark_stale(slot);
        return NULL;
    }
    return (void *)slot_stack(slot);
}

void kernel_stack_free(void *stack)
{
    size_t slot = stack_slot((u64)stack);

    ASSERT((u64)stack >= VMAP_BASE && (u64)stack < STACKS_END && (u64)stack == slot_stack(slot) &&
           bitmap_test(stacks.taken, slot));

    bool irqs = spin_lock_irq(&stacks.lock);
    bool keep = stacks.n_cached < MAX_CACHED;

    if (keep)
        stacks.cached[stacks.n_cached++] = (u32)slot;
    spin_unlock_irq(&stacks.lock, irqs);
    if (!keep) {
        unmap_pages((u64)stack, KERNEL_STACK_BYTES);
        mark_stale(slot);
    }
}

bool kernel_stack_guard_hit(u64 addr)
{
    return addr >= VMAP_BASE && addr < STACKS_END && (addr - VMAP_BASE) % SLOT_BYTES < GUARD_BYTES;
}

u64 kernel_stack_cached_count(void)
{
    return READ_ONCE(stacks.n_cached);
}
