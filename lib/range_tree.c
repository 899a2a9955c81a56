/*
 * Range tree, the readers' half (the writer's is lib/range_txn.c): look up, walk, find gaps.
 *
 * A node has up to 16 entries, at least 8 unless it is the root. All leaves are equally deep.
 *
 *     inner   start  |  100        |  900        |       lowest start in the child
 *             end    |  500        |  990        |       highest end in the child
 *             gap    |  200        |   10        |       largest gap within the child
 *             slot   |   |         |   |         |       the child
 *                        v             v
 *     leaf    start  | 100 | 400 | | 900 | 960 |
 *             end    | 200 | 500 | | 950 | 990 |
 *             item   |  A  |  B  | |  C  |  D  |
 *
 * Leaves and inner nodes look alike, so one search serves both: the first entry with end > addr. In
 * an inner node, that is the only child that can contain addr, or else the one whose first range
 * is the next above it.
 *
 * Gap search, from the top. The free places in [low, high) are: above the last entry, between two
 * entries, below the first, and inside the children. Between entries 500..900 above there is one of
 * 400 that belongs to no child; that is why it is looked at where the two entries stand together.
 *
 *     <- low                                                              high ->
 *     [ free ][ A ][ free ][ B ][        free         ][ C ][ free ][ D ][ free ]
 *                                                                         (1)
 *                                                            (2) inside child 1 if its gap >= size
 *                                           (3) between the children
 *                     (4) inside child 0 if its gap >= size
 *       (5)
 *
 * A child whose gap is large enough is a promise, unless low or high cuts through it: at most one
 * child at each end, a level. So the search looks at few nodes that do not have what it wants.
 *
 * Why nodes are replaced and not edited. A reader that walks while entries shift from slot to slot
 * can miss a range that is there all the time, and a fault would then kill a program that did
 * nothing wrong. Sequence counters would make it start over, but a writer that is interrupted in
 * the middle would stop all readers, and a change of several ranges (mmap over three others) would
 * need one counter for the tree, which all faults of a process would then wait on. With path
 * copying, the writer builds new nodes from the changed leaf up to a new root, about 550 bytes
 * for each level, two or three levels; the release store of the root is the change. A reader
 * that has loaded the root has a tree that never changes again: it needs no barrier, no retry,
 * no count, and it is as simple as a reader of a constant. The old nodes are freed after a grace
 * period. The price is paid by mmap and munmap, which copy some cache lines under a lock they
 * hold anyway.
 */
#include "lib/range_tree.h"

#include "lib/errno.h"
#include "lib/range_node.h"

static const struct range_node *load_root(const struct range_tree *tree)
{
    return __atomic_load_n(&tree->root, __ATOMIC_ACQUIRE);
}

void range_tree_init(struct range_tree *tree, const struct range_tree_ops *ops, void *ctx)
{
    tree->root = NULL;
    tree->count = 0;
    tree->generation = 0;
    tree->ops = ops;
    tree->ctx = ctx;
}

static void entry_read(const struct range_node *leaf, unsigned i, struct range_entry *out)
{
    out->start = leaf->start[i];
    out->end = leaf->end[i];
    out->item = leaf->slot[i];
}

void *range_root_find(const struct range_node *node, u64 addr)
{
    while (node) {
        unsigned i = range_node_search(node, addr);

        if (i == node->count || node->start[i] > addr)
            return NULL;
        if (node->level == 0)
            return node->slot[i];
        node = range_node_child(node, i);
    }
    return NULL;
}

bool range_root_next(const struct range_node *node, u64 addr, struct range_entry *out)
{
    while (node) {
        unsigned i = range_node_search(node, addr);

        if (i == node->count)
            return false;
        if (node->level == 0) {
            entry_read(node, i, out);
            return true;
        }
        node = range_node_child(node, i);
    }
    return false;
}

/* Entries with start < addr; the last of them is the only place where the answer can be. */
bool range_root_prev(const struct range_node *node, u64 addr, struct range_entry *out)
{
    while (node) {
        unsigned below = range_node_search(node, addr);

        if (below < node->count && node->start[below] < addr)
            below++;
        if (below == 0)
            return false;
        if (node->level == 0) {
            entry_read(node, below - 1, out);
            return true;
        }
        node = range_node_child(node, below - 1);
    }
    return false;
}

