/*
 * The lock of a fault: who waits for whom with vm.fault_lock=vma and =mmap, every reason to fall back to mmap_lock, and what a fork
 * keeps out. Told by the order of events: somebody is parked in the middle of his work, and the others go on or wait.
 */
#include "kernel/cpu/smp.h"
#include "kernel/sched/affinity.h"
#include "kernel/sched/sync_point.h"
#include "kernel/sched/task.h"
#include "lib/string.h"
#include "mm/fork.h"
#include "mm/huge_pool.h"
#include "mm/knobs.h"
#include "tests/kernel/fault_rig.h"
#include "tests/kernel/test_mm.h"

#define PAGES 16
#define ANON  (RIG_BASE + (1ul << 30))
#define RW    (PROT_READ | PROT_WRITE)

static bool by_vma(void)
{
    return strcmp(rig_fault_lock(), "vma") == 0;
}

static u64 fallbacks(const struct actor *actor)
{
    u64 sum = 0;
    for (unsigned i = 0; i < FAULT_FALLBACK_COUNT; i++)
        sum += actor->faults.fallback[i];
    return sum;
}

/* The actor fell back `times` times for this reason and for no other. Never with mmap_lock alone. */
static void expect_fallback(const struct actor *actor, enum fault_fallback why, u64 times)
{
    KEXPECT_EQ(actor->faults.fallback[why], by_vma() ? times : 0);
    KEXPECT_EQ(fallbacks(actor), by_vma() ? times : 0);
    KEXPECT(counters_add_up(&actor->faults));
}

static bool begin(struct fault_rig *rig, u32 share)
{
    return KEXPECT(rig_init(rig, PAGES, RW, share));
}

static void map_anon(struct fault_rig *rig, u64 addr, u64 pages, u32 prot)
{
    KEXPECT_EQ(mm_mmap(rig->mm, addr, pages * PAGE_SIZE, prot,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL, 0),
               addr);
}

/* In the cache, and mapped nowhere: a touch will not wait for the disk. */
static void cache_pages(struct fault_rig *rig)
{
    for (pgoff_t index = 0; index < PAGES; index++) {
        struct page *page;
        if (KEXPECT_EQ(page_cache_get_page(&rig->file->cache, index, false, &page), 0))
            page_put(page);
    }
}

/* ---- Acts ---- */

static void act_map_anon(struct actor *actor)
{
    actor->result = mm_mmap(actor->rig->mm, actor->addr, actor->argument * PAGE_SIZE, RW,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL, 0);
}

static void act_map_file(struct actor *actor)
{
    actor->result =
        mm_mmap(actor->rig->mm, actor->addr, actor->argument * PAGE_SIZE, RW,
                MAP_PRIVATE | MAP_FIXED, &actor->rig->file->mapped, actor->addr - RIG_BASE);
}

static void act_allow_all(struct actor *actor)
{
    actor->result = mm_mprotect(actor->rig->mm, actor->addr, actor->argument * PAGE_SIZE, RW);
}

/* Two pages, from addr to argument. */
static void act_move(struct actor *actor)
{
    actor->result = mm_mremap(actor->rig->mm, actor->addr, 2 * PAGE_SIZE, 2 * PAGE_SIZE,
                              MREMAP_MAYMOVE | MREMAP_FIXED, actor->argument);
}

/* result: error; argument: the child. */
static void act_fork(struct actor *actor)
{
    struct mm *child = NULL;
    actor->result = mm_fork(actor->rig->mm, &child);
    actor->argument = (u64)child;
}

static struct mm *child_of(const struct actor *forker)
{
    return (struct mm *)forker->argument;
}

static int peek_in(struct mm *mm, u64 addr)
{
    test_mm_attach(mm);
    int byte = user_peek(addr);
    test_mm_attach(NULL);
    return byte;
}

static void poke_in(struct mm *mm, u64 addr, u8 byte)
{
    test_mm_attach(mm);
    KEXPECT_EQ(user_poke(addr, byte), 0);
    test_mm_attach(NULL);
}

/* Starts a writer and parks it where the tree is changed and the page tables are not; it holds mmap_lock. */
static void start_parked(struct actor *writer, struct fault_rig *rig,
                         void (*act)(struct actor *actor))
{
    sync_point_arm("vma_edit_committed", NULL);
    actor_start(writer, rig, act);
    sync_point_wait_parked("vma_edit_committed");
}

