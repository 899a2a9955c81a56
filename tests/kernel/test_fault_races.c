/*
 * What may change while the lock is free (FAULTS.md section 2): each row of that table is a test here, with a fixed order, under
 * every combination of fault_retry, fault_lock, fault_drop and fault_pin. First the rows that change the area, then those that
 * change the page or the file, then those that need an arrangement of their own.
 */
#include "kernel/sched/sync_point.h"
#include "tests/kernel/fault_race.h"

#define BYTES(page, version) .end = {FAULT_DONE, GATED_FILE_WORD(page, version), .is_major = true}
#define ZEROS                .end = {FAULT_DONE, 0, .is_major = true}
#define FAILS(result)        .end = {result}

/* Whatever becomes of the file meanwhile: what it sleeps for is this page, and no other one in the same frame. */
FAULT_TEST_OF_EACH_COMBINATION(fault_races, awaited_page_is_referenced)
{
    struct fault_rig rig;
    struct actor reader = {0};
    if (race_begin(&rig, &reader)) {
        struct page *page = page_cache_find(&rig.file->cache, RACE_PAGE);
        KEXPECT_EQ(page->refs, 3); /* the cache's, the fault's, ours */
        page_put(page);
        gate_open(rig.file->disk);
        actor_join(&reader);
        KEXPECT_EQ(reader.value, GATED_FILE_WORD(RACE_PAGE, 0));
    }
    rig_end(&rig);
}

/* ---- The area. With hold, the change waits for the disk, and the fault does not notice it. ---- */

FAULT_RACE(unmapped_is_maperr_and_munmap_returns_before_the_disk, .act = act_munmap,
           .change = RACE_OF_AREA, .asks = 1, .reads = 1, FAILS(FAULT_SIGSEGV_MAPERR))

FAULT_RACE(protection_taken_away_is_accerr, .act = act_protect, .change = RACE_OF_AREA, .asks = 1,
           .reads = 1, FAILS(FAULT_SIGSEGV_ACCERR))

FAULT_RACE(anonymous_memory_put_there_is_zeros, .act = act_map_anonymous, .change = RACE_OF_AREA,
           .asks = 1, .reads = 1, ZEROS)

FAULT_RACE(other_file_page_put_there_is_its_bytes, .act = act_map_file_page,
           .argument = RACE_CACHED, .change = RACE_OF_AREA, .asks = 1, .reads = 1,
           BYTES(RACE_CACHED, 0))

/* ---- The page, and the file. The change waits for the page's read, and comes before the fault. ---- */

FAULT_RACE(truncated_below_is_sigbus, .act = act_truncate, .argument = 2 * PAGE_SIZE,
           .change = RACE_OF_PAGE, .asks = 1, .reads = 1, FAILS(FAULT_SIGBUS_ADRERR))

FAULT_RACE(truncated_and_extended_is_read_again_in_one_fault, .act = act_truncate_and_back,
           .argument = 2 * PAGE_SIZE, .change = RACE_OF_PAGE, .asks = 2, .reads = 2, .misses = 1,
           BYTES(RACE_PAGE, 0))

FAULT_RACE(punched_is_zeros_and_the_punch_waits_for_the_page, .act = act_punch,
           .argument = RACE_PAGE, .change = RACE_OF_PAGE, .asks = 2, .reads = 1, .misses = 1, ZEROS)

FAULT_RACE(overwritten_is_the_new_bytes_and_the_write_waits_for_the_page, .act = act_write,
           .argument = RACE_PAGE, .change = RACE_OF_PAGE, .asks = 1, .reads = 1,
           BYTES(RACE_PAGE, 1))

/* ---- Arrangements of their own ---- */

