/* host-test-sources: lib/range_tree.c lib/range_txn.c */
/*
 * Property test of the range tree against a flat array: random transactions of several operations,
 * committed or aborted, each result compared; readers that keep an old root, and readers that are
 * threads; allocations that fail.
 *
 *     test_range_tree [OPERATIONS [SEED]]        default 1000000 1; 10000000 with FAULTLINE_LONG
 *
 * With -DFUZZ the same operations are chosen by libFuzzer's bytes: `make fuzz-range-tree`.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "lib/rng.h"
#include "tests/host/range_model.h"
#include "tests/host/tap.h"

#define DEFAULT_OPERATIONS 1000000
#define LONG_OPERATIONS    10000000
#define DEFAULT_SEED       1
#define NEVER_FAIL         UINT64_MAX

static u64 operations = DEFAULT_OPERATIONS;
static u64 seed = DEFAULT_SEED;

/* ---- Choices: from a generator, or from a fuzzer's bytes while there are any ---- */

static struct rng rng;
static const u8 *fuzz_data;
static size_t fuzz_size;

static u64 choose(u64 n)
{
    u64 value = 0;

    if (!fuzz_data)
        return rng_below(&rng, n);
    for (u64 range = n; range > 1 && fuzz_size > 0; range >>= 8, fuzz_size--)
        value = value << 8 | *fuzz_data++;
    return value % n;
}

/* ---- Nodes: counted, freed late, running out when told ---- */

struct nodes {
    s64 live;               /* allocated and not handed back */
    u64 allocations_left;   /* then alloc fails once */
    struct deferred *limbo; /* handed back, not yet freed: readers may be inside */
};

static struct nodes nodes = {0, NEVER_FAIL, NULL};

static void *node_alloc(void *ctx)
{
    struct nodes *n = ctx;

    if (n->allocations_left == 0) {
        n->allocations_left = NEVER_FAIL;
        return NULL;
    }
    if (n->allocations_left != NEVER_FAIL)
        n->allocations_left--;
    n->live++;
    return malloc(sizeof(struct range_node));
}

static void node_free_later(void *ctx, struct range_node *node)
{
    struct nodes *n = ctx;

    n->live--;
    node->deferred.next = n->limbo;
    n->limbo = &node->deferred;
}

static void grace_period(void)
{
    while (nodes.limbo) {
        struct range_node *node = container_of(nodes.limbo, struct range_node, deferred);

        nodes.limbo = nodes.limbo->next;
        free(node);
    }
}

static const struct range_tree_ops node_ops = {node_alloc, node_free_later};

/* ---- The tree under test, its model, and an old reader ---- */

struct subject {
    struct range_tree tree;
    struct model model;         /* what the tree must hold now */
    struct model before;        /* the model at the beginning of the transaction */
    struct range_tree old_tree; /* a reader that loaded the root a while ago, */
    struct model old_model;     /* and what it must still see */
    u64 universe;               /* addresses in use are below */
    u64 grow_bias;              /* insertions in ten operations */
    uintptr_t next_item;
};

static struct subject subject;

static void *new_item(struct subject *s)
{
    return (void *)++s->next_item;
}

static bool entries_equal(const struct range_entry *a, const struct range_entry *b)
{
    return a->start == b->start && a->end == b->end && a->item == b->item;
}

typedef bool (*next_fn)(const void *where, u64 addr, struct range_entry *out);

static bool next_in_tree(const void *where, u64 addr, struct range_entry *out)
{
    return range_tree_next(where, addr, out);
}

static bool next_in_txn(const void *where, u64 addr, struct range_entry *out)
{
    return range_txn_next(where, addr, out);
}

/* Does a walk from 0 show exactly the model? */
static bool walk_equals(next_fn next, const void *where, const struct model *m)
{
    struct range_entry entry;
    u64 addr = 0;

    for (size_t i = 0; i < m->count; i++) {
        if (!next(where, addr, &entry) || !entries_equal(&entry, &m->entry[i]))
            return false;
        addr = entry.end;
    }
    return !next(where, addr, &entry);
}

