/*
 * Futexes: queues of sleepers, by word of memory.
 *
 * A word is known by its place: in private memory by address space and address, in a shared file mapping by file and
 * offset, so that all who map it meet. Sleepers hang in buckets by a hash of that.
 *
 *     waiter, bucket locked                       waker
 *     1 reads the word: still `value`?            1 changes the word (the program did)
 *     2 queues itself                             2 bucket locked: takes sleepers out, marks them woken, wakes
 *     3 unlocks, sleeps
 * The word is read under the lock, so a waker either finds the waiter, or the waiter the new value. Under a spinlock no
 * fault can be served; where the word is not there, the lock is let go, the word touched, and all begins again.
 *
 * A sleeper is on its task's stack and belongs to the lock of its bucket; requeueing moves it to another one. It leaves
 * only after it has had that lock once more, so a waker that marked it is done with it.
 */
#include "kernel/task/futex.h"

#include "kernel/cpu/uaccess.h"
#include "kernel/task/process_internal.h"
#include "lib/errno.h"
#include "lib/hash.h"
#include "mm/user_memory.h"

#define BUCKETS       256
#define MOVES_AT_ONCE 16

struct futex_bucket {
    struct spinlock lock;
    struct list waiters;
};

/* `file` keeps a file's page cache, and so the key, from being another's; NULL for private memory. */
struct futex_key {
    const void *object;
    u64 offset;
    struct mapped_file *file;
};

struct futex_waiter {
    struct list link;
    struct futex_bucket *bucket;
    struct futex_key key;
    u32 bits;
    bool is_woken;
    struct wait_queue queue;
};

static LOCK_CLASS_OBJECT(bucket_class, .name = "futex bucket", .spins = true,
                         .nests = true); /* two by address */
static struct futex_bucket buckets[BUCKETS];

void futex_init(void)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        spin_init(&buckets[i].lock, &bucket_class);
        list_init(&buckets[i].waiters);
    }
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/* Not killable: a thread that is being ended still has others to wake (robust.c). */
static int shared_key(struct mm *mm, u64 addr, struct futex_key *key)
{
    rwsem_read_lock(&mm->mmap_lock);
    const struct vma *vma = vma_find(mm, addr);
    if (vma && vma->file && (vma->flags & VMA_SHARED)) {
        key->object = vma->file->cache;
        key->offset = vma_pgoff(vma, addr) * PAGE_SIZE + addr % PAGE_SIZE;
        key->file = vma->file;
        mapped_file_get(key->file);
    }
    rwsem_read_unlock(&mm->mmap_lock);
    return vma ? 0 : -EFAULT;
}

/* => 0 (then key_put), -EINVAL, -EFAULT */
static int key_get(struct futex_word word, struct futex_key *key)
{
    struct mm *mm = task_current()->mm;
    *key = (struct futex_key){.object = mm, .offset = word.addr};
    if (word.addr % sizeof(u32))
        return -EINVAL;
    if (!user_range_is_ok(word.addr, sizeof(u32)))
        return -EFAULT;
    return word.is_private ? 0 : shared_key(mm, word.addr, key);
}

static void key_put(struct futex_key *key)
{
    if (key->file)
        mapped_file_put(key->file);
    key->file = NULL;
}

static bool key_is_same(const struct futex_key *a, const struct futex_key *b)
{
    return a->object == b->object && a->offset == b->offset;
}

static struct futex_bucket *bucket_of(const struct futex_key *key)
{
    return &buckets[mix64((u64)key->object ^ key->offset) % BUCKETS];
}

/* In a fixed order; they may be the same. */
static void lock_both(struct futex_bucket *a, struct futex_bucket *b)
{
    spin_lock(&MIN(a, b)->lock);
    if (a != b)
        spin_lock(&MAX(a, b)->lock);
}

static void unlock_both(struct futex_bucket *a, struct futex_bucket *b)
{
    if (a != b)
        spin_unlock(&MAX(a, b)->lock);
    spin_unlock(&MIN(a, b)->lock);
}

