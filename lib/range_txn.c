/*
 * Range tree, the writer's half: transactions by path copying.
 *
 * A transaction has a root of its own, at first the tree's. Before a node is changed, it and all
 * nodes above it are copied; a copy carries the transaction's generation, and a node that carries
 * it is private: it is changed in place from then on. So the first change in a region copies a
 * path, and later ones in the same region copy nothing.
 *
 *     published      R                     transaction    R'         R and B are retired: no longer
 *                  / | \                                 / | \       in the new tree; freed later
 *                 A  B  C                               A  B' C      A and C belong to both trees
 *
 * Since a private node hangs below private nodes only, all private nodes are found from the root
 * down: abort needs no list of them.
 *
 * Every operation counts the nodes it needs, reserves them, and only then changes something. It
 * either fails with nothing changed or does not fail.
 *
 * Insert: into the leaf; a full node is split in two halves first: one more entry for its parent.
 *
 *     parent   | ... |  L  | ... |              | ... |  L  |  R  | ... |
 *                       |              =>                |     |
 *              [ 0 1 2 ... 15 ]                 [ 0 ... 7 ]   [ 8 ... 15 ]    + the new one
 *
 * Remove: out of the leaf; a node below half takes one entry from a sibling with more than half,
 * or else is joined with it, and the parent has one entry less and may be below half in turn.
 *
 *     | ... |  L  |  N  | ... |                 | ... |  N  | ... |
 *              |     |             =>                    |
 *     [ 0 ... 7 ]   [ 8 ... 14 ]                [ 0 ... 14 ]
 *
 * At most one sibling is copied by a removal: where an entry moves over, the parent's fill does not
 * change and the climb ends; where two are joined, the sibling is read and given up.
 */
#include "lib/errno.h"
#include "lib/range_node.h"
#include "lib/range_tree.h"
#include "lib/string.h"

/* The way from the root to a leaf: node[0] is the root, at[i] the entry taken in node[i]. */
struct path {
    unsigned depth;
    struct range_node *node[RANGE_MAX_DEPTH];
    unsigned at[RANGE_MAX_DEPTH];
};

/* One entry on its way into a node. */
struct slot_entry {
    u64 start, end, gap;
    void *slot;
};

/* ---- Nodes: reserved, taken, copied, given up ---- */

static bool node_is_private(const struct range_txn *txn, const struct range_node *node)
{
    return node->generation == txn->generation;
}

static void spare_add(struct range_txn *txn, struct range_node *node)
{
    node->link = txn->spares;
    txn->spares = node;
    txn->spare_count++;
}

/* Makes sure that `nodes` can be taken. */
static int reserve(struct range_txn *txn, unsigned nodes)
{
    struct range_tree *tree = txn->tree;

    while (txn->spare_count < nodes) {
        struct range_node *node = tree->ops->alloc(tree->ctx);

        if (!node)
            return -ENOMEM;
        spare_add(txn, node);
    }
    return 0;
}

static struct range_node *node_take(struct range_txn *txn, unsigned level)
{
    struct range_node *node = txn->spares;

    txn->spares = node->link;
    txn->spare_count--;
    node->generation = txn->generation;
    node->level = level;
    node->count = 0;
    return node;
}

/* The new tree does without this node. */
static void node_give_up(struct range_txn *txn, struct range_node *node)
{
    if (node_is_private(txn, node)) {
        spare_add(txn, node);
        return;
    }
    node->link = txn->retired;
    txn->retired = node;
}

/* Moves `n` entries between nodes, or within one. */
static void entries_move(struct range_node *to, unsigned to_at, const struct range_node *from,
                         unsigned from_at, unsigned n)
{
    memmove(&to->start[to_at], &from->start[from_at], n * sizeof(to->start[0]));
    memmove(&to->end[to_at], &from->end[from_at], n * sizeof(to->end[0]));
    memmove(&to->gap[to_at], &from->gap[from_at], n * sizeof(to->gap[0]));
    memmove(&to->slot[to_at], &from->slot[from_at], n * sizeof(to->slot[0]));
}

/* The node itself if it is private, else a private copy that the caller links in its place. */
static struct range_node *node_own(struct range_txn *txn, struct range_node *node)
{
    struct range_node *copy;

