/*
 * Address spaces: the lower half of a page table, its tables and its entries. kernel_map.c has the
 * upper half.
 *
 * Rules: all with the space's lock held, except making and destroying it. A table page is taken out
 * by clearing the entry that points at it; the hardware of other CPUs may go on reading it until
 * the flush, so it goes into a batch like any page that was mapped.
 */
#include "mm/core/page_table.h"

#include "kernel/log/log.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/page_table_internal.h"
#include "mm/core/tlb.h"

/* Permissions are those of the lowest entry: the tables above allow everything. */
#define USER_TABLE_FLAGS (PTE_PRESENT | PTE_WRITE | PTE_USER | PTE_ACCESSED)

#define HUGE_LEVEL 1u /* of the tables whose entries may be huge */

LOCK_CLASS(pt_lock_class, "page table");

phys_t pt_table_alloc(void)
{
    struct page *page = frame_alloc(FRAME_ZERO | FRAME_ATOMIC);

    if (!page)
        return 0;
    page_set(page, PAGE_TABLE);
    return page_phys(page);
}

static bool points_at_table(pte_t entry)
{
    return (entry & (PTE_PRESENT | PTE_LARGE)) == PTE_PRESENT;
}

/* The way down where all tables are there, without a loop: every fault goes it. NULL: one is missing. */
static inline pte_t *find_entry(phys_t root, u64 addr)
{
    _Static_assert(PT_LEVELS == 4, "three steps down");
    pte_t entry = READ_ONCE(((pte_t *)phys_to_virt(root))[pt_index(addr, 3)]);

    if (unlikely(!points_at_table(entry)))
        return NULL;
    entry = READ_ONCE(pt_table_of(entry)[pt_index(addr, 2)]);
    if (unlikely(!points_at_table(entry)))
        return NULL;
    entry = READ_ONCE(pt_table_of(entry)[pt_index(addr, 1)]);
    if (unlikely(!points_at_table(entry)))
        return NULL;
    return &pt_table_of(entry)[pt_index(addr, 0)];
}

pte_t *pt_walk(phys_t root, u64 addr, bool create, u64 table_flags, u64 *n_made)
{
    pte_t *table = phys_to_virt(root);

    for (unsigned level = PT_LEVELS - 1; level > 0; level--) {
        pte_t *entry = &table[pt_index(addr, level)];

        if (unlikely(!points_at_table(*entry))) {
            phys_t made = create && !(*entry & PTE_LARGE) ? pt_table_alloc() : 0;

            if (!made)
                return NULL;
            WRITE_ONCE(*entry, made | table_flags);
            ++*n_made;
        }
        table = pt_table_of(*entry);
    }
    return &table[pt_index(addr, 0)];
}

int pt_space_init(struct pt_space *space)
{
    phys_t root = pt_table_alloc();

    if (!root)
        return -ENOMEM;
    memcpy((pte_t *)phys_to_virt(root) + PT_KERNEL_HALF,
           (pte_t *)phys_to_virt(kernel_root) + PT_KERNEL_HALF, PAGE_SIZE / 2);
    *space = (struct pt_space){.root = root, .table_pages = 1};
    spin_init(&space->lock, &pt_lock_class);
    return 0;
}

static void table_free(phys_t table)
{
    frames_free(phys_page(table), 0);
}

/* Frees the tables below those entries, which map addr onwards. => number of tables freed */
static u64 free_below(pte_t *table, unsigned level, u64 addr, unsigned n_entries)
{
    u64 n_freed = 0;

    for (unsigned i = 0; i < n_entries; i++, addr += pt_entry_span(level)) {
        if (table[i] == 0)
            continue;
        if (level == 0 || table[i] & PTE_LARGE)
            panic("address space ends while 0x%lx is mapped (entry 0x%lx)", addr, table[i]);
        n_freed += free_below(pt_table_of(table[i]), level - 1, addr, PTES_PER_TABLE) + 1;
        table_free(pte_phys(table[i]));
    }
    return n_freed;
}

void pt_space_destroy(struct pt_space *space)
{
    tlb_evict_space(space);
    ASSERT(space->unflushed == 0);

    u64 n_freed = free_below(phys_to_virt(space->root), PT_LEVELS - 1, 0, PT_KERNEL_HALF) + 1;

    table_free(space->root);
    if (n_freed != space->table_pages)
        panic("address space ends with %lu table pages, counted were %lu", n_freed,
              space->table_pages);
    space->root = 0;
    space->table_pages = 0;
}

