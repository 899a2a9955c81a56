/*
 * Edits: how the areas of an address space change.
 *
 * A VMA in the tree is never altered. An edit takes VMAs out and puts fresh ones in their place, in
 * one transaction of the range tree:
 *
 *     tree before     [    A    )[  B  )     munmap of the middle: A and B leave, their rests
 *     tree after      [ A' )        [B')     are A' and B'. A reader sees one line or the other.
 *
 * That costs an allocation where a pointer could have been moved, and buys this: nothing has to be
 * undone when an edit fails, and a reader without a lock never meets a VMA that is half changed.
 *
 * The order of work, and whom it is for:
 *
 *   fresh VMAs go on their files' lists   from the commit on faults map pages through them, which
 *                                         reclaim and truncation must find
 *   commit                                lookups find the new VMAs
 *   old VMAs: lock, DETACHED, unlock      a fault that had found one before is over; one that has
 *                                         found it and comes too late for the lock sees DETACHED
 *   the caller zaps or rewrites entries   meanwhile the VMA placed last is locked: no fault maps
 *                                         what would be zapped
 *   old VMAs leave their files' lists     only now: their pages were mapped until here
 *   mmap_lock is let go
 *   files are put, memory is freed        a file's last reference may take inode->rwlock
 *
 * Old and new VMAs are on the list together for a moment. Whoever looks for a file's page compares
 * the entry with it, so meeting an address twice does no harm. A truncation takes private copies, too,
 * which it knows by nothing but the area that owns them: so nothing may be mapped where an old VMA lay
 * before it has left the list, or owns nothing any more (mm/mremap.c).
 */
#include "kernel/log/log.h"
#include "kernel/sched/grace.h"
#include "kernel/sched/sync_point.h"
#include "kernel/sync/mutant.h"
#include "lib/errno.h"
#include "mm/core/slab.h"
#include "mm/huge.h"
#include "mm/mmap.h"
#include "mm/reclaim.h"
#include "mm/vma_internal.h"

#define RECLAIM_FOR_SLAB_PAGES 16
#define SHARED_SHIFT           40 /* larger than the user half, in pages */

/* A fresh VMA is locked while an old one is detached; faults hold one VMA at a time. */
static NESTING_SLEEP_LOCK_CLASS(vma_lock_class, "vma->lock");

static struct slab_cache *vma_cache;
static struct slab_cache *node_cache;

void vma_edit_rooms_init(void)
{
    vma_cache = slab_cache_create("vma", sizeof(struct vma), 0);
    node_cache = slab_cache_create("range_node", sizeof(struct range_node), 0);
}

/* ---- Memory ---- */

/* Called under mmap_lock, before any map_lock is taken. */
static void *alloc_or_reclaim(struct slab_cache *cache)
{
    void *object = slab_alloc(cache);
    if (!object && reclaim_pages(RECLAIM_FOR_SLAB_PAGES))
        object = slab_alloc(cache);
    return object;
}

static void *node_alloc(void *ctx)
{
    (void)ctx;
    return alloc_or_reclaim(node_cache);
}

static void node_free(struct deferred *deferred)
{
    slab_free(node_cache, container_of(deferred, struct range_node, deferred));
}

static void node_free_later(void *ctx, struct range_node *node)
{
    (void)ctx;
    node->deferred.free = node_free;
    grace_defer(&node->deferred);
}

const struct range_tree_ops vma_tree_ops = {node_alloc, node_free_later};

static void vma_free(struct deferred *deferred)
{
    slab_free(vma_cache, container_of(deferred, struct vma, deferred));
}

void vma_bury(struct list *dead)
{
    struct vma *vma, *next;
    list_for_each_safe (vma, next, dead, edit_link) {
        list_del(&vma->edit_link);
        if (vma->file)
            mapped_file_put(vma->file);
        vma->deferred.free = vma_free;
        grace_defer(&vma->deferred);
    }
}

/* ---- Fresh VMAs, and those that leave ---- */

void vma_detach(struct vma *vma)
{
    if (!MUTANT(no_detach_wait))
        rwsem_write_lock(&vma->lock);
    vma->flags |= VMA_DETACHED;
    if (!MUTANT(no_detach_wait))
        rwsem_write_unlock(&vma->lock);
}

