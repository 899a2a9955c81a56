/*
 * arranged: races in a fixed order, by /sys/kernel/debug/faultline/gate and sync (docs/locking.md). For a debug kernel, with
 * vm.readahead=none. Prints one line a step; test_arranged.py says what they must be.
 *
 *     arranged disk     munmap while the disk reads the page: it returns first, then the touch is a SIGSEGV
 *     arranged kill     a process killed while the disk reads for it is gone before the disk
 *     arranged replace  another mapping is put there as soon as the fault has let its lock go
 *     arranged dies     who has parked another dies: the other goes on
 *     arranged closes   who has parked another closes the file: the other goes on
 *     arranged bad      what is no command
 *
 * Several names: one after the other, each in a process of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDER "/sys/kernel/debug/faultline/"
#define PAGE   4096L
#define PAGES  16

static unsigned long disk_sectors;
static int file;
static char *map;

static void die(const char *what)
{
    printf("%s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- The files ---- */

static int open_file(const char *name)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), FOLDER "%s", name);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        die(path);
    return fd;
}

/* => 0 or errno */
static int command(int fd, const char *text)
{
    return write(fd, text, strlen(text)) < 0 ? errno : 0;
}

static void must(int fd, const char *text)
{
    if (command(fd, text))
        die(text);
}

static void must_about(int fd, const char *format, int number)
{
    char text[64];

    snprintf(text, sizeof(text), format, number);
    must(fd, text);
}

/* How many lines of the file have the word. */
static int lines_with(int fd, const char *word)
{
    static char text[8192];
    ssize_t len = pread(fd, text, sizeof(text) - 1, 0);
    int n = 0;

    if (len < 0)
        die("read");
    text[len] = '\0';
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        n += strstr(line, word) != NULL;
    return n;
}

/* The next request, whatever it is for: all this program needs is in memory. */
static int hold_next(void)
{
    int gate = open_file("gate");
    char text[64];

    snprintf(text, sizeof(text), "hold vda 0 %lu 1", disk_sectors);
    must(gate, text);
    return gate;
}

/* ---- A thread that touches ---- */

struct toucher {
    pthread_t thread;
    volatile char *addr;
    int ready[2]; /* pipe: its number */
    int go[2];    /* pipe: it may touch */
    int signal, code, value;
};

static __thread sigjmp_buf back;
static __thread int caught, caught_code;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    caught = number;
    caught_code = info->si_code;
    siglongjmp(back, 1);
}

static void *touch(void *arg)
{
    struct toucher *t = arg;
    int tid = syscall(SYS_gettid);
    char byte;

    if (write(t->ready[1], &tid, sizeof(tid)) != sizeof(tid) || read(t->go[0], &byte, 1) != 1)
        die("pipe");
    if (sigsetjmp(back, 1) == 0)
        t->value = *t->addr;
    t->signal = caught;
    t->code = caught_code;
    return NULL;
}

/* => the thread's number */
static int start(struct toucher *t, long page)
{
    int tid;

    *t = (struct toucher){.addr = map + page * PAGE, .value = -1};
    if (pipe(t->ready) || pipe(t->go) || pthread_create(&t->thread, NULL, touch, t))
        die("pthread_create");
    if (read(t->ready[0], &tid, sizeof(tid)) != sizeof(tid))
        die("pipe");
    return tid;
}

static void let_touch(struct toucher *t)
{
    if (write(t->go[1], "", 1) != 1)
        die("pipe");
}

static void finish(struct toucher *t)
{
    pthread_join(t->thread, NULL);
    printf("the touch: signal %d, code %d, value %d\n", t->signal, t->code, t->value);
}

/* ---- The races ---- */

static void race_disk(void)
{
    struct toucher t;
    int gate;

    start(&t, 5);
    gate = hold_next();
    let_touch(&t);
    must(gate, "wait vda 1");
    printf("munmap: %d\n", munmap(map, PAGES * PAGE));
    printf("the disk still has %d\n", lines_with(gate, "vda held read "));
    must(gate, "release vda");
    finish(&t);
    printf("the disk has %d\n", lines_with(gate, "held"));
    close(gate);
}

static void race_kill(void)
{
    int gate = hold_next(), status;
    pid_t child = fork();

    if (child == 0)
        _exit(map[6 * PAGE] != 0);
    must(gate, "wait vda 1");
    kill(child, SIGKILL);
    if (waitpid(child, &status, 0) != child)
        die("waitpid");
    printf("reaped: signal %d\n", WTERMSIG(status));
    printf("the disk still has %d\n", lines_with(gate, "vda held read "));
    close(gate); /* lets it go */
}

