/*
 * Pipes and FIFOs: 64 KiB between those who write and those who read.
 */
#ifndef FS_PIPE_H
#define FS_PIPE_H

#include "fs/vfs.h"

#define PIPE_BUF_BYTES 4096u /* a write of at most this much is never torn */

extern const struct file_ops file_ops_fifo;

/* A new pipe: ends[0] to read, ends[1] to write, each with one reference.
 * flags: O_NONBLOCK or 0. => 0; -ENOMEM. May sleep. */
int pipe_create(u32 flags, struct file *ends[2]);
/*
 * vmsplice: memory of `mm`, the caller's, goes in without a copy where it can: whole pages, at the
 * beginning of a page of the pipe. Waits for room once, then puts in what there is room for.
 * => bytes; -EPIPE, -EAGAIN (nonblocking), -ERESTARTSYS, -EFAULT, -EINTR. May sleep.
 */
ssize_t pipe_give(struct file *file, struct mm *mm, u64 addr, size_t len, bool nonblocking);
/* => how many bytes it holds at most, or -EBADF: no pipe, or only a name for one */
s64 pipe_capacity(const struct file *file);
u64 pipe_pages_used(void); /* by all pipes */

#endif
