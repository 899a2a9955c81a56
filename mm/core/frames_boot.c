/*
 * The machine's memory at boot: which of it is ours, where page_array lies, and how it is handed to
 * the frame allocator.
 *
 * Ours is every region that the firmware calls usable, without
 *   - the first MiB (firmware and real-mode leftovers); one page of it serves to start other CPUs;
 *   - the kernel image and the boot modules, which stay where the loader put them;
 *   - page_array itself.
 *
 * Until page_table_init only the first 4 GiB can be touched. So page_array is placed below, and
 * frames above are handed over in a second step, frames_add_high(), when the direct map covers
 * them. All of this runs once, on the boot CPU.
 */
#include "kernel/log/log.h"
#include "lib/string.h"
#include "mm/core/frames_internal.h"

#define LOW_MEMORY_END   0x100000ul   /* the first MiB */
#define BOOT_MAPPED_END  (4ul << 30)  /* what the boot page tables map */
#define TRAMPOLINE_FIRST 0x8000ul     /* below lie vectors and data of the BIOS */
#define TRAMPOLINE_END   0x9f000ul    /* above may lie the extended BIOS data area */
#define MINIMUM_BYTES    (16ul << 20) /* usable memory beside image and modules to get anywhere */
#define MAX_TAKEN        (BOOT_MAX_MODULES + 3)

/* Symbols of linker.ld: addresses, not objects. */
extern char __kernel_phys_start[], __kernel_phys_end[];

struct range {
    phys_t start, end; /* page-aligned, [start, end) */
};

struct page *page_array;
pfn_t page_array_end;

/* What is not ours although it is usable. Written by frames_init only. */
static struct range taken[MAX_TAKEN];
static unsigned n_taken;
static const struct boot_info *boot_memory;
static phys_t trampoline_phys;

static void take_range(phys_t start, phys_t end)
{
    ASSERT(n_taken < MAX_TAKEN);
    taken[n_taken++] = (struct range){ALIGN_DOWN(start, PAGE_SIZE), ALIGN_UP(end, PAGE_SIZE)};
}

/* => the taken range with the lowest start that reaches into [start, end), or NULL */
static const struct range *first_taken_in(phys_t start, phys_t end)
{
    const struct range *first = NULL;

    for (unsigned i = 0; i < n_taken; i++)
        if (taken[i].start < end && taken[i].end > start &&
            (!first || taken[i].start < first->start))
            first = &taken[i];
    return first;
}

/* Calls fn for each stretch of [low, high) that is ours, in rising order, until it returns true. */
static bool for_each_free(phys_t low, phys_t high, bool (*fn)(struct range range, void *ctx),
                          void *ctx)
{
    for (u32 i = 0; i < boot_memory->n_regions; i++) {
        const struct boot_region *region = &boot_memory->regions[i];
        phys_t start = ALIGN_UP(MAX(region->start, low), PAGE_SIZE);
        phys_t end = ALIGN_DOWN(MIN(region->end, high), PAGE_SIZE);

        if (region->type != BOOT_REGION_USABLE)
            continue;
        while (start < end) {
            const struct range *hole = first_taken_in(start, end);
            phys_t stop = hole ? MAX(hole->start, start) : end;

            if (stop > start && fn((struct range){start, stop}, ctx))
                return true;
            start = hole ? hole->end : end;
        }
    }
    return false;
}

static bool add_bytes(struct range range, void *ctx)
{
    *(u64 *)ctx += range.end - range.start;
    return false;
}

static void check_enough(void)
{
    u64 free_bytes = 0, module_bytes = 0;

    for_each_free(LOW_MEMORY_END, ~0ul, add_bytes, &free_bytes);
    for (u32 i = 0; i < boot_memory->n_modules; i++)
        module_bytes += boot_memory->modules[i].end - boot_memory->modules[i].start;
    if (free_bytes < MINIMUM_BYTES)
        panic(
            "too little memory: %lu KiB are usable beside the kernel and %lu KiB of boot modules, "
            "at least %lu KiB are needed: give the machine %lu MiB or more",
            free_bytes >> 10, module_bytes >> 10, MINIMUM_BYTES >> 10,
            DIV_ROUND_UP(MINIMUM_BYTES + module_bytes, 1ul << 20) + 16);
}

static bool find_trampoline(struct range range, void *ctx)
{
    *(phys_t *)ctx = range.start;
    return true;
}

struct placement {
    u64 bytes;
    phys_t start;
};

static bool find_room(struct range range, void *ctx)
{
    struct placement *placement = ctx;

    if (range.end - range.start < placement->bytes)
        return false;
    placement->start = range.start;
    return true;
}

static bool raise_end(struct range range, void *ctx)
{
    pfn_t *end = ctx;

    *end = MAX(*end, range.end >> PAGE_SHIFT);
    return false;
}

/* page_array from pfn 0 to the highest frame of ours, image or module; all marked reserved. */
static void place_page_array(void)
{
    struct placement placement = {0};

    for_each_free(LOW_MEMORY_END, ~0ul, raise_end, &page_array_end);
    for (unsigned i = 0; i < n_taken; i++)
        page_array_end = MAX(page_array_end, taken[i].end >> PAGE_SHIFT);
    placement.bytes = ALIGN_UP(page_array_end * sizeof(struct page), PAGE_SIZE);
    if (!for_each_free(LOW_MEMORY_END, BOOT_MAPPED_END, find_room, &placement))
        panic(
            "too little memory below 4 GiB: %lu KiB in one piece are needed to describe %lu frames",
            placement.bytes >> 10, page_array_end);
    page_array = phys_to_virt(placement.start);
    memset(page_array, 0, placement.bytes);
    for (pfn_t pfn = 0; pfn < page_array_end; pfn++)
        page_array[pfn].flags = PAGE_RESERVED;
    take_range(placement.start, placement.start + placement.bytes);
}

static bool hand_over(struct range range, void *ctx)
{
    pfn_t first = range.start >> PAGE_SHIFT, end = range.end >> PAGE_SHIFT;

    (void)ctx;
    for (pfn_t pfn = first; pfn < end; pfn++)
        page_array[pfn].flags = 0;
    frames_hand_over(first, end);
    return false;
}

void frames_init(const struct boot_info *boot)
{
    boot_memory = boot;
    take_range((phys_t)__kernel_phys_start, (phys_t)__kernel_phys_end);
    for (u32 i = 0; i < boot->n_modules; i++)
        take_range(boot->modules[i].start, boot->modules[i].end);
    check_enough();
    for_each_free(TRAMPOLINE_FIRST, TRAMPOLINE_END, find_trampoline, &trampoline_phys);
    place_page_array();

    frames_start();
    for_each_free(LOW_MEMORY_END, BOOT_MAPPED_END, hand_over, NULL);
    frames_set_limits();
}

void frames_add_high(void)
{
    for_each_free(BOOT_MAPPED_END, ~0ul, hand_over, NULL);
    frames_set_limits();
    log_info("memory: %lu MiB in %lu frames, reserve %lu frames, page_array %lu KiB",
             frames_total() >> (20 - PAGE_SHIFT), frames_total(), frames_reserve(),
             page_array_end * sizeof(struct page) >> 10);
}

phys_t frames_trampoline_page(void)
{
    return trampoline_phys;
}
