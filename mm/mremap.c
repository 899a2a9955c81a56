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
 * Private copies of a file's pages move, too, and truncation looks for them in the ranges of the areas on the file's list, where
 * what has left the tree still is. So an area that lay at the target is disowned before other pages come there, and the file of the
 * moved area sees its copies at the old place or at the new one, never between.
 *
 * Tables for the new range are made before the edit, since nothing can fail behind it. They stay: nobody frees tables without
 * mmap_lock, which is held exclusive.
 */
#include "kernel/log/log.h"
#include "kernel/sched/sync_point.h"
#include "lib/errno.h"
#include "mm/core/tlb.h"
#include "mm/huge.h"
#include "mm/mmap.h"
#include "mm/reclaim.h"
#include "mm/vma_internal.h"

#define RECLAIM_FOR_TABLE_PAGES 16
#define MREMAP_KNOWN            (MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)
#define SPARE_AREAS             3 /* what a move may add on its way on Linux: so near the limit it is refused */

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

/* The old range stays an area: empty, or, with an old length of 0, as it is. */
static bool keeps_old(const struct remap *r)
{
    return (r->flags & MREMAP_DONTUNMAP) || r->old_length == 0;
}

/* Memory without pages of its own is as new at its new place. */
static bool keeps_pgoff(const struct vma *old)
{
    return old->file || (old->flags & VMA_SHARED) || vma_owns_anon(old);
}

/* The area at its new place. => NULL when out of memory */
static struct vma *new_area(struct vma_edit *edit, const struct remap *r)
{
    const struct vma *old = r->vma;
    struct vma *vma = vma_edit_new(edit, r->target, r->target + r->new_length, old->prot,
                                   old->flags, old->file, 0);
    if (!vma)
        return NULL;
    if (keeps_pgoff(old))
        vma->pgoff = vma_pgoff(old, r->addr);
    vma->lineage = old->lineage;
    vma->anon_name = READ_ONCE(old->anon_name);
    vma->was_robbed = READ_ONCE(old->was_robbed);
    vma->anon_is_inherited = old->anon_is_inherited;
    return vma;
}

/*
 * The area that stays behind empty is no longer locked, and does not become one with the new one,
 * though both may be as new.
 */
static int leave_source(struct vma_edit *edit, const struct remap *r)
{
    struct vma *source = range_txn_find(&edit->txn, r->addr);
    edit->apart = source;
    if (!(source->flags & VMA_LOCKED))
        return 0;
    return vma_edit_set_apart(edit, source, r->addr, r->addr + r->old_length,
                              source->flags & ~(VMA_LOCKED | VMA_LOCKONFAULT));
}

static int edit_for_move(struct vma_edit *edit, const struct remap *r)
{
    struct vma *vma = new_area(edit, r);
    int error = vma ? vma_edit_cut(edit, r->target, r->target + r->new_length) : -ENOMEM;
    if (!error && (r->flags & MREMAP_DONTUNMAP))
        error = leave_source(edit, r);
    else if (!error && r->old_length)
        error = vma_edit_cut(edit, r->addr, r->addr + r->old_length);
    if (!error)
        error = vma_edit_place(edit, vma);
    return error ? error : vma_edit_commit(edit);
}

/* What lies there from now on is not theirs. The moved area itself is disowned when its copies have gone. */
static void disown_removed(const struct vma_edit *edit, const struct vma *moved)
{
    struct vma *vma;
    list_for_each (vma, &edit->removed, edit_link) {
        if (!vma->file || vma == moved)
            continue;
        mutex_lock(&vma->file->cache->map_lock);
        WRITE_ONCE(vma->anon_name, 0);
        mutex_unlock(&vma->file->cache->map_lock);
    }
}

static void move_small_pages(const struct remap *r)
{
    struct mutex *map_lock = r->vma->file ? &r->vma->file->cache->map_lock : NULL;

    if (map_lock)
        mutex_lock(map_lock);
    move_entries(r);
    if (r->vma->flags & VMA_DETACHED)
        WRITE_ONCE(r->vma->anon_name, 0);
    if (map_lock)
        mutex_unlock(map_lock);
}

/*
 * The area that stays is locked as faults lock it; one that has left the tree has been waited for.
 * An area that stays and has lost all its pages is as new.
 */
static void move_pages(const struct remap *r, const struct vma_edit *edit)
{
    struct vma *placed = edit->held;
    struct vma *old = keeps_old(r) ? vma_find(r->mm, r->addr) : r->vma;
    bool is_other = keeps_old(r) && old != placed;
    if (is_other)
        rwsem_write_lock(&old->lock);
    if (vma_owns_anon(old))
        (void)atomic_change(&placed->anon_name, 0, old->anon_name);
    disown_removed(edit, r->vma);
    if (vma_is_huge(placed))
        huge_move(r->mm, r->addr, r->move_length, r->target);
    else
        move_small_pages(r);
    if ((r->flags & MREMAP_DONTUNMAP) && old->start == r->addr &&
        old->end == r->addr + r->old_length) {
        WRITE_ONCE(old->anon_name, 0);
        old->anon_is_inherited = false;
    }
    if (is_other)
        rwsem_write_unlock(&old->lock);
}

