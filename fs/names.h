/*
 * Calls that change names and attributes: what mkdir, unlink, rename, chmod and their like come to.
 *
 * Paths are given as to vfs_lookup(). The checks, and the locks of directories, are here; what a
 * name is belongs to the file system's inode_ops. All may sleep, no lock held on entry. File
 * systems that cannot be changed (read-only, generated files) answer -EROFS for names, -EPERM for
 * sizes.
 */
#ifndef FS_NAMES_H
#define FS_NAMES_H

#include "fs/vfs.h"

enum name_kind { NAME_PLAIN, NAME_ROOT, NAME_DOT, NAME_DOT_DOT };

/* A name and the directory that it is or will be in. */
struct name_place {
    struct inode *dir; /* with a reference */
    char *full; /* absolute path of the name; where `dir` was reached by a link, without it */
    enum name_kind kind;
    bool has_slash; /* the path goes on with a slash: it can only be a directory */
    size_t len;
    char name[NAME_MAX_BYTES + 1];
};

/* Walks to the directory of the path's last name, following links on the way but not that name.
 * => 0 (name_place_put it); as vfs_lookup */
int vfs_lookup_parent(struct inode *base, const char *base_path, const char *path,
                      struct name_place *place);
void name_place_put(struct name_place *place);

/* A new inode at the path: mkdir, mknod, symlink.
 * => 0 and *out with a reference (out may be NULL); -EEXIST, -ENOENT, -ENOSPC, … */
int vfs_create(struct inode *base, const char *base_path, const char *path,
               const struct inode_new *what, struct inode **out);
/* A new file of `dir`'s file system that has no name there. => 0 and *out with a reference; -ENOTDIR,
 * -EROFS, -EOPNOTSUPP, -ENOENT (the directory has been removed), -ENOSPC, -ENOMEM. May sleep. */
int vfs_create_unnamed(struct inode *dir, const struct inode_new *what, struct inode **out);
/* As vfs_create in a directory that was walked to, for open(O_CREAT): made, or found because another
 * was first (*is_new tells). => 0 and *out with a reference, or error */
int vfs_create_in(struct inode *dir, const char *name, size_t len, const struct inode_new *what,
                  bool *is_new, struct inode **out);
/* wants_dir: rmdir. => 0; -EISDIR, -ENOTDIR, -ENOTEMPTY, -EBUSY (something is mounted there), … */
int vfs_unlink(struct inode *base, const char *base_path, const char *path, bool wants_dir);
/* => 0; -EXDEV, -EPERM (a directory), -EEXIST, … */
int vfs_link(struct inode *inode, struct inode *base, const char *base_path, const char *path);

#define RENAME_NOREPLACE 1u
#define RENAME_EXCHANGE  2u

struct rename_path {
    struct inode *base;
    const char *base_path, *path;
};
/* => 0; -EINVAL (into itself), -EXDEV, -EISDIR, -ENOTDIR, -ENOTEMPTY, -EBUSY, -EEXIST, … */
int vfs_rename(const struct rename_path *from, const struct rename_path *to, u32 flags);

/* The file's size. => 0; -EISDIR, -EINVAL (no regular file), -EROFS, -EFBIG, … */
int vfs_set_size(struct inode *inode, u64 size_bytes);
/* fallocate. => 0; -EOPNOTSUPP, -EFBIG, -ENOSPC, … */
int vfs_allocate(struct inode *inode, u32 mode, s64 offset, s64 len);

struct inode_times {
    bool set_atime, set_mtime;
    s64 atime, mtime;
    u32 atime_ns, mtime_ns;
};
int vfs_set_mode(struct inode *inode, u32 permissions);   /* 07777 */
int vfs_set_owner(struct inode *inode, u32 uid, u32 gid); /* ~0u: stays */
int vfs_set_times(struct inode *inode, const struct inode_times *times);

#endif