pte_t *pt_find(struct pt_space *space, u64 addr)
{
    return find_entry(space->root, addr);
}

pte_t *pt_ensure(struct pt_space *space, u64 addr)
{
    ASSERT(addr < USER_ADDRESS_END);
    pte_t *entry = find_entry(space->root, addr);

    if (likely(entry))
        return entry;
    return pt_walk(space->root, addr, true, USER_TABLE_FLAGS, &space->table_pages);
}

u64 pt_next_table(struct pt_space *space, u64 addr, u64 end)
{
    while (addr < end) {
        pte_t *table = phys_to_virt(space->root);
        unsigned level = PT_LEVELS - 1;

        while (level > 0 && points_at_table(table[pt_index(addr, level)])) {
            table = pt_table_of(table[pt_index(addr, level)]);
            level--;
        }
        if (level == 0)
            return addr;
        addr = ALIGN_DOWN(addr, pt_entry_span(level)) + pt_entry_span(level);
    }
    return end;
}

static bool table_is_empty(const pte_t *table)
{
    for (unsigned i = 0; i < PTES_PER_TABLE; i++)
        if (table[i])
            return false;
    return true;
}

/* Takes out the table of level `lowest` for addr, then the tables above, as long as they are empty. */
static void take_out_empty(struct pt_space *space, u64 addr, unsigned lowest,
                           struct tlb_batch *later)
{
    pte_t *path[PT_LEVELS]; /* path[n]: the entry that points at the table of level n */
    pte_t *table = phys_to_virt(space->root);

    for (unsigned level = PT_LEVELS - 1; level > lowest; level--) {
        path[level - 1] = &table[pt_index(addr, level)];
        table = pt_table_of(*path[level - 1]);
    }
    for (unsigned level = lowest; level < PT_LEVELS - 1; level++) {
        struct page *page = pte_page(*path[level]);

        if (!table_is_empty(page_virt(page)))
            return;
        WRITE_ONCE(*path[level], 0);
        space->table_pages--;
        /* There is room: the caller looked. */
        if (tlb_batch_add_page(later, addr, page))
            return;
    }
}

bool pt_free_tables(struct pt_space *space, u64 start, u64 end, struct tlb_batch *later)
{
    start = ALIGN_UP(start, PT_TABLE_SPAN);
    end = ALIGN_DOWN(end, PT_TABLE_SPAN);
    for (u64 addr = pt_next_table(space, start, end); addr < end;
         addr = pt_next_table(space, addr + PT_TABLE_SPAN, end)) {
        if (later->n_pages + PT_LEVELS > TLB_BATCH_PAGES)
            return true;
        take_out_empty(space, addr, 0, later);
    }
    return false;
}

/* ---- Huge entries ---- */

pte_t *pt_find_huge(struct pt_space *space, u64 addr)
{
    pte_t *table = phys_to_virt(space->root);

    for (unsigned level = PT_LEVELS - 1; level > HUGE_LEVEL; level--) {
        pte_t entry = table[pt_index(addr, level)];

        if (!points_at_table(entry))
            return NULL;
        table = pt_table_of(entry);
    }
    return &table[pt_index(addr, HUGE_LEVEL)];
}

/* Like pt_ensure: a lowest table is made on the way where nothing was, and taken out again. */
pte_t *pt_ensure_huge(struct pt_space *space, u64 addr, struct tlb_batch *later)
{
    pte_t *entry = pt_find_huge(space, addr);

    if (!entry) {
        if (!pt_ensure(space, addr))
            return NULL;
        entry = pt_find_huge(space, addr);
    }
    if (points_at_table(*entry)) {
        struct page *table = pte_page(*entry);

        ASSERT(table_is_empty(page_virt(table)) && later->n_pages < TLB_BATCH_PAGES);
        WRITE_ONCE(*entry, 0);
        space->table_pages--;
        if (tlb_batch_add_page(later, addr, table))
            return entry;
    }
    return entry;
}

