/*
 * Tasks and all that sleeps: wait queues, timers, switching, balancing, ends. (Locks: test_sync.c;
 * grace periods and sync points: test_grace.c.)
 */
#include "kernel/cpu/clock.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/log/report.h"
#include "kernel/sched/grace.h"
#include "kernel/sched/hung.h"
#include "kernel/sched/timer.h"
#include "kernel/sched/wait.h"
#include "kernel/sync/atomic.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/page_table.h"
#include "mm/core/slab.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/threads.h"

#define MS 1000000ul

/* ---- Wait queues ------------------------------------------------------------------------------
 */

static LOCK_CLASS(story_class, "test story");
static struct spinlock story_lock = SPINLOCK_INIT(&story_class);
static char story[32];

static void tell(char letter)
{
    bool irqs = spin_lock_irq(&story_lock);
    size_t n = strlen(story);

    if (n < sizeof(story) - 1)
        story[n] = letter;
    spin_unlock_irq(&story_lock, irqs);
}

static void story_begin(void)
{
    memset(story, 0, sizeof(story));
}

static struct wait_queue test_queue = WAIT_QUEUE_INIT(test_queue);
static u32 tickets; /* what waiters wait for: each takes one */

static bool take_ticket(void)
{
    u32 left;

    do {
        left = atomic_load(&tickets);
    } while (left && !atomic_change(&tickets, left, left - 1));
    return left > 0;
}

static void wait_for_ticket(void *letter)
{
    WAIT_FOR(&test_queue, take_ticket(), "ticket %lu", 7, 0);
    tell((char)(u64)letter);
}

KTEST(wait, a_wake_between_begin_and_sleep_is_not_lost)
{
    struct waiter w;

    wait_begin(&test_queue, &w, "a wake that came before", 0, 0);
    KEXPECT_EQ(wait_wake_all(&test_queue), 1);
    wait_sleep(&w); /* returns, or the test hangs */
    wait_end(&test_queue, &w);
    KEXPECT(wait_queue_is_empty(&test_queue));

    /* The two halves themselves, without the queue's help. */
    sched_sleep_prepare();
    KEXPECT(sched_wake(task_current()));
    KEXPECT(!sched_wake(task_current())); /* once is enough */
    sched_sleep();
}

KTEST(wait, wake_one_is_first_come_first_served)
{
    struct test_threads threads = {0};

    story_begin();
    atomic_store(&tickets, 0);
    for (char c = 'a'; c <= 'd'; c++)
        threads_add_and_wait_asleep(&threads, wait_for_ticket, (void *)(u64)c);
    for (unsigned i = 0; i < threads.n; i++) {
        atomic_add(&tickets, 1);
        KEXPECT_EQ(wait_wake_one(&test_queue), 1);
        while (!atomic_load(&threads.tasks[i]->has_exited))
            sched_yield();
    }
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_STREQ(story, "abcd");
}

KTEST(wait, two_wakes_of_one_wake_two_even_before_the_first_has_run)
{
    struct test_threads threads = {0};

    story_begin();
    atomic_store(&tickets, 0);
    threads_add_and_wait_asleep(&threads, wait_for_ticket, (void *)(u64)'a');
    threads_add_and_wait_asleep(&threads, wait_for_ticket, (void *)(u64)'a');
    atomic_add(&tickets, 2);
    KEXPECT_EQ(wait_wake_one(&test_queue), 1);
    KEXPECT_EQ(wait_wake_one(&test_queue), 1);
    KEXPECT_EQ(wait_wake_one(&test_queue), 0);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_STREQ(story, "aa");
}

KTEST(wait, woken_in_vain_it_sleeps_again_at_the_front)
{
    struct test_threads threads = {0};

    story_begin();
    atomic_store(&tickets, 0);
    threads_add_and_wait_asleep(&threads, wait_for_ticket, (void *)(u64)'a');
    threads_add_and_wait_asleep(&threads, wait_for_ticket, (void *)(u64)'b');
    KEXPECT_EQ(wait_wake_one(&test_queue), 1); /* no ticket for it */
    threads_wait_asleep(threads.tasks[0]);
    atomic_add(&tickets, 1);
    KEXPECT_EQ(wait_wake_one(&test_queue), 1);
    while (!atomic_load(&threads.tasks[0]->has_exited))
        sched_yield();
    KEXPECT_STREQ(story, "a");
    atomic_add(&tickets, 1);
    KEXPECT_EQ(wait_wake_one(&test_queue), 1);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_STREQ(story, "ab");
}

