/*
 * Letting go and starting over: how it is counted, how often it is done, what stays pinned meanwhile. What others may change
 * meanwhile is in test_fault_races.c.
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
        /* The fault ended well. Where the unmapping comes before the access itself, that is a fault of its own. */
        KEXPECT_EQ(reader.faults.major, 1);
        KEXPECT_EQ(reader.faults.sigsegv, reader.succeeded ? 0 : 1);
        KEXPECT_EQ(reader.faults.lock_across_io, 1);
        KEXPECT_EQ(reader.faults.retries, 1);
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

/* Else somebody who drops it each time could keep even an attempt that holds its lock busy for ever. */
FAULT_TEST_OF_EACH_POLICY(fault_retry, page_asked_for_is_not_dropped_before_it_is_looked_at)
{
    struct fault_rig rig;
    struct actor reader = {.addr = rig_addr(PAGE)};
    KASSERT(rig_init(&rig, PAGES, PROT_READ, MAP_SHARED));
    sync_point_arm("fault_asked", NULL);
    actor_start(&reader, &rig, act_touch);
    sync_point_wait_parked("fault_asked");
    KEXPECT_EQ(page_cache_drop_range(&rig.file->cache, PAGE, PAGE), 0);
    sync_point_release("fault_asked");
    finish(&rig, &reader);
    KEXPECT_EQ(reader.value, gated_file_word(PAGE, 0));
    KEXPECT_EQ(gated_file_requests(rig.file), 1);
    rig_end(&rig);
}

/*
 * The first read of its page fails at once, the next one takes its time. Whoever is about to wait for the disk has no lock, also
 * with fault_drop=wait, where the fault has kept it up to there.
 */
FAULT_TEST_OF_EACH_POLICY(fault_retry, wait_after_a_failed_read_is_without_the_lock)
{
    struct fault_rig rig;
    struct actor reader = {.addr = rig_addr(PAGE)}, writer = {0};
    KASSERT(rig_init(&rig, PAGES, PROT_READ, MAP_SHARED));
    gate_fail(rig.file->disk, gated_file_sector(PAGE), gated_file_sector(PAGE), -EIO, 1);
    gated_file_hold(rig.file, PAGE, PAGE);
    sync_point_arm("page_cache_insert", NULL);
    actor_start(&reader, &rig, act_touch);
    sync_point_wait_parked("page_cache_insert");
    if (!rig_lets_go_before_asking())
        sync_point_arm("fault_before_wait", reader.task);
    sync_point_release("page_cache_insert");
    if (!rig_lets_go_before_asking())
        sync_point_wait_parked("fault_before_wait");
    else
        gate_wait_held(rig.file->disk, 1);
    actor_start(&writer, &rig, act_munmap);
    bool is_free = actor_settle(&writer);
    sync_point_reset();
    finish(&rig, &reader);
    actor_join(&writer);
    /* The second attempt of `once` has kept it, where the first one had to wait for the failed read. */
    KEXPECT_EQ(is_free, !(rig_retry_is("once") && rig_lets_go_before_asking()));
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
