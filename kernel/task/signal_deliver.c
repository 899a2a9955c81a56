/*
 * On the way back to user mode: the thread acts upon its signals.
 *
 *     signal_user_return ── killed? ends
 *         deliver ─┬─ stop_here        a stopped process waits here, until SIGCONT or a fatal signal
 *                  ├─ take             the next one that is not blocked: own, then the process's
 *                  └─ act              nothing | stop | end | call the handler
 *         restart_call                 a call that a signal interrupted: made again, or EINTR
 *
 * A call is restarted by putting rip back on its SYSCALL instruction (2 bytes) with its number in rax; the other
 * registers are as the program set them. It happens when nothing is left to take, or as the first handler is entered:
 * then the frame on the program's stack holds the restarted state, and the call is made when the handler returns.
 */
#include "kernel/cpu/trap.h"
#include "kernel/task/fatal_report.h"
#include "kernel/task/process.h"
#include "kernel/task/signal.h"
#include "lib/errno.h"

#define SYSCALL_INSTRUCTION_BYTES 2
#define SYSCALL_NUMBER_RESTART    219 /* restart_syscall */

/* ---- Restart --------------------------------------------------------------------------------- */

static bool is_interrupted_call(const struct trap_frame *frame)
{
    s64 result = frame->rax;
    return signal_may_restart_call(frame) &&
           (result == -ERESTARTSYS || result == -ERESTARTNOINTR || result == -ERESTARTNOHAND ||
            result == -ERESTART_RESTARTBLOCK);
}

/* action: of the handler that runs first; NULL: none does. */
static void restart_call(struct trap_frame *frame, const struct signal_action *action)
{
    if (!is_interrupted_call(frame))
        return;
    s64 result = frame->rax;
    bool again = !action || result == -ERESTARTNOINTR ||
                 (result == -ERESTARTSYS && (action->flags & SA_RESTART));
    frame->vector = TRAP_VECTOR_NONE;
    if (!again) {
        frame->rax = (u64)-EINTR;
        return;
    }
    frame->rax = result == -ERESTART_RESTARTBLOCK ? SYSCALL_NUMBER_RESTART : frame->error;
    frame->rip -= SYSCALL_INSTRUCTION_BYTES;
}

/* ---- Stop and continue ----------------------------------------------------------------------- */

static void tell_continued(struct signal_process *shared)
{
    spin_lock(&process_tree_lock);
    bool irqs = spin_lock_irq(&shared->lock);
    bool must_tell = shared->must_tell_continued;
    shared->must_tell_continued = false;
    spin_unlock_irq(&shared->lock, irqs);
    if (must_tell)
        process_note_continued_locked(shared->process);
    spin_unlock(&process_tree_lock);
}

/*
 * The last thread to stop tells the parent. Another CPU's SIGCONT may come at any moment: it only sets a flag, and
 * telling it takes process_tree_lock like this, so the parent hears of the two in their order.
 */
static void tell_stopped(struct signal_process *shared)
{
    spin_lock(&process_tree_lock);
    bool irqs = spin_lock_irq(&shared->lock);
    u32 signal = shared->is_stop_told ? 0 : shared->stop_signal;
    shared->is_stop_told = true;
    spin_unlock_irq(&shared->lock, irqs);
    if (signal)
        process_note_stopped_locked(shared->process, signal);
    spin_unlock(&process_tree_lock);
}

static bool all_have_stopped(struct signal_process *shared)
{
    return READ_ONCE(shared->n_stopped) >= READ_ONCE(shared->n_threads) &&
           !READ_ONCE(shared->is_stop_told);
}

static void count_stopped(struct signal_process *shared, int change)
{
    bool irqs = spin_lock_irq(&shared->lock);
    shared->n_stopped += change;
    spin_unlock_irq(&shared->lock, irqs);
}

static void stop_here(struct signal_process *shared)
{
    struct waiter w;
    int error = 0;
    count_stopped(shared, 1);
    while (!error && READ_ONCE(shared->stop_signal)) {
        if (all_have_stopped(shared))
            tell_stopped(shared);
        wait_begin(&shared->continued, &w, "SIGCONT (stopped by signal %lu)", shared->stop_signal,
                   0);
        wait_may_last(&w);
        while (!error && READ_ONCE(shared->stop_signal) && !all_have_stopped(shared))
            error = wait_sleep_killable(&w, 0);
        wait_end(&shared->continued, &w);
    }
    count_stopped(shared, -1);
}

/* Stops by the terminal are void in a group that nobody could continue. */
static bool may_stop(struct process *process, u32 signal)
{
    if (signal == SIGSTOP)
        return true;
    spin_lock(&process_tree_lock);
    bool is_orphaned = process_group_is_orphaned_locked(process->pgid);
    spin_unlock(&process_tree_lock);
    return !is_orphaned;
}

