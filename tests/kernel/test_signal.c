/*
 * Signals on their way: what is kept, what is dropped, in which order it comes, who is asked to take it. With a process that
 * runs no program, and threads without a task; what programs see is in tests/user/test_signals.py.
 */
#include "kernel/task/posix_timer.h"
#include "kernel/task/process_internal.h"
#include "kernel/task/signal.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "tests/kernel/ktest.h"

#define REAL_TIME   (SIGRTMIN + 4u)
#define QUEUE_LIMIT 3

struct rig {
    struct process *process;
    struct thread threads[2];
};

static bool rig_init(struct rig *rig, unsigned n_threads)
{
    memset(rig, 0, sizeof(*rig));
    rig->process = process_alloc("test");
    if (!rig->process || signal_process_create(rig->process, NULL, false))
        return false;
    rig->process->limits[LIMIT_SIGPENDING].soft = QUEUE_LIMIT;
    for (unsigned i = 0; i < n_threads; i++) {
        rig->threads[i].process = rig->process;
        rig->threads[i].tid = 900000 + i;
        if (signal_thread_create(&rig->threads[i], NULL))
            return false;
    }
    return true;
}

static void rig_end(struct rig *rig)
{
    for (unsigned i = 0; i < ARRAY_SIZE(rig->threads); i++)
        signal_thread_destroy(&rig->threads[i]);
    process_put(rig->process);
}

static int send_value(struct rig *rig, u32 signal, u64 value)
{
    struct signal_info info = {.signal = signal, .code = SI_QUEUE, .from = {.value = value}};
    return signal_send_process_info(rig->process, &info);
}

/* Takes the next of the process's signals. => its number, 0: none; *value: what it carries */
static u32 take(struct rig *rig, sigset_bits set, u64 *value)
{
    struct signal_process *shared = rig->process->signals;
    struct signal_info info = {0};
    bool irqs = spin_lock_irq(&shared->lock);
    bool got = signal_pending_take_locked(shared, &shared->pending, set, &info);
    spin_unlock_irq(&shared->lock, irqs);
    *value = info.from.value;
    return got ? (u32)info.signal : 0;
}

static sigset_bits pending(struct rig *rig)
{
    return rig->process->signals->pending.set;
}

KTEST(signal, a_standard_signal_is_pending_once_with_its_first_information)
{
    struct rig rig;
    u64 value;
    KASSERT(rig_init(&rig, 1));
    rig.threads[0].signals->mask = ~0ul;
    KEXPECT_EQ(send_value(&rig, SIGUSR1, 1), 0);
    KEXPECT_EQ(send_value(&rig, SIGUSR1, 2), 0);
    KEXPECT_EQ(take(&rig, ~0ul, &value), SIGUSR1);
    KEXPECT_EQ(value, 1);
    KEXPECT_EQ(take(&rig, ~0ul, &value), 0);
    rig_end(&rig);
}

KTEST(signal, real_time_signals_queue_in_order_up_to_the_limit)
{
    struct rig rig;
    u64 value;
    KASSERT(rig_init(&rig, 1));
    rig.threads[0].signals->mask = ~0ul;
    KEXPECT_EQ(send_value(&rig, REAL_TIME + 1, 10), 0);
    KEXPECT_EQ(send_value(&rig, REAL_TIME, 1), 0);
    KEXPECT_EQ(send_value(&rig, REAL_TIME, 2), 0);
    KEXPECT_EQ(send_value(&rig, REAL_TIME, 3), -EAGAIN);
    KEXPECT_EQ(send_value(&rig, SIGUSR1, 4), 0); /* needs no room */
    KEXPECT_EQ(take(&rig, ~signal_bit(SIGUSR1), &value), REAL_TIME);
    KEXPECT_EQ(value, 1);
    KEXPECT(pending(&rig) & signal_bit(REAL_TIME));
    KEXPECT_EQ(take(&rig, ~signal_bit(SIGUSR1), &value), REAL_TIME);
    KEXPECT_EQ(value, 2);
    KEXPECT(!(pending(&rig) & signal_bit(REAL_TIME)));
    KEXPECT_EQ(take(&rig, ~signal_bit(SIGUSR1), &value), REAL_TIME + 1);
    KEXPECT_EQ(rig.process->signals->n_queued, 0);
    rig_end(&rig);
}

KTEST(signal, faults_come_before_lower_numbers)
{
    struct rig rig;
    u64 value;
    KASSERT(rig_init(&rig, 1));
    rig.threads[0].signals->mask = ~0ul;
    send_value(&rig, SIGHUP, 0);
    send_value(&rig, SIGSEGV, 0);
    KEXPECT_EQ(take(&rig, ~0ul, &value), SIGSEGV);
    KEXPECT_EQ(take(&rig, ~0ul, &value), SIGHUP);
    rig_end(&rig);
}

