/*
 * Page tables: the lower half's tables and entries, and what the kernel's half allows.
 */
#include "kernel/cpu/cpu.h"
#include "kernel/sched/grace.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/page_table.h"
#include "mm/core/page_table_internal.h"
#include "mm/core/tlb.h"
#include "tests/kernel/ktest.h"

#define ADDR      0x40000000ul
#define FAR_ADDR  0x700000000000ul
#define USER_PAGE (PTE_PRESENT | PTE_USER | PTE_NX | PTE_ACCESSED)
#define TEST_VIRT (VMAP_END - (64ul << 20)) /* kernel addresses that nobody else maps */

extern char __text_start[], __text_end[], __rodata_start[], __rodata_end[];
extern char __data_start[], boot_stack_guard[], __bss_end[];

/* A test must end with an empty lower half. */
static void clear_entry(struct pt_space *space, u64 addr)
{
    pt_lock(space);
    *pt_find(space, addr) = 0;
    pt_unlock(space);
}

static pte_t *ensure(struct pt_space *space, u64 addr)
{
    pt_lock(space);

    pte_t *pte = pt_ensure(space, addr);

    pt_unlock(space);
    return pte;
}

static pte_t *find(struct pt_space *space, u64 addr)
{
    pt_lock(space);

    pte_t *pte = pt_find(space, addr);

    pt_unlock(space);
    return pte;
}

KTEST(page_table, entry_is_found_after_ensure)
{
    struct pt_space space;

    KASSERT_EQ(pt_space_init(&space), 0);
    KEXPECT(find(&space, ADDR) == NULL);

    pte_t *pte = ensure(&space, ADDR);

    KASSERT(pte != NULL);
    KEXPECT_EQ(*pte, 0);
    KEXPECT(find(&space, ADDR) == pte);
    KEXPECT(find(&space, ADDR + 511 * PAGE_SIZE) == pte + 511);
    KEXPECT(find(&space, ADDR + 512 * PAGE_SIZE) == NULL);
    KEXPECT(find(&space, ADDR - PAGE_SIZE) == NULL);
    pt_space_destroy(&space);
}

KTEST(page_table, ending_a_space_returns_every_table)
{
    grace_barrier(); /* what earlier tests left to be freed */

    u64 before = frames_free_count();
    struct pt_space space;

    KASSERT_EQ(pt_space_init(&space), 0);
    KEXPECT(ensure(&space, ADDR) != NULL);
    KEXPECT_EQ(space.table_pages, 4);
    KEXPECT(ensure(&space, ADDR + PAGE_SIZE) != NULL);
    KEXPECT_EQ(space.table_pages, 4);
    KEXPECT(ensure(&space, ADDR + PT_TABLE_SPAN) != NULL);
    KEXPECT_EQ(space.table_pages, 5);
    KEXPECT(ensure(&space, FAR_ADDR) != NULL);
    KEXPECT_EQ(space.table_pages, 8);
    KEXPECT_EQ(frames_free_count(), before - 8);
    pt_space_destroy(&space);
    KEXPECT_EQ(frames_free_count(), before);
}

KTEST(page_table, out_of_frames_is_null_and_leaks_nothing)
{
    grace_barrier(); /* what earlier tests left to be freed */

    u64 before = frames_free_count();
    struct pt_space space;

    frames_fail_inject(0, 1);
    KEXPECT_EQ(pt_space_init(&space), -ENOMEM);
    for (unsigned after = 0; after < 3; after++) {
        frames_fail_inject(0, 0);
        KASSERT_EQ(pt_space_init(&space), 0);
        frames_fail_inject(after, 1);
        KEXPECT(ensure(&space, ADDR) == NULL);
        KEXPECT(ensure(&space, ADDR) != NULL);
        pt_space_destroy(&space);
    }
    frames_fail_inject(0, 0);
    KEXPECT_EQ(frames_free_count(), before);
}

