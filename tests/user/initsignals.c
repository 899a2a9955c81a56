/*
 * initsignals: what another process may do to process 1 by signals: nothing that it does not handle, blocked or not. Prints a line
 * for each; use as the first program of the machine.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t handled;

static void note(int signal)
{
    handled = signal;
}

static void child_sends(int signal)
{
    pid_t child = fork();
    if (child == 0)
        _exit(kill(1, signal));
    waitpid(child, NULL, 0);
}

int main(void)
{
    static const int signals[] = {SIGTERM, SIGUSR1, SIGQUIT, SIGKILL, SIGSTOP, SIGTSTP, SIGSEGV};
    const struct timespec at_once = {0};
    sigset_t all, some;

    if (getpid() != 1)
        return 2;
    sigfillset(&all);
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        child_sends(signals[i]);
    child_sends(SIGRTMAX);
    puts("alive after signals without a handler");
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        child_sends(signals[i]);
    child_sends(SIGRTMAX);
    child_sends(SIGUSR2);
    printf("waited for: %d\n", sigtimedwait(&some, NULL, &at_once) == SIGUSR2);
    sigemptyset(&some);
    sigprocmask(SIG_SETMASK, &some, NULL);
    puts("alive after the same while they were blocked");
    signal(SIGTERM, note);
    child_sends(SIGTERM);
    printf("handled: %d\n", handled == SIGTERM);
    fflush(stdout);
    signal(SIGTERM, SIG_DFL);
    child_sends(SIGTERM);
    raise(SIGTERM);
    puts("alive after its own");
    return 0;
}