static u64 vma_pages(const struct vma *vma)
{
    return (vma->end - vma->start) >> PAGE_SHIFT;
}

void vma_edit_begin(struct vma_edit *edit, struct mm *mm)
{
    ASSERT(rwsem_is_write_locked_by_me(&mm->mmap_lock));
    edit->mm = mm;
    edit->held = NULL;
    edit->apart = NULL;
    edit->change = (struct vma_sums){0};
    edit->is_committed = false;
    list_init(&edit->removed);
    list_init(&edit->added);
    list_init(&edit->dropped);
    range_txn_begin(&edit->txn, &mm->vmas);
}

struct vma *vma_edit_new(struct vma_edit *edit, u64 start, u64 end, u32 prot, u32 flags,
                         struct mapped_file *file, pgoff_t pgoff)
{
    struct vma *vma = alloc_or_reclaim(vma_cache);
    if (!vma)
        return NULL;
    *vma = (struct vma){.start = start,
                        .end = end,
                        .prot = prot,
                        .flags = flags | VMA_FRESH,
                        .file = file,
                        .pgoff = pgoff,
                        .mm = edit->mm,
                        .lineage = ++edit->mm->last_lineage};
    if (!file)
        vma->pgoff = flags & VMA_SHARED ? atomic_add(&edit->mm->last_anon_name, 1) << SHARED_SHIFT
                                        : start >> PAGE_SHIFT;
    rwsem_init(&vma->lock, &vma_lock_class, "vma lock");
    list_init(&vma->mapping_link);
    if (file)
        mapped_file_get(file);
    list_add_tail(&edit->added, &vma->edit_link);
    return vma;
}

/* The part [start, end) of a VMA that leaves, as a VMA of its own. */
static struct vma *new_piece(struct vma_edit *edit, const struct vma *whole, u64 start, u64 end)
{
    struct vma *piece = vma_edit_new(edit, start, end, whole->prot, whole->flags, whole->file,
                                     vma_pgoff(whole, start));
    if (piece) {
        piece->lineage = whole->lineage;
        piece->anon_name = READ_ONCE(whole->anon_name);
        piece->anon_is_inherited = whole->anon_is_inherited;
        piece->was_robbed = READ_ONCE(whole->was_robbed);
        piece->pgoff = vma_pgoff(whole, start);
    }
    return piece;
}

static int insert(struct vma_edit *edit, struct vma *vma)
{
    int error = range_txn_insert(&edit->txn, vma->start, vma->end, vma);
    if (!error)
        vma_sums_add(&edit->change, vma, 1);
    return error;
}

static int take_out(struct vma_edit *edit, struct vma *vma)
{
    int error = range_txn_remove(&edit->txn, vma->start);
    if (error)
        return error;
    vma_sums_add(&edit->change, vma, -1);
    vma->was_named = vma_owns_anon(vma);
    bool is_fresh = vma->flags & VMA_FRESH;
    if (is_fresh)
        list_del(&vma->edit_link);
    list_add_tail(is_fresh ? &edit->dropped : &edit->removed, &vma->edit_link);
    return 0;
}

/* Takes a VMA out and puts back what of it lies outside [start, end). => 0, -ENOMEM, -EINVAL: not to be cut there */
static int take_out_middle(struct vma_edit *edit, struct vma *vma, u64 start, u64 end)
{
    if ((vma->start < start && !vma_may_cut(vma, start)) ||
        (end < vma->end && !vma_may_cut(vma, end)))
        return -EINVAL;
    int error = take_out(edit, vma);
    if (!error && vma->start < start) {
        struct vma *head = new_piece(edit, vma, vma->start, start);
        error = head ? insert(edit, head) : -ENOMEM;
    }
    if (!error && end < vma->end) {
        struct vma *tail = new_piece(edit, vma, end, vma->end);
        error = tail ? insert(edit, tail) : -ENOMEM;
    }
    return error;
}