static const char keys[2];
static bool key_is_open[2];

static void wait_for_key(void *which)
{
    u64 i = (u64)which;
    struct waiter w;

    wait_begin_key(&test_queue, &w, &keys[i], false, "key %lu", i, 0);
    while (!atomic_load(&key_is_open[i]))
        wait_sleep(&w);
    wait_end(&test_queue, &w);
    tell((char)('0' + i));
}

KTEST(wait, wake_key_wakes_only_that_key)
{
    struct test_threads first = {0}, second = {0};

    story_begin();
    key_is_open[0] = key_is_open[1] = false;
    threads_add_and_wait_asleep(&first, wait_for_key, (void *)0);
    threads_add_and_wait_asleep(&second, wait_for_key, (void *)1);
    threads_add_and_wait_asleep(&second, wait_for_key, (void *)1);
    atomic_store(&key_is_open[0], true);
    atomic_store(&key_is_open[1], true);
    KEXPECT_EQ(wait_wake_key(&test_queue, &keys[1]), 2);
    KEXPECT_EQ(threads_join(&second), 0);
    KEXPECT_STREQ(story, "11");
    KEXPECT_EQ(wait_wake_key(&test_queue, &keys[0]), 1);
    KEXPECT_EQ(threads_join(&first), 0);
    KEXPECT_STREQ(story, "110");
}

static int wait_killable_code;

static void wait_killable(void *deadline_ns)
{
    struct waiter w;
    int error = 0;

    wait_begin(&test_queue, &w, "a signal", 0, 0);
    while (!error)
        error = wait_sleep_killable(&w, (u64)deadline_ns);
    wait_end(&test_queue, &w);
    wait_killable_code = error;
    task_exit(-error);
}

KTEST(wait, a_fatal_signal_ends_a_killable_sleep)
{
    struct test_threads threads = {0};
    struct task *task = threads_add_and_wait_asleep(&threads, wait_killable, NULL);

    task_kill(task);
    KEXPECT(task_kill_is_pending(task));
    KEXPECT_EQ(threads_join(&threads), EINTR);
    KEXPECT(wait_queue_is_empty(&test_queue));
}

KTEST(wait, a_fatal_signal_does_not_end_other_sleeps)
{
    struct test_threads threads = {0};

    story_begin();
    atomic_store(&tickets, 0);
    struct task *task = threads_add_and_wait_asleep(&threads, wait_for_ticket, (void *)(u64)'k');

    task_kill(task);
    threads_wait_asleep(task);
    KEXPECT(!atomic_load(&task->has_exited));
    atomic_add(&tickets, 1);
    KEXPECT_EQ(wait_wake_all(&test_queue), 1);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_STREQ(story, "k");
}

KTEST(wait, a_deadline_ends_a_sleep_and_not_too_early)
{
    struct test_threads threads = {0};
    u64 deadline = clock_ns() + 3 * MS;

    threads_add(&threads, wait_killable, (void *)deadline);
    KEXPECT_EQ(threads_join(&threads), ETIMEDOUT);
    KEXPECT(clock_ns() >= deadline);
}

static u32 n_released;

static void note_release(const void *key)
{
    KEXPECT(key == &keys[0]);
    n_released++;
}

static void wait_for_handoff(void *letter)
{
    struct waiter w;

    wait_begin_key(&test_queue, &w, &keys[0], true, "a hand-off", 0, 0);
    while (!atomic_load(&w.granted))
        wait_sleep(&w);
    wait_end(&test_queue, &w);
    tell((char)(u64)letter);
}

