/*
 * Trees of generated files: /proc, /sys and /dev. A node is a directory, or a leaf that shows a
 * table entry (struct text_file). What open leaves do is in fs/textfs_file.c.
 *
 * Rules:
 *   - Nodes are added and never removed; each has an inode of its own for ever.
 *   - children lists grow under tree_lock and are searched under it. It is never held while an
 *     entry is emitted, so a listing goes by ordinal: child number n is at position n + 2.
 */
#include "fs/textfs.h"

#include "kernel/cpu/clock.h"
#include "kernel/log/log.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"

#define DOT_ENTRIES    2 /* "." and ".." come first in a listing */
#define DIRECTORY_BITS 0555u
#define LINK_BITS      0777u
#define NS_PER_S       1000000000ul
#define TEXTFS_BLOCK   4096u

static LOCK_CLASS(tree_lock_class, "textfs tree");
static struct spinlock tree_lock = SPINLOCK_INIT(&tree_lock_class);

static struct text_node *node_of(const struct inode *inode)
{
    return inode->fs_private;
}

const struct text_file *text_file_of(const struct inode *inode)
{
    return node_of(inode)->entry;
}

static struct text_node *find_child_locked(struct text_node *dir, const char *name, size_t len)
{
    struct text_node *child;

    list_for_each (child, &dir->children, link)
        if (strlen(child->name) == len && memcmp(child->name, name, len) == 0)
            return child;
    return NULL;
}

static struct text_node *find_child(struct text_node *dir, const char *name, size_t len)
{
    struct text_node *child;

    spin_lock(&tree_lock);
    child = find_child_locked(dir, name, len);
    spin_unlock(&tree_lock);
    return child;
}

static struct text_node *nth_child(struct text_node *dir, u64 n)
{
    struct text_node *child, *found = NULL;

    spin_lock(&tree_lock);
    list_for_each (child, &dir->children, link) {
        if (n-- == 0) {
            found = child;
            break;
        }
    }
    spin_unlock(&tree_lock);
    return found;
}

static int textfs_lookup(struct inode *dir, const char *name, size_t len, struct inode **out)
{
    struct text_node *node = node_of(dir), *found;

    if (len == 2 && memcmp(name, "..", 2) == 0)
        found = node->parent ? node->parent : node;
    else
        found = find_child(node, name, len);
    if (!found)
        return -ENOENT;
    inode_hold(found->inode);
    *out = found->inode;
    return 0;
}

static int emit_node(struct text_node *node, const char *name, u64 pos, dir_emit emit, void *ctx)
{
    return emit(ctx, name, strlen(name), node->inode->ino, DT_OF_MODE(node->inode->mode), pos + 1);
}

static int textfs_iterate(struct inode *dir, u64 *pos, dir_emit emit, void *ctx)
{
    struct text_node *node = node_of(dir), *child;
    int full = 0;

    if (*pos == 0 && !(full = emit_node(node, ".", *pos, emit, ctx)))
        ++*pos;
    if (*pos == 1 && !(full = emit_node(node->parent ? node->parent : node, "..", *pos, emit, ctx)))
        ++*pos;
    while (!full && (child = nth_child(node, *pos - DOT_ENTRIES)) != NULL) {
        full = emit_node(child, child->name, *pos, emit, ctx);
        if (!full)
            ++*pos;
    }
    return 0;
}

static ssize_t textfs_readlink(struct inode *inode, char *buf, size_t size)
{
    const struct text_file *entry = node_of(inode)->entry;

    return entry->link(entry->arg, buf, size);
}

/* -EPERM: every write replaces such a file anyway, so O_TRUNC means nothing. */
static int textfs_set_size(struct inode *inode, u64 size_bytes)
{
    const struct text_file *entry = node_of(inode)->entry;

    if (!entry->truncate || size_bytes)
        return -EPERM;
    entry->truncate(entry->arg);
    return 0;
}

static const struct inode_ops directory_inode_ops = {
    .lookup = textfs_lookup,
    .iterate = textfs_iterate,
};
static const struct inode_ops leaf_inode_ops = {.set_size = textfs_set_size};
static const struct inode_ops link_inode_ops = {.readlink = textfs_readlink};

static u32 default_mode(const struct text_file *entry)
{
    u32 bits = 0;

    if (entry->link)
        return S_IFLNK | LINK_BITS;
    if (entry->show || (entry->ops && entry->ops->read))
        bits |= 0444;
    if (entry->store || (entry->ops && entry->ops->write))
        bits |= 0200;
    return S_IFREG | bits;
}

/* What a new inode is by its entry; NULL: a directory. */
static void fill_inode(struct inode *inode, const struct text_file *entry)
{
    inode->atime = inode->mtime = inode->ctime = clock_wall_ns() / NS_PER_S;
    if (!entry) {
        inode->nlink = 2; /* its name, and its own "." */
        inode->ops = &directory_inode_ops;
        inode->file_ops = &file_ops_directory;
        return;
    }
    inode->rdev = entry->rdev;
    inode->ops = entry->link ? &link_inode_ops : &leaf_inode_ops;
    /* Nodes of devices (own mode, no operations of their own) are opened by their number. */
    inode->file_ops = entry->ops ? entry->ops : entry->rdev ? NULL : &file_ops_text;
}