KTEST(page_table, next_table_skips_what_has_none)
{
    struct pt_space space;

    KASSERT_EQ(pt_space_init(&space), 0);
    ensure(&space, ADDR);
    ensure(&space, FAR_ADDR);
    pt_lock(&space);
    KEXPECT_EQ(pt_next_table(&space, 0, USER_ADDRESS_END), ADDR);
    KEXPECT_EQ(pt_next_table(&space, ADDR + PAGE_SIZE, USER_ADDRESS_END), ADDR + PAGE_SIZE);
    KEXPECT_EQ(pt_next_table(&space, ADDR + PT_TABLE_SPAN, USER_ADDRESS_END), FAR_ADDR);
    KEXPECT_EQ(pt_next_table(&space, ADDR + PT_TABLE_SPAN, FAR_ADDR), FAR_ADDR);
    KEXPECT_EQ(pt_next_table(&space, FAR_ADDR + PT_TABLE_SPAN, USER_ADDRESS_END), USER_ADDRESS_END);
    pt_unlock(&space);
    pt_space_destroy(&space);
}

KTEST(page_table, free_tables_takes_only_empty_tables_inside_the_range)
{
    grace_barrier(); /* what earlier tests left to be freed */

    static struct tlb_batch batch; /* tests run one at a time */
    struct pt_space space;

    KASSERT_EQ(pt_space_init(&space), 0);
    for (unsigned i = 0; i < 4; i++)
        ensure(&space, ADDR + i * PT_TABLE_SPAN);
    KASSERT_EQ(space.table_pages, 7);
    *ensure(&space, ADDR + PT_TABLE_SPAN) = 0x1000; /* not present, but in use */

    u64 before = frames_free_count();

    tlb_batch_init(&batch, &space);
    pt_lock(&space);
    /* The first table sticks out at its start, the second is in use, the third goes. */
    KEXPECT(!pt_free_tables(&space, ADDR + PAGE_SIZE, ADDR + 3 * PT_TABLE_SPAN, &batch));
    pt_unlock(&space);
    KEXPECT_EQ(space.table_pages, 6);
    KEXPECT_EQ(frames_free_count(), before);
    tlb_batch_flush(&batch);
    KEXPECT_EQ(frames_free_count(), before + 1);
    KEXPECT(find(&space, ADDR) && find(&space, ADDR + PT_TABLE_SPAN));
    KEXPECT(!find(&space, ADDR + 2 * PT_TABLE_SPAN));

    clear_entry(&space, ADDR + PT_TABLE_SPAN);
    pt_lock(&space);
    KEXPECT(!pt_free_tables(&space, 0, USER_ADDRESS_END, &batch));
    pt_unlock(&space);
    tlb_batch_flush(&batch);
    KEXPECT_EQ(space.table_pages, 1); /* the upper ones became empty too */
    pt_space_destroy(&space);
}

KTEST(page_table, free_tables_stops_at_a_full_batch)
{
    static struct tlb_batch batch; /* tests run one at a time */
    struct pt_space space;
    unsigned rounds = 1;

    KASSERT_EQ(pt_space_init(&space), 0);
    for (unsigned i = 0; i < 200; i++)
        KASSERT(ensure(&space, ADDR + i * PT_TABLE_SPAN) != NULL);
    tlb_batch_init(&batch, &space);
    pt_lock(&space);
    while (pt_free_tables(&space, 0, USER_ADDRESS_END, &batch)) {
        pt_unlock(&space);
        tlb_batch_flush(&batch);
        rounds++;
        pt_lock(&space);
    }
    pt_unlock(&space);
    tlb_batch_flush(&batch);
    KEXPECT_EQ(rounds, 2);
    KEXPECT_EQ(space.table_pages, 1);
    pt_space_destroy(&space);
}

KTEST(page_table, check_finds_a_mapped_free_frame)
{
    struct pt_space space;
    struct page *page = frame_alloc(FRAME_ZERO);

    KASSERT(page != NULL);
    KASSERT_EQ(pt_space_init(&space), 0);
    *ensure(&space, ADDR) = pte_make(page_phys(page), USER_PAGE);
    KEXPECT(page_table_check_user(&space) != NULL); /* not counted in mapcount */
    atomic_add(&page->mapcount, 1);
    KEXPECT(page_table_check_user(&space) == NULL);
    atomic_sub(&page->mapcount, 1);
    frames_free(page, 0);
    KEXPECT(page_table_check_user(&space) != NULL);
    clear_entry(&space, ADDR);
    KEXPECT(page_table_check_user(&space) == NULL);
    space.table_pages++;
    KEXPECT(page_table_check_user(&space) != NULL);
    space.table_pages--;
    pt_space_destroy(&space);
}

