/*
 * Races that a review found, each told as a story of two actors and arranged with sync points and the I/O gate: late lookups and new
 * pages, reclaim and the end of a cache, drops and a fault that keeps its lock, kills of those who wait or only compute, frames that
 * run out at every place where one is taken.
 */
#include "kernel/cpu/clock.h"
#include "kernel/cpu/context.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/log/log.h"
#include "kernel/sched/grace.h"
#include "kernel/sched/sync_point.h"
#include "kernel/task/process.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/slab.h"
#include "mm/core/tlb.h"
#include "mm/knobs.h"
#include "mm/user_memory.h"
#include "tests/kernel/fault_rig.h"
#include "tests/kernel/programs.h"
#include "tests/kernel/threads.h"

#define PAGES 16
#define PAGE  5
#define ANON_ADDR \
    (RIG_BASE + (64ul << 30)) /* far away: needs tables of its own at every level but the root */

/* ---- Late lookups ---- */

/* The frame that says it belongs there, whether it is in the tree or not. */
static struct page *frame_of(const struct page_cache *cache, pgoff_t index)
{
    for (pfn_t pfn = 0; pfn < page_array_end; pfn++) {
        struct page *page = pfn_page(pfn);
        if (READ_ONCE(page->cache) == cache && page->index == index &&
            atomic_load(&page->refs) > 0 && !page_has(page, PAGE_SLAB | PAGE_TABLE | PAGE_RESERVED))
            return page;
    }
    return NULL;
}

/* A reader of page PAGE whose new frame is not in the tree yet. => the frame */
static struct page *begin_inserting(struct fault_rig *rig, struct actor *reader)
{
    if (!KEXPECT(rig_init(rig, PAGES, PROT_READ, MAP_SHARED)))
        return NULL;
    sync_point_arm("page_cache_insert", NULL);
    reader->addr = rig_addr(PAGE);
    actor_start(reader, rig, act_touch);
    sync_point_wait_parked("page_cache_insert");
    struct page *frame = frame_of(&rig->file->cache, PAGE);
    KEXPECT(frame && page_is_locked(frame));
    return frame;
}

/*
 *   late lookup                             reader
 *   found the frame where it used to be
 *                                           gets the same frame anew, makes it page 5
 *   takes a reference
 *                                           inserts the page, reads it, maps it
 *   drops its reference
 */
FAULT_TEST(races, a_late_lookup_of_a_reused_frame_costs_no_reference)
{
    struct fault_rig rig;
    struct actor reader = {0};
    struct page *frame = begin_inserting(&rig, &reader);
    bool taken = frame && KEXPECT(page_try_get(frame));
    sync_point_release("page_cache_insert");
    actor_join(&reader);
    KEXPECT(reader.succeeded);
    if (taken) {
        KEXPECT_EQ(frame->refs, 3); /* the cache's, the page-table entry's, the late lookup's */
        page_put(frame);
    }
    rig_end(&rig);
}

struct lock_wait {
    struct page *page;
    bool got_it;
};

static void lock_and_unlock(void *arg)
{
    struct lock_wait *wait = arg;
    page_lock(wait->page);
    WRITE_ONCE(wait->got_it, true);
    page_unlock(wait->page);
    page_put(wait->page);
}

/*
 *   late lookup                  first reader                     second reader
 *                                has a frame for page 5
 *                                                                 inserts page 5 and reads it
 *   finds the first frame,
 *   waits for its lock
 *                                sees that it comes too late,
 *                                gives its frame up
 *   must be woken
 */
FAULT_TEST(races, a_frame_that_came_too_late_wakes_who_waits_for_it)
{
    struct fault_rig rig;
    struct actor first = {0}, second = {.addr = rig_addr(PAGE)};
    struct page *frame = begin_inserting(&rig, &first);
    actor_start(&second, &rig, act_touch);
    actor_join(&second);
    KEXPECT(second.succeeded);

    struct lock_wait wait = {frame, false};
    struct test_threads threads = {0};
    bool taken = frame && KEXPECT(page_try_get(frame));
    if (taken)
        threads_add_and_wait_asleep(&threads, lock_and_unlock, &wait);
    sync_point_release("page_cache_insert");
    actor_join(&first);
    KEXPECT(first.succeeded);
    if (taken) {
        struct actor waiter = {.task = threads.tasks[0]};
        if (!KEXPECT(actor_settle(&waiter)))
            page_unlock_io(frame);
        KEXPECT_EQ(threads_join(&threads), 0);
        KEXPECT(wait.got_it);
    }
    KEXPECT_EQ(gated_file_requests(rig.file), 1);
    rig_end(&rig);
}

/* ---- The end of a cache ---- */

struct taker {
    struct page_cache cache;
    bool is_inside, is_ending, is_leaving;
};

