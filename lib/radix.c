/*
 * Radix tree with lock-free readers and one writer.
 *
 *     root (shift 6)              index = 6 bits per level
 *     +---+---+---+-- ... --+
 *     | 0 | 1 | 2 |         |     slot of index i in a node: (i >> shift) & 63
 *     +-|-+---+-|-+-- ... --+
 *       v       v
 *     leaf    leaf (shift 0)      slots hold items
 *     0..63   128..191
 *
 * Each node knows its own shift, so a reader needs one load, the root pointer, to know the tree's
 * height: there is no second field that could be from another moment.
 *
 * What a reader may meet while the writer works:
 *   - a new node is filled in before the release store that links it: never seen half made;
 *   - growing puts a new root on top of the old one; a reader still at the old root finds
 *     everything that was there, and takes an index beyond it for absent, as it just was;
 *   - a node that becomes empty is unlinked but not changed any more: a reader in it finds empty
 *     slots. The same holds for a root that is taken off because only its slot 0 is in use: its
 *     slot 0 keeps pointing at the new root;
 *   - memory of unlinked nodes is reused after a grace period only (ops->free_later).
 *
 * A mark bit in an inner node says that something below has the mark. Marks are changed by the
 * writer only; setting walks up until a bit is already set, clearing until another bit remains.
 */
#include "lib/radix.h"

#include "lib/errno.h"
#include "lib/string.h"

#define SLOT_MASK  (RADIX_SLOTS - 1)
#define INDEX_BITS 64
#define ANY_ITEM   (-1) /* in place of a mark: no mark wanted */

static struct radix_node *load_root(const struct radix *tree)
{
    return __atomic_load_n(&tree->root, __ATOMIC_ACQUIRE);
}

static void publish_root(struct radix *tree, struct radix_node *root)
{
    __atomic_store_n(&tree->root, root, __ATOMIC_RELEASE);
}

static void *load_slot(const struct radix_node *node, unsigned slot)
{
    return __atomic_load_n(&node->slots[slot], __ATOMIC_ACQUIRE);
}

static void publish_slot(struct radix_node *node, unsigned slot, void *what)
{
    __atomic_store_n(&node->slots[slot], what, __ATOMIC_RELEASE);
}

static unsigned slot_of(const struct radix_node *node, u64 index)
{
    return (index >> node->shift) & SLOT_MASK;
}

/* Shift of the lowest root that reaches `index`. */
static unsigned shift_for(u64 index)
{
    unsigned shift = 0;

    while (shift + RADIX_BITS < INDEX_BITS && index >> (shift + RADIX_BITS))
        shift += RADIX_BITS;
    return shift;
}

static bool node_reaches(const struct radix_node *root, u64 index)
{
    return root->shift >= shift_for(index);
}

void radix_init(struct radix *tree, const struct radix_ops *ops, void *ctx)
{
    tree->root = NULL;
    tree->ops = ops;
    tree->ctx = ctx;
}

bool radix_is_empty(const struct radix *tree)
{
    return !load_root(tree);
}

/* The leaf in whose span `index` lies, or NULL. */
static struct radix_node *find_leaf(const struct radix *tree, u64 index)
{
    struct radix_node *node = load_root(tree);

    if (!node || !node_reaches(node, index))
        return NULL;
    while (node && node->shift > 0)
        node = load_slot(node, slot_of(node, index));
    return node;
}

void *radix_lookup(const struct radix *tree, u64 index)
{
    struct radix_node *leaf = find_leaf(tree, index);

    return leaf ? load_slot(leaf, slot_of(leaf, index)) : NULL;
}

void *const *radix_slots(const struct radix *tree, u64 index, u64 *n)
{
    struct radix_node *leaf = find_leaf(tree, index);

    *n = RADIX_SLOTS - (index & SLOT_MASK);
    return leaf ? &leaf->slots[index & SLOT_MASK] : NULL;
}

