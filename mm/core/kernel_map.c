/*
 * The kernel's half of the page tables, the same in every address space.
 *
 *     ffff800000000000  direct map: p at DIRECT_MAP_BASE + p       RW NX  1 GiB or 2 MiB pages
 *     ffffc00000000000  vmap: kernel stacks, device registers      RW NX  4 KiB pages
 *     ffffffff80100000  image: text                                R  X   4 KiB pages
 *                       rodata                                     R  NX
 *                       data, bss                                  RW NX
 *
 * The boot page tables, with the identity map that start-up code needs, are left behind in the
 * image's .boot part: other CPUs start on them (boot/trampoline.S).
 *
 * Rules: all tables that the root points at are made here, at boot, so that a root copied once
 * never grows stale. Below them only the vmap area changes, under kernel_map.lock (interrupts off).
 * Reading (pt_kernel_translate) takes no lock: tables of the upper half are never freed.
 */
#include "kernel/log/log.h"
#include "lib/errno.h"
#include "mm/core/frames.h"
#include "mm/core/page_table_internal.h"

#define KERNEL_TABLE_FLAGS (PTE_PRESENT | PTE_WRITE | PTE_ACCESSED)
#define KERNEL_PAGE_FLAGS  (PTE_PRESENT | PTE_GLOBAL | PTE_ACCESSED | PTE_DIRTY)
#define LARGE_DATA_FLAGS   (KERNEL_PAGE_FLAGS | PTE_WRITE | PTE_NX | PTE_LARGE)

#define ALWAYS_MAPPED_END (4ul << 30) /* also reserved memory: firmware tables lie in it */

/* The half of the vmap area that mmio_map gives out, never to be taken back. */
#define MMIO_BASE (VMAP_BASE + (256ul << 30))

/* Symbols of linker.ld: addresses, not objects. */
extern char __text_start[], __text_end[], __rodata_start[], __rodata_end[];
extern char __data_start[], __bss_end[];

LOCK_CLASS(kernel_map_lock_class, "kernel map");

static struct {
    struct spinlock lock;
    u64 mmio_next; /* next free address for mmio_map */
    u64 tables;    /* made for the vmap area; they are kept for good */
} kernel_map = {.lock = SPINLOCK_INIT(&kernel_map_lock_class), .mmio_next = MMIO_BASE};

phys_t kernel_root;
u64 pt_valid_bits = ~0ul;

/* ---- At boot ---- */

static phys_t boot_table_alloc(void)
{
    phys_t table = pt_table_alloc();

    if (!table)
        panic("out of memory for the kernel's page tables");
    return table;
}

/* The entry of that level for virt below the given root; tables on the way are made. */
static pte_t *boot_entry(phys_t root, u64 virt, unsigned level)
{
    pte_t *table = phys_to_virt(root);

    for (unsigned at = PT_LEVELS - 1; at > level; at--) {
        pte_t *entry = &table[pt_index(virt, at)];

        if (!pte_is_present(*entry))
            *entry = boot_table_alloc() | KERNEL_TABLE_FLAGS;
        table = pt_table_of(*entry);
    }
    return &table[pt_index(virt, level)];
}

static void map_image_part(const char *start, const char *end, u64 flags)
{
    for (u64 virt = (u64)start; virt < (u64)end; virt += PAGE_SIZE)
        *boot_entry(kernel_root, virt, 0) =
            pte_make(virt - KERNEL_IMAGE_BASE, KERNEL_PAGE_FLAGS | flags);
}

static void map_direct(phys_t start, phys_t end)
{
    unsigned level = cpu_features.gib_pages ? 2 : 1;
    u64 span = pt_entry_span(level);

    for (phys_t phys = ALIGN_DOWN(start, span); phys < end; phys += span)
        *boot_entry(kernel_root, (u64)phys_to_virt(phys), level) = pte_make(phys, LARGE_DATA_FLAGS);
}

