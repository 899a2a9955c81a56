/*
 * init: the first program. Starts a shell on the console, in a session of its own whose terminal
 * the console is, waits for everything that loses its parent, and ends the machine when the shell
 * ends, or when poweroff, reboot or halt say so (they send signals to process 1).
 *
 * Use: init [--demo]. --demo runs the demonstration first; with nobody in front of the console
 * (console=raw) it ends then, with the demonstration's status. Without --demo such a console gets a
 * shell that reads commands from it, whose status becomes the machine's.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHELL              "/bin/sh"
#define DEMO               "/bin/demo"
#define STATUS_CANNOT_RUN  127
#define SIGNAL_STATUS_BASE 128
#define GRACE_TENTHS       10 /* between SIGTERM and SIGKILL at the end */

static char *const environment[] = {"PATH=/bin:/sbin:/usr/bin:/tests",
                                    "HOME=/root",
                                    "USER=root",
                                    "LOGNAME=root",
                                    "SHELL=" SHELL,
                                    "TERM=vt100",
                                    NULL};

/* What waits in the mask for sigwaitinfo: children, and the orders of halt, poweroff, reboot. */
static sigset_t orders(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGTERM);
    return set;
}

static void unblock_all(void)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int shell_status(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : SIGNAL_STATUS_BASE + WTERMSIG(status);
}

static _Noreturn void run(const char *path, const char *name)
{
    char *const argv[] = {(char *)name, NULL};

    execve(path, argv, environment);
    fprintf(stderr, "init: %s: %s\n", path, strerror(errno));
    _exit(STATUS_CANNOT_RUN);
}

/* In the session's leader: the demonstration as a job of its own, which ^C may end. => status */
static int run_demo(void)
{
    pid_t demo = fork();
    int status = 0;

    if (demo < 0) {
        perror("init: demo");
        return 1;
    }
    if (demo == 0)
        run(DEMO, "demo");
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    while (waitpid(demo, &status, 0) < 0 && errno == EINTR)
        ;
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    return shell_status(status);
}

static void greet(void)
{
    printf("\nFaultline. This is BusyBox's shell.\n"
           "    demo       shows what it costs to touch 400 MB page by page\n"
           "    mplay      plays a pattern of accesses on a mapped file\n"
           "    poweroff   ends; exit does, too\n\n");
    fflush(stdout);
}

/* The child that becomes the shell: leader of a session, its terminal the console. */
static _Noreturn void start_session(bool with_demo)
{
    bool is_terminal = isatty(STDIN_FILENO);
    int status;

    unblock_all();
    setsid();
    if (is_terminal && ioctl(STDIN_FILENO, TIOCSCTTY, 1) < 0)
        perror("init: /dev/console does not become the controlling terminal");
    if (access(SHELL, X_OK) < 0) /* an image made where there is no BusyBox */
        _exit(run_demo());
    status = with_demo ? run_demo() : 0;
    if (with_demo && !is_terminal)
        _exit(status);
    if (chdir("/root") < 0 && chdir("/") < 0)
        perror("init: /");
    if (is_terminal)
        greet();
    run(SHELL, is_terminal ? "-sh" : "sh");
}

/* Waits for all children that have ended. => whether `shell` is among them, with *status */
static bool reap(pid_t shell, int *status)
{
    bool shell_ended = false;
    int one;
    pid_t pid;

    while ((pid = waitpid(-1, &one, WNOHANG)) > 0) {
        if (pid == shell) {
            shell_ended = true;
            *status = shell_status(one);
        }
    }
    return shell_ended;
}

/* Everybody else ends: first by being asked, then without. */
static void end_all(void)
{
    kill(-1, SIGTERM);
    kill(-1, SIGCONT);
    for (int i = 0; i < GRACE_TENTHS; i++) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
            break;
        usleep(100000);
    }
    kill(-1, SIGKILL);
}

static int order_of(int signal)
{
    return signal == SIGTERM ? RB_AUTOBOOT : signal == SIGUSR1 ? RB_HALT_SYSTEM : RB_POWER_OFF;
}

int main(int argc, char **argv)
{
    bool with_demo = argc > 1 && strcmp(argv[1], "--demo") == 0;
    sigset_t set = orders();
    int status = 0, order = RB_POWER_OFF;
    pid_t shell;

    sigprocmask(SIG_BLOCK, &set, NULL);
    shell = fork();
    if (shell < 0) {
        perror("init");
        return 1;
    }
    if (shell == 0)
        start_session(with_demo);
    for (;;) {
        int signal = sigwaitinfo(&set, NULL);

        if (signal == SIGCHLD && reap(shell, &status)) {
            if (!isatty(STDIN_FILENO))
                return status;
            break;
        }
        if (signal > 0 && signal != SIGCHLD) {
            order = order_of(signal);
            break;
        }
    }
    end_all();
    sync();
    reboot(order);
    return status;
}
