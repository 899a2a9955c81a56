/*
 * The stage for tests of faults: an address space with a gated file mapped in it, and threads that touch it, unmap it, change the
 * file. A test arranges who waits for what by the I/O gate and by sync points, and asserts on who could go on.
 */
#ifndef TESTS_KERNEL_FAULT_RIG_H
#define TESTS_KERNEL_FAULT_RIG_H

#include "mm/account.h"
#include "mm/mmap.h"
#include "tests/kernel/gated_file.h"
#include "tests/kernel/ktest.h"

#define RIG_BASE 0x10000000ul

struct fault_rig {
    struct mm *mm;
    struct gated_file *file;
    u64 n_pages;
};

/*
 * Tests that run several times, under policies that rig_init sets: FAULT_TEST once for each value of vm.fault_lock, _OF_EACH_POLICY
 * for a choice of fault_lock, fault_retry and fault_drop, without `hold`, _OF_EACH_COMBINATION for all 32 of these three and
 * fault_pin. Where one fails, a note says under which.
 */
#define FAULT_TEST_BY(suite_, name_, run_each) \
    static void suite_##_##name_##_once(void); \
    KTEST(suite_, name_)                       \
    {                                          \
        run_each(suite_##_##name_##_once);     \
    }                                          \
    static void suite_##_##name_##_once(void)
#define FAULT_TEST(suite_, name_)                FAULT_TEST_BY(suite_, name_, rig_for_each_lock)
#define FAULT_TEST_OF_EACH_POLICY(suite_, name_) FAULT_TEST_BY(suite_, name_, rig_for_each_policy)

#define FAULT_TEST_OF_EACH_COMBINATION(suite_, name_) \
    FAULT_TEST_BY(suite_, name_, rig_for_each_combination)

void rig_for_each_lock(void (*test)(void));
void rig_for_each_policy(void (*test)(void));
void rig_for_each_combination(void (*test)(void));
/* The value rig_init sets; outside of such a test the default. */
const char *rig_fault_lock(void);
bool rig_retry_is(const char *name);
bool rig_pins(void);
/* Does a fault that has waited take its lock again, and go on without a restart where nothing has changed? */
bool rig_takes_back(void);
bool rig_lets_go_before_asking(void); /* fault_drop=submit */
/* What somebody who wants to change an area waits for, while a fault in it keeps its lock: part of the reason of his wait. */
const char *rig_lock_kept_by_faults(void);

/* A file of n_pages mapped whole at RIG_BASE with prot and MAP_SHARED or MAP_PRIVATE. Knobs at their defaults but for those of the policy, readahead=none. => false: out of memory */
bool rig_init(struct fault_rig *rig, u64 n_pages, u32 prot, u32 share);
void rig_end(
    struct fault_rig *rig); /* and knobs back to their defaults, or as the command line has them */

static inline u64 rig_addr(pgoff_t page)
{
    return RIG_BASE + page * PAGE_SIZE;
}

/* A thread in the rig's address space. */
struct actor {
    struct fault_rig *rig;
    void (*act)(struct actor *actor);
    u64 addr;
    bool write;
    u64 argument;
    struct task *task;
    /* Afterwards: */
    bool succeeded; /* the access did not end in the fixup */
    u64 value;      /* read, or 0 */
    s64 result;     /* of calls */
    struct task_fault_counters faults;
};

void actor_start(struct actor *actor, struct fault_rig *rig, void (*act)(struct actor *actor));
/* The same on one CPU, which it never leaves. */
void actor_start_on(struct actor *actor, struct fault_rig *rig, void (*act)(struct actor *actor),
                    int cpu);
/* Sleeps until the actor has ended or sleeps in a wait of its own. => true: it has ended */
bool actor_settle(struct actor *actor);
void actor_join(struct actor *actor);
/* Where a settled actor sleeps: does its reason contain the text? */
bool actor_waits_for(struct actor *actor, const char *text);

/* Ready-made acts. */
void act_touch(struct actor *actor);  /* reads (or, write: stores `argument` in) the u64 at addr */
void act_munmap(struct actor *actor); /* the whole mapping; result */
void act_truncate(struct actor *actor); /* the file to `argument` bytes */
void act_punch(struct actor *actor);    /* page `argument` */
void act_write(struct actor *actor);    /* page `argument`, version 1 */

/* Starts a touch of the page and sleeps until its read is held by the gate and the thread waits for it. */
void rig_touch_held(struct fault_rig *rig, struct actor *actor, pgoff_t page);
/* The same, then lets the disk deliver: a touch that certainly sleeps for its data. => its counters */
struct task_fault_counters rig_touch_slow(struct fault_rig *rig, pgoff_t page, u64 *value);
struct task_fault_counters rig_store_slow(struct fault_rig *rig, pgoff_t page, u64 value);
/* Touches the page to the end in a thread. => its counters */
struct task_fault_counters rig_touch(struct fault_rig *rig, pgoff_t page, u64 *value);
struct task_fault_counters rig_store(struct fault_rig *rig, pgoff_t page, u64 value);
bool rig_is_mapped(struct fault_rig *rig, pgoff_t page); /* a present page-table entry */

/* Identities of FAULTS.md section 3. */
bool counters_add_up(const struct task_fault_counters *c);

#endif
