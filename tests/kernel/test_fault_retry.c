/*
 * The five promises of the design, and each row of "what may change while the lock is free" (FAULTS.md section 2), arranged by
 * the I/O gate and sync points: a page is held at the disk, its fault waits, something else happens, the page is released.
 */
#include "kernel/sched/sync_point.h"
#include "lib/string.h"
#include "mm/knobs.h"
#include "tests/kernel/fault_rig.h"

#define PAGES 16
#define PAGE  5

/* A rig with a reader whose page PAGE is held by the gate. */
static bool begin(struct fault_rig *rig, struct actor *reader)
{
    if (!KEXPECT(rig_init(rig, PAGES, PROT_READ, MAP_SHARED)))
        return false;
    rig_touch_held(rig, reader, PAGE);
    return KEXPECT(actor_waits_for(reader, "page 5"));
}

static void finish(struct fault_rig *rig, struct actor *reader)
{
    gate_open(rig->file->disk);
    actor_join(reader);
    KEXPECT(counters_add_up(&reader->faults));
}

FAULT_TEST_OF_EACH_POLICY(fault_retry, unmap_while_reading_returns_before_the_disk_and_is_segv)
{
    struct fault_rig rig;
    struct actor reader = {0}, writer = {0};
    if (begin(&rig, &reader)) {
        actor_start(&writer, &rig, act_munmap);
        KEXPECT(actor_settle(&writer)); /* it ends while the gate still holds the page */
        KEXPECT_EQ(gate_held(rig.file->disk), 1);
        finish(&rig, &reader);
        actor_join(&writer);
        KEXPECT_EQ(writer.result, 0);
        KEXPECT(!reader.succeeded);
        KEXPECT_EQ(reader.faults.sigsegv, 1);
        KEXPECT_EQ(reader.faults.major + reader.faults.minor, 0);
        KEXPECT_EQ(reader.faults.retries, 1);
        KEXPECT_EQ(reader.faults.lock_across_io, 0);
    }
    rig_end(&rig);
}

FAULT_TEST(fault_retry, hold_makes_the_writer_wait_for_the_disk)
{
    struct fault_rig rig;
    struct actor reader = {0}, writer = {0};
    KASSERT(rig_init(&rig, PAGES, PROT_READ, MAP_SHARED));
    knob_set("fault_retry", "hold");
    rig_touch_held(&rig, &reader, PAGE);
    actor_start(&writer, &rig, act_munmap);
    KEXPECT(!actor_settle(&writer));
    KEXPECT(actor_waits_for(&writer, rig_lock_kept_by_faults()));
    finish(&rig, &reader);
    actor_join(&writer);
    KEXPECT(reader.succeeded);
    KEXPECT_EQ(reader.value, gated_file_word(PAGE, 0));
    KEXPECT_EQ(reader.faults.major, 1);
    KEXPECT_EQ(reader.faults.retries, 0);
    KEXPECT_EQ(reader.faults.lock_across_io, 1);
    rig_end(&rig);
}

FAULT_TEST_OF_EACH_POLICY(fault_retry, a_retried_fault_is_one_count)
{
    struct fault_rig rig;
    struct actor reader = {0};
    if (begin(&rig, &reader)) {
        finish(&rig, &reader);
        KEXPECT(reader.succeeded);
        KEXPECT_EQ(reader.value, gated_file_word(PAGE, 0));
        KEXPECT_EQ(reader.faults.started, 1);
        KEXPECT_EQ(reader.faults.major, 1);
        KEXPECT_EQ(reader.faults.minor, 0);
        KEXPECT_EQ(reader.faults.attempts, 2 - rig_takes_back());
        KEXPECT_EQ(reader.faults.retries, 1 - rig_takes_back());
        KEXPECT_EQ(reader.faults.retry_misses, 0);
        KEXPECT_EQ(reader.faults.lock_across_io, 0);
        KEXPECT_EQ(reader.faults.waits, 1);
        KEXPECT_EQ(reader.faults.reason[FAULT_REASON_IO], 1);
    }
    rig_end(&rig);
}

