/*
 * The inode table: every inode of a file system on disk that is in memory, by super block and
 * number, so that one file has one page cache.
 *
 * Rules:
 *   - refs, state and both lists are guarded by table_lock; the rest of an inode belongs to its
 *     file system.
 *   - An inode that nobody uses goes to the end of the unused list with all its pages. Where that
 *     list is too long the oldest one is evicted.
 *   - An inode that is being evicted stays in the table until its pages are gone. Whoever wants the
 *     number meanwhile waits: otherwise two caches could hold pages of one file.
 *   - The memory goes after a grace period: reclaim, having taken the last page out, still has the
 *     cache's tree_lock to let go.
 */
#include "fs/vfs.h"

#include "kernel/log/log.h"
#include "kernel/sched/grace.h"
#include "lib/hash.h"
#include "mm/core/slab.h"

#define TABLE_BITS    8
#define UNUSED_MAX    512
#define ANONYMOUS_INO 1

static LOCK_CLASS(table_lock_class, "inode table");
/* Several at once: a directory and its parent, two directories of a rename (fs/names.c). */
static NESTING_SLEEP_LOCK_CLASS(inode_rwlock_class, "inode->rwlock");

static struct spinlock table_lock = SPINLOCK_INIT(&table_lock_class);
static struct list table[1u << TABLE_BITS];                          /* table_lock */
static struct list unused_inodes = LIST_INIT(unused_inodes);         /* table_lock; oldest first */
static unsigned n_unused;                                            /* table_lock */
static struct wait_queue state_queue = WAIT_QUEUE_INIT(state_queue); /* a state has changed */
static struct slab_cache *inode_cache;

void vfs_init(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        list_init(&table[i]);
    inode_cache = slab_cache_create("inode", sizeof(struct inode), 0);
}

static struct list *bucket_of(const struct super_block *super, u64 ino)
{
    return &table[hash_slot((u64)super ^ mix64(ino), TABLE_BITS)];
}

static struct inode *inode_alloc(struct super_block *super, u64 ino, bool is_meta)
{
    struct inode *inode = slab_alloc_zeroed(inode_cache);

    if (!inode)
        return NULL;
    page_cache_init(&inode->cache, NULL, inode, is_meta);
    rwsem_init(&inode->rwlock, &inode_rwlock_class, "inode->rwlock");
    inode->super = super;
    inode->ino = ino;
    inode->cache.dev = super ? super->dev : 0;
    inode->cache.ino = ino;
    inode->nlink = 1;
    inode->refs = 1;
    list_init(&inode->link);
    list_init(&inode->unused_link);
    list_init(&inode->locks);
    return inode;
}

static void inode_free(struct deferred *deferred)
{
    slab_free(inode_cache, container_of(deferred, struct inode, deferred));
}

/* Nobody can find the inode any more. May sleep. */
static void inode_destroy(struct inode *inode)
{
    page_cache_destroy(&inode->cache);
    if (inode->ops && inode->ops->evict)
        inode->ops->evict(inode);
    inode->deferred.free = inode_free;
    grace_defer(&inode->deferred);
}

struct inode *inode_new_anonymous(struct super_block *super, u32 mode)
{
    static u64 next_ino = ANONYMOUS_INO;
    struct inode *inode = inode_alloc(super, atomic_add(&next_ino, 1) - 1, false);

    if (inode) {
        inode->mode = mode;
        inode->state = INODE_READY;
    }
    return inode;
}

struct inode *inode_new_meta(u32 mode)
{
    struct inode *inode = inode_alloc(NULL, 0, true);

    if (inode) {
        inode->mode = mode;
        inode->state = INODE_READY;
    }
    return inode;
}

static struct inode *find_locked(const struct super_block *super, u64 ino)
{
    struct inode *inode;

    list_for_each (inode, bucket_of(super, ino), link)
        if (inode->super == super && inode->ino == ino)
            return inode;
    return NULL;
}

static void take_locked(struct inode *inode)
{
    if (inode->refs++ == 0) {
        list_del(&inode->unused_link);
        n_unused--;
    }
}

static void insert_locked(struct inode *inode)
{
    list_add_head(bucket_of(inode->super, inode->ino), &inode->link);
    inode->is_in_table = true;
}

/*
 * One look at the table. `fresh` is put in where the number is not there.
 * => the inode with a reference (it may be new); NULL: it is being evicted
 */
static struct inode *find_or_insert(struct super_block *super, u64 ino, struct inode *fresh)
{
    struct inode *inode;

    spin_lock(&table_lock);
    inode = find_locked(super, ino);
    if (!inode) {
        inode = fresh;
        insert_locked(inode);
    } else if (inode->state == INODE_EVICTING) {
        inode = NULL;
    } else {
        take_locked(inode);
    }
    spin_unlock(&table_lock);
    return inode;
}

