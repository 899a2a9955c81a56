/*
 * Generated files outside the tree: a node with a copy of its entry, which lives as long as its
 * inode. Open ones work as any other (fs/textfs_file.c).
 */
#include "fs/textfs.h"

#include "kernel/cpu/clock.h"
#include "mm/core/slab.h"

#define NS_PER_S 1000000000ul

struct leaf {
    struct text_file entry;
    struct text_node node; /* last: its name, which is empty, has no size */
};

static struct leaf *leaf_of(const struct inode *inode)
{
    struct text_node *node = inode->fs_private;

    return container_of(node, struct leaf, node);
}

static void leaf_evict(struct inode *inode)
{
    kfree(leaf_of(inode));
}

static ssize_t leaf_readlink(struct inode *inode, char *buf, size_t size)
{
    const struct text_file *entry = &leaf_of(inode)->entry;

    return entry->link(entry->arg, buf, size);
}

static const struct inode_ops leaf_ops = {.evict = leaf_evict};
static const struct inode_ops leaf_link_ops = {.readlink = leaf_readlink, .evict = leaf_evict};

static u32 leaf_mode(const struct text_file *entry)
{
    if (entry->link)
        return S_IFLNK | 0777;
    if (entry->ops)
        return S_IFREG | entry->mode;
    return S_IFREG | (entry->show ? 0444 : 0) | (entry->store ? 0200 : 0);
}

struct inode *textfs_leaf_create(struct super_block *super, const struct text_file *entry, u64 ino)
{
    struct leaf *leaf = kzalloc(sizeof(*leaf) + 1);
    struct inode *inode = leaf ? inode_new_anonymous(super, leaf_mode(entry)) : NULL;

    if (!inode) {
        kfree(leaf);
        return NULL;
    }
    leaf->entry = *entry;
    leaf->node.inode = inode;
    leaf->node.entry = &leaf->entry;
    inode->ino = inode->cache.ino = ino;
    inode->fs_private = &leaf->node;
    inode->atime = inode->mtime = inode->ctime = clock_wall_ns() / NS_PER_S;
    inode->ops = entry->link ? &leaf_link_ops : &leaf_ops;
    inode->file_ops = entry->ops ? entry->ops : &file_ops_text;
    return inode;
}
