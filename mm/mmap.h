/*
 * The calls that change an address space. All take mmap_lock exclusive themselves, may sleep, work
 * on the mm given, and return negative errno as Linux does (man-pages mmap(2), munmap(2),
 * mprotect(2), brk(2), madvise(2), mincore(2), mremap(2), msync(2), mlock(2)). Files whose last reference a call drops are closed
 * after mmap_lock is released.
 */
#ifndef MM_MMAP_H
#define MM_MMAP_H

#include "mm/vma.h"

#define MAP_SHARED          0x01u
#define MAP_PRIVATE         0x02u
#define MAP_SHARED_VALIDATE 0x03u
#define MAP_TYPE            0x0fu
#define MAP_FIXED           0x10u
#define MAP_ANONYMOUS       0x20u
#define MAP_32BIT           0x40u
#define MAP_ABOVE4G         0x80u
#define MAP_GROWSDOWN       0x0100u
#define MAP_DENYWRITE       0x0800u
#define MAP_EXECUTABLE      0x1000u
#define MAP_LOCKED          0x2000u
#define MAP_NORESERVE       0x4000u
#define MAP_POPULATE        0x8000u
#define MAP_NONBLOCK        0x10000u
#define MAP_STACK           0x20000u
#define MAP_HUGETLB         0x40000u
#define MAP_SYNC            0x80000u
#define MAP_FIXED_NOREPLACE 0x100000u
#define MAP_UNINITIALIZED   0x4000000u
#define MAP_HUGE_2MB        (21u << 26)
#define MAP_HUGE_1GB        (30u << 26)

#define MMAP_32BIT_LOW  0x40000000ul /* where MAP_32BIT maps lie */
#define MMAP_32BIT_HIGH 0x80000000ul

#define MREMAP_MAYMOVE   1u
#define MREMAP_FIXED     2u
#define MREMAP_DONTUNMAP 4u

#define MS_ASYNC      1u
#define MS_INVALIDATE 2u
#define MS_SYNC       4u

#define MCL_CURRENT 1u
#define MCL_FUTURE  2u
#define MCL_ONFAULT 4u

#define PROT_SEM       0x8u        /* accepted, means nothing here */
#define PROT_GROWSDOWN 0x01000000u /* mprotect: from the start of the area that grows down */
#define PROT_GROWSUP   0x02000000u

#define MADV_NORMAL          0
#define MADV_RANDOM          1
#define MADV_SEQUENTIAL      2
#define MADV_WILLNEED        3
#define MADV_DONTNEED        4
#define MADV_FREE            8
#define MADV_REMOVE          9
#define MADV_DONTFORK        10
#define MADV_DOFORK          11
#define MADV_MERGEABLE       12
#define MADV_UNMERGEABLE     13
#define MADV_HUGEPAGE        14
#define MADV_NOHUGEPAGE      15
#define MADV_DONTDUMP        16
#define MADV_DODUMP          17
#define MADV_WIPEONFORK      18
#define MADV_KEEPONFORK      19
#define MADV_COLD            20
#define MADV_PAGEOUT         21
#define MADV_POPULATE_READ   22
#define MADV_POPULATE_WRITE  23
#define MADV_DONTNEED_LOCKED 24

/*
 * vm.max_map_count: a call that would leave more areas than this fails with -ENOMEM and changes
 * nothing.
 */
#define MAX_MAP_COUNT_DEFAULT 65530
u64 vma_max_map_count(void);
int vma_set_max_map_count(const char *value); /* knob, see mm/knobs.h */
void vma_get_max_map_count(char *buf, size_t size);

/*
 * => address of the new mapping, or a negative errno. file NULL: anonymous; the call takes its own
 * reference. offset in bytes. A failing call changes nothing, and with MAP_FIXED over something old
 * a lock-free reader sees the old areas or the new one. That the descriptor exists is the caller's
 * to see.
 */
s64 mm_mmap(struct mm *mm, u64 addr, u64 length, u32 prot, u32 flags, struct mapped_file *file,
            u64 offset);
int mm_munmap(struct mm *mm, u64 addr, u64 length);
/* Area after area: where one cannot be changed (hole, file, limit), those before it are, as on Linux. */
int mm_mprotect(struct mm *mm, u64 addr, u64 length, u32 prot);
u64 mm_brk(struct mm *mm,
           u64 new_end); /* => the break afterwards (unchanged where it cannot be moved) */
/*
 * => 0, -EINVAL (advice, alignment, an area that refuses), -ENOMEM (hole; the rest is done), -EAGAIN (no memory, too many
 * areas), -EACCES and what the file says (MADV_REMOVE), -EFAULT (MADV_POPULATE_*), -EINTR
 */
int mm_madvise(struct mm *mm, u64 addr, u64 length, int advice);
/*
 * => the area's address, or a negative errno: -EFAULT (nothing at addr, more than one area), -EINVAL (flags, alignment,
 * overlap), -ENOMEM, -EPERM, -EINTR. Anonymous pages move, pages of files are found again by faults.
 */
s64 mm_mremap(struct mm *mm, u64 addr, u64 old_length, u64 new_length, u32 flags, u64 new_addr);
/* => 0, -EINVAL, -ENOMEM (hole), -EBUSY (MS_INVALIDATE of a locked area), -EINTR */
int mm_msync(struct mm *mm, u64 addr, u64 length, u32 flags);
/*
 * populate: fault the pages in too. What lies before a hole is done.
 * => 0, -EINVAL, -ENOMEM (hole, or pages that cannot be brought in), -EAGAIN (out of memory), -EINTR
 */
int mm_mlock(struct mm *mm, u64 addr, u64 length, bool populate);
int mm_munlock(struct mm *mm, u64 addr, u64 length);
int mm_mlock_all(struct mm *mm, u32 flags); /* MCL_*; -EINVAL, -EINTR */
int mm_munlock_all(struct mm *mm);
/* One byte a page into user memory at vec. */
int mm_mincore(struct mm *mm, u64 addr, u64 length, u64 vec);
/*
 * Faults the pages of [addr, addr+length) in, as the populating calls do; pages that are there
 * already are no faults.
 * => 0, -ENOMEM (hole, out of memory), -EFAULT (bad sector, past the end), -EINVAL (protection),
 * -EINTR
 */
int mm_populate(struct mm *mm, u64 addr, u64 length, bool write);
/*
 * The page that a read at addr sees, faulted in where it is not there, with a reference: nobody else
 * writes to it from now on but through a mapping that is shared, or that has it alone already.
 * => 0; -EOPNOTSUPP: a part of a huge page; errors of mm_populate
 */
int mm_page_get(struct mm *mm, u64 addr, struct page **out);

#endif
