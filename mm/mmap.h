/*
 * The calls that change an address space. All take mmap_lock exclusive themselves, may sleep, work on the mm given, and
 * return negative errno as Linux does (man-pages mmap(2), munmap(2), mprotect(2), brk(2), madvise(2), mincore(2)). Files whose last
 * reference a call drops are closed after mmap_lock is released.
 */
#ifndef MM_MMAP_H
#define MM_MMAP_H

#include "mm/vma.h"

#define MAP_SHARED 0x01u
#define MAP_PRIVATE 0x02u
#define MAP_SHARED_VALIDATE 0x03u
#define MAP_TYPE 0x0fu
#define MAP_FIXED 0x10u
#define MAP_ANONYMOUS 0x20u
#define MAP_32BIT 0x40u
#define MAP_GROWSDOWN 0x0100u
#define MAP_DENYWRITE 0x0800u
#define MAP_LOCKED 0x2000u
#define MAP_NORESERVE 0x4000u
#define MAP_POPULATE 0x8000u
#define MAP_NONBLOCK 0x10000u
#define MAP_STACK 0x20000u
#define MAP_HUGETLB 0x40000u
#define MAP_FIXED_NOREPLACE 0x100000u

#define MAX_MAP_COUNT 65530

/* => address of the new mapping, or a negative errno. file NULL: anonymous; the call takes its own reference. offset in bytes. */
s64 mm_mmap(struct mm *mm, u64 addr, u64 length, u32 prot, u32 flags, struct mapped_file *file, u64 offset);
int mm_munmap(struct mm *mm, u64 addr, u64 length);
int mm_mprotect(struct mm *mm, u64 addr, u64 length, u32 prot);
u64 mm_brk(struct mm *mm, u64 new_end); /* => the break afterwards (unchanged where it cannot be moved) */
int mm_madvise(struct mm *mm, u64 addr, u64 length, int advice);
/* One byte a page into user memory at vec. */
int mm_mincore(struct mm *mm, u64 addr, u64 length, u64 vec);
/* Faults pages of [addr, addr+length) in, as the populating calls do. => 0, -ENOMEM (hole), -EFAULT (bad sector, past the end), -EINTR */
int mm_populate(struct mm *mm, u64 addr, u64 length, bool write);

#endif
