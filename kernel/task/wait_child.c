/*
 * Waiting for children: wait4(2), waitid(2).
 */
#include "kernel/task/process_internal.h"
#include "lib/errno.h"

static bool is_wanted(const struct process *child, const struct wait_request *request)
{
    if (request->kind == WAIT_FOR_PID && child->pid != request->id)
        return false;
    if (request->kind == WAIT_FOR_GROUP && child->pgid != request->id)
        return false;
    if (request->options & WAIT_ALL_KINDS)
        return true;
    return (child->exit_signal != SIGCHLD) == !!(request->options & WAIT_CLONES);
}

/* => whether its state is one that is asked for; then it is described, and, unless WNOWAIT, told */
static bool report_locked(struct process *child, const struct wait_request *request,
                          struct wait_result *result)
{
    bool keep = request->options & WNOWAIT;
    result->pid = child->pid;
    if (child->state == PROCESS_ZOMBIE && (request->options & WEXITED)) {
        u32 signal = process_status_signal(child->wait_status);
        result->status = child->wait_status;
        result->code = signal ? CLD_KILLED : CLD_EXITED;
        result->code_status = signal ? signal : child->wait_status >> 8;
    } else if (child->stop_unreported && (request->options & WSTOPPED)) {
        result->status = WAIT_STATUS_STOPPED(child->stop_signal);
        result->code = CLD_STOPPED;
        result->code_status = child->stop_signal;
        child->stop_unreported = keep;
    } else if (child->continue_unreported && (request->options & WCONTINUED)) {
        result->status = WAIT_STATUS_CONTINUED;
        result->code = CLD_CONTINUED;
        result->code_status = SIGCONT;
        child->continue_unreported = keep;
    } else {
        return false;
    }
    process_usage_get(child, &result->usage);
    process_usage_add(&result->usage, &child->children_usage);
    return true;
}

/* => the child to report, NULL: none now; *exists: there is one to wait for. process_tree_lock held */
static struct process *look_locked(struct process *parent, const struct wait_request *request,
                                   struct wait_result *result, bool *exists)
{
    struct process *child;
    *exists = false;
    list_for_each (child, &parent->children, sibling) {
        if (!is_wanted(child, request))
            continue;
        *exists = true;
        if (report_locked(child, request, result))
            return child;
    }
    return NULL;
}

/* => the child's pid, 0: none yet, -ECHILD */
static s64 look(struct process *parent, const struct wait_request *request,
                struct wait_result *result)
{
    struct process *reaped = NULL;
    bool exists;
    spin_lock(&process_tree_lock);
    struct process *child = look_locked(parent, request, result, &exists);
    if (child && child->state == PROCESS_ZOMBIE && !(request->options & WNOWAIT)) {
        process_usage_add(&parent->children_usage, &result->usage);
        process_unlink_locked(child);
        reaped = child;
    }
    spin_unlock(&process_tree_lock);
    if (reaped)
        process_put(reaped);
    return child ? (s64)result->pid : exists ? 0 : -ECHILD;
}

s64 process_wait_child(const struct wait_request *request, struct wait_result *result)
{
    struct process *parent = process_current();
    struct waiter w;
    s64 pid;
    int error = 0;

    *result = (struct wait_result){0};
    wait_begin(&parent->children_changed, &w, "a child to change state (%lu)", request->id, 0);
    while ((pid = look(parent, request, result)) == 0 && !(request->options & WNOHANG) && !error)
        error = wait_sleep_interruptible(&w, 0);
    wait_end(&parent->children_changed, &w);
    return pid == 0 && error ? -ERESTARTSYS : pid;
}
