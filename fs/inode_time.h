/*
 * The times of an inode, by the wall clock.
 */
#ifndef FS_INODE_TIME_H
#define FS_INODE_TIME_H

#include "fs/vfs.h"
#include "kernel/cpu/clock.h"

#define INODE_ATIME 1u
#define INODE_MTIME 2u
#define INODE_CTIME 4u

#define NS_PER_SECOND 1000000000ul

/* Sets the times named by `which` to now. rwlock held exclusive, or nobody else knows the inode. */
static inline void inode_touch(struct inode *inode, unsigned which)
{
    u64 now = clock_wall_ns();
    s64 seconds = now / NS_PER_SECOND;
    u32 ns = now % NS_PER_SECOND;

    if (which & INODE_ATIME)
        inode->atime = seconds, inode->atime_ns = ns;
    if (which & INODE_MTIME)
        inode->mtime = seconds, inode->mtime_ns = ns;
    if (which & INODE_CTIME)
        inode->ctime = seconds, inode->ctime_ns = ns;
}

#endif