FAULT_TEST_OF_EACH_POLICY(fault_retry, eight_threads_on_one_cold_page_are_one_request)
{
    struct fault_rig rig;
    struct actor readers[8] = {0};
    u64 major = 0, minor = 0, own = 0;
    KASSERT(rig_init(&rig, PAGES, PROT_READ, MAP_SHARED));
    rig_touch_held(&rig, &readers[0], PAGE);
    for (unsigned i = 1; i < 8; i++) {
        readers[i].addr = rig_addr(PAGE);
        actor_start(&readers[i], &rig, act_touch);
        KEXPECT(!actor_settle(&readers[i]));
    }
    KEXPECT_EQ(gate_held(rig.file->disk), 1);
    gate_open(rig.file->disk);
    for (unsigned i = 0; i < 8; i++) {
        actor_join(&readers[i]);
        KEXPECT_EQ(readers[i].value, gated_file_word(PAGE, 0));
        KEXPECT_EQ(readers[i].faults.started, 1);
        major += readers[i].faults.major;
        minor += readers[i].faults.minor;
        own += readers[i].faults.reason[FAULT_REASON_IO];
    }
    KEXPECT_EQ(gated_file_requests(rig.file), 1);
    KEXPECT_EQ(major, 8); /* all of them slept for it */
    KEXPECT_EQ(minor, 0);
    KEXPECT_EQ(own, 1);
    rig_end(&rig);
}

FAULT_TEST_OF_EACH_POLICY(fault_retry, protection_taken_away_while_reading_is_accerr)
{
    struct fault_rig rig;
    struct actor reader = {0};
    if (begin(&rig, &reader)) {
        KEXPECT_EQ(mm_mprotect(rig.mm, RIG_BASE, PAGES * PAGE_SIZE, PROT_NONE), 0);
        KEXPECT_EQ(gate_held(rig.file->disk), 1);
        finish(&rig, &reader);
        KEXPECT(!reader.succeeded);
        KEXPECT_EQ(reader.faults.sigsegv, 1);
    }
    rig_end(&rig);
}

FAULT_TEST_OF_EACH_POLICY(fault_retry, anonymous_memory_put_there_while_reading_is_zeros_and_major)
{
    struct fault_rig rig;
    struct actor reader = {0};
    if (begin(&rig, &reader)) {
        reader.value = 1;
        KEXPECT_EQ(mm_mmap(rig.mm, rig_addr(PAGE), PAGE_SIZE, PROT_READ,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL, 0),
                   rig_addr(PAGE));
        finish(&rig, &reader);
        KEXPECT(reader.succeeded);
        KEXPECT_EQ(reader.value, 0);
        KEXPECT_EQ(reader.faults.major, 1);
        KEXPECT_EQ(reader.faults.minor, 0);
    }
    rig_end(&rig);
}

FAULT_TEST_OF_EACH_POLICY(fault_retry, other_file_page_put_there_while_reading_gives_its_bytes)
{
    struct fault_rig rig;
    struct actor reader = {0};
    if (begin(&rig, &reader)) {
        KEXPECT_EQ(mm_mmap(rig.mm, rig_addr(PAGE), PAGE_SIZE, PROT_READ, MAP_SHARED | MAP_FIXED,
                           &rig.file->mapped, 9 * PAGE_SIZE),
                   rig_addr(PAGE));
        finish(&rig, &reader);
        KEXPECT_EQ(reader.value, gated_file_word(9, 0));
        KEXPECT_EQ(reader.faults.started, 1);
    }
    rig_end(&rig);
}

