/*
 * Advisory locks. Contract in file_lock.h.
 *
 * One mutex for all of them, one queue for all that wait: they are few, and what one lets go is
 * what another may want. A change of an owner's range cuts the owner's old locks, so an owner never
 * has two that overlap.
 */
#include "fs/file_lock.h"

#include "lib/errno.h"
#include "mm/core/slab.h"

struct file_lock {
    struct list link; /* inode->locks */
    struct file_lock_spec spec;
};

static SLEEP_LOCK_CLASS(locks_class, "file locks");
static struct mutex locks_mutex = MUTEX_INIT(locks_mutex, &locks_class);
static struct wait_queue locks_changed = WAIT_QUEUE_INIT(locks_changed);

static bool overlaps(const struct file_lock_spec *a, const struct file_lock_spec *b)
{
    return a->kind == b->kind && a->first <= b->last && b->first <= a->last;
}

/* => a lock that keeps `spec` from being set; NULL: none. Mutex held. */
static struct file_lock *find_conflict(struct inode *inode, const struct file_lock_spec *spec)
{
    struct file_lock *lock;

    list_for_each (lock, &inode->locks, link) {
        bool both_shared = lock->spec.mode == FILE_LOCK_SHARED && spec->mode == FILE_LOCK_SHARED;

        if (lock->spec.owner != spec->owner && overlaps(&lock->spec, spec) && !both_shared)
            return lock;
    }
    return NULL;
}

static void remove_lock(struct file_lock *lock)
{
    list_del(&lock->link);
    kfree(lock);
}

/* Cuts what `spec` covers out of one lock of the same owner. rest: room for a second piece, used
 * where the middle is cut out. => whether it was used */
static bool cut(struct inode *inode, struct file_lock *lock, const struct file_lock_spec *spec,
                struct file_lock *rest)
{
    bool keeps_head = lock->spec.first<spec->first, keeps_tail = lock->spec.last> spec->last;

    if (keeps_head && keeps_tail) {
        rest->spec = lock->spec;
        rest->spec.first = spec->last + 1;
        list_add_tail(&inode->locks, &rest->link);
    }
    if (keeps_head)
        lock->spec.last = spec->first - 1;
    else if (keeps_tail)
        lock->spec.first = spec->last + 1;
    else
        remove_lock(lock);
    return keeps_head && keeps_tail;
}

/* No conflict is left. Mutex held. => which of the two spare locks were used, as bits */
static unsigned replace(struct inode *inode, const struct file_lock_spec *spec,
                        struct file_lock *spare[2])
{
    struct file_lock *lock, *next;
    unsigned used = 0;

    list_for_each_safe (lock, next, &inode->locks, link) {
        if (lock->spec.owner == spec->owner && overlaps(&lock->spec, spec) &&
            cut(inode, lock, spec, spare[0]))
            used |= 1;
    }
    if (spec->mode != FILE_LOCK_NONE) {
        spare[1]->spec = *spec;
        list_add_tail(&inode->locks, &spare[1]->link);
        used |= 2;
    }
    return used;
}

/* => 0; -EAGAIN: there is a conflict */
static int try_set(struct inode *inode, const struct file_lock_spec *spec,
                   struct file_lock *spare[2], unsigned *used)
{
    int error = -EAGAIN;

    mutex_lock(&locks_mutex);
    if (spec->mode == FILE_LOCK_NONE || !find_conflict(inode, spec)) {
        *used = replace(inode, spec, spare);
        error = 0;
    }
    mutex_unlock(&locks_mutex);
    if (!error)
        wait_wake_all(&locks_changed);
    return error;
}

static int wait_and_set(struct inode *inode, const struct file_lock_spec *spec,
                        struct file_lock *spare[2], unsigned *used)
{
    struct waiter w;
    int error, interrupted = 0;

    wait_begin(&locks_changed, &w, "a lock on file %lu", inode->ino, 0);
    while ((error = try_set(inode, spec, spare, used)) == -EAGAIN && !interrupted)
        interrupted = wait_sleep_interruptible(&w, 0);
    wait_end(&locks_changed, &w);
    return error && interrupted ? -ERESTARTSYS : error;
}

int file_lock_set(struct inode *inode, const struct file_lock_spec *spec, bool waits)
{
    struct file_lock *spare[2] = {kzalloc(sizeof(**spare)), kzalloc(sizeof(**spare))};
    unsigned used = 0;
    int error = -ENOLCK;

    if (spare[0] && spare[1])
        error =
            waits ? wait_and_set(inode, spec, spare, &used) : try_set(inode, spec, spare, &used);
    for (unsigned i = 0; i < ARRAY_SIZE(spare); i++)
        if (!(used & (1u << i)))
            kfree(spare[i]);
    return error;
}

bool file_lock_test(struct inode *inode, struct file_lock_spec *spec)
{
    struct file_lock *lock;

    mutex_lock(&locks_mutex);
    lock = find_conflict(inode, spec);
    if (lock)
        *spec = lock->spec;
    mutex_unlock(&locks_mutex);
    return lock;
}

void file_lock_drop_owner(struct inode *inode, const void *owner)
{
    struct file_lock *lock, *next;

    mutex_lock(&locks_mutex);
    list_for_each_safe (lock, next, &inode->locks, link) {
        if (lock->spec.owner == owner)
            remove_lock(lock);
    }
    mutex_unlock(&locks_mutex);
    wait_wake_all(&locks_changed);
}
