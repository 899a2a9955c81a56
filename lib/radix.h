/*
 * Radix tree: u64 index -> pointer, 64 slots a node, three marks per index. The index of the page
 * cache (mm/page_cache.c).
 *
 * Who may call what:
 *   readers   radix_lookup, radix_gang_lookup, radix_next_absent, radix_count_back: without a lock,
 *             inside a read section of the grace-period scheme (in the kernel: no sleep between the
 *             call and the last use of what came back). They see each change entirely or not at
 *             all, but two slots of one gang lookup may be from different moments. What an item
 *             points at may have been removed in the meantime: take a reference, then check that it
 *             still belongs to this index.
 *   marks     radix_is_marked, radix_next_marked, radix_gang_lookup_marked, radix_has_mark may be
 *             called without the lock too, and are then a hint.
 *   writer    everything else: one at a time, under the owner's spinlock.
 *
 * Nothing here sleeps. Time is the height of the tree: one level per factor of 64.
 */
#ifndef LIB_RADIX_H
#define LIB_RADIX_H

#include "lib/deferred.h"
#include "lib/types.h"

#define RADIX_BITS  6
#define RADIX_SLOTS (1u << RADIX_BITS)

enum radix_mark { RADIX_MARK_DIRTY, RADIX_MARK_WRITEBACK, RADIX_MARK_TOWRITE, RADIX_MARKS };

struct radix_node {
    struct deferred deferred;  /* for ops->free_later */
    struct radix_node *parent; /* writer only */
    u8 shift;                  /* divides bits shift .. shift + 5 of the index; constant */
    u8 offset;                 /* slot in the parent; writer only */
    u8 count;                  /* slots in use; writer only */
    u64 marks[RADIX_MARKS];    /* bit per slot: the item, or anything below, has the mark */
    void *slots[RADIX_SLOTS];  /* children (shift > 0) or items; written with release order */
};

/*
 * alloc      memory for one struct radix_node, content irrelevant; NULL when there is none. Called
 *            under the owner's lock.
 * free_later takes a node that readers may still be walking; its memory may be reused only after a
 *            grace period. `node->deferred` is the callee's to use.
 */
struct radix_ops {
    void *(*alloc)(void *ctx);
    void (*free_later)(void *ctx, struct radix_node *node);
};

struct radix {
    struct radix_node *root; /* published with release order; NULL: empty */
    const struct radix_ops *ops;
    void *ctx;
};

typedef void (*radix_visit_fn)(void *arg, u64 index, void *item);

/* An empty tree. `ctx` is handed to the ops. */
void radix_init(struct radix *tree, const struct radix_ops *ops, void *ctx);

bool radix_is_empty(const struct radix *tree);

/* Writer. Puts a non-NULL item at a free index. 0, -EEXIST, or -ENOMEM with the tree unchanged. */
int radix_insert(struct radix *tree, u64 index, void *item) MUST_CHECK;

/* Reader. The item at index, or NULL. */
void *radix_lookup(const struct radix *tree, u64 index);

/* Writer. Takes the item and its marks out and frees nodes that became empty. The item or NULL. */
void *radix_remove(struct radix *tree, u64 index);

/* Writer. Puts another item in the place of the one at index; marks stay. The old one, or NULL
 * (then nothing is changed). */
void *radix_replace(struct radix *tree, u64 index, void *item);

/*
 * Reader. The slots of index, index + 1, ...: *n of them (at least one) stand side by side, up to the
 * end of a node. Each is read by radix_slot_read, and may be empty. NULL: nothing is at these *n.
 */
void *const *radix_slots(const struct radix *tree, u64 index, u64 *n);

static inline void *radix_slot_read(void *const *slot)
{
    return __atomic_load_n(slot, __ATOMIC_ACQUIRE);
}

/*
 * Reader. Collects items in [first, last] in rising order, at most `max` of them, with their
 * indices where `indices` is not NULL. Returns how many. To go on: first = last index found + 1.
 */
size_t radix_gang_lookup(const struct radix *tree, u64 first, u64 last, void **items, u64 *indices,
                         size_t max);

/* As radix_gang_lookup, only items that have the mark. */
size_t radix_gang_lookup_marked(const struct radix *tree, enum radix_mark mark, u64 first, u64 last,
                                void **items, u64 *indices, size_t max);

/* Reader. First index in [first, last] without an item; last + 1 if all are present.
 * last < 2^64 - 1. */
u64 radix_next_absent(const struct radix *tree, u64 first, u64 last);

/* Reader. How many items stand without a hole at index - 1, index - 2, ...: at most `max`. */
u64 radix_count_back(const struct radix *tree, u64 index, u64 max);

/* Writer. Sets or clears a mark of the item at index; nothing happens where there is no item. */
void radix_set_mark(struct radix *tree, u64 index, enum radix_mark mark);
void radix_clear_mark(struct radix *tree, u64 index, enum radix_mark mark);

bool radix_is_marked(const struct radix *tree, u64 index, enum radix_mark mark);

/* Has any item of the tree the mark? Constant time. */
bool radix_has_mark(const struct radix *tree, enum radix_mark mark);

/* First item with the mark in [first, last], its index in *index_out; NULL if there is none. */
void *radix_next_marked(const struct radix *tree, enum radix_mark mark, u64 first, u64 last,
                        u64 *index_out);

/* Writer. Shows every item to `visit` (may be NULL) in rising order and frees all nodes; the tree
 * is empty and usable afterwards. */
void radix_destroy(struct radix *tree, radix_visit_fn visit, void *arg);

#endif