static s64 move_area(struct remap *r, struct list *dead)
{
    struct vma_edit edit;
    if (r->mm->n_vmas + SPARE_AREAS >= vma_max_map_count())
        return -ENOMEM;
    int error = vma_is_huge(r->vma) ? huge_prepare_move(r->mm, r->target, r->move_length)
                                    : ensure_tables(r);
    if (!error) {
        vma_edit_begin(&edit, r->mm);
        error = edit_for_move(&edit, r);
        if (!error) {
            mm_zap_range(r->mm, r->target, r->target + r->new_length);
            move_pages(r, &edit);
            SYNC_POINT(mremap_pages_moved);
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

static bool may_lock_more(const struct remap *r)
{
    return !(r->vma->flags & VMA_LOCKED) || r->new_length <= r->old_length ||
           vma_limits_allow_locking(r->mm, (r->new_length - r->old_length) >> PAGE_SHIFT);
}

/* Can the area at addr have the new length? */
static int check_source(struct remap *r)
{
    const struct vma *vma = r->vma;
    r->move_length = MIN(r->old_length, r->new_length);
    if (r->old_length == 0 && !(vma->flags & VMA_SHARED))
        return -EINVAL;
    if (r->move_length > vma->end - r->addr)
        return -EFAULT;
    if (r->move_length == r->new_length)
        return 0;
    pgoff_t first = vma_pgoff(vma, r->addr);
    if (first + (r->new_length >> PAGE_SHIFT) < first)
        return -EINVAL;
    return may_lock_more(r) ? 0 : -EAGAIN;
}

static int check_target(const struct remap *r)
{
    if (!IS_ALIGNED(r->target, PAGE_SIZE) || r->new_length > USER_ADDRESS_END ||
        r->target > USER_ADDRESS_END - r->new_length)
        return -EINVAL;
    if (r->addr + r->old_length > r->target && r->target + r->new_length > r->addr)
        return -EINVAL;
    return r->mm->n_vmas + 2 + SPARE_AREAS >= vma_max_map_count() ? -ENOMEM : 0;
}

static s64 move_checked(struct remap *r, struct list *dead)
{
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

/*
 * Linux has unmapped the target, and what is too much of the source, before it looks at the source:
 * so a call that fails there leaves both unmapped. Here one edit does all of it, unless it fails.
 */
static s64 move_to_target(struct remap *r, struct list *dead)
{
    int error = check_target(r);
    if (error)
        return error;
    if (r->old_length > r->new_length && !mm_is_user_range(r->addr, r->old_length))
        error = -EINVAL;
    else if ((r->flags & MREMAP_FIXED) && r->addr - r->target < r->new_length)
        error = -EFAULT; /* a source of no length has gone with the target */
    s64 result = error ? error : move_checked(r, dead);
    if (result >= 0)
        return result;
    if (r->flags & MREMAP_FIXED)
        (void)mm_unmap_locked(r->mm, r->target, r->target + r->new_length, dead);
    if (!error && r->old_length > r->new_length)
        (void)mm_unmap_locked(r->mm, r->addr + r->new_length, r->addr + r->old_length, dead);
    return result;
}

static bool may_grow_in_place(const struct remap *r)
{
    u64 new_end = r->addr + r->new_length;
    if (!r->old_length || r->old_length != r->vma->end - r->addr || new_end <= r->addr ||
        new_end > USER_ADDRESS_END)
        return false;
    const struct vma *above = vma_find_from(r->mm, r->vma->end);
    return !above || new_end <= above->start;
}

static s64 grow_in_place(struct remap *r, struct list *dead)
{
    struct vma *old = r->vma;
    struct vma_edit edit;

    vma_edit_begin(&edit, r->mm);
    struct vma *more =
        vma_edit_new(&edit, old->end, r->addr + r->new_length, old->prot, old->flags, old->file, 0);
    if (more) {
        more->pgoff = vma_pgoff(old, old->end);
        more->lineage = old->lineage;
        more->anon_name = READ_ONCE(old->anon_name);
        more->anon_is_inherited = old->anon_is_inherited;
    }
    int error = more ? vma_edit_place(&edit, more) : -ENOMEM;
    if (!error)
        error = vma_edit_commit(&edit);
    vma_edit_close(&edit, dead);
    return error ? error : (s64)r->addr;
}

static s64 shrink(struct remap *r, struct list *dead)
{
    int error = 0;
    if (r->old_length > r->new_length) {
        u64 start = r->addr + r->new_length;
        error = mm_is_user_range(start, r->old_length - r->new_length)
                    ? mm_unmap_locked(r->mm, start, r->addr + r->old_length, dead)
                    : -EINVAL;
    }
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

static int check_request(const struct remap *r, bool changes_length)
{
    u32 flags = r->flags;
    if (flags & ~MREMAP_KNOWN)
        return -EINVAL;
    if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) && !(flags & MREMAP_MAYMOVE))
        return -EINVAL;
    if ((flags & MREMAP_DONTUNMAP) && changes_length)
        return -EINVAL;
    return !IS_ALIGNED(r->addr, PAGE_SIZE) || r->new_length == 0 ? -EINVAL : 0;
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

    int error = check_request(&r, old_length != new_length);
    if (error)
        return error;
    if (rwsem_write_lock_killable(&mm->mmap_lock))
        return -EINTR;
    s64 result = remap_locked(&r, &dead);
    bool is_locked = result >= 0 && r.new_length > r.old_length && (r.vma->flags & VMA_LOCKED);
    rwsem_write_unlock(&mm->mmap_lock);
    vma_bury(&dead);
    if (is_locked) /* what cannot be read in now is told by the touch */
        (void)mm_populate_locked(mm, (u64)result + r.old_length, (u64)result + r.new_length, false);
    return result;
}
