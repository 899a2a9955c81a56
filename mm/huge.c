/*
 * Huge areas: taking entries away, rewriting them, copying and moving them. See huge.h; faults are in mm/fault_huge.c.
 *
 * What an entry of a page directory can be in a huge area:
 *
 *   0                              nothing; the next touch is a fault
 *   PRESENT + LARGE                a huge page: one reference of its head, counted in its mapcount and in mm->huge_pages
 *   LARGE + NONE_PROT              the same in an area that is PROT_NONE now
 *
 * pt_lock is held for a handful of entries at a time; pages are let go after the flush.
 */
#include "mm/huge.h"

#include "kernel/log/log.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/tlb.h"
#include "mm/mmap.h"
#include "mm/reclaim.h"
#include "mm/vma_internal.h"

#define PAGES_AT_ONCE           32
#define PAGE_REFS_MAX           (1 << 30) /* far from where a count turns negative */
#define RECLAIM_FOR_TABLE_PAGES 16

/* ---- Zap ------------------------------------------------------------------------------------- */

struct zapped {
    struct page *page;
    u64 addr;
};

/* Takes out the next entries. => how many; *addr: where to go on */
static unsigned zap_some(struct mm *mm, u64 *addr, u64 end, struct zapped *out)
{
    struct pt_space *space = &mm->space;
    struct tlb_batch batch;
    unsigned n = 0;

    tlb_batch_init(&batch, space);
    pt_lock(space);
    *addr = pt_next_huge(space, *addr, end);
    while (*addr < end && n < PAGES_AT_ONCE) {
        pte_t old = atomic_exchange(pt_find_huge(space, *addr), 0);

        out[n++] = (struct zapped){pte_page(old), *addr};
        atomic_sub(&pte_page(old)->mapcount, 1);
        tlb_batch_add_range(&batch, *addr, *addr + HUGE_PAGE_BYTES);
        *addr = pt_next_huge(space, *addr + HUGE_PAGE_BYTES, end);
    }
    atomic_sub(&mm->huge_pages, n);
    pt_unlock(space);
    tlb_batch_flush(&batch);
    return n;
}

void huge_zap_range(struct mm *mm, u64 start, u64 end)
{
    struct zapped zapped[PAGES_AT_ONCE];

    while (start < end) {
        unsigned n = zap_some(mm, &start, end, zapped);

        for (unsigned i = 0; i < n; i++)
            huge_page_put(zapped[i].page);
    }
}

int huge_dontneed(struct vma *vma, u64 start, u64 end)
{
    struct zapped zapped[PAGES_AT_ONCE];

    if (!IS_ALIGNED(start, HUGE_PAGE_BYTES))
        return -EINVAL;
    end = ALIGN_DOWN(
        end, HUGE_PAGE_BYTES); /* who asks for less than a page may not know how large it is */
    while (start < end) {
        unsigned n = zap_some(vma->mm, &start, end, zapped);

        for (unsigned i = 0; i < n; i++)
            huge_file_untake(vma, huge_index(vma, zapped[i].addr), zapped[i].page);
    }
    return 0;
}

/* ---- Protect --------------------------------------------------------------------------------- */

