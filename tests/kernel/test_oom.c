/*
 * When memory has run out: who ends, who goes on, and what is counted and said.
 *
 * Memory is made short by raising the frame allocator's reserve, so that the machine's size does
 * not matter.
 */
#include "kernel/cpu/clock.h"
#include "kernel/log/log.h"
#include "kernel/sched/sync_point.h"
#include "kernel/task/process_internal.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/reclaim.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/programs.h"

#define NO_HOG             "no root file system with /tests/hog"
#define LEFT_FRAMES        1500ul    /* for the programs of one test */
#define TOO_MANY           "1000000" /* pages that no machine of the tests has left */
#define POLL_NS            200000ul
#define VICTIM_PATIENCE_NS 3000000000ul /* of kernel/task/oom.c */

/* ---- How often the log has said it ---- */

static u32 n_lines;

static void count_lines(struct log_sink *sink, const char *text, size_t len, bool panicking)
{
    static const char wanted[] = "is ended by SIGKILL";

    (void)sink, (void)panicking;
    for (size_t i = 0; i + sizeof(wanted) <= len; i++)
        if (memcmp(text + i, wanted, sizeof(wanted) - 1) == 0)
            atomic_add(&n_lines, 1);
}

static u32 log_lines(void)
{
    return atomic_load(&n_lines);
}

/* ---- Making memory short ---- */

static u64 old_reserve, frames_before;

/* => false: skipped */
static bool begin(void)
{
    static struct log_sink sink = {.write = count_lines};
    static bool is_listening;

    if (!program_exists("/tests/hog")) {
        ktest_skip(NO_HOG);
        return false;
    }
    if (frames_free_count() < 2 * LEFT_FRAMES) {
        ktest_skip("less than 12 MiB free");
        return false;
    }
    if (!is_listening)
        log_add_sink(&sink);
    is_listening = true;
    inode_cache_shrink();
    reclaim_pages(~0ul);
    frames_drain_cpu_lists();
    frames_before = program_frames();
    old_reserve = frames_set_reserve(frames_free_count() - LEFT_FRAMES);
    return true;
}

/* All that the programs had must be back. Cached files may have come or gone, with inodes and tree
 * nodes: slabs count. */
static void end(void)
{
    frames_set_reserve(old_reserve);
    KEXPECT_EQ(program_frames(), frames_before);
}

static struct process *start(const char *mode, const char *argument, bool is_protected)
{
    int error;
    struct process *process =
        program_start("/tests/hog", mode, argument, NULL, is_protected, &error);

    if (!process)
        ktest_fail(__FILE__, __LINE__, "hog %s %s: error %d", mode, argument, error);
    return process;
}

/* Until the program has so many pages. */
static bool wait_for_pages(struct process *process, u64 pages)
{
    while (!process_has_ended(process)) {
        struct mm *mm = READ_ONCE(process->mm);

        if (mm && atomic_load(&mm->rss_anon) >= pages)
            return true;
        sleep_until_ns(clock_ns() + POLL_NS);
    }
    return KEXPECT(!process_has_ended(process));
}

KTEST(oom, program_that_takes_too_much_is_ended_and_everything_comes_back)
{
    u32 lines = log_lines();

    if (!begin())
        return;
    struct process *hog = start("grow", TOO_MANY, false);
    if (hog) {
        KEXPECT_EQ(program_end(hog), 128 + SIGKILL);
        KEXPECT_EQ(hog->final_faults.oom,
                   1); /* its own fault found no memory, and it was the largest */
        KEXPECT_EQ(hog->final_faults.killed, 0);
        KEXPECT(hog->final_faults.minor + hog->final_faults.major > LEFT_FRAMES / 2);
        process_put(hog);
    }
    KEXPECT_EQ(log_lines(), lines + 1);
    end();
}

KTEST(oom, protected_program_goes_on_while_the_largest_other_is_ended)
{
    u32 lines = log_lines();

    if (!begin())
        return;
    struct process *small = start("hold", "50", false);
    struct process *hog = start("hold", "700", false);
    if (small && hog && wait_for_pages(small, 50) && wait_for_pages(hog, 700)) {
        struct process *init = start("grow", "1100", true); /* more than the hog: yet it stays */
        if (init) {
            KEXPECT_EQ(program_end(init), 0);
            KEXPECT_EQ(init->final_faults.oom, 0);
            KEXPECT(init->final_faults.retries >= 1);
            process_put(init);
        }
        KEXPECT(process_has_ended(hog));
        KEXPECT(!process_has_ended(small));
        KEXPECT_EQ(log_lines(), lines + 1);
    }
    if (hog) {
        if (!process_has_ended(hog))
            task_kill(hog->task);
        KEXPECT_EQ(program_end(hog), 128 + SIGKILL);
        KEXPECT_EQ(hog->final_faults.oom, 0); /* it only slept */
        process_put(hog);
    }
    if (small) {
        task_kill(small->task);
        KEXPECT_EQ(program_end(small), 128 + SIGKILL);
        process_put(small);
    }
    end();
}