KTEST(wait, handoff_goes_to_the_first_that_wants_it_and_watchers_wake)
{
    struct test_threads watchers = {0}, takers = {0};

    story_begin();
    n_released = 0;
    key_is_open[0] = true;
    KEXPECT(!wait_hand_off(&test_queue, &keys[0], note_release));
    KEXPECT_EQ(n_released, 1);

    key_is_open[0] = false;
    threads_add_and_wait_asleep(&watchers, wait_for_key, (void *)0);
    threads_add_and_wait_asleep(&takers, wait_for_handoff, (void *)(u64)'a');
    threads_add_and_wait_asleep(&takers, wait_for_handoff, (void *)(u64)'b');
    atomic_store(&key_is_open[0], true);
    KEXPECT(wait_hand_off(&test_queue, &keys[0], note_release));
    KEXPECT_EQ(threads_join(&watchers), 0);
    while (!atomic_load(&takers.tasks[0]->has_exited))
        sched_yield();
    KEXPECT_EQ(atomic_load(&takers.tasks[1]->state), TASK_SLEEPING);
    KEXPECT(wait_hand_off(&test_queue, &keys[0], note_release));
    KEXPECT_EQ(threads_join(&takers), 0);
    KEXPECT_EQ(n_released, 1);
    KEXPECT(!wait_hand_off(&test_queue, &keys[0], note_release));
    KEXPECT_EQ(n_released, 2);
    KEXPECT_EQ(story[2], 'b');
}

KTEST(wait, reason_is_shown_while_asleep_only)
{
    struct test_threads threads = {0};
    char reason[32];

    story_begin();
    atomic_store(&tickets, 0);
    struct task *task = threads_add_and_wait_asleep(&threads, wait_for_ticket, (void *)(u64)'a');

    threads_wait_reason(task, reason, sizeof(reason));
    KEXPECT_STREQ(reason, "ticket 7");
    task_get(task);
    atomic_add(&tickets, 1);
    wait_wake_all(&test_queue);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT(task->wait_reason == NULL);
    task_put(task);
}

/* ---- Timers ------------------------------------------------------------------------------------
 */

struct lettered_timer {
    struct timer timer;
    char letter;
};

static u32 timers_left;

static void tell_timer(struct timer *timer)
{
    tell(container_of(timer, struct lettered_timer, timer)->letter);
    atomic_sub(&timers_left, 1);
}

static void wait_for_timers(void)
{
    while (atomic_load(&timers_left))
        sleep_until_ns(clock_ns() + MS / 4);
}

static void timers_init(struct lettered_timer *timers, unsigned n)
{
    story_begin();
    atomic_store(&timers_left, n);
    for (unsigned i = 0; i < n; i++) {
        timer_init(&timers[i].timer, tell_timer);
        timers[i].letter = (char)('a' + i);
    }
}

/* Interrupts are off while several are armed: the host cannot make one expire in between. */
KTEST(timer, they_expire_in_the_order_of_their_deadlines)
{
    struct lettered_timer timers[4];
    u64 now = clock_ns();

    timers_init(timers, 4);
    bool irqs = irq_save_disable();

    timer_arm(&timers[0].timer, now + 5 * MS);
    timer_arm(&timers[1].timer, now + 3 * MS);
    timer_arm(&timers[2].timer, now + 4 * MS);
    timer_arm(&timers[3].timer, now + 2 * MS);
    irq_restore(irqs);
    wait_for_timers();
    KEXPECT(clock_ns() >= now + 5 * MS);
    KEXPECT_STREQ(story, "dbca");
}

KTEST(timer, a_cancelled_one_does_not_come)
{
    struct lettered_timer timers[2];
    u64 now = clock_ns();

    timers_init(timers, 2);
    atomic_store(&timers_left, 1);
    bool irqs = irq_save_disable();

    timer_arm(&timers[0].timer, now + 2 * MS);
    timer_arm(&timers[1].timer, now + 3 * MS);
    KEXPECT(timer_cancel(&timers[0].timer));
    KEXPECT(!timer_cancel(&timers[0].timer));
    irq_restore(irqs);
    wait_for_timers();
    KEXPECT(!timer_cancel_sync(&timers[1].timer));
    KEXPECT_STREQ(story, "b");
}

