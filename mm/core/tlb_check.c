/*
 * Debug builds: does a CPU still use a translation whose page-table entry is gone? After each flush,
 * before its frames are let go, every CPU that has the space loaded tries some addresses:
 *
 *     the entry is            the CPU reads       the CPU writes what is there
 *     not present             must fault          -
 *     present, not writable   -                   must fault
 *
 * The addresses are some of those just flushed, and some neighbours of the first, which finds those
 * that somebody forgot to put into a batch. An entry that was replaced by another frame's is not
 * found: both can be read.
 *
 * A translation may be used between the change of its entry and the flush. So nothing is tried while
 * another batch of the space waits for its flush (space->unflushed), and pt_lock, which this CPU
 * holds meanwhile, keeps the entries and that count as they are. Other CPUs that wait for the lock
 * answer as they do for a flush. The tries run with interrupts off, where no fault is served.
 */
#include "kernel/cpu/smp.h"
#include "kernel/cpu/uaccess.h"
#include "mm/core/misuse.h"
#include "mm/core/page_table_internal.h"
#include "mm/core/tlb.h"

#define TRIES_IN_RANGE   8
#define TRIES_NEAR_START 8

bool tlb_check_is_off = !MEMORY_CHECKS;

struct check {
    struct pt_space *space;
    u64 start, end;
    u64 seed; /* the same on each CPU */
};

/*
 * A plain store, of the byte that the frame has: one that loads first, as a locked instruction does on QEMU's
 * single CPU, would set the accessed bit, and nothing would ever look untouched to reclaim.
 * => 0, or 1 where it faulted
 */
static size_t write_what_is_there(u64 addr, pte_t pte)
{
    u64 block = pte & PTE_LARGE ? PT_TABLE_SPAN : PAGE_SIZE;
    const u8 *there = phys_to_virt(pte_phys(pte) + addr % block);

    return uaccess_copy_out(addr, there, 1);
}

static void try_address(const struct check *check, u64 addr)
{
    pte_t pte = addr < USER_ADDRESS_END ? pt_look_up(check->space, addr) : 0;

    if (!pte_is_present(pte) && uaccess_touch_read(addr) == 0)
        memory_misuse("CPU %u reads 0x%lx, whose page-table entry is gone (0x%lx)", cpu_index(),
                      addr, pte);
    if (pte_is_present(pte) && !(pte & PTE_WRITE) && write_what_is_there(addr, pte) == 0)
        memory_misuse("CPU %u writes 0x%lx, whose page-table entry is read-only (0x%lx)",
                      cpu_index(), addr, pte);
}

/* On each CPU that has the space loaded, interrupts off; pt_lock is held by the one that asks. */
static void try_here(void *arg)
{
    const struct check *check = arg;
    u64 pages = (check->end - check->start) / PAGE_SIZE;
    u64 step = MAX(pages / TRIES_IN_RANGE, 1ul) * PAGE_SIZE;
    u64 table = ALIGN_DOWN(check->start, PT_TABLE_SPAN);

    if (!tlb_has_loaded(check->space))
        return;
    for (u64 addr = check->start; addr < check->end; addr += step)
        try_address(check, addr);
    for (u64 i = 0; i < TRIES_NEAR_START; i++) {
        u64 page = (check->seed + i * (PTES_PER_TABLE / TRIES_NEAR_START)) % PTES_PER_TABLE;
        u64 addr = table + page * PAGE_SIZE;

        if (addr < check->start || addr >= check->end)
            try_address(check, addr);
    }
}

void tlb_check(struct pt_space *space, u64 start, u64 end)
{
    static u64 checks;
    struct check check = {space, start, MIN(end, USER_ADDRESS_END), atomic_add(&checks, 1)};
    bool irqs;

    if (tlb_check_is_off || start >= check.end)
        return;
    pt_lock(space);
    if (atomic_load(&space->unflushed) == 0) {
        irqs = irq_save_disable();
        try_here(&check);
        irq_restore(irqs);
        smp_call(atomic_load(&space->cpus) & ~(1ul << cpu_index()), try_here, &check);
    }
    pt_unlock(space);
}
