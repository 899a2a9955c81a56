/*
 * A program that the kernel starts as the first one is init: every orphan is its child. under_init() makes it an
 * ordinary program: the rest of main runs in a child, and the first process only reaps and ends as that child does.
 */
#ifndef TESTS_USER_UNDER_INIT_H
#define TESTS_USER_UNDER_INIT_H

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static inline void under_init(void)
{
    int status;
    if (getpid() != 1)
        return;
    pid_t child = fork(), found;
    if (child <= 0)
        return;
    while ((found = wait(&status)) > 0)
        if (found == child)
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    _exit(126);
}

#endif