KTEST(page_table, upper_half_is_the_kernels_in_every_space)
{
    struct pt_space space;

    KASSERT_EQ(pt_space_init(&space), 0);

    const pte_t *own = phys_to_virt(space.root), *kernel = phys_to_virt(kernel_root);
    unsigned n_present = 0;

    for (unsigned i = PT_KERNEL_HALF; i < PTES_PER_TABLE; i++) {
        KEXPECT_EQ(own[i], kernel[i]);
        n_present += pte_is_present(kernel[i]);
    }
    KEXPECT_EQ(n_present, 3); /* direct map, vmap, image */
    for (unsigned i = 0; i < PT_KERNEL_HALF; i++)
        KEXPECT_EQ(own[i] | kernel[i], 0); /* no identity map is left */
    pt_space_destroy(&space);
}

static void expect_image_part(const char *start, const char *end, u64 flags)
{
    for (u64 virt = (u64)start; virt < (u64)end; virt += PAGE_SIZE) {
        pte_t entry = pt_kernel_entry(virt);

        KASSERT_EQ(entry & (PTE_PRESENT | PTE_WRITE | PTE_NX | PTE_USER),
                   pte_make(0, flags | PTE_PRESENT));
        KASSERT_EQ(pt_kernel_translate(virt), virt - KERNEL_IMAGE_BASE);
    }
}

KTEST(page_table, image_is_written_or_executed_never_both)
{
    expect_image_part(__text_start, __text_end, 0);
    expect_image_part(__rodata_start, __rodata_end, PTE_NX);
    expect_image_part(__data_start, boot_stack_guard, PTE_WRITE | PTE_NX);
    KEXPECT_EQ(pt_kernel_entry((u64)boot_stack_guard), 0);
    expect_image_part(boot_stack_guard + PAGE_SIZE, __bss_end, PTE_WRITE | PTE_NX);
}

/* => entries below the table that are writable and executable, or the user's */
static u64 count_bad(const pte_t *table, unsigned level)
{
    u64 n_bad = 0;

    for (unsigned i = level == PT_LEVELS - 1 ? PT_KERNEL_HALF : 0; i < PTES_PER_TABLE; i++) {
        pte_t entry = table[i];

        if (!pte_is_present(entry))
            continue;
        if (level > 0 && !(entry & PTE_LARGE))
            n_bad += count_bad(pt_table_of(entry), level - 1);
        else
            n_bad += entry & PTE_USER || (entry & PTE_WRITE && !(entry & PTE_NX));
    }
    return n_bad;
}

KTEST(page_table, no_kernel_page_is_writable_and_executable)
{
    if (!cpu_features.nx)
        KTEST_SKIP("this CPU has no NX");
    KEXPECT_EQ(count_bad(phys_to_virt(kernel_root), PT_LEVELS - 1), 0);
}

KTEST(page_table, direct_map_covers_all_memory)
{
    for (pfn_t pfn = 0; pfn < page_array_end; pfn += 509) {
        phys_t phys = pfn << PAGE_SHIFT;

        if (page_has(pfn_page(pfn), PAGE_RESERVED))
            continue;
        KASSERT_EQ(pt_kernel_translate((u64)phys_to_virt(phys)), phys);
        KASSERT_EQ(virt_to_phys(phys_to_virt(phys)), phys);
    }
    KEXPECT_EQ(pt_kernel_translate(0xffffa00000000000ul), PHYS_NONE);
}

KTEST(page_table, kernel_range_is_mapped_and_unmapped)
{
    struct page *page = frame_alloc(FRAME_ZERO);

    KASSERT(page != NULL);
    KASSERT_EQ(pt_map_kernel(TEST_VIRT, page_phys(page), PAGE_SIZE, PTE_WRITE | PTE_NX), 0);
    KEXPECT_EQ(pt_kernel_translate(TEST_VIRT + 5), page_phys(page) + 5);
    KEXPECT_EQ(pt_kernel_translate(TEST_VIRT + PAGE_SIZE), PHYS_NONE);
    *(volatile u64 *)TEST_VIRT = 42;
    KEXPECT_EQ(*(u64 *)page_virt(page), 42);
    pt_unmap_kernel(TEST_VIRT, PAGE_SIZE);
    KEXPECT_EQ(pt_kernel_translate(TEST_VIRT), PHYS_NONE);
    tlb_flush_kernel_all();
    frames_free(page, 0);
}