static void check_whole_tree(struct subject *s)
{
    CHECK(range_tree_check(&s->tree));
    CHECK(range_tree_count(&s->tree) == s->model.count);
    CHECK(walk_equals(next_in_tree, &s->tree, &s->model));
}

/* All kinds of questions at one random address. */
static void check_questions(struct subject *s)
{
    const struct model *m = &s->model;
    u64 addr = choose(s->universe + 2);
    size_t i = model_next(m, addr);
    struct range_entry entry;

    CHECK(range_tree_find(&s->tree, addr) == model_find(m, addr));
    if (CHECK(range_tree_next(&s->tree, addr, &entry) == (i < m->count)) && i < m->count)
        CHECK(entries_equal(&entry, &m->entry[i]));
    while (i < m->count && m->entry[i].start < addr)
        i++;
    if (CHECK(range_tree_prev(&s->tree, addr, &entry) == (i > 0)) && i > 0)
        CHECK(entries_equal(&entry, &m->entry[i - 1]));
}

static void check_gap(struct subject *s)
{
    u64 low = choose(2) ? 0 : choose(s->universe);
    u64 high = choose(2) ? s->universe : choose(s->universe + 1);
    u64 size = choose(choose(8) ? 24 : s->universe);
    u64 got = 0, wanted = 0;
    int error = model_gap_down(&s->model, low, high, size, &wanted);

    CHECK(range_tree_gap_down(&s->tree, low, high, size, &got) == error);
    CHECK(got == wanted);
}

static void subject_init(struct subject *s, u64 universe)
{
    range_tree_init(&s->tree, &node_ops, &nodes);
    s->model.count = 0;
    s->old_model.count = 0;
    s->old_tree = s->tree;
    s->universe = universe;
    s->grow_bias = 5;
}

static void visit_in_order(void *arg, const struct range_entry *entry)
{
    size_t *seen = arg;

    CHECK(entries_equal(entry, &subject.model.entry[*seen]));
    ++*seen;
}

static void subject_destroy(struct subject *s)
{
    size_t seen = 0;

    range_tree_destroy(&s->tree, visit_in_order, &seen);
    CHECK(seen == s->model.count);
    CHECK(nodes.live == 0);
    grace_period();
}

/* ---- Random operations. Each returns what the transaction returned. ---- */

static int op_insert(struct subject *s, struct range_txn *txn)
{
    u64 start = choose(s->universe);
    u64 end = start + choose(24);
    void *item = choose(64) ? new_item(s) : NULL;
    int error = range_txn_insert(txn, start, end, item);

    if (error != -ENOMEM)
        CHECK(error == model_insert(&s->model, start, end, item));
    return error;
}

/* As mmap without an address does. */
static int op_insert_in_gap(struct subject *s, struct range_txn *txn)
{
    u64 size = 1 + choose(12);
    void *item = new_item(s);
    u64 start, wanted;
    int error = range_txn_gap_down(txn, 0, s->universe, size, &start);

    CHECK(error == model_gap_down(&s->model, 0, s->universe, size, &wanted));
    if (error)
        return 0;
    CHECK(start == wanted);
    error = range_txn_insert(txn, start, start + size, item);
    if (error != -ENOMEM)
        CHECK(error == model_insert(&s->model, start, start + size, item));
    return error;
}

/* A range that exists, mostly. */
static u64 choose_start(struct subject *s)
{
    if (s->model.count == 0 || choose(32) == 0)
        return choose(s->universe);
    return s->model.entry[choose(s->model.count)].start;
}

static int op_remove(struct subject *s, struct range_txn *txn)
{
    u64 start = choose_start(s);
    int error = range_txn_remove(txn, start);

    if (error != -ENOMEM)
        CHECK(error == model_remove(&s->model, start));
    return error;
}

