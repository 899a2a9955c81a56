/*
 * What the files of the address-space calls share among themselves: edits of the tree
 * (mm/vma_edit.c) and work on the page tables of a range (mm/vma_pages.c).
 */
#ifndef MM_VMA_INTERNAL_H
#define MM_VMA_INTERNAL_H

#include "mm/mmap.h"
#include "mm/vma.h"

/* mm/vma_edit.c --------------------------------------------------------------------------------- */

/* Pages of areas, by what they count as. */
struct vma_sums {
    s64 total, data, locked, commit;
};

/*
 * One change of the tree, however many areas it touches:
 *
 *     vma_edit_begin(&edit, mm);
 *     error = vma_edit_cut(&edit, start, end);         nobody sees anything yet
 *     if (!error) error = vma_edit_place(&edit, vma);
 *     if (!error) error = vma_edit_commit(&edit);      everybody sees all of it
 *     if (!error) mm_zap_range(mm, start, end);        what the old areas had mapped
 *     vma_edit_close(&edit, &dead);
 *     rwsem_write_unlock(&mm->mmap_lock);
 *     vma_bury(&dead);                                 closes files: no lock held
 *
 * All but vma_bury: mmap_lock exclusive. An edit that was not committed is undone by close. None of
 * them sleeps for long; frames may be reclaimed for a new VMA.
 */
struct vma_edit {
    struct mm *mm;
    struct range_txn txn;
    struct list removed; /* leave the tree */
    struct list added;   /* VMA_FRESH until the commit */
    struct list dropped; /* fresh ones merged away again */
    struct vma *
        held; /* its lock is held exclusive from commit to close: its range is still being worked on */
    const struct vma *apart; /* never becomes one with another area */
    struct vma_sums change;  /* what comes less what goes */
    bool is_committed;
};

void vma_edit_begin(struct vma_edit *edit, struct mm *mm);
/*
 * A fresh VMA that belongs to the edit, not yet placed; takes a reference on file. Without a file
 * pgoff is chosen: the page number of start, or, for shared memory, one that nothing continues.
 * NULL when out of memory.
 */
struct vma *vma_edit_new(struct vma_edit *edit, u64 start, u64 end, u32 prot, u32 flags,
                         struct mapped_file *file, pgoff_t pgoff);
/* Takes [start, end) out; areas that reach beyond are cut. => 0, -ENOMEM, -EINVAL: it would cut a huge page */
MUST_CHECK int vma_edit_cut(struct vma_edit *edit, u64 start, u64 end);
/* Puts a fresh VMA where nothing is, merging it with its neighbours (FAULTS.md section 5). => 0, -ENOMEM */
MUST_CHECK int vma_edit_place(struct vma_edit *edit, struct vma *vma);
/* Gives [start, end), a part of `vma` or all of it, other protection and flags. => 0, -ENOMEM, -EINVAL as vma_edit_cut */
MUST_CHECK int vma_edit_change(struct vma_edit *edit, struct vma *vma, u64 start, u64 end, u32 prot,
                               u32 flags);
/* The same with other flags alone, and as an area of its own, whatever lies beside it. => 0, -ENOMEM */
MUST_CHECK int vma_edit_set_apart(struct vma_edit *edit, struct vma *vma, u64 start, u64 end,
                                  u32 flags);
/* For fork: a VMA of another space, whole, without merging: to the empty tree of edit->mm. => 0, -ENOMEM */
MUST_CHECK int vma_edit_copy(struct vma_edit *edit, const struct vma *vma);
/*
 * => 0: the tree is changed; old VMAs are detached, but still on their files' lists for those who
 * unmap pages; the
 *    last VMA placed is held locked. -ENOMEM: more than vm.max_map_count areas, a limit of the mm,
 *    or more memory promised than may be; nothing is changed
 */
MUST_CHECK int vma_edit_commit(struct vma_edit *edit);
/* Ends the edit. What leaves memory goes to `dead`. */
void vma_edit_close(struct vma_edit *edit, struct list *dead);
/* It has left the tree: waits for whoever has its lock, and who gets it later sees VMA_DETACHED. */
void vma_detach(struct vma *vma);
/* Drops the file references and frees. No lock held: a file may be closed here. */
void vma_bury(struct list *dead);

/* Puts a fresh VMA where nothing is, and leaves its neighbours alone. => 0, -ENOMEM */
MUST_CHECK int vma_edit_put(struct vma_edit *edit, struct vma *vma);

