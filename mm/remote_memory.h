/*
 * The memory of a process as others reach it: /proc/PID/mem, process_vm_readv and process_vm_writev.
 */
#ifndef MM_REMOTE_MEMORY_H
#define MM_REMOTE_MEMORY_H

#include "mm/vma.h"

enum remote_flag {
    REMOTE_WRITE = 1u << 0,
    REMOTE_FORCE = 1u << 1,     /* protection does not count: all can be read, and in private memory
                                 * a write gives the process a copy of its own (proc(5)) */
    REMOTE_KEEP_LOCK = 1u << 2, /* mmap_lock is kept while the disk is waited for */
};

/*
 * Copies n bytes between `buf` and mm's memory at addr; they lie within one page. A page that is not there
 * is faulted in, and counts as populated by the current task.
 * => 0; -EIO: nothing there, or not allowed; -EINTR; -ENOMEM. No lock held; sleeps
 */
int remote_memory_copy(struct mm *mm, u64 addr, void *buf, size_t n, u32 flags);

/*
 * Faults in what can be had of [addr, addr + len) without a gap, from addr on, and of the first 1024 pages at most, as Linux
 * pins the pages of a range before it copies. => bytes; 0: not even the first. No lock held; sleeps
 */
u64 remote_memory_reach(struct mm *mm, u64 addr, u64 len, u32 flags);

/*
 * The same as remote_memory_copy() for any length, between the current program's memory at user_buf and mm's at addr.
 * => bytes, up to the first that cannot be had; where that is the first, -EIO (mm's side), -EFAULT (the program's), or as above
 */
ssize_t remote_memory_transfer(struct mm *mm, u64 addr, u64 user_buf, size_t len, u32 flags);

#endif
