/*
 * What the files of the fault path share among themselves.
 */
#ifndef MM_FAULT_INTERNAL_H
#define MM_FAULT_INTERNAL_H

#include "mm/fault.h"

/* mm/fault_wait.c ------------------------------------------------------------------------------- */

/*
 * The page at f->pgoff (reference held) is locked by a read, in which f itself may be the reader. Lets the lock go if the attempt may, and
 * sleeps until the page is unlocked. Drops the reference, or keeps it in f->pinned until the page has been looked up again: across the
 * restart with fault_pin=1, and always where the lock is kept.
 * => RETRY (lock released), DONE (lock kept, or taken back: look the page up again), KILLED
 */
enum fault_result fault_wait_for_read(struct fault *f, struct page *page);
/* The same where the lock is already let go and `file` is pinned (or kept: file NULL). => also DONE: taken back; look the page up again */
enum fault_result fault_wait_unlocked(struct fault *f, struct page *page, struct mapped_file *file);
/* After asking the disk, with what fault_let_go_to_ask() gave: where the lock was kept so far, this is the other time to let it go. */
enum fault_result fault_wait_for_asked(struct fault *f, struct page *page,
                                       struct mapped_file *file);
/* Drops what was pinned across the restart. */
void fault_unpin_page(struct fault *f);
static inline void fault_unpin(struct fault *f)
{
    if (unlikely(f->pinned))
        fault_unpin_page(f);
}

/* The entry of f->addr, its table made where it was missing. VMA locked, pt_lock held. NULL: out of frames */
static inline pte_t *fault_ensure_entry(struct fault *f)
{
    if (unlikely(!f->ptep))
        f->ptep = pt_ensure(&f->mm->space, f->addr);
    return f->ptep;
}
/*
 * At the first lookup after a restart: counts a retry miss if the page slept for is no longer the one found (NULL: none) in its
 * place. Where the address stands for another place by now, nothing was missed. VMA locked.
 */
void fault_note_restart_lookup(struct fault *f, const struct page *found);

/* mm/fault_trap.c ------------------------------------------------------------------------------- */

/*
 * Out of frames: reclaims, since what ran out may be something that cannot do so where it is needed (a page table, under pt_lock);
 * where nothing is left to reclaim, ends a program. => true: try again; false: the caller itself is to die. No lock held; sleeps.
 */
bool fault_memory_was_freed(struct fault *f);

/* mm/fault_anon.c ------------------------------------------------------------------------------- */

void fault_anon_init(void); /* the shared zero page */

/* mm/fault_huge.c ------------------------------------------------------------------------------- */

void fault_huge_init(void);

/* mm/fault_around.c ----------------------------------------------------------------------------- */

/* Maps cached neighbours of f->addr. => true if the page at f->addr itself is mapped now. Lock held, not released. */
bool fault_map_around(struct fault *f);

#endif
