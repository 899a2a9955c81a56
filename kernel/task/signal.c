/*
 * Sending a signal. Rules in signal.h.
 *
 * Sender and receiver, two actors under signal_process.lock:
 *     sender                                      thread
 *     1 adds the signal to a pending set          1 takes signals, or changes its mask
 *     2 chooses a thread that does not block it   2 writes task->signal_pending anew, from the sets and the mask
 *     3 task_interrupt: signal_pending = 1, wakes
 * so signal_pending is never 0 with something to take, and a thread that blocks a signal which was meant for it, or
 * ends, hands it on (retarget_locked).
 */
#include "kernel/task/signal.h"

#include "kernel/cpu/trap.h"
#include "kernel/sync/atomic.h"
#include "kernel/task/process.h"
#include "lib/errno.h"
#include "mm/core/slab.h"

#define STOP_SIGNALS \
    (1ul << (SIGSTOP - 1) | 1ul << (SIGTSTP - 1) | 1ul << (SIGTTIN - 1) | 1ul << (SIGTTOU - 1))

static struct signal_thread *self(void)
{
    return thread_current()->signals;
}

/* ---- Waking ---------------------------------------------------------------------------------- */

void signal_wake_locked(struct signal_thread *thread)
{
    if (thread->thread->task)
        task_interrupt(thread->thread->task);
}

static void wake_all_locked(struct signal_process *shared)
{
    struct signal_thread *thread;
    list_for_each (thread, &shared->threads, link)
        signal_wake_locked(thread);
}

static void resume_locked(struct signal_process *shared)
{
    shared->stop_signal = 0;
    wait_wake_all(&shared->continued);
}

static void kill_all_locked(struct signal_process *shared, u32 signal)
{
    struct signal_thread *thread;
    if (!shared->fatal_signal)
        shared->fatal_signal = signal;
    list_for_each (thread, &shared->threads, link) {
        if (thread->thread->task)
            task_kill(thread->thread->task);
    }
    resume_locked(shared);
}

u32 signal_fatal_number(void)
{
    return READ_ONCE(process_current()->signals->fatal_signal);
}

/* ---- Who takes it ---------------------------------------------------------------------------- */

static bool takes(const struct signal_thread *thread, u32 signal)
{
    return !(thread->mask & ~thread->waited_for & signal_bit(signal));
}

/* One that has nothing else to do, if there is one. NULL: all block it */
static struct signal_thread *choose_locked(struct signal_process *shared, u32 signal)
{
    struct signal_thread *thread, *busy = NULL;
    list_for_each (thread, &shared->threads, link) {
        if (!takes(thread, signal))
            continue;
        if (!thread->thread->task || !READ_ONCE(thread->thread->task->signal_pending))
            return thread;
        if (!busy)
            busy = thread;
    }
    return busy;
}

/* Signals of the whole process that `leaving` will not take any more. */
static void retarget_locked(struct signal_process *shared, sigset_bits set)
{
    for (set &= shared->pending.set; set; set &= set - 1) {
        struct signal_thread *thread = choose_locked(shared, __builtin_ctzl(set) + 1);
        if (thread)
            signal_wake_locked(thread);
    }
}

static bool has_it_blocked(struct signal_process *shared, const struct signal_thread *target,
                           u32 signal)
{
    struct signal_thread *thread;
    if (target)
        return target->mask & signal_bit(signal);
    list_for_each (thread, &shared->threads, link) {
        if (thread->mask & signal_bit(signal))
            return true;
    }
    return false;
}

/*
 * Another process may send init only what it handles or blocks, whatever it says about the signal (rt_sigqueueinfo). Codes
 * above 0 are the kernel's. What is blocked is queued, for init may wait for it; if it is taken to be acted upon, and there is
 * still no handler, signal_spares_init() has the last word.
 */
static void note_sender_locked(struct signal_process *shared, const struct signal_info *info)
{
    if (shared->process->pid != 1)
        return;
    if (process_current() != shared->process && info->code <= SI_USER)
        shared->from_outside |= signal_bit(info->signal);
    else
        shared->from_outside &= ~signal_bit(info->signal);
}

bool signal_spares_init(struct signal_process *shared, u32 signal)
{
    return READ_ONCE(shared->from_outside) & signal_bit(signal);
}

static bool is_dropped_locked(struct signal_process *shared, const struct signal_thread *target,
                              const struct signal_info *info)
{
    if (shared->fatal_signal)
        return true;
    if (has_it_blocked(shared, target, info->signal)) /* who blocks it may wait for it */
        return false;
    if (signal_spares_init(shared, info->signal) &&
        signal_action_get(shared->process, info->signal).handler == SIGNAL_DEFAULT)
        return true;
    return signal_is_ignored_by(shared->process, info->signal);
}

