/*
 * Processes: trees of forks, memory after a fork, wait statuses, orphans, vfork, groups, limits.
 *
 *     forktree [NAME …]     these parts; without a name all that print the same on every Linux
 *
 * No process number is printed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/user/under_init.h"

#define PAGE 4096

static void show(const char *what, long value)
{
    printf("%s: %ld\n", what, value);
    fflush(stdout);
}

static const char *describe(int status, char *buf)
{
    if (WIFEXITED(status))
        sprintf(buf, "exit %d", WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        sprintf(buf, "signal %d", WTERMSIG(status));
    else if (WIFSTOPPED(status))
        sprintf(buf, "stopped by %d", WSTOPSIG(status));
    else if (WIFCONTINUED(status))
        sprintf(buf, "continued");
    else
        sprintf(buf, "%#x", status);
    return buf;
}

static pid_t start(void (*fn)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        fn();
        _exit(0);
    }
    return pid;
}

/* ---- A tree ---- */

/* Each node's exit status is the number of nodes of its subtree. */
static int grow(int depth, int width)
{
    int nodes = 1;
    pid_t children[8];
    if (depth == 0)
        return 1;
    for (int i = 0; i < width; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(grow(depth - 1, width));
    }
    for (int i = 0; i < width; i++) {
        int status = 0;
        if (waitpid(children[i], &status, 0) != children[i] || !WIFEXITED(status))
            return 255;
        nodes += WEXITSTATUS(status);
    }
    return nodes;
}

static void tree(void)
{
    show("nodes of a tree, 3 deep, 4 wide", grow(3, 4));
    show("nodes of a list, 40 deep", grow(40, 1));
    show("no child is left", waitpid(-1, NULL, 0) < 0 ? errno == ECHILD : 0);
}

/* ---- Memory ---- */

static int own_data = 1;

static void cow(void)
{
    int *private =
        mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int local = 5, status;
    for (int i = 0; i < 64; i++)
    private[i * PAGE / 4] = i;
    pid_t pid = fork();
    if (pid == 0) {
        int sum = 0;
        for (int i = 0; i < 64; i++)
            sum += private[i * PAGE / 4];
        show("the child sees the sum", sum);
        own_data = 2;
        local = 6;
        private[0] = 1000;
        shared[0] = 77;
        char *none = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        none[5] = 1;
        _exit(own_data + local);
    }
    waitpid(pid, &status, 0);
    show("child's values", WEXITSTATUS(status));
    show("parent's data", own_data);
    show("parent's stack", local);
    show("parent's private page", private[0]);
    show("shared page", shared[0]);
    for (int i = 0; i < 64; i++)
    private[i * PAGE / 4] += 1;
    show("parent writes in place again", private[63 * PAGE / 4]);
    munmap(private, 64 * PAGE);
    munmap(shared, PAGE);
}

/* A page kept through PROT_NONE is the child's too. */
static void protected_page(void)
{
    int status;
    int *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *page = 42;
    mprotect(page, PAGE, PROT_NONE);
    pid_t pid = fork();
    if (pid == 0) {
        mprotect(page, PAGE, PROT_READ | PROT_WRITE);
        *page += 1;
        _exit(*page);
    }
    waitpid(pid, &status, 0);
    mprotect(page, PAGE, PROT_READ | PROT_WRITE);
    show("behind PROT_NONE, child", WEXITSTATUS(status));
    show("behind PROT_NONE, parent", *page);
    munmap(page, PAGE);
}

/* ---- Statuses ---- */

static void exit_300(void)
{
    _exit(300);
}

static void wait_for_ever(void)
{
    for (;;)
        pause();
}

static volatile int *volatile nowhere = (int *)8;

static void bad_access(void)
{
    *nowhere = 1;
}

static void aborting(void)
{
    abort();
}

static void show_status(const char *what, pid_t pid, int options)
{
    char buf[32];
    int status = 0;
    pid_t found = waitpid(pid, &status, options);
    printf("%s: %s\n", what,
           found == pid ? describe(status, buf)
           : found == 0 ? "nothing"
                        : strerror(errno));
    fflush(stdout);
}

