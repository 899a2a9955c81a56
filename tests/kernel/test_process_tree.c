/*
 * The family of processes, with processes that run no program: what wait sees, who adopts whom, which groups are
 * orphaned. The test's thread takes the place of a parent's thread while it waits.
 */
#include "kernel/task/process_internal.h"
#include "kernel/task/signal.h"
#include "lib/errno.h"
#include "tests/kernel/ktest.h"

#define FIRST_PID 900000u

/* A process without threads, memory or files. The tree's reference is the caller's too. */
static struct process *add_process(u32 number, struct process *parent)
{
    struct process *process = process_alloc("test");
    if (!process)
        return NULL;
    if (signal_process_create(process, NULL, false)) {
        process_put(process);
        return NULL;
    }
    process->pid = process->pgid = FIRST_PID + number;
    process->sid = parent ? parent->sid : process->pid;
    spin_lock(&process_tree_lock);
    process_link_locked(process, parent);
    spin_unlock(&process_tree_lock);
    return process;
}

static void end_process(struct process *process, u32 wait_status)
{
    process->status_of_end = wait_status;
    process_become_zombie(process);
}

/* Nobody waits for it: it has no parent. */
static void remove_process(struct process *process)
{
    end_process(process, 0);
}

static s64 wait_as(struct process *parent, u32 kind, u32 id, u32 options,
                   struct wait_result *result)
{
    const struct wait_request request = {kind, id, options};
    task_current()->process = parent;
    s64 pid = process_wait_child(&request, result);
    task_current()->process = NULL;
    return pid;
}

KTEST(process_tree, a_zombie_is_told_once_and_goes)
{
    struct wait_result result;
    struct process *parent = add_process(0, NULL), *child = add_process(1, parent);
    KASSERT(parent && child);
    KEXPECT_EQ(wait_as(parent, WAIT_FOR_ANY, 0, WEXITED | WNOHANG, &result), 0);
    child->usage.user_ns = 500;
    end_process(child, WAIT_STATUS_EXITED(3));
    KEXPECT_EQ(wait_as(parent, WAIT_FOR_PID, FIRST_PID + 2, WEXITED, &result), -ECHILD);
    KEXPECT_EQ(wait_as(parent, WAIT_FOR_ANY, 0, WEXITED | WNOWAIT, &result), FIRST_PID + 1);
    KEXPECT_EQ(wait_as(parent, WAIT_FOR_ANY, 0, WEXITED, &result), FIRST_PID + 1);
    KEXPECT_EQ(result.status, 3 << 8);
    KEXPECT_EQ(result.code, CLD_EXITED);
    KEXPECT_EQ(result.code_status, 3);
    KEXPECT_EQ(parent->children_usage.user_ns, 500);
    KEXPECT_EQ(wait_as(parent, WAIT_FOR_ANY, 0, WEXITED, &result), -ECHILD);
    KEXPECT(process_find(FIRST_PID + 1) == NULL);
    remove_process(parent);
}

KTEST(process_tree, wait_chooses_by_pid_and_group)
{
    struct wait_result result;
    struct process *parent = add_process(0, NULL), *a = add_process(1, parent),
                   *b = add_process(2, parent);
    KASSERT(parent && a && b);
    end_process(a, WAIT_STATUS_SIGNALED(SIGTERM));
    KEXPECT_EQ(wait_as(parent, WAIT_FOR_PID, b->pid, WEXITED | WNOHANG, &result), 0);
    KEXPECT_EQ(wait_as(parent, WAIT_FOR_GROUP, b->pgid, WEXITED | WNOHANG, &result), 0);
    KEXPECT_EQ(wait_as(parent, WAIT_FOR_GROUP, a->pgid, WEXITED | WNOHANG, &result), FIRST_PID + 1);
    KEXPECT_EQ(result.code, CLD_KILLED);
    KEXPECT_EQ(result.code_status, SIGTERM);
    end_process(b, 0);
    KEXPECT_EQ(wait_as(parent, WAIT_FOR_GROUP, FIRST_PID + 2, WEXITED, &result), FIRST_PID + 2);
    remove_process(parent);
}

KTEST(process_tree, stops_and_continues_are_told_once_each)
{
    struct wait_result result;
    struct process *parent = add_process(0, NULL), *child = add_process(1, parent);
    KASSERT(parent && child);
    spin_lock(&process_tree_lock);
    process_note_stopped_locked(child, SIGTSTP);
    spin_unlock(&process_tree_lock);
    KEXPECT_EQ(wait_as(parent, WAIT_FOR_ANY, 0, WEXITED | WNOHANG, &result), 0);
    KEXPECT_EQ(wait_as(parent, WAIT_FOR_ANY, 0, WSTOPPED, &result), FIRST_PID + 1);
    KEXPECT_EQ(result.status, WAIT_STATUS_STOPPED(SIGTSTP));
    KEXPECT_EQ(wait_as(parent, WAIT_FOR_ANY, 0, WSTOPPED | WNOHANG, &result), 0);
    spin_lock(&process_tree_lock);
    process_note_continued_locked(child);
    spin_unlock(&process_tree_lock);
    KEXPECT_EQ(wait_as(parent, WAIT_FOR_ANY, 0, WSTOPPED | WNOHANG, &result), 0);
    KEXPECT_EQ(wait_as(parent, WAIT_FOR_ANY, 0, WCONTINUED, &result), FIRST_PID + 1);
    KEXPECT_EQ(result.status, WAIT_STATUS_CONTINUED);
    KEXPECT_EQ(wait_as(parent, WAIT_FOR_ANY, 0, WCONTINUED | WNOHANG, &result), 0);
    end_process(child, 0);
    KEXPECT_EQ(wait_as(parent, WAIT_FOR_ANY, 0, WEXITED, &result), FIRST_PID + 1);
    remove_process(parent);
}