/* ---- Inserting: reserve all nodes first, so that from there on nothing can fail. ---- */

/* Nodes on the way to `index` that do not exist. */
static unsigned nodes_missing(const struct radix *tree, u64 index)
{
    unsigned wanted = shift_for(index);
    const struct radix_node *node = tree->root;

    if (!node)
        return wanted / RADIX_BITS + 1;
    /* New roots on top, and from the topmost a path of its own: index is not below the old one. */
    if (wanted > node->shift)
        return (wanted - node->shift) / RADIX_BITS + wanted / RADIX_BITS;
    while (node->shift > 0) {
        const struct radix_node *child = node->slots[slot_of(node, index)];

        if (!child)
            break;
        node = child;
    }
    return node->shift / RADIX_BITS;
}

/* Reserved nodes form a list through `parent`. */
static struct radix_node *reserve_take(struct radix_node **reserve)
{
    struct radix_node *node = *reserve;

    *reserve = node->parent;
    node->parent = NULL;
    return node;
}

static int reserve_fill(struct radix *tree, struct radix_node **reserve, unsigned nodes)
{
    for (; nodes > 0; nodes--) {
        struct radix_node *node = tree->ops->alloc(tree->ctx);

        if (!node) {
            while (*reserve)
                tree->ops->free_later(tree->ctx, reserve_take(reserve));
            return -ENOMEM;
        }
        memset(node, 0, sizeof(*node));
        node->parent = *reserve;
        *reserve = node;
    }
    return 0;
}

/* Puts a root on top of the present one. */
static void grow(struct radix *tree, struct radix_node *root)
{
    struct radix_node *old = tree->root;

    root->shift = old->shift + RADIX_BITS;
    root->count = 1;
    for (unsigned mark = 0; mark < RADIX_MARKS; mark++)
        root->marks[mark] = old->marks[mark] ? 1 : 0;
    root->slots[0] = old;
    old->parent = root;
    old->offset = 0;
    publish_root(tree, root);
}

static struct radix_node *add_child(struct radix_node *parent, unsigned slot,
                                    struct radix_node *child)
{
    child->shift = parent->shift - RADIX_BITS;
    child->parent = parent;
    child->offset = slot;
    publish_slot(parent, slot, child);
    parent->count++;
    return child;
}

int radix_insert(struct radix *tree, u64 index, void *item)
{
    struct radix_node *reserve = NULL;
    struct radix_node *node;
    int error;

    if (radix_lookup(tree, index))
        return -EEXIST;
    error = reserve_fill(tree, &reserve, nodes_missing(tree, index));
    if (error)
        return error;

    if (!tree->root) {
        node = reserve_take(&reserve);
        node->shift = shift_for(index);
        publish_root(tree, node);
    }
    while (!node_reaches(tree->root, index))
        grow(tree, reserve_take(&reserve));
    node = tree->root;
    while (node->shift > 0) {
        unsigned slot = slot_of(node, index);
        struct radix_node *child = node->slots[slot];

        node = child ? child : add_child(node, slot, reserve_take(&reserve));
    }
    publish_slot(node, slot_of(node, index), item);
    node->count++;
    return 0;
}

/* ---- Marks ---- */

static bool slot_is_marked(const struct radix_node *node, int mark, unsigned slot)
{
    return (READ_ONCE(node->marks[mark]) >> slot) & 1;
}

static void mark_up(struct radix_node *node, unsigned slot, enum radix_mark mark)
{
    while (node && !slot_is_marked(node, mark, slot)) {
        WRITE_ONCE(node->marks[mark], node->marks[mark] | 1ul << slot);
        slot = node->offset;
        node = node->parent;
    }
}

static void unmark_up(struct radix_node *node, unsigned slot, enum radix_mark mark)
{
    while (node && slot_is_marked(node, mark, slot)) {
        WRITE_ONCE(node->marks[mark], node->marks[mark] & ~(1ul << slot));
        if (node->marks[mark])
            return;
        slot = node->offset;
        node = node->parent;
    }
}

