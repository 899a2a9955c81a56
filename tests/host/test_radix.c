/* host-test-sources: lib/radix.c */
/*
 * Property test of the radix tree against a flat array over scattered windows of the index space;
 * marks, allocations that fail, nodes freed late, a real reader thread.
 *
 *     test_radix [OPERATIONS [SEED]]        default 400000 1
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/errno.h"
#include "lib/radix.h"
#include "lib/rng.h"
#include "tests/host/tap.h"

#define NEVER_FAIL UINT64_MAX
#define WINDOW     256 /* indices in a window */

static u64 operations = 400000;
static u64 seed = 1;
static struct rng rng;

/* ---- Nodes: counted, freed late, running out when told ---- */

static s64 nodes_live;
static u64 allocations_left = NEVER_FAIL;
static struct deferred *limbo;

static void *node_alloc(void *ctx)
{
    void *node;

    (void)ctx;
    if (allocations_left == 0)
        return NULL;
    if (allocations_left != NEVER_FAIL)
        allocations_left--;
    nodes_live++;
    node = malloc(sizeof(struct radix_node));
    memset(node, 0xa5, sizeof(struct radix_node));
    return node;
}

static void node_free_later(void *ctx, struct radix_node *node)
{
    (void)ctx;
    nodes_live--;
    node->deferred.next = limbo;
    limbo = &node->deferred;
}

static void grace_period(void)
{
    while (limbo) {
        struct radix_node *node = container_of(limbo, struct radix_node, deferred);

        limbo = limbo->next;
        free(node);
    }
}

static const struct radix_ops node_ops = {node_alloc, node_free_later};

/* ---- The model: windows at interesting places, an array for each ---- */

static const u64 windows[] = {0,         300,       4096 - 100, (1ul << 18) - 128,
                              1ul << 35, 1ul << 60, ~0ul - 255};

#define SLOTS (ARRAY_SIZE(windows) * WINDOW)

struct model_slot {
    u64 index;
    void *item;
    bool mark[RADIX_MARKS];
};

static struct model_slot model[SLOTS]; /* rising in index */
static struct radix tree;

static void model_reset(void)
{
    memset(model, 0, sizeof(model));
    for (size_t i = 0; i < SLOTS; i++)
        model[i].index = windows[i / WINDOW] + i % WINDOW;
    radix_init(&tree, &node_ops, NULL);
}

static struct model_slot *choose_slot(u64 windows_used)
{
    return &model[rng_below(&rng, windows_used * WINDOW)];
}

/* What radix_gang_lookup in [first, last] must give, counted and compared one by one. */
static void check_gang(int mark, u64 first, u64 last, size_t max)
{
    void *items[64];
    u64 indices[64];
    size_t found, k = 0;

    if (mark < 0)
        found = radix_gang_lookup(&tree, first, last, items, indices, max);
    else
        found = radix_gang_lookup_marked(&tree, (enum radix_mark)mark, first, last, items, indices,
                                         max);
    for (size_t i = 0; i < SLOTS && k < max; i++) {
        const struct model_slot *slot = &model[i];

        if (!slot->item || slot->index < first || slot->index > last ||
            (mark >= 0 && !slot->mark[mark]))
            continue;
        if (!CHECK(k < found && indices[k] == slot->index && items[k] == slot->item))
            return;
        k++;
    }
    CHECK(k == found);
}

/* The slots side by side from slot->index on, each as the model has it. */
static void check_slots(const struct model_slot *slot)
{
    u64 n = 0, in_window = WINDOW - (u64)(slot - model) % WINDOW;
    void *const *slots = radix_slots(&tree, slot->index, &n);

    CHECK(n > 0 && n <= RADIX_SLOTS && (slot->index + n) % RADIX_SLOTS == 0);
    for (u64 i = 0; i < MIN(n, in_window); i++)
        CHECK((slots ? radix_slot_read(&slots[i]) : NULL) == slot[i].item);
}

static bool model_has(u64 index)
{
    for (size_t i = 0; i < SLOTS; i++) {
        if (model[i].index == index)
            return model[i].item;
    }
    return false;
}

static void check_holes(const struct model_slot *slot)
{
    u64 span = rng_below(&rng, 300);
    u64 last = slot->index < ~0ul - span - 1 ? slot->index + span : ~0ul - 1;
    u64 absent = slot->index, max = rng_below(&rng, 300), back = 0;

    if (slot->index > last)
        return;
    while (absent <= last && model_has(absent))
        absent++;
    CHECK(radix_next_absent(&tree, slot->index, last) == absent);
    while (back < max && back < slot->index && model_has(slot->index - back - 1))
        back++;
    CHECK(radix_count_back(&tree, slot->index, max) == back);
}