u64 pt_next_huge(struct pt_space *space, u64 addr, u64 end)
{
    while (addr < end) {
        pte_t *table = phys_to_virt(space->root);
        unsigned level = PT_LEVELS - 1;

        while (level > HUGE_LEVEL && points_at_table(table[pt_index(addr, level)])) {
            table = pt_table_of(table[pt_index(addr, level)]);
            level--;
        }
        if (level == HUGE_LEVEL && table[pt_index(addr, level)] & PTE_LARGE)
            return addr;
        addr = ALIGN_DOWN(addr, pt_entry_span(level)) + pt_entry_span(level);
    }
    return end;
}

bool pt_free_directories(struct pt_space *space, u64 start, u64 end, struct tlb_batch *later)
{
    const u64 span = pt_entry_span(HUGE_LEVEL + 1);

    for (u64 addr = ALIGN_DOWN(start, span); addr < end; addr += span) {
        if (later->n_pages + PT_LEVELS > TLB_BATCH_PAGES)
            return true;
        if (pt_find_huge(space, addr))
            take_out_empty(space, addr, HUGE_LEVEL, later);
    }
    return false;
}

pte_t pt_look_up(struct pt_space *space, u64 addr)
{
    const pte_t *entry = pt_find_huge(space, addr);
    pte_t pte = entry ? READ_ONCE(*entry) : 0;

    if (pte & PTE_LARGE)
        return pte + (addr % PT_TABLE_SPAN & PTE_ADDRESS_MASK);
    return pte ? READ_ONCE(pt_table_of(pte)[pt_index(addr, 0)]) : 0;
}

/* ---- Checking ---- */

static const char *check_leaf(pte_t entry, unsigned level)
{
    if (!pte_is_present(entry))
        return NULL; /* upper rooms keep what they like in entries that are not present */
    if (level == HUGE_LEVEL) {
        if (pte_phys(entry) % PT_TABLE_SPAN || pte_page(entry)->order != PT_TABLE_ORDER)
            return "a huge entry points at no huge page";
        entry &= ~PTE_LARGE; /* from here on it is like any other */
    }
    if (entry & ~pt_valid_bits)
        return "an entry has a bit that the CPU lacks";
    if (entry & PTE_LARGE)
        return "an entry has the memory-type bit set";
    if (entry & PTE_GLOBAL)
        return "a user entry is global";
    if (!(entry & PTE_USER))
        return "an entry is not the user's";
    if (pte_phys(entry) >> PAGE_SHIFT >= page_array_end)
        return "an entry points beyond memory";
    if (entry & PTE_ZERO_PAGE)
        return entry & PTE_WRITE ? "the zero page is mapped writable" : NULL;

    const struct page *page = pte_page(entry);

    if (page_has(page, PAGE_FREE | PAGE_CPU_LIST | PAGE_RESERVED | PAGE_SLAB | PAGE_TABLE))
        return "an entry points at a frame that is free or the kernel's";
    if (page->mapcount <= 0 || page->refs <= 0)
        return "a mapped frame has no reference or map count";
    return NULL;
}

static const char *check_below(const pte_t *table, unsigned level, unsigned n_entries,
                               u64 *n_tables)
{
    for (unsigned i = 0; i < n_entries; i++) {
        const char *wrong;

        if (table[i] == 0)
            continue;
        if (level == 0 || (level == HUGE_LEVEL && table[i] & PTE_LARGE)) {
            wrong = check_leaf(table[i], level);
        } else if ((table[i] & USER_TABLE_FLAGS) != USER_TABLE_FLAGS || table[i] & PTE_LARGE) {
            wrong = "an entry for a table has wrong flags";
        } else if (!page_has(pte_page(table[i]), PAGE_TABLE)) {
            wrong = "a table page is not marked as one";
        } else {
            ++*n_tables;
            wrong = check_below(pt_table_of(table[i]), level - 1, PTES_PER_TABLE, n_tables);
        }
        if (wrong)
            return wrong;
    }
    return NULL;
}

const char *page_table_check_user(struct pt_space *space)
{
    u64 n_tables = 1;

    pt_lock(space);

    const char *wrong =
        check_below(phys_to_virt(space->root), PT_LEVELS - 1, PT_KERNEL_HALF, &n_tables);

    if (!wrong && n_tables != space->table_pages)
        wrong = "the count of table pages is wrong";
    pt_unlock(space);
    return wrong;
}