FAULT_TEST_OF_EACH_POLICY(fault_retry, file_truncated_below_while_reading_is_sigbus)
{
    struct fault_rig rig;
    struct actor reader = {0}, cutter = {.argument = 2 * PAGE_SIZE};
    if (begin(&rig, &reader)) {
        actor_start(&cutter, &rig, act_truncate);
        KEXPECT(!actor_settle(&cutter)); /* the page is locked by its read */
        KEXPECT(actor_waits_for(&cutter, "page 5"));
        finish(&rig, &reader);
        actor_join(&cutter);
        KEXPECT(!reader.succeeded);
        KEXPECT_EQ(reader.faults.sigbus, 1);
        KEXPECT(!rig_is_mapped(&rig, PAGE));
        KEXPECT_EQ(rig.file->cache.n_pages, 0);
    }
    rig_end(&rig);
}

FAULT_TEST_OF_EACH_POLICY(fault_retry,
                          hole_punched_while_reading_waits_for_the_page_and_gives_zeros)
{
    struct fault_rig rig;
    struct actor reader = {0}, puncher = {.argument = PAGE};
    u64 value = 1;
    if (begin(&rig, &reader)) {
        sync_point_arm("fault_after_wait", reader.task);
        actor_start(&puncher, &rig, act_punch);
        KEXPECT(!actor_settle(&puncher));
        gate_open(rig.file->disk);
        sync_point_wait_parked("fault_after_wait");
        actor_join(&puncher); /* it had the page first */
        sync_point_release("fault_after_wait");
        actor_join(&reader);
        KEXPECT_EQ(reader.value, 0);
        KEXPECT(counters_add_up(&reader.faults));
        rig_touch(&rig, PAGE, &value);
        KEXPECT_EQ(value, 0);
    }
    rig_end(&rig);
}

FAULT_TEST_OF_EACH_POLICY(fault_retry, page_overwritten_while_reading_gives_the_new_bytes)
{
    struct fault_rig rig;
    struct actor reader = {0}, writer = {.argument = PAGE};
    if (begin(&rig, &reader)) {
        sync_point_arm("fault_after_wait", reader.task);
        actor_start(&writer, &rig, act_write);
        KEXPECT(!actor_settle(&writer));
        gate_open(rig.file->disk);
        sync_point_wait_parked("fault_after_wait");
        actor_join(&writer);
        sync_point_release("fault_after_wait");
        actor_join(&reader);
        KEXPECT_EQ(reader.value, gated_file_word(PAGE, 1));
        KEXPECT_EQ(reader.faults.major, 1);
    }
    rig_end(&rig);
}

FAULT_TEST_OF_EACH_POLICY(fault_retry, killed_while_reading_is_gone_before_the_disk)
{
    struct fault_rig rig;
    struct actor reader = {0};
    if (begin(&rig, &reader)) {
        task_kill(reader.task);
        actor_join(&reader);
        KEXPECT_EQ(gate_held(rig.file->disk), 1);
        KEXPECT(!reader.succeeded);
        KEXPECT_EQ(reader.faults.killed, 1);
        KEXPECT_EQ(reader.faults.retries, 0);
        KEXPECT(counters_add_up(&reader.faults));
    }
    rig_end(&rig);
}

/* The page leaves the cache between the wait and the restart. */
static void drop_between_wait_and_restart(struct fault_rig *rig, struct actor *reader, u64 *dropped)
{
    sync_point_arm("fault_after_wait", reader->task);
    gate_open(rig->file->disk);
    sync_point_wait_parked("fault_after_wait");
    sync_point_arm("fault_retry", reader->task);
    sync_point_release("fault_after_wait");
    sync_point_wait_parked("fault_retry");
    *dropped = page_cache_drop_range(&rig->file->cache, PAGE, PAGE);
    sync_point_release("fault_retry");
}

FAULT_TEST(fault_retry, unpinned_page_dropped_before_the_restart_is_read_again_in_one_fault)
{
    struct fault_rig rig;
    struct actor reader = {0};
    u64 dropped;
    if (begin(&rig, &reader)) {
        knob_set("fault_pin", "0");
        drop_between_wait_and_restart(&rig, &reader, &dropped);
        actor_join(&reader);
        KEXPECT_EQ(dropped, 1);
        KEXPECT_EQ(reader.value, gated_file_word(PAGE, 0));
        KEXPECT_EQ(reader.faults.started, 1);
        KEXPECT_EQ(reader.faults.major, 1);
        KEXPECT_EQ(reader.faults.retry_misses, 1);
        KEXPECT_EQ(gated_file_requests(rig.file), 2);
        KEXPECT(counters_add_up(&reader.faults));
    }
    rig_end(&rig);
}

