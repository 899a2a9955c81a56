/*
 * The rules of vm.account, each against the same arranged faults. Faultline's own counters, which
 * the knob does not change, are looked at beside them.
 */
#include "kernel/sched/sync_point.h"
#include "lib/string.h"
#include "mm/knobs.h"
#include "tests/kernel/fault_rig.h"

#define PAGES 16
#define PAGE  5

struct shown {
    s64 major, minor;
    u64 pgfault, pgmajfault;
};

static void expect_shown(const struct actor *actor, struct shown wanted)
{
    KEXPECT_EQ((s64)actor->faults.shown_major, wanted.major);
    KEXPECT_EQ((s64)actor->faults.shown_minor, wanted.minor);
    KEXPECT_EQ(actor->faults.shown_pgfault, wanted.pgfault);
    KEXPECT_EQ(actor->faults.shown_pgmajfault, wanted.pgmajfault);
}

static void expect_own(const struct actor *actor, u64 major, u64 minor)
{
    KEXPECT_EQ(actor->faults.major, major);
    KEXPECT_EQ(actor->faults.minor, minor);
    KEXPECT(counters_add_up(&actor->faults));
}

static const char *const rules[] = {"faultline", "linux-6.12", "linux-6.1", "linux-2009"};

/* Runs `arrange` once under each rule, in the order of `rules`. */
static void check_rules(void (*arrange)(struct fault_rig *rig, struct actor *reader),
                        const struct shown wanted[], u64 own_major, u64 own_minor)
{
    for (unsigned i = 0; i < ARRAY_SIZE(rules); i++) {
        struct fault_rig rig;
        struct actor reader = {0};

        KASSERT(rig_init(&rig, PAGES, PROT_READ, MAP_SHARED));
        KEXPECT_EQ(knob_set("account", rules[i]), 0);
        arrange(&rig, &reader);
        gate_open(rig.file->disk);
        actor_join(&reader);
        expect_shown(&reader, wanted[i]);
        expect_own(&reader, own_major, own_minor);
        rig_end(&rig);
    }
}

static void touch_cold(struct fault_rig *rig, struct actor *reader)
{
    rig_touch_held(rig, reader, PAGE);
}

KTEST(account, cold_page)
{
    static const struct shown wanted[] = {{1, 0, 1, 1}, {1, 0, 1, 1}, {1, 0, 2, 1}, {1, 0, 2, 1}};

    check_rules(touch_cold, wanted, 1, 0);
}

static void unmap_meanwhile(struct fault_rig *rig, struct actor *reader)
{
    struct actor writer = {0};

    rig_touch_held(rig, reader, PAGE);
    actor_start(&writer, rig, act_munmap);
    actor_join(&writer);
}

/* The repair of 2009 has taken a minor off that never comes back. */
KTEST(account, mapping_gone_on_the_retry)
{
    static const struct shown wanted[] = {{0, 0, 0, 0}, {0, 0, 0, 1}, {0, 0, 1, 1}, {1, -1, 1, 1}};

    check_rules(unmap_meanwhile, wanted, 0, 0);
}

/* The page is read in, dropped before the restart, and its second read waited for, too. */
static void wait_twice(struct fault_rig *rig, struct actor *reader)
{
    knob_set("fault_pin", "0");
    rig_touch_held(rig, reader, PAGE);
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
    KEXPECT(!actor_settle(reader));
}

KTEST(account, second_attempt_waits_too)
{
    static const struct shown wanted[] = {{1, 0, 1, 1}, {1, 0, 1, 2}, {1, 0, 2, 2}, {2, -1, 2, 2}};

    check_rules(wait_twice, wanted, 1, 0);
}

/* Another thread's read is waited for: the page is there at the first look. */
static void touch_what_another_reads(struct fault_rig *rig, struct actor *reader)
{
    static struct actor first;

    first = (struct actor){0};
    rig_touch_held(rig, &first, PAGE);
    reader->addr = rig_addr(PAGE);
    actor_start(reader, rig, act_touch);
    KEXPECT(!actor_settle(reader));
    gate_open(rig->file->disk);
    actor_join(&first);
}

KTEST(account, page_locked_by_anothers_read)
{
    static const struct shown wanted[] = {{1, 0, 1, 1}, {0, 1, 1, 0}, {1, 0, 2, 0}, {1, 0, 2, 0}};

    check_rules(touch_what_another_reads, wanted, 1, 0);
}

static void touch_cached(struct fault_rig *rig, struct actor *reader)
{
    struct page *page;

    KASSERT_EQ(page_cache_get_page(&rig->file->cache, PAGE, false, &page), 0);
    page_put(page);
    reader->addr = rig_addr(PAGE);
    actor_start(reader, rig, act_touch);
}

KTEST(account, cached_page_is_minor_by_every_rule)
{
    static const struct shown wanted[] = {{0, 1, 1, 0}, {0, 1, 1, 0}, {0, 1, 1, 0}, {0, 1, 1, 0}};

    check_rules(touch_cached, wanted, 0, 1);
}

static void touch_behind_the_end(struct fault_rig *rig, struct actor *reader)
{
    gated_file_truncate(rig->file, PAGE * PAGE_SIZE);
    reader->addr = rig_addr(PAGE);
    actor_start(reader, rig, act_touch);
}

/* Linux counts it in vmstat, and nowhere else. */
KTEST(account, sigbus_past_the_end)
{
    static const struct shown wanted[] = {{0, 0, 0, 0}, {0, 0, 1, 0}, {0, 0, 1, 0}, {0, 0, 1, 0}};

    check_rules(touch_behind_the_end, wanted, 0, 0);
}

KTEST(account, counters_are_not_converted_when_the_rule_changes)
{
    struct fault_rig rig;
    struct actor reader = {0};
    struct task_fault_counters before, after;

    KASSERT(rig_init(&rig, PAGES, PROT_READ, MAP_SHARED));
    knob_set("account", "linux-6.12");
    touch_cold(&rig, &reader);
    gate_open(rig.file->disk);
    actor_join(&reader);
    account_system(&before);
    knob_set("account", "linux-2009");
    account_system(&after);
    KEXPECT_EQ(after.shown_pgfault, before.shown_pgfault);
    KEXPECT_EQ(after.shown_major, before.shown_major);
    rig_end(&rig);
    KEXPECT_STREQ(account_rule_name(), "faultline");
}
