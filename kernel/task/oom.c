/*
 * When frames have run out and nothing cached can be taken back: the process with the largest
 * resident set ends.
 *
 * One at a time: from the choice until the victim's memory is back, whoever else runs out waits.
 * The victim gives up its address space before the memory is back, so neither that nor its place in
 * the list of processes tells; a count does.
 *
 * A victim may not be able to end: it sleeps for a lock that one of those who wait here holds while
 * it touches user memory (a pipe's, an inode's). After PATIENCE_NS the next largest ends too, so in
 * the end the one that holds the lock does.
 */
#include "kernel/cpu/clock.h"
#include "kernel/log/log.h"
#include "kernel/sched/sync_point.h"
#include "kernel/sched/wait.h"
#include "kernel/task/process.h"
#include "lib/string.h"

#define DYING_WAIT_NS 1000000ul
#define PATIENCE_NS   3000000000ul /* much longer than the end of a large process takes */

static u32 n_dying; /* victims whose memory is on the way; rises under the list's lock */
static u64 last_kill_ns;

struct search {
    struct process *largest;
    u64 largest_pages;
    u32 pid; /* of the victim, once it is killed */
    char name[TASK_NAME_SIZE];
};

/* Is there a victim whose end may be waited for? */
static bool memory_is_on_its_way(void)
{
    return atomic_load(&n_dying) > 0 && clock_ns() < atomic_load(&last_kill_ns) + PATIENCE_NS;
}

static void consider(struct process *process, void *ctx)
{
    struct search *search = ctx;
    if (!process->mm || process->is_being_killed)
        return;
    u64 pages = atomic_load(&process->mm->rss_anon) + atomic_load(&process->mm->rss_file);
    if (process->is_protected || pages <= search->largest_pages)
        return;
    search->largest = process;
    search->largest_pages = pages;
}

/*
 * The list's lock was let go since the choice: the victim may be gone or a zombie (its memory is
 * back then, and nobody would count it down), or another task may have ended a program meanwhile.
 * What the log is to say is taken down here, where
 * the victim is certainly alive.
 */
static void kill_if_chosen(struct process *process, void *ctx)
{
    struct search *search = ctx;
    if (process != search->largest || !process->mm || process->is_being_killed ||
        memory_is_on_its_way())
        return;
    process->is_being_killed = true;
    atomic_store(&last_kill_ns, clock_ns());
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
    SYNC_POINT(oom_chosen);
    if (memory_is_on_its_way()) {
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
