/*
 * Page tables: 4 levels, 4 KiB entries (Intel SDM vol. 3, 4.5).
 *
 * A `struct pt_space` is one root table with its lock. The upper half is shared by all of them. Entries of the
 * lower half are read and written with `pt_lock` held, except by the hardware. Table pages are freed only when the space ends or
 * a whole range is given up (pt_free_tables), after a flush.
 */
#ifndef MM_CORE_PAGE_TABLE_H
#define MM_CORE_PAGE_TABLE_H

#include "boot/boot_info.h"
#include "kernel/sync/spin.h"
#include "mm/core/page.h"

typedef u64 pte_t;

#define PTE_PRESENT (1ul << 0)
#define PTE_WRITE (1ul << 1)
#define PTE_USER (1ul << 2)
#define PTE_WRITE_THROUGH (1ul << 3)
#define PTE_CACHE_DISABLE (1ul << 4)
#define PTE_ACCESSED (1ul << 5)
#define PTE_DIRTY (1ul << 6)
#define PTE_LARGE (1ul << 7) /* in a PDE or PDPTE */
#define PTE_GLOBAL (1ul << 8)
#define PTE_ZERO_PAGE (1ul << 9) /* software: maps the shared zero page, not counted anywhere */
#define PTE_PKEY_SHIFT 59
#define PTE_NX (1ul << 63)
#define PTE_ADDRESS_MASK 0x000ffffffffff000ul

#define PTES_PER_TABLE 512
#define PT_TABLE_SPAN (PTES_PER_TABLE * PAGE_SIZE) /* bytes one lowest-level table maps: 2 MiB */

#define USER_ADDRESS_MIN 0x10000ul
#define USER_ADDRESS_END 0x00007ffffffff000ul

struct pt_space {
    phys_t root;
    struct spinlock lock;  /* all lower-half entries and table pages */
    cpumask_t cpus;        /* CPUs that may hold translations of it */
    u64 table_pages;
};

static inline bool pte_is_present(pte_t pte) { return pte & PTE_PRESENT; }
static inline phys_t pte_phys(pte_t pte) { return pte & PTE_ADDRESS_MASK; }
static inline struct page *pte_page(pte_t pte) { return phys_page(pte_phys(pte)); }

void page_table_init(const struct boot_info *boot); /* final kernel mappings: W^X image, NX direct map; loads CR3 */

int pt_space_init(struct pt_space *space);     /* => 0 or -ENOMEM */
void pt_space_destroy(struct pt_space *space); /* no CPU uses it; every lower-half entry is already clear */

static inline void pt_lock(struct pt_space *space) { spin_lock(&space->lock); }
static inline void pt_unlock(struct pt_space *space) { spin_unlock(&space->lock); }

/*
 * The lowest-level entry for addr. pt_find: NULL where a table on the way is missing. pt_ensure: allocates missing tables
 * (FRAME_ATOMIC), NULL when out of frames. Both with pt_lock held; the pointer is good while it is held. The entries of the
 * same 2 MiB table follow each other: ptep[1] is the next page's as long as the address stays in the same PT_TABLE_SPAN.
 */
pte_t *pt_find(struct pt_space *space, u64 addr);
pte_t *pt_ensure(struct pt_space *space, u64 addr);
/* First address >= addr (and < end) that has a lowest-level table; end if none. For walking sparse ranges. pt_lock held. */
u64 pt_next_table(struct pt_space *space, u64 addr, u64 end);
/* Frees the table pages that lie wholly inside [start,end) and are empty (and upper tables that became empty). pt_lock held; translations flushed by the caller's batch: tables go into `later`. */
struct tlb_batch;
void pt_free_tables(struct pt_space *space, u64 start, u64 end, struct tlb_batch *later);

/* Kernel mappings. flags: PTE_WRITE, PTE_NX, PTE_CACHE_DISABLE. => 0 or -ENOMEM. Never sleep. */
int pt_map_kernel(u64 virt, phys_t phys, size_t bytes, u64 flags);
void pt_unmap_kernel(u64 virt, size_t bytes); /* flushes all CPUs lazily: see vmap_free */
/* Physical address behind a kernel virtual address, or -1. */
phys_t pt_kernel_translate(u64 virt);

/* A device's registers, uncached, mapped for good. NULL when out of memory. */
volatile void *mmio_map(phys_t phys, size_t bytes);

/* Kernel stacks: KERNEL_STACK_BYTES with an unmapped guard page below. Never sleeps. => top-of-stack base (lowest usable byte) or NULL */
#define KERNEL_STACK_BYTES (4 * PAGE_SIZE)
void *kernel_stack_alloc(void);
void kernel_stack_free(void *stack);
bool kernel_stack_guard_hit(u64 addr); /* addr lies in a guard page (for the double-fault report) */

#endif