static void begin_stop(struct signal_thread *me, u32 signal)
{
    struct signal_process *shared = me->shared;
    if (!may_stop(shared->process, signal))
        return;
    bool irqs = spin_lock_irq(&shared->lock);
    bool was_continued = shared->n_continues != me->n_continues_seen;
    if (!shared->stop_signal && !shared->fatal_signal && !was_continued) {
        struct signal_thread *thread;
        shared->stop_signal = signal;
        shared->is_stop_told = false;
        list_for_each (thread, &shared->threads, link) {
            if (thread->thread->task && thread->thread->task != task_current())
                signal_wake_locked(thread);
        }
    }
    spin_unlock_irq(&shared->lock, irqs);
}

/* ---- Acting ---------------------------------------------------------------------------------- */

static sigset_bits mask_during(const struct signal_thread *me, u32 signal,
                               const struct signal_action *action)
{
    sigset_bits mask = me->mask | action->mask;
    return action->flags & SA_NODEFER ? mask : mask | signal_bit(signal);
}

/* A frame that cannot be written ends the process, unless a handler for SIGSEGV has a stack of its own. */
static void frame_failed(struct trap_frame *frame, u32 signal)
{
    if (signal == SIGSEGV) {
        struct signal_action old, none = {.handler = SIGNAL_DEFAULT};
        signal_action_change(SIGSEGV, &none, &old);
    }
    fatal_no_signal_frame(frame);
}

static void call_handler(struct trap_frame *frame, const struct signal_info *info,
                         const struct signal_action *action)
{
    struct signal_thread *me = thread_current()->signals;
    sigset_bits mask_to_restore = me->has_saved_mask ? me->saved_mask : me->mask;
    restart_call(frame, action);
    if (!signal_frame_push(frame, info, action, mask_to_restore)) {
        frame_failed(frame, info->signal);
        return;
    }
    me->has_saved_mask = false;
    signal_mask_set(mask_during(me, info->signal, action));
}

/* The action of a signal that was just taken; SA_RESETHAND works here. */
static struct signal_action take_action(u32 signal)
{
    struct signal_action action = signal_action_get(process_current(), signal);
    if ((action.flags & SA_RESETHAND) && action.handler > SIGNAL_IGNORE) {
        struct signal_action old, reset = action;
        reset.handler = SIGNAL_DEFAULT;
        signal_action_change(signal, &reset, &old);
    }
    return action;
}

/* => whether a handler was entered: enough for now */
static bool act(struct trap_frame *frame, const struct signal_info *info)
{
    struct signal_action action = take_action(info->signal);
    if (action.handler == SIGNAL_IGNORE)
        return false;
    if (action.handler != SIGNAL_DEFAULT) {
        call_handler(frame, info, &action);
        return true;
    }
    if (signal_spares_init(thread_current()->signals->shared, info->signal))
        return false;
    switch (signal_default_of(info->signal)) {
    case SIGNAL_ENDS:
        if (info->code == SI_TKILL && info->from.pid == process_current()->pid)
            fatal_note_own_signal(info->signal, thread_current()->tid);
        process_exit_signal(info->signal);
    case SIGNAL_STOPS: begin_stop(thread_current()->signals, info->signal); return false;
    default: return false;
    }
}

static void end_if_killed(void)
{
    if (task_kill_is_pending(task_current()))
        thread_exit_killed();
}

static void restore_saved_mask(struct signal_thread *me)
{
    if (!me->has_saved_mask)
        return;
    me->has_saved_mask = false;
    signal_mask_set(me->saved_mask);
}

static void deliver(struct trap_frame *frame)
{
    struct signal_thread *me = thread_current()->signals;
    struct signal_info info;
    for (;;) {
        if (READ_ONCE(me->shared->stop_signal))
            stop_here(me->shared);
        end_if_killed();
        if (READ_ONCE(me->shared->must_tell_continued))
            tell_continued(me->shared);
        me->n_continues_seen = READ_ONCE(me->shared->n_continues);
        if (!signal_take(~me->mask, &info))
            break;
        if (act(frame, &info))
            return;
    }
    if (READ_ONCE(me->shared->stop_signal))
        return; /* it came in between: the caller calls again */
    restart_call(frame, NULL);
    restore_saved_mask(me);
}

bool signal_user_return(struct trap_frame *frame)
{
    struct task *task = task_current();
    if (likely(!task_signal_is_pending(task) && !is_interrupted_call(frame) &&
               !task->thread->signals->has_saved_mask))
        return false;
    irq_enable();
    end_if_killed();
    deliver(frame);
    irq_disable();
    return true;
}
