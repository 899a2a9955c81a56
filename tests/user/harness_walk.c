/*
 * What a common test harness does around a test: a page of results in a file that is shared,
 * closed and unlinked; a look at /proc/meminfo; a watchdog; a child that works in a directory of
 * its own and sends heartbeats; a wait that the heartbeats interrupt and that is restarted; and at
 * the end the directory's tree removed by the calls that `rm -r` uses. Prints the same on every
 * kernel that does it right.
 *
 * Use: harness_walk [DIRECTORY]; default /tmp.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE            4096
#define HEARTBEATS      5
#define WATCHDOG_S      60
#define BEAT_US         20000
#define STATUS          42
#define TREE_DEPTH      3
#define FILES_PER_LEVEL 40

/* The result page: written by the child, read by its parent. */
struct results {
    _Atomic int passed, failed;
    _Atomic int beats_seen; /* by the parent's handler, which the child waits for */
    char note[64];
};

static struct results *results;
static volatile sig_atomic_t watchdog_rang;

static void on_beat(int signal)
{
    (void)signal;
    results->beats_seen++;
}

static void on_watchdog(int signal)
{
    (void)signal;
    watchdog_rang = 1;
    _exit(99);
}

static void check(bool ok, const char *what)
{
    printf("%s: %s\n", what, ok ? "ok" : "BROKEN");
}

/* ---- The page of results ---- */

static void make_result_page(const char *place)
{
    char path[256];
    struct stat before, after;
    int fd;

    snprintf(path, sizeof(path), "%s/results.%d", place, getpid());
    fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
    check(fd >= 0, "create");
    check(chmod(path, 0666) == 0, "chmod");
    check(ftruncate(fd, PAGE) == 0, "ftruncate");
    results = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    check(results != MAP_FAILED, "mmap shared");
    check(fstat(fd, &before) == 0 && before.st_size == PAGE && (before.st_mode & 0777) == 0666,
          "fstat");
    check(close(fd) == 0, "close");
    check(unlink(path) == 0, "unlink");
    check(stat(path, &after) < 0 && errno == ENOENT, "no name any more");
    results->passed = 0;
    check(results->passed == 0 && results->note[63] == 0, "a page of zeros");
}

static void look_at_meminfo(void)
{
    static const char *const wanted[] = {"MemTotal:", "MemFree:", "MemAvailable:", "SwapFree:"};
    char line[256];
    unsigned found = 0;
    FILE *file = fopen("/proc/meminfo", "r");

    while (file && fgets(line, sizeof(line), file))
        for (unsigned i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
            if (strncmp(line, wanted[i], strlen(wanted[i])) == 0 && strstr(line, " kB\n"))
                found |= 1u << i;
    if (file)
        fclose(file);
    check(found == (1u << sizeof(wanted) / sizeof(*wanted)) - 1, "/proc/meminfo");
}

static void start_watchdog(void)
{
    struct sigaction alarm = {.sa_handler = on_watchdog};
    struct sigaction beat = {.sa_handler = on_beat, .sa_flags = SA_RESTART};
    struct itimerval limit = {.it_value = {.tv_sec = WATCHDOG_S}};

    check(sigaction(SIGALRM, &alarm, NULL) == 0, "watchdog's handler");
    check(sigaction(SIGUSR1, &beat, NULL) == 0, "heartbeat's handler");
    check(setitimer(ITIMER_REAL, &limit, NULL) == 0, "watchdog");
}

/* ---- The child ---- */

static void count(bool ok)
{
    if (ok)
        results->passed++;
    else
        results->failed++;
}

/* Directories below each other, with files, a link and a FIFO in each. */
static void make_tree(void)
{
    char name[32];

    for (int level = 0; level < TREE_DEPTH; level++) {
        for (int i = 0; i < FILES_PER_LEVEL; i++) {
            snprintf(name, sizeof(name), "file-%d", i);
            int fd = open(name, O_CREAT | O_WRONLY, 0644);
            count(fd >= 0 && write(fd, name, strlen(name)) == (ssize_t)strlen(name));
            close(fd);
        }
        count(symlink("..", "up") == 0);
        count(mkfifo("fifo", 0600) == 0);
        count(mkdir("below", 0700) == 0);
        count(chdir("below") == 0);
    }
}

static void beat(void)
{
    for (int i = 1; i <= HEARTBEATS; i++) {
        usleep(BEAT_US); /* by now the parent sleeps in wait4 */
        count(kill(getppid(), SIGUSR1) == 0);
        while (results->beats_seen < i)
            usleep(1000);
    }
}

static _Noreturn void work(const char *directory)
{
    char here[512], wanted[512];

    count(mkdir(directory, 0700) == 0);
    count(chdir(directory) == 0);
    count(realpath(directory, wanted) && getcwd(here, sizeof(here)) && strcmp(here, wanted) == 0);
    make_tree();
    beat();
    strcpy(results->note, "written by the child");
    _exit(STATUS);
}

/* ---- Removing the tree ---- */

struct entry {
    unsigned long ino;
    long next;
    unsigned short length;
    unsigned char type;
    char name[];
};

static unsigned removed_files, removed_directories;

static void remove_tree(int dir);

static void remove_entry(int dir, const char *name)
{
    struct stat info;

    if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode)) {
        int below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);

        if (below >= 0) {
            remove_tree(below);
            close(below);
        }
        removed_directories += unlinkat(dir, name, AT_REMOVEDIR) == 0;
        return;
    }
    removed_files += unlinkat(dir, name, 0) == 0;
}

static void remove_tree(int dir)
{
    char buf[512] __attribute__((aligned(8))); /* several calls for one directory */
    long n;

    while ((n = syscall(SYS_getdents64, dir, buf, sizeof(buf))) > 0) {
        for (long at = 0; at < n;) {
            struct entry *entry = (struct entry *)(buf + at);

            at += entry->length;
            if (strcmp(entry->name, ".") && strcmp(entry->name, ".."))
                remove_entry(dir, entry->name);
        }
    }
    check(n == 0, "listed to its end");
}

static void clean_up(const char *directory)
{
    struct stat info;
    int dir;

    check(lstat(directory, &info) == 0 && S_ISDIR(info.st_mode), "lstat");
    dir = openat(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY);
    check(unlinkat(AT_FDCWD, directory, AT_REMOVEDIR) < 0 && errno == ENOTEMPTY, "not empty");
    remove_tree(dir);
    close(dir);
    check(rmdir(directory) == 0, "rmdir");
    check(lstat(directory, &info) < 0 && errno == ENOENT, "gone");
    printf("removed: %u files, %u directories\n", removed_files, removed_directories);
}

int main(int argc, char **argv)
{
    const char *place = argc > 1 ? argv[1] : "/tmp";
    char directory[256];
    int status = 0;
    long waited;
    pid_t child;

    snprintf(directory, sizeof(directory), "%s/walk.%d", place, getpid());
    make_result_page(place);
    look_at_meminfo();
    start_watchdog();
    fflush(stdout);
    child = fork();
    if (child == 0)
        work(directory);
    waited = syscall(SYS_wait4, child, &status, 0, NULL); /* once: restarted, not EINTR */
    check(waited == child, "wait4 came back with the child");
    check(WIFEXITED(status) && WEXITSTATUS(status) == STATUS, "its status");
    printf("heartbeats: %d\npassed: %d, failed: %d\nnote: %s\n", results->beats_seen,
           results->passed, results->failed, results->note);
    check(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL) == 0 && !watchdog_rang,
          "watchdog off");
    clean_up(directory);
    return 0;
}
