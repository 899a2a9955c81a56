/*
 * fork: a second address space with the same contents.
 *
 *   areas     the tree is copied, area by area, in one edit of the child's
 *   pages     anonymous ones are shared: both entries lose the write bit, and the page gets a reference and a mapping
 *             more. The first store copies it, or, where the other side has gone, just gets the bit back
 *             (fault_write_protected). File pages and the zero page are left out: the child's first touch finds them
 *
 *   advice    an area with DONTFORK is left out, of one with WIPEONFORK the child has an empty one
 *
 * Only areas that have (had) anonymous pages of their own are walked, and of these only the tables that exist.
 *
 * What the parent's other threads do meanwhile. Calls wait for mmap_lock. Stores into private memory that are no faults go on until
 * their page has lost its write bit, in every TLB. Those that are faults wait for the end, wherever they happen: fork_copies_pages sends
 * them to mmap_lock, and taking each area's lock once lets those that came before the flag finish.
 *
 *     thread                     fork                   Were only the area in hand excluded, the child
 *                                shares area A          would have the store to B without the one to A,
 *     stores to A: a copy                               which the thread made first. So it shows a moment
 *     stores to B: in place                             that never was: a log entry without its record,
 *                                shares area B          a lock that is taken by nobody.
 *
 * With all of them waiting, a thread goes on with its stores up to the first into a page that is shared already, and no
 * further; nobody sees that one before the end. What the child gets is memory as it was when that happened.
 * Nor does any thread store through an old translation into a page that another one has replaced by its copy: the
 * translations are gone before the copies begin. Faults that read, and those in shared memory, go on.
 *
 * The child's page table is changed by nobody else before mm_fork returns but for one: a truncation that zaps private
 * copies. It takes entries away, one atomic exchange each, and comes by the parent's area first: what it finds there is
 * not shared any more, what was shared it finds in the child afterwards. So the child's entries are written under the
 * parent's pt_lock alone.
 */
#include "mm/fork.h"

#include "kernel/sched/sync_point.h"
#include "lib/errno.h"
#include "mm/core/tlb.h"
#include "mm/huge.h"
#include "mm/lazy_free.h"
#include "mm/reclaim.h"
#include "mm/vma_internal.h"

#define PAGE_REFS_MAX           (1 << 30) /* far from where a count turns negative */
#define RECLAIM_FOR_TABLE_PAGES 16

struct fork_work {
    struct mm *parent, *child;
    pte_t *child_table; /* the child's entry for table_start */
    u64 table_start;
    u64 shared_pages;
    bool has_too_many_refs;
    struct tlb_batch batch;
};

/* ---- Pages ---- */

/* The child's entry; the parent's loses its write bit. Parent's pt_lock held. => whether to stop */
static bool share_entry(void *ctx, u64 addr, pte_t *ptep)
{
    struct fork_work *work = ctx;
    pte_t old = READ_ONCE(*ptep);
    pte_t *child_ptep = work->child_table + ((addr - work->table_start) >> PAGE_SHIFT);

    if (old & PTE_ZERO_PAGE) { /* counted nowhere and never writable */
        WRITE_ONCE(*child_ptep, old);
        return false;
    }
    struct page *page = pte_page(old);
    if (!page_has(page, PAGE_ANON))
        return false;
    if (atomic_load(&page->refs) >= PAGE_REFS_MAX) {
        work->has_too_many_refs = true;
        return true;
    }
    if (old & PTE_WRITE) {
        old = atomic_and(ptep, ~PTE_WRITE); /* the processor may set bits meanwhile */
        tlb_batch_add_range(&work->batch, addr, addr + PAGE_SIZE);
    }
    page_get(page);
    atomic_add(&page->mapcount, 1);
    WRITE_ONCE(*child_ptep, old & ~PTE_WRITE);
    work->shared_pages++;
    return false;
}

/* The child's table for addr. => NULL when out of frames */
static pte_t *ensure_child_table(struct mm *child, u64 addr)
{
    for (bool is_last_try = false;; is_last_try = true) {
        pt_lock(&child->space);
        pte_t *ptep = pt_ensure(&child->space, addr);
        pt_unlock(&child->space);
        if (ptep || is_last_try || !reclaim_pages(RECLAIM_FOR_TABLE_PAGES))
            return ptep;
    }
}

/* One table of the parent, from addr on. => where to go on, or 0: out of frames */
static u64 share_table(struct fork_work *work, u64 addr, u64 end)
{
    struct pt_space *space = &work->parent->space;

    work->table_start = addr;
    work->child_table = ensure_child_table(work->child, addr);
    if (!work->child_table)
        return 0;
    pt_lock(space);
    u64 next = mm_walk_table(space, addr, end, share_entry, work);
    atomic_add(&work->child->rss_anon, work->shared_pages);
    work->shared_pages = 0;
    pt_unlock(space);
    return next;
}