static bool is_fatal_for(const struct signal_thread *thread, u32 signal)
{
    return !(thread->waited_for & signal_bit(signal)) && signal_default_of(signal) == SIGNAL_ENDS &&
           signal_action_get(thread->shared->process, signal).handler == SIGNAL_DEFAULT;
}

/* ---- Sending --------------------------------------------------------------------------------- */

static void discard_everywhere_locked(struct signal_process *shared, sigset_bits set)
{
    struct signal_thread *thread;
    signal_pending_discard_locked(shared, &shared->pending, set);
    list_for_each (thread, &shared->threads, link)
        signal_pending_discard_locked(shared, &thread->pending, set);
}

/* A stop takes back a continue that nobody has seen, and the other way round, blocked or not. */
static void cancel_opposite_locked(struct signal_process *shared, u32 signal)
{
    if (STOP_SIGNALS & signal_bit(signal))
        discard_everywhere_locked(shared, signal_bit(SIGCONT));
    if (signal != SIGCONT)
        return;
    shared->n_continues++;
    discard_everywhere_locked(shared, STOP_SIGNALS);
    if (!shared->stop_signal)
        return;
    shared->must_tell_continued = shared->is_stop_told;
    resume_locked(shared);
    wake_all_locked(shared);
}

static int send_locked(struct signal_process *shared, struct signal_thread *target,
                       const struct signal_info *info)
{
    u32 signal = info->signal;
    note_sender_locked(shared, info);
    cancel_opposite_locked(shared, signal);
    if (is_dropped_locked(shared, target, info))
        return 0;
    int error =
        signal_pending_add_locked(shared, target ? &target->pending : &shared->pending, info);
    if (error)
        return error;
    struct signal_thread *taker = target && takes(target, signal) ? target : NULL;
    if (!target)
        taker = choose_locked(shared, signal);
    bool waits_for_continue = shared->stop_signal && signal != SIGKILL;
    if (taker && !waits_for_continue && is_fatal_for(taker, signal))
        kill_all_locked(shared, signal);
    else if (taker)
        signal_wake_locked(taker);
    return 0;
}

int signal_send_process_info(struct process *process, const struct signal_info *info)
{
    struct signal_process *shared = process->signals;
    bool irqs = spin_lock_irq(&shared->lock);
    int error = send_locked(shared, NULL, info);
    spin_unlock_irq(&shared->lock, irqs);
    return error;
}

int signal_send_thread(struct thread *thread, const struct signal_info *info)
{
    struct signal_process *shared = thread->process->signals;
    bool irqs = spin_lock_irq(&shared->lock);
    int error = thread->signals ? send_locked(shared, thread->signals, info) : 0;
    spin_unlock_irq(&shared->lock, irqs);
    return error;
}

void signal_send_timer_locked(struct signal_process *shared, u32 tid,
                              const struct signal_info *info)
{
    struct signal_thread *thread;
    if (tid == 0)
        (void)send_locked(shared, NULL,
                          info); /* a full queue loses it, as the timer's next time may tell */
    list_for_each (thread, &shared->threads, link) {
        if (tid && thread->thread->tid == tid)
            (void)send_locked(shared, thread, info);
    }
}

void signal_send_process(struct process *process, u32 signal)
{
    struct signal_info info = {.signal = signal, .code = SI_KERNEL};
    (void)signal_send_process_info(
        process, &info); /* only a full queue refuses; a standard signal needs no room */
}

static void send_one_of_group(struct process *process, void *ctx)
{
    signal_send_process(process, *(u32 *)ctx);
}

unsigned signal_send_group_locked(u32 pgid, u32 signal)
{
    return process_for_each_in_group_locked(pgid, send_one_of_group, &signal);
}

unsigned signal_send_group(u32 pgid, u32 signal)
{
    spin_lock(&process_tree_lock);
    unsigned n = signal_send_group_locked(pgid, signal);
    spin_unlock(&process_tree_lock);
    return n;
}

void signal_send_self(u32 signal)
{
    struct signal_info info = {
        .signal = signal, .code = SI_USER, .from = {.pid = process_current()->pid}};
    (void)signal_send_thread(thread_current(), &info); /* as above */
}