void radix_set_mark(struct radix *tree, u64 index, enum radix_mark mark)
{
    struct radix_node *leaf = find_leaf(tree, index);

    if (leaf && leaf->slots[slot_of(leaf, index)])
        mark_up(leaf, slot_of(leaf, index), mark);
}

void radix_clear_mark(struct radix *tree, u64 index, enum radix_mark mark)
{
    struct radix_node *leaf = find_leaf(tree, index);

    if (leaf)
        unmark_up(leaf, slot_of(leaf, index), mark);
}

bool radix_is_marked(const struct radix *tree, u64 index, enum radix_mark mark)
{
    struct radix_node *leaf = find_leaf(tree, index);

    return leaf && slot_is_marked(leaf, mark, slot_of(leaf, index));
}

bool radix_has_mark(const struct radix *tree, enum radix_mark mark)
{
    struct radix_node *root = load_root(tree);

    return root && READ_ONCE(root->marks[mark]);
}

/* ---- Removing ---- */

/* Unlinks the node and those above it for as long as they are empty. */
static void prune_up(struct radix *tree, struct radix_node *node)
{
    while (node && node->count == 0) {
        struct radix_node *parent = node->parent;

        if (parent) {
            publish_slot(parent, node->offset, NULL);
            parent->count--;
        } else {
            publish_root(tree, NULL);
        }
        tree->ops->free_later(tree->ctx, node);
        node = parent;
    }
}

/* Takes roots off that have nothing but slot 0. Their slot 0 stays, for readers inside. */
static void shrink(struct radix *tree)
{
    struct radix_node *root = tree->root;

    while (root && root->shift > 0 && root->count == 1 && root->slots[0]) {
        struct radix_node *child = root->slots[0];

        child->parent = NULL;
        publish_root(tree, child);
        tree->ops->free_later(tree->ctx, root);
        root = child;
    }
}

void *radix_remove(struct radix *tree, u64 index)
{
    struct radix_node *leaf = find_leaf(tree, index);
    unsigned slot;
    void *item;

    if (!leaf)
        return NULL;
    slot = slot_of(leaf, index);
    item = leaf->slots[slot];
    if (!item)
        return NULL;
    for (unsigned mark = 0; mark < RADIX_MARKS; mark++)
        unmark_up(leaf, slot, mark);
    publish_slot(leaf, slot, NULL);
    leaf->count--;
    prune_up(tree, leaf);
    shrink(tree);
    return item;
}

void *radix_replace(struct radix *tree, u64 index, void *item)
{
    struct radix_node *leaf = find_leaf(tree, index);
    void *old = leaf ? leaf->slots[slot_of(leaf, index)] : NULL;

    if (old)
        publish_slot(leaf, slot_of(leaf, index), item);
    return old;
}

/* ---- Walking ---- */

/*
 * The first leaf that may hold something wanted in [*index, last]; *index moves up to where the
 * leaf's span begins. Passes over missing and unmarked subtrees in one step each. NULL: none.
 */
static struct radix_node *next_leaf(const struct radix *tree, int mark, u64 *index, u64 last)
{
    struct radix_node *node = load_root(tree);

    if (!node || !node_reaches(node, *index))
        return NULL;
    while (node->shift > 0) {
        unsigned slot = slot_of(node, *index);
        struct radix_node *child = load_slot(node, slot);
        u64 next;

        if (child && (mark == ANY_ITEM || slot_is_marked(node, mark, slot))) {
            node = child;
            continue;
        }
        next = ((*index >> node->shift) + 1) << node->shift;
        if (next == 0 || next > last)
            return NULL;
        *index = next;
        /* Past this node's last slot: start over from the root, which may be another by now. */
        if (slot == SLOT_MASK) {
            node = load_root(tree);
            if (!node || !node_reaches(node, *index))
                return NULL;
        }
    }
    return node;
}

