/*
 * What mm knows of an open file: enough to map it, read it ahead, and keep it alive while a fault waits.
 * fs embeds it in its struct file.
 */
#ifndef MM_MAPPED_FILE_H
#define MM_MAPPED_FILE_H

#include "mm/page_cache.h"
#include "mm/readahead.h"

struct mapped_file {
    s32 refs;
    struct page_cache *cache;
    struct readahead readahead;
    bool can_read, can_write; /* the open mode, for mmap and mprotect */
    bool can_map;             /* pages of the cache may be mapped; else ENODEV */
    bool no_exec;             /* nothing of this file system is code: EPERM */
    /* Last reference gone: closes. May sleep; never called with mmap_lock held (munmap and exit collect files first). */
    void (*release)(struct mapped_file *file);
    /* MADV_REMOVE: makes bytes [offset, offset + bytes) a hole, as fallocate(2) would. NULL where the file cannot. => 0, -EOPNOTSUPP,
     * … May sleep; no lock held. */
    int (*punch)(struct mapped_file *file, u64 offset, u64 bytes);
    /* Path for /proc/self/maps. */
    void (*path)(struct mapped_file *file, char *buf, size_t size);
};

static inline void mapped_file_get(struct mapped_file *file)
{
    atomic_add(&file->refs, 1);
}
static inline void mapped_file_put(struct mapped_file *file)
{
    if (atomic_sub(&file->refs, 1) == 0)
        file->release(file);
}

#endif