KTEST(timer, arming_again_moves_it)
{
    struct lettered_timer timers[2];
    u64 now = clock_ns();

    timers_init(timers, 2);
    bool irqs = irq_save_disable();

    timer_arm(&timers[0].timer, now + 1000 * MS);
    timer_arm(&timers[1].timer, now + 3 * MS);
    timer_arm(&timers[0].timer, now + 2 * MS);
    irq_restore(irqs);
    wait_for_timers();
    KEXPECT_STREQ(story, "ab");
}

static struct lettered_timer far_timer;

static void arm_far_timer(void *unused)
{
    (void)unused;
    timer_arm(&far_timer.timer, clock_ns() + 10000 * MS);
}

KTEST(timer, one_of_another_cpu_can_be_cancelled)
{
    struct test_threads threads = {0};

    timers_init(&far_timer, 1);
    threads_add_on(&threads, cpu_count() - 1, arm_far_timer, NULL);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(far_timer.timer.cpu, cpu_count() - 1);
    KEXPECT(timer_cancel_sync(&far_timer.timer));
    KEXPECT(!far_timer.timer.is_armed);
    KEXPECT_STREQ(story, "");
}

KTEST(timer, sleep_until_wakes_at_its_time)
{
    u64 deadline = clock_ns() + 2 * MS;

    sleep_until_ns(deadline);
    KEXPECT(clock_ns() >= deadline);
    sleep_until_ns(deadline - MS); /* in the past: returns at once */
    KEXPECT_EQ(sleep_until_ns_killable(clock_ns() + MS / 10), 0);
}

#define TICKS_ALLOWED 4 /* a few come early and are set again; a tick of 4 ms would give 15 */

KTEST(timer, nobody_ticks_while_everybody_sleeps)
{
    u64 counts[MAX_CPUS];

    grace_barrier(); /* whatever was pending is over */
    sleep_until_ns(clock_ns() + 5 * MS);
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        counts[cpu] = irq_count(IRQ_VECTOR_TIMER, cpu);
    sleep_until_ns(clock_ns() + 60 * MS);
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        u64 ticks = irq_count(IRQ_VECTOR_TIMER, cpu) - counts[cpu];

        if (!KEXPECT(ticks <= TICKS_ALLOWED))
            ktest_note("CPU %u: %lu timer interrupts in 60 ms", cpu, ticks);
    }
}

/* ---- Tasks -------------------------------------------------------------------------------------
 */

static void exit_with(void *code)
{
    task_exit((int)(s64)code);
}

static void just_return(void *unused)
{
    (void)unused;
}

KTEST(task, join_gives_the_exit_code)
{
    struct task *task = task_create("exits", exit_with, (void *)42, -1);

    KASSERT(task != NULL);
    KEXPECT_EQ(task_join(task), 42);
    task = task_create("returns", just_return, NULL, -1);
    KASSERT(task != NULL);
    KEXPECT_EQ(task_join(task), 0);
}

static u32 exit_order;

static void note_exit(struct task *task)
{
    KEXPECT(task == task_current());
    KEXPECT_EQ(atomic_add(&exit_order, 1), 1);
}

KTEST(task, one_not_started_takes_fields_and_on_exit_runs_in_it)
{
    atomic_store(&exit_order, 0);
    struct task *task = task_create_stopped("stopped", exit_with, (void *)3, -1);

    KASSERT(task != NULL);
    KEXPECT_EQ(task->state, TASK_NEW);
    KEXPECT(task_find(task->pid) == NULL);
    task->on_exit = note_exit;
    task_start(task);
    KEXPECT_EQ(task_join(task), 3);
    KEXPECT_EQ(atomic_load(&exit_order), 1);
}

KTEST(task, find_knows_the_living_and_forgets_the_dead)
{
    struct test_threads threads = {0};

    atomic_store(&tickets, 0);
    struct task *task = threads_add_and_wait_asleep(&threads, wait_for_ticket, (void *)(u64)'a');

    KASSERT(task != NULL);
    u32 pid = task->pid;
    struct task *found = task_find(pid);

    KEXPECT(found == task);
    if (found)
        task_put(found);
    atomic_add(&tickets, 1);
    wait_wake_all(&test_queue);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT(task_find(pid) == NULL);
}

