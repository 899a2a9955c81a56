/*
 * Where a process stands in the tree of names: working directory and umask. Shared by what CLONE_FS joins.
 */
#ifndef KERNEL_TASK_FS_CONTEXT_H
#define KERNEL_TASK_FS_CONTEXT_H

#include "fs/vfs.h"

struct fs_context {
    s32 refs;
    struct spinlock lock;      /* the fields below */
    struct inode *working_dir; /* one reference */
    char working_path[PATH_MAX_BYTES];
    u32 umask;
};

/* At the root, umask 022, one reference. NULL when out of memory. */
struct fs_context *fs_context_create(void);
struct fs_context *fs_context_copy(struct fs_context *from); /* NULL when out of memory */
void fs_context_get(struct fs_context *fs);
void fs_context_put(struct fs_context *fs); /* may sleep */

/* The directory with a reference for the caller (inode_put), its path copied to `path` (PATH_MAX_BYTES) unless NULL. */
struct inode *fs_context_dir(struct fs_context *fs, char *path);
/* Moves there; the reference on dir passes to it. May sleep. */
void fs_context_set_dir(struct fs_context *fs, struct inode *dir, const char *path);

#endif
