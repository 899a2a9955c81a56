/*
 * tmpfs: mounting, inodes, and how much memory all files in memory together may take.
 *
 * Pages are counted when they become up to date and when they leave their cache. The limit is one
 * for all instances: what counts is that programs can still run when /tmp is full.
 */
#include "fs/tmpfs/tmpfs.h"

#include "fs/inode_time.h"
#include "kernel/log/log.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/commit.h"
#include "mm/core/frames.h"
#include "mm/core/slab.h"

#define ROOT_MODE          (S_IFDIR | 01777)
#define MEMORY_PER_LIMIT   2   /* half of memory for pages */
#define FRAMES_PER_INODE   4   /* one inode for each four frames of memory */
#define SHORT_TARGET_BYTES 128 /* of a symbolic link: does not count as a page */

static LOCK_CLASS(tree_lock_class, "tmpfs tree");
struct spinlock tmpfs_tree_lock = SPINLOCK_INIT(&tree_lock_class);

static u64 pages_used, pages_counted; /* atomic; the second without what is uncounted */
static u64 inodes_used;               /* atomic */
static u64 limit_for_tests;           /* pages; 0: the usual limit */
static u32 no_read_ahead_kb;          /* there is nothing to read */

u64 tmpfs_pages_used(void)
{
    return atomic_load(&pages_used);
}

u64 tmpfs_pages_limit(void)
{
    u64 limit = atomic_load(&limit_for_tests);

    return limit ? limit : frames_total() / MEMORY_PER_LIMIT;
}

void tmpfs_set_pages_limit(u64 n_pages)
{
    atomic_store(&limit_for_tests, n_pages);
}

bool tmpfs_charge(struct inode *inode, u64 n_pages)
{
    bool is_promised = tmpfs_node(inode)->promised_pages != 0;

    if (!is_promised && commit_charge(task_current()->mm, n_pages))
        return false;
    if (!tmpfs_node(inode)->is_uncounted &&
        atomic_add(&pages_counted, n_pages) > tmpfs_pages_limit()) {
        atomic_sub(&pages_counted, n_pages);
        if (!is_promised)
            commit_uncharge(n_pages);
        return false;
    }
    atomic_add(&pages_used, n_pages);
    atomic_add(&inode->blocks_512, n_pages * SECTORS_PER_PAGE);
    return true;
}

void tmpfs_uncharge(struct inode *inode, u64 n_pages)
{
    if (!tmpfs_node(inode)->promised_pages)
        commit_uncharge(n_pages);
    if (!tmpfs_node(inode)->is_uncounted)
        atomic_sub(&pages_counted, n_pages);
    atomic_sub(&pages_used, n_pages);
    atomic_sub(&inode->blocks_512, n_pages * SECTORS_PER_PAGE);
}

/* ---- Inodes ---- */

static const struct inode_ops *ops_for(u32 mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR: return &tmpfs_dir_ops;
    case S_IFLNK: return &tmpfs_link_ops;
    case S_IFREG: return &tmpfs_file_ops;
    default: return &tmpfs_special_ops;
    }
}

static int keep_target(struct inode *inode, const char *target)
{
    struct tmpfs_node *node = tmpfs_node(inode);
    size_t len = strlen(target);

    if (len > SHORT_TARGET_BYTES) {
        if (!tmpfs_charge(inode, 1))
            return -ENOSPC;
        node->target_pages = 1;
    }
    node->target = kmalloc(len + 1);
    if (!node->target)
        return -ENOMEM;
    memcpy(node->target, target, len + 1);
    inode->cache.size_bytes = len;
    return 0;
}

static struct inode *inode_with_node(struct super_block *super, u32 mode)
{
    struct tmpfs_node *node = kzalloc(sizeof(*node));
    struct inode *inode = node ? inode_new_anonymous(super, mode) : NULL;

