/*
 * Between the files of mm/core that deal with page tables. For no one else.
 */
#ifndef MM_CORE_PAGE_TABLE_INTERNAL_H
#define MM_CORE_PAGE_TABLE_INTERNAL_H

#include "mm/core/page_table.h"

#define PT_LEVELS      4 /* level 3: root (PML4), 2: PDPT, 1: page directory, 0: lowest table */
#define PT_KERNEL_HALF (PTES_PER_TABLE / 2) /* first root entry of the upper half */

/* Bytes that one entry of a table of that level maps. */
static inline u64 pt_entry_span(unsigned level)
{
    return PAGE_SIZE << (9 * level);
}

static inline unsigned pt_index(u64 addr, unsigned level)
{
    return (addr >> (PAGE_SHIFT + 9 * level)) % PTES_PER_TABLE;
}

static inline pte_t *pt_table_of(pte_t entry)
{
    return phys_to_virt(pte_phys(entry));
}

static inline void cr3_write(phys_t root)
{
    __asm__ volatile("movq %0, %%cr3" ::"r"(root) : "memory");
}

static inline u64 cr3_read(void)
{
    u64 v;
    __asm__ volatile("movq %%cr3, %0" : "=r"(v));
    return v;
}

static inline void tlb_invalidate_page(u64 addr)
{
    __asm__ volatile("invlpg (%0)" ::"r"(addr) : "memory");
}

extern phys_t kernel_root; /* set once by page_table_init */

/* An empty table page, marked PAGE_TABLE, from the reserve if need be. 0 when out of frames. */
phys_t pt_table_alloc(void);

/*
 * Walks down from root to the lowest table. `create`: makes missing tables with entries of
 * `table_flags` and adds their number to *n_made. => the entry, or NULL (a table is missing, or
 * could not be made; a huge entry is in the way).
 */
pte_t *pt_walk(phys_t root, u64 addr, bool create, u64 table_flags, u64 *n_made);

/* Has this CPU the space's root loaded, lazily or not? Interrupts off. */
bool tlb_has_loaded(const struct pt_space *space);
/*
 * Debug builds: panics (memory_misuse) where a CPU still uses a translation of [start, end), or near
 * it, that its entry no longer allows. Right after a flush of that range. Interrupts on, takes
 * pt_lock. mm/core/tlb_check.c says what it finds.
 */
void tlb_check(struct pt_space *space, u64 start, u64 end);

/* Sends every CPU away that still has the space loaded; none runs a task in it. Interrupts on. */
void tlb_evict_space(struct pt_space *space);

#endif