/* Not in any directory yet. => NULL when out of memory */
static struct text_node *node_create(struct super_block *super, const char *name, size_t len,
                                     const struct text_file *entry)
{
    u32 mode = S_IFDIR | DIRECTORY_BITS;
    struct text_node *node = kzalloc(sizeof(*node) + len + 1);

    if (entry)
        mode = entry->mode ? entry->mode : default_mode(entry);
    if (node)
        node->inode = inode_new_anonymous(super, mode);
    if (!node || !node->inode) {
        kfree(node);
        return NULL;
    }
    memcpy(node->name, name, len);
    node->entry = entry;
    list_init(&node->children);
    node->inode->fs_private = node;
    fill_inode(node->inode, entry);
    return node;
}

static void node_discard(struct text_node *node)
{
    inode_put(node->inode);
    kfree(node);
}

/* => the node now there: `fresh`, or one that somebody else was quicker to add */
static struct text_node *adopt(struct text_node *dir, struct text_node *fresh)
{
    struct text_node *present;

    spin_lock(&tree_lock);
    present = find_child_locked(dir, fresh->name, strlen(fresh->name));
    if (!present) {
        fresh->parent = dir;
        list_add_tail(&dir->children, &fresh->link);
        if (!fresh->entry)
            dir->inode->nlink++;
    }
    spin_unlock(&tree_lock);
    if (!present)
        return fresh;
    node_discard(fresh);
    return present;
}

/* Finds or makes dir/name. => NULL when out of memory */
static struct text_node *ensure_directory(struct super_block *super, struct text_node *dir,
                                          const char *name, size_t len)
{
    struct text_node *node = find_child(dir, name, len);

    if (!node)
        node = node_create(super, name, len, NULL);
    else
        return node;
    return node ? adopt(dir, node) : NULL;
}

/* The directories above the last name of a path: *path becomes that name, *dir where it belongs. */
static int ensure_parents(struct super_block *super, const char **path, struct text_node **dir)
{
    const char *slash;

    *dir = node_of(super->root);
    for (; (slash = strchr(*path, '/')) != NULL; *path = slash + 1) {
        if ((size_t)(slash - *path) > NAME_MAX_BYTES)
            return -ENAMETOOLONG;
        *dir = ensure_directory(super, *dir, *path, slash - *path);
        if (!*dir)
            return -ENOMEM;
        if ((*dir)->entry)
            return -ENOTDIR;
    }
    return strlen(*path) > NAME_MAX_BYTES ? -ENAMETOOLONG : 0;
}

int textfs_add_directory(struct super_block *super, const char *path)
{
    struct text_node *dir, *node;
    int error = ensure_parents(super, &path, &dir);

    if (error)
        return error;
    node = ensure_directory(super, dir, path, strlen(path));
    return !node ? -ENOMEM : node->entry ? -ENOTDIR : 0;
}

int textfs_add(struct super_block *super, const struct text_file *entry)
{
    struct text_node *dir, *node;
    const char *name = entry->path;
    int error = ensure_parents(super, &name, &dir);

    if (error)
        return error;
    if (find_child(dir, name, strlen(name)))
        return -EEXIST;
    node = node_create(super, name, strlen(name), entry);
    if (!node)
        return -ENOMEM;
    return adopt(dir, node) == node ? 0 : -EEXIST;
}

static void textfs_statfs(struct super_block *sb, u64 *blocks, u64 *free_blocks, u64 *files,
                          u64 *free_files)
{
    (void)sb;
    *blocks = *free_blocks = *files = *free_files = 0;
}

struct super_block *textfs_create(const char *type)
{
    struct super_block *super = kzalloc(sizeof(*super));
    struct text_node *root;

    if (!super)
        panic("%s: no memory for its root", type);
    super->type = type;
    super->dev = super_anonymous_dev();
    super->block_bytes = TEXTFS_BLOCK;
    super->statfs = textfs_statfs;
    root = node_create(super, "", 0, NULL);
    if (!root)
        panic("%s: no memory for its root", type);
    super->root = root->inode;
    return super;
}

/* A tree of a test: all of it, the entries stay the caller's. */
static void destroy_below(struct text_node *dir)
{
    struct text_node *child, *tmp;

    list_for_each_safe (child, tmp, &dir->children, link) {
        list_del(&child->link);
        destroy_below(child);
        node_discard(child);
    }
}

void textfs_destroy(struct super_block *super)
{
    struct text_node *root = node_of(super->root);

    destroy_below(root);
    node_discard(root);
    kfree(super);
}

static struct super_block *create_without_code(const char *type)
{
    struct super_block *super = textfs_create(type);

    if (super)
        super->is_no_exec = true;
    return super;
}

struct super_block *proc_create(void)
{
    return create_without_code("proc");
}

struct super_block *sysfs_create(void)
{
    return create_without_code("sysfs");
}