static void spin_for(void *ns)
{
    u64 until = clock_ns() + (u64)ns;

    while (clock_ns() < until)
        busy_moment();
}

KTEST(task, time_is_charged_to_who_ran_and_not_to_who_slept)
{
    struct test_threads threads = {0};
    struct task *me = task_current();
    struct task *busy = threads_add(&threads, spin_for, (void *)(50 * MS));

    KASSERT(busy != NULL);
    task_get(busy);
    sleep_until_ns(clock_ns() + MS); /* what we ran before is charged at this switch */
    u64 own = me->system_ns;

    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT(busy->system_ns >= 50 * MS);
    KEXPECT_EQ(busy->user_ns, 0);
    KEXPECT(me->system_ns - own < busy->system_ns);
    task_put(busy);
}

static u64 task_structs_live;

static void note_task_cache(void *ctx, const char *name, u64 live, size_t object_bytes, u64 frames)
{
    (void)ctx, (void)object_bytes, (void)frames;
    if (strcmp(name, "task") == 0)
        task_structs_live = live;
}

static u64 count_task_structs(void)
{
    slab_for_each(note_task_cache, NULL);
    return task_structs_live;
}

/*
 * A joined thread may not have left its CPU yet: it is handed over to be freed by whoever runs there next. One period sees that
 * CPU on its way there, a second one beyond.
 */
static void free_ended_threads(void)
{
    grace_wait();
    grace_wait();
    grace_barrier();
}

/* Eight at a time: as many stacks as the room below keeps mapped for the next threads. */
static void run_200_threads(void)
{
    for (unsigned round = 0; round < 25; round++) {
        struct test_threads threads = {0};

        for (unsigned i = 0; i < 8; i++)
            threads_add(&threads, exit_with, (void *)1);
        KEXPECT_EQ(threads_join(&threads), 8);
        free_ended_threads();
    }
}

KTEST(task, two_hundred_threads_leave_nothing_behind)
{
    run_200_threads(); /* caches are as full as they get */
    frames_drain_cpu_lists();
    u64 structs = count_task_structs();
    u64 frames = frames_free_count();
    u64 stacks = kernel_stack_cached_count();

    run_200_threads();
    frames_drain_cpu_lists();
    KEXPECT_EQ(count_task_structs(), structs);
    KEXPECT_EQ(kernel_stack_cached_count(), stacks);
    KEXPECT_EQ(frames_free_count(), frames);
}

/* ---- Switching ---------------------------------------------------------------------------------
 */

#define TOKEN_ROUNDS 1000

static u32 token_holder;
static u32 token_passes;

static void pass_token(void *me)
{
    u32 self = (u32)(u64)me;

    for (unsigned i = 0; i < TOKEN_ROUNDS; i++) {
        WAIT_FOR(&test_queue, atomic_load(&token_holder) == self, "the token", 0, 0);
        token_passes++;
        atomic_store(&token_holder, 1 - self);
        wait_wake_all(&test_queue);
    }
}

KTEST(sched, two_cpus_hand_a_token_a_thousand_times)
{
    struct test_threads threads = {0};

    token_holder = 0;
    token_passes = 0;
    threads_add_on(&threads, 0, pass_token, (void *)0);
    threads_add_on(&threads, cpu_count() - 1, pass_token, (void *)1);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(token_passes, 2 * TOKEN_ROUNDS);
}

static void tell_twice_yielding(void *letter)
{
    tell((char)(u64)letter);
    sched_yield();
    tell((char)(u64)letter);
}

static void start_and_join_tellers(void *unused)
{
    struct test_threads threads = {0};

    (void)unused;
    for (char c = 'a'; c <= 'c'; c++)
        threads_add_on(&threads, cpu_index(), tell_twice_yielding, (void *)(u64)c);
    KEXPECT_EQ(threads_join(&threads), 0);
}