void page_table_init(const struct boot_info *boot)
{
    if (!cpu_features.nx)
        pt_valid_bits &= ~PTE_NX;
    kernel_root = boot_table_alloc();
    map_image_part(__text_start, __text_end, 0);
    map_image_part(__rodata_start, __rodata_end, PTE_NX);
    map_image_part(__data_start, __bss_end, PTE_NX | PTE_WRITE);
    *boot_entry(kernel_root, (u64)boot_stack_guard, 0) = 0; /* below the stack we run on */
    map_direct(0, ALWAYS_MAPPED_END);
    for (u32 i = 0; i < boot->n_regions; i++)
        if (boot->regions[i].type != BOOT_REGION_RESERVED &&
            boot->regions[i].end > ALWAYS_MAPPED_END)
            map_direct(MAX(boot->regions[i].start, ALWAYS_MAPPED_END), boot->regions[i].end);
    boot_entry(kernel_root, VMAP_BASE, 2);
    cr3_write(kernel_root);
    frames_add_high();
}

/* ---- Later ---- */

static bool is_vmap_range(u64 virt, size_t bytes)
{
    return virt >= VMAP_BASE && virt < VMAP_END && bytes <= VMAP_END - virt &&
           IS_ALIGNED(virt | bytes, PAGE_SIZE);
}

static void clear_range_locked(u64 virt, u64 end)
{
    u64 unused = 0;

    for (; virt < end; virt += PAGE_SIZE) {
        pte_t *pte = pt_walk(kernel_root, virt, false, 0, &unused);

        ASSERT(pte && pte_is_present(*pte));
        WRITE_ONCE(*pte, 0);
        tlb_invalidate_page(virt);
    }
}

int pt_map_kernel(u64 virt, phys_t phys, size_t bytes, u64 flags)
{
    int error = 0;

    ASSERT(is_vmap_range(virt, bytes) && IS_ALIGNED(phys, PAGE_SIZE));

    bool irqs = spin_lock_irq(&kernel_map.lock);

    for (size_t done = 0; done < bytes; done += PAGE_SIZE) {
        pte_t *pte =
            pt_walk(kernel_root, virt + done, true, KERNEL_TABLE_FLAGS, &kernel_map.tables);

        if (!pte) {
            clear_range_locked(virt, virt + done);
            error = -ENOMEM;
            break;
        }
        ASSERT(!pte_is_present(*pte));
        WRITE_ONCE(*pte, pte_make(phys + done, KERNEL_PAGE_FLAGS | flags));
    }
    spin_unlock_irq(&kernel_map.lock, irqs);
    return error;
}

u64 pt_kernel_tables(void)
{
    return READ_ONCE(kernel_map.tables);
}

void pt_unmap_kernel(u64 virt, size_t bytes)
{
    ASSERT(is_vmap_range(virt, bytes));

    bool irqs = spin_lock_irq(&kernel_map.lock);

    clear_range_locked(virt, virt + bytes);
    spin_unlock_irq(&kernel_map.lock, irqs);
}

/* The entry that maps virt, and its level. => 0: none */
static pte_t find_kernel_entry(u64 virt, unsigned *level_out)
{
    const pte_t *table = phys_to_virt(kernel_root);

    for (unsigned level = PT_LEVELS; level-- > 0;) {
        pte_t entry = READ_ONCE(table[pt_index(virt, level)]);

        if (!pte_is_present(entry))
            return 0;
        if (level == 0 || entry & PTE_LARGE) {
            *level_out = level;
            return entry;
        }
        table = pt_table_of(entry);
    }
    return 0;
}

pte_t pt_kernel_entry(u64 virt)
{
    unsigned level;

    return find_kernel_entry(virt, &level);
}

phys_t pt_kernel_translate(u64 virt)
{
    unsigned level;
    pte_t entry = find_kernel_entry(virt, &level);

    if (!entry)
        return PHYS_NONE;

    u64 offset_mask = pt_entry_span(level) - 1;

    return (pte_phys(entry) & ~offset_mask) | (virt & offset_mask);
}

volatile void *mmio_map(phys_t phys, size_t bytes)
{
    phys_t start = ALIGN_DOWN(phys, PAGE_SIZE);
    size_t size = ALIGN_UP(phys + bytes, PAGE_SIZE) - start;
    bool irqs = spin_lock_irq(&kernel_map.lock);
    u64 virt = kernel_map.mmio_next;
    bool fits = size <= VMAP_END - virt;

    if (fits)
        kernel_map.mmio_next += size;
    spin_unlock_irq(&kernel_map.lock, irqs);
    if (!fits || pt_map_kernel(virt, start, size, PTE_WRITE | PTE_NX | PTE_CACHE_DISABLE) != 0)
        return NULL;
    return (volatile void *)(virt + (phys - start));
}
