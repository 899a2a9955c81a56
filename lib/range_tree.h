/*
 * Range tree: non-overlapping ranges [start, end) of u64, each with an item. The core of the VMA
 * tree (mm/vma.c). lib/range_tree.c draws how it works.
 *
 * Who may call what:
 *   readers   range_tree_find, _next, _prev, _gap_down, _count: without a lock, inside a read
 *             section of the grace-period scheme (in the kernel: no sleep between the call and the
 *             last use of what came back). A reader sees the tree before a transaction or after it,
 *             never between. The item may have been taken out in the meantime: lock it, then check.
 *   writer    everything else: one at a time, under the owner's lock (mmap_lock exclusive). A tree
 *             has at most one transaction open.
 *
 * A change is a transaction:
 *
 *     range_txn_begin(&txn, tree);
 *     error = range_txn_remove(&txn, a);
 *     if (!error)
 *         error = range_txn_insert(&txn, b, c, item);
 *     if (error)
 *         range_txn_abort(&txn);       the tree is as it was
 *     else
 *         range_txn_commit(&txn);      readers see both changes at once
 *
 * Nothing here sleeps, except where ops->alloc does. Time is the height of the tree: one level per
 * factor of 8 to 16.
 */
#ifndef LIB_RANGE_TREE_H
#define LIB_RANGE_TREE_H

#include "lib/deferred.h"
#include "lib/types.h"

#define RANGE_FANOUT    16
#define RANGE_MIN_FILL  (RANGE_FANOUT / 2)
#define RANGE_MAX_DEPTH 20

/*
 * Leaves and inner nodes have one layout. Entry i of a leaf is a range; entry i of an inner node is
 * the summary of a child: its lowest start, its highest end, and the largest gap between two
 * neighbouring ranges in it. A published node is never written again, but for `link` and
 * `deferred`, which no reader looks at.
 */
struct range_node {
    struct deferred deferred; /* for ops->free_later */
    struct range_node *link;  /* on a list of the transaction */
    u64 generation;           /* the transaction that made the node */
    u32 count;                /* entries in use */
    u32 level;                /* 0: leaf */
    u64 start[RANGE_FANOUT];
    u64 end[RANGE_FANOUT];
    u64 gap[RANGE_FANOUT];    /* 0 in a leaf */
    void *slot[RANGE_FANOUT]; /* leaf: items; inner: struct range_node */
};

/*
 * alloc      memory for one struct range_node, content irrelevant; NULL when there is none.
 * free_later takes a node that readers may still be walking; its memory may be reused only after a
 *            grace period. `node->deferred` is the callee's to use.
 */
struct range_tree_ops {
    void *(*alloc)(void *ctx);
    void (*free_later)(void *ctx, struct range_node *node);
};

struct range_tree {
    struct range_node *root; /* published with release order; NULL: empty */
    u64 count;               /* ranges in the published tree */
    u64 generation;          /* writer: the last transaction begun */
    const struct range_tree_ops *ops;
    void *ctx;
};

struct range_entry {
    u64 start, end;
    void *item;
};

/* A transaction; on the writer's stack. Its fields are private to lib/range_tree.c. */
struct range_txn {
    struct range_tree *tree;
    struct range_node *root; /* the tree as it will be */
    u64 count;
    u64 generation;
    struct range_node *spares; /* nodes reserved or given up, for the operations to come */
    u32 spare_count;
    struct range_node *retired; /* published nodes that the new tree does without */
};

typedef void (*range_visit_fn)(void *arg, const struct range_entry *entry);

/* An empty tree. `ctx` is handed to the ops. */
void range_tree_init(struct range_tree *tree, const struct range_tree_ops *ops, void *ctx);

/* Reader. The item whose range contains addr, or NULL. */
void *range_tree_find(const struct range_tree *tree, u64 addr);

/* Reader. The first range with end > addr: the one that contains addr, or else the next above it.
 * False: there is none. To walk all: start with addr 0, go on with addr = out->end. */
bool range_tree_next(const struct range_tree *tree, u64 addr, struct range_entry *out);

/* Reader. The last range with start < addr. With addr a range's start: its neighbour below.
 * False: there is none. */
bool range_tree_prev(const struct range_tree *tree, u64 addr, struct range_entry *out);

/*
 * Reader. First fit from the top: the highest a with low <= a, a + size <= high, and no range in
 * [a, a + size).
 * => 0 and *start_out; -ENOMEM: no such place; -EINVAL: size is 0
 */
int range_tree_gap_down(const struct range_tree *tree, u64 low, u64 high, u64 size, u64 *start_out);

/* Reader. Number of ranges (as of the last commit, or the one before where it is under way). */
u64 range_tree_count(const struct range_tree *tree);

/* Writer. Opens a transaction. It must end with commit or abort. */
void range_txn_begin(struct range_txn *txn, struct range_tree *tree);

/*
 * Adds a range.
 * => 0; -EINVAL: start >= end or item NULL; -EEXIST: overlaps a range; -ENOMEM
 * => on any error the transaction is as before the call: it may go on, or be aborted
 */
int range_txn_insert(struct range_txn *txn, u64 start, u64 end, void *item) MUST_CHECK;

/* Takes out the range that begins at `start`. 0; -ENOENT; -ENOMEM. Errors as above. */
int range_txn_remove(struct range_txn *txn, u64 start) MUST_CHECK;

/*
 * Gives the range that begins at `start` other bounds and another (or the same) item, in one step.
 * It stays between its neighbours.
 * => 0; -EINVAL: new_start >= new_end or item NULL; -ENOENT; -EEXIST: would reach into or beyond a
 *    neighbour; -ENOMEM. Errors as above.
 */
int range_txn_resize(struct range_txn *txn, u64 start, u64 new_start, u64 new_end,
                     void *item) MUST_CHECK;

/* As the range_tree_ functions, on the tree as the transaction has made it so far. */
void *range_txn_find(const struct range_txn *txn, u64 addr);
bool range_txn_next(const struct range_txn *txn, u64 addr, struct range_entry *out);
bool range_txn_prev(const struct range_txn *txn, u64 addr, struct range_entry *out);
int range_txn_gap_down(const struct range_txn *txn, u64 low, u64 high, u64 size, u64 *start_out);

/* Makes the changes visible, all at once; hands the replaced nodes to free_later. Cannot fail. */
void range_txn_commit(struct range_txn *txn);

/* Drops the changes. The tree is as at begin, down to its nodes. */
void range_txn_abort(struct range_txn *txn);

/* Writer. Shows every range to `visit` (may be NULL) in rising order and hands all nodes to
 * free_later; the tree is empty and usable afterwards. No transaction may be open. */
void range_tree_destroy(struct range_tree *tree, range_visit_fn visit, void *arg);

/* For tests: are order, bounds, gaps, fill, depth and count right? Any context; all of the tree. */
bool range_tree_check(const struct range_tree *tree);

#endif