static int op_resize(struct subject *s, struct range_txn *txn)
{
    u64 start = choose_start(s);
    u64 new_start = choose(4) ? start + choose(9) : choose(s->universe);
    u64 new_end;
    void *item = new_item(s);
    int error;

    if (choose(2) && new_start >= 4)
        new_start -= 4;
    new_end = new_start + choose(20);
    error = range_txn_resize(txn, start, new_start, new_end, item);
    if (error != -ENOMEM)
        CHECK(error == model_resize(&s->model, start, new_start, new_end, item));
    return error;
}

/* Cuts one range out of the way of [start, end): removed, shortened at one side, or split. */
static int clear_one(struct subject *s, struct range_txn *txn, struct range_entry e, u64 start,
                     u64 end)
{
    bool keep_below = e.start<start, keep_above = e.end> end;
    int error;

    if (!keep_below && !keep_above)
        error = range_txn_remove(txn, e.start);
    else if (keep_below)
        error = range_txn_resize(txn, e.start, e.start, start, e.item);
    else
        error = range_txn_resize(txn, e.start, end, e.end, e.item);
    if (error)
        return error;
    if (!keep_below && !keep_above)
        CHECK(model_remove(&s->model, e.start) == 0);
    else if (keep_below)
        CHECK(model_resize(&s->model, e.start, e.start, start, e.item) == 0);
    else
        CHECK(model_resize(&s->model, e.start, end, e.end, e.item) == 0);
    if (!(keep_below && keep_above))
        return 0;
    error = range_txn_insert(txn, end, e.end, e.item);
    if (!error)
        CHECK(model_insert(&s->model, end, e.end, e.item) == 0);
    return error;
}

/* As mmap with MAP_FIXED: whatever is there goes, in part or whole, and the new range comes. */
static int op_replace(struct subject *s, struct range_txn *txn)
{
    u64 start = choose(s->universe);
    u64 end = start + 1 + choose(choose(8) ? 16 : 120);
    void *item = new_item(s);
    struct range_entry e;
    int error;

    while (range_txn_next(txn, start, &e) && e.start < end) {
        CHECK(range_txn_find(txn, MAX(e.start, start)) == e.item);
        error = clear_one(s, txn, e, start, end);
        if (error)
            return error;
    }
    if (choose(4) == 0)
        return 0; /* munmap */
    error = range_txn_insert(txn, start, end, item);
    if (!error)
        CHECK(model_insert(&s->model, start, end, item) == 0);
    return error;
}

static int random_op(struct subject *s, struct range_txn *txn)
{
    u64 kind = choose(10);

    if (s->model.count + 130 > MODEL_MAX)
        return op_remove(s, txn);
    if (kind < s->grow_bias)
        return choose(3) ? op_insert(s, txn) : op_insert_in_gap(s, txn);
    switch (choose(4)) {
    case 0: return op_resize(s, txn);
    case 1: return op_replace(s, txn);
    default: return op_remove(s, txn);
    }
}

/* A transaction of `ops` operations; one in eight is aborted. */
static void random_transaction(struct subject *s, u64 ops)
{
    struct range_node *root = s->tree.root;
    bool is_aborted = choose(8) == 0;
    s64 live = nodes.live;
    struct range_txn txn;

    if (is_aborted)
        model_copy(&s->before, &s->model);
    range_txn_begin(&txn, &s->tree);
    for (u64 i = 0; i < ops; i++)
        CHECK(random_op(s, &txn) != -ENOMEM);
    if (is_aborted) {
        if (choose(4) == 0)
            CHECK(walk_equals(next_in_txn, &txn, &s->model));
        range_txn_abort(&txn);
        model_copy(&s->model, &s->before);
        CHECK(s->tree.root == root);
        CHECK(nodes.live == live);
        CHECK(range_tree_check(&s->tree));
    } else {
        CHECK(s->tree.root == root);
        range_txn_commit(&txn);
    }
}

/* The old reader looks again, leaves, and comes back with the present root. */
static void old_reader(struct subject *s)
{
    CHECK(walk_equals(next_in_tree, &s->old_tree, &s->old_model));
    grace_period();
    s->old_tree = s->tree;
    model_copy(&s->old_model, &s->model);
}

