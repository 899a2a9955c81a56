/*
 * sigproc: signals between processes and threads: death and its status, stop and continue, SIGCHLD, groups, what fork and
 * exec keep, which thread takes a signal. Prints the same on every kernel that does it right.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/user/show.h"

#define MS 1000000L

static volatile sig_atomic_t count, last_code, last_status, last_is_child;
static volatile pid_t child;

static void note_child(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    count++;
    last_code = info->si_code;
    last_status = info->si_status;
    last_is_child = info->si_pid == child;
}

static void set_info(int signal, int flags)
{
    struct sigaction action = {.sa_sigaction = note_child,
                               .sa_flags = SA_SIGINFO | SA_RESTART | flags};

    sigaction(signal, &action, NULL);
}

static void short_sleep(void)
{
    nanosleep(&(struct timespec){0, 5 * MS}, NULL);
}

static void show_status(const char *name, int status)
{
    if (WIFEXITED(status))
        printf("%s: exited %d\n", name, WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        printf("%s: signal %d\n", name, WTERMSIG(status));
    else if (WIFSTOPPED(status))
        printf("%s: stopped by %d\n", name, WSTOPSIG(status));
    else if (WIFCONTINUED(status))
        printf("%s: continued\n", name);
}

static void wait_and_show(const char *name, int options)
{
    int status = 0;

    if (waitpid(child, &status, options) != child)
        printf("%s: wait failed, %s\n", name, show_errno(errno));
    else
        show_status(name, status);
}

static void start_sleeper(void)
{
    child = fork();
    if (child == 0)
        for (;;)
            pause();
}

static void start_spinner(void)
{
    child = fork();
    if (child == 0)
        for (;;)
            __asm__ volatile("pause");
    setpgid(child, child); /* not orphaned: its stops by the terminal count */
}

/* ---- Death ---------------------------------------------------------------------------------- */

static void death(void)
{
    static const int fatal[] = {SIGHUP,  SIGINT,    SIGKILL, SIGUSR1, SIGPIPE,   SIGALRM,
                                SIGTERM, SIGSTKFLT, SIGIO,   SIGPWR,  SIGVTALRM, SIGPROF};
    static const int harmless[] = {SIGCHLD, SIGCONT, SIGURG, SIGWINCH};
    char name[32];

    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
        start_sleeper();
        kill(child, fatal[i]);
        snprintf(name, sizeof(name), "kill -%d", fatal[i]);
        wait_and_show(name, 0);
    }
    start_spinner();
    short_sleep();
    kill(child, SIGTERM);
    wait_and_show("one that never enters the kernel", 0);
    start_sleeper();
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
        kill(child, harmless[i]);
    short_sleep();
    SHOW("still there after the harmless ones", kill(child, 0));
    kill(child, SIGRTMIN + 5);
    wait_and_show("a real-time signal", 0);
    SHOW("gone", kill(child, 0) == -1 && errno == ESRCH);
    child = fork();
    if (child == 0) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        for (;;)
            pause();
    }
    short_sleep();
    kill(child, SIGTERM);
    short_sleep();
    SHOW("blocked: still there", kill(child, 0));
    kill(child, SIGKILL);
    wait_and_show("SIGKILL although all is blocked", 0);
}

/* ---- Stop and continue ---------------------------------------------------------------------- */

