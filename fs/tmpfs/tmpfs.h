/*
 * Within tmpfs: what an inode holds beside its pages, and who counts them.
 *
 * An inode lives while it has a name or is open: each directory entry holds a reference, each open
 * file holds one. They are in no table, so nothing drops them.
 */
#ifndef FS_TMPFS_TMPFS_H
#define FS_TMPFS_TMPFS_H

#include "fs/tmpfs.h"

/* What inode->fs_private points at. */
struct tmpfs_node {
    /* Directories; the inode's rwlock. */
    struct list entries;  /* tmpfs_entry.link, in rising order of cookie */
    struct list *buckets; /* tmpfs_entry.hash_link by name; NULL while there are few */
    u32 n_buckets;        /* power of two */
    u32 n_entries;
    u64 next_cookie;
    struct inode *parent; /* tmpfs_tree_lock; no reference: it is not empty. NULL: root, removed */

    char *target; /* symbolic links */
    u32 target_pages;
    bool is_uncounted;  /* pages do not count against the limit */
    u64 promised_pages; /* charged at once; 0: each page when it is there (mm/commit.h) */
};

struct tmpfs_entry {
    struct list link, hash_link;
    struct inode *inode; /* holds a reference */
    u64 cookie;          /* its position for getdents */
    u32 len;
    char name[];
};

static inline struct tmpfs_node *tmpfs_node(const struct inode *inode)
{
    return inode->fs_private;
}

extern struct spinlock tmpfs_tree_lock; /* the parents of directories; leaf but for inode counts */
extern const struct inode_ops tmpfs_dir_ops, tmpfs_link_ops, tmpfs_file_ops, tmpfs_special_ops;
extern const struct file_ops file_ops_tmpfs;
extern const struct page_cache_ops tmpfs_cache_ops;

/* super.c. => new inode, not yet in a directory; NULL with *error: -ENOSPC, -ENOMEM. May sleep. */
struct inode *tmpfs_inode_create(struct super_block *super, const struct inode_new *what,
                                 int *error);
void tmpfs_inode_evict(struct inode *inode);
/* Room for n pages. => whether there is. Never sleeps. */
bool tmpfs_charge(struct inode *inode, u64 n_pages);
void tmpfs_uncharge(struct inode *inode, u64 n_pages);

/* dir.c: removes every entry (unmount). May sleep. */
void tmpfs_dir_empty(struct inode *dir);

/* file.c */
int tmpfs_set_size(struct inode *inode, u64 size_bytes);
/* allocate.c */
int tmpfs_allocate(struct inode *inode, u32 mode, u64 offset, u64 len);
/* Before the file grows: what a mapping stored behind the end, in the last page, is not data. */
void tmpfs_clear_behind_end(struct inode *inode);
s64 tmpfs_seek_data(struct inode *inode, u64 pos, bool want_hole);
/* The page, locked, up to date and referenced; made where it is absent. rwlock held exclusive.
 * => 0; -ENOSPC, -ENOMEM. May sleep. */
int tmpfs_get_page_locked(struct inode *inode, pgoff_t index, struct page **out);

#endif
