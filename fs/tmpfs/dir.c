/*
 * tmpfs: directories and symbolic links.
 *
 * Entries stand in a list in the order they were made, each with a number that is never used again
 * in this directory: getdents goes on behind the number it has reached, whatever was removed or
 * made meanwhile. Names are found by hash once there are more than a few.
 *
 * A directory's rwlock guards its entries; tmpfs_tree_lock guards who is whose parent, so that ".."
 * and the walk to the root take no lock of a directory.
 */
#include "fs/tmpfs/tmpfs.h"

#include "fs/inode_time.h"
#include "lib/errno.h"
#include "lib/hash.h"
#include "lib/string.h"
#include "mm/core/slab.h"

#define POS_DOT          0
#define POS_DOT_DOT      1
#define POS_FIRST_ENTRY  2
#define FEW_ENTRIES      16 /* up to here names are searched one by one */
#define ENTRIES_A_BUCKET 2
#define BUCKETS_GROW     4
#define ENTRY_SIZE_BYTES 20 /* what one entry adds to st_size of the directory */

/* ---- Names ---- */

static u32 bucket_of(const struct tmpfs_node *node, const char *name, size_t len)
{
    return mix64(hash_bytes(name, len)) & (node->n_buckets - 1);
}

static bool has_name(const struct tmpfs_entry *entry, const char *name, size_t len)
{
    return entry->len == len && memcmp(entry->name, name, len) == 0;
}

static struct tmpfs_entry *find_entry(const struct tmpfs_node *node, const char *name, size_t len)
{
    struct tmpfs_entry *entry;

    if (!node->buckets) {
        list_for_each (entry, &node->entries, link) {
            if (has_name(entry, name, len))
                return entry;
        }
        return NULL;
    }
    list_for_each (entry, &node->buckets[bucket_of(node, name, len)], hash_link) {
        if (has_name(entry, name, len))
            return entry;
    }
    return NULL;
}

static void hash_entry(struct tmpfs_node *node, struct tmpfs_entry *entry)
{
    if (node->buckets)
        list_add_head(&node->buckets[bucket_of(node, entry->name, entry->len)], &entry->hash_link);
}

/* More buckets, where memory allows. */
static void grow_buckets(struct tmpfs_node *node)
{
    u32 n = node->n_buckets ? node->n_buckets * BUCKETS_GROW : FEW_ENTRIES;
    struct list *buckets = kmalloc(n * sizeof(*buckets));
    struct tmpfs_entry *entry;

    if (!buckets)
        return;
    for (u32 i = 0; i < n; i++)
        list_init(&buckets[i]);
    kfree(node->buckets);
    node->buckets = buckets;
    node->n_buckets = n;
    list_for_each (entry, &node->entries, link)
        hash_entry(node, entry);
}

static struct tmpfs_entry *entry_alloc(const char *name, size_t len)
{
    struct tmpfs_entry *entry = kzalloc(sizeof(*entry) + len + 1);

    if (!entry)
        return NULL;
    memcpy(entry->name, name, len);
    entry->len = len;
    list_init(&entry->link);
    list_init(&entry->hash_link);
    return entry;
}

/* The reference on the inode passes to the entry. */
static void entry_insert(struct inode *dir, struct tmpfs_entry *entry, struct inode *inode)
{
    struct tmpfs_node *node = tmpfs_node(dir);

    if (node->n_entries >= FEW_ENTRIES && node->n_entries >= node->n_buckets * ENTRIES_A_BUCKET)
        grow_buckets(node);
    entry->inode = inode;
    entry->cookie = POS_FIRST_ENTRY + node->next_cookie++;
    list_add_tail(&node->entries, &entry->link);
    hash_entry(node, entry);
    node->n_entries++;
    dir->cache.size_bytes += ENTRY_SIZE_BYTES;
    inode_touch(dir, INODE_MTIME | INODE_CTIME);
}

/* => the inode, with the entry's reference */
static struct inode *entry_remove(struct inode *dir, struct tmpfs_entry *entry)
{
    struct tmpfs_node *node = tmpfs_node(dir);
    struct inode *inode = entry->inode;

    list_del(&entry->link);
    list_del(&entry->hash_link);
    kfree(entry);
    node->n_entries--;
    dir->cache.size_bytes -= ENTRY_SIZE_BYTES;
    inode_touch(dir, INODE_MTIME | INODE_CTIME);
    return inode;
}