static void stop_and_continue(void)
{
    set_info(SIGCHLD, 0);
    start_spinner();
    count = 0;
    kill(child, SIGSTOP);
    wait_and_show("SIGSTOP", WUNTRACED);
    printf("SIGCHLD: code %d status %d child %d\n", last_code == CLD_STOPPED, (int)last_status,
           (int)last_is_child);
    kill(child, SIGCONT);
    wait_and_show("SIGCONT", WCONTINUED);
    short_sleep();
    printf("SIGCHLD: code %d status %d\n", last_code == CLD_CONTINUED, (int)last_status);
    kill(child, SIGTSTP);
    wait_and_show("SIGTSTP", WUNTRACED);
    kill(child, SIGTERM);
    short_sleep();
    SHOW("SIGTERM waits while it is stopped", waitpid(child, NULL, WNOHANG));
    kill(child, SIGCONT);
    wait_and_show("until SIGCONT", 0);
    start_sleeper();
    kill(child, SIGSTOP);
    wait_and_show("a sleeping one", WUNTRACED);
    kill(child, SIGKILL);
    wait_and_show("SIGKILL while stopped", 0);
    printf("SIGCHLD: code %d status %d\n", last_code == CLD_KILLED, (int)last_status);
    set_info(SIGCHLD, SA_NOCLDSTOP);
    start_sleeper();
    count = 0;
    kill(child, SIGSTOP);
    wait_and_show("with SA_NOCLDSTOP", WUNTRACED);
    printf("SIGCHLD: %d times\n", (int)count);
    kill(child, SIGKILL);
    wait_and_show("end", 0);
    printf("SIGCHLD: %d times\n", (int)count);
    signal(SIGCHLD, SIG_DFL);
}

/* A sleep that a stop interrupts goes on afterwards. */
static void stopped_sleep(void)
{
    child = fork();
    if (child == 0) {
        struct timespec left = {0, 80 * MS};
        _exit(nanosleep(&left, &left) == 0 ? 7 : 8);
    }
    short_sleep();
    kill(child, SIGSTOP);
    wait_and_show("stopped in nanosleep", WUNTRACED);
    kill(child, SIGCONT);
    wait_and_show("it slept to its end", 0);
}

/* ---- Children ------------------------------------------------------------------------------- */

static void ignored_children(void)
{
    signal(SIGCHLD, SIG_IGN);
    child = fork();
    if (child == 0)
        _exit(3);
    SHOW("wait with SIGCHLD ignored", waitpid(child, NULL, 0) == -1 && errno == ECHILD);
    set_info(SIGCHLD, SA_NOCLDWAIT);
    count = 0;
    child = fork();
    if (child == 0)
        _exit(4);
    SHOW("wait with SA_NOCLDWAIT", waitpid(child, NULL, 0) == -1 && errno == ECHILD);
    printf("SIGCHLD: %d times, code %d status %d\n", (int)count, last_code == CLD_EXITED,
           (int)last_status);
    signal(SIGCHLD, SIG_DFL);
}

static void groups(void)
{
    pid_t second;
    int status;

    start_sleeper();
    setpgid(child, child);
    second = fork();
    if (second == 0)
        for (;;)
            pause();
    setpgid(second, child);
    SHOW("kill the group", kill(-child, SIGUSR2));
    wait_and_show("first", 0);
    waitpid(second, &status, 0);
    show_status("second", status);
    SHOW("an empty group", kill(-child, SIGUSR2) == -1 && errno == ESRCH);
    child = fork();
    if (child == 0) {
        setpgid(0, 0);
        second = fork();
        if (second == 0)
            for (;;)
                pause();
        signal(SIGTERM, SIG_IGN);
        kill(0, SIGTERM);
        waitpid(second, &status, 0);
        _exit(WIFSIGNALED(status) ? WTERMSIG(status) : 99);
    }
    wait_and_show("kill(0): the own group", 0);
}

static void fork_and_exec(const char *self)
{
    sigset_t set, pending;

    signal(SIGUSR1, SIG_IGN);
    set_info(SIGUSR2, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGTERM);
    child = fork();
    if (child == 0) {
        struct sigaction action;
        sigpending(&pending);
        printf("child: pending %d", sigismember(&pending, SIGTERM));
        sigprocmask(SIG_SETMASK, NULL, &set);
        printf(" blocked %d", sigismember(&set, SIGTERM));
        sigaction(SIGUSR2, NULL, &action);
        printf(" handler kept %d\n", action.sa_sigaction == note_child);
        fflush(stdout);
        raise(SIGTERM);
        execl(self, self, "after-exec", NULL);
        _exit(98);
    }
    wait_and_show("after exec", 0);
    signal(SIGTERM, SIG_IGN);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGUSR1, SIG_DFL);
}

