/*
 * When frames have run out and nothing cached can be taken back: the process with the largest
 * resident set ends.
 *
 * One at a time: from the choice until the victim's memory is back, whoever else runs out waits.
 * The victim leaves the list of processes before its memory goes, so its place in the list does not
 * tell; a count does.
 */
#include "kernel/cpu/clock.h"
#include "kernel/log/log.h"
#include "kernel/sched/wait.h"
#include "kernel/task/process.h"
#include "lib/string.h"

#define DYING_WAIT_NS 1000000ul

static u32 n_dying; /* victims whose memory is on the way; rises under the list's lock */

struct search {
    struct process *largest;
    u64 largest_pages;
    u32 pid; /* of the victim, once it is killed */
    char name[TASK_NAME_SIZE];
};

static void consider(struct process *process, void *ctx)
{
    struct search *search = ctx;
    if (!process->mm)
        return;
    u64 pages = atomic_load(&process->mm->rss_anon) + atomic_load(&process->mm->rss_file);
    if (process->is_protected || pages <= search->largest_pages)
        return;
    search->largest = process;
    search->largest_pages = pages;
}

/*
 * The list's lock was let go since the choice: the victim may be gone (its memory is back then), or
 * another task may have ended a program meanwhile. What the log is to say is taken down here, where
 * the victim is certainly alive.
 */
static void kill_if_chosen(struct process *process, void *ctx)
{
    struct search *search = ctx;
    if (process != search->largest || atomic_load(&n_dying) > 0)
        return;
    process->is_being_killed = true;
    atomic_add(&n_dying, 1);
    search->pid = process->pid;
    strlcpy(search->name, process->name, sizeof(search->name));
    process_kill(process, SIGKILL);
}

void oom_note_gone(struct process *process)
{
    if (process->is_being_killed)
        atomic_sub(&n_dying, 1);
}

bool oom_kill_largest(void)
{
    struct search search = {0};
    process_for_each(consider, &search);
    if (atomic_load(&n_dying) > 0) {
        /* Its memory is on the way, unless it is ours. */
        sleep_until_ns(clock_ns() + DYING_WAIT_NS);
        return !task_kill_is_pending(task_current());
    }
    if (!search.largest)
        return false;
    process_for_each(kill_if_chosen, &search);
    if (search.pid)
        log_warn(
            "out of memory: process %u (%s) is ended by SIGKILL, it has the most memory: %lu KiB",
            search.pid, search.name, search.largest_pages * PAGE_SIZE / 1024);
    return !task_kill_is_pending(task_current());
}