    if (!inode) {
        kfree(node);
        return NULL;
    }
    list_init(&node->entries);
    inode->fs_private = node;
    inode->ops = ops_for(mode);
    inode->nlink = 0;
    inode->cache.ops = &tmpfs_cache_ops;
    inode->cache.read_ahead_kb = &no_read_ahead_kb;
    inode->cache.max_request_pages = 1;
    if (inode_is(inode, S_IFREG))
        inode->file_ops = &file_ops_tmpfs;
    inode_touch(inode, INODE_ATIME | INODE_MTIME | INODE_CTIME);
    return inode;
}

struct inode *tmpfs_inode_create(struct super_block *super, const struct inode_new *what,
                                 int *error)
{
    struct inode *inode;

    *error = -ENOSPC;
    if (atomic_add(&inodes_used, 1) > frames_total() / FRAMES_PER_INODE) {
        atomic_sub(&inodes_used, 1);
        return NULL;
    }
    *error = -ENOMEM;
    inode = inode_with_node(super, what->mode);
    if (!inode) {
        atomic_sub(&inodes_used, 1);
        return NULL;
    }
    inode->rdev = what->rdev;
    *error = what->target ? keep_target(inode, what->target) : 0;
    if (*error) {
        inode_put(inode);
        return NULL;
    }
    return inode;
}

void tmpfs_inode_evict(struct inode *inode)
{
    struct tmpfs_node *node = tmpfs_node(inode);

    ASSERT(list_is_empty(&node->entries));
    if (node->target_pages)
        tmpfs_uncharge(inode, node->target_pages);
    ASSERT(inode->blocks_512 == 0);
    commit_uncharge(node->promised_pages);
    kfree(node->target);
    kfree(node->buckets);
    kfree(node);
    atomic_sub(&inodes_used, 1);
}

/* ---- The file system ---- */

static void tmpfs_statfs(struct super_block *sb, u64 *blocks, u64 *free_blocks, u64 *files,
                         u64 *free_files)
{
    u64 used = atomic_load(&pages_counted), n_inodes = atomic_load(&inodes_used);

    (void)sb;
    *blocks = tmpfs_pages_limit();
    *free_blocks = *blocks - MIN(used, *blocks);
    *files = frames_total() / FRAMES_PER_INODE;
    *free_files = *files - MIN(n_inodes, *files);
}

struct super_block *tmpfs_create(void)
{
    struct super_block *super = kzalloc(sizeof(*super));
    int error = -ENOMEM;

    if (!super)
        return NULL;
    super->type = "tmpfs";
    super->dev = super_anonymous_dev();
    super->block_bytes = PAGE_SIZE;
    super->statfs = tmpfs_statfs;
    super->root = tmpfs_inode_create(super, &(struct inode_new){.mode = ROOT_MODE}, &error);
    if (!super->root) {
        kfree(super);
        return NULL;
    }
    super->root->nlink = 2;
    return super;
}

void tmpfs_destroy(struct super_block *super)
{
    tmpfs_dir_empty(super->root);
    inode_put(super->root);
    kfree(super);
}

/* Of files without a name; mounted nowhere. */
static struct super_block unnamed_super = {
    .type = "tmpfs",
    .block_bytes = PAGE_SIZE,
    .statfs = tmpfs_statfs,
};

static int promise(struct inode *inode, u64 n_pages)
{
    int error = commit_charge(task_current()->mm, n_pages);

    if (!error)
        tmpfs_node(inode)->promised_pages = n_pages;
    return error;
}

struct file *tmpfs_open_unnamed(const char *name, u64 size_bytes, enum tmpfs_file_kind kind,
                                int *error)
{
    static const struct inode_new what = {.mode = S_IFREG | 0777};
    struct inode *inode = tmpfs_inode_create(&unnamed_super, &what, error);
    struct file *file;

    if (!inode)
        return NULL;
    if (unnamed_super.dev == 0)
        unnamed_super.dev = super_anonymous_dev();
    tmpfs_node(inode)->is_uncounted = kind != TMPFS_MEMFD;
    inode->cache.size_bytes = size_bytes;
    file = NULL;
    *error = kind == TMPFS_SHARED_ANON ? promise(inode, size_bytes / PAGE_SIZE) : 0;
    if (!*error)
        file = file_open_inode(inode, O_RDWR, name, error);
    inode_put(inode);
    return file;
}
