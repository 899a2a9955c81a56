/*
 * What a process does about each signal, and how that passes through fork, exec and exit.
 *
 * process->signal_actions changes only in exec, under process_tree_lock (children that end look at their parent's) and
 * signal_process.lock; its contents are guarded by its own lock, since processes may share them (CLONE_SIGHAND without
 * CLONE_THREAD).
 */
#include "kernel/cpu/clock.h"
#include "kernel/sync/atomic.h"
#include "kernel/task/process.h"
#include "kernel/task/signal.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"

static LOCK_CLASS(signal_class, "signals");
/* A parent's, while a child's end is told: process_tree_lock orders them, and no two are held at once. */
static LOCK_CLASS(actions_class, "signal actions");

/* ---- Reading and changing -------------------------------------------------------------------- */

enum signal_default signal_default_of(u32 signal)
{
    switch (signal) {
    case SIGCHLD:
    case SIGURG:
    case SIGWINCH: return SIGNAL_IS_IGNORED;
    case SIGCONT: return SIGNAL_CONTINUES;
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU: return SIGNAL_STOPS;
    default: return SIGNAL_ENDS;
    }
}

static bool ignores(const struct signal_action *action, u32 signal)
{
    if (action->handler != SIGNAL_DEFAULT)
        return action->handler == SIGNAL_IGNORE;
    enum signal_default what = signal_default_of(signal);
    return what == SIGNAL_IS_IGNORED || what == SIGNAL_CONTINUES;
}

struct signal_action signal_action_get(struct process *process, u32 signal)
{
    struct signal_actions *actions = process->signal_actions;
    bool irqs = spin_lock_irq(&actions->lock);
    struct signal_action action = actions->action[signal];
    spin_unlock_irq(&actions->lock, irqs);
    return action;
}

bool signal_is_ignored_by(struct process *process, u32 signal)
{
    struct signal_action action = signal_action_get(process, signal);
    return ignores(&action, signal);
}

static void discard_locked(struct signal_process *shared, u32 signal)
{
    struct signal_thread *thread;
    signal_pending_discard_locked(shared, &shared->pending, signal_bit(signal));
    list_for_each (thread, &shared->threads, link)
        signal_pending_discard_locked(shared, &thread->pending, signal_bit(signal));
}

void signal_action_change(u32 signal, const struct signal_action *new, struct signal_action *old)
{
    struct process *process = process_current();
    struct signal_process *shared = process->signals;
    struct signal_actions *actions = process->signal_actions;
    bool irqs = spin_lock_irq(&shared->lock);
    spin_lock(&actions->lock);
    *old = actions->action[signal];
    if (new)
        actions->action[signal] = *new;
    spin_unlock(&actions->lock);
    if (new &&ignores(new, signal))
        discard_locked(shared, signal);
    spin_unlock_irq(&shared->lock, irqs);
}

/* ---- Processes come and go ------------------------------------------------------------------- */

static struct signal_actions *actions_create(struct signal_actions *from)
{
    struct signal_actions *actions = kzalloc(sizeof(*actions));
    if (!actions)
        return NULL;
    spin_init(&actions->lock, &actions_class);
    actions->refs = 1;
    if (!from)
        return actions;
    bool irqs = spin_lock_irq(&from->lock);
    memcpy(actions->action, from->action, sizeof(actions->action));
    spin_unlock_irq(&from->lock, irqs);
    return actions;
}

static void actions_put(struct signal_actions *actions)
{
    if (actions && atomic_sub(&actions->refs, 1) == 0)
        kfree(actions);
}

static struct signal_process *shared_create(struct process *process)
{
    struct signal_process *shared = kzalloc(sizeof(*shared));
    if (!shared)
        return NULL;
    shared->process = process;
    spin_init(&shared->lock, &signal_class);
    list_init(&shared->threads);
    signal_pending_init(&shared->pending);
    wait_queue_init(&shared->continued);
    itimer_init(shared);
    return shared;
}

int signal_process_create(struct process *process, struct process *parent, bool share_actions)
{
    struct signal_actions *actions = parent ? parent->signal_actions : NULL;
    if (parent && share_actions)
        atomic_add(&actions->refs, 1);
    else
        actions = actions_create(actions);
    struct signal_process *shared = actions ? shared_create(process) : NULL;
    if (!shared) {
        actions_put(actions);
        return -ENOMEM;
    }
    process->signal_actions = actions;
    process->signals = shared;
    return 0;
}

void signal_process_destroy(struct process *process)
{
    struct signal_process *shared = process->signals;
    if (!shared)
        return;
    itimer_destroy(shared);
    bool irqs = spin_lock_irq(&shared->lock);
    signal_pending_discard_locked(shared, &shared->pending, ~0ul);
    spin_unlock_irq(&shared->lock, irqs);
    actions_put(process->signal_actions);
    process->signal_actions = NULL;
    process->signals = NULL;
    kfree(shared);
}

/* Handlers are in the old program; what was ignored stays so (execve(2)). */
static void reset_handlers(struct signal_actions *actions)
{
    bool irqs = spin_lock_irq(&actions->lock);
    for (u32 signal = 1; signal <= SIGNAL_MAX; signal++) {
        u64 handler =
            actions->action[signal].handler == SIGNAL_IGNORE ? SIGNAL_IGNORE : SIGNAL_DEFAULT;
        actions->action[signal] = (struct signal_action){.handler = handler};
    }
    spin_unlock_irq(&actions->lock, irqs);
}

int signal_process_exec(struct process *process)
{
    struct signal_process *shared = process->signals;
    struct signal_actions *old = process->signal_actions, *own = old;
    if (READ_ONCE(old->refs) > 1) {
        own = actions_create(old);
        if (!own)
            return -ENOMEM;
        spin_lock(&process_tree_lock);
        bool irqs = spin_lock_irq(&shared->lock);
        process->signal_actions = own;
        spin_unlock_irq(&shared->lock, irqs);
        spin_unlock(&process_tree_lock);
        actions_put(old);
    }
    reset_handlers(own);
    posix_timers_destroy(shared);
    thread_current()->signals->stack = (struct signal_stack){.flags = SS_DISABLE};
    thread_current()->signals->has_saved_mask = false;
    return 0;
}

/* ---- SIGCHLD --------------------------------------------------------------------------------- */

#define NS_PER_CLOCK_TICK 10000000ul

bool signal_notify_parent_locked(struct process *process, int code, int status)
{
    bool is_end = code == CLD_EXITED || code == CLD_KILLED || code == CLD_DUMPED;
    u32 signal = is_end ? process->exit_signal : SIGCHLD;
    struct process *parent = process->parent;
    if (!parent || !signal)
        return false;
    struct signal_info info = {
        .signal = signal,
        .code = code,
        .child = {.pid = process->pid,
                  .status = status,
                  .user_ticks = process->usage.user_ns / NS_PER_CLOCK_TICK,
                  .system_ticks = process->usage.system_ns / NS_PER_CLOCK_TICK}};
    struct signal_action action = signal_action_get(parent, SIGCHLD);
    bool wants_no_zombie = is_end && signal == SIGCHLD &&
                           (action.handler == SIGNAL_IGNORE || (action.flags & SA_NOCLDWAIT));
    bool is_silent = signal == SIGCHLD && (action.handler == SIGNAL_IGNORE ||
                                           (!is_end && (action.flags & SA_NOCLDSTOP)));
    if (!is_silent)
        (void)signal_send_process_info(parent, &info); /* SIGCHLD needs no room */
    return wants_no_zombie;
}