FAULT_TEST(fault_retry, pinned_page_survives_until_the_restart)
{
    struct fault_rig rig;
    struct actor reader = {0};
    u64 dropped;
    if (begin(&rig, &reader)) {
        drop_between_wait_and_restart(&rig, &reader, &dropped);
        actor_join(&reader);
        KEXPECT_EQ(dropped, 0);
        KEXPECT_EQ(reader.faults.retry_misses, 0);
        KEXPECT_EQ(gated_file_requests(rig.file), 1);
    }
    rig_end(&rig);
}

/* The reader has waited once, its page is gone again, and its second read is held by the gate. */
static void wait_twice(struct fault_rig *rig, struct actor *reader)
{
    knob_set("fault_pin", "0");
    sync_point_arm("fault_after_wait", reader->task);
    gate_open(rig->file->disk);
    sync_point_wait_parked("fault_after_wait");
    sync_point_arm("fault_retry", reader->task);
    sync_point_release("fault_after_wait");
    sync_point_wait_parked("fault_retry");
    KEXPECT_EQ(page_cache_drop_range(&rig->file->cache, PAGE, PAGE), 1);
    gated_file_hold(rig->file, PAGE, PAGE);
    sync_point_release("fault_retry");
    gate_wait_held(rig->file->disk, 1);
    actor_settle(reader);
}

FAULT_TEST(fault_retry, second_attempt_of_once_keeps_the_lock)
{
    struct fault_rig rig;
    struct actor reader = {0}, writer = {0};
    if (begin(&rig, &reader)) {
        wait_twice(&rig, &reader);
        actor_start(&writer, &rig, act_munmap);
        KEXPECT(!actor_settle(&writer));
        KEXPECT(actor_waits_for(&writer, rig_lock_kept_by_faults()));
        finish(&rig, &reader);
        actor_join(&writer);
        KEXPECT(reader.succeeded);
        KEXPECT_EQ(reader.faults.lock_across_io, 1);
        KEXPECT_EQ(reader.faults.retries, 1);
        KEXPECT_EQ(reader.faults.major, 1);
    }
    rig_end(&rig);
}

FAULT_TEST(fault_retry, second_attempt_of_many_lets_go_again)
{
    struct fault_rig rig;
    struct actor reader = {0}, writer = {0};
    if (begin(&rig, &reader)) {
        knob_set("fault_retry", "many");
        wait_twice(&rig, &reader);
        actor_start(&writer, &rig, act_munmap);
        KEXPECT(actor_settle(&writer));
        KEXPECT_EQ(gate_held(rig.file->disk), 1);
        finish(&rig, &reader);
        actor_join(&writer);
        KEXPECT(!reader.succeeded);
        KEXPECT_EQ(reader.faults.lock_across_io, 0);
        KEXPECT_EQ(reader.faults.retries, 2);
        KEXPECT_EQ(reader.faults.sigsegv, 1);
    }
    rig_end(&rig);
}

/* One lock for the address space and one counter of its changes: also one that does not concern the fault makes it start over. */
FAULT_TEST(fault_retry, recheck_starts_over_after_a_change_anywhere)
{
    struct fault_rig rig;
    struct actor reader = {0};
    if (begin(&rig, &reader)) {
        knob_set("fault_retry", "recheck");
        KEXPECT_EQ(mm_mmap(rig.mm, RIG_BASE + (1ul << 30), PAGE_SIZE, PROT_READ,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL, 0),
                   RIG_BASE + (1ul << 30));
        finish(&rig, &reader);
        KEXPECT_EQ(reader.value, gated_file_word(PAGE, 0));
        KEXPECT_EQ(reader.faults.retries, 1);
        KEXPECT_EQ(reader.faults.major, 1);
    }
    rig_end(&rig);
}

