/*
 * The end of threads and processes.
 *
 *   thread_exit        the thread: what it owes other threads, out of the list
 *   the last one       the process: files, address space; then it is a zombie that only holds its status
 *   wait4              takes the zombie out of the tree (wait_child.c), or nobody wants it: then at once
 *
 * Whoever ends a process (exit_group, a fatal signal) sets is_ending and its status under process->lock and marks the
 * threads killed; the first one to do so decides. Each thread ends by itself, where it leaves the kernel or sleeps killably.
 */
#include "fs/sys/sys.h"
#include "kernel/sched/sync_point.h"
#include "kernel/task/process_internal.h"
#include "kernel/task/signal.h"

/* ---- Accounts -------------------------------------------------------------------------------- */

void process_usage_add(struct process_usage *sum, const struct process_usage *usage)
{
    sum->user_ns += usage->user_ns;
    sum->system_ns += usage->system_ns;
    sum->minor_faults += usage->minor_faults;
    sum->major_faults += usage->major_faults;
    sum->max_rss_pages = MAX(sum->max_rss_pages, usage->max_rss_pages);
}

static void add_task_usage(struct process_usage *sum, const struct task *task)
{
    struct process_usage usage = {.minor_faults = task->faults.shown_minor,
                                  .major_faults = task->faults.shown_major};
    task_times(task, &usage.user_ns, &usage.system_ns);
    process_usage_add(sum, &usage);
}

void process_usage_get(struct process *process, struct process_usage *usage)
{
    const struct thread *thread;
    spin_lock(&process->lock);
    *usage = process->usage;
    list_for_each (thread, &process->threads, link)
        add_task_usage(usage, thread->task);
    spin_unlock(&process->lock);
}

/* ---- Killing --------------------------------------------------------------------------------- */

/* The others of a process end. process->lock held. */
static void kill_others_locked(struct process *process)
{
    struct thread *thread;
    list_for_each (thread, &process->threads, link) {
        if (thread->task != task_current())
            task_kill(thread->task);
    }
}

static void begin_end(struct process *process, u32 wait_status)
{
    spin_lock(&process->lock);
    if (!process->is_ending) {
        process->is_ending = true;
        process->status_of_end = wait_status;
        kill_others_locked(process);
    }
    spin_unlock(&process->lock);
}

void process_kill(struct process *process, u32 signal)
{
    struct thread *thread;
    begin_end(process, WAIT_STATUS_SIGNALED(signal));
    spin_lock(&process->lock);
    list_for_each (thread, &process->threads, link)
        task_kill(thread->task);
    spin_unlock(&process->lock);
}

/* ---- The end of a thread --------------------------------------------------------------------- */

/* Takes the current thread out of its process. => whether it was the last */
static bool leave_process(struct thread *me, u32 wait_status)
{
    struct process *process = me->process;
    spin_lock(&process->lock);
    add_task_usage(&process->usage, me->task);
    list_del(&me->link);
    bool is_last = --process->n_threads == 0;
    if (is_last && !process->is_ending) {
        process->is_ending = true;
        process->status_of_end = wait_status; /* the last one's counts */
    }
    spin_unlock(&process->lock);
    wait_wake_all(&process->thread_gone); /* for exec of the one that is left */
    return is_last;
}

void process_vfork_done(struct process *process)
{
    if (!READ_ONCE(process->is_vfork_child))
        return;
    WRITE_ONCE(process->is_vfork_child, false);
    wait_wake_all(&process->vfork_done);
}

/* What the process holds goes back. Nobody runs in it any more but the current task, which is not in its address space. */
static void give_everything_back(struct process *process)
{
    if (process->is_session_leader && process_session_ended)
        process_session_ended(process);
    spin_lock(&process_tree_lock);
    struct mm *mm = process->mm;
    struct fd_table *files = process->files;
    struct fs_context *fs = process->fs;
    process->mm = NULL; /* /proc looks at the rest only while this is there */
    process->files = NULL;
    process->fs = NULL;
    process->usage.max_rss_pages = MAX(process->usage.max_rss_pages, mm_rss_peak(mm));
    spin_unlock(&process_tree_lock);
    sysfs_process_ended(process);
    fd_table_put(files);
    fs_context_put(fs);
    SYNC_POINT(process_memory_goes);
    mm_put(mm);
    oom_note_gone(process);
    process_vfork_done(process);
    process->final_faults = task_current()->faults;
}

NORETURN static void end_thread(u32 wait_status)
{
    struct task *task = task_current();
    struct thread *me = task->thread;
    struct process *process = me->process;

    futex_thread_exit(me);
    signal_thread_destroy(me); /* what was sent to the process goes to another thread */
    process_switch_mm(NULL);
    thread_uncount();
    if (leave_process(me, wait_status)) {
        give_everything_back(process);
        process_become_zombie(process);
    }
    bool irqs = irq_save_disable();
    task->process = NULL;
    task->thread = NULL;
    irq_restore(irqs);
    thread_free_fpu_area(
        task); /* here, since the thread's last reference may be dropped while this task still runs */
    thread_put(me);
    task_exit(0);
}

void thread_exit(u32 status)
{
    end_thread(WAIT_STATUS_EXITED(status));
}

void process_exit(u32 status)
{
    begin_end(process_current(), WAIT_STATUS_EXITED(status));
    end_thread(WAIT_STATUS_EXITED(status));
}

void process_exit_signal(u32 signal)
{
    begin_end(process_current(), WAIT_STATUS_SIGNALED(signal));
    end_thread(WAIT_STATUS_SIGNALED(signal));
}

void thread_exit_killed(void)
{
    u32 signal = signal_fatal_number();
    if (signal)
        process_exit_signal(signal);
    end_thread(WAIT_STATUS_SIGNALED(SIGKILL));
}