static void finish_parked(struct actor *writer)
{
    sync_point_release("vma_edit_committed");
    actor_join(writer);
}

/* Lets the toucher try while somebody is parked. => it got through, or it waits for mmap_lock */
static bool gets_through(struct actor *toucher, struct fault_rig *rig)
{
    actor_start(toucher, rig, act_touch);
    bool is_through = actor_settle(toucher);
    KEXPECT(is_through || actor_waits_for(toucher, "mmap_lock reader"));
    return is_through;
}

/* ---- A writer that holds mmap_lock for long ---- */

/*
 *   mmap                                   thread 1                      thread 2
 *   holds mmap_lock
 *   the new area is in the tree
 *                                          touches another area:
 *                                          vma: done. mmap: waits
 *                                                                        touches the new area: waits
 *   goes on, releases                      mmap: done                    done
 */
FAULT_TEST(fault_lock, a_writer_delays_faults_in_areas_that_it_does_not_change_only_with_mmap)
{
    struct fault_rig rig;
    struct actor mapper = {.addr = ANON, .argument = 4};
    struct actor elsewhere = {.addr = rig_addr(3)}, cached = {.addr = rig_addr(3)},
                 store = {.addr = rig_addr(5), .write = true, .argument = 42},
                 there = {.addr = ANON};
    if (begin(&rig, MAP_PRIVATE)) {
        cache_pages(&rig);
        start_parked(&mapper, &rig, act_map_anon);
        KEXPECT_EQ(gets_through(&elsewhere, &rig), by_vma());
        KEXPECT_EQ(gets_through(&cached, &rig), by_vma());
        KEXPECT_EQ(gets_through(&store, &rig), by_vma());
        KEXPECT(!gets_through(&there, &rig));
        KEXPECT(sync_point_is_parked("vma_edit_committed")); /* all that while the writer stood */
        finish_parked(&mapper);
        actor_join(&elsewhere);
        actor_join(&cached);
        actor_join(&store);
        actor_join(&there);
        KEXPECT_EQ(elsewhere.value, gated_file_word(3, 0));
        KEXPECT_EQ(cached.value, gated_file_word(3, 0));
        KEXPECT(store.succeeded);
        KEXPECT(there.succeeded);
        KEXPECT_EQ(there.value, 0);
        expect_fallback(&elsewhere, FAULT_FALLBACK_BUSY, 0);
        expect_fallback(&store, FAULT_FALLBACK_BUSY, 0);
        expect_fallback(&there, FAULT_FALLBACK_BUSY, 1);
    }
    rig_end(&rig);
}

/* mmap_lock is fair: whoever wants to read it stands behind a writer that waits. Faults do, where they take it. */
FAULT_TEST(fault_lock, a_writer_that_waits_stops_new_faults_only_with_mmap)
{
    struct fault_rig rig;
    struct actor writer = {0}, toucher = {.addr = rig_addr(3)};
    if (begin(&rig, MAP_SHARED)) {
        cache_pages(&rig);
        rwsem_read_lock(&rig.mm->mmap_lock); /* as somebody who reads /proc/PID/maps */
        actor_start(&writer, &rig, act_munmap);
        KEXPECT(!actor_settle(&writer));
        KEXPECT(actor_waits_for(&writer, "mmap_lock writer"));
        KEXPECT_EQ(gets_through(&toucher, &rig), by_vma());
        rwsem_read_unlock(&rig.mm->mmap_lock);
        actor_join(&writer);
        actor_join(&toucher);
        KEXPECT_EQ(toucher.succeeded, by_vma()); /* or it came after the unmapping */
        KEXPECT_EQ(toucher.faults.sigsegv, !by_vma());
    }
    rig_end(&rig);
}

