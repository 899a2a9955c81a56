/*
 * The page lock: who gets it when, who is woken by what, and what a kill does to those who wait.
 *
 * Each locker keeps the lock until the test lets it go, so that who holds it is never a matter of
 * time.
 */
#include "kernel/sched/sync_point.h"
#include "kernel/sched/wait.h"
#include "lib/hash.h"
#include "mm/core/frames.h"
#include "mm/page_lock.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/threads.h"

#define LOCKERS 4

static struct {
    struct wait_queue queue;
    struct page *page;
    u32 may_release; /* lockers with a smaller place may go on */
    u32 n_locked;
    u32 order[LOCKERS];
} stage;

struct locker {
    u32 id;
    bool killable;
    int error;
    bool slept;
};

static bool stage_begin(void)
{
    stage.page = frame_alloc(FRAME_ZERO);
    stage.may_release = stage.n_locked = 0;
    wait_queue_init(&stage.queue);
    return KEXPECT(stage.page != NULL);
}

static void stage_end(void)
{
    KEXPECT(!page_is_locked(stage.page));
    page_unset(stage.page, PAGE_WAITERS | PAGE_META);
    KEXPECT_EQ(stage.page->refs, 1);
    page_put(stage.page);
}

static void let_release(u32 n)
{
    WRITE_ONCE(stage.may_release, n);
    wait_wake_all(&stage.queue);
}

static void lock_and_keep(void *arg)
{
    struct locker *locker = arg;

    locker->error = locker->killable ? page_lock_killable(stage.page) : 0;
    if (!locker->killable)
        page_lock(stage.page);
    if (locker->error)
        return;
    u32 place = atomic_add(&stage.n_locked, 1) - 1;
    stage.order[place] = locker->id;
    WAIT_FOR(&stage.queue, READ_ONCE(stage.may_release) > place, "the test to go on", 0, 0);
    page_unlock(stage.page);
}

static void wait_only(void *arg)
{
    struct locker *waiter = arg;

    waiter->error = page_wait_unlocked(stage.page, &waiter->slept);
}

static void wait_until_locked_by(u32 n)
{
    while (READ_ONCE(stage.n_locked) < n)
        sched_yield();
}

KTEST(page_lock, is_handed_on_first_come_first_served)
{
    struct test_threads threads = {0};
    struct locker lockers[LOCKERS];

    KASSERT(stage_begin());
    page_lock(stage.page);
    for (u32 i = 0; i < LOCKERS; i++) {
        lockers[i] = (struct locker){.id = i, .killable = i % 2};
        threads_add_and_wait_asleep(&threads, lock_and_keep, &lockers[i]);
    }
    page_unlock(stage.page);
    /* It was never free: the first in line owns it whether it has run yet or not. */
    KEXPECT(!page_trylock(stage.page));
    let_release(LOCKERS);
    KEXPECT_EQ(threads_join(&threads), 0);
    for (u32 i = 0; i < LOCKERS; i++)
        KEXPECT_EQ(stage.order[i], i);
    stage_end();
}

KTEST(page_lock, one_unlock_wakes_all_who_only_wait_and_one_who_locks)
{
    struct test_threads lockers = {0}, waiters = {0};
    struct locker first = {0}, second = {.id = 1}, only[3] = {0};

    KASSERT(stage_begin());
    page_lock(stage.page);
    threads_add_and_wait_asleep(&waiters, wait_only, &only[0]);
    threads_add_and_wait_asleep(&lockers, lock_and_keep, &first);
    threads_add_and_wait_asleep(&waiters, wait_only, &only[1]);
    threads_add_and_wait_asleep(&lockers, lock_and_keep, &second);
    threads_add_and_wait_asleep(&waiters, wait_only, &only[2]);
    page_unlock(stage.page);
    KEXPECT_EQ(threads_join(&waiters), 0); /* while the first locker keeps the page locked */
    KEXPECT(page_is_locked(stage.page));
    wait_until_locked_by(1);
    KEXPECT_EQ(stage.n_locked, 1);
    KEXPECT_EQ(stage.order[0], 0);
    let_release(2);
    KEXPECT_EQ(threads_join(&lockers), 0);
    for (unsigned i = 0; i < 3; i++)
        KEXPECT(only[i].slept && only[i].error == 0);
    stage_end();
}

KTEST(page_lock, wait_for_a_free_page_does_not_sleep)
{
    bool slept = true;

    KASSERT(stage_begin());
    KEXPECT_EQ(page_wait_unlocked(stage.page, &slept), 0);
    KEXPECT(!slept);
    KEXPECT(!page_has(stage.page, PAGE_WAITERS));
    stage_end();
}

KTEST(page_lock, trylock_never_waits_and_never_queues)
{
    KASSERT(stage_begin());
    KASSERT(page_trylock(stage.page));
    KEXPECT(!page_trylock(stage.page));
    KEXPECT(!page_has(stage.page, PAGE_WAITERS));
    KEXPECT(lockorder_is_held(stage.page) || !LOCKORDER_IS_ON);
    page_unlock(stage.page);
    KEXPECT(page_trylock(stage.page));
    page_unlock(stage.page);
    stage_end();
}

