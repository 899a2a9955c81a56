/*
 * Eight threads, each in its part of one area, while others map and unmap beside it, protect it, replace a file's pages by
 * themselves, and fork; interleaved by a seed at the sync points. What is checked:
 *
 *   no lost store      each thread finds in its part what it has put there, through every split, merge, move and fork
 *   never a hole       a file's page that is replaced by MAP_FIXED always shows its word
 *   one moment         each thread counts in two areas, the lower one first. In a child the second count is never ahead
 *   one access, one count    the identities of FAULTS.md section 3, for each thread and in sum
 *
 * ktest.seeds=N on the command line tries N seeds, from sync.seed on.
 */
#include "kernel/cmdline.h"
#include "kernel/cpu/uaccess.h"
#include "kernel/sched/sync_point.h"
#include "lib/rng.h"
#include "lib/string.h"
#include "mm/fork.h"
#include "mm/knobs.h"
#include "tests/kernel/fault_rig.h"
#include "tests/kernel/test_mm.h"

#define THREADS    8
#define PROTECTOR  THREADS
#define MAPPER     (THREADS + 1)
#define FORKER     (THREADS + 2)
#define ACTORS     (THREADS + 3)
#define STEPS      30
#define PART_PAGES 4 /* page 0 is the first count, the others are values */
#define FILE_PAGES 16
#define AREA       (RIG_BASE + (1ul << 30))
#define AREA_PAGES (THREADS * PART_PAGES)
#define COUNTS     (AREA + (1ul << 30)) /* the second counts, a page for each thread */
#define AWAY       (AREA + (2ul << 30)) /* where a thread moves a page of its own and back */
#define RW         (PROT_READ | PROT_WRITE)
#define ANON       (MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED)

#define SEEDS_BY_DEFAULT 3

static bool turns_knobs; /* the policies change all the time */

struct part {
    u64 index;
    u64 count;
    u64 value[PART_PAGES];
    struct rng rng;
};

static u64 part_addr(u64 part, u64 page)
{
    return AREA + (part * PART_PAGES + page) * PAGE_SIZE;
}

static bool load(u64 addr, u64 *value)
{
    return uaccess_copy_in(value, addr, sizeof(*value)) == 0;
}

static bool store(u64 addr, u64 value)
{
    return uaccess_copy_out(addr, &value, sizeof(value)) == 0;
}

/* ---- A thread and its part ---- */

static bool holds(u64 addr, u64 expected)
{
    u64 value;
    return load(addr, &value) && value == expected;
}

static bool count_up(struct part *part)
{
    part->count++;
    return store(part_addr(part->index, 0), part->count) &&
           store(COUNTS + part->index * PAGE_SIZE, part->count);
}

static bool change_value(struct part *part, u64 page)
{
    part->value[page] = rng_next(&part->rng);
    return store(part_addr(part->index, page) + 8, part->value[page]);
}

static bool drop_value(struct mm *mm, struct part *part, u64 page)
{
    part->value[page] = 0;
    return mm_madvise(mm, part_addr(part->index, page), PAGE_SIZE, MADV_DONTNEED) == 0;
}

/* Nobody else gets this address meanwhile: it lies inside the area, and who maps there leaves the area alone. */
static bool move_away_and_back(struct mm *mm, struct part *part, u64 page)
{
    u64 home = part_addr(part->index, page), away = AWAY + part->index * PAGE_SIZE;
    u32 flags = MREMAP_MAYMOVE | MREMAP_FIXED;
    return mm_mremap(mm, home, PAGE_SIZE, PAGE_SIZE, flags, away) == (s64)away &&
           holds(away + 8, part->value[page]) &&
           mm_mremap(mm, away, PAGE_SIZE, PAGE_SIZE, flags, home) == (s64)home;
}

static bool step(struct mm *mm, struct part *part)
{
    u64 page = 1 + rng_below(&part->rng, PART_PAGES - 1);
    pgoff_t file_page = rng_below(&part->rng, FILE_PAGES);

    switch (rng_below(&part->rng, 8)) {
    case 0: return drop_value(mm, part, page);
    case 1: return move_away_and_back(mm, part, page);
    case 2:
    case 3: return change_value(part, page);
    case 4: return holds(rig_addr(file_page), gated_file_word(file_page, 0));
    case 5:
    case 6: return count_up(part);
    default: return holds(part_addr(part->index, page) + 8, part->value[page]);
    }
}

static void act_thread(struct actor *actor)
{
    struct part part = {.index = actor->argument};
    rng_seed(&part.rng, actor->value * 100 + part.index);
    actor->result = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        actor->result += !step(actor->rig->mm, &part);
        sched_yield();
    }
    for (u64 page = 1; page < PART_PAGES; page++)
        actor->result += !holds(part_addr(part.index, page) + 8, part.value[page]);
    actor->result += !holds(part_addr(part.index, 0), part.count);
}

/* ---- The others ---- */

/* Every access stays allowed; areas split and merge, entries are rewritten. */
static void protect(struct mm *mm, struct rng *rng)
{
    if (turns_knobs) {
        knob_set("fault_lock", rng_one_in(rng, 2) ? "vma" : "mmap");
        knob_set("fault_retry", rng_one_in(rng, 2) ? "once" : "recheck");
    }
    u64 page = rng_below(rng, AREA_PAGES), n = 1 + rng_below(rng, AREA_PAGES - page);
    u32 prot = rng_one_in(rng, 2) ? RW : RW | PROT_EXEC;
    (void)mm_mprotect(mm, AREA + page * PAGE_SIZE, n * PAGE_SIZE, prot);
}