/* Collects from one leaf, from *index on, up to `last` or the leaf's end; *index moves on. */
static size_t collect_leaf(const struct radix_node *leaf, int mark, u64 *index, u64 last,
                           void **items, u64 *indices, size_t max)
{
    u64 end = MIN(*index | SLOT_MASK, last);
    size_t found = 0;

    for (u64 i = *index;; i++) {
        void *item = load_slot(leaf, i & SLOT_MASK);

        if (item && (mark == ANY_ITEM || slot_is_marked(leaf, mark, i & SLOT_MASK))) {
            items[found] = item;
            if (indices)
                indices[found] = i;
            found++;
        }
        if (i == end || found == max)
            break;
    }
    *index = end + 1;
    return found;
}

static size_t collect(const struct radix *tree, int mark, u64 first, u64 last, void **items,
                      u64 *indices, size_t max)
{
    size_t found = 0;
    u64 index = first;

    while (found < max && index <= last) {
        struct radix_node *leaf = next_leaf(tree, mark, &index, last);

        if (!leaf)
            break;
        found += collect_leaf(leaf, mark, &index, last, items + found,
                              indices ? indices + found : NULL, max - found);
        if (index == 0) /* that was the last leaf there can be */
            break;
    }
    return found;
}

size_t radix_gang_lookup(const struct radix *tree, u64 first, u64 last, void **items, u64 *indices,
                         size_t max)
{
    return collect(tree, ANY_ITEM, first, last, items, indices, max);
}

size_t radix_gang_lookup_marked(const struct radix *tree, enum radix_mark mark, u64 first, u64 last,
                                void **items, u64 *indices, size_t max)
{
    return collect(tree, (int)mark, first, last, items, indices, max);
}

void *radix_next_marked(const struct radix *tree, enum radix_mark mark, u64 first, u64 last,
                        u64 *index_out)
{
    void *item;

    return collect(tree, (int)mark, first, last, &item, index_out, 1) ? item : NULL;
}

u64 radix_next_absent(const struct radix *tree, u64 first, u64 last)
{
    u64 index = first;

    while (index <= last) {
        struct radix_node *leaf = find_leaf(tree, index);
        u64 end = MIN(index | SLOT_MASK, last);

        if (!leaf)
            return index;
        for (; index <= end; index++) {
            if (!load_slot(leaf, index & SLOT_MASK))
                return index;
        }
    }
    return last + 1;
}

u64 radix_count_back(const struct radix *tree, u64 index, u64 max)
{
    u64 limit = MIN(index, max);
    u64 count = 0;

    while (count < limit) {
        u64 at = index - count - 1;
        struct radix_node *leaf = find_leaf(tree, at);
        u64 in_leaf = MIN((at & SLOT_MASK) + 1, limit - count);

        if (!leaf)
            return count;
        for (; in_leaf > 0; in_leaf--, at--, count++) {
            if (!load_slot(leaf, at & SLOT_MASK))
                return count;
        }
    }
    return count;
}

/* Shows and frees a subtree whose first index is `base`. */
static void destroy_node(struct radix *tree, struct radix_node *node, u64 base,
                         radix_visit_fn visit, void *arg)
{
    for (u64 slot = 0; slot < RADIX_SLOTS; slot++) {
        u64 index = base + (slot << node->shift);
        void *what = node->slots[slot];

        if (!what)
            continue;
        if (node->shift > 0)
            destroy_node(tree, what, index, visit, arg);
        else if (visit)
            visit(arg, index, what);
    }
    tree->ops->free_later(tree->ctx, node);
}

void radix_destroy(struct radix *tree, radix_visit_fn visit, void *arg)
{
    struct radix_node *root = tree->root;

    publish_root(tree, NULL);
    if (root)
        destroy_node(tree, root, 0, visit, arg);
}