/* With the lock taken back, the page is still looked at as if for the first time. */
FAULT_TEST(fault_retry, recheck_looks_at_the_page_and_the_file_again)
{
    struct fault_rig rig;
    struct actor reader = {0}, cutter = {.argument = 2 * PAGE_SIZE};
    if (begin(&rig, &reader)) {
        knob_set("fault_retry", "recheck");
        sync_point_arm("fault_after_wait", reader.task);
        gate_open(rig.file->disk);
        sync_point_wait_parked("fault_after_wait");
        actor_start(&cutter, &rig, act_truncate);
        actor_join(&cutter);
        sync_point_release("fault_after_wait");
        finish(&rig, &reader);
        KEXPECT(!reader.succeeded);
        KEXPECT_EQ(reader.faults.sigbus, 1);
        KEXPECT(!rig_is_mapped(&rig, PAGE));
    }
    rig_end(&rig);
}

/* When is the lock let go? With `submit` the disk knows nothing yet, with `wait` it has the request. */
static void let_go_with(const char *drop, u64 requests_before)
{
    struct fault_rig rig;
    struct actor reader = {.addr = rig_addr(PAGE)};
    KASSERT(rig_init(&rig, PAGES, PROT_READ, MAP_SHARED));
    knob_set("fault_drop", drop);
    gated_file_hold(rig.file, PAGE, PAGE);
    sync_point_arm("fault_lock_dropped", NULL);
    actor_start(&reader, &rig, act_touch);
    sync_point_wait_parked("fault_lock_dropped");
    KEXPECT_EQ(gate_held(rig.file->disk), requests_before);
    sync_point_release("fault_lock_dropped");
    gate_wait_held(rig.file->disk, 1);
    actor_settle(&reader);
    finish(&rig, &reader);
    KEXPECT_EQ(reader.value, gated_file_word(PAGE, 0));
    KEXPECT_EQ(reader.faults.major, 1);
    KEXPECT_EQ(reader.faults.retries, 1);
    KEXPECT_EQ(reader.faults.lock_across_io, 0);
    rig_end(&rig);
}

FAULT_TEST(fault_retry, the_lock_is_let_go_before_asking_the_disk_or_after)
{
    let_go_with("submit", 0);
    let_go_with("wait", 1);
}

FAULT_TEST_OF_EACH_POLICY(fault_retry, entry_filled_by_another_thread_meanwhile_is_kept)
{
    struct fault_rig rig;
    struct actor reader = {0};
    u64 value = 0;
    if (begin(&rig, &reader)) {
        sync_point_arm("fault_after_wait", reader.task);
        gate_open(rig.file->disk);
        sync_point_wait_parked("fault_after_wait");
        struct task_fault_counters other = rig_touch(&rig, PAGE, &value);
        KEXPECT_EQ(other.minor, 1); /* in the cache by now: no wait */
        sync_point_release("fault_after_wait");
        actor_join(&reader);
        KEXPECT_EQ(reader.value, value);
        KEXPECT_EQ(reader.faults.major, 1);
        KEXPECT_EQ(gated_file_requests(rig.file), 1);
        struct page *page = page_cache_find(&rig.file->cache, PAGE);
        KEXPECT_EQ(page->mapcount, 1);
        KEXPECT_EQ(page->refs, 3); /* the cache's, the entry's, ours */
        page_put(page);
    }
    rig_end(&rig);
}

FAULT_TEST_OF_EACH_POLICY(fault_retry, file_is_pinned_while_its_only_mapping_goes)
{
    struct fault_rig rig;
    struct actor reader = {0};
    if (begin(&rig, &reader)) {
        KEXPECT_EQ(mm_munmap(rig.mm, RIG_BASE, PAGES * PAGE_SIZE), 0);
        KEXPECT_EQ(rig.file->mapped.refs, 2); /* the test's and the waiting fault's */
        finish(&rig, &reader);
        KEXPECT_EQ(rig.file->mapped.refs, 1);
    }
    rig_end(&rig);
}