int vma_edit_cut(struct vma_edit *edit, u64 start, u64 end)
{
    struct range_entry entry;
    for (u64 at = start; at < end && range_txn_next(&edit->txn, at, &entry); at = entry.end) {
        if (entry.start >= end)
            break;
        int error = take_out_middle(edit, entry.item, start, end);
        if (error)
            return error;
    }
    return 0;
}

/* ---- Merging ---- */

bool vma_is_continued(const struct vma *below, const struct vma *above)
{
    const u32 not_compared = VMA_FRESH | VMA_DETACHED;
    if (vma_is_huge(below))
        return false;
    return below->prot == above->prot && below->file == above->file &&
           (below->flags & ~not_compared) == (above->flags & ~not_compared) &&
           below->pgoff + vma_pages(below) == above->pgoff;
}

/*
 * Linux looks at the neighbour's side only: an area without pages may join a neighbour that has
 * some, but not the other way round. So a locked and filled middle does not rejoin its empty
 * neighbours (FAULTS.md section 5, `munlock 2`).
 */
static bool name_fits(u64 name, const struct vma *neighbour)
{
    return name == READ_ONCE(neighbour->anon_name) || (!name && !neighbour->anon_is_inherited);
}

static bool names_agree(const struct vma *below, const struct vma *above)
{
    u64 a = READ_ONCE(below->anon_name), b = READ_ONCE(above->anon_name);
    return !a || !b || a == b;
}

/* What `vma`, not placed, can be one area with. NULL: nothing there */
static void find_partners(struct vma_edit *edit, const struct vma *vma, struct vma **below,
                          struct vma **above)
{
    struct range_entry entry;
    u64 name = READ_ONCE(vma->anon_name);

    *below = *above = NULL;
    if (range_txn_prev(&edit->txn, vma->start, &entry) && entry.end == vma->start &&
        entry.item != edit->apart && vma_is_continued(entry.item, vma) &&
        name_fits(name, entry.item))
        *below = entry.item;
    if (range_txn_next(&edit->txn, vma->end, &entry) && entry.start == vma->end &&
        entry.item != edit->apart && vma_is_continued(vma, entry.item) &&
        name_fits(name, entry.item) && (!*below || names_agree(*below, entry.item)))
        *above = entry.item;
}

/* `vma` (fresh, not placed) takes over the range of its neighbour, which leaves. */
static int absorb(struct vma_edit *edit, struct vma *vma, struct vma *neighbour)
{
    int error = take_out(edit, neighbour);
    if (error)
        return error;
    if (neighbour->start < vma->start) {
        vma->start = neighbour->start;
        vma->pgoff = neighbour->pgoff;
    } else {
        vma->end = neighbour->end;
    }
    vma->lineage = MAX(vma->lineage, neighbour->lineage);
    if (!vma->anon_name) {
        vma->anon_name = READ_ONCE(neighbour->anon_name);
        vma->anon_is_inherited = neighbour->anon_is_inherited;
    }
    return 0;
}

int vma_edit_put(struct vma_edit *edit, struct vma *vma)
{
    int error = insert(edit, vma);
    if (!error)
        edit->held = vma;
    return error;
}

int vma_edit_place(struct vma_edit *edit, struct vma *vma)
{
    struct vma *below, *above;
    int error = 0;

    find_partners(edit, vma, &below, &above);
    if (below)
        error = absorb(edit, vma, below);
    if (!error && above)
        error = absorb(edit, vma, above);
    return error ? error : vma_edit_put(edit, vma);
}

int vma_edit_change(struct vma_edit *edit, struct vma *vma, u64 start, u64 end, u32 prot, u32 flags)
{
    int error = take_out_middle(edit, vma, start, end);
    if (error)
        return error;
    struct vma *changed = new_piece(edit, vma, start, end);
    if (!changed)
        return -ENOMEM;
    changed->prot = prot;
    changed->flags = flags | VMA_FRESH;
    return vma_edit_place(edit, changed);
}

int vma_edit_set_apart(struct vma_edit *edit, struct vma *vma, u64 start, u64 end, u32 flags)
{
    int error = take_out_middle(edit, vma, start, end);
    struct vma *piece = error ? NULL : new_piece(edit, vma, start, end);
    if (!piece)
        return -ENOMEM;
    piece->flags = flags | VMA_FRESH;
    edit->apart = piece;
    return insert(edit, piece);
}

