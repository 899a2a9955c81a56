/*
 * What lib/range_tree.c (readers) and lib/range_txn.c (writer) share about one node. Nobody else
 * includes this.
 */
#ifndef LIB_RANGE_NODE_H
#define LIB_RANGE_NODE_H

#include "lib/range_tree.h"

/* The first entry with end > addr; node->count if there is none. Ends rise, so halving finds it. */
static inline unsigned range_node_search(const struct range_node *node, u64 addr)
{
    unsigned low = 0, high = node->count;

    while (low < high) {
        unsigned middle = (low + high) / 2;

        if (node->end[middle] > addr)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static inline struct range_node *range_node_child(const struct range_node *node, unsigned i)
{
    return node->slot[i];
}

/* The largest gap between two neighbouring ranges anywhere below the node. */
static inline u64 range_node_gap(const struct range_node *node)
{
    u64 largest = node->count > 0 ? node->gap[0] : 0;

    for (unsigned i = 1; i < node->count; i++) {
        u64 between = node->start[i] - node->end[i - 1];

        largest = MAX(largest, MAX(between, node->gap[i]));
    }
    return largest;
}

/* The reader's walks, from a given root: the tree's or a transaction's. NULL is an empty tree. */
void *range_root_find(const struct range_node *root, u64 addr);
bool range_root_next(const struct range_node *root, u64 addr, struct range_entry *out);
bool range_root_prev(const struct range_node *root, u64 addr, struct range_entry *out);
int range_root_gap_down(const struct range_node *root, u64 low, u64 high, u64 size, u64 *start_out);

#endif