static void check_marks(const struct model_slot *slot, enum radix_mark mark)
{
    bool any = false;
    u64 index = 0;
    size_t i;

    CHECK(radix_is_marked(&tree, slot->index, mark) == slot->mark[mark]);
    for (i = 0; i < SLOTS; i++)
        any |= model[i].mark[mark];
    CHECK(radix_has_mark(&tree, mark) == any);
    for (i = (size_t)(slot - model); i < SLOTS && !model[i].mark[mark]; i++)
        ;
    if (i == SLOTS)
        CHECK(!radix_next_marked(&tree, mark, slot->index, ~0ul, &index));
    else
        CHECK(radix_next_marked(&tree, mark, slot->index, ~0ul, &index) == model[i].item &&
              index == model[i].index);
}

static void *new_item(void)
{
    static uintptr_t next;

    return (void *)++next;
}

static void random_op(struct model_slot *slot, u64 grow_bias)
{
    enum radix_mark mark = (enum radix_mark)rng_below(&rng, RADIX_MARKS);
    void *item = new_item();

    if (rng_below(&rng, 10) < grow_bias) {
        CHECK(radix_insert(&tree, slot->index, item) == (slot->item ? -EEXIST : 0));
        if (!slot->item)
            slot->item = item;
        return;
    }
    switch (rng_below(&rng, 6)) {
    case 0:
        CHECK(radix_replace(&tree, slot->index, item) == slot->item);
        if (slot->item)
            slot->item = item;
        break;
    case 1:
    case 2:
        radix_set_mark(&tree, slot->index, mark);
        slot->mark[mark] = slot->item;
        break;
    case 3:
        radix_clear_mark(&tree, slot->index, mark);
        slot->mark[mark] = false;
        break;
    default:
        CHECK(radix_remove(&tree, slot->index) == slot->item);
        slot->item = NULL;
        memset(slot->mark, 0, sizeof(slot->mark));
        break;
    }
}

static void check_questions(u64 windows_used)
{
    const struct model_slot *slot = choose_slot(windows_used);
    const struct model_slot *other = choose_slot(windows_used);

    check_gang((int)rng_below(&rng, RADIX_MARKS + 1) - 1, MIN(slot->index, other->index),
               MAX(slot->index, other->index), rng_below(&rng, 64));
    check_holes(slot);
    check_slots(slot);
    check_marks(slot, (enum radix_mark)rng_below(&rng, RADIX_MARKS));
}

static void visit_in_order(void *arg, u64 index, void *item)
{
    size_t *i = arg;

    while (*i < SLOTS && !model[*i].item)
        ++*i;
    CHECK(*i < SLOTS && model[*i].index == index && model[*i].item == item);
    ++*i;
}

static void test_random(void)
{
    u64 windows_used = 1, grow_bias = 5;
    size_t seen = 0;

    rng_seed(&rng, seed);
    model_reset();
    for (u64 i = 0; i < operations && !tap_failures; i++) {
        struct model_slot *slot = choose_slot(windows_used);

        if (i % 2048 == 0) {
            windows_used = 1 + rng_below(&rng, ARRAY_SIZE(windows));
            grow_bias = rng_below(&rng, 10);
        }
        random_op(slot, grow_bias);
        CHECK(radix_lookup(&tree, slot->index) == slot->item);
        if (i % 16 == 0) {
            check_questions(windows_used);
            grace_period();
        }
    }
    printf("# seed %lu: %lu operations\n", seed, operations);
    radix_destroy(&tree, visit_in_order, &seen);
    while (seen < SLOTS && !model[seen].item)
        seen++;
    CHECK(seen == SLOTS);
    CHECK(radix_is_empty(&tree) && nodes_live == 0);
    grace_period();
}

static void test_empty_nodes_are_freed(void)
{
    model_reset();
    CHECK(radix_insert(&tree, 5, &tree) == 0 && nodes_live == 1);
    CHECK(radix_insert(&tree, 70, &tree) == 0 && nodes_live == 3);
    CHECK(radix_remove(&tree, 70) == &tree && nodes_live == 1);
    CHECK(radix_insert(&tree, ~0ul, &tree) == 0 && nodes_live == 1 + 10 + 10);
    CHECK(radix_remove(&tree, ~0ul) == &tree && nodes_live == 1);
    CHECK(radix_remove(&tree, ~0ul) == NULL);
    CHECK(radix_remove(&tree, 5) == &tree && nodes_live == 0);
    CHECK(radix_is_empty(&tree));
    grace_period();
}