static int after_exec(void)
{
    struct sigaction action;
    sigset_t pending, mask;
    stack_t stack;

    sigaction(SIGUSR1, NULL, &action);
    printf("exec: ignored kept %d", action.sa_handler == SIG_IGN);
    sigaction(SIGUSR2, NULL, &action);
    printf(" handler gone %d", action.sa_handler == SIG_DFL);
    sigpending(&pending);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    printf(" pending %d blocked %d", sigismember(&pending, SIGTERM), sigismember(&mask, SIGTERM));
    sigaltstack(NULL, &stack);
    printf(" stack off %d\n", stack.ss_flags == SS_DISABLE);
    return 5;
}

/* ---- Threads -------------------------------------------------------------------------------- */

static volatile pid_t taker;
static sem_t ready, taken;

static void note_thread(int signal)
{
    (void)signal;
    taker = (pid_t)syscall(SYS_gettid);
    sem_post(&taken);
}

static void *wait_in_thread(void *mask)
{
    if (mask)
        pthread_sigmask(SIG_SETMASK, mask, NULL);
    *(volatile pid_t *)&child = (pid_t)syscall(SYS_gettid);
    sem_post(&ready);
    for (;;)
        pause();
    return NULL;
}

static void threads(void)
{
    sigset_t mine, none;
    pthread_t thread;

    sem_init(&ready, 0, 0);
    sem_init(&taken, 0, 0);
    sigemptyset(&none);
    sigemptyset(&mine);
    sigaddset(&mine, SIGUSR1);
    signal(SIGUSR1, note_thread);
    signal(SIGUSR2, note_thread);
    pthread_sigmask(SIG_BLOCK, &mine, NULL);
    pthread_create(&thread, NULL, wait_in_thread, &none);
    sem_wait(&ready);
    kill(getpid(), SIGUSR1);
    while (sem_wait(&taken) < 0)
        ;
    SHOW_TRUE("the thread that does not block it takes it", taker == child);
    pthread_kill(thread, SIGUSR2);
    while (sem_wait(&taken) < 0)
        ;
    SHOW_TRUE("pthread_kill reaches its thread", taker == child);
    SHOW("tgkill of another process's thread",
         syscall(SYS_tgkill, getpid() + 100000, child, SIGUSR2) == -1 && errno == ESRCH);
    pthread_sigmask(SIG_UNBLOCK, &mine, NULL);
    raise(SIGUSR1);
    while (sem_wait(&taken) < 0)
        ;
    SHOW_TRUE("raise reaches oneself", taker == getpid());
}

/* A fatal signal for one thread ends them all. */
static void fatal_thread(void)
{
    child = fork();
    if (child == 0) {
        pthread_t thread;
        sem_init(&ready, 0, 0);
        signal(SIGUSR1, SIG_DFL);
        pthread_create(&thread, NULL, wait_in_thread, NULL);
        sem_wait(&ready);
        pthread_kill(thread, SIGUSR1);
        for (;;)
            pause();
    }
    wait_and_show("one thread's death is everybody's", 0);
    child = fork();
    if (child == 0) {
        pthread_t thread;

        sem_init(&ready, 0, 0);
        pthread_create(&thread, NULL, wait_in_thread, NULL);
        sem_wait(&ready);
        kill(getpid(), SIGSTOP);
        _exit(6);
    }
    wait_and_show("two threads stop", WUNTRACED);
    kill(child, SIGCONT);
    wait_and_show("and go on", 0);
}

static void run_all(const char *self)
{
    death();
    stop_and_continue();
    stopped_sleep();
    ignored_children();
    groups();
    fork_and_exec(self);
    threads();
    fatal_thread();
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1 && strcmp(argv[1], "after-exec") == 0)
        return after_exec();
    pid_t runner = fork(); /* the first program has rights of its own */
    int status;

    if (runner == 0) {
        run_all(argv[0]);
        return 0;
    }
    waitpid(runner, &status, 0);
    show_status("all", status);
    printf("done\n");
    return 0;
}