/* Once the wait is over, and before the page is looked up again. A fault that pins it, or has kept its lock, keeps the page. */
FAULT_TEST_OF_EACH_COMBINATION(fault_races, dropped_from_the_cache_is_read_again_in_one_fault)
{
    struct fault_rig rig;
    struct actor reader = {0};
    bool keeps_lock = rig_retry_is("hold"), is_dropped = !keeps_lock && !rig_pins();
    const char *lookup = keeps_lock || rig_takes_back() ? "fault_before_lookup" : "fault_retry";
    const struct race race = {.change = RACE_OF_PAGE,
                              .asks = 1 + is_dropped,
                              .reads = 1 + is_dropped,
                              .misses = is_dropped,
                              BYTES(RACE_PAGE, 0)};
    if (race_begin(&rig, &reader)) {
        race_deliver(&rig, &reader);
        sync_point_arm(lookup, reader.task);
        sync_point_release("fault_after_wait");
        sync_point_wait_parked(lookup);
        KEXPECT_EQ(page_cache_drop_range(&rig.file->cache, RACE_PAGE, RACE_PAGE), is_dropped);
        race_go_on(&race, &rig, &reader);
        race_expect(&race, &rig, &reader);
        race_expect_bytes(&race, &reader);
    }
    rig_end(&rig);
}

/* It has found nothing and is about to put a page there; somebody else's is there first, and read. */
FAULT_TEST_OF_EACH_COMBINATION(fault_races, read_in_by_another_is_mapped_without_a_request)
{
    struct fault_rig rig;
    struct actor reader = {.addr = rig_addr(RACE_PAGE)}, other = {.argument = RACE_PAGE};
    const struct race race = {
        .change = RACE_OF_PAGE, .asks = 1, .end = {FAULT_DONE, GATED_FILE_WORD(RACE_PAGE, 0)}};
    KASSERT(rig_init(&rig, RACE_PAGES, PROT_READ, MAP_SHARED));
    sync_point_arm("page_cache_insert", NULL);
    actor_start(&reader, &rig, act_fault);
    KEXPECT(sync_point_wait_parked("page_cache_insert") == reader.task);
    actor_start(&other, &rig, act_read_in);
    actor_join(&other);
    KEXPECT_EQ(other.result, 0);
    race_go_on(&race, &rig, &reader);
    race_expect(&race, &rig, &reader); /* the one request is the other's */
    race_expect_bytes(&race, &reader);
    KEXPECT_EQ(reader.faults.waits, 0);
    KEXPECT_EQ(reader.faults.reason[FAULT_REASON_CACHE], 1);
    rig_end(&rig);
}

/* Between its look at the size and the request. */
FAULT_TEST_OF_EACH_COMBINATION(fault_races, truncated_before_it_asks_is_sigbus_without_a_request)
{
    struct fault_rig rig;
    struct actor reader = {.addr = rig_addr(RACE_PAGE)};
    KASSERT(rig_init(&rig, RACE_PAGES, PROT_READ, MAP_SHARED));
    sync_point_arm("fault_before_lookup", NULL);
    actor_start(&reader, &rig, act_fault);
    sync_point_wait_parked("fault_before_lookup");
    gated_file_truncate(rig.file, 2 * PAGE_SIZE);
    sync_point_release("fault_before_lookup");
    actor_join(&reader);
    KEXPECT_EQ(reader.result, FAULT_SIGBUS_ADRERR);
    KEXPECT_EQ(reader.faults.sigbus, 1);
    KEXPECT_EQ(gated_file_requests(rig.file), 0);
    KEXPECT_EQ(rig.file->cache.n_pages, 0);
    rig_end(&rig);
}