/* => whether the entry was another one */
static bool protect_entry(const struct vma *vma, pte_t *ptep)
{
    pte_t old = READ_ONCE(*ptep), new;

    do {
        pte_t kept = old & (PTE_ADDRESS_MASK | PTE_ACCESSED | PTE_DIRTY | PTE_LARGE);

        new = kept |
              (vma->prot == PROT_NONE ? PTE_NONE_PROT : vma_pte_bits(vma, vma->flags & VMA_SHARED));
        if (new == old)
            return false;
    } while (
        !__atomic_compare_exchange_n(ptep, &old, new, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return true;
}

void huge_protect_range(struct vma *vma, u64 start, u64 end)
{
    struct pt_space *space = &vma->mm->space;
    struct tlb_batch batch;

    tlb_batch_init(&batch, space);
    pt_lock(space);
    for (u64 addr = pt_next_huge(space, start, end); addr < end;
         addr = pt_next_huge(space, addr + HUGE_PAGE_BYTES, end))
        if (protect_entry(vma, pt_find_huge(space, addr)))
            tlb_batch_add_range(&batch, addr, addr + HUGE_PAGE_BYTES);
    pt_unlock(space);
    tlb_batch_flush(&batch);
}

/* ---- Directories ----------------------------------------------------------------------------- */

/* A lowest table may be made with it; storing a huge entry takes it out. */
static bool ensure_directory(struct pt_space *space, u64 addr)
{
    for (bool is_last_try = false;; is_last_try = true) {
        pt_lock(space);
        bool is_there = pt_find_huge(space, addr) || pt_ensure(space, addr);
        pt_unlock(space);
        if (is_there || is_last_try || !reclaim_pages(RECLAIM_FOR_TABLE_PAGES))
            return is_there;
    }
}

/* ---- Fork ------------------------------------------------------------------------------------ */

/* The child's entry for addr; the parent's loses its write bit. Parent's pt_lock held; nobody else sees the child's table. */
static void share_entry(struct mm *child, const struct vma *vma, u64 addr, struct tlb_batch *batch)
{
    pte_t *ptep = pt_find_huge(&vma->mm->space, addr);
    pte_t old = atomic_and(ptep, ~PTE_WRITE);
    struct page *page = pte_page(old);

    if (old & PTE_WRITE)
        tlb_batch_add_range(batch, addr, addr + HUGE_PAGE_BYTES);
    page_get(page);
    atomic_add(&page->mapcount, 1);
    WRITE_ONCE(*pt_ensure_huge(&child->space, addr, batch), old & ~PTE_WRITE);
    WRITE_ONCE(child->has_huge_tables, true);
    atomic_add(&child->huge_pages, 1);
}

int huge_fork(struct mm *child, const struct vma *vma)
{
    struct pt_space *space = &vma->mm->space;
    struct tlb_batch batch;
    int error = 0;

    tlb_batch_init(&batch, space);
    for (u64 addr = vma->start; !error && addr < vma->end; addr += HUGE_PAGE_BYTES) {
        pt_lock(space);
        addr = pt_next_huge(space, addr, vma->end);
        pt_unlock(space);
        if (addr == vma->end)
            break;
        if (!ensure_directory(&child->space, addr)) {
            error = -ENOMEM;
            break;
        }
        pt_lock(space);
        pte_t pte = *pt_find_huge(space, addr);
        if (!pte)
            error = 0; /* taken from us meanwhile */
        else if (atomic_load(&pte_page(pte)->refs) >= PAGE_REFS_MAX)
            error = -ENOMEM;
        else
            share_entry(child, vma, addr, &batch);
        pt_unlock(space);
        if (batch.n_pages == TLB_BATCH_PAGES)
            tlb_batch_flush(&batch);
    }
    tlb_batch_flush(&batch);
    return error;
}

/* ---- Mremap ---------------------------------------------------------------------------------- */

int huge_prepare_move(struct mm *mm, u64 target, u64 length)
{
    for (u64 addr = target; addr < target + length; addr += HUGE_PAGE_BYTES)
        if (!ensure_directory(&mm->space, addr))
            return -ENOMEM;
    return 0;
}

static void move_entry(struct pt_space *space, u64 from, u64 to, struct tlb_batch *batch)
{
    pte_t *target = pt_ensure_huge(space, to, batch);

    ASSERT(target && *target == 0); /* its directory is there */
    WRITE_ONCE(*target, atomic_exchange(pt_find_huge(space, from), 0));
    tlb_batch_add_range(batch, from, from + HUGE_PAGE_BYTES);
}

void huge_move(struct mm *mm, u64 start, u64 length, u64 target)
{
    struct pt_space *space = &mm->space;
    struct tlb_batch batch;

    tlb_batch_init(&batch, space);
    for (u64 addr = start; addr < start + length; addr += HUGE_PAGE_BYTES) {
        pt_lock(space);
        addr = pt_next_huge(space, addr, start + length);
        if (addr < start + length)
            move_entry(space, addr, addr - start + target, &batch);
        pt_unlock(space);
        if (batch.n_pages == TLB_BATCH_PAGES)
            tlb_batch_flush(&batch);
    }
    tlb_batch_flush(&batch);
}

/* ---- Looking --------------------------------------------------------------------------------- */

void huge_for_each(const struct vma *vma, void (*visit)(void *ctx, u64 addr, pte_t pte), void *ctx)
{
    struct pt_space *space = &vma->mm->space;

    pt_lock(space);
    for (u64 addr = pt_next_huge(space, vma->start, vma->end); addr < vma->end;
         addr = pt_next_huge(space, addr + HUGE_PAGE_BYTES, vma->end))
        visit(ctx, addr, *pt_find_huge(space, addr));
    pt_unlock(space);
}

void huge_note_resident(const struct vma *vma, u64 start, u64 end, u8 *vec)
{
    struct pt_space *space = &vma->mm->space;

    for (u64 addr = start, next; addr < end; addr = next) {
        next = MIN(ALIGN_DOWN(addr, HUGE_PAGE_BYTES) + HUGE_PAGE_BYTES, end);
        pt_lock(space);
        bool is_there = pt_look_up(space, addr);
        pt_unlock(space);
        memset(vec + ((addr - start) >> PAGE_SHIFT), is_there, (next - addr) >> PAGE_SHIFT);
    }
}