static void test_marks_follow_the_tree(void)
{
    u64 index = 0;

    model_reset();
    CHECK(radix_insert(&tree, 5, &tree) == 0);
    radix_set_mark(&tree, 6, RADIX_MARK_DIRTY); /* no item there */
    CHECK(!radix_has_mark(&tree, RADIX_MARK_DIRTY));
    radix_set_mark(&tree, 5, RADIX_MARK_DIRTY);
    CHECK(radix_insert(&tree, 1ul << 30, &tree) == 0); /* grows above the mark */
    CHECK(radix_has_mark(&tree, RADIX_MARK_DIRTY) && !radix_has_mark(&tree, RADIX_MARK_TOWRITE));
    CHECK(radix_next_marked(&tree, RADIX_MARK_DIRTY, 0, ~0ul, &index) == &tree && index == 5);
    radix_set_mark(&tree, 1ul << 30, RADIX_MARK_DIRTY);
    radix_clear_mark(&tree, 5, RADIX_MARK_DIRTY);
    CHECK(radix_next_marked(&tree, RADIX_MARK_DIRTY, 0, ~0ul, &index) == &tree);
    CHECK(index == 1ul << 30);
    radix_clear_mark(&tree, 1ul << 30, RADIX_MARK_DIRTY);
    CHECK(!radix_has_mark(&tree, RADIX_MARK_DIRTY));
    radix_set_mark(&tree, 1ul << 30, RADIX_MARK_WRITEBACK);
    CHECK(radix_remove(&tree, 1ul << 30) == &tree); /* and its mark with it */
    CHECK(!radix_has_mark(&tree, RADIX_MARK_WRITEBACK));
    radix_destroy(&tree, NULL, NULL);
    grace_period();
}

static void test_failed_allocation_changes_nothing(void)
{
    for (u64 fail_at = 0; fail_at <= 20; fail_at++) {
        struct radix_node *root;

        model_reset();
        CHECK(radix_insert(&tree, 5, &tree) == 0);
        root = tree.root;
        allocations_left = fail_at;
        CHECK(radix_insert(&tree, ~0ul, &tree) == (fail_at < 20 ? -ENOMEM : 0));
        allocations_left = NEVER_FAIL;
        if (fail_at < 20)
            CHECK(tree.root == root && nodes_live == 1);
        CHECK(radix_lookup(&tree, 5) == &tree);
        CHECK(radix_lookup(&tree, ~0ul) == (fail_at < 20 ? NULL : &tree));
        radix_destroy(&tree, NULL, NULL);
        CHECK(nodes_live == 0);
        grace_period();
    }
}

/* ---- A reader thread: what is there all the time is found all the time. ---- */

#define FIXED_INDEX 37
#define ROUNDS      30000

static bool stop_reading; /* atomic */

static void *reader_thread(void *arg)
{
    uintptr_t misses = 0;

    (void)arg;
    while (!__atomic_load_n(&stop_reading, __ATOMIC_ACQUIRE)) {
        void *items[4];
        u64 indices[4];
        size_t n = radix_gang_lookup(&tree, 0, ~0ul, items, indices, 4);

        misses += radix_lookup(&tree, FIXED_INDEX) != &tree;
        misses += n == 0 || indices[0] != FIXED_INDEX;
    }
    return (void *)misses;
}

static void test_reader_thread(void)
{
    pthread_t reader;
    void *misses;

    rng_seed(&rng, seed);
    model_reset();
    stop_reading = false;
    CHECK(radix_insert(&tree, FIXED_INDEX, &tree) == 0);
    CHECK(pthread_create(&reader, NULL, reader_thread, NULL) == 0);
    for (u64 i = 0; i < ROUNDS; i++) {
        u64 index = 40 + (rng_next(&rng) >> (4 + rng_below(&rng, 59)));

        CHECK(radix_insert(&tree, index, &tree) == 0);
        CHECK(radix_remove(&tree, index) == &tree);
    }
    __atomic_store_n(&stop_reading, true, __ATOMIC_RELEASE);
    CHECK(pthread_join(reader, &misses) == 0);
    CHECK(misses == NULL);
    radix_destroy(&tree, NULL, NULL);
    CHECK(nodes_live == 0);
    grace_period();
}

static const struct tap_test tests[] = {
    {"radix/equals_flat_model", test_random},
    {"radix/empty_nodes_are_freed", test_empty_nodes_are_freed},
    {"radix/marks_follow_the_tree", test_marks_follow_the_tree},
    {"radix/failed_allocation_changes_nothing", test_failed_allocation_changes_nothing},
    {"radix/reader_finds_what_stays", test_reader_thread},
};

int main(int argc, char **argv)
{
    if (argc > 1)
        operations = strtoull(argv[1], NULL, 0);
    if (argc > 2)
        seed = strtoull(argv[2], NULL, 0);
    return tap_main(tests, ARRAY_SIZE(tests));
}
