/*
 * Threads that fault, arranged.
 */
#include "tests/kernel/fault_rig.h"

#include "kernel/cmdline.h"
#include "kernel/cpu/clock.h"
#include "kernel/cpu/uaccess.h"
#include "kernel/log/log.h"
#include "kernel/sched/sync_point.h"
#include "lib/string.h"
#include "mm/core/tlb.h"
#include "mm/knobs.h"
#include "tests/kernel/threads.h"

#define SETTLE_STEP_NS 50000ul

struct policy {
    const char *lock, *retry, *drop, *pin;
};

static const struct policy policies[] = {
    {"vma", "once", "submit", "1"},  /* the defaults */
    {"mmap", "once", "submit", "1"}, /* up to here: FAULT_TEST */
    {"vma", "once", "wait", "1"},       {"vma", "many", "submit", "1"},
    {"mmap", "many", "wait", "1"},      {"vma", "recheck", "wait", "1"},
    {"mmap", "recheck", "submit", "1"}, {"mmap", "recheck", "wait", "1"},
};
#define POLICIES_OF_LOCK 2

static const struct policy *policy = &policies[0];

/* => whether the test passed under the policy */
static bool run_under(const struct policy *p, void (*test)(void))
{
    policy = p;
    test();
    if (ktest_has_failed())
        ktest_note("with fault_lock=%s fault_retry=%s fault_drop=%s fault_pin=%s", p->lock,
                   p->retry, p->drop, p->pin);
    policy = &policies[0];
    return !ktest_has_failed();
}

static void run_under_first(unsigned n, void (*test)(void))
{
    for (unsigned i = 0; i < n && run_under(&policies[i], test); i++) {
    }
}

void rig_for_each_lock(void (*test)(void))
{
    run_under_first(POLICIES_OF_LOCK, test);
}

void rig_for_each_policy(void (*test)(void))
{
    run_under_first(ARRAY_SIZE(policies), test);
}

void rig_for_each_combination(void (*test)(void))
{
    static const char *const locks[] = {"vma", "mmap"}, *const drops[] = {"submit", "wait"};
    static const char *const retries[] = {"hold", "once", "many", "recheck"};
    static const char *const pins[] = {"1", "0"};
    const unsigned n = 2 * 4 * 2 * 2;

    for (unsigned i = 0; i < n; i++) {
        struct policy p = {locks[i % 2], retries[i / 2 % 4], drops[i / 8 % 2], pins[i / 16]};
        if (!run_under(&p, test))
            return;
    }
}

const char *rig_fault_lock(void)
{
    return policy->lock;
}

const char *rig_lock_kept_by_faults(void)
{
    return strcmp(policy->lock, "vma") == 0 ? "vma lock" : "mmap_lock";
}

bool rig_retry_is(const char *name)
{
    return strcmp(policy->retry, name) == 0;
}

bool rig_takes_back(void)
{
    return strcmp(policy->lock, "mmap") == 0 && rig_retry_is("recheck");
}

bool rig_lets_go_before_asking(void)
{
    return strcmp(policy->drop, "submit") == 0;
}

bool rig_pins(void)
{
    return strcmp(policy->pin, "1") == 0;
}

static void set_policy(const struct policy *p)
{
    knob_set("fault_lock", p->lock);
    knob_set("fault_retry", p->retry);
    knob_set("fault_drop", p->drop);
    knob_set("fault_pin", p->pin);
}

static void default_knobs(void)
{
    set_policy(&policies[0]);
    knob_set("readahead", "ondemand");
    knob_set("map_around_bytes", "65536");
    knob_set("account", "faultline");
}

bool rig_init(struct fault_rig *rig, u64 n_pages, u32 prot, u32 share)
{
    *rig = (struct fault_rig){.n_pages = n_pages};
    default_knobs();
    set_policy(policy);
    knob_set("readahead", "none");
    knob_set("map_around_bytes", "4096");
    rig->mm = mm_create();
    rig->file = gated_file_create(n_pages);
    if (!rig->mm || !rig->file)
        return false;
    s64 addr = mm_mmap(rig->mm, RIG_BASE, n_pages * PAGE_SIZE, prot, share | MAP_FIXED,
                       &rig->file->mapped, 0);
    return addr == (s64)RIG_BASE;
}

void rig_end(struct fault_rig *rig)
{
    sync_point_reset();
    gate_open(rig->file->disk);
    mm_put(rig->mm);
    gated_file_destroy(rig->file);
    default_knobs();
    cmdline_apply_knobs();
}

static void enter(struct mm *mm)
{
    struct task *task = task_current();
    bool irqs = irq_save_disable();
    task->mm = mm;
    task->space = mm ? &mm->space : NULL;
    tlb_switch_space(task->space);
    irq_restore(irqs);
}

static void actor_main(void *arg)
{
    struct actor *actor = arg;
    enter(actor->rig->mm);
    actor->act(actor);
    enter(NULL);
    mm_put(actor->rig->mm);
    actor->faults = task_current()->faults;
}

