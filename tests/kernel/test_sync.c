/*
 * Locks and what checks them: spinlocks, per-CPU counters, mutex and rwsem order, and the
 * lock-order checker, whose tests each commit the crime and look at the message.
 */
#include "kernel/cpu/clock.h"
#include "kernel/log/log.h"
#include "kernel/sched/mutex.h"
#include "kernel/sched/timer.h"
#include "kernel/sync/atomic.h"
#include "kernel/sync/counter.h"
#include "lib/string.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/threads.h"

#define NO_CHECKER "no lock-order checker in a release build"

/* ---- Spinlocks and counters ---------------------------------------------------------------- */

static LOCK_CLASS(spin_test_class, "spin test");
static struct spinlock spin_test_lock = SPINLOCK_INIT(&spin_test_class);

KTEST(sync_spin, trylock_fails_while_it_is_held)
{
    spin_lock(&spin_test_lock);
    KEXPECT(spin_is_locked(&spin_test_lock));
    KEXPECT(!spin_trylock(&spin_test_lock));
    spin_unlock(&spin_test_lock);
    KEXPECT(!spin_is_locked(&spin_test_lock));
    if (KEXPECT(spin_trylock(&spin_test_lock)))
        spin_unlock(&spin_test_lock);
}

KTEST(sync_spin, lock_irq_turns_interrupts_off_and_restores_them)
{
    KEXPECT(irqs_are_on());
    bool outer = spin_lock_irq(&spin_test_lock);

    KEXPECT(outer);
    KEXPECT(!irqs_are_on());
    bool inner = irq_save_disable();

    KEXPECT(!inner);
    irq_restore(inner);
    KEXPECT(!irqs_are_on());
    spin_unlock_irq(&spin_test_lock, outer);
    KEXPECT(irqs_are_on());
}

#define ADDITIONS 2000

static u64 guarded_sum;

static void add_under_lock(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < ADDITIONS; i++) {
        spin_lock(&spin_test_lock);
        u64 seen = READ_ONCE(guarded_sum);

        cpu_pause(); /* an invitation to the other CPUs */
        WRITE_ONCE(guarded_sum, seen + 1);
        spin_unlock(&spin_test_lock);
    }
}

KTEST(sync_spin, no_addition_is_lost_between_all_cpus)
{
    struct test_threads threads;

    guarded_sum = 0;
    threads_start_on_each_cpu(&threads, add_under_lock, NULL);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(guarded_sum, (u64)ADDITIONS * cpu_count());
}

static COUNTER(test_counter);

static void count_events(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < ADDITIONS; i++)
        counter_inc(test_counter);
    counter_add(test_counter, 5);
}

KTEST(sync_counter, sum_is_exact_over_all_cpus)
{
    struct test_threads threads;
    u64 before = counter_sum(test_counter);

    threads_start_on_each_cpu(&threads, count_events, NULL);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(counter_sum(test_counter) - before, (u64)(ADDITIONS + 5) * cpu_count());
}

/* ---- Mutex and rwsem: who comes when -------------------------------------------------------- */

/* The order of events, one letter each: written by whoever holds the lock or runs alone. */
static char story[32];
static u32 story_length;

static void tell(char letter)
{
    u32 at = atomic_add(&story_length, 1) - 1;

    if (at < sizeof(story) - 1)
        story[at] = letter;
}

static void story_begin(void)
{
    memset(story, 0, sizeof(story));
    story_length = 0;
}

static SLEEP_LOCK_CLASS(test_mutex_class, "test mutex");
static SLEEP_LOCK_CLASS(test_rwsem_class, "test rwsem");
static struct mutex test_mutex;
static struct rwsem test_rwsem;

static void lock_mutex_and_tell(void *letter)
{
    mutex_lock(&test_mutex);
    KEXPECT(mutex_is_mine(&test_mutex));
    tell((char)(u64)letter);
    mutex_unlock(&test_mutex);
}

KTEST(sync_mutex, waiters_get_it_in_the_order_they_came)
{
    struct test_threads threads = {0};

    story_begin();
    mutex_init(&test_mutex, &test_mutex_class);
    mutex_lock(&test_mutex);
    for (char c = 'a'; c <= 'e'; c++)
        threads_add_and_wait_asleep(&threads, lock_mutex_and_tell, (void *)(u64)c);
    tell('0');
    mutex_unlock(&test_mutex);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_STREQ(story, "0abcde");
}