/* A wait for a writer ends with the task, as every wait of a fault does. */
FAULT_TEST(fault_lock, killed_while_a_writer_works_is_gone_before_it)
{
    struct fault_rig rig;
    struct actor mapper = {.addr = ANON, .argument = 4}, there = {.addr = ANON};
    if (begin(&rig, MAP_SHARED)) {
        start_parked(&mapper, &rig, act_map_anon);
        KEXPECT(!gets_through(&there, &rig));
        task_kill(there.task);
        KEXPECT(actor_settle(&there));
        KEXPECT(sync_point_is_parked("vma_edit_committed"));
        finish_parked(&mapper);
        actor_join(&there);
        KEXPECT(!there.succeeded);
        KEXPECT_EQ(there.faults.killed, 1);
        expect_fallback(&there, FAULT_FALLBACK_BUSY, 1);
    }
    rig_end(&rig);
}

/* ---- Where it must fall back ---- */

FAULT_TEST(fault_lock, nothing_there_is_found_out_under_mmap_lock)
{
    struct fault_rig rig;
    struct actor hole = {.addr = ANON};
    if (begin(&rig, MAP_SHARED)) {
        actor_start(&hole, &rig, act_touch);
        actor_join(&hole);
        KEXPECT_EQ(hole.faults.sigsegv, 1);
        expect_fallback(&hole, FAULT_FALLBACK_NONE_THERE, 1);
    }
    rig_end(&rig);
}

FAULT_TEST(fault_lock, a_stack_grows_under_mmap_lock_and_that_is_no_retry)
{
    struct fault_rig rig;
    struct actor below = {.addr = ANON - 3 * PAGE_SIZE, .write = true, .argument = 42},
                 again = {.addr = ANON - 2 * PAGE_SIZE};
    if (begin(&rig, MAP_SHARED)) {
        KEXPECT_EQ(mm_mmap(rig.mm, ANON, PAGE_SIZE, RW,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_GROWSDOWN, NULL, 0),
                   ANON);
        actor_start(&below, &rig, act_touch);
        actor_join(&below);
        KEXPECT(below.succeeded);
        KEXPECT_EQ(below.faults.retries, 0);
        KEXPECT_EQ(below.faults.minor, 1);
        expect_fallback(&below, FAULT_FALLBACK_NONE_THERE, 1);
        actor_start(&again, &rig, act_touch);
        actor_join(&again);
        expect_fallback(&again, FAULT_FALLBACK_NONE_THERE, 0);
    }
    rig_end(&rig);
}

/*
 *   mmap(MAP_FIXED) over a file's pages     thread
 *   the tree shows the new area,
 *   the old entries are still there
 *                                           stores to a page without an entry: waits
 *   zaps, releases
 *                                           stores: nobody zaps that
 */
FAULT_TEST(fault_lock, a_store_into_an_area_just_put_there_is_not_zapped)
{
    struct fault_rig rig;
    struct actor mapper = {.addr = rig_addr(4), .argument = 4};
    struct actor store = {.addr = rig_addr(5), .write = true, .argument = 42};
    struct actor load = {.addr = rig_addr(4)};
    if (begin(&rig, MAP_SHARED)) {
        rig_touch(&rig, 4, NULL);
        start_parked(&mapper, &rig, act_map_anon);
        KEXPECT(!gets_through(&store, &rig));
        finish_parked(&mapper);
        actor_join(&store);
        KEXPECT(store.succeeded);
        KEXPECT_EQ(peek_in(rig.mm, rig_addr(5)), 42);
        actor_start(&load, &rig, act_touch);
        actor_join(&load);
        KEXPECT_EQ(load.value, 0); /* not the file's */
        expect_fallback(&store, FAULT_FALLBACK_BUSY, 1);
        KEXPECT(mm_check(rig.mm) == NULL);
    }
    rig_end(&rig);
}

/*
 *   mprotect to read and write             thread
 *   the tree shows the new protection,
 *   the entries are as PROT_NONE left them
 *                                          stores: waits
 *   rewrites the entries, releases
 *                                          finds its page there
 */