static void statuses(void)
{
    show_status("_exit(300)", start(exit_300), 0);
    show_status("bad access", start(bad_access), 0);
    show_status("abort", start(aborting), 0);
    pid_t pid = start(wait_for_ever);
    show_status("WNOHANG", pid, WNOHANG);
    kill(pid, SIGSTOP);
    show_status("SIGSTOP", pid, WUNTRACED);
    show_status("told once", pid, WUNTRACED | WNOHANG);
    kill(pid, SIGCONT);
    show_status("SIGCONT", pid, WCONTINUED);
    kill(pid, SIGTERM);
    show_status("SIGTERM", pid, 0);
    show_status("waited for already", pid, 0);
}

static void with_waitid(void)
{
    siginfo_t info;
    pid_t pid = start(exit_300);
    memset(&info, 0, sizeof(info));
    show("waitid, WNOWAIT", waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
    show("it is that child", info.si_pid == pid && info.si_signo == SIGCHLD);
    show("code", info.si_code);
    show("status", info.si_status);
    show("waitid again", waitid(P_ALL, 0, &info, WEXITED));
    show("no more", waitid(P_ALL, 0, &info, WEXITED) < 0 ? errno : 0);
    pid = start(wait_for_ever);
    memset(&info, 0, sizeof(info));
    show("waitid, WNOHANG", waitid(P_PID, pid, &info, WEXITED | WNOHANG));
    show("nobody", info.si_pid);
    kill(pid, SIGKILL);
    waitid(P_PID, pid, &info, WEXITED);
    show("killed: code", info.si_code);
    show("killed: status", info.si_status);
    show("without a state", waitid(P_ALL, 0, &info, 0) < 0 ? errno : 0);
}

/* ---- Orphans ---- */

/* The grandchild tells through a pipe when it has another parent. */
static void orphan(void)
{
    int ends[2];
    char byte = '?';
    if (pipe(ends) < 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        pid_t me = getpid();
        if (fork() == 0) {
            for (int i = 0; i < 5000 && getppid() == me; i++)
                usleep(1000);
            byte = getppid() == me ? 'n' : 'y';
            if (write(ends[1], &byte, 1) != 1)
                _exit(1);
            _exit(7);
        }
        _exit(3);
    }
    close(ends[1]);
    int status;
    waitpid(child, &status, 0);
    show("child", WEXITSTATUS(status));
    if (read(ends[0], &byte, 1) == 1)
        printf("the grandchild has another parent: %c\n", byte);
    show("the grandchild is not ours", waitpid(-1, NULL, 0) < 0 ? errno == ECHILD : 0);
    close(ends[0]);
}

static void ignored_children(void)
{
    signal(SIGCHLD, SIG_IGN);
    pid_t pid = start(exit_300);
    show("SIGCHLD ignored: wait says", waitpid(pid, NULL, 0) < 0 ? errno : 0);
    signal(SIGCHLD, SIG_DFL);
}

/* ---- vfork ---- */

static void with_vfork(void)
{
    volatile int seen = 0;
    int status;
    pid_t pid = vfork();
    if (pid == 0) {
        seen = 1; /* in the parent's memory */
        _exit(4);
    }
    show("vfork shares memory", seen);
    waitpid(pid, &status, 0);
    show("vfork child", WEXITSTATUS(status));
}

/* ---- Groups and sessions ---- */

static void groups(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        pid_t me = getpid();
        int ok =
            setsid() == me && getsid(0) == me && getpgrp() == me && setsid() < 0 && errno == EPERM;
        ok = ok && setpgid(0, 0) < 0 && errno == EPERM;
        _exit(ok);
    }
    waitpid(pid, &status, 0);
    show("setsid", WEXITSTATUS(status));
    pid = start(wait_for_ever);
    show("setpgid of a child", setpgid(pid, pid));
    show("its group", getpgid(pid) == pid);
    show("no such group", setpgid(pid, 999999) < 0 ? errno : 0);
    pid_t second = start(wait_for_ever);
    show("joins the group", setpgid(second, pid));
    kill(-pid, SIGTERM);
    int n = 0;
    while (waitpid(-pid, &status, 0) > 0)
        n += WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
    show("ended by a signal to the group", n);
    show("no such process", getpgid(999999) < 0 ? errno : 0);
    show("wait for the own group", waitpid(0, NULL, 0) < 0 ? errno : 0);
}