void actor_start_on(struct actor *actor, struct fault_rig *rig, void (*act)(struct actor *actor),
                    int cpu)
{
    actor->rig = rig;
    actor->act = act;
    mm_get(rig->mm);
    actor->task = task_create("actor", actor_main, actor, cpu);
    ASSERT(actor->task);
}

void actor_start(struct actor *actor, struct fault_rig *rig, void (*act)(struct actor *actor))
{
    actor_start_on(actor, rig, act, -1);
}

static bool has_ended(struct actor *actor)
{
    return READ_ONCE(actor->task->has_exited);
}

bool actor_settle(struct actor *actor)
{
    while (!has_ended(actor) &&
           !(READ_ONCE(actor->task->state) == TASK_SLEEPING && !READ_ONCE(actor->task->on_cpu) &&
             READ_ONCE(actor->task->wait_reason)))
        sleep_until_ns(clock_ns() + SETTLE_STEP_NS);
    return has_ended(actor);
}

bool actor_waits_for(struct actor *actor, const char *text)
{
    char reason[96];
    threads_wait_reason(actor->task, reason, sizeof(reason));
    return strstr(reason, text) != NULL;
}

void actor_join(struct actor *actor)
{
    task_join(actor->task);
}

/*
 * One access of one byte, then the rest with faults disabled: a longer copy that fails tries its last word again byte by
 * byte, and that is an access of its own. (A locked instruction would not do for a store: QEMU loads first under icount.)
 */
void act_touch(struct actor *actor)
{
    struct task *task = task_current();
    bool error = actor->write ? uaccess_copy_out(actor->addr, &actor->argument, 1) != 0
                              : uaccess_touch_read(actor->addr) != 0;
    actor->succeeded = !error;
    task->pagefault_disabled++;
    if (!error && actor->write)
        actor->succeeded = uaccess_copy_out(actor->addr, &actor->argument, sizeof(u64)) == 0;
    else if (!error)
        actor->succeeded = uaccess_copy_in(&actor->value, actor->addr, sizeof(u64)) == 0;
    task->pagefault_disabled--;
}

void act_munmap(struct actor *actor)
{
    actor->result = mm_munmap(actor->rig->mm, RIG_BASE, actor->rig->n_pages * PAGE_SIZE);
}

void act_truncate(struct actor *actor)
{
    gated_file_truncate(actor->rig->file, actor->argument);
}

void act_punch(struct actor *actor)
{
    gated_file_punch(actor->rig->file, actor->argument, actor->argument);
}

void act_write(struct actor *actor)
{
    gated_file_write(actor->rig->file, actor->argument, 1);
}

void rig_touch_held(struct fault_rig *rig, struct actor *actor, pgoff_t page)
{
    unsigned held = gate_held(rig->file->disk);
    gated_file_hold(rig->file, page, page);
    actor->addr = rig_addr(page);
    actor_start(actor, rig, act_touch);
    gate_wait_held(rig->file->disk, held + 1);
    actor_settle(actor);
}

static struct actor touch_to_the_end(struct fault_rig *rig, pgoff_t page, bool write, u64 value)
{
    struct actor actor = {.addr = rig_addr(page), .write = write, .argument = value};
    actor_start(&actor, rig, act_touch);
    actor_join(&actor);
    return actor;
}

static struct actor touch_slowly(struct fault_rig *rig, pgoff_t page, bool write, u64 value)
{
    struct actor actor = {.addr = rig_addr(page), .write = write, .argument = value};
    gate_hold(rig->file->disk, gated_file_sector(page), gated_file_sector(page + 1) - 1, 1);
    actor_start(&actor, rig, act_touch);
    gate_wait_held(rig->file->disk, 1);
    actor_settle(&actor);
    gate_release_all(rig->file->disk);
    actor_join(&actor);
    return actor;
}

struct task_fault_counters rig_touch_slow(struct fault_rig *rig, pgoff_t page, u64 *value)
{
    struct actor actor = touch_slowly(rig, page, false, 0);
    if (value)
        *value = actor.value;
    return actor.faults;
}

struct task_fault_counters rig_store_slow(struct fault_rig *rig, pgoff_t page, u64 value)
{
    return touch_slowly(rig, page, true, value).faults;
}

struct task_fault_counters rig_touch(struct fault_rig *rig, pgoff_t page, u64 *value)
{
    struct actor actor = touch_to_the_end(rig, page, false, 0);
    if (value)
        *value = actor.value;
    return actor.faults;
}

struct task_fault_counters rig_store(struct fault_rig *rig, pgoff_t page, u64 value)
{
    return touch_to_the_end(rig, page, true, value).faults;
}

bool rig_is_mapped(struct fault_rig *rig, pgoff_t page)
{
    pt_lock(&rig->mm->space);
    pte_t *ptep = pt_find(&rig->mm->space, rig_addr(page));
    bool mapped = ptep && pte_is_present(*ptep);
    pt_unlock(&rig->mm->space);
    return mapped;
}

bool counters_add_up(const struct task_fault_counters *c)
{
    return c->started == c->major + c->minor + c->sigbus + c->sigsegv + c->oom + c->killed &&
           c->attempts == c->started + c->retries;
}