/* Runs on the waiter's CPU: that one cannot run before we sleep, but the lock must be its already.
 */
static void unlock_and_try_again(void *unused)
{
    struct test_threads waiters = {0};

    (void)unused;
    mutex_lock(&test_mutex);
    threads_wait_asleep(
        threads_add_on(&waiters, cpu_index(), lock_mutex_and_tell, (void *)(u64)'a'));
    KEXPECT(!mutex_trylock(&test_mutex));
    mutex_unlock(&test_mutex);
    KEXPECT(!mutex_trylock(&test_mutex));
    KEXPECT(test_mutex.owner == waiters.tasks[0]);
    tell('0');
    KEXPECT_EQ(threads_join(&waiters), 0);
}

KTEST(sync_mutex, unlock_hands_it_to_the_waiter_before_that_one_runs)
{
    struct test_threads threads = {0};

    story_begin();
    mutex_init(&test_mutex, &test_mutex_class);
    threads_add_on(&threads, cpu_count() - 1, unlock_and_try_again, NULL);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT(test_mutex.owner == NULL);
    KEXPECT_STREQ(story, "0a");
}

static void read_and_tell(void *letter)
{
    rwsem_read_lock(&test_rwsem);
    tell((char)(u64)letter);
    rwsem_read_unlock(&test_rwsem);
}

static void write_and_tell(void *letter)
{
    rwsem_write_lock(&test_rwsem);
    KEXPECT(rwsem_is_write_locked_by_me(&test_rwsem));
    tell((char)(u64)letter);
    rwsem_write_unlock(&test_rwsem);
}

KTEST(sync_rwsem, readers_share)
{
    struct test_threads threads = {0};

    story_begin();
    rwsem_init(&test_rwsem, &test_rwsem_class, "test_rwsem");
    rwsem_read_lock(&test_rwsem);
    threads_add(&threads, read_and_tell, (void *)(u64)'r');
    KEXPECT_EQ(threads_join(&threads), 0); /* it never waited for us */
    KEXPECT_EQ(rwsem_readers(&test_rwsem), 1);
    rwsem_read_unlock(&test_rwsem);
    KEXPECT(!rwsem_is_locked(&test_rwsem));
    KEXPECT_STREQ(story, "r");
}

KTEST(sync_rwsem, a_waiting_writer_stops_new_readers)
{
    struct test_threads threads = {0};

    story_begin();
    rwsem_init(&test_rwsem, &test_rwsem_class, "test_rwsem");
    rwsem_read_lock(&test_rwsem);
    threads_add_and_wait_asleep(&threads, write_and_tell, (void *)(u64)'w');
    KEXPECT_EQ(test_rwsem.waiting_writers, 1);
    KEXPECT(!rwsem_read_trylock(&test_rwsem));
    threads_add_and_wait_asleep(&threads, read_and_tell, (void *)(u64)'r');
    tell('0');
    rwsem_read_unlock(&test_rwsem);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_STREQ(story, "0wr");
}

KTEST(sync_rwsem, first_come_first_served_between_both_kinds)
{
    struct test_threads threads = {0};

    story_begin();
    rwsem_init(&test_rwsem, &test_rwsem_class, "test_rwsem");
    rwsem_write_lock(&test_rwsem);
    threads_add_and_wait_asleep(&threads, write_and_tell, (void *)(u64)'1');
    threads_add_and_wait_asleep(&threads, read_and_tell, (void *)(u64)'2');
    threads_add_and_wait_asleep(&threads, write_and_tell, (void *)(u64)'3');
    threads_add_and_wait_asleep(&threads, write_and_tell, (void *)(u64)'4');
    threads_add_and_wait_asleep(&threads, read_and_tell, (void *)(u64)'5');
    tell('0');
    rwsem_write_unlock(&test_rwsem);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_STREQ(story, "012345");
    KEXPECT_EQ(test_rwsem.waiting_writers, 0);
    KEXPECT(!rwsem_is_locked(&test_rwsem));
}

KTEST(sync_rwsem, downgrade_lets_readers_in_and_no_writer)
{
    struct test_threads readers = {0}, writers = {0};

    story_begin();
    rwsem_init(&test_rwsem, &test_rwsem_class, "test_rwsem");
    rwsem_write_lock(&test_rwsem);
    threads_add_and_wait_asleep(&readers, read_and_tell, (void *)(u64)'r');
    threads_add_and_wait_asleep(&writers, write_and_tell, (void *)(u64)'w');
    rwsem_downgrade(&test_rwsem);
    KEXPECT(!rwsem_is_write_locked_by_me(&test_rwsem));
    KEXPECT_EQ(threads_join(&readers), 0);
    tell('0');
    rwsem_read_unlock(&test_rwsem);
    KEXPECT_EQ(threads_join(&writers), 0);
    KEXPECT_STREQ(story, "r0w");
}

