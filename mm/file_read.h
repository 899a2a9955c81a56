/*
 * read() on cached files, in kernel memory and in user memory: batches of up to 31 pages, marks looked at at the end of each batch.
 */
#ifndef MM_FILE_READ_H
#define MM_FILE_READ_H

#include "mm/mapped_file.h"

/*
 * Reads up to `len` bytes at byte position `pos` into user memory (user_buf).
 * => bytes read (0 at the end of the file), a short count where memory or the disk fails midway, -EFAULT, -EIO, -EINTR, -ENOMEM with nothing read.
 * Sleeps. No lock held on entry (user memory is touched without any).
 */
ssize_t file_read_user(struct mapped_file *file, u64 pos, u64 user_buf, size_t len);
/* The same into kernel memory (ELF loader, tests); counts as a read for readahead. */
ssize_t file_read_kernel(struct mapped_file *file, u64 pos, void *buf, size_t len);
/* posix_fadvise. offset/len in bytes, len 0 = to the end. => 0, -EINVAL */
int file_advise(struct mapped_file *file, u64 offset, u64 len, int advice);

#endif