FAULT_TEST(fault_lock, new_protection_is_not_seen_together_with_old_entries)
{
    struct fault_rig rig;
    struct actor protector = {.addr = ANON, .argument = 4};
    struct actor store = {.addr = ANON + 8, .write = true, .argument = 42};
    if (begin(&rig, MAP_SHARED)) {
        map_anon(&rig, ANON, 4, RW);
        poke_in(rig.mm, ANON, 7);
        KEXPECT_EQ(mm_mprotect(rig.mm, ANON, 4 * PAGE_SIZE, PROT_NONE), 0);
        start_parked(&protector, &rig, act_allow_all);
        KEXPECT(!gets_through(&store, &rig));
        finish_parked(&protector);
        actor_join(&store);
        KEXPECT_EQ(protector.result, 0);
        KEXPECT(store.succeeded);
        KEXPECT_EQ(peek_in(rig.mm, ANON), 7);
        KEXPECT_EQ(peek_in(rig.mm, ANON + 8), 42);
        KEXPECT_EQ(rig.mm->rss_anon, 1);
        expect_fallback(&store, FAULT_FALLBACK_BUSY, 1);
    }
    rig_end(&rig);
}

/* While pages are on their way, a fault can tell nothing of the old place nor of the new one: it waits. */
FAULT_TEST(fault_lock, a_moving_area_is_waited_for_at_both_places)
{
    struct fault_rig rig;
    struct actor mover = {.addr = ANON, .argument = ANON + (1ul << 30)};
    struct actor old = {.addr = ANON + PAGE_SIZE}, new = {.addr = ANON + (1ul << 30)};
    if (begin(&rig, MAP_SHARED)) {
        map_anon(&rig, ANON, 2, RW);
        poke_in(rig.mm, ANON, 7);
        start_parked(&mover, &rig, act_move);
        KEXPECT(!gets_through(&old, &rig));
        KEXPECT(!gets_through(&new, &rig));
        finish_parked(&mover);
        actor_join(&old);
        actor_join(&new);
        KEXPECT_EQ(mover.result, ANON + (1ul << 30));
        KEXPECT_EQ(old.faults.sigsegv, 1);
        KEXPECT_EQ(new.value, 7);
        expect_fallback(&old, FAULT_FALLBACK_NONE_THERE, 1);
        expect_fallback(&new, FAULT_FALLBACK_BUSY, 1);
    }
    rig_end(&rig);
}

/* ---- Found without a lock, and gone before it was locked ---- */

/* A toucher on CPU 1, parked (it spins) between its lookup and its lock; this thread keeps to CPU 0. => whether there are two CPUs */
static bool start_found(struct actor *toucher, struct fault_rig *rig, u32 share)
{
    if (cpu_count() < 2) {
        ktest_skip("needs two CPUs");
        return false;
    }
    KEXPECT_EQ(sched_set_affinity(task_current(), 1), 0);
    KEXPECT(begin(rig, share));
    sync_point_arm("fault_vma_found", NULL);
    actor_start_on(toucher, rig, act_touch, 1);
    sync_point_wait_parked("fault_vma_found");
    return true;
}

static void go_on(struct actor *toucher)
{
    sync_point_release("fault_vma_found");
    actor_join(toucher);
    KEXPECT_EQ(sched_set_affinity(task_current(), ~0ul), 0);
}

KTEST(fault_lock, unmapped_between_lookup_and_lock_is_segv)
{
    struct fault_rig rig;
    struct actor toucher = {.addr = rig_addr(3)};
    if (!start_found(&toucher, &rig, MAP_SHARED))
        return;
    KEXPECT_EQ(mm_munmap(rig.mm, RIG_BASE, PAGES * PAGE_SIZE), 0);
    go_on(&toucher);
    KEXPECT(!toucher.succeeded);
    KEXPECT_EQ(toucher.faults.sigsegv, 1);
    KEXPECT(!rig_is_mapped(&rig, 3));
    expect_fallback(&toucher, FAULT_FALLBACK_DETACHED, 1);
    rig_end(&rig);
}

KTEST(fault_lock, protected_between_lookup_and_lock_is_accerr)
{
    struct fault_rig rig;
    struct actor store = {.addr = rig_addr(3), .write = true, .argument = 42};
    if (!start_found(&store, &rig, MAP_PRIVATE))
        return;
    KEXPECT_EQ(mm_mprotect(rig.mm, RIG_BASE, PAGES * PAGE_SIZE, PROT_READ), 0);
    go_on(&store);
    KEXPECT(!store.succeeded);
    KEXPECT_EQ(store.faults.sigsegv, 1);
    KEXPECT_EQ(peek_in(rig.mm, rig_addr(3)), gated_file_word(3, 0) & 0xff);
    expect_fallback(&store, FAULT_FALLBACK_DETACHED, 1);
    rig_end(&rig);
}

