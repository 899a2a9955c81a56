/*
 * The memory of another process: process_vm_readv, process_vm_writev, and /proc/PID/mem, which does
 * not look at protections. Prints the same on every kernel that does it right.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/user/show.h"

#define P ((size_t)SHOW_PAGE)

static char buf[8 * 4096] __attribute__((aligned(4096)));

static char *map(size_t pages, int prot, int flags)
{
    return mmap(NULL, pages * P, prot, flags | MAP_ANONYMOUS, -1, 0);
}

/* One buffer on each side. */
static long vm_read(pid_t pid, void *own, size_t n, void *there, size_t m)
{
    struct iovec a = {own, n}, b = {there, m};
    return process_vm_readv(pid, &a, 1, &b, 1, 0);
}

static long vm_write(pid_t pid, void *own, size_t n, void *there, size_t m)
{
    struct iovec a = {own, n}, b = {there, m};
    return process_vm_writev(pid, &a, 1, &b, 1, 0);
}

/* ---- A child with known memory ---- */

struct child {
    pid_t pid;
    int go, done; /* pipes */
};

/* The child waits; at the end it exits with the byte it then has at `watched`. */
static struct child start_child(volatile unsigned char *watched)
{
    int go[2], done[2];
    struct child child;
    char byte = 0;