KTEST(page_lock, killed_waiters_leave_without_it)
{
    struct test_threads threads = {0};
    struct locker killed = {.killable = true}, waiter = {0};

    KASSERT(stage_begin());
    page_lock(stage.page);
    struct task *locking = threads_add_and_wait_asleep(&threads, lock_and_keep, &killed);
    struct task *waiting = threads_add_and_wait_asleep(&threads, wait_only, &waiter);
    task_kill(locking);
    task_kill(waiting);
    KEXPECT_EQ(threads_join(&threads), 0); /* with the page still locked */
    KEXPECT_EQ(killed.error, -EINTR);
    KEXPECT_EQ(waiter.error, -EINTR);
    KEXPECT_EQ(stage.n_locked, 0);
    KEXPECT(page_is_locked(stage.page));
    page_unlock(stage.page);
    KEXPECT(!page_has(stage.page, PAGE_LOCKED | PAGE_WAITERS));
    stage_end();
}

KTEST(page_lock, killed_waiter_that_was_granted_it_passes_it_on)
{
    struct test_threads threads = {0};
    struct locker killed = {.killable = true}, next = {.id = 1};

    KASSERT(stage_begin());
    page_lock(stage.page);
    struct task *task = threads_add_and_wait_asleep(&threads, lock_and_keep, &killed);
    threads_add_and_wait_asleep(&threads, lock_and_keep, &next);
    sync_point_arm("page_lock_killed", task);
    task_kill(task);
    sync_point_wait_parked("page_lock_killed"); /* it has given up, and is still first in line */
    page_unlock(stage.page);
    KEXPECT_EQ(stage.n_locked, 0);
    KEXPECT(page_is_locked(stage.page));
    sync_point_release("page_lock_killed");
    let_release(1);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(killed.error, -EINTR);
    KEXPECT_EQ(stage.n_locked, 1);
    KEXPECT_EQ(stage.order[0], 1);
    sync_point_reset();
    stage_end();
}

KTEST(page_lock, kill_of_an_unkillable_waiter_changes_nothing)
{
    struct test_threads threads = {0};
    struct locker locker = {0};

    KASSERT(stage_begin());
    page_lock(stage.page);
    struct task *task = threads_add_and_wait_asleep(&threads, lock_and_keep, &locker);
    task_kill(task);
    threads_wait_asleep(task);
    KEXPECT_EQ(stage.n_locked, 0);
    let_release(1);
    page_unlock(stage.page);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(stage.n_locked, 1);
    stage_end();
}

KTEST(page_lock, a_read_ends_the_lock_that_it_was_given)
{
    struct test_threads threads = {0};
    struct locker locker = {0};

    KASSERT(stage_begin());
    page_lock(stage.page);
    page_lock_give_to_io(stage.page);
    KEXPECT(page_is_locked(stage.page));
    KEXPECT(!LOCKORDER_IS_ON || !lockorder_is_held(stage.page)); /* no task's any more */
    threads_add_and_wait_asleep(&threads, lock_and_keep, &locker);
    bool irqs = irq_save_disable();
    page_unlock_io(stage.page);
    irq_restore(irqs);
    KEXPECT(!page_trylock(stage.page));
    let_release(1);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(stage.n_locked, 1);
    stage_end();
}

#define PAGE_WAIT_QUEUES 256 /* as in mm/page_lock.c */
#define SEARCHED         64

static u64 queue_number(const struct page *page)
{
    return mix64(page_pfn(page)) % PAGE_WAIT_QUEUES;
}

/* => a frame whose waiters share the queue of stage.page, or NULL */
static struct page *find_neighbour(void)
{
    struct page *tried[SEARCHED], *found = NULL;
    unsigned n = 0;

    while (n < SEARCHED && !found && (tried[n] = frame_alloc(FRAME_ZERO)) != NULL) {
        if (queue_number(tried[n]) == queue_number(stage.page))
            found = tried[n];
        else
            n++;
    }
    while (n > 0)
        page_put(tried[--n]);
    return found;
}

KTEST(page_lock, pages_that_share_a_queue_do_not_wake_each_other)
{
    struct test_threads threads = {0};
    struct locker waiter = {0};
    struct page *other = NULL, *tried[SEARCHED];
    unsigned n = 0;

    while (n < SEARCHED && !other) {
        KASSERT(stage_begin());
        tried[n++] = stage.page;
        other = find_neighbour();
    }
    if (other) {
        page_lock(stage.page);
        KEXPECT(page_trylock(other));
        struct task *task = threads_add_and_wait_asleep(&threads, wait_only, &waiter);
        page_unlock(other);
        KEXPECT_EQ(READ_ONCE(task->state), TASK_SLEEPING);
        page_unlock(stage.page);
        KEXPECT_EQ(threads_join(&threads), 0);
        KEXPECT(waiter.slept);
        page_unset(stage.page, PAGE_WAITERS);
        page_put(other);
    } else {
        ktest_skip("no two frames whose waiters share a queue");
    }
    while (n > 0)
        page_put(tried[--n]);
}

KTEST(page_lock, metadata_is_a_class_inside_the_files)
{
    struct page *meta;

    if (!LOCKORDER_IS_ON)
        KTEST_SKIP("only debug kernels check the order of locks");
    KASSERT(stage_begin());
    meta = frame_alloc(FRAME_ZERO);
    KASSERT(meta != NULL);
    page_set(meta, PAGE_META);
    lockorder_expect_violation();
    page_lock(stage.page); /* as a walk of a file's block map does */
    page_lock(meta);
    page_unlock(meta);
    page_unlock(stage.page);
    KEXPECT(lockorder_take_violation() == NULL);
    lockorder_expect_violation();
    page_lock(meta);
    page_lock(stage.page);
    page_unlock(stage.page);
    page_unlock(meta);
    KEXPECT(lockorder_take_violation() != NULL);
    page_unset(meta, PAGE_META);
    page_put(meta);
    stage_end();
}