bool signal_force_fault(struct trap_frame *frame, u32 signal, s32 code, u64 addr)
{
    struct signal_thread *me = self();
    struct signal_process *shared = me->shared;
    bool irqs = spin_lock_irq(&shared->lock);
    bool is_handled = !(me->mask & signal_bit(signal)) &&
                      signal_action_get(shared->process, signal).handler > SIGNAL_IGNORE;
    me->trap_vector = frame->vector;
    me->trap_error = frame->error;
    me->trap_address = frame->fault_address;
    if (is_handled) {
        me->pending.standard[signal] =
            (struct signal_info){.signal = signal, .code = code, .fault = {.addr = addr}};
        if (code == SEGV_PKUERR && signal == SIGSEGV)
            me->pending.standard[signal].fault.key = PKEY_EXECUTE_ONLY;
        me->pending.set |= signal_bit(signal);
        signal_wake_locked(me);
    } else {
        kill_all_locked(shared, signal);
    }
    spin_unlock_irq(&shared->lock, irqs);
    return is_handled;
}

/* ---- The current thread: mask and pending ---------------------------------------------------- */

void signal_update_pending_locked(struct signal_thread *me)
{
    struct signal_process *shared = me->shared;
    bool any = (me->pending.set | shared->pending.set) & ~me->mask;
    atomic_store(&task_current()->signal_pending,
                 any || shared->stop_signal || shared->must_tell_continued);
}

void signal_mask_set(sigset_bits mask)
{
    struct signal_thread *me = self();
    bool irqs = spin_lock_irq(&me->shared->lock);
    sigset_bits newly_blocked = mask & ~me->mask;
    me->mask = mask & ~SIGNALS_UNBLOCKABLE;
    signal_update_pending_locked(me);
    retarget_locked(me->shared, newly_blocked);
    spin_unlock_irq(&me->shared->lock, irqs);
}

bool signal_take(sigset_bits set, struct signal_info *info)
{
    struct signal_thread *me = self();
    bool irqs = spin_lock_irq(&me->shared->lock);
    bool got = signal_pending_take_locked(me->shared, &me->pending, set, info) ||
               signal_pending_take_locked(me->shared, &me->shared->pending, set, info);
    if (got && info->code == SI_TIMER)
        posix_timer_note_taken_locked(me->shared, info);
    signal_update_pending_locked(me);
    spin_unlock_irq(&me->shared->lock, irqs);
    return got;
}

void signal_mask_begin(sigset_bits mask)
{
    struct signal_thread *me = self();
    me->saved_mask = me->mask;
    me->has_saved_mask = true;
    signal_mask_set(mask);
}

void signal_mask_end(bool is_interrupted)
{
    struct signal_thread *me = self();
    if (is_interrupted || !me->has_saved_mask)
        return; /* signal_deliver.c does it */
    me->has_saved_mask = false;
    signal_mask_set(me->saved_mask);
}

s64 signal_restart_by(s64 (*fn)(struct signal_restart *restart), u64 a, u64 b, u64 c, u64 d, u64 e)
{
    self()->restart = (struct signal_restart){.fn = fn, .args = {a, b, c, d, e}};
    return -ERESTART_RESTARTBLOCK;
}

bool signal_is_ignored(u32 signal)
{
    return signal_is_ignored_by(process_current(), signal);
}

bool signal_is_held_back(u32 signal)
{
    return (self()->mask & signal_bit(signal)) || signal_is_ignored(signal);
}

/* ---- Threads come and go --------------------------------------------------------------------- */

int signal_thread_create(struct thread *thread, struct thread *creator)
{
    struct signal_thread *new = kzalloc(sizeof(*new));
    if (!new)
        return -ENOMEM;
    struct signal_process *shared = thread->process->signals;
    *new =
        (struct signal_thread){.thread = thread, .shared = shared, .stack = {.flags = SS_DISABLE}};
    signal_pending_init(&new->pending);
    list_init(&new->link);
    if (creator) {
        new->mask = creator->signals->mask;
        new->stack = creator->signals->stack;
    }
    bool irqs = spin_lock_irq(&shared->lock);
    thread->signals = new;
    list_add_tail(&shared->threads, &new->link);
    shared->n_threads++;
    if (shared->fatal_signal && thread->task)
        task_kill(thread->task);
    else if (shared->stop_signal)
        signal_wake_locked(new);
    spin_unlock_irq(&shared->lock, irqs);
    return 0;
}

void signal_thread_destroy(struct thread *thread)
{
    struct signal_thread *old = thread->signals;
    if (!old)
        return;
    struct signal_process *shared = old->shared;
    bool irqs = spin_lock_irq(&shared->lock);
    thread->signals = NULL;
    list_del(&old->link);
    shared->n_threads--;
    signal_pending_discard_locked(shared, &old->pending, ~0ul);
    retarget_locked(shared, ~old->mask);
    if (shared->stop_signal) /* was everybody waiting for this one to stop? */
        wait_wake_all(&shared->continued);
    bool was_last = shared->n_threads == 0;
    spin_unlock_irq(&shared->lock, irqs);
    if (was_last)
        itimer_destroy(shared);
    kfree(old);
}