    if (node_is_private(txn, node))
        return node;
    copy = node_take(txn, node->level);
    entries_move(copy, 0, node, 0, node->count);
    copy->count = node->count;
    node_give_up(txn, node);
    return copy;
}

/* ---- Entries of one private node ---- */

static void entry_put(struct range_node *node, unsigned at, const struct slot_entry *entry)
{
    node->start[at] = entry->start;
    node->end[at] = entry->end;
    node->gap[at] = entry->gap;
    node->slot[at] = entry->slot;
}

static void entry_insert(struct range_node *node, unsigned at, const struct slot_entry *entry)
{
    entries_move(node, at + 1, node, at, node->count - at);
    entry_put(node, at, entry);
    node->count++;
}

static void entry_delete(struct range_node *node, unsigned at)
{
    entries_move(node, at, node, at + 1, node->count - at - 1);
    node->count--;
}

static struct slot_entry summary_of(struct range_node *child)
{
    return (struct slot_entry){child->start[0], child->end[child->count - 1], range_node_gap(child),
                               child};
}

static void summary_put(struct range_node *parent, unsigned at, struct range_node *child)
{
    struct slot_entry entry = summary_of(child);

    entry_put(parent, at, &entry);
}

/* ---- Paths ---- */

/*
 * To the first range with end > addr. In the leaf, at[] may be one past the last entry: then there
 * is no such range in the tree, and this is where one would be added.
 */
static void path_walk(const struct range_txn *txn, u64 addr, struct path *path)
{
    struct range_node *node = txn->root;

    path->depth = 0;
    for (;;) {
        unsigned at = range_node_search(node, addr);

        if (node->level > 0)
            at = MIN(at, node->count - 1);
        path->node[path->depth] = node;
        path->at[path->depth] = at;
        path->depth++;
        if (node->level == 0)
            return;
        node = range_node_child(node, at);
    }
}

static struct range_node *path_leaf(const struct path *path)
{
    return path->node[path->depth - 1];
}

static unsigned path_leaf_at(const struct path *path)
{
    return path->at[path->depth - 1];
}

/* To the range that begins at `start`; false if there is none. */
static bool path_find(const struct range_txn *txn, u64 start, struct path *path)
{
    if (!txn->root)
        return false;
    path_walk(txn, start, path);
    return path_leaf_at(path) < path_leaf(path)->count &&
           path_leaf(path)->start[path_leaf_at(path)] == start;
}

/* How many nodes of the path must be copied before it can be changed. */
static unsigned path_copies(const struct range_txn *txn, const struct path *path)
{
    unsigned copies = 0;

    for (unsigned i = 0; i < path->depth; i++)
        copies += !node_is_private(txn, path->node[i]);
    return copies;
}

/* Makes all of the path private. The nodes are reserved. */
static void path_own(struct range_txn *txn, struct path *path)
{
    for (unsigned i = 0; i < path->depth; i++) {
        path->node[i] = node_own(txn, path->node[i]);
        if (i == 0)
            txn->root = path->node[i];
        else
            path->node[i - 1]->slot[path->at[i - 1]] = path->node[i];
    }
}

/* Sums up anew what changed at node[from], in all nodes above it. */
static void path_sum_up(struct path *path, unsigned from)
{
    for (unsigned i = from; i > 0; i--)
        summary_put(path->node[i - 1], path->at[i - 1], path->node[i]);
}

/* ---- Insert ---- */

/* New nodes that splitting needs: one for each full node from the leaf up, one more for a root. */
static unsigned splits_needed(const struct path *path)
{
    unsigned splits = 0;

    while (splits < path->depth && path->node[path->depth - 1 - splits]->count == RANGE_FANOUT)
        splits++;
    return splits == path->depth ? splits + 1 : splits;
}

/* Inserts into a full node: the upper half goes into a new node, which comes back. */
static struct range_node *split_insert(struct range_txn *txn, struct range_node *left, unsigned at,
                                       const struct slot_entry *entry)
{
    struct range_node *right = node_take(txn, left->level);

    entries_move(right, 0, left, RANGE_MIN_FILL, RANGE_FANOUT - RANGE_MIN_FILL);
    right->count = RANGE_FANOUT - RANGE_MIN_FILL;
    left->count = RANGE_MIN_FILL;
    if (at <= RANGE_MIN_FILL)
        entry_insert(left, at, entry);
    else
        entry_insert(right, at - RANGE_MIN_FILL, entry);
    return right;
}

