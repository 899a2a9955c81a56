/*
 * Races about one file page.
 */
#include "tests/kernel/fault_race.h"

#include "kernel/cpu/uaccess.h"
#include "kernel/sched/sync_point.h"

/* ---- Acts ---- */

void act_fault(struct actor *actor)
{
    struct task *task = task_current();
    actor->result = fault_user(actor->rig->mm, actor->addr, FAULT_READ, FAULT_FLAG_USER);
    task->pagefault_disabled++;
    actor->succeeded = uaccess_copy_in(&actor->value, actor->addr, sizeof(u64)) == 0;
    task->pagefault_disabled--;
}

void act_protect(struct actor *actor)
{
    actor->result =
        mm_mprotect(actor->rig->mm, RIG_BASE, actor->rig->n_pages * PAGE_SIZE, PROT_NONE);
}

static void map_over(struct actor *actor, u32 flags, struct mapped_file *file, u64 offset)
{
    s64 addr = mm_mmap(actor->rig->mm, rig_addr(RACE_PAGE), PAGE_SIZE, PROT_READ, flags | MAP_FIXED,
                       file, offset);
    actor->result = addr == (s64)rig_addr(RACE_PAGE) ? 0 : addr;
}

void act_map_anonymous(struct actor *actor)
{
    map_over(actor, MAP_PRIVATE | MAP_ANONYMOUS, NULL, 0);
}

void act_map_file_page(struct actor *actor)
{
    map_over(actor, MAP_SHARED, &actor->rig->file->mapped, actor->argument * PAGE_SIZE);
}

void act_truncate_and_back(struct actor *actor)
{
    gated_file_truncate(actor->rig->file, actor->argument);
    gated_file_truncate(actor->rig->file, actor->rig->n_pages * PAGE_SIZE);
}

static int read_in(struct gated_file *file, pgoff_t index)
{
    struct page *page;
    int error = page_cache_get_page(&file->cache, index, false, &page);
    if (!error)
        page_put(page);
    return error;
}

void act_read_in(struct actor *actor)
{
    actor->result = read_in(actor->rig->file, actor->argument);
}

/* ---- What the policy says ---- */

static bool changes_area(const struct race *race)
{
    return race->change == RACE_OF_AREA;
}

/* With fault_drop=wait, only who must wait lets go. */
static u64 expected_retries(const struct race *race)
{
    u64 chances = rig_lets_go_before_asking() ? race->asks : race->reads;
    if (rig_retry_is("hold"))
        return 0;
    if (rig_takes_back())
        return changes_area(race) ? 1 : 0;
    return rig_retry_is("once") ? MIN(chances, 1ul) : chances;
}

static bool keeps_lock_across_io(const struct race *race)
{
    return (rig_retry_is("hold") && race->reads > 0) || (rig_retry_is("once") && race->reads > 1);
}

/* ---- The steps ---- */

bool race_begin(struct fault_rig *rig, struct actor *reader)
{
    if (!KEXPECT(rig_init(rig, RACE_PAGES, PROT_READ, MAP_SHARED)))
        return false;
    read_in(rig->file, RACE_CACHED);
    gated_file_hold(rig->file, RACE_PAGE, RACE_PAGE);
    reader->addr = rig_addr(RACE_PAGE);
    actor_start(reader, rig, act_fault);
    gate_wait_held(rig->file->disk, 1);
    return KEXPECT(!actor_settle(reader)) && KEXPECT(actor_waits_for(reader, "page 5"));
}

void race_deliver(struct fault_rig *rig, struct actor *reader)
{
    sync_point_arm("fault_after_wait", reader->task);
    gate_open(rig->file->disk);
    sync_point_wait_parked("fault_after_wait");
}

void race_go_on(const struct race *race, struct fault_rig *rig, struct actor *reader)
{
    if (race->reads > 1)
        gated_file_hold(rig->file, RACE_PAGE, RACE_PAGE);
    sync_point_reset();
    if (race->reads > 1) {
        gate_wait_held(rig->file->disk, 1);
        actor_settle(reader);
        gate_open(rig->file->disk);
    }
    actor_join(reader);
}