/* The word, with a spinlock held. => 0, -EFAULT: it has to be touched first */
static int read_word_locked(u64 addr, u32 *value)
{
    struct task *me = task_current();
    me->pagefault_disabled++;
    int error = uaccess_read_u32(addr, value);
    me->pagefault_disabled--;
    return error;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* => 0: queued; -EAGAIN, -EFAULT */
static int queue_if_equal(struct futex_waiter *w, u64 addr, u32 value)
{
    for (;;) {
        u32 seen;
        spin_lock(&w->bucket->lock);
        int error = read_word_locked(addr, &seen);
        if (!error && seen == value)
            list_add_tail(&w->bucket->waiters, &w->link);
        spin_unlock(&w->bucket->lock);
        if (!error)
            return seen == value ? 0 : -EAGAIN;
        if (uaccess_read_u32(addr, &seen))
            return -EFAULT;
    }
}

static int sleep_until_woken(struct futex_waiter *w, u64 addr, u64 deadline_ns)
{
    struct waiter sleeper;
    int error = 0;
    wait_begin(&w->queue, &sleeper, "the futex at %#lx", addr, 0);
    while (!error && !atomic_load(&w->is_woken))
        error = wait_sleep_interruptible(&sleeper, deadline_ns);
    wait_end(&w->queue, &sleeper);
    return error;
}

/* Out of its queue, whichever that is by now. => whether it had been woken */
static bool unqueue(struct futex_waiter *w)
{
    for (;;) {
        struct futex_bucket *bucket = atomic_load(&w->bucket);
        spin_lock(&bucket->lock);
        bool is_right = w->bucket == bucket;
        if (is_right && !list_is_empty(&w->link))
            list_del(&w->link);
        spin_unlock(&bucket->lock);
        if (is_right)
            return w->is_woken;
    }
}

s64 futex_wait(struct futex_word word, u32 value, u64 deadline_ns, u32 bits)
{
    struct futex_waiter w = {.bits = bits};
    if (bits == 0)
        return -EINVAL;
    int error = key_get(word, &w.key);
    if (error)
        return error;
    list_init(&w.link);
    wait_queue_init(&w.queue);
    w.bucket = bucket_of(&w.key);
    error = queue_if_equal(&w, word.addr, value);
    if (!error) {
        error = sleep_until_woken(&w, word.addr, deadline_ns);
        if (unqueue(&w))
            error = 0;
    }
    key_put(&w.key);
    return error;
}

/* ---- Waking ---------------------------------------------------------------------------------- */

static void wake_locked(struct futex_waiter *w)
{
    list_del(&w->link);
    atomic_store(&w->is_woken, true);
    wait_wake_all(&w->queue);
}

static u32 wake_key_locked(struct futex_bucket *bucket, const struct futex_key *key, u32 max,
                           u32 bits)
{
    struct futex_waiter *w, *next;
    u32 n = 0;
    list_for_each_safe (w, next, &bucket->waiters, link) {
        if (n == max)
            break;
        if (!key_is_same(&w->key, key) || !(w->bits & bits))
            continue;
        wake_locked(w);
        n++;
    }
    return n;
}

s64 futex_wake(struct futex_word word, u32 max, u32 bits)
{
    struct futex_key key;
    if (bits == 0)
        return -EINVAL;
    int error = key_get(word, &key);
    if (error)
        return error;
    struct futex_bucket *bucket = bucket_of(&key);
    spin_lock(&bucket->lock);
    u32 n = wake_key_locked(bucket, &key, max, bits);
    spin_unlock(&bucket->lock);
    key_put(&key);
    return n;
}

/* ---- Requeueing ------------------------------------------------------------------------------ */

struct requeue {
    struct futex_key from, to;
    struct futex_bucket *source, *target;
    u32 max_wake, max_move; /* left to do */
    u32 n_done;
    struct mapped_file *
        left_files[MOVES_AT_ONCE]; /* references of those who moved, to be dropped without a lock */
    u32 n_left;
};

static void move_locked(struct requeue *r, struct futex_waiter *w)
{
    list_del(&w->link);
    if (w->key.file)
        r->left_files[r->n_left++] = w->key.file;
    w->key = r->to;
    if (w->key.file)
        mapped_file_get(w->key.file);
    atomic_store(&w->bucket, r->target);
    list_add_tail(&r->target->waiters, &w->link);
}

/* Both buckets locked. => false: there are more, but references have to be dropped first */
static bool requeue_locked(struct requeue *r)
{
    struct futex_waiter *w, *next;
    list_for_each_safe (w, next, &r->source->waiters, link) {
        if (r->n_left == MOVES_AT_ONCE)
            return false;
        if (!key_is_same(&w->key, &r->from))
            continue;
        if (r->max_wake > 0) {
            r->max_wake--;
            wake_locked(w);
        } else if (r->max_move > 0) {
            r->max_move--;
            move_locked(r, w);
        } else {
            break;
        }
        r->n_done++;
    }
    return true;
}

static s64 requeue(struct requeue *r, u64 addr, const u32 *expected)
{
    bool is_done = false;
    while (!is_done) {
        u32 seen;
        lock_both(r->source, r->target);
        int error = expected ? read_word_locked(addr, &seen) : 0;
        bool is_equal = !error && (!expected || seen == *expected);
        if (is_equal)
            is_done = requeue_locked(r);
        unlock_both(r->source, r->target);
        while (r->n_left > 0)
            mapped_file_put(r->left_files[--r->n_left]);
        if (error && uaccess_read_u32(addr, &seen))
            return -EFAULT;
        if (!error && !is_equal)
            return -EAGAIN;
        if (!error)
            expected = NULL; /* compared once; the rest belongs to the same call */
    }
    return r->n_done;
}

s64 futex_requeue(struct futex_word from, struct futex_word to, u32 max_wake, u32 max_move,
                  const u32 *expected)
{
    struct requeue r = {.max_wake = max_wake, .max_move = max_move};
    int error = key_get(from, &r.from);
    if (error)
        return error;
    error = key_get(to, &r.to);
    if (error) {
        key_put(&r.from);
        return error;
    }
    r.source = bucket_of(&r.from);
    r.target = bucket_of(&r.to);
    if (key_is_same(&r.from, &r.to))
        r.max_move = 0;
    s64 result = requeue(&r, from.addr, expected);
    key_put(&r.from);
    key_put(&r.to);
    return result;
}

/* ---- Waking by an operation ------------------------------------------------------------------ */

enum { OP_SET, OP_ADD, OP_OR, OP_ANDN, OP_XOR, OP_COUNT, OP_SHIFTED = 8 };
enum { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE, CMP_COUNT };

static s32 sign_extend_12(u32 bits)
{
    return (s32)(bits << 20) >> 20;
}

static u32 apply(u32 op, u32 old, u32 argument)
{
    switch (op) {
    case OP_SET: return argument;
    case OP_ADD: return old + argument;
    case OP_OR: return old | argument;
    case OP_ANDN: return old & ~argument;
    default: return old ^ argument;
    }
}

static bool holds(u32 cmp, s32 old, s32 argument)
{
    const bool results[CMP_COUNT] = {old == argument, old != argument,
                                     old<argument, old <= argument, old> argument, old >= argument};
    return results[cmp];
}

/* Changes the word by the coded operation. => 0 with what it was before, -EFAULT */
static int change_word(u64 addr, u32 op, u32 argument, u32 *before)
{
    if (uaccess_read_u32(addr, before))
        return -EFAULT;
    for (;;) {
        u32 seen;
        if (uaccess_change_u32(addr, *before, apply(op, *before, argument), &seen))
            return -EFAULT;
        if (seen == *before)
            return 0;
        *before = seen;
    }
}

s64 futex_wake_op(struct futex_word first, struct futex_word second, u32 max_first, u32 max_second,
                  u32 code)
{
    u32 op = code >> 28, cmp = code >> 24 & 15, before;
    u32 argument = sign_extend_12(code >> 12 & 0xfff);
    if (op & OP_SHIFTED)
        argument = 1u << (argument & 31);
    op &= OP_SHIFTED - 1;
    if (op >= OP_COUNT || cmp >= CMP_COUNT)
        return -ENOSYS;
    if (second.addr % sizeof(u32))
        return -EINVAL;
    if (!user_range_is_ok(second.addr, sizeof(u32)) ||
        change_word(second.addr, op, argument, &before))
        return -EFAULT;
    s64 n = futex_wake(first, max_first, FUTEX_ANY_BITS);
    if (n < 0 || !holds(cmp, (s32)before, sign_extend_12(code & 0xfff)))
        return n;
    s64 more = futex_wake(second, max_second, FUTEX_ANY_BITS);
    return more < 0 ? more : n + more;
}