/* Stands where reclaim stands when it has taken the last page out: the tree is empty, tree_lock is still held. */
static void hold_tree_lock(void *arg)
{
    struct taker *taker = arg;
    bool irqs = spin_lock_irq(&taker->cache.tree_lock);
    atomic_store(&taker->is_inside, true);
    while (!atomic_load(&taker->is_ending))
        cpu_pause();
    for (unsigned i = 0; i < 200; i++)
        busy_moment();
    atomic_store(&taker->is_leaving, true);
    spin_unlock_irq(&taker->cache.tree_lock, irqs);
}

KTEST(races, a_cache_ends_only_when_reclaim_has_left_it)
{
    static struct taker taker;
    struct test_threads threads = {0};
    if (cpu_count() < 2) {
        ktest_skip("needs two CPUs");
        return;
    }
    taker = (struct taker){0};
    page_cache_init(&taker.cache, NULL, NULL, false);
    threads_add_on(&threads, (cpu_index() + 1) % cpu_count(), hold_tree_lock, &taker);
    while (!atomic_load(&taker.is_inside))
        cpu_pause(); /* and stays on this CPU */
    atomic_store(&taker.is_ending, true);
    page_cache_destroy(&taker.cache);
    KEXPECT(atomic_load(&taker.is_leaving));
    KEXPECT_EQ(threads_join(&threads), 0);
}

/* ---- A fault that keeps its lock ---- */

/*
 *   fault (hold, or the second attempt)     drop (POSIX_FADV_DONTNEED in a loop, reclaim)
 *   waits for its page, lock kept
 *   wakes up
 *                                           drops the page
 *   looks it up: absent, reads it again, for ever
 */
FAULT_TEST(races, a_fault_that_keeps_its_lock_is_not_robbed_of_its_page)
{
    struct fault_rig rig;
    struct actor reader = {0};
    KASSERT(rig_init(&rig, PAGES, PROT_READ, MAP_SHARED));
    knob_set("fault_retry", "hold");
    knob_set("fault_pin", "0");
    rig_touch_held(&rig, &reader, PAGE);
    sync_point_arm("fault_before_lookup", reader.task);
    gate_open(rig.file->disk);
    sync_point_wait_parked("fault_before_lookup");
    KEXPECT_EQ(page_cache_drop_range(&rig.file->cache, PAGE, PAGE), 0);
    sync_point_release("fault_before_lookup");
    actor_join(&reader);
    KEXPECT(reader.succeeded);
    KEXPECT_EQ(reader.faults.major, 1);
    KEXPECT_EQ(reader.faults.retry_misses, 0);
    KEXPECT_EQ(gated_file_requests(rig.file), 1);
    rig_end(&rig);
}

/* ---- Dropping and truncating ---- */

static void act_drop(struct actor *actor)
{
    actor->result = (s64)page_cache_drop_range(&actor->rig->file->cache, PAGE, PAGE);
}

/*
 *   drop                          program
 *   finds page 5
 *                                 stores through its map, unmaps
 *   must see that it is dirty
 */
FAULT_TEST(races, a_page_that_becomes_dirty_is_not_dropped)
{
    struct fault_rig rig;
    struct actor drop = {0};
    struct page *page;
    KASSERT(rig_init(&rig, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED));
    KASSERT_EQ(page_cache_get_page(&rig.file->cache, PAGE, false, &page), 0);
    page_put(page);
    sync_point_arm("page_cache_drop", NULL);
    actor_start(&drop, &rig, act_drop);
    sync_point_wait_parked("page_cache_drop");
    rig_store(&rig, PAGE, 42);
    KEXPECT_EQ(mm_munmap(rig.mm, RIG_BASE, PAGES * PAGE_SIZE), 0);
    sync_point_release("page_cache_drop");
    actor_join(&drop);
    KEXPECT_EQ(drop.result, 0);
    KASSERT((page = page_cache_find(&rig.file->cache, PAGE)) != NULL);
    KEXPECT_EQ(*(u64 *)page_virt(page), 42);
    page_put(page);
    rig_end(&rig);
}

/* A store past the end of the file, in its last page, does not become the file's when it grows. */
FAULT_TEST(races, a_store_past_the_end_is_gone_when_the_file_grows)
{
    struct fault_rig rig;
    struct actor store = {.addr = rig_addr(PAGE) + 512, .write = true, .argument = 42};
    struct actor load = {.addr = rig_addr(PAGE) + 512};
    KASSERT(rig_init(&rig, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED));
    gated_file_truncate(rig.file, PAGE * PAGE_SIZE + 256);
    actor_start(&store, &rig, act_touch);
    actor_join(&store);
    KEXPECT(store.succeeded);
    gated_file_truncate(rig.file, PAGES * PAGE_SIZE);
    actor_start(&load, &rig, act_touch);
    actor_join(&load);
    KEXPECT(load.succeeded);
    KEXPECT_EQ(load.value, 0);
    rig_end(&rig);
}

