/*
 * What a terminal asks about processes: struct tty_jobs of fs/tty/tty.h, answered from the tree of
 * processes.
 */
#include "kernel/task/terminal.h"

#include "fs/tty/tty.h"
#include "kernel/task/process.h"
#include "kernel/task/signal.h"

static u32 caller_session(void)
{
    struct process *process = process_current();

    return process ? READ_ONCE(process->sid) : 0;
}

static u32 caller_group(void)
{
    struct process *process = process_current();

    return process ? READ_ONCE(process->pgid) : 0;
}

static bool caller_leads_session(void)
{
    struct process *process = process_current();

    return process && process->sid == process->pid;
}

/* The console's shell must be there when others have taken all that they can get. */
static void protect_caller(void)
{
    struct process *process = process_current();

    if (process)
        process->is_protected = true;
}

static bool caller_ignores(u32 signal)
{
    return signal_is_held_back(signal);
}

static bool group_is_orphaned(u32 group)
{
    spin_lock(&process_tree_lock);
    bool is_orphaned = process_group_is_orphaned_locked(group);

    spin_unlock(&process_tree_lock);
    return is_orphaned;
}

static void take_session(struct process *process, void *ctx)
{
    *(u32 *)ctx = process->sid;
}

static u32 session_of_group(u32 group)
{
    u32 session = 0;

    spin_lock(&process_tree_lock);
    process_for_each_in_group_locked(group, take_session, &session);
    spin_unlock(&process_tree_lock);
    return session;
}

static void signal_group(u32 group, u32 signal)
{
    signal_send_group(group, signal);
}

static const struct tty_jobs jobs = {
    .session = caller_session,
    .group = caller_group,
    .leads_session = caller_leads_session,
    .terminal_taken = protect_caller,
    .ignores = caller_ignores,
    .group_is_orphaned = group_is_orphaned,
    .session_of_group = session_of_group,
    .signal_group = signal_group,
};

static void session_ended(struct process *leader)
{
    tty_session_ended(leader->pid);
}

void terminal_init(void)
{
    tty_set_jobs(&jobs);
    process_session_ended = session_ended;
}