static void set_parent(struct inode *dir, struct inode *parent)
{
    spin_lock(&tmpfs_tree_lock);
    tmpfs_node(dir)->parent = parent;
    spin_unlock(&tmpfs_tree_lock);
}

/* ---- Looking ---- */

static int lookup_parent(struct inode *dir, struct inode **out)
{
    struct inode *parent;

    spin_lock(&tmpfs_tree_lock);
    parent = tmpfs_node(dir)->parent;
    if (parent)
        inode_hold(parent);
    spin_unlock(&tmpfs_tree_lock);
    *out = parent;
    return parent ? 0 : -ENOENT;
}

static int dir_lookup(struct inode *dir, const char *name, size_t len, struct inode **out)
{
    struct tmpfs_entry *entry;

    if (len == 2 && name[0] == '.' && name[1] == '.')
        return lookup_parent(dir, out);
    entry = find_entry(tmpfs_node(dir), name, len);
    if (!entry)
        return -ENOENT;
    inode_hold(entry->inode);
    *out = entry->inode;
    return 0;
}

static u64 parent_ino(struct inode *dir)
{
    struct inode *parent;
    u64 ino = dir->ino;

    spin_lock(&tmpfs_tree_lock);
    parent = tmpfs_node(dir)->parent;
    if (parent)
        ino = parent->ino;
    spin_unlock(&tmpfs_tree_lock);
    return ino;
}

static int dir_iterate(struct inode *dir, u64 *pos, dir_emit emit, void *ctx)
{
    struct tmpfs_entry *entry;

    if (*pos == POS_DOT) {
        if (emit(ctx, ".", 1, dir->ino, DT_OF_MODE(S_IFDIR), POS_DOT_DOT))
            return 0;
        *pos = POS_DOT_DOT;
    }
    if (*pos == POS_DOT_DOT) {
        if (emit(ctx, "..", 2, parent_ino(dir), DT_OF_MODE(S_IFDIR), POS_FIRST_ENTRY))
            return 0;
        *pos = POS_FIRST_ENTRY;
    }
    list_for_each (entry, &tmpfs_node(dir)->entries, link) {
        const struct inode *inode = entry->inode;

        if (entry->cookie < *pos)
            continue;
        if (emit(ctx, entry->name, entry->len, inode->ino, DT_OF_MODE(inode->mode),
                 entry->cookie + 1))
            break;
        *pos = entry->cookie + 1;
    }
    return 0;
}

static bool dir_is_below(struct inode *dir, const struct inode *ancestor)
{
    bool is_below = false;

    spin_lock(&tmpfs_tree_lock);
    for (struct inode *at = dir; at && !is_below; at = tmpfs_node(at)->parent)
        is_below = at == ancestor;
    spin_unlock(&tmpfs_tree_lock);
    return is_below;
}

static ssize_t link_read(struct inode *inode, char *buf, size_t size)
{
    size_t len = MIN(inode->cache.size_bytes, size);

    memcpy(buf, tmpfs_node(inode)->target, len);
    return len;
}

/* ---- Changing ---- */

static bool is_removed(const struct inode *dir)
{
    return dir->nlink == 0;
}

/* A directory that gets its place: "." and "..". */
static void dir_enter_tree(struct inode *dir, struct inode *parent)
{
    dir->nlink = 2;
    parent->nlink++;
    set_parent(dir, parent);
}

static int dir_create(struct inode *dir, const char *name, size_t len, const struct inode_new *what,
                      struct inode **out)
{
    struct tmpfs_entry *entry;
    struct inode *inode;
    int error;

    if (is_removed(dir))
        return -ENOENT;
    entry = entry_alloc(name, len);
    if (!entry)
        return -ENOMEM;
    inode = tmpfs_inode_create(dir->super, what, &error);
    if (!inode) {
        kfree(entry);
        return error;
    }
    inode->nlink = 1;
    if (inode_is_dir(inode))
        dir_enter_tree(inode, dir);
    entry_insert(dir, entry, inode);
    inode_hold(inode);
    *out = inode;
    return 0;
}

static int dir_create_unnamed(struct inode *dir, const struct inode_new *what, struct inode **out)
{
    int error;

    if (is_removed(dir))
        return -ENOENT;
    *out = tmpfs_inode_create(dir->super, what, &error);
    return *out ? 0 : error;
}

