/*
 * Programs that make many processes, threads and messages leave nothing behind: all frames and all
 * slab objects are back at their numbers from before.
 *
 * Suite leftovers: short ones. Suite leftovers_long: the numbers of the promise, which take
 * minutes; it runs only when it is asked for by its name.
 */
#include "kernel/cmdline.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/programs.h"

#define NO_ROOT        "no root file system with the test programs"
#define FRAMES_FOR_64M 40000 /* in all: a program of 64 MiB, and room beside it */
#define LONG_SUITE     "leftovers_long"
#define FEW_FRAMES     "not enough memory"
#define ONLY_ASKED_FOR "takes minutes: ktest=" LONG_SUITE

/* One run of a program. => its status */
static int run(const char *path, const char *a, const char *b)
{
    int error, status;
    struct process *process = program_start(path, a, b, NULL, false, &error);

    if (!process)
        return error;
    status = program_end(process);
    process_put(process);
    return status;
}

/*
 * Once for what is read and stays: the program's file, the path to it. Then what the next run
 * changes is what it leaves behind.
 */
static void expect_nothing_left(const char *path, const char *a, const char *b)
{
    u64 frames, objects;

    KEXPECT_EQ(run(path, a, b), 0);
    frames = program_frames();
    objects = program_objects();
    KEXPECT_EQ(run(path, a, b), 0);
    KEXPECT_EQ(program_objects(), objects);
    KEXPECT_EQ(program_frames(), frames);
}

static bool is_asked_for(void)
{
    return cmdline.ktest && strncmp(cmdline.ktest, LONG_SUITE, strlen(LONG_SUITE)) == 0;
}

KTEST(leftovers, none_of_forks_of_a_large_process)
{
    if (!program_exists("/tests/forktree"))
        KTEST_SKIP(NO_ROOT);
    if (frames_total() < FRAMES_FOR_64M)
        KTEST_SKIP(FEW_FRAMES);
    expect_nothing_left("/tests/forktree", "big", "3");
}

KTEST(leftovers, none_of_threads)
{
    if (!program_exists("/tests/swarm"))
        KTEST_SKIP(NO_ROOT);
    expect_nothing_left("/tests/swarm", "100", NULL);
}

KTEST(leftovers, none_of_a_fork_bomb_under_a_limit)
{
    if (!program_exists("/tests/forktree"))
        KTEST_SKIP(NO_ROOT);
    expect_nothing_left("/tests/forktree", "bomb", NULL);
}

KTEST(leftovers, none_of_messages_through_pipes)
{
    if (!program_exists("/tests/messages"))
        KTEST_SKIP(NO_ROOT);
    expect_nothing_left("/tests/messages", "300", NULL);
}

KTEST(leftovers, none_of_a_harness)
{
    if (!program_exists("/tests/harness_walk"))
        KTEST_SKIP(NO_ROOT);
    expect_nothing_left("/tests/harness_walk", NULL, NULL);
}

KTEST(leftovers_long, none_of_a_thousand_forks_of_64_mib)
{
    if (!is_asked_for())
        KTEST_SKIP(ONLY_ASKED_FOR);
    expect_nothing_left("/tests/forktree", "big", "1000");
}

KTEST(leftovers_long, none_of_500_threads)
{
    if (!is_asked_for())
        KTEST_SKIP(ONLY_ASKED_FOR);
    expect_nothing_left("/tests/swarm", "500", NULL);
}

KTEST(leftovers_long, none_of_10000_messages)
{
    if (!is_asked_for())
        KTEST_SKIP(ONLY_ASKED_FOR);
    expect_nothing_left("/tests/messages", "10000", NULL);
}