static int killable_result;

static void write_killable(void *unused)
{
    (void)unused;
    killable_result = rwsem_write_lock_killable(&test_rwsem);
    if (killable_result == 0)
        rwsem_write_unlock(&test_rwsem);
}

KTEST(sync_rwsem, a_killed_writer_leaves_and_readers_behind_it_come_in)
{
    struct test_threads writers = {0}, readers = {0};

    story_begin();
    killable_result = 1;
    rwsem_init(&test_rwsem, &test_rwsem_class, "test_rwsem");
    rwsem_read_lock(&test_rwsem);
    struct task *writer = threads_add_and_wait_asleep(&writers, write_killable, NULL);

    threads_add_and_wait_asleep(&readers, read_and_tell, (void *)(u64)'r');
    task_kill(writer);
    KEXPECT_EQ(threads_join(&writers), 0);
    KEXPECT_EQ(killable_result, -EINTR);
    KEXPECT_EQ(threads_join(&readers), 0); /* while we still read */
    KEXPECT_EQ(test_rwsem.waiting_writers, 0);
    rwsem_read_unlock(&test_rwsem);
    KEXPECT(!rwsem_is_locked(&test_rwsem));
    KEXPECT_STREQ(story, "r");
}

KTEST(sync_rwsem, wait_reason_names_the_lock)
{
    struct test_threads threads = {0};
    char reason[40];

    rwsem_init(&test_rwsem, &test_rwsem_class, "test_rwsem");
    rwsem_read_lock(&test_rwsem);
    struct task *writer = threads_add_and_wait_asleep(&threads, write_and_tell, (void *)(u64)'w');

    threads_wait_reason(writer, reason, sizeof(reason));
    KEXPECT_STREQ(reason, "test_rwsem writer");
    rwsem_read_unlock(&test_rwsem);
    KEXPECT_EQ(threads_join(&threads), 0);
}

/* ---- The lock-order checker ------------------------------------------------------------------ */

static void expect_message(const char *a, const char *b)
{
    const char *message = lockorder_take_violation();

    KASSERT(message != NULL);
    if (!KEXPECT(strstr(message, a) != NULL) || !KEXPECT(strstr(message, b) != NULL))
        ktest_note("%s", message);
}