static void test_random(void)
{
    static const u64 universes[] = {40, 400, 3000, 12000, 60000};
    u64 done = 0, round = 0;

    rng_seed(&rng, seed);
    subject_init(&subject, universes[0]);
    while (done < operations && !tap_failures) {
        u64 ops = choose(4) ? 1 + choose(4) : 1 + choose(20);

        if (round % 4096 == 0) {
            subject.universe = universes[choose(ARRAY_SIZE(universes))];
            subject.grow_bias = 1 + choose(8);
        }
        random_transaction(&subject, ops);
        check_questions(&subject);
        check_gap(&subject);
        if (round % 512 == 0)
            check_whole_tree(&subject);
        if (round % 128 == 0)
            old_reader(&subject);
        done += ops;
        round++;
    }
    check_whole_tree(&subject);
    old_reader(&subject);
    printf("# seed %lu: %lu operations in %lu transactions\n", seed, done, round);
    subject_destroy(&subject);
}

/* ---- Allocations that fail ---- */

static void fill(struct subject *s, u64 ranges)
{
    struct range_txn txn;

    range_txn_begin(&txn, &s->tree);
    for (u64 i = 0; i < ranges; i++)
        CHECK(op_insert(s, &txn) != -ENOMEM);
    range_txn_commit(&txn);
}

/*
 * A transaction whose allocation number `fail_at` fails. What the failing operation had changed
 * before (op_replace is several) is in the model too, so the transaction must show the model; then
 * it is aborted, or goes on and is committed. False: the transaction needed fewer allocations.
 */
static bool transaction_fails_at(struct subject *s, u64 fail_at, u64 ops, bool go_on)
{
    struct range_node *root = s->tree.root;
    s64 live = nodes.live;
    bool failed = false;
    struct range_txn txn;

    model_copy(&s->before, &s->model);
    nodes.allocations_left = fail_at;
    range_txn_begin(&txn, &s->tree);
    for (u64 i = 0; i < ops && (!failed || go_on); i++) {
        if (random_op(s, &txn) != -ENOMEM)
            continue;
        CHECK(!failed);
        failed = true;
        CHECK(walk_equals(next_in_txn, &txn, &s->model));
    }
    nodes.allocations_left = NEVER_FAIL;
    if (go_on) {
        range_txn_commit(&txn);
    } else {
        range_txn_abort(&txn);
        model_copy(&s->model, &s->before);
        CHECK(s->tree.root == root);
        CHECK(nodes.live == live);
    }
    check_whole_tree(s);
    grace_period();
    return failed;
}

static void test_allocation_failures(void)
{
    for (u64 scenario = 0; scenario < 200 && !tap_failures; scenario++) {
        bool failed = true;

        for (u64 fail_at = 0; failed && !tap_failures; fail_at++) {
            rng_seed(&rng, seed + scenario);
            subject_init(&subject, 20 + 60 * scenario);
            subject.grow_bias = scenario % 10;
            fill(&subject, scenario * 2);
            failed = transaction_fails_at(&subject, fail_at, 1 + scenario % 8, scenario & 1);
            subject_destroy(&subject);
        }
    }
}

/* ---- Real threads read while a transaction comes after the other, and nodes are freed ---- */

#define SPAN    4096u
#define SWAPS   1000
#define READERS 3
#define IDLE    UINT64_MAX

/*
 * A grace period as the kernel's, in small: a reader says which epoch it is in, or that it is idle;
 * what is handed back in an epoch is freed when every reader is idle or in a later one.
 */
static u64 epoch;           /* atomic, as the others here */
static u64 inside[READERS]; /* the epoch in which the reader began to look, or IDLE */
static bool stop_reading;

struct reader {
    pthread_t thread;
    const struct range_tree *tree;
    unsigned index;
    u64 looks, holes, mixtures;
};

