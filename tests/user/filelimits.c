/*
 * RLIMIT_FSIZE: what a program may write into a regular file, and the signal where it wants more.
 * Prints the same on every kernel that does it right.
 *
 * Use: filelimits [DIRECTORY]; default /tmp.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/user/show.h"
#include "tests/user/under_init.h"

#define LIMIT 10000

static volatile sig_atomic_t signals;
static char data[8192];

static void on_signal(int signal)
{
    signals += signal == SIGXFSZ;
}

static void limit_to(unsigned long bytes)
{
    struct rlimit limit = {bytes, RLIM_INFINITY};

    SHOW("setrlimit", setrlimit(RLIMIT_FSIZE, &limit));
}

static void show_signals(void)
{
    printf("  signals: %d\n", (int)signals);
    signals = 0;
}

static void writing(int fd)
{
    SHOW("first write", write(fd, data, sizeof(data)));
    SHOW("over the limit", write(fd, data, sizeof(data)));
    show_signals();
    SHOW("at the limit", write(fd, data, 1));
    show_signals();
    SHOW("nothing at the limit", write(fd, data, 0));
    SHOW("far behind it", pwrite(fd, data, 1, 2 * LIMIT));
    show_signals();
    SHOW("below it", pwrite(fd, data, 100, LIMIT - 50));
    SHOW("size", lseek(fd, 0, SEEK_END));
    show_signals();
}

static void resizing(int fd)
{
    SHOW("ftruncate above", ftruncate(fd, LIMIT + 1));
    show_signals();
    SHOW("ftruncate to it", ftruncate(fd, LIMIT));
    SHOW("ftruncate below", ftruncate(fd, 10));
    SHOW("fallocate above", fallocate(fd, 0, 0, LIMIT + 1));
    show_signals();
    SHOW("fallocate below", fallocate(fd, 0, 0, 100));
    show_signals();
}

static void lowered(int fd)
{
    SHOW("ftruncate", ftruncate(fd, 5000));
    limit_to(1000);
    SHOW("shrink, still above", ftruncate(fd, 4000));
    SHOW("grow", ftruncate(fd, 4001));
    show_signals();
    SHOW("overwrite below", pwrite(fd, data, 100, 0));
    SHOW("overwrite above", pwrite(fd, data, 100, 2000));
    show_signals();
}

static void others(const char *name)
{
    int fds[2], fd = open(name, O_WRONLY | O_APPEND);

    SHOW("append", write(fd, data, 1));
    show_signals();
    close(fd);
    if (pipe(fds) == 0)
        SHOW("a pipe has no limit", write(fds[1], data, 3000));
    fd = open("/dev/null", O_WRONLY);
    SHOW("a device neither", write(fd, data, 3000));
    show_signals();
}

static void by_default(int fd)
{
    int status = 0;
    pid_t child;

    signal(SIGXFSZ, SIG_IGN);
    SHOW("ignored", pwrite(fd, data, 1, LIMIT));
    signal(SIGXFSZ, SIG_DFL);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        pwrite(fd, data, 1, LIMIT);
        _exit(0);
    }
    waitpid(child, &status, 0);
    printf("a child by default: signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

int main(int argc, char **argv)
{
    char name[256];
    int fd;

    under_init();
    snprintf(name, sizeof(name), "%s/filelimits.%d", argc > 1 ? argv[1] : "/tmp", getpid());
    signal(SIGXFSZ, on_signal);
    fd = open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    limit_to(LIMIT);
    writing(fd);
    resizing(fd);
    lowered(fd);
    others(name);
    by_default(fd);
    limit_to(RLIM_INFINITY);
    SHOW("without a limit", pwrite(fd, data, 1, 2 * LIMIT));
    return unlink(name);
}