/* ---- Limits ---- */

static void limits(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 20;
    show("setrlimit NOFILE", setrlimit(RLIMIT_NOFILE, &limit));
    int last = -1, fd;
    while ((fd = dup(0)) >= 0)
        last = fd;
    show("highest number", last);
    show("then", errno);
    for (fd = 3; fd <= last; fd++)
        close(fd);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit memory = {64 << 20, 64 << 20};
        setrlimit(RLIMIT_AS, &memory);
        void *p = mmap(NULL, 100 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        show("above RLIMIT_AS", p == MAP_FAILED ? errno : 0);
        p = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        show("below it", p != MAP_FAILED);
        struct rlimit data = {32 << 20, 64 << 20};
        setrlimit(RLIMIT_DATA, &data);
        p = mmap(NULL, 40 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        show("above RLIMIT_DATA", p == MAP_FAILED ? errno : 0);
        p = mmap(NULL, 40 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        show("read-only is no data", p != MAP_FAILED);
        struct rlimit wrong = {2, 1};
        show("soft above hard", setrlimit(RLIMIT_CORE, &wrong) < 0 ? errno : 0);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

/* The programs of root are limited here, and are not on Linux. */
static void bomb(void)
{
    struct rlimit limit = {40, 40};
    int n = 0, reaped = 0;
    setrlimit(RLIMIT_NPROC, &limit);
    while (start(wait_for_ever) > 0)
        n++;
    int error = errno;
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    while (wait(NULL) > 0)
        reaped++;
    show("errno", error);
    show("all came back", n == reaped);
    show("as many as the limit says, or nearly", n >= 30 && n <= 40);
}

/* ---- Many forks ---- */

static unsigned long free_memory(void)
{
    struct sysinfo info;
    sysinfo(&info);
    return info.freeram;
}

#define BIG (64ul << 20)

static void big(int times)
{
    char *memory = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 1, BIG);
    unsigned long before = free_memory();
    struct timespec start_time, end_time;
    int wrong = 0;
    clock_gettime(CLOCK_MONOTONIC, &start_time);
    for (int i = 0; i < times; i++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
            memory[(i * 37ul * PAGE) % BIG] = 2;
            _exit(memory[BIG - 1] + i % 100);
        }
        if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 1 + i % 100)
            wrong++;
    }
    clock_gettime(CLOCK_MONOTONIC, &end_time);
    fprintf(stderr, "host: %ld us for each\n",
            ((end_time.tv_sec - start_time.tv_sec) * 1000000 +
             (end_time.tv_nsec - start_time.tv_nsec) / 1000) /
                times);
    long lost = ((long)before - (long)free_memory()) / PAGE;
    show("wrong", wrong);
    show("fewer than 200 frames missing", lost < 200);
    for (unsigned long i = 0; i < BIG; i += PAGE)
        wrong += memory[i] != 1;
    show("parent's pages changed", wrong);
}

static const struct part {
    const char *name;
    void (*fn)(void);
    bool is_same_everywhere;
} parts[] = {
    {"tree", tree, true},
    {"cow", cow, true},
    {"protected", protected_page, true},
    {"statuses", statuses, true},
    {"waitid", with_waitid, true},
    {"orphan", orphan, true},
    {"ignored", ignored_children, true},
    {"vfork", with_vfork, true},
    {"groups", groups, true},
    {"limits", limits, true},
    {"bomb", bomb, false},
};

int main(int argc, char **argv)
{
    under_init();
    if (argc == 3 && strcmp(argv[1], "big") == 0) {
        big(atoi(argv[2]));
        return 0;
    }
    for (unsigned i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        bool is_wanted = argc == 1 && parts[i].is_same_everywhere;
        for (int j = 1; j < argc; j++)
            is_wanted |= strcmp(argv[j], parts[i].name) == 0;
        if (!is_wanted)
            continue;
        printf("-- %s\n", parts[i].name);
        fflush(stdout);
        parts[i].fn();
    }
    return 0;
}
