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
 * Old and new VMAs are on the list together for a moment. Whoever walks it compares the entry with
 * the page, so meeting an address twice does no harm.
 */
#include "kernel/log/log.h"
#include "kernel/sched/grace.h"
#include "kernel/sched/sync_point.h"
#include "lib/errno.h"
#include "mm/core/slab.h"
#include "mm/huge.h"
#include "mm/mmap.h"
#include "mm/reclaim.h"
#include "mm/vma_internal.h"

#define RECLAIM_FOR_SLAB_PAGES 16

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

static u64 vma_pages(const struct vma *vma)
{
    return (vma->end - vma->start) >> PAGE_SHIFT;
}

void vma_edit_begin(struct vma_edit *edit, struct mm *mm)
{
    ASSERT(rwsem_is_write_locked_by_me(&mm->mmap_lock));
    edit->mm = mm;
    edit->held = NULL;
    edit->total_pages = mm->total_pages;
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
        piece->owns_anon = READ_ONCE(whole->owns_anon);
        piece->was_robbed = READ_ONCE(whole->was_robbed);
        if (!piece->file && !(piece->flags & VMA_SHARED))
            piece->pgoff = 0;
    }
    return piece;
}

static int insert(struct vma_edit *edit, struct vma *vma)
{
    int error = range_txn_insert(&edit->txn, vma->start, vma->end, vma);
    if (!error)
        edit->total_pages += vma_pages(vma);
    return error;
}

static int take_out(struct vma_edit *edit, struct vma *vma)
{
    int error = range_txn_remove(&edit->txn, vma->start);
    if (error)
        return error;
    edit->total_pages -= vma_pages(vma);
    vma->owned_when_taken_out = READ_ONCE(vma->owns_anon);
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

bool vma_can_merge(const struct vma *below, const struct vma *above)
{
    const u32 not_compared = VMA_FRESH | VMA_DETACHED;
    if (vma_is_huge(below))
        return false;
    if (below->prot != above->prot || below->file != above->file ||
        (below->flags & ~not_compared) != (above->flags & ~not_compared))
        return false;
    if ((below->file || (below->flags & VMA_SHARED)) &&
        below->pgoff + vma_pages(below) != above->pgoff)
        return false;
    /* Shared anonymous memory is an object of its own for each mmap(). */
    bool needs_kinship = (READ_ONCE(below->owns_anon) && READ_ONCE(above->owns_anon)) ||
                         (!below->file && (below->flags & VMA_SHARED));
    return !needs_kinship || below->lineage == above->lineage;
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
    if (!vma->owns_anon)
        vma->lineage = neighbour->lineage;
    vma->owns_anon |= READ_ONCE(neighbour->owns_anon);
    return 0;
}

int vma_edit_place(struct vma_edit *edit, struct vma *vma)
{
    struct range_entry entry;
    int error = 0;

    if (range_txn_prev(&edit->txn, vma->start, &entry) && entry.end == vma->start &&
        vma_can_merge(entry.item, vma))
        error = absorb(edit, vma, entry.item);
    if (!error && range_txn_next(&edit->txn, vma->end, &entry) && entry.start == vma->end &&
        vma_can_merge(vma, entry.item))
        error = absorb(edit, vma, entry.item);
    if (!error)
        error = insert(edit, vma);
    if (!error)
        edit->held = vma;
    return error;
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

int vma_edit_copy(struct vma_edit *edit, const struct vma *vma)
{
    struct vma *copy = new_piece(edit, vma, vma->start, vma->end);
    if (!copy)
        return -ENOMEM;
    copy->flags &= ~(VMA_LOCKED | VMA_HUGE_OWNER);
    if (copy->flags & VMA_WIPEONFORK)
        copy->owns_anon = false;
    return insert(edit, copy);
}

/* ---- Limits ---- */

/* Private memory that is the program's own data: writable, and not a stack. */
static bool counts_as_data(const struct vma *vma)
{
    return (vma->prot & PROT_WRITE) && !(vma->flags & (VMA_SHARED | VMA_GROWSDOWN));
}

static u64 data_pages_of(const struct list *vmas)
{
    const struct vma *vma;
    u64 pages = 0;
    list_for_each (vma, vmas, edit_link)
        pages += counts_as_data(vma) ? vma_pages(vma) : 0;
    return pages;
}

static u64 data_pages(const struct vma_edit *edit)
{
    struct range_entry entry;
    u64 pages = 0;
    for (u64 at = 0; range_txn_next(&edit->txn, at, &entry); at = entry.end)
        pages += counts_as_data(entry.item) ? vma_pages(entry.item) : 0;
    return pages;
}

/* What is above a limit already may stay, or shrink. */
static bool exceeds_limits(const struct vma_edit *edit)
{
    const struct mm *mm = edit->mm;
    if (edit->total_pages > mm->total_pages && edit->total_pages > mm->limit_as_pages)
        return true;
    return mm->limit_data_pages != ~0ul &&
           data_pages_of(&edit->added) > data_pages_of(&edit->removed) &&
           data_pages(edit) > mm->limit_data_pages;
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
 * the first page of its own just now, after its heirs were made: then they own it, whichever of
 * them has the page. (One that has taken the place of all of it owns nothing, and says it does:
 * that costs it a merge.)
 */
static void detach(struct vma_edit *edit, struct vma *old)
{
    rwsem_write_lock(&old->lock);
    old->flags |= VMA_DETACHED;
    rwsem_write_unlock(&old->lock);
    if (READ_ONCE(old->was_robbed))
        rob_heirs(edit, old);
    if (old->owns_anon == old->owned_when_taken_out)
        return;
    struct vma *vma;
    list_for_each (vma, &edit->added, edit_link) {
        if (vma->start < old->end && old->start < vma->end)
            WRITE_ONCE(vma->owns_anon, true);
    }
}

int vma_edit_commit(struct vma_edit *edit)
{
    struct mm *mm = edit->mm;
    struct vma *vma;

    if ((edit->txn.count > MAX_MAP_COUNT && edit->txn.count > mm->n_vmas) || exceeds_limits(edit))
        return -ENOMEM;
    list_for_each (vma, &edit->added, edit_link) {
        vma->flags &= ~VMA_FRESH;
        link_mapping(vma);
    }
    if (edit->held)
        rwsem_write_lock(&edit->held->lock);
    mm->n_vmas = edit->txn.count;
    mm->total_pages = edit->total_pages;
    mm->total_pages_peak = MAX(mm->total_pages_peak, mm->total_pages);
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
        if (edit->held)
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