/* Classes of their own for each test: what one teaches the checker must not colour the next. */
#define TEST_LOCK(name)                     \
    static LOCK_CLASS(name##_class, #name); \
    static struct spinlock name = SPINLOCK_INIT(&name##_class)

TEST_LOCK(order_a);
TEST_LOCK(order_b);
TEST_LOCK(order_c);

static void lock_pair(struct spinlock *outer, struct spinlock *inner)
{
    spin_lock(outer);
    spin_lock(inner);
    spin_unlock(inner);
    spin_unlock(outer);
}

KTEST(lockorder, inversion_names_both_locks_and_both_places)
{
    if (!LOCKORDER_IS_ON)
        KTEST_SKIP(NO_CHECKER);
    lock_pair(&order_a, &order_b);
    lock_pair(&order_a, &order_b);
    KEXPECT(lockorder_take_violation() == NULL);
    lockorder_expect_violation();
    lock_pair(&order_b, &order_a);
    expect_message("order inverted: order_a taken at lock_pair", "order_b was taken at lock_pair");
}

KTEST(lockorder, inversion_is_found_over_a_third_lock)
{
    if (!LOCKORDER_IS_ON)
        KTEST_SKIP(NO_CHECKER);
    lock_pair(&order_a, &order_b);
    lock_pair(&order_b, &order_c);
    lockorder_expect_violation();
    lock_pair(&order_c, &order_a);
    expect_message("order inverted: order_a", "order_c was taken at lock_pair");
}

KTEST(lockorder, double_lock_is_found)
{
    if (!LOCKORDER_IS_ON)
        KTEST_SKIP(NO_CHECKER);
    spin_lock(&order_a);
    lockorder_expect_violation();
    lockorder_before(&order_a_class, &order_a,
                     0); /* what spin_lock does first; then it would hang */
    spin_unlock(&order_a);
    expect_message("taken twice", "order_a");
}

KTEST(lockorder, two_of_a_class_need_a_nesting_class)
{
    static NESTING_SLEEP_LOCK_CLASS(nesting_class, "nesting test");
    struct mutex first, second;

    if (!LOCKORDER_IS_ON)
        KTEST_SKIP(NO_CHECKER);
    mutex_init(&first, &nesting_class);
    mutex_init(&second, &nesting_class);
    lockorder_expect_violation();
    mutex_lock(&first);
    mutex_lock(&second);
    mutex_unlock(&first); /* also not in the reverse order */
    mutex_unlock(&second);
    KEXPECT(lockorder_take_violation() == NULL);

    mutex_init(&first, &test_mutex_class);
    mutex_init(&second, &test_mutex_class);
    lockorder_expect_violation();
    mutex_lock(&first);
    mutex_lock(&second);
    mutex_unlock(&second);
    mutex_unlock(&first);
    expect_message("two of one class", "test mutex");
}

KTEST(lockorder, sleep_under_a_spinlock_is_found)
{
    if (!LOCKORDER_IS_ON)
        KTEST_SKIP(NO_CHECKER);
    mutex_init(&test_mutex, &test_mutex_class);
    spin_lock(&order_a);
    lockorder_expect_violation();
    lockorder_might_sleep("a test");
    spin_unlock(&order_a);
    expect_message("sleeps with a spinlock held: order_a", "a test");
}

KTEST(lockorder, release_of_a_lock_not_held_is_found_and_changes_nothing)
{
    if (!LOCKORDER_IS_ON)
        KTEST_SKIP(NO_CHECKER);
    lockorder_expect_violation();
    spin_unlock(&order_a);
    expect_message("released though not held", "order_a");
    KEXPECT(!spin_is_locked(&order_a));

    rwsem_init(&test_rwsem, &test_rwsem_class, "test_rwsem");
    lockorder_expect_violation();
    rwsem_read_unlock(&test_rwsem);
    expect_message("released though not held", "test rwsem");
    KEXPECT_EQ(rwsem_readers(&test_rwsem), 0);
}

TEST_LOCK(irq_lock);
static u32 irq_lock_taken;

static void lock_in_interrupt(struct timer *timer)
{
    (void)timer;
    spin_lock(&irq_lock);
    spin_unlock(&irq_lock);
    atomic_store(&irq_lock_taken, 1);
}

KTEST(lockorder, lock_of_an_interrupt_taken_with_interrupts_on_is_found)
{
    struct timer timer;

    if (!LOCKORDER_IS_ON)
        KTEST_SKIP(NO_CHECKER);
    atomic_store(&irq_lock_taken, 0);
    timer_init(&timer, lock_in_interrupt);
    timer_arm(&timer, clock_ns());
    while (!atomic_load(&irq_lock_taken))
        cpu_pause();
    timer_cancel_sync(&timer);

    bool irqs = spin_lock_irq(&irq_lock); /* the right way */

    spin_unlock_irq(&irq_lock, irqs);
    KEXPECT(lockorder_take_violation() == NULL);
    lockorder_expect_violation();
    spin_lock(&irq_lock);
    spin_unlock(&irq_lock);
    expect_message("taken with interrupts on: irq_lock", "lock_in_interrupt");
}

KTEST(lockorder, lock_held_at_return_to_user_mode_is_found)
{
    if (!LOCKORDER_IS_ON)
        KTEST_SKIP(NO_CHECKER);
    lockorder_user_return(); /* nothing held: nothing to say */
    mutex_init(&test_mutex, &test_mutex_class);
    mutex_lock(&test_mutex);
    lockorder_expect_violation();
    lockorder_user_return();
    mutex_unlock(&test_mutex);
    expect_message("held at return to user mode", "test mutex");
}

KTEST(lockorder, held_list_follows_the_task)
{
    if (!LOCKORDER_IS_ON)
        KTEST_SKIP(NO_CHECKER);
    mutex_init(&test_mutex, &test_mutex_class);
    KEXPECT(!lockorder_is_held(&test_mutex));
    mutex_lock(&test_mutex);
    sched_yield();
    sleep_until_ns(clock_ns() + 100000);
    KEXPECT(lockorder_is_held(&test_mutex));
    mutex_unlock(&test_mutex);
    KEXPECT(!lockorder_is_held(&test_mutex));
}