KTEST(fault_lock, replaced_between_lookup_and_lock_is_the_new_area)
{
    struct fault_rig rig;
    struct actor toucher = {.addr = rig_addr(3), .value = 1};
    if (!start_found(&toucher, &rig, MAP_SHARED))
        return;
    map_anon(&rig, rig_addr(2), 4, RW);
    go_on(&toucher);
    KEXPECT(toucher.succeeded);
    KEXPECT_EQ(toucher.value, 0);
    KEXPECT_EQ(toucher.faults.minor, 1);
    expect_fallback(&toucher, FAULT_FALLBACK_DETACHED, 1);
    rig_end(&rig);
}

/* The area is whole again, but it is another one. */
KTEST(fault_lock, split_and_merged_between_lookup_and_lock_goes_on)
{
    struct fault_rig rig;
    struct actor toucher = {.addr = rig_addr(3)};
    if (!start_found(&toucher, &rig, MAP_SHARED))
        return;
    KEXPECT_EQ(mm_mprotect(rig.mm, rig_addr(2), 4 * PAGE_SIZE, PROT_READ), 0);
    KEXPECT_EQ(mm_mprotect(rig.mm, rig_addr(2), 4 * PAGE_SIZE, RW), 0);
    go_on(&toucher);
    KEXPECT_EQ(toucher.value, gated_file_word(3, 0));
    expect_fallback(&toucher, FAULT_FALLBACK_DETACHED, 1);
    rig_end(&rig);
}

/* ---- Faults that keep their lock ---- */

FAULT_TEST(fault_lock, a_fault_that_keeps_its_lock_stops_who_changes_its_area)
{
    struct fault_rig rig;
    struct actor reader = {0}, elsewhere = {.addr = ANON, .argument = 4}, here = {0};
    if (begin(&rig, MAP_SHARED)) {
        knob_set("fault_retry", "hold");
        rig_touch_held(&rig, &reader, 5);
        actor_start(&elsewhere, &rig, act_map_anon);
        KEXPECT_EQ(actor_settle(&elsewhere), by_vma());
        actor_start(&here, &rig, act_munmap);
        KEXPECT(!actor_settle(&here));
        KEXPECT(!by_vma() || actor_waits_for(&here, "vma lock writer"));
        gate_open(rig.file->disk);
        actor_join(&reader);
        actor_join(&elsewhere);
        actor_join(&here);
        KEXPECT_EQ(reader.faults.major, 1); /* what it reads afterwards may be unmapped already */
        KEXPECT_EQ(reader.faults.lock_across_io, 1);
        KEXPECT_EQ(elsewhere.result, ANON);
        KEXPECT_EQ(here.result, 0);
        KEXPECT(!rig_is_mapped(&rig, 5));
    }
    rig_end(&rig);
}

/* The knob holds for the next attempt; one under way releases what it has taken. */
FAULT_TEST(fault_lock, the_knob_may_be_turned_while_a_fault_has_its_lock)
{
    struct fault_rig rig;
    struct actor reader = {0}, next = {.addr = rig_addr(6)};
    if (begin(&rig, MAP_SHARED)) {
        knob_set("fault_retry", "hold");
        struct page *page;
        if (KEXPECT_EQ(page_cache_get_page(&rig.file->cache, 6, false, &page), 0))
            page_put(page);
        rig_touch_held(&rig, &reader, 5);
        knob_set("fault_lock", by_vma() ? "mmap" : "vma");
        actor_start(&next, &rig, act_touch);
        KEXPECT(actor_settle(&next));
        gate_open(rig.file->disk);
        actor_join(&reader);
        actor_join(&next);
        KEXPECT(reader.succeeded);
        KEXPECT(next.succeeded);
        struct vma *vma = vma_find(rig.mm, rig_addr(5));
        KEXPECT(!rwsem_is_locked(&vma->lock));
        KEXPECT(!rwsem_is_locked(&rig.mm->mmap_lock));
    }
    rig_end(&rig);
}

/* ---- Fork ---- */

