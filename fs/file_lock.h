/*
 * Advisory locks on files: fcntl(2) ranges (of a table of open files, or of one open file) and
 * flock(2). The two kinds do not see each other.
 */
#ifndef FS_FILE_LOCK_H
#define FS_FILE_LOCK_H

#include "fs/vfs.h"

enum file_lock_kind { FILE_LOCK_RANGE, FILE_LOCK_WHOLE };
enum file_lock_mode { FILE_LOCK_NONE, FILE_LOCK_SHARED, FILE_LOCK_EXCLUSIVE };

#define FILE_LOCK_TO_END (~0ul)

struct file_lock_spec {
    enum file_lock_kind kind;
    enum file_lock_mode mode;
    u64 first, last;   /* bytes, inclusive; last FILE_LOCK_TO_END: whatever the file grows to */
    const void *owner; /* locks of one owner never conflict */
    s32 pid;           /* as F_GETLK shows it */
};

/*
 * Sets the owner's lock on the range; mode NONE takes it away.
 *   waits  sleep until nobody's lock conflicts
 * => 0; -EAGAIN, -ERESTARTSYS, -ENOLCK (out of memory). May sleep.
 */
int file_lock_set(struct inode *inode, const struct file_lock_spec *spec, bool waits);
/* => whether another's lock conflicts; then *spec becomes that lock. */
bool file_lock_test(struct inode *inode, struct file_lock_spec *spec);
/* Takes all of an owner's locks away. May sleep. */
void file_lock_drop_owner(struct inode *inode, const void *owner);

/* A process closes one of its descriptors: all its locks on the file go (fcntl(2)). */
static inline void file_close_for(struct file *file, const void *owner)
{
    if (!list_is_empty(&file->inode->locks))
        file_lock_drop_owner(file->inode, owner);
    file_put(file);
}

#endif
