/*
 * Huge areas (VMA_HUGETLB): what the calls on an address space do to areas whose pages are 2 MiB. Such an area never shares a page table with
 * another one, and never merges. Its pages are not counted in rss but in mm->huge_pages.
 *
 * The calls on areas come here once for each area (or range): the 4 KiB walks know nothing of huge entries.
 */
#ifndef MM_HUGE_H
#define MM_HUGE_H

#include "mm/huge_file.h"

/*
 * mmap(MAP_HUGETLB | MAP_ANONYMOUS) (mmap(2)): length is rounded up to 2 MiB, and its pages are promised unless MAP_NORESERVE. Bits 26..31 of flags
 * are the logarithm of the page size, 0 being the same as 21.
 * => address; -EINVAL (page size, alignment of a fixed address or of the offset), -ENOMEM (also: the pool cannot promise), else as mm_mmap
 */
s64 mm_mmap_huge(struct mm *mm, u64 addr, u64 length, u32 prot, u32 flags, u64 offset);

static inline bool vma_is_huge(const struct vma *vma)
{
    return vma->flags & VMA_HUGETLB;
}
/* May the area be cut at addr (inside it)? */
static inline bool vma_may_cut(const struct vma *vma, u64 addr)
{
    return !vma_is_huge(vma) || IS_ALIGNED(addr, HUGE_PAGE_BYTES);
}
static inline u64 vma_page_bytes(const struct vma *vma)
{
    return vma_is_huge(vma) ? HUGE_PAGE_BYTES : PAGE_SIZE;
}

/* Removes the huge entries of [start, end), whatever areas they belong to. As mm_zap_range. */
void huge_zap_range(struct mm *mm, u64 start, u64 end);
/* madvise(MADV_DONTNEED) on the part [start, end) of vma: whole pages go, and are promised again. => 0, -EINVAL: start is not a page's. As mm_zap_range. */
int huge_dontneed(struct vma *vma, u64 start, u64 end);
/* As mm_protect_range. A private page loses its write bit: the next store is a fault. */
void huge_protect_range(struct vma *vma, u64 start, u64 end);
/* fork: the pages of the parent's vma into the child's table, both write-protected. Both spaces locked, stores into private memory kept out. => 0, -ENOMEM */
int huge_fork(struct mm *child, const struct vma *vma);
/* mremap: directories for [target, target + length), then the entries of [start, start + length) to there. mmap_lock exclusive. */
MUST_CHECK int huge_prepare_move(struct mm *mm, u64 target, u64 length);
void huge_move(struct mm *mm, u64 start, u64 length, u64 target);
/* mincore: 1 for each 4 KiB page of [start, end) that is mapped, at vec. mmap_lock held. */
void huge_note_resident(const struct vma *vma, u64 start, u64 end, u8 *vec);
/* Shows the entries of vma. pt_lock held meanwhile, mmap_lock too. */
void huge_for_each(const struct vma *vma, void (*visit)(void *ctx, u64 addr, pte_t pte), void *ctx);

/* Held by whoever serves the index: a fault from the look at the entry to its store, a punch. Taken under mmap_lock or vma->lock; map_lock, pt_lock below it. */
struct mutex *huge_index_lock(const struct huge_file *file, u64 index);

/* The parent of a fork needs the page at index for itself: out of all other spaces' tables. Their areas can never be touched there again. Index locked. Sleeps. */
void huge_take_from_others(const struct vma *vma, u64 index, struct page *page);

#endif
