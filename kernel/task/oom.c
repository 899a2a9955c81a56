/*
 * When frames have run out and nothing cached can be taken back: the process with the largest resident set ends.
 */
#include "kernel/cpu/clock.h"
#include "kernel/log/log.h"
#include "kernel/sched/wait.h"
#include "kernel/task/process.h"

#define DYING_WAIT_NS 1000000ul

struct search {
    struct process *largest;
    u64 largest_pages;
    bool somebody_is_dying;
};

static void consider(struct process *process, void *ctx)
{
    struct search *search = ctx;
    if (!process->mm)
        return;
    search->somebody_is_dying |= process->is_being_killed;
    u64 pages = atomic_load(&process->mm->rss_anon) + atomic_load(&process->mm->rss_file);
    if (process->is_protected || pages <= search->largest_pages)
        return;
    search->largest = process;
    search->largest_pages = pages;
}

/* The choice and the kill are made under one hold of the list's lock, so the victim cannot be gone in between. */
static void consider_and_kill(struct process *process, void *ctx)
{
    const struct search *search = ctx;
    if (process != search->largest || search->somebody_is_dying)
        return;
    process->is_being_killed = true;
    process_kill(process, SIGKILL);
}

bool oom_kill_largest(void)
{
    struct search search = {0};
    process_for_each(consider, &search);
    if (search.somebody_is_dying) {
        /* Its memory is on the way, unless it is ours. */
        sleep_until_ns(clock_ns() + DYING_WAIT_NS);
        return !task_kill_is_pending(task_current());
    }
    if (!search.largest)
        return false;
    bool is_me = search.largest == process_current();
    log_warn("out of memory: process %u (%s) is ended by SIGKILL, it has the most memory: %lu KiB",
             search.largest->pid, search.largest->name, search.largest_pages * PAGE_SIZE / 1024);
    process_for_each(consider_and_kill, &search);
    return !is_me;
}
