/*
 * Within fs: trees of generated files. Other rooms use textfs_add() of fs/vfs.h.
 */
#ifndef FS_TEXTFS_H
#define FS_TEXTFS_H

#include "fs/vfs.h"

struct text_node {
    struct inode *inode;           /* holds a reference */
    struct text_node *parent;      /* NULL: the root */
    struct list children;          /* of a directory */
    struct list link;              /* in the parent's children */
    const struct text_file *entry; /* NULL: a directory */
    char name[];
};

/* Leaves with show and store. The text is made when the file is read from its beginning, and kept
 * with the open file, so that reading it in pieces gives one state. */
extern const struct file_ops file_ops_text;

/* An empty tree. Panics when out of memory. */
struct super_block *textfs_create(const char *type);
/* Tests: nothing of it is open, no entry is used any more. May sleep. */
void textfs_destroy(struct super_block *super);

#endif
