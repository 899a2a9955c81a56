/*
 * dying: a child for each way to end by one's own mistake, in functions that a report must name. Use: dying KIND...
 * Prints `KIND SIGNAL` for each. `caught` lives on: its handler takes the signal, and no report may come of it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE           4096
#define PLAIN          __attribute__((noinline, noclone)) void
#define NO_TAIL_CALL() __asm__ volatile("" ::: "memory")

static volatile int zero;

struct box {
    char unused[32];
    int value;
};

static struct box *volatile no_box;

PLAIN inner_of_null(struct box *box)
{
    box->value = 1;
    NO_TAIL_CALL();
}

PLAIN outer_of_null(void)
{
    char large[3000]; /* the way leads over it */
    memset(large, zero, sizeof(large));
    __asm__ volatile("" ::"r"(large) : "memory");
    inner_of_null(no_box);
    NO_TAIL_CALL();
}

PLAIN writes_read_only(void)
{
    volatile char *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page[123] = 1;
}

PLAIN reads_behind_the_file(void)
{
    int fd = open("/data/small.txt", O_RDONLY);
    struct stat status;
    fstat(fd, &status);
    size_t pages = ((size_t)status.st_size + PAGE - 1) / PAGE;
    volatile char *map = mmap(NULL, (pages + 2) * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    (void)map[(pages + 1) * PAGE];
    NO_TAIL_CALL();
}

static __attribute__((noinline, noclone)) int recursion(int n)
{
    volatile char large[1024];
    large[n % 1024] = 1;
    return zero ? 0 : recursion(n + 1) + large[n % 1024];
}

PLAIN recurses(void)
{
    recursion(0);
    NO_TAIL_CALL();
}

PLAIN gives_up(void)
{
    abort();
}

PLAIN jumps_nowhere(void)
{
    void (*volatile nowhere)(void) = (void (*)(void))(uintptr_t)0x5000;
    nowhere();
    NO_TAIL_CALL();
}

PLAIN divides(void)
{
    zero = 1000 / zero;
}

static sigjmp_buf back;

static void go_back(int signal)
{
    siglongjmp(back, signal);
}

PLAIN is_caught(void)
{
    signal(SIGSEGV, go_back);
    if (sigsetjmp(back, 1) == 0)
        no_box->value = 2;
    _exit(0);
}

/* Its handler needs the very stack that has no room left. */
PLAIN has_no_room(void)
{
    signal(SIGSEGV, go_back);
    recursion(0);
    NO_TAIL_CALL();
}

static const struct {
    const char *name;
    void (*volatile run)(void);
} kinds[] = {
    {"null", outer_of_null},
    {"read-only", writes_read_only},
    {"behind", reads_behind_the_file},
    {"recursion", recurses},
    {"abort", gives_up},
    {"nowhere", jumps_nowhere},
    {"divide", divides},
    {"no-room", has_no_room},
    {"caught", is_caught},
};

PLAIN die_by(const char *kind)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kinds[i].name, kind) == 0)
            kinds[i].run();
    NO_TAIL_CALL();
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            die_by(argv[i]);
        if (child == 0)
            _exit(99);
        waitpid(child, &status, 0);
        printf("%s %d\n", argv[i], WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status));
        fflush(stdout);
    }
    return 0;
}