/* Are they of one kind, and does `above`, which begins where `below` ends, go on with the same memory? */
bool vma_is_continued(const struct vma *below, const struct vma *above);
/* Takes a VMA off its file's list; it maps nothing any more. */
void vma_unlink_mapping(struct vma *vma);

/* mm/report.c: a section of reports. */
void mm_report_init(void);
void vma_edit_rooms_init(void);
extern const struct range_tree_ops vma_tree_ops;

/* mm/vma_limits.c ------------------------------------------------------------------------------- */

/* Counts an area in (sign 1) or out (-1). */
void vma_sums_add(struct vma_sums *sums, const struct vma *vma, s64 sign);
/*
 * May the space change so, and have n_vmas areas? What is above a limit already may stay, or
 * shrink. If so, its sums are changed and what comes is charged. => 0, -ENOMEM
 */
MUST_CHECK int vma_limits_apply(struct mm *mm, const struct vma_sums *change, u64 n_vmas);
/* RLIMIT_MEMLOCK: may so many more pages be locked? */
bool vma_limits_allow_locking(const struct mm *mm, u64 n_pages);

/* mm/mlock.c, mm/populate.c --------------------------------------------------------------------- */

/*
 * Faults in what the locked areas of [start, end) show, as mlock does. Of errors the first is told;
 * the rest is tried only if they do not matter. No lock held. => 0, or as mm_populate_range
 */
int mm_populate_locked(struct mm *mm, u64 start, u64 end, bool ignore_errors);
/* mm_populate, but -ENXIO for a page behind the end of its file. */
int mm_populate_range(struct mm *mm, u64 addr, u64 length, bool write);

/* mm/mmap.c ------------------------------------------------------------------------------------- */

/* Is [start, end) free, with the guard gap of a growing area above it? mmap_lock held. */
bool mm_range_is_free(struct mm *mm, u64 start, u64 end);
/* A free place for length bytes, at the hint (0: none) if that is free. mmap_lock held. => address, -ENOMEM */
s64 mm_find_place(struct mm *mm, u64 hint, u64 length);
/* Flags that mlockall(MCL_FUTURE) gives to new areas. mmap_lock held. */
static inline u32 mm_future_lock_flags(const struct mm *mm)
{
    if (!mm->future_lock)
        return 0;
    return VMA_LOCKED | (mm->future_lock & MCL_ONFAULT ? VMA_LOCKONFAULT : 0);
}
/* munmap with mmap_lock held exclusive; range checked. => 0, -ENOMEM; files to close are on `dead` */
int mm_unmap_locked(struct mm *mm, u64 start, u64 end, struct list *dead);
/* Does [start, start + length) lie in the user half? */
static inline bool mm_is_user_range(u64 start, u64 length)
{
    return start <= USER_ADDRESS_END && length <= USER_ADDRESS_END - start;
}
/* The lowest address that a new area below `vma` may reach up to. */
static inline u64 vma_guarded_start(const struct vma *vma)
{
    u64 guard = vma->flags & VMA_GROWSDOWN ? STACK_GUARD_PAGES * PAGE_SIZE : 0;
    return vma->start > guard ? vma->start - guard : 0;
}

/* mm/vma_pages.c -------------------------------------------------------------------------------- */

/*
 * Shows the entries that are not empty, of the table that maps addr, from addr up to `end` or the
 * table's end. Stops behind the one for which visit says true. pt_lock held. => the address to go
 * on at
 */
typedef bool (*entry_visit)(void *ctx, u64 addr, pte_t *ptep);
static inline u64 mm_walk_table(struct pt_space *space, u64 addr, u64 end, entry_visit visit,
                                void *ctx)
{
    u64 table_end = ALIGN_DOWN(addr, PT_TABLE_SPAN) + PT_TABLE_SPAN;
    pte_t *ptep = pt_find(space, addr);

    end = MIN(end, table_end);
    for (; addr < end; addr += PAGE_SIZE, ptep++)
        if (*ptep && visit(ctx, addr, ptep))
            return addr + PAGE_SIZE;
    return end;
}

/* Rewrites the entries of [start, end) for vma's protection (the new one). The VMA is held locked. */
void mm_protect_range(struct vma *vma, u64 start, u64 end);
/* Gives back the table pages around [start, end) that map nothing, as far as its neighbours allow. mmap_lock exclusive. */
void mm_free_tables(struct mm *mm, u64 start, u64 end);

#endif
