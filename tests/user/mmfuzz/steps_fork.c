/*
 * Processes that share pages: a child that does a few steps, and one that goes on in its parent's
 * place.
 */
#include "tests/user/mmfuzz/fuzz.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_DEPTH   2
#define CHILD_STEPS 5UL

static int depth;

static void wait_for(pid_t child)
{
    int status = 0;

    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        log_add("  child ended by signal %d\n", WTERMSIG(status));
    else
        log_add("  child ended with %d\n", WEXITSTATUS(status));
}

/* The child's memory as it begins, some steps in it, and the parent's afterwards. */
void step_fork_child(void)
{
    unsigned long steps = below(CHILD_STEPS);
    bool looks_first = chance(50);
    uint64_t seed = choose_number();
    pid_t child;

    log_add("fork(%lu steps)\n", steps);
    child = fork();
    if (child == 0) {
        everything_locked = true; /* a child has no locks; what it locks itself is not told */
        state_log_maps(true);
        if (looks_first)
            state_log_memory();
        for (unsigned step = 0; step < steps; step++) {
            choose_start(seed, step);
            log_add("  child: ");
            step_run_simple();
        }
        state_log_memory();
        _exit((int)(seed & 63));
    }
    wait_for(child);
    state_log_maps(true);
}

/* The child goes on with the sequence; the parent waits for its end, and shows what it has itself. */
void step_fork_on(void)
{
    pid_t child;

    if (depth == MAX_DEPTH) {
        log_add("fork on: deep enough\n");
        return;
    }
    depth++;
    log_add("fork on\n");
    child = fork();
    if (child == 0) {
        everything_locked = true;
        state_log_maps(true);
        return;
    }
    wait_for(child);
    log_add("the parent at depth %d has\n", depth - 1);
    state_log_maps(true);
    state_log_memory();
    _exit(0);
}