    if (pipe(go) || pipe(done))
        exit(1);
    fflush(stdout);
    child.pid = fork();
    if (child.pid == 0) {
        if (write(done[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
            _exit(255);
        _exit(*watched);
    }
    if (read(done[0], &byte, 1) != 1)
        exit(1);
    child.go = go[1];
    child.done = done[0];
    return child;
}

static int end_child(struct child *child)
{
    int status;
    char byte = 1;

    if (write(child->go, &byte, 1) != 1)
        exit(1);
    waitpid(child->pid, &status, 0);
    close(child->go);
    close(child->done);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- process_vm ---- */

static void transfers(void)
{
    char *memory = map(8, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    struct iovec own[3], there[3];

    for (int i = 0; i < 8; i++)
        memset(memory + i * P, 'a' + i, P);
    munmap(memory + 4 * P, P);
    mprotect(memory + 6 * P, P, PROT_READ);
    mprotect(memory + 7 * P, P, PROT_NONE);
    struct child child = start_child((unsigned char *)memory + 10);

    SHOW("read", vm_read(child.pid, buf, 100, memory + P - 50, 100));
    SHOW_TRUE("right", buf[49] == 'a' && buf[50] == 'b');
    SHOW("written", vm_write(child.pid, "0123456789abc", 13, memory + 5, 13));
    SHOW_TRUE("not here", memory[10] == 'a');
    SHOW("own is shorter", vm_read(child.pid, buf, 10, memory, 100));
    SHOW("own is longer", vm_read(child.pid, buf, 100, memory, 10));
    SHOW("up to a hole", vm_read(child.pid, buf, 3 * P, memory + 3 * P + 100, 3 * P));
    SHOW("from a hole", vm_read(child.pid, buf, 10, memory + 4 * P, 10));
    SHOW("to read-only", vm_write(child.pid, buf, 10, memory + 6 * P, 10));
    SHOW("up to read-only", vm_write(child.pid, buf, 2 * P, memory + 5 * P, 2 * P));
    SHOW("from read-only", vm_read(child.pid, buf, 10, memory + 6 * P, 10));
    SHOW("from PROT_NONE", vm_read(child.pid, buf, 10, memory + 7 * P, 10));
    SHOW("to PROT_NONE", vm_write(child.pid, buf, 10, memory + 7 * P, 10));
    SHOW("own is not there", vm_read(child.pid, memory + 4 * P, 10, memory, 10));
    SHOW("own ends early", vm_read(child.pid, memory + 4 * P - 4, 10, memory, 10));
    SHOW("own source ends early", vm_write(child.pid, memory + 4 * P - 4, 10, memory + 64, 10));
    SHOW("own is read-only", vm_read(child.pid, memory + 6 * P, 10, memory, 10));
    SHOW("the kernel's half", vm_read(child.pid, buf, 10, (void *)0xffff800000000000ul, 10));
    SHOW("own in the kernel's half",
         vm_read(child.pid, (void *)0xffff800000000000ul, 10, memory, 10));
    SHOW("the last page", vm_read(child.pid, buf, 10, (void *)-4096l, 10));

    own[0] = (struct iovec){buf, 5};
    own[1] = (struct iovec){buf + 100, 0};
    own[2] = (struct iovec){buf + 200, 20};
    there[0] = (struct iovec){memory, 3};
    there[1] = (struct iovec){(void *)8, 0};
    there[2] = (struct iovec){memory + P, 30};
    SHOW("vectors", process_vm_readv(child.pid, own, 3, there, 3, 0));
    SHOW_TRUE("in order", buf[2] == 'a' && buf[3] == 'b' && buf[219] == 'b');
    there[1] = (struct iovec){memory + 4 * P, 10};
    SHOW("vectors up to a hole", process_vm_readv(child.pid, own, 3, there, 3, 0));
    there[0].iov_len = (size_t)-1;
    SHOW("a negative length there", process_vm_readv(child.pid, own, 3, there, 3, 0));
    there[0].iov_len = 3;
    own[0].iov_len = (size_t)-1;
    SHOW("a negative length here", process_vm_readv(child.pid, own, 3, there, 3, 0));
    SHOW("the child's byte", end_child(&child));
}

static void errors(void)
{
    struct iovec one = {buf, 10}, none = {buf, 0};
    static struct iovec many[1025];
    pid_t me = getpid(), gone = fork();

    if (gone == 0)
        _exit(0);
    siginfo_t info;
    waitid(P_PID, gone, &info, WEXITED | WNOWAIT);
    SHOW("a zombie", process_vm_readv(gone, &one, 1, &one, 1, 0));
    waitpid(gone, NULL, 0);
    SHOW("nobody", process_vm_readv(gone, &one, 1, &one, 1, 0));
    SHOW("pid 0", process_vm_readv(0, &one, 1, &one, 1, 0));
    SHOW("pid -1", process_vm_readv(-1, &one, 1, &one, 1, 0));
    SHOW("flags", process_vm_readv(me, &one, 1, &one, 1, 1));
    SHOW("flags before all", process_vm_readv(-1, NULL, 1, NULL, 1, 8));
    SHOW("no vector here", process_vm_readv(me, NULL, 1, &one, 1, 0));
    SHOW("no vector there", process_vm_readv(me, &one, 1, NULL, 1, 0));
    SHOW("0 here", process_vm_readv(-1, NULL, 0, NULL, 5, 0));
    SHOW("no bytes here", process_vm_readv(-1, &none, 1, NULL, 5, 0));
    SHOW("0 there", process_vm_readv(-1, &one, 1, NULL, 0, 0));
    SHOW("no bytes there", process_vm_readv(-1, &one, 1, &none, 1, 0));
    SHOW("1025 here", process_vm_readv(me, many, 1025, &one, 1, 0));
    SHOW("1025 there", process_vm_readv(me, &one, 1, many, 1025, 0));
    SHOW("1024", process_vm_readv(me, &one, 1, many, 1024, 0));
    SHOW("2^32 there", process_vm_readv(me, &one, 1, many, 1ul << 32, 0));
    SHOW("oneself", vm_write(me, "self", 4, buf + 1000, 4));
    SHOW_TRUE("right", memcmp(buf + 1000, "self", 4) == 0);
}

static pthread_barrier_t barrier;
static int thread_id;

static void *stay(void *arg)
{
    thread_id = (int)syscall(SYS_gettid);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return arg;
}

static void by_thread(void)
{
    pthread_t thread;

    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, stay, NULL);
    pthread_barrier_wait(&barrier);
    SHOW("a thread's id", vm_read(thread_id, buf, 10, buf + 1000, 10));
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
}

static long minor_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static void counts(void)
{
    char *memory = map(4, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    memset(buf, 1, sizeof(buf));
    long before = minor_faults();

    vm_write(getpid(), buf, 3 * P, memory, 3 * P);
    printf("faults of a write to 3 absent pages: %ld\n", minor_faults() - before);
    before = minor_faults();
    vm_write(getpid(), buf, 3 * P, memory, 3 * P);
    printf("faults of the next one: %ld\n", minor_faults() - before);
}

/* ---- /proc/PID/mem ---- */

static void forced(const char *name, char *memory)
{
    int fd = open("/proc/self/mem", O_RDWR);
    long before = minor_faults();

    printf("%s\n", name);
    SHOW("write", pwrite(fd, "forced", 6, (uintptr_t)memory + 100));
    printf("faults: %ld\n", minor_faults() - before);
    memset(buf, 0, 16);
    SHOW("read", pread(fd, buf, 6, (uintptr_t)memory + 100));
    printf("bytes: %.6s\n", buf);
    before = minor_faults();
    SHOW("again", pwrite(fd, "FORCED", 6, (uintptr_t)memory + 100));
    printf("faults: %ld\n", minor_faults() - before);
    SHOW("the page behind", pread(fd, buf, 4, (uintptr_t)memory + P));
    SHOW("a system call into it", syscall(SYS_read, open("/dev/zero", O_RDONLY), memory + 100, 1));
    close(fd);
}

static void protections(const char *file)
{
    static const int prots[] = {PROT_READ, PROT_NONE, PROT_EXEC, PROT_READ | PROT_EXEC};
    static const char *const names[] = {"read-only", "none", "execute-only", "text"};
    int fd = open(file, O_RDONLY);
    char name[64];

    for (int i = 0; i < 4; i++) {
        char *touched = map(2, PROT_READ | PROT_WRITE, MAP_PRIVATE);
        memset(touched, 'x', 2 * P);
        mprotect(touched, 2 * P, prots[i]);
        snprintf(name, sizeof(name), "%s, touched", names[i]);
        forced(name, touched);
        snprintf(name, sizeof(name), "%s, fresh", names[i]);
        forced(name, map(2, prots[i], MAP_PRIVATE));
        snprintf(name, sizeof(name), "%s, of a file", names[i]);
        forced(name, mmap(NULL, 2 * P, prots[i], MAP_PRIVATE, fd, 0));
    }
    forced("shared, read-only", map(2, PROT_READ, MAP_SHARED));
    forced("shared file", mmap(NULL, 2 * P, PROT_READ, MAP_SHARED, fd, 0));
    close(fd);
}

/* A page that a child has, too: the writer gets its own. */
static void forced_after_fork(void)
{
    for (int i = 0; i < 2; i++) {
        char *memory = map(1, PROT_READ | PROT_WRITE, MAP_PRIVATE);
        memset(memory, 'p', P);
        mprotect(memory, P, i ? PROT_NONE : PROT_READ);
        struct child child = start_child((unsigned char *)buf);
        int fd = open("/proc/self/mem", O_RDWR), other;
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/mem", child.pid);
        other = open(path, O_RDWR);
        SHOW("here", pwrite(fd, "mine", 4, (uintptr_t)memory));
        SHOW("there", pread(other, buf + 100, 4, (uintptr_t)memory));
        printf("the child's: %.4s\n", buf + 100);
        SHOW("there, too", pwrite(other, "its", 3, (uintptr_t)memory));
        pread(fd, buf + 100, 4, (uintptr_t)memory);
        printf("ours: %.4s\n", buf + 100);
        SHOW("now accessible", mprotect(memory, P, PROT_READ | PROT_WRITE));
        printf("by ourselves: %.4s\n", memory);
        memory[0] = 'M';
        printf("and written: %.4s\n", memory);
        buf[0] = 0;
        end_child(&child);
        close(fd);
        close(other);
    }
}

int main(int argc, char **argv)
{
    transfers();
    errors();
    by_thread();
    counts();
    protections(argc > 1 ? argv[1] : argv[0]);
    forced_after_fork();
    return 0;
}