static void reader_enter(unsigned index)
{
    __atomic_store_n(&inside[index], __atomic_load_n(&epoch, __ATOMIC_SEQ_CST), __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void reader_leave(unsigned index)
{
    __atomic_store_n(&inside[index], IDLE, __ATOMIC_SEQ_CST);
}

static void wait_for_readers(void)
{
    u64 next = __atomic_add_fetch(&epoch, 1, __ATOMIC_SEQ_CST);

    for (unsigned i = 0; i < READERS; i++)
        while (__atomic_load_n(&inside[i], __ATOMIC_SEQ_CST) < next)
            sched_yield();
    grace_period();
}

/* Every transaction covers the span anew, by ranges that all have one item. A walk from one root
 * must show no hole and no second item. */
static void look_once(struct reader *r)
{
    struct range_tree seen = *r->tree;
    struct range_entry entry;
    void *item = NULL;
    u64 addr = 0;

    seen.root = __atomic_load_n(&r->tree->root, __ATOMIC_ACQUIRE);
    while (addr < SPAN && range_tree_next(&seen, addr, &entry)) {
        r->holes += entry.start != addr;
        r->mixtures += item && entry.item != item;
        item = entry.item;
        addr = entry.end;
    }
    r->holes += addr != SPAN;
    r->looks++;
}

/* One question at a time, each with a root of its own. */
static void ask_once(struct reader *r, u64 addr)
{
    struct range_entry entry;

    r->holes += !range_tree_find(r->tree, addr);
    r->holes += !range_tree_next(r->tree, addr, &entry) || entry.start > addr || entry.end <= addr;
}

static void *reader_thread(void *arg)
{
    struct reader *r = arg;

    for (u64 addr = r->index; !__atomic_load_n(&stop_reading, __ATOMIC_ACQUIRE);) {
        reader_enter(r->index);
        look_once(r);
        ask_once(r, addr);
        reader_leave(r->index);
        addr = (addr + 7) % SPAN;
    }
    return NULL;
}

static int cover_again(struct range_txn *txn, u64 step, void *item)
{
    struct range_entry entry;
    int error = 0;

    while (!error && range_txn_next(txn, 0, &entry))
        error = range_txn_remove(txn, entry.start);
    for (u64 at = 0; !error && at < SPAN; at += step)
        error = range_txn_insert(txn, at, MIN(at + step, SPAN), item);
    return error;
}

static void cover_and_commit(struct subject *s, u64 step)
{
    struct range_txn txn;

    range_txn_begin(&txn, &s->tree);
    CHECK(cover_again(&txn, step, new_item(s)) == 0);
    range_txn_commit(&txn);
}

static void test_reader_threads(void)
{
    struct reader readers[READERS] = {{0}};
    struct subject *s = &subject;

    subject_init(s, SPAN);
    cover_and_commit(s, 64);
    stop_reading = false;
    for (unsigned i = 0; i < READERS; i++) {
        readers[i].tree = &s->tree;
        readers[i].index = i;
        inside[i] = IDLE;
        CHECK(pthread_create(&readers[i].thread, NULL, reader_thread, &readers[i]) == 0);
    }
    for (u64 i = 0; i < SWAPS; i++) {
        cover_and_commit(s, 16 + i % 50);
        if (i % 8 == 0)
            wait_for_readers();
    }
    __atomic_store_n(&stop_reading, true, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < READERS; i++) {
        CHECK(pthread_join(readers[i].thread, NULL) == 0);
        CHECK(readers[i].looks > 0);
        CHECK(readers[i].holes == 0);
        CHECK(readers[i].mixtures == 0);
    }
    range_tree_destroy(&s->tree, NULL, NULL);
    CHECK(nodes.live == 0);
    grace_period();
}

/* ---- Single promises ---- */

static int insert_one(struct range_tree *tree, u64 start, u64 end, void *item)
{
    struct range_txn txn;
    int error;

    range_txn_begin(&txn, tree);
    error = range_txn_insert(&txn, start, end, item);
    if (error)
        range_txn_abort(&txn);
    else
        range_txn_commit(&txn);
    return error;
}

static void test_edges_of_the_address_space(void)
{
    struct range_tree *tree = &subject.tree;
    struct range_entry entry;
    u64 at;

    subject_init(&subject, 1);
    CHECK(range_tree_find(tree, 0) == NULL);
    CHECK(!range_tree_next(tree, 0, &entry));
    CHECK(!range_tree_prev(tree, UINT64_MAX, &entry));
    CHECK(range_tree_gap_down(tree, 0, UINT64_MAX, UINT64_MAX, &at) == 0 && at == 0);
    CHECK(range_tree_gap_down(tree, 10, 10, 1, &at) == -ENOMEM);
    CHECK(range_tree_gap_down(tree, 10, 5, 1, &at) == -ENOMEM);
    CHECK(range_tree_gap_down(tree, 0, 10, 0, &at) == -EINVAL);
    CHECK(insert_one(tree, 0, 1, tree) == 0);
    CHECK(insert_one(tree, UINT64_MAX - 1, UINT64_MAX, tree) == 0);
    CHECK(insert_one(tree, 5, 5, tree) == -EINVAL);
    CHECK(insert_one(tree, 6, 5, tree) == -EINVAL);
    CHECK(insert_one(tree, 5, 6, NULL) == -EINVAL);
    CHECK(insert_one(tree, 0, UINT64_MAX, tree) == -EEXIST);
    CHECK(range_tree_gap_down(tree, 0, UINT64_MAX, UINT64_MAX - 2, &at) == 0 && at == 1);
    CHECK(range_tree_gap_down(tree, 0, UINT64_MAX, UINT64_MAX - 1, &at) == -ENOMEM);
    CHECK(range_tree_find(tree, UINT64_MAX) == NULL);
    CHECK(range_tree_prev(tree, UINT64_MAX, &entry) && entry.start == UINT64_MAX - 1);
    CHECK(range_tree_check(tree));
    range_tree_destroy(tree, NULL, NULL);
    grace_period();
}

/* After its first change a transaction copies nothing more in the same leaf. */
static void test_second_change_copies_nothing(void)
{
    struct range_txn txn;
    s64 live;

    rng_seed(&rng, seed);
    subject_init(&subject, 4000);
    fill(&subject, 300);
    range_txn_begin(&txn, &subject.tree);
    CHECK(range_txn_insert(&txn, 5000, 5001, &txn) == 0);
    live = nodes.live;
    for (u64 i = 0; i < 100; i++)
        CHECK(range_txn_resize(&txn, 5000 + i, 5001 + i, 5002 + i, &txn) == 0);
    CHECK(nodes.live == live);
    range_txn_abort(&txn);
    check_whole_tree(&subject);
    subject_destroy(&subject);
}

static const struct tap_test tests[] = {
    {"range_tree/edges_of_the_address_space", test_edges_of_the_address_space},
    {"range_tree/second_change_copies_nothing", test_second_change_copies_nothing},
    {"range_tree/equals_flat_model", test_random},
    {"range_tree/failed_allocation_changes_nothing", test_allocation_failures},
    {"range_tree/reader_never_sees_half_a_transaction", test_reader_threads},
};

#ifdef FUZZ
int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    fuzz_data = data;
    fuzz_size = size;
    subject_init(&subject, 1 + choose(4000));
    while (fuzz_size > 0) {
        random_transaction(&subject, 1 + choose(8));
        check_gap(&subject);
        check_whole_tree(&subject);
        old_reader(&subject);
    }
    subject_destroy(&subject);
    if (tap_failures)
        abort();
    return 0;
}
#else
int main(int argc, char **argv)
{
    if (getenv("FAULTLINE_LONG"))
        operations = LONG_OPERATIONS;
    if (argc > 1)
        operations = strtoull(argv[1], NULL, 0);
    if (argc > 2)
        seed = strtoull(argv[2], NULL, 0);
    return tap_main(tests, ARRAY_SIZE(tests));
}
#endif
