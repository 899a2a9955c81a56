/*
 * Memory that may be taken: the one way in which anonymous pages are reclaimed, as there is no swap.
 *
 * The mark is a bit of the page-table entry. What cancels it is a store, and the processor itself
 * records stores, in the entry's dirty bit:
 *
 *     MADV_FREE            sets LAZY_FREE, clears DIRTY, and flushes, so that no CPU remembers the
 *                          page as dirty: the next store sets the bit again
 *     store                sets DIRTY. No fault, nothing to do
 *     reclaim              empties the entry, if it is LAZY_FREE and not DIRTY. A store after that is a
 *                          fault, and finds zeros
 *
 * A page that a fork shares stays, and so do those of a locked area.
 *
 * There is no way from an anonymous page to its entries, so reclaim goes the other way round: a list
 * of the spaces in which pages were marked, with the range in which they lie. lazy_lock guards it; a
 * space that ends takes itself off first. It is taken inside page locks, as a file's map_lock is, and
 * outside the page-table lock.
 */
#include "mm/lazy_free.h"

#include "kernel/sync/counter.h"
#include "mm/core/tlb.h"
#include "mm/vma_internal.h"

static SLEEP_LOCK_CLASS(lazy_lock_class, "lazy_lock");
static struct mutex lazy_lock = MUTEX_INIT(lazy_lock, &lazy_lock_class);
static struct list lazy_spaces = LIST_INIT(lazy_spaces); /* mm->lazy_link; lazy_lock */

static COUNTER(marked);
static COUNTER(taken);

struct lazy_work {
    struct mm *mm;
    struct tlb_batch batch;
    u64 n, limit;
};

u64 lazy_free_marked_total(void)
{
    return counter_sum(marked);
}

u64 lazy_free_taken_total(void)
{
    return counter_sum(taken);
}

/* Until `limit` entries were changed; a visit that says true has filled the batch, too. => where it stopped */
static u64 walk(struct lazy_work *work, u64 start, u64 end, entry_visit visit)
{
    struct pt_space *space = &work->mm->space;
    u64 addr = start;

    tlb_batch_init(&work->batch, space);
    while (addr < end && work->n < work->limit) {
        pt_lock(space);
        addr = pt_next_table(space, addr, end);
        if (addr < end)
            addr = mm_walk_table(space, addr, end, visit, work);
        pt_unlock(space);
        tlb_batch_flush(&work->batch);
    }
    return addr;
}

/* ---- Marking ---- */

static bool mark_entry(void *ctx, u64 addr, pte_t *ptep)
{
    struct lazy_work *work = ctx;
    pte_t old = READ_ONCE(*ptep);

    if (!pte_is_present(old) || (old & PTE_ZERO_PAGE))
        return false;
    while (!atomic_change(ptep, old, (old | PTE_LAZY_FREE) & ~(PTE_DIRTY | PTE_ACCESSED)))
        old = READ_ONCE(*ptep);
    tlb_batch_add_range(&work->batch, addr, addr + PAGE_SIZE);
    work->n++;
    return false;
}

/* lazy_lock held */
static void note_range(struct mm *mm, u64 start, u64 end)
{
    bool is_new = mm->lazy_start == mm->lazy_end;

    mm->lazy_start = is_new ? start : MIN(mm->lazy_start, start);
    mm->lazy_end = is_new ? end : MAX(mm->lazy_end, end);
    if (is_new)
        list_add_tail(&lazy_spaces, &mm->lazy_link);
}

/* lazy_lock held */
static void leave_list(struct mm *mm)
{
    if (mm->lazy_start != mm->lazy_end)
        list_del(&mm->lazy_link);
    mm->lazy_start = mm->lazy_end = 0;
}

void lazy_free_mark(struct vma *vma, u64 start, u64 end)
{
    struct lazy_work work = {.mm = vma->mm, .limit = ~0ul};

    (void)walk(&work, start, end, mark_entry);
    if (work.n == 0)
        return;
    counter_add(marked, work.n);
    mutex_lock(&lazy_lock);
    note_range(vma->mm, start, end);
    mutex_unlock(&lazy_lock);
}

void lazy_free_inherit(struct mm *child, const struct mm *parent)
{
    mutex_lock(&lazy_lock);
    if (parent->lazy_start != parent->lazy_end)
        note_range(child, parent->lazy_start, parent->lazy_end);
    mutex_unlock(&lazy_lock);
}

void lazy_free_forget(struct mm *mm)
{
    mutex_lock(&lazy_lock);
    leave_list(mm);
    mutex_unlock(&lazy_lock);
}

/* ---- Taking ---- */

/* The page table is locked, so nobody finds the page but by its one entry. */
static bool may_take(const struct lazy_work *work, u64 addr, pte_t pte)
{
    if ((pte & (PTE_PRESENT | PTE_LAZY_FREE | PTE_DIRTY)) != (PTE_PRESENT | PTE_LAZY_FREE) ||
        atomic_load(&pte_page(pte)->refs) != 1)
        return false;
    const struct vma *vma = vma_find(work->mm, addr);
    return vma && !(vma->flags & VMA_LOCKED);
}

static bool take_entry(void *ctx, u64 addr, pte_t *ptep)
{
    struct lazy_work *work = ctx;
    pte_t old = READ_ONCE(*ptep);

    while (may_take(work, addr, old)) {
        if (!atomic_change(ptep, old, 0)) {
            old = READ_ONCE(*ptep);
            continue;
        }
        atomic_sub(&pte_page(old)->mapcount, 1);
        atomic_sub(&work->mm->rss_anon, 1);
        work->n++;
        return tlb_batch_add_page(&work->batch, addr, pte_page(old)) || work->n == work->limit;
    }
    return false;
}

void lazy_free_take(struct mm *mm, u64 start, u64 end)
{
    struct lazy_work work = {.mm = mm, .limit = ~0ul};

    (void)walk(&work, start, end, take_entry);
    counter_add(taken, work.n);
}

/* From the first space of the list. What is passed over (written since, shared, locked) is not looked at again. */
static u64 take_from_first(u64 want)
{
    struct mm *mm = list_first(&lazy_spaces, struct mm, lazy_link);
    struct lazy_work work = {.mm = mm, .limit = want};

    mm->lazy_start = walk(&work, mm->lazy_start, mm->lazy_end, take_entry);
    if (mm->lazy_start == mm->lazy_end)
        list_del(&mm->lazy_link);
    counter_add(taken, work.n);
    return work.n;
}

u64 lazy_free_reclaim(u64 want)
{
    u64 freed = 0;

    mutex_lock(&lazy_lock);
    while (freed < want && !list_is_empty(&lazy_spaces))
        freed += take_from_first(want - freed);
    mutex_unlock(&lazy_lock);
    return freed;
}
