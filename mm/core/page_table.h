/*
 * Page tables: 4 levels, 4 KiB entries, and 2 MiB ones in page directories (Intel SDM vol. 3, 4.5).
 *
 * A `struct pt_space` is one root table with its lock. The upper half is shared by all of them: its
 * entries of the root never change after page_table_init. Entries of the lower half are read and
 * written with `pt_lock` held, except by the hardware. Table pages are freed only when the space
 * ends or a whole range is given up (pt_free_tables), after a flush.
 */
#ifndef MM_CORE_PAGE_TABLE_H
#define MM_CORE_PAGE_TABLE_H

#include "boot/boot_info.h"
#include "kernel/sync/spin.h"
#include "mm/core/page.h"

typedef u64 pte_t;

#define PTE_PRESENT       (1ul << 0)
#define PTE_WRITE         (1ul << 1)
#define PTE_USER          (1ul << 2)
#define PTE_WRITE_THROUGH (1ul << 3)
#define PTE_CACHE_DISABLE (1ul << 4)
#define PTE_ACCESSED      (1ul << 5)
#define PTE_DIRTY         (1ul << 6)
#define PTE_LARGE         (1ul << 7) /* in a PDE or PDPTE */
#define PTE_GLOBAL        (1ul << 8)
#define PTE_ZERO_PAGE     (1ul << 9) /* software: maps the shared zero page, not counted anywhere */
/* Software, PRESENT clear: an anonymous page kept through PROT_NONE (mm/vma_pages.c). */
#define PTE_NONE_PROT (1ul << 10)
#define PTE_LAZY_FREE \
    (1ul << 11) /* software: MADV_FREE, and to be had while not DIRTY (mm/lazy_free.c) */
#define PTE_SOFT_DIRTY   (1ul << 58) /* software: stored to since the last clear (mm/soft_dirty.c) */
#define PTE_PKEY_SHIFT   59
#define PTE_NX           (1ul << 63)
#define PTE_ADDRESS_MASK 0x000ffffffffff000ul

#define PTES_PER_TABLE 512
#define PT_TABLE_SPAN  (PTES_PER_TABLE * PAGE_SIZE) /* bytes one lowest-level table maps: 2 MiB */

#define PT_TABLE_ORDER 9 /* of a block of frames of that size */

#define USER_ADDRESS_MIN 0x10000ul
#define USER_ADDRESS_END 0x00007ffffffff000ul

/* The area of kernel mappings: one slot of the root, 512 GiB. Stacks first, then device registers.
 */
#define VMAP_BASE 0xffffc00000000000ul
#define VMAP_END  0xffffc08000000000ul

struct pt_space {
    phys_t root;
    struct spinlock lock; /* all lower-half entries and table pages */
    cpumask_t cpus;       /* CPUs that may hold translations of it; changed by mm/core/tlb.c */
    u64 table_pages;      /* root included; guarded by lock */
    u32 unflushed;        /* debug builds: batches with ranges that are not flushed yet */
};

extern u64 pt_valid_bits; /* without PTE_NX where the CPU lacks it (the bit would be reserved) */

static inline bool pte_is_present(pte_t pte)
{
    return pte & PTE_PRESENT;
}
static inline phys_t pte_phys(pte_t pte)
{
    return pte & PTE_ADDRESS_MASK;
}
static inline struct page *pte_page(pte_t pte)
{
    return phys_page(pte_phys(pte));
}
/* An entry for the frame at phys, with flags the CPU does not have left out. */
static inline pte_t pte_make(phys_t phys, u64 flags)
{
    return (phys | flags) & pt_valid_bits;
}

/*
 * Builds the final kernel mappings and loads them: text read-only and executable, rodata read-only,
 * data and direct map (the first 4 GiB and all memory above) writable, no page both writable and
 * executable. Then hands the memory above 4 GiB to the frame allocator. Boot CPU, after frames_init
 * and the detection of cpu_features.
 */
void page_table_init(const struct boot_info *boot);

int pt_space_init(struct pt_space *space); /* => 0 or -ENOMEM. Never sleeps. */
/*
 * No task uses it and every lower-half entry is clear (else: panic). CPUs that still have it loaded
 * under a kernel thread are sent away. => Interrupts on. Never sleeps.
 */
void pt_space_destroy(struct pt_space *space);

static inline void pt_lock(struct pt_space *space)
{
    spin_lock(&space->lock);
}
static inline void pt_unlock(struct pt_space *space)
{
    spin_unlock(&space->lock);
}