static bool number_is_free_or_usable(struct super_block *super, u64 ino)
{
    struct inode *inode;
    bool usable;

    spin_lock(&table_lock);
    inode = find_locked(super, ino);
    usable = !inode || inode->state != INODE_EVICTING;
    spin_unlock(&table_lock);
    return usable;
}

/* => whether the inode, of which we have a reference, became ready */
static bool wait_until_filled(struct inode *inode)
{
    if (atomic_load(&inode->state) == INODE_NEW)
        WAIT_FOR(&state_queue, atomic_load(&inode->state) != INODE_NEW, "inode %lu being read",
                 inode->ino, 0);
    return atomic_load(&inode->state) == INODE_READY;
}

struct inode *inode_get(struct super_block *super, u64 ino, bool *is_new)
{
    *is_new = false;
    for (;;) {
        struct inode *fresh = inode_alloc(super, ino, false);
        struct inode *inode;

        if (!fresh)
            return NULL;
        inode = find_or_insert(super, ino, fresh);
        if (inode == fresh) {
            *is_new = true;
            return inode;
        }
        slab_free(inode_cache, fresh);
        if (!inode) {
            WAIT_FOR(&state_queue, number_is_free_or_usable(super, ino), "inode %lu being evicted",
                     ino, 0);
            continue;
        }
        if (wait_until_filled(inode))
            return inode;
        inode_put(inode); /* whoever read it failed: try for ourselves */
    }
}

void inode_ready(struct inode *inode)
{
    spin_lock(&table_lock);
    atomic_store(&inode->state, INODE_READY);
    spin_unlock(&table_lock);
    wait_wake_all(&state_queue);
}

void inode_failed(struct inode *inode)
{
    spin_lock(&table_lock);
    atomic_store(&inode->state, INODE_FAILED);
    list_del(&inode->link);
    inode->is_in_table = false;
    spin_unlock(&table_lock);
    wait_wake_all(&state_queue);
    inode_put(inode);
}

void inode_hold(struct inode *inode)
{
    spin_lock(&table_lock);
    ASSERT(inode->refs > 0);
    inode->refs++;
    spin_unlock(&table_lock);
}

/* Takes an unused inode off its list; it is the caller's to evict. */
static void begin_evict_locked(struct inode *inode)
{
    list_del(&inode->unused_link);
    n_unused--;
    inode->state = INODE_EVICTING;
}

static void evict(struct inode *inode)
{
    page_cache_destroy(&inode->cache);
    spin_lock(&table_lock);
    list_del(&inode->link);
    inode->is_in_table = false;
    spin_unlock(&table_lock);
    wait_wake_all(&state_queue);
    inode_destroy(inode);
}

/* => the oldest unused inode (of `super`, if not NULL) where more than `keep` are there */
static struct inode *pick_unused(const struct super_block *super, unsigned keep)
{
    struct inode *inode, *found = NULL;

    spin_lock(&table_lock);
    if (n_unused > keep) {
        list_for_each (inode, &unused_inodes, unused_link) {
            if (!super || inode->super == super) {
                found = inode;
                break;
            }
        }
    }
    if (found)
        begin_evict_locked(found);
    spin_unlock(&table_lock);
    return found;
}

void inode_put(struct inode *inode)
{
    struct inode *oldest;
    bool is_last;

    spin_lock(&table_lock);
    ASSERT(inode->refs > 0);
    is_last = --inode->refs == 0;
    if (is_last && inode->is_in_table) {
        list_add_tail(&unused_inodes, &inode->unused_link);
        n_unused++;
        is_last = false;
    }
    spin_unlock(&table_lock);
    if (is_last)
        inode_destroy(inode);
    else if ((oldest = pick_unused(NULL, UNUSED_MAX)) != NULL)
        evict(oldest);
}

static unsigned evict_all(const struct super_block *super)
{
    struct inode *inode;
    unsigned n = 0;

    for (; (inode = pick_unused(super, 0)) != NULL; n++)
        evict(inode);
    return n;
}

unsigned inode_cache_shrink(void)
{
    return evict_all(NULL);
}

unsigned inode_evict_super(struct super_block *super)
{
    struct inode *inode;
    unsigned in_use = 0;

    evict_all(super);
    spin_lock(&table_lock);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        list_for_each (inode, &table[i], link)
            in_use += inode->super == super;
    spin_unlock(&table_lock);
    return in_use;
}

struct inode *inode_next_in_table(u64 *cursor)
{
    struct inode *inode, *found = NULL;

    spin_lock(&table_lock);
    for (u64 seen = 0, slot = 0; !found && slot < ARRAY_SIZE(table); slot++) {
        list_for_each (inode, &table[slot], link) {
            if (seen++ < *cursor || inode->state != INODE_READY)
                continue;
            take_locked(inode);
            *cursor = seen;
            found = inode;
            break;
        }
    }
    spin_unlock(&table_lock);
    return found;
}

u64 super_anonymous_dev(void)
{
    static u64 next = 1; /* major 0 */

    return atomic_add(&next, 1) - 1;
}
