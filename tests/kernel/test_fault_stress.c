/*
 * Everything at once: faults of all kinds against truncation, punching, dropping, reclaim, unmapping, protection, advice and failing
 * allocations, interleaved by a seed. What each touch sees is either refused or a value that was right at some moment; afterwards the
 * counters add up, the page tables are in order, and nothing is left locked, mapped or referenced.
 */
#include "kernel/cmdline.h"
#include "kernel/sched/sync_point.h"
#include "lib/rng.h"
#include "mm/core/frames.h"
#include "mm/knobs.h"
#include "mm/reclaim.h"
#include "tests/kernel/fault_rig.h"

#define PAGES        64
#define TOUCHERS     4
#define ACTORS       (TOUCHERS + 3)
#define STEPS        150
#define PRIVATE_BASE (RIG_BASE + (1ul << 30))
#define STORED       0x7777000000000000ul

/* A store is one byte first and then the word (act_touch); an unmapping in between leaves the byte alone changed. */
static bool is_right(u64 value, pgoff_t page)
{
    value &= ~0xfful;
    return value == 0 || value == STORED || value == gated_file_word(page, 0) ||
           value == gated_file_word(page, 1);
}

static void touch(struct actor *actor, struct rng *rng)
{
    pgoff_t page = rng_below(rng, PAGES);
    actor->addr = (rng_one_in(rng, 2) ? PRIVATE_BASE : RIG_BASE) + page * PAGE_SIZE;
    actor->write = rng_one_in(rng, 3);
    actor->argument = STORED + rng_below(rng, 256);
    act_touch(actor);
    if (actor->succeeded && !actor->write && !is_right(actor->value, page))
        actor->result++;
}

static void change_file(struct actor *actor, struct rng *rng)
{
    struct gated_file *file = actor->rig->file;
    pgoff_t page = rng_below(rng, PAGES);
    switch (rng_below(rng, 5)) {
    case 0:
        gated_file_truncate(file, page * PAGE_SIZE + rng_below(rng, 2) * 100);
        gated_file_truncate(file, PAGES * PAGE_SIZE);
        break;
    case 1: gated_file_punch(file, page, page); break;
    default: gated_file_write(file, page, 1);
    }
}

static void take_pages(struct actor *actor, struct rng *rng)
{
    pgoff_t page = rng_below(rng, PAGES);
    if (rng_one_in(rng, 2))
        page_cache_drop_range(&actor->rig->file->cache, page, page + 8);
    else
        reclaim_pages(8);
    if (rng_one_in(rng, 4))
        frames_fail_inject(rng_below(rng, 8), 1);
}

static void change_map(struct actor *actor, struct rng *rng)
{
    struct mm *mm = actor->rig->mm;
    struct mapped_file *file = &actor->rig->file->mapped;
    u64 page = rng_below(rng, PAGES - 8), n = 1 + rng_below(rng, 8);
    bool is_shared = rng_one_in(rng, 2);
    u64 addr = (is_shared ? RIG_BASE : PRIVATE_BASE) + page * PAGE_SIZE;
    switch (rng_below(rng, 4)) {
    case 0: (void)mm_munmap(mm, addr, n * PAGE_SIZE); break;
    case 1:
        (void)mm_mprotect(mm, addr, n * PAGE_SIZE, PROT_READ);
        (void)mm_mprotect(mm, addr, n * PAGE_SIZE,
                          rng_one_in(rng, 2) ? PROT_NONE : PROT_READ | PROT_WRITE);
        break;
    case 2: (void)mm_madvise(mm, addr, n * PAGE_SIZE, MADV_DONTNEED); return;
    default: break;
    }
    (void)mm_mmap(mm, addr, n * PAGE_SIZE, PROT_READ | PROT_WRITE,
                  (is_shared ? MAP_SHARED : MAP_PRIVATE) | MAP_FIXED, file, page * PAGE_SIZE);
}

static void run_steps(struct actor *actor)
{
    struct rng rng;
    u64 kind = actor->argument;
    rng_seed(&rng, kind * 1000 + (u64)actor->result);
    actor->result = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        if (kind < TOUCHERS)
            touch(actor, &rng);
        else if (kind == TOUCHERS)
            change_file(actor, &rng);
        else if (kind == TOUCHERS + 1)
            take_pages(actor, &rng);
        else
            change_map(actor, &rng);
        sched_yield();
    }
}

/* Entries of the shared map that show a page which is no longer the file's. */
static unsigned stale_entries(struct fault_rig *rig)
{
    unsigned stale = 0;
    pt_lock(&rig->mm->space);
    for (pgoff_t index = 0; index < PAGES; index++) {
        pte_t *ptep = pt_find(&rig->mm->space, rig_addr(index));
        if (ptep && pte_is_present(*ptep))
            stale += !page_cache_owns(&rig->file->cache, pte_page(*ptep), index);
    }
    pt_unlock(&rig->mm->space);
    return stale;
}

static void run_seed(u64 seed, const char *retry, const char *drop, const char *pin)
{
    struct fault_rig rig;
    struct actor actors[ACTORS] = {0};
    struct gate_delay delay = {.latency_ns = 100000};
    KASSERT(rig_init(&rig, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED));
    knob_set("fault_retry", retry);
    knob_set("fault_drop", drop);
    knob_set("fault_pin", pin);
    knob_set("readahead", "ondemand");
    knob_set("map_around_bytes", "65536");
    KASSERT_EQ(mm_mmap(rig.mm, PRIVATE_BASE, PAGES * PAGE_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_FIXED, &rig.file->mapped, 0),
               PRIVATE_BASE);
    gate_set_delay(rig.file->disk, &delay);
    sync_points_set_seed(seed);
    for (u64 i = 0; i < ACTORS; i++) {
        actors[i].argument = i;
        actors[i].result = (s64)seed;
        actor_start(&actors[i], &rig, run_steps);
    }
    for (u64 i = 0; i < ACTORS; i++)
        actor_join(&actors[i]);
    sync_points_set_seed(cmdline.sync_seed);
    frames_fail_inject(0, 0);
    for (u64 i = 0; i < ACTORS; i++) {
        KEXPECT(counters_add_up(&actors[i].faults));
        if (i < TOUCHERS)
            KEXPECT_EQ(actors[i].result, 0);
    }
    KEXPECT(mm_check(rig.mm) == NULL);
    KEXPECT_EQ(stale_entries(&rig), 0);
    rig_end(&rig);
}

FAULT_TEST(fault_stress, all_at_once_leaves_everything_in_order)
{
    static const char *const policies[] = {"once", "hold", "many", "recheck"};
    for (u64 seed = 1; seed <= 4 && !ktest_has_failed(); seed++) {
        run_seed(seed, policies[seed % 4], seed % 3 ? "submit" : "wait", seed % 4 < 2 ? "1" : "0");
        if (ktest_has_failed())
            ktest_note("seed %lu", seed);
    }
}