KTEST(oom, nobody_else_is_ended_while_the_memory_of_a_victim_is_on_its_way)
{
    u32 lines = log_lines();

    if (!begin())
        return;
    struct process *small = start("hold", "50", false);
    struct process *hog = start("hold", "700", false);
    if (small && hog && wait_for_pages(small, 50) && wait_for_pages(hog, 700)) {
        sync_point_arm("process_memory_goes", NULL);
        struct process *init = start("grow", "1100", true);
        sync_point_wait_parked(
            "process_memory_goes");            /* the hog, no longer in the list of processes */
        sleep_until_ns(clock_ns() + 20000000); /* init asks again and again */
        KEXPECT(!process_has_ended(init));
        KEXPECT(!process_has_ended(small));
        sync_point_reset();
        KEXPECT_EQ(program_end(init), 0);
        KEXPECT_EQ(init->final_faults.oom, 0);
        process_put(init);
        KEXPECT(!process_has_ended(small));
        KEXPECT_EQ(log_lines(), lines + 1);
    }
    if (hog) {
        KEXPECT_EQ(program_end(hog), 128 + SIGKILL);
        process_put(hog);
    }
    if (small) {
        task_kill(small->task);
        KEXPECT_EQ(program_end(small), 128 + SIGKILL);
        process_put(small);
    }
    end();
}

KTEST(oom, read_into_new_memory_goes_on_when_a_victim_has_ended)
{
    u32 lines = log_lines();
    int error;

    if (!begin())
        return;
    struct process *hog = start("hold", "700", false);
    if (hog && wait_for_pages(hog, 700)) {
        struct process *init =
            program_start("/tests/hog", "read", "/data/small.txt", "1100", true, &error);
        if (KEXPECT(init != NULL)) {
            KEXPECT_EQ(program_end(init), 0); /* no EFAULT, no short count */
            KEXPECT_EQ(init->final_faults.oom, 0);
            process_put(init);
        }
        KEXPECT_EQ(log_lines(), lines + 1);
    }
    if (hog) {
        KEXPECT_EQ(program_end(hog), 128 + SIGKILL);
        process_put(hog);
    }
    end();
}

KTEST(oom, protected_program_without_a_victim_ends_by_its_own_fault)
{
    u32 lines = log_lines();

    if (!begin())
        return;
    struct process *init = start("grow", TOO_MANY, true);
    if (init) {
        KEXPECT_EQ(program_end(init), 128 + SIGKILL);
        KEXPECT_EQ(init->final_faults.oom, 1);
        process_put(init);
    }
    KEXPECT_EQ(log_lines(), lines);
    end();
}

/* A child of nobody's program: it stays a zombie until take_zombie(). => its parent, or NULL */
static struct process *give_parent(struct process *child)
{
    struct process *parent = process_alloc("parent");

    if (!parent || signal_process_create(parent, NULL, false))
        return NULL;
    spin_lock(&process_tree_lock);
    child->parent = parent;
    list_add_tail(&parent->children, &child->sibling);
    spin_unlock(&process_tree_lock);
    return parent;
}

static void take_zombie(struct process *parent)
{
    const struct wait_request request = {.kind = WAIT_FOR_ANY, .options = WEXITED};
    struct wait_result result;
    struct process *before = task_current()->process;

    task_current()->process = parent;
    KEXPECT(process_wait_child(&request, &result) > 0);
    task_current()->process = before;
    process_put(parent);
}

KTEST(oom, choice_that_has_become_a_zombie_is_not_waited_for)
{
    u32 lines = log_lines();

    if (!begin())
        return;
    struct process *hog = start("hold", "700", false);
    struct process *parent = hog ? give_parent(hog) : NULL;
    if (parent && wait_for_pages(hog, 700)) {
        sync_point_arm("oom_chosen", NULL);
        struct process *init = start("grow", "1100", true);
        sync_point_wait_parked("oom_chosen"); /* init has chosen the hog */
        task_kill(hog->task);
        KEXPECT_EQ(program_end(hog), 128 + SIGKILL);
        process_put(hog);
        sync_point_reset();
        KEXPECT_EQ(program_end(init), 0);
        process_put(init);
        KEXPECT_EQ(log_lines(), lines); /* the zombie had no memory to give */
        u64 began_ns = clock_ns();
        init = start("grow", TOO_MANY, true); /* without a victim it ends at once */
        KEXPECT_EQ(program_end(init), 128 + SIGKILL);
        process_put(init);
        KEXPECT(clock_ns() - began_ns < VICTIM_PATIENCE_NS);
        take_zombie(parent);
    }
    end();
}

KTEST(oom, victim_that_cannot_end_is_followed_by_the_next)
{
    u32 lines = log_lines();

    if (!begin())
        return;
    struct process *second = start("hold", "500", false);
    struct process *hog = start("hold", "700", false);
    if (second && hog && wait_for_pages(second, 500) && wait_for_pages(hog, 700)) {
        sync_point_arm("process_memory_goes", hog->task); /* it keeps its memory */
        struct process *init = start("grow", "600", true);
        if (init) {
            KEXPECT_EQ(program_end(init), 0);
            process_put(init);
        }
        KEXPECT(process_has_ended(second));
        KEXPECT(!process_has_ended(hog));
        KEXPECT_EQ(log_lines(), lines + 2);
        sync_point_reset();
    }
    if (hog) {
        KEXPECT_EQ(program_end(hog), 128 + SIGKILL);
        process_put(hog);
    }
    if (second) {
        KEXPECT_EQ(program_end(second), 128 + SIGKILL);
        process_put(second);
    }
    end();
}