static u64 next_table(struct mm *mm, u64 addr, u64 end)
{
    pt_lock(&mm->space);
    addr = pt_next_table(&mm->space, addr, end);
    pt_unlock(&mm->space);
    return addr;
}

static int share_range(struct fork_work *work, u64 start, u64 end)
{
    for (u64 addr = next_table(work->parent, start, end); addr < end;
         addr = next_table(work->parent, addr, end)) {
        addr = share_table(work, addr, end);
        if (!addr || work->has_too_many_refs)
            return -ENOMEM;
    }
    return 0;
}

static int share_pages_of(struct fork_work *work, const struct vma *vma)
{
    if (!vma_owns_anon(vma) || (vma->flags & (VMA_SHARED | VMA_DONTFORK | VMA_WIPEONFORK)))
        return 0;
    /* The first page may be newer than the copy. */
    vma_name_anon(vma_find(work->child, vma->start));
    tlb_batch_init(&work->batch, &work->parent->space);
    int error =
        vma_is_huge(vma) ? huge_fork(work->child, vma) : share_range(work, vma->start, vma->end);
    tlb_batch_flush(&work->batch);
    SYNC_POINT(fork_area_shared);
    return error;
}

/* From here on no fault stores into private memory: those to come see the flag, those under way have their area locked. */
static void keep_stores_out(struct mm *parent)
{
    struct range_entry entry;
    WRITE_ONCE(parent->fork_copies_pages, true);
    for (u64 at = 0; range_tree_next(&parent->vmas, at, &entry); at = entry.end) {
        struct vma *vma = entry.item;
        rwsem_write_lock(&vma->lock);
        rwsem_write_unlock(&vma->lock);
    }
}

static int share_pages(struct mm *parent, struct mm *child)
{
    struct fork_work work = {.parent = parent, .child = child};
    struct range_entry entry;
    int error = 0;
    keep_stores_out(parent);
    for (u64 at = 0; !error && range_tree_next(&parent->vmas, at, &entry); at = entry.end)
        error = share_pages_of(&work, entry.item);
    WRITE_ONCE(parent->fork_copies_pages, false);
    return error;
}

/* ---- Areas ---- */

static void copy_numbers(struct mm *child, const struct mm *parent)
{
    child->last_lineage = parent->last_lineage;
    child->soft_clear_lineage = parent->soft_clear_lineage;
    child->brk_start = parent->brk_start;
    child->brk_end = parent->brk_end;
    child->mmap_top = parent->mmap_top;
    child->stack_top = parent->stack_top;
    child->arg_start = parent->arg_start;
    child->arg_end = parent->arg_end;
    child->env_start = parent->env_start;
    child->env_end = parent->env_end;
    child->auxv_start = parent->auxv_start;
    child->auxv_end = parent->auxv_end;
    child->stack_limit_bytes = parent->stack_limit_bytes;
    child->limit_as_pages = parent->limit_as_pages;
    child->limit_data_pages = parent->limit_data_pages;
    child->limit_locked_bytes = parent->limit_locked_bytes;
    child->limit_brk_bytes = parent->limit_brk_bytes;
}

static int copy_area(struct vma_edit *edit, const struct vma *vma)
{
    return vma->flags & VMA_DONTFORK ? 0 : vma_edit_copy(edit, vma);
}

static int copy_areas(struct mm *child, struct mm *parent, struct list *dead)
{
    struct vma_edit edit;
    struct range_entry entry;
    int error = 0;

    vma_edit_begin(&edit, child);
    for (u64 at = 0; !error && range_tree_next(&parent->vmas, at, &entry); at = entry.end)
        error = copy_area(&edit, entry.item);
    child->n_vmas = parent->n_vmas;
    if (!error)
        error = vma_edit_commit(&edit);
    vma_edit_close(&edit, dead);
    copy_numbers(child, parent); /* no limit holds for a copy of what is there */
    return error;
}

/* Both locked. */
static int copy_locked(struct mm *child, struct mm *parent, struct list *dead)
{
    int error = copy_areas(child, parent, dead);
    if (!error)
        error = share_pages(parent, child);
    if (!error)
        lazy_free_inherit(child, parent);
    return error;
}

int mm_fork(struct mm *parent, struct mm **out)
{
    struct list dead = LIST_INIT(dead);
    struct mm *child = mm_create();
    if (!child)
        return -ENOMEM;
    int error = rwsem_write_lock_killable(&parent->mmap_lock);
    if (!error) {
        rwsem_write_lock(&child->mmap_lock);
        error = copy_locked(child, parent, &dead);
        rwsem_write_unlock(&child->mmap_lock);
        rwsem_write_unlock(&parent->mmap_lock);
    }
    vma_bury(&dead);
    if (error) {
        mm_put(child);
        return error;
    }
    *out = child;
    return 0;
}