static int dir_link(struct inode *dir, const char *name, size_t len, struct inode *inode)
{
    struct tmpfs_entry *entry;

    if (is_removed(dir) || inode->nlink == 0)
        return -ENOENT;
    entry = entry_alloc(name, len);
    if (!entry)
        return -ENOMEM;
    inode_hold(inode);
    atomic_add(&inode->nlink, 1);
    inode_touch(inode, INODE_CTIME);
    entry_insert(dir, entry, inode);
    return 0;
}

/* The inode has lost its name in `dir`. */
static void note_unlinked(struct inode *dir, struct inode *inode)
{
    if (inode_is_dir(inode)) {
        set_parent(inode, NULL);
        inode->nlink = 0;
        dir->nlink--;
    } else {
        atomic_sub(&inode->nlink, 1);
    }
    inode_touch(inode, INODE_CTIME);
}

static int check_removable(const struct inode *inode)
{
    return inode_is_dir(inode) && tmpfs_node(inode)->n_entries > 0 ? -ENOTEMPTY : 0;
}

static int dir_unlink(struct inode *dir, const char *name, size_t len, struct inode *inode)
{
    int error = check_removable(inode);

    if (error)
        return error;
    entry_remove(dir, find_entry(tmpfs_node(dir), name, len));
    note_unlinked(dir, inode);
    inode_put(inode); /* the entry's reference; the caller has one */
    return 0;
}

/* A directory's ".." now says `to`. */
static void move_parent(struct inode *inode, struct inode *from, struct inode *to)
{
    if (!inode_is_dir(inode) || from == to)
        return;
    set_parent(inode, to);
    from->nlink--;
    to->nlink++;
}

static void exchange(const struct inode_rename *r)
{
    struct tmpfs_entry *a = find_entry(tmpfs_node(r->from_dir), r->from_name, r->from_len);
    struct tmpfs_entry *b = find_entry(tmpfs_node(r->to_dir), r->to_name, r->to_len);

    a->inode = r->replaced;
    b->inode = r->moved;
    move_parent(r->moved, r->from_dir, r->to_dir);
    move_parent(r->replaced, r->to_dir, r->from_dir);
    inode_touch(r->from_dir, INODE_MTIME | INODE_CTIME);
    inode_touch(r->to_dir, INODE_MTIME | INODE_CTIME);
    inode_touch(r->replaced, INODE_CTIME);
}

/* The new name: an entry that was there already changes hands, so it keeps its place in listings.
 */
static int dir_rename(const struct inode_rename *r)
{
    struct tmpfs_entry *to = find_entry(tmpfs_node(r->to_dir), r->to_name, r->to_len);
    int error = r->replaced && !r->exchange ? check_removable(r->replaced) : 0;

    if (is_removed(r->to_dir))
        error = -ENOENT;
    if (error)
        return error;
    inode_touch(r->moved, INODE_CTIME);
    if (r->exchange) {
        exchange(r);
        return 0;
    }
    if (!to) {
        to = entry_alloc(r->to_name, r->to_len);
        if (!to)
            return -ENOMEM;
        entry_insert(r->to_dir, to, r->moved);
    } else {
        note_unlinked(r->to_dir, r->replaced);
        to->inode = r->moved;
        inode_put(r->replaced); /* the caller has a reference */
        inode_touch(r->to_dir, INODE_MTIME | INODE_CTIME);
    }
    entry_remove(r->from_dir, find_entry(tmpfs_node(r->from_dir), r->from_name, r->from_len));
    move_parent(r->moved, r->from_dir, r->to_dir);
    return 0;
}

void tmpfs_dir_empty(struct inode *dir)
{
    struct tmpfs_entry *entry, *next;

    list_for_each_safe (entry, next, &tmpfs_node(dir)->entries, link) {
        struct inode *inode = entry->inode;

        if (inode_is_dir(inode))
            tmpfs_dir_empty(inode);
        entry_remove(dir, entry);
        note_unlinked(dir, inode);
        inode_put(inode);
    }
}

const struct inode_ops tmpfs_dir_ops = {
    .lookup = dir_lookup,
    .iterate = dir_iterate,
    .evict = tmpfs_inode_evict,
    .create = dir_create,
    .create_unnamed = dir_create_unnamed,
    .link = dir_link,
    .unlink = dir_unlink,
    .rename = dir_rename,
    .is_below = dir_is_below,
};

const struct inode_ops tmpfs_link_ops = {
    .readlink = link_read,
    .evict = tmpfs_inode_evict,
};

const struct inode_ops tmpfs_special_ops = {
    .evict = tmpfs_inode_evict,
};
