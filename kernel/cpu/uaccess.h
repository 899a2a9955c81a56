/*
 * The instructions that touch user memory from the kernel, with SMAP opened around them and an
 * exception-table entry each. They may fault: the page-fault handler serves the fault like the
 * program's own, or ends it at the fixup. Range checks are the caller's (mm/user_memory.h).
 */
#ifndef KERNEL_CPU_UACCESS_H
#define KERNEL_CPU_UACCESS_H

#include "kernel/cpu/cpu.h"

/* => number of bytes NOT copied (0 = all). May sleep, unless faults are disabled for the task. */
size_t uaccess_copy_in(void *kernel_dst, u64 user_src, size_t n);
size_t uaccess_copy_out(u64 user_dst, const void *kernel_src, size_t n);
size_t uaccess_clear(u64 user_dst, size_t n);
/* Copies up to a NUL or max bytes. => length without NUL, max if there was none, -EFAULT */
ssize_t uaccess_copy_string(char *dst, u64 user_src, size_t max);
/* Reads one byte. => 0 or -EFAULT */
int uaccess_touch_read(u64 addr);
int uaccess_touch_write(u64 addr); /* rewrites one byte atomically (lock or $0) */
/* One aligned 32-bit word, in one access (futex). => 0 or -EFAULT */
int uaccess_read_u32(u64 addr, u32 *out);
/* If the word is `old` it becomes `new_`; *seen is what it was. Atomic. => 0 or -EFAULT */
int uaccess_change_u32(u64 addr, u32 old, u32 new_, u32 *seen);

/* Reads a kernel word that may not be mapped (backtraces, tests). Any context. => 0 or -EFAULT */
int kernel_probe_read(u64 addr, u64 *out);
/* Tries to write the word that is there already. Any context. => 0 or -EFAULT */
int kernel_probe_write(u64 addr);

#endif
