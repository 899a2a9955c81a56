/*
 * What stands behind a huge area: each mmap(MAP_HUGETLB) has a file of its own, without a name. It keeps the promises that the pool made
 * for the mapping, by file index, and the pages of a shared mapping. (Pages of a private one belong to page tables only.)
 *
 *     slot of the file       empty                       nothing was promised, or it was used up
 *                            PROMISED                    the next touch gets a page for certain
 *                            page                        shared: the page, one reference
 *
 * A private mapping's promises are for the address space that mapped it: its areas have VMA_HUGE_OWNER, the copies of them that fork makes do not.
 * Promises go by file index, so that moving or splitting areas does not touch them; where the last owner's area of an index goes, its promise goes.
 *
 * Indices are in huge pages. The slots have a spinlock, taken before the pool's; taking a page for an index is serialised by the fault
 * (mm/fault_huge.c).
 */
#ifndef MM_HUGE_FILE_H
#define MM_HUGE_FILE_H

#include "mm/huge_pool.h"
#include "mm/vma.h"

struct huge_file {
    struct mapped_file mapped;
    struct page_cache cache; /* who maps it, and its identity; has no pages */
    struct spinlock lock;    /* slots */
    struct radix slots;
    u64 size_pages; /* a touch beyond it is SIGBUS; grows only while mapped first */
};

extern u64 huge_file_dev; /* device number that /proc/PID/maps shows; set by fs at boot */

static inline struct huge_file *huge_file_of(const struct vma *vma)
{
    return container_of(vma->file, struct huge_file, mapped);
}
static inline u64 huge_index(const struct vma *vma, u64 addr)
{
    return vma_pgoff(vma, addr) / HUGE_PAGE_FRAMES;
}

/* For length_bytes (a multiple of HUGE_PAGE_BYTES); one reference, mapped_file_put() it. NULL: out of memory. Never sleeps. */
struct huge_file *huge_file_create(u64 length_bytes);
bool huge_file_is(const struct mapped_file *file);
/*
 * A mapping of length_bytes from the file's page pgoff (4 KiB pages, a multiple of HUGE_PAGE_FRAMES) begins: the pool promises its pages,
 * unless vma_flags say VMA_NORESERVE. => 0, -ENOMEM with nothing promised. Never sleeps.
 */
MUST_CHECK int huge_file_promise(struct huge_file *file, pgoff_t pgoff, u64 length_bytes,
                                 u32 vma_flags);

/* Shared mapping: the page at index with a reference more, or NULL. */
struct page *huge_file_find(struct huge_file *file, u64 index);
/* Shared mapping: takes the page out of its slot. => the page with the slot's reference, or NULL; a promise stays. Index locked. */
struct page *huge_file_remove(struct huge_file *file, u64 index);
/* mapped_file's punch: whole pages of a shared mapping go, for everybody who maps them; parts are cleared. */
int huge_file_punch(struct mapped_file *mapped, u64 offset, u64 bytes);
/*
 * A page for vma's index: the promised one if there is a promise and the area may use it, else one that is promised to nobody. One reference, the
 * caller's; contents undefined. In a shared mapping the file has it from now on, with a reference of its own.
 * => NULL: the pool has none (-ENOSPC in *error) or no memory for the slot (-ENOMEM). The index is not taken by anybody else meanwhile.
 */
struct page *huge_file_take(const struct vma *vma, u64 index, int *error);
/* Drops a reference of a private page of vma; if it was the last, and the area's promise was used up for it, it is promised again. */
void huge_file_untake(const struct vma *vma, u64 index, struct page *page);

/* An owner's area has left the file's list of mappings: what no other area needs is promised no longer. map_lock held. */
void huge_file_settle(const struct vma *vma);

#endif