/*
 *   fork                        thread
 *   shares area 1
 *                               stores 2 to area 1: waits
 *                               (then it would store 2 to area 2)
 *   shares area 2
 *   ends
 *                               stores to both
 * The child has 1 in both.
 */
static void act_store_both(struct actor *actor)
{
    act_touch(actor);
    actor->addr = actor->addr + (1ul << 30);
    act_touch(actor);
}

FAULT_TEST(fault_lock, a_child_is_of_one_moment)
{
    struct fault_rig rig;
    struct actor forker = {0}, store = {.addr = ANON, .write = true, .argument = 2};
    if (begin(&rig, MAP_SHARED)) {
        map_anon(&rig, ANON, 2, RW);
        map_anon(&rig, ANON + (1ul << 30), 2, RW);
        poke_in(rig.mm, ANON, 1);
        poke_in(rig.mm, ANON + (1ul << 30), 1);
        sync_point_arm("fork_area_shared", NULL);
        actor_start(&forker, &rig, act_fork);
        sync_point_wait_parked("fork_area_shared");
        actor_start(&store, &rig, act_store_both);
        KEXPECT(!actor_settle(&store));
        KEXPECT(actor_waits_for(&store, "mmap_lock reader"));
        sync_point_release("fork_area_shared");
        actor_join(&forker);
        actor_join(&store);
        KASSERT_EQ(forker.result, 0);
        KEXPECT_EQ(peek_in(child_of(&forker), ANON), 1);
        KEXPECT_EQ(peek_in(child_of(&forker), ANON + (1ul << 30)), 1);
        KEXPECT_EQ(peek_in(rig.mm, ANON), 2);
        KEXPECT_EQ(peek_in(rig.mm, ANON + (1ul << 30)), 2);
        expect_fallback(&store, FAULT_FALLBACK_FORK, 1);
        KEXPECT(mm_check(child_of(&forker)) == NULL);
        mm_put(child_of(&forker));
    }
    rig_end(&rig);
}

/* What cannot spoil the picture goes on: loads, and stores that the child will see anyway. */
FAULT_TEST(fault_lock, a_fork_keeps_only_stores_into_private_memory_out)
{
    struct fault_rig rig;
    u64 fresh = ANON + (1ul << 30);
    struct actor forker = {0}, shared = {.addr = rig_addr(2), .write = true, .argument = 2},
                 load = {.addr = fresh},
                 store = {.addr = fresh + PAGE_SIZE, .write = true, .argument = 2};
    if (begin(&rig, MAP_SHARED)) {
        cache_pages(&rig);
        map_anon(&rig, ANON, 2, RW);
        map_anon(&rig, fresh, 2, RW); /* owns nothing yet: the fork will pass it by */
        poke_in(rig.mm, ANON, 1);
        sync_point_arm("fork_area_shared", NULL);
        actor_start(&forker, &rig, act_fork);
        sync_point_wait_parked("fork_area_shared");
        KEXPECT_EQ(gets_through(&shared, &rig), by_vma());
        KEXPECT_EQ(gets_through(&load, &rig), by_vma());
        KEXPECT(!gets_through(&store, &rig));
        sync_point_release("fork_area_shared");
        actor_join(&forker);
        actor_join(&shared);
        actor_join(&load);
        actor_join(&store);
        KASSERT_EQ(forker.result, 0);
        KEXPECT_EQ(peek_in(child_of(&forker), fresh + PAGE_SIZE), 0);
        KEXPECT_EQ(peek_in(child_of(&forker), rig_addr(2)), 2);
        expect_fallback(&shared, FAULT_FALLBACK_FORK, 0);
        expect_fallback(&load, FAULT_FALLBACK_FORK, 0);
        expect_fallback(&store, FAULT_FALLBACK_FORK, 1);
        mm_put(child_of(&forker));
    }
    rig_end(&rig);
}