KTEST(sched, yield_lets_the_others_of_the_queue_run_in_turn)
{
    struct test_threads threads = {0};

    story_begin();
    threads_add_on(&threads, 0, start_and_join_tellers, NULL); /* none runs before this one waits */
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_STREQ(story, "abcabc");
}

#define BUSY_THREADS 8

static bool busy_may_end;
static cpumask_t seen_on;

static void be_busy(void *unused)
{
    (void)unused;
    while (!atomic_load(&busy_may_end)) {
        atomic_or(&seen_on, 1ul << cpu_index());
        spin_for((void *)(MS / 20));
        sched_yield();
    }
}

KTEST(sched, busy_threads_spread_over_all_cpus)
{
    struct test_threads threads = {0};
    cpumask_t all = cpu_online_mask();

    atomic_store(&busy_may_end, false);
    for (unsigned i = 0; i < BUSY_THREADS; i++) {
        struct task *task = task_create_stopped("busy", be_busy, NULL, 0);

        KEXPECT(task != NULL);
        if (!task)
            continue;
        threads.tasks[threads.n++] = task;
        task_start(task); /* on CPU 0, where they may stay */
        task->is_pinned = false;
    }
    atomic_store(&seen_on, 0);
    u64 deadline = clock_ns() + 3000 * MS;

    while (atomic_load(&seen_on) != all && clock_ns() < deadline)
        sleep_until_ns(clock_ns() + MS);
    KEXPECT_EQ(atomic_load(&seen_on), all);
    atomic_store(&busy_may_end, true);
    KEXPECT_EQ(threads_join(&threads), 0);
}

static u32 stolen_on; /* CPU + 1 */

static void be_stolen(void *unused)
{
    (void)unused;
    atomic_store(&stolen_on, cpu_index() + 1);
}

static void occupy_until_stolen(void *deadline_ns)
{
    while (!atomic_load(&stolen_on) && clock_ns() < (u64)deadline_ns)
        busy_moment();
    task_exit(atomic_load(&stolen_on) ? 0 : 1);
}

/* On the last CPU, which has nothing to do once this thread sleeps. */
static void wait_beside_a_busy_cpu(void *unused)
{
    struct test_threads threads = {0};
    struct task *waiting = task_create_stopped("stolen", be_stolen, NULL, 0);

    (void)unused;
    KASSERT(waiting != NULL);
    threads_add_on(&threads, 0, occupy_until_stolen, (void *)(clock_ns() + 2000 * MS));
    while (READ_ONCE(cpu_get(0)->current) != threads.tasks[0])
        sched_yield();
    task_start(waiting);
    waiting->is_pinned = false;
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(task_join(waiting), 0);
}

KTEST(sched, a_cpu_that_runs_out_of_work_steals)
{
    struct test_threads threads = {0};

    if (cpu_count() == 1)
        KTEST_SKIP("needs a second CPU");
    atomic_store(&stolen_on, 0);
    threads_add_on(&threads, cpu_count() - 1, wait_beside_a_busy_cpu, NULL);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT(atomic_load(&stolen_on) > 1); /* not on CPU 0 */
}

static void stay_on_cpu(void *cpu)
{
    for (unsigned i = 0; i < 50; i++) {
        if (cpu_index() != (unsigned)(u64)cpu)
            task_exit(1);
        if (i % 10 == 0)
            sleep_until_ns(clock_ns() + MS / 20);
        else
            sched_yield();
    }
}

KTEST(sched, a_pinned_thread_never_moves)
{
    struct test_threads threads = {0};

    for (unsigned i = 0; i < 4 * cpu_count() && i < TEST_THREADS_MAX; i++)
        threads_add_on(&threads, i % cpu_count(), stay_on_cpu, (void *)(u64)(i % cpu_count()));
    KEXPECT_EQ(threads_join(&threads), 0);
}

static void wake_storm(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < 300; i++) {
        atomic_add(&tickets, 1);
        wait_wake_one(&test_queue);
        WAIT_FOR(&test_queue, take_ticket(), "ticket of the storm", 0, 0);
        wait_wake_one(&test_queue);
    }
}

/* Sleepers are woken all the time while they are just leaving their CPUs: none is lost, none runs
 * twice. */
