/*
 * mremap: an area becomes longer, shorter, or lies elsewhere (mremap(2)).
 *
 *     shorter               what is too much is unmapped
 *     longer, room behind   a piece more, which merges with the area
 *     else, if it may move  one edit: the old range leaves the tree, an area of the new length is placed. Then the pages follow
 *
 * Of the pages only anonymous ones are moved, entry by entry: nothing else leads to them. A file's pages are zapped and
 * found again by faults. So no entry of a file's page is ever missing at both addresses while truncation or reclaim
 * walks the file's list of areas.
 *
 * Tables for the new range are made before the edit, since nothing can fail behind it. They stay: mmap_lock is held
 * exclusive, so no fault comes between, and nobody else frees tables.
 */
#include "kernel/log/log.h"
#include "lib/errno.h"
#include "mm/core/tlb.h"
#include "mm/huge.h"
#include "mm/mmap.h"
#include "mm/reclaim.h"
#include "mm/vma_internal.h"

#define RECLAIM_FOR_TABLE_PAGES 16
#define MREMAP_KNOWN            (MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)

struct remap {
    struct mm *mm;
    u64 addr, old_length, new_length; /* page-aligned */
    u32 flags;
    u64 target;      /* where the caller wants it, then the place */
    u64 move_length; /* of the old range, what keeps its contents */
    struct vma *vma; /* the area at addr */
};

/* ---- Entries --------------------------------------------------------------------------------- */

struct move {
    struct pt_space *space;
    struct tlb_batch batch;
    u64 distance; /* from old to new, modulo 2^64 */
};

static bool move_entry(void *ctx, u64 addr, pte_t *ptep)
{
    struct move *move = ctx;
    pte_t old = READ_ONCE(*ptep);

    if (!(old & PTE_ZERO_PAGE) && !page_has(pte_page(old), PAGE_ANON))
        return false;
    pte_t *to = pt_find(move->space, addr + move->distance);
    ASSERT(to && *to == 0);
    old = atomic_exchange(ptep, 0);
    WRITE_ONCE(*to, old | PTE_SOFT_DIRTY);
    if (pte_is_present(old))
        tlb_batch_add_range(&move->batch, addr, addr + PAGE_SIZE);
    return false;
}

static void move_entries(const struct remap *r)
{
    struct move move = {.space = &r->mm->space, .distance = r->target - r->addr};
    u64 end = r->addr + r->move_length;

    tlb_batch_init(&move.batch, move.space);
    for (u64 addr = r->addr; addr < end;) {
        pt_lock(move.space);
        addr = pt_next_table(move.space, addr, end);
        if (addr < end)
            addr = mm_walk_table(move.space, addr, end, move_entry, &move);
        pt_unlock(move.space);
    }
    tlb_batch_flush(&move.batch);
}

static bool ensure_table(struct mm *mm, u64 addr)
{
    for (bool is_last_try = false;; is_last_try = true) {
        pt_lock(&mm->space);
        bool is_there = pt_ensure(&mm->space, addr);
        pt_unlock(&mm->space);
        if (is_there || is_last_try || !reclaim_pages(RECLAIM_FOR_TABLE_PAGES))
            return is_there;
    }
}

/* For each table of the old range, those that its entries will go to: two, as a rule. */
static int ensure_tables(const struct remap *r)
{
    u64 end = r->addr + r->move_length, distance = r->target - r->addr;
    for (u64 at = r->addr; at < end;) {
        pt_lock(&r->mm->space);
        at = pt_next_table(&r->mm->space, at, end);
        pt_unlock(&r->mm->space);
        if (at >= end)
            break;
        u64 table_end = MIN(ALIGN_DOWN(at, PT_TABLE_SPAN) + PT_TABLE_SPAN, end);
        if (!ensure_table(r->mm, at + distance) ||
            !ensure_table(r->mm, table_end - PAGE_SIZE + distance))
            return -ENOMEM;
        at = table_end;
    }
    return 0;
}

/* ---- Elsewhere ------------------------------------------------------------------------------- */

static bool keeps_old(const struct remap *r)
{
    return (r->flags & MREMAP_DONTUNMAP) || r->old_length == 0;
}