KTEST(signal, what_is_ignored_is_dropped_unless_a_thread_blocks_it)
{
    struct rig rig;
    KASSERT(rig_init(&rig, 2));
    send_value(&rig, SIGCHLD, 0);
    KEXPECT_EQ(pending(&rig), 0);
    rig.threads[1].signals->mask = signal_bit(SIGCHLD);
    send_value(&rig, SIGCHLD, 0);
    KEXPECT_EQ(pending(&rig), signal_bit(SIGCHLD));
    rig_end(&rig);
}

KTEST(signal, stop_and_continue_take_each_other_back)
{
    struct rig rig;
    KASSERT(rig_init(&rig, 1));
    rig.threads[0].signals->mask = ~0ul;
    send_value(&rig, SIGTSTP, 0);
    send_value(&rig, SIGTTIN, 0);
    send_value(&rig, SIGCONT, 0);
    KEXPECT_EQ(pending(&rig), signal_bit(SIGCONT));
    send_value(&rig, SIGTTOU, 0);
    KEXPECT_EQ(pending(&rig), signal_bit(SIGTTOU));
    rig_end(&rig);
}

KTEST(signal, a_fatal_signal_is_decided_when_sent_and_the_first_one_counts)
{
    struct rig rig;
    KASSERT(rig_init(&rig, 2));
    rig.threads[0].signals->mask = signal_bit(SIGTERM); /* the other thread takes it */
    send_value(&rig, SIGTERM, 0);
    KEXPECT_EQ(rig.process->signals->fatal_signal, SIGTERM);
    send_value(&rig, SIGKILL, 0);
    KEXPECT_EQ(rig.process->signals->fatal_signal, SIGTERM);
    rig_end(&rig);
}

KTEST(signal, a_blocked_fatal_signal_waits_and_a_stopped_process_dies_of_sigkill_only)
{
    struct rig rig;
    KASSERT(rig_init(&rig, 1));
    rig.threads[0].signals->mask = signal_bit(SIGTERM);
    send_value(&rig, SIGTERM, 0);
    KEXPECT_EQ(rig.process->signals->fatal_signal, 0);
    rig.process->signals->stop_signal = SIGSTOP;
    send_value(&rig, SIGINT, 0);
    KEXPECT_EQ(rig.process->signals->fatal_signal, 0);
    send_value(&rig, SIGKILL, 0);
    KEXPECT_EQ(rig.process->signals->fatal_signal, SIGKILL);
    KEXPECT_EQ(rig.process->signals->stop_signal, 0);
    rig_end(&rig);
}

KTEST(signal, a_timer_that_goes_off_again_counts_an_overrun)
{
    struct rig rig;
    struct signal_info info = {.signal = REAL_TIME, .code = SI_TIMER, .timer = {.id = 5}};
    KASSERT(rig_init(&rig, 1));
    struct signal_process *shared = rig.process->signals;
    rig.threads[0].signals->mask = ~0ul;
    for (unsigned i = 0; i < 4; i++)
        KEXPECT_EQ(signal_send_process_info(rig.process, &info), 0);
    KEXPECT_EQ(shared->n_queued, 1);
    bool irqs = spin_lock_irq(&shared->lock);
    bool got = signal_pending_take_locked(shared, &shared->pending, ~0ul, &info);
    spin_unlock_irq(&shared->lock, irqs);
    KEXPECT(got);
    KEXPECT_EQ(info.timer.overrun, 3);
    rig_end(&rig);
}

KTEST(signal, handlers_are_copied_or_shared)
{
    struct rig rig;
    KASSERT(rig_init(&rig, 1));
    struct process *copy = process_alloc("copy"), *sharer = process_alloc("sharer");
    KASSERT(copy && sharer);
    rig.process->signal_actions->action[SIGUSR1].handler = 0x1234;
    KEXPECT_EQ(signal_process_create(copy, rig.process, false), 0);
    KEXPECT_EQ(signal_process_create(sharer, rig.process, true), 0);
    rig.process->signal_actions->action[SIGUSR1].handler = 0x5678;
    KEXPECT_EQ(signal_action_get(copy, SIGUSR1).handler, 0x1234);
    KEXPECT_EQ(signal_action_get(sharer, SIGUSR1).handler, 0x5678);
    process_put(copy);
    process_put(sharer);
    rig_end(&rig);
}