/* A root above the two halves of the old one. */
static void root_add(struct range_txn *txn, struct range_node *left, struct slot_entry *right)
{
    struct range_node *root = node_take(txn, left->level + 1);
    struct slot_entry entry = summary_of(left);

    entry_insert(root, 0, &entry);
    entry_insert(root, 1, right);
    txn->root = root;
}

/* The path is private and the nodes for all splits are reserved. */
static void path_insert(struct range_txn *txn, struct path *path, struct slot_entry entry)
{
    unsigned i = path->depth - 1;
    unsigned at = path->at[i];

    while (path->node[i]->count == RANGE_FANOUT) {
        entry = summary_of(split_insert(txn, path->node[i], at, &entry));
        if (i == 0) {
            root_add(txn, path->node[0], &entry);
            return;
        }
        summary_put(path->node[i - 1], path->at[i - 1], path->node[i]);
        i--;
        at = path->at[i] + 1;
    }
    entry_insert(path->node[i], at, &entry);
    path_sum_up(path, i);
}

static int insert_first(struct range_txn *txn, const struct slot_entry *entry)
{
    int error = reserve(txn, 1);

    if (error)
        return error;
    txn->root = node_take(txn, 0);
    entry_insert(txn->root, 0, entry);
    txn->count = 1;
    return 0;
}

int range_txn_insert(struct range_txn *txn, u64 start, u64 end, void *item)
{
    struct slot_entry entry = {start, end, 0, item};
    struct path path;
    unsigned at;
    int error;

    if (start >= end || !item)
        return -EINVAL;
    if (!txn->root)
        return insert_first(txn, &entry);
    path_walk(txn, start, &path);
    at = path_leaf_at(&path);
    if (at < path_leaf(&path)->count && path_leaf(&path)->start[at] < end)
        return -EEXIST;
    error = reserve(txn, path_copies(txn, &path) + splits_needed(&path));
    if (error)
        return error;
    path_own(txn, &path);
    path_insert(txn, &path, entry);
    txn->count++;
    return 0;
}

/* ---- Remove ---- */

/* `node` at entry `at` of its parent takes the nearest entry of the sibling at entry `other`. */
static void borrow(struct range_txn *txn, struct range_node *parent, unsigned at, unsigned other)
{
    struct range_node *node = range_node_child(parent, at);
    struct range_node *sibling = node_own(txn, range_node_child(parent, other));

    if (other < at) {
        entries_move(node, 1, node, 0, node->count);
        entries_move(node, 0, sibling, sibling->count - 1, 1);
        sibling->count--;
    } else {
        entries_move(node, node->count, sibling, 0, 1);
        entry_delete(sibling, 0);
    }
    node->count++;
    summary_put(parent, other, sibling);
    summary_put(parent, at, node);
}

/* `node` takes all of the sibling's entries, and the parent forgets the sibling. Returns where in
 * the parent the node is now. */
static unsigned join(struct range_txn *txn, struct range_node *parent, unsigned at, unsigned other)
{
    struct range_node *node = range_node_child(parent, at);
    struct range_node *sibling = range_node_child(parent, other);

    if (other < at) {
        entries_move(node, sibling->count, node, 0, node->count);
        entries_move(node, 0, sibling, 0, sibling->count);
    } else {
        entries_move(node, node->count, sibling, 0, sibling->count);
    }
    node->count += sibling->count;
    node_give_up(txn, sibling);
    entry_delete(parent, other);
    at = MIN(at, other);
    summary_put(parent, at, node);
    return at;
}

/* The root may have become superfluous: no range, or one child. */
static void root_trim(struct range_txn *txn)
{
    struct range_node *root = txn->root;

    if (root->level == 0 && root->count == 0) {
        txn->root = NULL;
        node_give_up(txn, root);
    } else if (root->level > 0 && root->count == 1) {
        txn->root = range_node_child(root, 0);
        node_give_up(txn, root);
    }
}