/* The area at its new place. => NULL when out of memory */
static struct vma *new_area(struct vma_edit *edit, const struct remap *r)
{
    const struct vma *old = r->vma;
    bool has_pgoff = old->file || (old->flags & VMA_SHARED);
    struct vma *vma = vma_edit_new(edit, r->target, r->target + r->new_length, old->prot,
                                   old->flags, old->file, has_pgoff ? vma_pgoff(old, r->addr) : 0);
    if (vma) {
        vma->lineage = old->lineage;
        vma->owns_anon = READ_ONCE(old->owns_anon);
        vma->was_robbed = READ_ONCE(old->was_robbed);
    }
    return vma;
}

static int edit_for_move(struct vma_edit *edit, const struct remap *r)
{
    struct vma *vma = new_area(edit, r);
    int error = vma ? vma_edit_cut(edit, r->target, r->target + r->new_length) : -ENOMEM;
    if (!error && !keeps_old(r))
        error = vma_edit_cut(edit, r->addr, r->addr + r->old_length);
    if (!error)
        error = vma_edit_place(edit, vma);
    return error ? error : vma_edit_commit(edit);
}

/* The area that stays is locked as faults lock it; one that has left the tree has been waited for. */
static void move_pages(const struct remap *r, struct vma *placed)
{
    if (keeps_old(r))
        rwsem_write_lock(&r->vma->lock);
    if (r->vma->owns_anon)
        WRITE_ONCE(placed->owns_anon, true);
    if (vma_is_huge(placed))
        huge_move(r->mm, r->addr, r->move_length, r->target);
    else
        move_entries(r);
    if (keeps_old(r))
        rwsem_write_unlock(&r->vma->lock);
}

static s64 move_area(struct remap *r, struct list *dead)
{
    struct vma_edit edit;
    int error = vma_is_huge(r->vma) ? huge_prepare_move(r->mm, r->target, r->move_length)
                                    : ensure_tables(r);
    if (!error) {
        vma_edit_begin(&edit, r->mm);
        error = edit_for_move(&edit, r);
        if (!error) {
            mm_zap_range(r->mm, r->target, r->target + r->new_length);
            move_pages(r, edit.held);
            if (!keeps_old(r))
                mm_zap_range(r->mm, r->addr, r->addr + r->old_length);
        }
        vma_edit_close(&edit, dead);
    }
    if (error)
        mm_free_tables(r->mm, r->target, r->target + r->new_length);
    else if (!keeps_old(r))
        mm_free_tables(r->mm, r->addr, r->addr + r->old_length);
    return error ? error : (s64)r->target;
}

/* ---- Cases ----------------------------------------------------------------------------------- */

/* Can the area at addr have the new length? */
static int check_source(struct remap *r)
{
    const struct vma *vma = r->vma;
    r->move_length = MIN(r->old_length, r->new_length);
    if (r->old_length == 0 && !(vma->flags & VMA_SHARED))
        return -EINVAL;
    if (r->move_length > vma->end - r->addr)
        return -EFAULT;
    pgoff_t first = vma_pgoff(vma, r->addr);
    return first + (r->new_length >> PAGE_SHIFT) < first ? -EINVAL : 0;
}

static s64 move_to_target(struct remap *r, struct list *dead)
{
    if (!IS_ALIGNED(r->target, PAGE_SIZE) || r->new_length > USER_ADDRESS_END ||
        r->target > USER_ADDRESS_END - r->new_length)
        return -EINVAL;
    if (r->addr + r->old_length > r->target && r->target + r->new_length > r->addr)
        return -EINVAL;
    int error = check_source(r);
    if (error)
        return error;
    if (!(r->flags & MREMAP_FIXED)) {
        s64 place = mm_find_place(r->mm, r->target, r->new_length);
        if (place < 0)
            return place;
        r->target = (u64)place;
    }
    return r->target < USER_ADDRESS_MIN ? -EPERM : move_area(r, dead);
}

static bool may_grow_in_place(const struct remap *r)
{
    u64 new_end = r->addr + r->new_length;
    return r->old_length && r->old_length == r->vma->end - r->addr && new_end > r->addr &&
           new_end <= USER_ADDRESS_END && mm_range_is_free(r->mm, r->vma->end, new_end);
}