KTEST(process_tree, orphans_go_to_init)
{
    struct wait_result result;
    struct process *init = add_process(0, NULL), *parent = add_process(1, init);
    struct process *runs = add_process(2, parent), *is_zombie = add_process(3, parent);
    KASSERT(init && parent && runs && is_zombie);
    struct process *before = process_init_one;
    process_init_one = init;
    end_process(is_zombie, WAIT_STATUS_EXITED(1));
    end_process(parent, WAIT_STATUS_EXITED(2));
    KEXPECT(runs->parent == init);
    KEXPECT(is_zombie->parent == init);
    KEXPECT_EQ(wait_as(init, WAIT_FOR_PID, FIRST_PID + 3, WEXITED, &result), FIRST_PID + 3);
    KEXPECT_EQ(wait_as(init, WAIT_FOR_PID, FIRST_PID + 1, WEXITED, &result), FIRST_PID + 1);
    end_process(runs, 0);
    KEXPECT_EQ(wait_as(init, WAIT_FOR_ANY, 0, WEXITED, &result), FIRST_PID + 2);
    process_init_one = before;
    remove_process(init);
}

KTEST(process_tree, without_init_orphans_vanish)
{
    struct process *parent = add_process(0, NULL), *child = add_process(1, parent);
    KASSERT(parent && child);
    struct process *before = process_init_one;
    process_init_one = NULL;
    end_process(child, 0);
    end_process(parent, 0);
    KEXPECT(process_find(FIRST_PID) == NULL);
    KEXPECT(process_find(FIRST_PID + 1) == NULL);
    process_init_one = before;
}

KTEST(process_tree, a_group_is_orphaned_without_a_parent_in_its_session)
{
    struct wait_result result;
    struct process *shell = add_process(0, NULL), *job = add_process(1, shell);
    KASSERT(shell && job);
    spin_lock(&process_tree_lock);
    KEXPECT(process_group_is_orphaned_locked(shell->pgid));
    KEXPECT(!process_group_is_orphaned_locked(job->pgid));
    job->sid = job->pid; /* setsid */
    KEXPECT(process_group_is_orphaned_locked(job->pgid));
    job->sid = shell->sid;
    job->pgid = shell->pgid;
    KEXPECT(process_group_is_orphaned_locked(job->pgid));
    spin_unlock(&process_tree_lock);
    end_process(job, 0);
    KEXPECT_EQ(wait_as(shell, WAIT_FOR_ANY, 0, WEXITED, &result), FIRST_PID + 1);
    remove_process(shell);
}

/* A stopped process that runs no program. */
static void stop_process(struct process *process)
{
    spin_lock(&process_tree_lock);
    process_note_stopped_locked(process, SIGSTOP);
    spin_unlock(&process_tree_lock);
}

static bool has_hangup_pending(const struct process *process)
{
    return process->signals->pending.set & signal_bit(SIGHUP);
}

KTEST(process_tree, only_the_group_that_an_end_leaves_to_itself_is_hung_up)
{
    struct process *before = process_init_one;
    struct process *shell = add_process(0, NULL), *job = add_process(1, shell);
    struct process *daemon = add_process(2, shell);
    KASSERT(shell && job && daemon);
    process_init_one = NULL;
    daemon->sid = daemon->pid; /* of a session of its own: nobody's job */
    stop_process(job);
    stop_process(daemon);
    end_process(shell, 0);
    KEXPECT(has_hangup_pending(job));
    KEXPECT(!has_hangup_pending(daemon));
    remove_process(job);
    remove_process(daemon);
    process_init_one = before;
}

KTEST(process_tree, other_kinds_of_children_are_asked_for)
{
    struct wait_result result;
    struct process *parent = add_process(0, NULL), *child = add_process(1, parent);
    KASSERT(parent && child);
    child->exit_signal = 0;
    end_process(child, 0);
    KEXPECT_EQ(wait_as(parent, WAIT_FOR_ANY, 0, WEXITED, &result), -ECHILD);
    KEXPECT_EQ(wait_as(parent, WAIT_FOR_ANY, 0, WEXITED | WNOWAIT | (u32)WAIT_CLONES, &result),
               FIRST_PID + 1);
    KEXPECT_EQ(wait_as(parent, WAIT_FOR_ANY, 0, WEXITED | WAIT_ALL_KINDS, &result), FIRST_PID + 1);
    remove_process(parent);
}
