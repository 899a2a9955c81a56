/*
 * execve: arguments, scripts, what stays and what goes, errors. `execer` works in a folder of its own below /tmp.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/user/under_init.h"

static char self[4096], folder[] = "/tmp/execer-XXXXXX";
extern char **environ;

static void show(const char *what, long value)
{
    printf("%s: %ld\n", what, value);
    fflush(stdout);
}

static const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text, int mode)
{
    int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        printf("%s could not be written\n", name);
    fchmod(fd, mode);
    close(fd);
}

/* ---- The other side: what a started program sees ---- */

static int tell(int argc, char **argv)
{
    char name[17] = "";
    printf("started with %d:", argc);
    for (int i = 1; i < argc; i++) {
        const char *text = strstr(argv[i], "execer-");
        printf(" <%s>", text ? strchr(text, '/') : argv[i]); /* without the folder's name */
    }
    printf("; environment:");
    for (char **e = environ; *e; e++)
        printf(" <%s>", *e);
    prctl(PR_GET_NAME, name);
    printf("; name %s\n", name);
    return argc;
}

static int tell_files(void)
{
    printf("file 50 is %s, file 51 is %s\n", fcntl(50, F_GETFD) < 0 ? "closed" : "open",
           fcntl(51, F_GETFD) < 0 ? "closed" : "open");
    return 0;
}

static int tell_signals(void)
{
    struct sigaction one, two;
    sigset_t mask;
    sigaction(SIGUSR1, NULL, &one);
    sigaction(SIGUSR2, NULL, &two);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    printf("a handler is default: %d, ignored stays: %d, blocked stays: %d\n",
           one.sa_handler == SIG_DFL, two.sa_handler == SIG_IGN, sigismember(&mask, SIGHUP));
    return 0;
}

/* ---- This side ---- */

static void run(const char *what, const char *path, char *const *argv, char *const *envp)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        execve(path, argv, envp);
        printf("%s: error %d\n", what, errno);
        fflush(stdout);
        _exit(99);
    }
    waitpid(pid, &status, 0);
    printf("%s: %s %d\n", what, WIFEXITED(status) ? "status" : "signal",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    fflush(stdout);
}

#define ARGS(...) ((char *const[]){__VA_ARGS__, NULL})

static void arguments(void)
{
    run("plain", self, ARGS("execer", "tell", "a", "", "b c"), ARGS("X=1", "Y="));
    run("no environment", self, ARGS("execer", "tell"), NULL);
    run("no arguments", self, NULL, NULL);
}

static void scripts(void)
{
    char text[5000];
    snprintf(text, sizeof(text), "#!%s tell\nrest\n", self);
    write_file("script", text, 0755);
    run("script", in_folder("script"), ARGS("zero", "one"), ARGS("X=2"));
    snprintf(text, sizeof(text), "#! \t%s   tell two words \t \n", self);
    write_file("blanks", text, 0755);
    run("one argument only", in_folder("blanks"), ARGS("zero"), NULL);
    snprintf(text, sizeof(text), "#!%s\n", in_folder("script"));
    write_file("nested", text, 0755);
    run("script of a script", in_folder("nested"), ARGS("zero", "last"), NULL);
    snprintf(text, sizeof(text), "#!%s\n", in_folder("ring"));
    write_file("ring", text, 0755);
    run("its own interpreter", in_folder("ring"), ARGS("zero"), NULL);
    write_file("lost", "#!/not/there\n", 0755);
    run("interpreter is missing", in_folder("lost"), ARGS("zero"), NULL);
    write_file("empty-line", "#!\n", 0755);
    run("no interpreter", in_folder("empty-line"), ARGS("zero"), NULL);
}