KTEST(page_table, kernel_range_that_cannot_be_mapped_is_not_mapped)
{
    /* The range crosses into a 2 MiB stretch that has no table yet: the second page fails. */
    u64 virt = TEST_VIRT + 16 * PT_TABLE_SPAN - PAGE_SIZE;
    struct page *pages = frames_alloc(1, 0);

    KASSERT(pages != NULL);
    KASSERT_EQ(pt_map_kernel(virt, page_phys(pages), PAGE_SIZE, PTE_NX), 0);
    pt_unmap_kernel(virt, PAGE_SIZE);
    if (pt_kernel_translate(virt + PAGE_SIZE) == PHYS_NONE) {
        frames_fail_inject(0, 1);
        int error = pt_map_kernel(virt, page_phys(pages), 2 * PAGE_SIZE, PTE_NX);
        frames_fail_inject(0, 0);
        KEXPECT_EQ(error, -ENOMEM);
        KEXPECT_EQ(pt_kernel_translate(virt), PHYS_NONE);
    }
    tlb_flush_kernel_all();
    frames_free(pages, 1);
}

KTEST(page_table, device_registers_are_uncached)
{
    /* The local APIC's page is in every machine. */
    volatile u8 *registers = mmio_map(0xfee00020, 16);

    KASSERT(registers != NULL);
    KEXPECT_EQ(pt_kernel_translate((u64)registers), 0xfee00020);

    pte_t entry = pt_kernel_entry((u64)registers);

    KEXPECT(entry & PTE_CACHE_DISABLE);
    KEXPECT(entry & PTE_WRITE);
}

KTEST(kernel_stack, has_a_guard_below)
{
    u8 *stack = kernel_stack_alloc();

    KASSERT(stack != NULL);
    for (size_t at = 0; at < KERNEL_STACK_BYTES; at += PAGE_SIZE) {
        KEXPECT(pt_kernel_translate((u64)stack + at) != PHYS_NONE);
        KEXPECT(!kernel_stack_guard_hit((u64)stack + at));
    }
    memset(stack, 0x33, KERNEL_STACK_BYTES);
    KEXPECT_EQ(pt_kernel_translate((u64)stack - 1), PHYS_NONE);
    KEXPECT_EQ(pt_kernel_translate((u64)stack - PAGE_SIZE), PHYS_NONE);
    KEXPECT(kernel_stack_guard_hit((u64)stack - 1));
    KEXPECT(kernel_stack_guard_hit((u64)stack + KERNEL_STACK_BYTES));
    KEXPECT_EQ(pt_kernel_translate((u64)stack + KERNEL_STACK_BYTES), PHYS_NONE);
    kernel_stack_free(stack);
}

KTEST(kernel_stack, freed_one_is_reused_and_too_many_give_frames_back)
{
    grace_barrier(); /* what earlier tests left to be freed */

    void *stacks[24];
    void *first = kernel_stack_alloc();

    KASSERT(first != NULL);
    kernel_stack_free(first);
    stacks[0] = kernel_stack_alloc();
    KEXPECT(stacks[0] == first);
    kernel_stack_free(stacks[0]);

    u64 cached = kernel_stack_cached_count();
    u64 before = frames_free_count() + cached * (KERNEL_STACK_BYTES / PAGE_SIZE);

    for (unsigned i = 0; i < ARRAY_SIZE(stacks); i++) {
        stacks[i] = kernel_stack_alloc();
        KASSERT(stacks[i] != NULL);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(stacks); i++)
        kernel_stack_free(stacks[i]);
    cached = kernel_stack_cached_count();
    KEXPECT(cached < ARRAY_SIZE(stacks));
    /* One more lowest table may have been made for the area; it stays. */
    u64 after = frames_free_count() + cached * (KERNEL_STACK_BYTES / PAGE_SIZE);
    KEXPECT(after == before || after + 1 == before);
}

KTEST(kernel_stack, out_of_frames_is_null_and_leaks_nothing)
{
    grace_barrier(); /* what earlier tests left to be freed */

    void *held[16];
    unsigned n_held = 0;

    while (kernel_stack_cached_count() > 0 && n_held < ARRAY_SIZE(held))
        held[n_held++] = kernel_stack_alloc();
    KASSERT_EQ(kernel_stack_cached_count(), 0);

    u64 before = frames_free_count();

    frames_fail_inject(2, 1);
    KEXPECT(kernel_stack_alloc() == NULL);
    frames_fail_inject(0, 0);
    KEXPECT(frames_free_count() == before || frames_free_count() + 1 == before);
    while (n_held > 0)
        kernel_stack_free(held[--n_held]);
}