/* The first load of a huge area gets a page of its own, with a promise of the pool: none behind the fork's back. */
FAULT_TEST(fault_lock, a_fork_keeps_loads_of_private_huge_memory_out)
{
    struct fault_rig rig;
    u64 huge = ALIGN_UP(ANON + (1ul << 30), HUGE_PAGE_BYTES);
    struct actor forker = {0}, load = {.addr = huge};
    struct huge_pool_counts n;
    huge_pool_resize(1);
    huge_pool_count(&n);
    if (n.free < 1)
        KTEST_SKIP("no room for a huge page");
    if (begin(&rig, MAP_SHARED)) {
        map_anon(&rig, ANON, 2, RW);
        poke_in(rig.mm, ANON, 1);
        KEXPECT_EQ(mm_mmap(rig.mm, huge, HUGE_PAGE_BYTES, RW,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_FIXED, NULL, 0),
                   huge);
        sync_point_arm("fork_area_shared", NULL);
        actor_start(&forker, &rig, act_fork);
        sync_point_wait_parked("fork_area_shared");
        KEXPECT(!gets_through(&load, &rig));
        sync_point_release("fork_area_shared");
        actor_join(&forker);
        actor_join(&load);
        KASSERT_EQ(forker.result, 0);
        KEXPECT(load.succeeded);
        expect_fallback(&load, FAULT_FALLBACK_FORK, 1);
        KEXPECT_EQ(child_of(&forker)->huge_pages, 0);
        mm_put(child_of(&forker));
    }
    rig_end(&rig);
    huge_pool_resize(0);
}

/* A store that has its area's lock already is waited for, and the child has it: the area's first page of its own. */
FAULT_TEST(fault_lock, a_fork_waits_for_stores_under_way)
{
    struct fault_rig rig;
    struct actor forker = {0}, store = {.addr = rig_addr(3), .write = true, .argument = 42};
    if (begin(&rig, MAP_PRIVATE)) {
        sync_point_arm("fault_before_lookup", NULL);
        knob_set("fault_retry", "hold");
        actor_start(&store, &rig, act_touch);
        sync_point_wait_parked("fault_before_lookup");
        actor_start(&forker, &rig, act_fork);
        KEXPECT(!actor_settle(&forker));
        KEXPECT(actor_waits_for(&forker, rig_lock_kept_by_faults()));
        sync_point_release("fault_before_lookup");
        actor_join(&store);
        actor_join(&forker);
        KASSERT_EQ(forker.result, 0);
        KEXPECT(store.succeeded);
        KEXPECT_EQ(peek_in(child_of(&forker), rig_addr(3)), 42);
        mm_put(child_of(&forker));
    }
    rig_end(&rig);
}

/*
 *   thread                              mmap between two areas
 *   first store into the lower one:
 *   has its lock, reads the page
 *                                       merges all three: the lower one owns no page, the upper one neither
 *                                       waits for the thread
 *   maps its page
 *                                       the merged area owns a page: a fork must look there
 */
FAULT_TEST(fault_lock, a_first_page_that_comes_during_a_merge_is_known_to_the_merged_area)
{
    struct fault_rig rig;
    struct actor store = {.addr = rig_addr(2), .write = true, .argument = 42};
    struct actor mapper = {.addr = rig_addr(6), .argument = 4};
    struct actor upper = {.addr = rig_addr(10), .argument = 6};
    struct actor forker = {0};
    if (begin(&rig, MAP_PRIVATE)) {
        knob_set("fault_retry", "hold");
        KEXPECT_EQ(mm_munmap(rig.mm, rig_addr(6), 10 * PAGE_SIZE), 0);
        actor_start(&upper, &rig, act_map_file);
        actor_join(&upper);
        sync_point_arm("fault_before_lookup", NULL);
        actor_start(&store, &rig, act_touch);
        sync_point_wait_parked("fault_before_lookup");
        actor_start(&mapper, &rig, act_map_file);
        KEXPECT(!actor_settle(&mapper));
        KEXPECT(actor_waits_for(&mapper, rig_lock_kept_by_faults()));
        sync_point_release("fault_before_lookup");
        actor_join(&store);
        actor_join(&mapper);
        const struct vma *vma = vma_find(rig.mm, rig_addr(6));
        KEXPECT(vma_owns_anon(vma) || !by_vma());
        KEXPECT_EQ(vma->end, rig_addr(16));
        actor_start(&forker, &rig, act_fork);
        actor_join(&forker);
        KASSERT_EQ(forker.result, 0);
        KEXPECT_EQ(peek_in(child_of(&forker), rig_addr(2)), 42);
        mm_put(child_of(&forker));
    }
    rig_end(&rig);
}