/* It has found its page and waits for the page's lock; whoever gets that first takes the page away. */
FAULT_TEST_OF_EACH_COMBINATION(fault_races, punched_before_it_has_the_page_lock_is_zeros)
{
    struct fault_rig rig;
    struct actor reader = {.addr = rig_addr(RACE_PAGE)}, other = {.argument = RACE_PAGE};
    struct page *page;
    KASSERT(rig_init(&rig, RACE_PAGES, PROT_READ, MAP_SHARED));
    KASSERT_EQ(page_cache_get_page(&rig.file->cache, RACE_PAGE, false, &page), 0);
    page_lock(page);
    actor_start(&other, &rig, act_punch);
    KEXPECT(!actor_settle(&other));
    actor_start(&reader, &rig, act_fault);
    KEXPECT(!actor_settle(&reader));
    KEXPECT(actor_waits_for(&other, "page 5") && actor_waits_for(&reader, "page 5"));
    page_unlock(page);
    page_put(page);
    actor_join(&other);
    actor_join(&reader);
    KEXPECT_EQ(reader.result, FAULT_DONE);
    KEXPECT(reader.succeeded);
    KEXPECT_EQ(reader.value, 0);
    KEXPECT_EQ(reader.faults.minor, 1);
    rig_end(&rig);
}

/* The disk delivers after the fault has seen the page locked, and before it is in the queue of those who wait for it. */
FAULT_TEST_OF_EACH_COMBINATION(fault_races, delivered_before_it_is_queued_is_not_slept_for)
{
    struct fault_rig rig;
    struct actor reader = {.addr = rig_addr(RACE_PAGE)};
    KASSERT(rig_init(&rig, RACE_PAGES, PROT_READ, MAP_SHARED));
    gated_file_hold(rig.file, RACE_PAGE, RACE_PAGE);
    sync_point_arm("page_wait_begins", NULL);
    actor_start(&reader, &rig, act_fault);
    KEXPECT(sync_point_wait_parked("page_wait_begins") == reader.task);
    gate_open(rig.file->disk);
    sync_point_release("page_wait_begins");
    bool has_ended = KEXPECT(actor_settle(&reader));
    struct page *page = page_cache_find(&rig.file->cache, RACE_PAGE);
    if (!has_ended && KEXPECT(page)) { /* wake it, so that the next test can begin */
        page_lock(page);
        page_unlock(page);
    }
    actor_join(&reader);
    KEXPECT_EQ(reader.result, FAULT_DONE);
    KEXPECT_EQ(reader.value, GATED_FILE_WORD(RACE_PAGE, 0));
    if (page)
        page_put(page);
    rig_end(&rig);
}

FAULT_TEST_OF_EACH_COMBINATION(fault_races, entry_filled_by_another_is_kept)
{
    struct fault_rig rig;
    struct actor reader = {0};
    const struct race race = {.change = RACE_OF_PAGE, .asks = 1, .reads = 1, BYTES(RACE_PAGE, 0)};
    if (race_begin(&rig, &reader)) {
        race_deliver(&rig, &reader);
        struct task_fault_counters other = rig_touch(&rig, RACE_PAGE, NULL);
        KEXPECT_EQ(other.minor, 1); /* in the cache by now: no wait */
        race_go_on(&race, &rig, &reader);
        race_expect(&race, &rig, &reader);
        race_expect_bytes(&race, &reader);
        struct page *page = page_cache_find(&rig.file->cache, RACE_PAGE);
        KEXPECT_EQ(page->mapcount, 1);
        KEXPECT_EQ(page->refs, 3); /* the cache's, the entry's, ours */
        page_put(page);
    }
    rig_end(&rig);
}

FAULT_TEST_OF_EACH_COMBINATION(fault_races, killed_is_gone_before_the_disk)
{
    struct fault_rig rig;
    struct actor reader = {0};
    if (race_begin(&rig, &reader)) {
        task_kill(reader.task);
        actor_join(&reader);
        KEXPECT_EQ(gate_held(rig.file->disk), 1);
        KEXPECT_EQ(reader.result, FAULT_KILLED);
        KEXPECT_EQ(reader.faults.killed, 1);
        KEXPECT_EQ(reader.faults.started, 1);
        KEXPECT_EQ(reader.faults.retries, 0);
        KEXPECT(counters_add_up(&reader.faults));
        /* and has left no lock behind: */
        KEXPECT_EQ(mm_munmap(rig.mm, RIG_BASE, RACE_PAGES * PAGE_SIZE), 0);
    }
    rig_end(&rig);
}