KTEST(sched, a_storm_of_sleeps_and_wakes_ends)
{
    struct test_threads threads = {0};

    atomic_store(&tickets, 0);
    for (unsigned i = 0; i < 12; i++)
        threads_add(&threads, wake_storm, NULL);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(atomic_load(&tickets), 0);
    KEXPECT(wait_queue_is_empty(&test_queue));
}

KTEST(sched, idle_time_grows_while_everybody_sleeps)
{
    unsigned cpu = cpu_count() - 1;
    u64 switches = sched_switch_count(), most = 0;

    /* The best of some: the host may keep us from sleeping until it is time to wake. */
    for (unsigned i = 0; i < 5; i++) {
        u64 before = sched_idle_ns(cpu);

        sleep_until_ns(clock_ns() + 5 * MS);
        most = MAX(most, sched_idle_ns(cpu) - before);
    }
    KEXPECT(most >= 4 * MS);
    KEXPECT(sched_switch_count() >= switches + 2);
}

/* ---- Tasks that hang ---- */

static void set_hung_timeout_often(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < 20000; i++)
        (void)hung_task_set_timeout_secs(1000 + i % 2);
}

KTEST(sched, the_hung_task_timeout_can_be_set_by_two_at_once)
{
    struct test_threads threads = {0};
    u64 before = hung_task_timeout_secs();

    threads_start_on_each_cpu(&threads, set_hung_timeout_often, NULL);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(hung_task_set_timeout_secs(before), 0);
    KEXPECT_EQ(hung_task_timeout_secs(), before);
}

static struct task sleeper; /* nobody runs it */
static unsigned times_asked;

static void is_asked(const void *object, void (*line)(const char *fmt, ...))
{
    (void)line;
    KEXPECT_EQ(object, &times_asked);
    times_asked++;
}

static void say_nothing(const char *fmt, ...)
{
    (void)fmt;
}

/* Between two lines the sleeper wakes up, and sleeps again for something that nobody holds. */
static void wake_him_meanwhile(const char *fmt, ...)
{
    if (strcmp(fmt, "what it waits for:") != 0)
        return;
    sleeper.wait_object = NULL;
    sleeper.wait_since_ns++;
}

static void report_sleeper(report_line line)
{
    struct trap_frame frame = {.cs = KERNEL_CS};
    struct report report = {.kind = REPORT_HUNG_TASK,
                            .reason = "a test",
                            .frame = &frame,
                            .task = &sleeper,
                            .heading = say_nothing,
                            .line = line,
                            .part = REPORT_HELD};

    sleeper.state = TASK_SLEEPING;
    sleeper.wait_since_ns = sleeper.hung_since_ns = 5;
    sleeper.wait_object = &times_asked;
    sleeper.wait_holder = is_asked;
    report_print(&report);
}

KTEST(sched, a_hung_task_that_wakes_up_is_not_looked_at_as_if_it_slept)
{
    times_asked = 0;
    report_sleeper(say_nothing);
    KEXPECT_EQ(times_asked, 1);
    report_sleeper(wake_him_meanwhile);
    KEXPECT_EQ(times_asked, 1);
}

static struct wait_queue hung_queue = WAIT_QUEUE_INIT(hung_queue);
static bool may_go_on;

static void hang(void *unused)
{
    (void)unused;
    WAIT_FOR(&hung_queue, atomic_load(&may_go_on), "the end of a test", 0, 0);
}

KTEST(sched, many_hung_tasks_are_reported_a_few_at_a_time)
{
    struct test_threads threads = {0};

    may_go_on = false;
    while (hung_task_check(1) > 0) /* of others */
        ;
    for (unsigned i = 0; i < 6; i++)
        threads_add_and_wait_asleep(&threads, hang, NULL);
    sleep_until_ns(clock_ns() + MS);
    KEXPECT_EQ(hung_task_check(1), 4);
    KEXPECT_EQ(hung_task_check(1), 2);
    KEXPECT_EQ(hung_task_check(1), 0);
    atomic_store(&may_go_on, true);
    wait_wake_all(&hung_queue);
    KEXPECT_EQ(threads_join(&threads), 0);
}
