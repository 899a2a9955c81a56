/*
 * Takes all that there is of something, says what the kernel answered in the end, and keeps it
 * until it is killed, with all its children (one process group).
 *
 * Use: crowd files | processes
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_MAKERS_MAX 2000

static void pause_for_ever(void)
{
    for (;;)
        pause();
}

/* In a child: opens as many files as it may, tells why it stopped, and stays. */
static _Noreturn void open_files(int answer)
{
    struct rlimit limit;
    int error;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
    error = errno;
    if (write(answer, &error, sizeof(error)) != sizeof(error))
        _exit(1);
    pause_for_ever();
    _exit(0);
}

/* => the last error: of a child that could not open as many as its own limit allows */
static int take_files(void)
{
    int answers[2], error = EMFILE;

    if (pipe(answers))
        return errno;
    for (int i = 0; i < FILE_MAKERS_MAX && error == EMFILE; i++) {
        pid_t child = fork();

        if (child == 0)
            open_files(answers[1]);
        if (child < 0 || read(answers[0], &error, sizeof(error)) != sizeof(error))
            return errno;
    }
    return error;
}

static int take_processes(void)
{
    pid_t child;

    while ((child = fork()) > 0)
        ;
    if (child == 0)
        pause_for_ever();
    return errno;
}

int main(int argc, char **argv)
{
    int error = argc > 1 && strcmp(argv[1], "files") == 0 ? take_files() : take_processes();

    printf("the end: %s\n", strerror(error));
    fflush(stdout);
    pause_for_ever();
    return 0;
}