static s64 grow_in_place(struct remap *r, struct list *dead)
{
    struct vma *old = r->vma;
    bool has_pgoff = old->file || (old->flags & VMA_SHARED);
    struct vma_edit edit;

    vma_edit_begin(&edit, r->mm);
    struct vma *more = vma_edit_new(&edit, old->end, r->addr + r->new_length, old->prot, old->flags,
                                    old->file, has_pgoff ? vma_pgoff(old, old->end) : 0);
    if (more)
        more->lineage = old->lineage;
    int error = more ? vma_edit_place(&edit, more) : -ENOMEM;
    if (!error)
        error = vma_edit_commit(&edit);
    vma_edit_close(&edit, dead);
    return error ? error : (s64)r->addr;
}

static s64 shrink(struct remap *r, struct list *dead)
{
    int error = 0;
    if (r->old_length > r->new_length)
        error = mm_unmap_locked(r->mm, r->addr + r->new_length, r->addr + r->old_length, dead);
    return error ? error : (s64)r->addr;
}

/* Lengths of whole huge pages. => false: the request cannot be served: unaligned, growing, or leaving the area where it is */
static bool make_huge(struct remap *r)
{
    r->old_length = ALIGN_UP(r->old_length, HUGE_PAGE_BYTES);
    r->new_length = ALIGN_UP(r->new_length, HUGE_PAGE_BYTES);
    return IS_ALIGNED(r->addr | r->target, HUGE_PAGE_BYTES) && r->new_length <= r->old_length &&
           !(r->flags & MREMAP_DONTUNMAP);
}

static s64 remap_locked(struct remap *r, struct list *dead)
{
    r->vma = vma_find(r->mm, r->addr);
    if (!r->vma)
        return -EFAULT;
    if (vma_is_huge(r->vma) && !make_huge(r))
        return -EINVAL;
    if (r->flags & (MREMAP_FIXED | MREMAP_DONTUNMAP))
        return move_to_target(r, dead);
    if (r->old_length >= r->new_length)
        return shrink(r, dead);
    int error = check_source(r);
    if (error)
        return error;
    if (may_grow_in_place(r))
        return grow_in_place(r, dead);
    if (!(r->flags & MREMAP_MAYMOVE))
        return -ENOMEM;
    s64 place = mm_find_place(r->mm, 0, r->new_length);
    if (place < 0)
        return place;
    r->target = (u64)place;
    return move_area(r, dead);
}

/* ---- The call -------------------------------------------------------------------------------- */

static int check_request(const struct remap *r)
{
    u32 flags = r->flags;
    if (flags & ~MREMAP_KNOWN)
        return -EINVAL;
    if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) && !(flags & MREMAP_MAYMOVE))
        return -EINVAL;
    if ((flags & MREMAP_DONTUNMAP) && r->old_length != r->new_length)
        return -EINVAL;
    if (!IS_ALIGNED(r->addr, PAGE_SIZE) || r->new_length == 0)
        return -EINVAL;
    bool ends_outside = r->addr > USER_ADDRESS_END || r->old_length > USER_ADDRESS_END - r->addr;
    return ends_outside ? -EFAULT : 0;
}

s64 mm_mremap(struct mm *mm, u64 addr, u64 old_length, u64 new_length, u32 flags, u64 new_addr)
{
    struct remap r = {.mm = mm,
                      .addr = addr,
                      .flags = flags,
                      .target = new_addr,
                      .old_length = ALIGN_UP(old_length, PAGE_SIZE),
                      .new_length = ALIGN_UP(new_length, PAGE_SIZE)};
    struct list dead = LIST_INIT(dead);

    int error = check_request(&r);
    if (error)
        return error;
    if (rwsem_write_lock_killable(&mm->mmap_lock))
        return -EINTR;
    s64 result = remap_locked(&r, &dead);
    bool is_locked = result >= 0 && r.new_length > r.old_length && (r.vma->flags & VMA_LOCKED);
    bool write = is_locked && (r.vma->prot & PROT_WRITE) && !(r.vma->flags & VMA_SHARED);
    rwsem_write_unlock(&mm->mmap_lock);
    vma_bury(&dead);
    if (is_locked) /* what cannot be read in now is told by the touch */
        (void)mm_populate(mm, (u64)result + r.old_length, r.new_length - r.old_length, write);
    return result;
}