/* ---- Kills ---- */

/*
 *   reader A            punch                          reader B
 *   reads page 5
 *                       holds invalidate_lock,
 *                       waits for page 5
 *                                                      page 3 is absent: waits for invalidate_lock
 *                                                      is killed: ends, though the disk still holds page 5
 */
FAULT_TEST(races, killed_while_a_punch_waits_for_the_disk_is_gone_before_it)
{
    struct fault_rig rig;
    struct actor a = {0}, punch = {.argument = PAGE}, b = {.addr = rig_addr(3)};
    KASSERT(rig_init(&rig, PAGES, PROT_READ, MAP_SHARED));
    rig_touch_held(&rig, &a, PAGE);
    actor_start(&punch, &rig, act_punch);
    KEXPECT(!actor_settle(&punch));
    actor_start(&b, &rig, act_touch);
    KEXPECT(!actor_settle(&b));
    KEXPECT(actor_waits_for(&b, "invalidate_lock"));
    task_kill(b.task);
    KEXPECT(actor_settle(&b));
    KEXPECT_EQ(gate_held(rig.file->disk), 1);
    gate_open(rig.file->disk);
    actor_join(&b);
    actor_join(&a);
    actor_join(&punch);
    KEXPECT_EQ(b.faults.killed, 1);
    KEXPECT(counters_add_up(&b.faults));
    KEXPECT_EQ(a.value, 0); /* the hole */
    rig_end(&rig);
}

#define KILL_PATIENCE_NS 500000000ul

/* A program that only computes, alone on its CPU, is interrupted by nobody: the kill itself must do it. */
KTEST(races, a_program_that_only_computes_can_be_killed)
{
    int error;
    if (!program_exists("/tests/hog"))
        KTEST_SKIP("no root file system with /tests");
    struct process *process = program_start("/tests/hog", "spin", "1", NULL, false, &error);
    KASSERT(process);
    struct task *task = process->task;
    while (READ_ONCE(task->user_ns) < 1000000 && !READ_ONCE(task->in_user))
        sleep_until_ns(clock_ns() + 1000000);
    grace_barrier(); /* no interrupts for its sake any more */
    process_kill(process, SIGKILL);
    u64 until = clock_ns() + KILL_PATIENCE_NS;
    while (!process_has_ended(process) && clock_ns() < until)
        sleep_until_ns(clock_ns() + 1000000);
    if (!KEXPECT(process_has_ended(process)))
        ipi_send(task->cpu, IPI_VECTOR_RESCHEDULE);
    KEXPECT_EQ(program_end(process), 128 + SIGKILL);
    process_put(process);
}

/* ---- Out of frames ---- */

/* The touch, during which the allocation number `result` fails. */
static void act_touch_starved(struct actor *actor)
{
    frames_fail_inject((u64)actor->result, 1);
    act_touch(actor);
    frames_fail_inject(0, 0);
}

/*
 * A fresh address space, something cached that can be reclaimed; then one allocation of the fault fails: the page, a page table of any
 * level, whatever else it takes. Nothing is lost but time.
 */
static void touch_with_failure(u64 which, u64 addr, bool write, u32 share)
{
    struct fault_rig rig;
    struct actor actor = {.addr = addr, .write = write, .argument = 42, .result = (s64)which};
    KASSERT(rig_init(&rig, PAGES, PROT_READ | PROT_WRITE, share));
    KASSERT_EQ(mm_mmap(rig.mm, ANON_ADDR, PAGE_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL, 0),
               ANON_ADDR);
    for (pgoff_t index = 8; index < 12; index++) {
        struct page *page;
        KEXPECT_EQ(page_cache_get_page(&rig.file->cache, index, false, &page), 0);
        page_put(page);
    }
    actor_start(&actor, &rig, act_touch_starved);
    actor_join(&actor);
    if (!KEXPECT(actor.succeeded))
        ktest_note("failure %lu, address %lx, write %d", which, addr, write);
    KEXPECT_EQ(actor.faults.oom, 0);
    KEXPECT_EQ(actor.faults.major + actor.faults.minor, 1);
    KEXPECT(counters_add_up(&actor.faults));
    KEXPECT(mm_check(rig.mm) == NULL);
    rig_end(&rig);
}

FAULT_TEST(races, each_allocation_of_a_fault_may_fail_while_there_is_something_to_reclaim)
{
    for (u64 which = 0; which < 6 && !ktest_has_failed(); which++) {
        touch_with_failure(which, ANON_ADDR, false, MAP_SHARED);
        touch_with_failure(which, ANON_ADDR, true, MAP_SHARED);
        touch_with_failure(which, rig_addr(PAGE), false, MAP_SHARED);
        touch_with_failure(which, rig_addr(PAGE), true, MAP_SHARED);
        touch_with_failure(which, rig_addr(PAGE), true, MAP_PRIVATE);
    }
}
