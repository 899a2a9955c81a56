/*
 * The family of processes: what a child's state means to its parent, orphans, and groups without a shell above them.
 */
#include "kernel/task/process_internal.h"

/* ---- Telling the parent ---------------------------------------------------------------------- */

/* => whether the parent wants no zombie. process_tree_lock held */
static bool tell_end_locked(struct process *process)
{
    struct process *parent = process->parent;
    u32 signal = process_status_signal(process->wait_status);
    if (!parent)
        return true;
    bool is_unwanted =
        process->exit_signal != 0 &&
        signal_notify_parent_locked(process, signal ? CLD_KILLED : CLD_EXITED,
                                    signal ? (int)signal : (int)(process->wait_status >> 8));
    wait_wake_all(&parent->children_changed);
    return is_unwanted;
}

void process_note_stopped_locked(struct process *process, u32 signal)
{
    process->stop_signal = signal;
    process->stop_unreported = true;
    process->continue_unreported = false;
    if (!process->parent)
        return;
    (void)signal_notify_parent_locked(process, CLD_STOPPED, (int)signal);
    wait_wake_all(&process->parent->children_changed);
}

void process_note_continued_locked(struct process *process)
{
    process->stop_signal = 0;
    process->stop_unreported = false;
    process->continue_unreported = true;
    if (!process->parent)
        return;
    (void)signal_notify_parent_locked(process, CLD_CONTINUED, SIGCONT);
    wait_wake_all(&process->parent->children_changed);
}

/* ---- Groups that nobody controls ------------------------------------------------------------- */

struct group_search {
    bool is_controlled; /* some member's parent is in the session, but outside the group */
    bool has_stopped;
};

static void look_at_member(struct process *process, void *ctx)
{
    struct group_search *search = ctx;
    const struct process *parent = process->parent;
    search->has_stopped |= process->stop_signal != 0;
    if (process->state != PROCESS_RUNNING || !parent || parent == process_init_one)
        return;
    search->is_controlled |= parent->pgid != process->pgid && parent->sid == process->sid;
}

bool process_group_is_orphaned_locked(u32 pgid)
{
    struct group_search search = {0};
    process_for_each_in_group_locked(pgid, look_at_member, &search);
    return !search.is_controlled;
}

static void wake_stopped_member(struct process *process, void *ctx)
{
    (void)ctx;
    if (process->state != PROCESS_RUNNING)
        return;
    signal_send_process(process, SIGHUP);
    signal_send_process(process, SIGCONT);
}

/* Nobody is left who could continue what is stopped (POSIX, _exit). */
static void release_group_if_orphaned_locked(u32 pgid)
{
    struct group_search search = {0};
    process_for_each_in_group_locked(pgid, look_at_member, &search);
    if (!search.is_controlled && search.has_stopped)
        process_for_each_in_group_locked(pgid, wake_stopped_member, NULL);
}

/* ---- Orphans and zombies --------------------------------------------------------------------- */

/* Did `parent` count for the group of `child`? Only then its end can leave that group to itself. */
static bool is_controlled_by(const struct process *child, const struct process *parent)
{
    return parent && parent->pgid != child->pgid && parent->sid == child->sid;
}

/* The child of `former` goes to init. A zombie that init does not want is on `dead` then. */
static void give_to_init_locked(struct process *child, const struct process *former,
                                struct list *dead)
{
    struct process *init = process_init_one;
    list_del(&child->sibling);
    child->parent = init;
    child->exit_signal =
        SIGCHLD; /* init waits for children of every kind, and knows nothing of __WCLONE */
    if (init)
        list_add_tail(&init->children, &child->sibling);
    if (child->state == PROCESS_ZOMBIE && tell_end_locked(child)) {
        process_unlink_locked(child);
        list_add_tail(dead, &child->sibling);
    } else if (is_controlled_by(child, former)) {
        release_group_if_orphaned_locked(child->pgid);
    }
}

static void give_children_to_init_locked(struct process *process, struct list *dead)
{
    struct process *child, *next;
    if (process == process_init_one)
        process_init_one = NULL;
    list_for_each_safe (child, next, &process->children, sibling)
        give_to_init_locked(child, process, dead);
}

void process_become_zombie(struct process *process)
{
    struct list dead = LIST_INIT(dead);
    struct process *child, *next;

    spin_lock(&process_tree_lock);
    process->wait_status = process->status_of_end;
    WRITE_ONCE(process->state, PROCESS_ZOMBIE);
    process->stop_signal = 0;
    give_children_to_init_locked(process, &dead);
    if (is_controlled_by(process, process->parent))
        release_group_if_orphaned_locked(process->pgid);
    if (tell_end_locked(process)) {
        process_unlink_locked(process);
        list_add_tail(&dead, &process->sibling);
    }
    wait_wake_all(&process->ended); /* who waits has a reference */
    spin_unlock(&process_tree_lock);

    list_for_each_safe (child, next, &dead, sibling) {
        list_del(&child->sibling);
        process_put(child);
    }
}