/*
 * The lowest-level entry for addr. pt_find: NULL where a table on the way is missing. pt_ensure:
 * allocates missing tables (FRAME_ATOMIC), NULL when out of frames. Both with pt_lock held; the
 * pointer is good while it is held. Whoever has the VMA there locked may call pt_find without it,
 * to look: tables go only where no VMA is, so the pointer stays good. The entries of the same 2 MiB
 * table follow each other: ptep[1] is the next page's as long as the address stays in the same
 * PT_TABLE_SPAN.
 */
pte_t *pt_find(struct pt_space *space, u64 addr);
pte_t *pt_ensure(struct pt_space *space, u64 addr);
/* What maps addr, by value: a 4 KiB entry, or a huge one (PTE_LARGE set) with the address of the
 * 4 KiB frame in question; 0: nothing. pt_lock held. */
pte_t pt_look_up(struct pt_space *space, u64 addr);
/* First address >= addr (and < end) that has a lowest-level table; end if none. For walking sparse
 * ranges. pt_lock held. */
u64 pt_next_table(struct pt_space *space, u64 addr, u64 end);
/*
 * Takes out the table pages that lie wholly inside [start,end) and have no entry (and upper tables
 * that became empty); they go into `later` and are freed by its flush. pt_lock held.
 * => true: `later` is full: release pt_lock, flush, call again. Without that the rest stays until
 * the space ends.
 */
struct tlb_batch;
bool pt_free_tables(struct pt_space *space, u64 start, u64 end, struct tlb_batch *later);

/*
 * Huge entries: 2 MiB, in a page directory, told from tables by PTE_LARGE (kept in one that is not
 * present, too). All with pt_lock held; to pt_find and pt_next_table there is nothing where they
 * are.
 *
 * pt_find_huge: the directory's entry for addr, whatever is in it; NULL: no directory.
 * pt_ensure_huge: makes the directory where it is missing (FRAME_ATOMIC); a table in the place, left
 * empty by what was mapped here before, goes into `later`, which the caller flushes. => the entry,
 * huge or 0; NULL when out of frames
 */
pte_t *pt_find_huge(struct pt_space *space, u64 addr);
pte_t *pt_ensure_huge(struct pt_space *space, u64 addr, struct tlb_batch *later);
/* First address >= addr (and < end), both multiples of PT_TABLE_SPAN, that has one; end if none. */
u64 pt_next_huge(struct pt_space *space, u64 addr, u64 end);
/* Takes out the page directories for [start,end) that have no entry; as pt_free_tables. */
bool pt_free_directories(struct pt_space *space, u64 start, u64 end, struct tlb_batch *later);

/*
 * For tests: is the lower half in order? Tables are marked and counted, entries point at frames
 * that are in use, mapped and have no reserved bit. Takes pt_lock. => NULL, or what is wrong
 */
const char *page_table_check_user(struct pt_space *space);

/*
 * Kernel mappings inside VMAP_BASE..VMAP_END. flags: PTE_WRITE, PTE_NX, PTE_CACHE_DISABLE. All
 * page-aligned.
 * => 0 or -ENOMEM (nothing mapped). Any context, never sleep.
 */
int pt_map_kernel(u64 virt, phys_t phys, size_t bytes, u64 flags);
/* Other CPUs may go on using the translations until tlb_flush_kernel_all(): do not reuse the
 * addresses before. */
void pt_unmap_kernel(u64 virt, size_t bytes);
/* Table pages made for kernel mappings since boot. They stay, for later mappings at the same place:
 * at most one for each 2 MiB of addresses that were ever used. */
u64 pt_kernel_tables(void);
#define PHYS_NONE (~0ul)
/* Physical address behind a kernel virtual address, or PHYS_NONE. Any context. */
phys_t pt_kernel_translate(u64 virt);
/* The entry (of any level) that maps a kernel address, 0 if none. */
pte_t pt_kernel_entry(u64 virt);

/* A device's registers, uncached, mapped for good; phys need not be aligned. NULL: no memory. */
volatile void *mmio_map(phys_t phys, size_t bytes);

/*
 * Kernel stacks: KERNEL_STACK_BYTES with an unmapped guard below. Some freed ones are kept for
 * reuse. alloc => the lowest usable byte, or NULL. free: the stack is in use by no CPU. Any
 * context, never sleep.
 */
#define KERNEL_STACK_BYTES (4 * PAGE_SIZE)
void *kernel_stack_alloc(void);
void kernel_stack_free(void *stack);
bool kernel_stack_guard_hit(u64 addr); /* addr lies in a guard page (for the double-fault report) */
u64 kernel_stack_cached_count(void);   /* freed stacks that keep their frames */

#endif