static void errors(void)
{
    write_file("text", "hello\n", 0755);
    write_file("closed", "#!/bin/sh\n", 0644);
    write_file("empty", "", 0755);
    run("no format", in_folder("text"), ARGS("x"), NULL);
    run("empty", in_folder("empty"), ARGS("x"), NULL);
    run("not executable", in_folder("closed"), ARGS("x"), NULL);
    run("a folder", folder, ARGS("x"), NULL);
    run("missing", in_folder("missing"), ARGS("x"), NULL);
    run("below a file", in_folder("text/x"), ARGS("x"), NULL);
    run("bad path", (char *)8, ARGS("x"), NULL);
    run("bad arguments", self, (char **)8, NULL);
    run("bad string", self, ARGS((char *)8), NULL);
    char *large = malloc(200000);
    memset(large, 'x', 199999);
    large[199999] = '\0';
    run("string too long", self, ARGS("x", large), NULL);
    large[100000] = '\0';
    char *many[60] = {"execer", "count"};
    for (int i = 2; i < 40; i++)
        many[i] = large;
    run("all too long", self, many, NULL);
    many[5] = NULL;
    run("300 kB", self, many, NULL);
    free(large);
}

static void what_stays(void)
{
    sigset_t mask;
    dup2(1, 50);
    dup3(1, 51, O_CLOEXEC);
    run("files", self, ARGS("execer", "files"), NULL);
    signal(SIGUSR1, (void (*)(int))abort);
    signal(SIGUSR2, SIG_IGN);
    sigemptyset(&mask);
    sigaddset(&mask, SIGHUP);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    run("signals", self, ARGS("execer", "signals"), NULL);
    close(50);
    close(51);
    signal(SIGUSR1, SIG_DFL);
    signal(SIGUSR2, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &mask, NULL);
}

static void *exec_here(void *arg)
{
    execve(self, ARGS("execer", "pid", arg), NULL);
    return NULL;
}

static void *sleep_here(void *arg)
{
    for (;;)
        pause();
    return arg;
}

/* The new program has the process's number, whichever thread asked. */
static void from_a_thread(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        char number[20];
        snprintf(number, sizeof(number), "%d", getpid());
        for (int i = 0; i < 4; i++)
            pthread_create(&thread, NULL, sleep_here, NULL);
        pthread_create(&thread, NULL, exec_here, number);
        sleep_here(NULL);
    }
    waitpid(pid, &status, 0);
    show("exec in a thread", WEXITSTATUS(status));
}

static void spawned(void)
{
    int status = 0;
    pid_t pid;
    fflush(stdout);
    int error = posix_spawn(&pid, self, NULL, NULL, ARGS("execer", "tell", "spawned"), ARGS("Z=3"));
    waitpid(pid, &status, 0);
    show("posix_spawn", error);
    show("its status", WEXITSTATUS(status));
    show("posix_spawn of nothing", posix_spawn(&pid, "/not/there", NULL, NULL, ARGS("x"), NULL));
    FILE *pipe = popen("exit 3", "r");
    if (pipe)
        pclose(pipe);
}

static void remove_folder(void)
{
    static const char *const names[] = {"script",     "blanks", "nested", "ring", "lost",
                                        "empty-line", "text",   "closed", "empty"};
    for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
        unlink(in_folder(names[i]));
    show("folder is empty again", rmdir(folder));
}

static int be_the_other_side(int argc, char **argv)
{
    if (strcmp(argv[1], "tell") == 0 || strcmp(argv[1], "tell two words") == 0)
        return tell(argc, argv);
    if (strcmp(argv[1], "files") == 0)
        return tell_files();
    if (strcmp(argv[1], "signals") == 0)
        return tell_signals();
    if (strcmp(argv[1], "count") == 0)
        return argc;
    if (strcmp(argv[1], "pid") == 0)
        return atoi(argv[2]) == getpid() && getpid() == gettid();
    return 98;
}

int main(int argc, char **argv)
{
    if (argc == 0 || !argv[0][0])
        return 77;
    if (argc > 1)
        return be_the_other_side(argc, argv);
    under_init();
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n < 0 || !mkdtemp(folder)) {
        perror("execer");
        return 1;
    }
    arguments();
    scripts();
    errors();
    what_stays();
    from_a_thread();
    spawned();
    remove_folder();
    return 0;
}