int vma_edit_copy(struct vma_edit *edit, const struct vma *vma)
{
    struct vma *copy = new_piece(edit, vma, vma->start, vma->end);
    if (!copy)
        return -ENOMEM;
    copy->flags &= ~(VMA_LOCKED | VMA_LOCKONFAULT | VMA_HUGE_OWNER);
    if (copy->flags & VMA_WIPEONFORK) {
        copy->anon_name = 0;
        copy->anon_is_inherited = false;
    } else if (copy->anon_name) {
        copy->anon_name = atomic_add(&edit->mm->last_anon_name, 1);
        copy->anon_is_inherited = true;
    }
    return insert(edit, copy);
}

/* ---- The end of an edit ---- */

static void link_mapping(struct vma *vma)
{
    if (!vma->file)
        return;
    struct page_cache *cache = vma->file->cache;
    mutex_lock(&cache->map_lock);
    list_add_tail(&cache->mappings, &vma->mapping_link);
    mutex_unlock(&cache->map_lock);
}

void vma_unlink_mapping(struct vma *vma)
{
    if (!vma->file)
        return;
    struct page_cache *cache = vma->file->cache;
    mutex_lock(&cache->map_lock);
    list_del(&vma->mapping_link);
    if (vma->flags & VMA_HUGE_OWNER)
        huge_file_settle(vma);
    mutex_unlock(&cache->map_lock);
}

/* A page was taken from the area (mm/huge.h), perhaps after its heirs were made. */
static void rob_heirs(struct vma_edit *edit, const struct vma *old)
{
    struct vma *vma;
    list_for_each (vma, &edit->added, edit_link)
        if (vma->file == old->file)
            WRITE_ONCE(vma->was_robbed, true);
}

/*
 * Whoever looked the VMA up before the commit and has its lock finishes first. He may have mapped
 * the first page of its own just now, after its heirs were made: then they have the name, whichever
 * of them has the page. (One that has taken the place of all of it has none, and a name: that costs
 * it a merge.)
 */
static void detach(struct vma_edit *edit, struct vma *old)
{
    vma_detach(old);
    if (READ_ONCE(old->was_robbed))
        rob_heirs(edit, old);
    if (old->was_named || !vma_owns_anon(old))
        return;
    struct vma *vma;
    list_for_each (vma, &edit->added, edit_link) {
        if (vma->start < old->end && old->start < vma->end)
            (void)atomic_change(&vma->anon_name, 0, old->anon_name);
    }
}

int vma_edit_commit(struct vma_edit *edit)
{
    struct mm *mm = edit->mm;
    struct vma *vma;

    int error = vma_limits_apply(mm, &edit->change, edit->txn.count);
    if (error)
        return error;
    list_for_each (vma, &edit->added, edit_link) {
        vma->flags &= ~VMA_FRESH;
        link_mapping(vma);
    }
    if (edit->held && !MUTANT(new_area_open))
        rwsem_write_lock(&edit->held->lock);
    WRITE_ONCE(mm->change_count, mm->change_count + 1);
    range_txn_commit(&edit->txn);
    edit->is_committed = true;
    list_for_each (vma, &edit->removed, edit_link)
        detach(edit, vma);
    SYNC_POINT(vma_edit_committed);
    return 0;
}

static void take_off_list(struct list *list)
{
    while (!list_is_empty(list))
        list_del(list->next);
}

void vma_edit_close(struct vma_edit *edit, struct list *dead)
{
    if (edit->is_committed) {
        struct vma *vma;
        list_for_each (vma, &edit->removed, edit_link)
            vma_unlink_mapping(vma);
        if (edit->held && !MUTANT(new_area_open))
            rwsem_write_unlock(&edit->held->lock);
        take_off_list(&edit->added);
        list_splice_tail(dead, &edit->removed);
    } else {
        range_txn_abort(&edit->txn);
        take_off_list(&edit->removed);
        list_splice_tail(dead, &edit->added);
    }
    list_splice_tail(dead, &edit->dropped);
}