/* The highest place for `size` in the part of [from, to) that lies in [low, high). */
static bool gap_fits(u64 from, u64 to, u64 low, u64 high, u64 size, u64 *start_out)
{
    from = MAX(from, low);
    to = MIN(to, high);
    if (to < from || to - from < size)
        return false;
    *start_out = to - size;
    return true;
}

/* The gaps between the entries of one node and in its children, from the top. */
static bool node_gap_down(const struct range_node *node, u64 low, u64 high, u64 size,
                          u64 *start_out)
{
    /* Entries at and above `high` are of no interest; the last one below is where to begin. */
    for (unsigned i = node->count; i-- > 0;) {
        if (node->start[i] < high && node->gap[i] >= size &&
            node_gap_down(range_node_child(node, i), low, high, size, start_out))
            return true;
        if (node->start[i] <= low)
            return false;
        if (i > 0 && gap_fits(node->end[i - 1], node->start[i], low, high, size, start_out))
            return true;
    }
    return false;
}

int range_root_gap_down(const struct range_node *root, u64 low, u64 high, u64 size, u64 *start_out)
{
    u64 first = high, last = low; /* where the ranges of the tree begin and end */

    if (size == 0)
        return -EINVAL;
    if (root) {
        first = root->start[0];
        last = root->end[root->count - 1];
    }
    if (gap_fits(last, high, low, high, size, start_out))
        return 0;
    if (root && node_gap_down(root, low, high, size, start_out))
        return 0;
    return gap_fits(low, first, low, high, size, start_out) ? 0 : -ENOMEM;
}

void *range_tree_find(const struct range_tree *tree, u64 addr)
{
    return range_root_find(load_root(tree), addr);
}

bool range_tree_next(const struct range_tree *tree, u64 addr, struct range_entry *out)
{
    return range_root_next(load_root(tree), addr, out);
}

bool range_tree_prev(const struct range_tree *tree, u64 addr, struct range_entry *out)
{
    return range_root_prev(load_root(tree), addr, out);
}

int range_tree_gap_down(const struct range_tree *tree, u64 low, u64 high, u64 size, u64 *start_out)
{
    return range_root_gap_down(load_root(tree), low, high, size, start_out);
}

u64 range_tree_count(const struct range_tree *tree)
{
    return READ_ONCE(tree->count);
}

static void destroy_node(struct range_tree *tree, struct range_node *node, range_visit_fn visit,
                         void *arg)
{
    for (unsigned i = 0; i < node->count; i++) {
        if (node->level > 0) {
            destroy_node(tree, range_node_child(node, i), visit, arg);
        } else if (visit) {
            struct range_entry entry;

            entry_read(node, i, &entry);
            visit(arg, &entry);
        }
    }
    tree->ops->free_later(tree->ctx, node);
}

void range_tree_destroy(struct range_tree *tree, range_visit_fn visit, void *arg)
{
    struct range_node *root = tree->root;

    __atomic_store_n(&tree->root, (struct range_node *)NULL, __ATOMIC_RELEASE);
    WRITE_ONCE(tree->count, 0);
    if (root)
        destroy_node(tree, root, visit, arg);
}

/* One entry of an inner node against the child it sums up. */
static bool summary_is_right(const struct range_node *node, unsigned i)
{
    const struct range_node *child = range_node_child(node, i);

    return child->level + 1 == node->level && child->count >= RANGE_MIN_FILL &&
           child->count <= RANGE_FANOUT && node->start[i] == child->start[0] &&
           node->end[i] == child->end[child->count - 1] && node->gap[i] == range_node_gap(child);
}

/* Checks the node and all below it; adds the ranges it finds to *count. */
static bool node_check(const struct range_node *node, u64 *count)
{
    for (unsigned i = 0; i < node->count; i++) {
        if (node->start[i] >= node->end[i] || !node->slot[i])
            return false;
        if (i > 0 && node->start[i] < node->end[i - 1])
            return false;
        if (node->level == 0 && node->gap[i] != 0)
            return false;
        if (node->level > 0 &&
            !(summary_is_right(node, i) && node_check(range_node_child(node, i), count)))
            return false;
    }
    if (node->level == 0)
        *count += node->count;
    return true;
}

bool range_tree_check(const struct range_tree *tree)
{
    const struct range_node *root = load_root(tree);
    u64 count = 0;

    if (!root)
        return tree->count == 0;
    if (root->count < (root->level > 0 ? 2u : 1u) || root->count > RANGE_FANOUT)
        return false;
    return root->level < RANGE_MAX_DEPTH && node_check(root, &count) && count == tree->count;
}
