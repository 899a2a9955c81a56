/*
 * Files in memory: the file system at /tmp and /dev/shm, memfd_create(2), and the memory that
 * MAP_SHARED | MAP_ANONYMOUS shares. All of them are page caches with nothing behind: an absent
 * page is a hole, and a page that is there never leaves before it is removed.
 */
#ifndef FS_TMPFS_H
#define FS_TMPFS_H

#include "fs/vfs.h"

/* An empty file system. => NULL when out of memory. May sleep. */
struct super_block *tmpfs_create(void);
/* Tests: nothing of it is in use any more. Removes all that is in it. May sleep. */
void tmpfs_destroy(struct super_block *super);

enum tmpfs_file_kind {
    TMPFS_MEMFD,       /* counts against the room for files in memory */
    TMPFS_SHARED_ANON, /* does not: its pages end with the programs that map them. Promised whole */
    TMPFS_SHARED_ANON_NORESERVE, /* the same, promised page by page as all other files in memory */
};

/*
 * A regular file without a name, open for reading and writing.
 *   name  as /proc/self/maps shows it
 * => one reference, or NULL with *error: -ENOMEM, -ENOSPC. May sleep.
 */
struct file *tmpfs_open_unnamed(const char *name, u64 size_bytes, enum tmpfs_file_kind kind,
                                int *error);

/* Pages in use by all files in memory, and how many those that count may have: half of memory. */
u64 tmpfs_pages_used(void);
u64 tmpfs_pages_limit(void);
/* Tests: another limit; 0: the usual one. */
void tmpfs_set_pages_limit(u64 n_pages);

#endif