void race_expect(const struct race *race, const struct fault_rig *rig, const struct actor *reader)
{
    const struct task_fault_counters *c = &reader->faults;
    KEXPECT_EQ(reader->result, race->end.result);
    KEXPECT_EQ(c->started, 1);
    KEXPECT_EQ(c->major, race->end.result == FAULT_DONE && race->end.is_major);
    KEXPECT_EQ(c->minor, race->end.result == FAULT_DONE && !race->end.is_major);
    KEXPECT_EQ(c->retries, expected_retries(race));
    KEXPECT_EQ(c->lock_across_io, keeps_lock_across_io(race));
    KEXPECT_EQ(c->retry_misses, rig_retry_is("hold") ? 0 : race->misses);
    KEXPECT_EQ(gated_file_requests(rig->file), 1 + race->reads); /* RACE_CACHED, and ours */
    KEXPECT(counters_add_up(c));
}

void race_expect_bytes(const struct race *race, const struct actor *reader)
{
    KEXPECT_EQ(reader->succeeded, race->end.result == FAULT_DONE);
    KEXPECT_EQ(reader->value, race->end.value);
}

/*
 * Is the fault's lock in his way? With hold he waits for it, and so for the disk, and the fault ends as if he had never
 * come. (Its bytes may be gone before they can be looked at.)
 */
static void change_area(const struct race *race, struct fault_rig *rig, struct actor *reader,
                        struct actor *other)
{
    static const struct race_end not_disturbed = {FAULT_DONE, .is_major = true};
    struct race seen = *race;
    bool waits = rig_retry_is("hold");

    KEXPECT_EQ(actor_settle(other), !waits);
    KEXPECT_EQ(gate_held(rig->file->disk), 1);
    if (waits) {
        KEXPECT(actor_waits_for(other, rig_lock_kept_by_faults()));
        seen.end = not_disturbed;
    }
    race_deliver(rig, reader);
    KEXPECT_EQ(actor_settle(other), !waits);
    race_go_on(race, rig, reader);
    actor_join(other);
    KEXPECT_EQ(other->result, 0);
    race_expect(&seen, rig, reader);
    if (!waits)
        race_expect_bytes(race, reader);
}

/* The page is locked by its read. It is handed to him who wants it before the fault, which only waits for it, looks again. */
static void change_page(const struct race *race, struct fault_rig *rig, struct actor *reader,
                        struct actor *other)
{
    KEXPECT(!actor_settle(other));
    KEXPECT(actor_waits_for(other, "page 5"));
    race_deliver(rig, reader);
    actor_join(other);
    race_go_on(race, rig, reader);
    race_expect(race, rig, reader);
    race_expect_bytes(race, reader);
}

/*
 * With fault_drop=submit the lock is free before the disk knows of the fault, too. What happens to the area then has the same
 * outcome: the page is asked for and waited for all the same, and the restart finds what is there.
 */
static void change_area_before_asking(const struct race *race)
{
    struct fault_rig rig;
    struct actor reader = {.addr = rig_addr(RACE_PAGE)}, other = {.argument = race->argument};
    if (!KEXPECT(rig_init(&rig, RACE_PAGES, PROT_READ, MAP_SHARED)))
        return;
    read_in(rig.file, RACE_CACHED);
    gated_file_hold(rig.file, RACE_PAGE, RACE_PAGE);
    sync_point_arm("fault_lock_dropped", NULL);
    actor_start(&reader, &rig, act_fault);
    KEXPECT(sync_point_wait_parked("fault_lock_dropped") == reader.task);
    actor_start(&other, &rig, race->act);
    actor_join(&other);
    KEXPECT_EQ(other.result, 0);
    KEXPECT_EQ(gated_file_requests(rig.file), 1); /* RACE_CACHED */
    sync_point_release("fault_lock_dropped");
    gate_wait_held(rig.file->disk, 1);
    actor_settle(&reader);
    gate_open(rig.file->disk);
    actor_join(&reader);
    race_expect(race, &rig, &reader);
    race_expect_bytes(race, &reader);
    rig_end(&rig);
}

void race_run(const struct race *race)
{
    struct fault_rig rig;
    struct actor reader = {0}, other = {.argument = race->argument};
    if (race_begin(&rig, &reader)) {
        actor_start(&other, &rig, race->act);
        (changes_area(race) ? change_area : change_page)(race, &rig, &reader, &other);
    }
    rig_end(&rig);
    if (changes_area(race) && rig_lets_go_before_asking() && !rig_retry_is("hold"))
        change_area_before_asking(race);
}
