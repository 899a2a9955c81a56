/*
 * Paths of system calls: where the name that a program gives begins, and what it leads to.
 */
#ifndef KERNEL_SYSCALL_PATH_H
#define KERNEL_SYSCALL_PATH_H

#include "kernel/syscall/syscall.h"

#define AT_FDCWD            (-100)
#define AT_SYMLINK_NOFOLLOW 0x100u
#define AT_EACCESS          0x200u
#define AT_REMOVEDIR        0x200u
#define AT_SYMLINK_FOLLOW   0x400u
#define AT_NO_AUTOMOUNT     0x800u
#define AT_EMPTY_PATH       0x1000u
#define AT_STATX_SYNC       0x6000u /* how fresh the answer must be: it always is */

/* The path of an *at call, and the directory that it starts from if it is relative. */
struct syscall_at {
    char *path;
    struct inode *dir; /* with a reference */
    char *dir_path;    /* its absolute path */
};

/* => 0 (syscall_at_end it); -EFAULT, -ENAMETOOLONG, -ENOMEM, -EBADF, -ENOTDIR. May sleep. */
int syscall_at_begin(struct syscall_at *at, u64 dirfd, u64 user_path);
void syscall_at_end(struct syscall_at *at);

/*
 * What an *at call names.
 *   flags  AT_SYMLINK_NOFOLLOW; AT_EMPTY_PATH: an empty path is dirfd itself
 * => 0 and *out with a reference; as syscall_at_begin and vfs_lookup. May sleep.
 */
int syscall_lookup(u64 dirfd, u64 user_path, u32 flags, struct inode **out);

#endif