/* The path is private, and a node is reserved for the sibling that an entry may be taken from. */
static void path_delete(struct range_txn *txn, struct path *path)
{
    unsigned i = path->depth - 1;

    entry_delete(path->node[i], path->at[i]);
    for (; i > 0 && path->node[i]->count < RANGE_MIN_FILL; i--) {
        struct range_node *parent = path->node[i - 1];
        unsigned at = path->at[i - 1];
        unsigned other = at > 0 ? at - 1 : at + 1;

        if (range_node_child(parent, other)->count > RANGE_MIN_FILL) {
            borrow(txn, parent, at, other);
            break;
        }
        path->at[i - 1] = join(txn, parent, at, other);
    }
    path_sum_up(path, i);
    root_trim(txn);
}

int range_txn_remove(struct range_txn *txn, u64 start)
{
    struct path path;
    int error;

    if (!path_find(txn, start, &path))
        return -ENOENT;
    error = reserve(txn, path_copies(txn, &path) + (path_leaf(&path)->count <= RANGE_MIN_FILL));
    if (error)
        return error;
    path_own(txn, &path);
    path_delete(txn, &path);
    txn->count--;
    return 0;
}

/* ---- Resize ---- */

/* Do the neighbours of the range [start, end) leave [new_start, new_end) free? */
static bool neighbours_allow(const struct range_txn *txn, u64 start, u64 end, u64 new_start,
                             u64 new_end)
{
    struct range_entry below, above;

    if (range_root_prev(txn->root, start, &below) && below.end > new_start)
        return false;
    return !range_root_next(txn->root, end, &above) || above.start >= new_end;
}

int range_txn_resize(struct range_txn *txn, u64 start, u64 new_start, u64 new_end, void *item)
{
    struct slot_entry entry = {new_start, new_end, 0, item};
    struct path path;
    u64 end;
    int error;

    if (new_start >= new_end || !item)
        return -EINVAL;
    if (!path_find(txn, start, &path))
        return -ENOENT;
    end = path_leaf(&path)->end[path_leaf_at(&path)];
    if (!neighbours_allow(txn, start, end, new_start, new_end))
        return -EEXIST;
    error = reserve(txn, path_copies(txn, &path));
    if (error)
        return error;
    path_own(txn, &path);
    entry_put(path_leaf(&path), path_leaf_at(&path), &entry);
    path_sum_up(&path, path.depth - 1);
    return 0;
}

/* ---- Reading inside the transaction, and its two ends ---- */

void *range_txn_find(const struct range_txn *txn, u64 addr)
{
    return range_root_find(txn->root, addr);
}

bool range_txn_next(const struct range_txn *txn, u64 addr, struct range_entry *out)
{
    return range_root_next(txn->root, addr, out);
}

bool range_txn_prev(const struct range_txn *txn, u64 addr, struct range_entry *out)
{
    return range_root_prev(txn->root, addr, out);
}

int range_txn_gap_down(const struct range_txn *txn, u64 low, u64 high, u64 size, u64 *start_out)
{
    return range_root_gap_down(txn->root, low, high, size, start_out);
}

void range_txn_begin(struct range_txn *txn, struct range_tree *tree)
{
    tree->generation++;
    *txn = (struct range_txn){
        .tree = tree,
        .root = tree->root,
        .count = tree->count,
        .generation = tree->generation,
    };
}

static void list_free(struct range_tree *tree, struct range_node *list)
{
    while (list) {
        struct range_node *next = list->link;

        tree->ops->free_later(tree->ctx, list);
        list = next;
    }
}

void range_txn_commit(struct range_txn *txn)
{
    struct range_tree *tree = txn->tree;

    __atomic_store_n(&tree->root, txn->root, __ATOMIC_RELEASE);
    WRITE_ONCE(tree->count, txn->count);
    list_free(tree, txn->retired);
    list_free(tree, txn->spares);
}

/* Private nodes hang below private nodes only, so the walk ends where the published tree begins. */
static void private_free(struct range_txn *txn, struct range_node *node)
{
    if (!node_is_private(txn, node))
        return;
    for (unsigned i = 0; node->level > 0 && i < node->count; i++)
        private_free(txn, range_node_child(node, i));
    txn->tree->ops->free_later(txn->tree->ctx, node);
}

void range_txn_abort(struct range_txn *txn)
{
    if (txn->root)
        private_free(txn, txn->root);
    list_free(txn->tree, txn->spares);
}