/* Beside the area, where what is mapped merges with it; and a file's pages over themselves. */
static bool map(struct fault_rig *rig, struct rng *rng)
{
    u64 n = 1 + rng_below(rng, 4), page = rng_below(rng, FILE_PAGES - 4);
    u64 beside = rng_one_in(rng, 2) ? AREA - n * PAGE_SIZE : AREA + AREA_PAGES * PAGE_SIZE;

    switch (rng_below(rng, 3)) {
    case 0: return mm_munmap(rig->mm, beside, n * PAGE_SIZE) == 0;
    case 1: return mm_mmap(rig->mm, beside, n * PAGE_SIZE, RW, ANON, NULL, 0) == (s64)beside;
    default:
        return mm_mmap(rig->mm, rig_addr(page), n * PAGE_SIZE, PROT_READ, MAP_SHARED | MAP_FIXED,
                       &rig->file->mapped, page * PAGE_SIZE) == (s64)rig_addr(page);
    }
}

/* The child: counts in order, at most one apart. => how many are not */
static unsigned wrong_counts(struct mm *child)
{
    struct task *task = task_current();
    struct mm *mine = task->mm;
    unsigned wrong = 0;

    test_mm_attach(child);
    for (u64 i = 0; i < THREADS; i++) {
        u64 first = 0, second = 0;
        bool is_right = load(part_addr(i, 0), &first) && load(COUNTS + i * PAGE_SIZE, &second) &&
                        second <= first && first - second <= 1;
        if (!is_right)
            ktest_note("a child has counts %lu and %lu of thread %lu", first, second, i);
        wrong += !is_right;
    }
    test_mm_attach(mine);
    return wrong;
}

static unsigned fork_and_look(struct mm *mm)
{
    struct mm *child;
    int error = mm_fork(mm, &child);
    if (error) {
        ktest_note("fork: %d", error);
        return 1;
    }
    unsigned wrong = wrong_counts(child);
    const char *complaint = mm_check(child);
    if (complaint)
        ktest_note("a child: %s", complaint);
    wrong += complaint != NULL;
    mm_put(child);
    return wrong;
}

static void act_other(struct actor *actor)
{
    struct fault_rig *rig = actor->rig;
    struct rng rng;
    rng_seed(&rng, actor->value * 100 + actor->argument);
    actor->result = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        if (actor->argument == PROTECTOR)
            protect(rig->mm, &rng);
        else if (actor->argument == MAPPER)
            actor->result += !map(rig, &rng);
        else if (i % 4 == 0)
            actor->result += fork_and_look(rig->mm);
        sched_yield();
    }
}

/* ---- One seed ---- */

static bool map_areas(struct fault_rig *rig)
{
    return KEXPECT_EQ(mm_mmap(rig->mm, AREA, AREA_PAGES * PAGE_SIZE, RW, ANON, NULL, 0), AREA) &&
           KEXPECT_EQ(mm_mmap(rig->mm, COUNTS, THREADS * PAGE_SIZE, RW, ANON, NULL, 0), COUNTS);
}

static void start_all(struct actor *actors, struct fault_rig *rig, u64 seed)
{
    for (u64 i = 0; i < ACTORS; i++) {
        actors[i] = (struct actor){.argument = i, .value = seed};
        actor_start(&actors[i], rig, i < THREADS ? act_thread : act_other);
    }
}

static void expect_counts(const struct actor *actors, const struct task_fault_counters *before)
{
    struct task_fault_counters after;
    u64 started = 0;
    account_system(&after);
    for (unsigned i = 0; i < ACTORS; i++) {
        KEXPECT(counters_add_up(&actors[i].faults));
        KEXPECT_EQ(actors[i].faults.sigsegv + actors[i].faults.sigbus + actors[i].faults.oom, 0);
        started += actors[i].faults.started;
    }
    KEXPECT_EQ(after.started - before->started, started);
    KEXPECT(counters_add_up(&after));
}

static void run_seed(u64 seed)
{
    struct fault_rig rig;
    struct actor actors[ACTORS];
    struct task_fault_counters before;

    KASSERT(rig_init(&rig, FILE_PAGES, PROT_READ, MAP_SHARED));
    knob_set("readahead", "ondemand");
    knob_set("map_around_bytes", "16384");
    KASSERT(map_areas(&rig));
    account_system(&before);
    sync_points_set_seed(seed);
    start_all(actors, &rig, seed);
    for (unsigned i = 0; i < ACTORS; i++)
        actor_join(&actors[i]);
    sync_points_set_seed(cmdline.sync_seed);
    for (unsigned i = 0; i < ACTORS; i++)
        if (!KEXPECT_EQ(actors[i].result, 0))
            ktest_note("actor %u", i);
    expect_counts(actors, &before);
    KEXPECT(mm_check(rig.mm) == NULL);
    rig_end(&rig);
}

static void run_seeds(void)
{
    u64 first = MAX(cmdline.sync_seed, 1);
    u64 n = cmdline.ktest_seeds ? cmdline.ktest_seeds : SEEDS_BY_DEFAULT;
    for (u64 seed = first; seed < first + n && !ktest_has_failed(); seed++) {
        run_seed(seed);
        if (ktest_has_failed())
            ktest_note("seed %lu", seed);
    }
}

FAULT_TEST(fault_threads, eight_in_one_area_keep_their_values_while_others_map_protect_and_fork)
{
    run_seeds();
}

KTEST(fault_threads, the_same_while_the_policies_change)
{
    turns_knobs = true;
    run_seeds();
    turns_knobs = false;
}