static void race_replace(void)
{
    struct toucher t;
    int sync = open_file("sync"), tid = start(&t, 7);
    char *page = map + 7 * PAGE;

    must_about(sync, "park fault_lock_dropped %d", tid);
    printf("armed: %d\n", lines_with(sync, "fault_lock_dropped armed"));
    let_touch(&t);
    must(sync, "wait fault_lock_dropped");
    printf("parked: %d\n", lines_with(sync, "fault_lock_dropped parked"));
    if (mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
        page)
        die("mmap");
    *page = 'A';
    must(sync, "go fault_lock_dropped");
    finish(&t);
    printf("off: %d\n", lines_with(sync, "fault_lock_dropped off"));
    close(sync);
}

/*
 * A process arms the point for its own child, which has inherited the file and so keeps it open, and ends as soon as the child
 * is parked.
 */
static void race_dies(void)
{
    int told[2];
    char byte = 0;

    if (pipe(told))
        die("pipe");
    if (fork() == 0) {
        int sync = open_file("sync");
        pid_t child;

        must(sync, "park fault_lock_dropped *");
        child = fork();
        if (child == 0) {
            byte = map[8 * PAGE] == 0 ? 'z' : 'b';
            _exit(write(told[1], &byte, 1) != 1);
        }
        must(sync, "wait fault_lock_dropped");
        _exit(0);
    }
    close(told[1]);
    printf("the other went on: %zd\n", read(told[0], &byte, 1));
    wait(NULL);
    close(open_file("sync")); /* free for the next one */
}

static void race_closes(void)
{
    struct toucher t;
    int sync = open_file("sync"), tid = start(&t, 9);

    must_about(sync, "park fault_retry %d", tid);
    if (open(FOLDER "sync", O_WRONLY) >= 0 || errno != EBUSY)
        die("a second writer");
    let_touch(&t);
    must(sync, "wait fault_retry");
    close(sync);
    pthread_join(t.thread, NULL);
    printf("the touch: signal %d\n", t.signal);
}

static void race_bad(void)
{
    static const char *const gates[] = {
        "hold",          "hold vdz 0 8",    "hold vda x 8",
        "hold vda 0 0",  "hold vda 0 8 0",  "hold vda 99999999999 8",
        "wait vda many", "release vda one", "explode vda"};
    static const char *const syncs[] = {"park fault_lock_dropped", "park nowhere *",
                                        "park fault_vma_found *",  "park fault_retry nobody",
                                        "go fault_retry",          "wait fault_retry",
                                        "park fault_retry 0",      "stay"};
    int gate = open_file("gate"), sync = open_file("sync"), bad = 0;

    for (unsigned i = 0; i < sizeof(gates) / sizeof(*gates); i++)
        bad += command(gate, gates[i]) == EINVAL;
    for (unsigned i = 0; i < sizeof(syncs) / sizeof(*syncs); i++)
        bad += command(sync, syncs[i]) == EINVAL;
    printf("refused %d\n", bad);
    printf("nothing is held: %s\n", strerror(command(gate, "release vda")));
    printf("armed: %d\n", command(sync, "park fault_retry *\n"));
    printf("armed again: %s\n", strerror(command(sync, "park fault_retry 1")));
    printf("rules %d, armed %d\n", lines_with(gate, "rule"), lines_with(sync, "armed"));
    printf("two lines: %d\n", command(gate, "hold vda 8 8 2\nfail vda 16 8\n"));
    printf("rules %d %d\n", lines_with(gate, "vda rule hold 8 8 2"),
           lines_with(gate, "vda rule fail 16 8"));
    close(gate);
    gate = open_file("gate");
    printf("rules %d\n", lines_with(gate, "rule"));
}

static void set_up(void)
{
    FILE *size = fopen("/sys/block/vda/size", "r");
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};

    if (!size || fscanf(size, "%lu", &disk_sectors) != 1)
        die("/sys/block/vda/size");
    fclose(size);
    file = open("/data/medium.bin", O_RDONLY);
    if (file < 0 || mlockall(MCL_CURRENT)) /* else what is held may be a page of this program */
        die("set_up");
    map = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, file, 0);
    if (map == MAP_FAILED || *(volatile char *)map == 1) /* with its block numbers */
        die("mmap");
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

/* In a process of its own. => whether it failed */
static int run(const char *name, void (*race)(void))
{
    int status;
    pid_t child;

    printf("== %s\n", name);
    child = fork();
    if (child == 0) {
        set_up();
        race();
        exit(0);
    }
    return waitpid(child, &status, 0) != child || status;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*race)(void);
    } races[] = {{"disk", race_disk}, {"kill", race_kill},     {"replace", race_replace},
                 {"dies", race_dies}, {"closes", race_closes}, {"bad", race_bad}};
    int status = 0;

    setvbuf(stdout, NULL, _IONBF, 0);
    for (int arg = 1; arg < argc; arg++) {
        for (unsigned i = 0; i < sizeof(races) / sizeof(*races); i++)
            if (strcmp(races[i].name, argv[arg]) == 0)
                status |= run(argv[arg], races[i].race);
    }
    return status;
}
