/*
 * Advice about memory and files, of every kind, on areas of every kind, and files that shrink or are
 * closed under their mappings: results, areas as /proc/self/smaps shows them, bytes and signals.
 * Prints the same on every kernel that does it right.
 *
 * Use: advices. The file on a disk is the program itself.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/user/show.h"

#define P  ((size_t)SHOW_PAGE)
#define RW (PROT_READ | PROT_WRITE)

#define DONTNEED_LOCKED 24

static const struct {
    int number;
    const char *name;
} advices[] = {
    {MADV_NORMAL, "NORMAL"},
    {MADV_RANDOM, "RANDOM"},
    {MADV_SEQUENTIAL, "SEQUENTIAL"},
    {MADV_WILLNEED, "WILLNEED"},
    {MADV_DONTNEED, "DONTNEED"},
    {MADV_FREE, "FREE"},
    {MADV_REMOVE, "REMOVE"},
    {MADV_DONTFORK, "DONTFORK"},
    {MADV_DOFORK, "DOFORK"},
    {MADV_DONTDUMP, "DONTDUMP"},
    {MADV_DODUMP, "DODUMP"},
    {MADV_WIPEONFORK, "WIPEONFORK"},
    {MADV_KEEPONFORK, "KEEPONFORK"},
    {MADV_COLD, "COLD"},
    {MADV_PAGEOUT, "PAGEOUT"},
    {22, "POPULATE_READ"},
    {23, "POPULATE_WRITE"},
    {DONTNEED_LOCKED, "DONTNEED_LOCKED"},
    {-1, "-1"},
    {5, "5"},
    {7, "7"},
    {99, "99"},
    {1000, "1000"},
};
#define ADVICES (sizeof(advices) / sizeof(*advices))

static char *map(size_t pages, int prot, int flags, int fd)
{
    char *memory = mmap(NULL, pages * P, prot, flags, fd, 0);
    if (memory == MAP_FAILED)
        exit(1);
    return memory;
}

static char *map_private(size_t pages)
{
    return map(pages, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* ---- Areas ---- */

/* The letters that say an advice, of the areas in [start, +pages), with their lengths. */
static void show_areas(const char *start, size_t pages)
{
    static const char *const wanted[] = {"sr", "rr", "dc", "wf", "dd", "lo", "sh", "ms"};
    unsigned long from = 0, to = 0, begin, end;
    char line[512];
    FILE *smaps = fopen("/proc/self/smaps", "r");

    while (smaps && fgets(line, sizeof(line), smaps)) {
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) {
            from = begin;
            to = end;
            continue;
        }
        if (strncmp(line, "VmFlags:", 8) || to <= (uintptr_t)start ||
            from >= (uintptr_t)start + pages * P)
            continue;
        printf("   ");
        for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
            if (strstr(line + 8, wanted[i]))
                printf(" %s", wanted[i]);
        if (from < (uintptr_t)start)
            from = (uintptr_t)start;
        if (to > (uintptr_t)start + pages * P)
            to = (uintptr_t)start + pages * P;
        printf(" [%lu,%lu)\n", (from - (uintptr_t)start) / P, (to - (uintptr_t)start) / P);
    }
    if (smaps)
        fclose(smaps);
}

static void splits(void)
{
    char *guard = map(12, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1), *memory = guard + 2 * P;

    mmap(memory, 8 * P, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    for (size_t i = 0; i < ADVICES; i++) {
        SHOW(advices[i].name, madvise(memory + 3 * P, 2 * P, advices[i].number));
        show_areas(memory, 8);
    }
    munmap(guard, 12 * P);
}

static void on_every_kind(const char *path)
{
    int disk = open(path, O_RDONLY), file = open("/dev/shm/kinds", O_CREAT | O_RDWR, 0600),
        readonly = open("/dev/shm/kinds", O_RDONLY);

    unlink("/dev/shm/kinds");
    if (ftruncate(file, 4 * P))
        exit(1);
    const struct {
        const char *name;
        char *memory;
    } kinds[] = {
        {"private", map_private(2)},
        {"private read-only", map(2, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1)},
        {"private write-only", map(2, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1)},
        {"none", map(2, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1)},
        {"shared", map(2, RW, MAP_SHARED | MAP_ANONYMOUS, -1)},
        {"shared read-only", map(2, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1)},
        {"disk, private", map(2, RW, MAP_PRIVATE, disk)},
        {"disk, shared", map(2, PROT_READ, MAP_SHARED, disk)},
        {"memory, private", map(2, RW, MAP_PRIVATE, file)},
        {"memory, shared", map(2, RW, MAP_SHARED, file)},
        {"memory, shared, read-only descriptor", map(2, PROT_READ, MAP_SHARED, readonly)},
        {"past the end", map(6, PROT_READ, MAP_SHARED, file) + 4 * P},
    };

    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
        printf("-- %s\n", kinds[k].name);
        for (size_t i = 0; i < ADVICES; i++)
            SHOW(advices[i].name, madvise(kinds[k].memory, 2 * P, advices[i].number));
    }
    char *locked = map_private(2);
    mlock(locked, 2 * P);
    printf("-- locked\n");
    for (size_t i = 0; i < ADVICES; i++)
        SHOW(advices[i].name, madvise(locked, 2 * P, advices[i].number));
}

static void ranges(void)
{
    char *memory = map_private(8);

    memset(memory, 'x', 8 * P);
    munmap(memory + 3 * P, 2 * P);
    for (size_t i = 0; i < ADVICES; i++) {
        printf("-- %s\n", advices[i].name);
        SHOW("over a hole", madvise(memory + 2 * P, 4 * P, advices[i].number));
        SHOW("in a hole", madvise(memory + 3 * P, P, advices[i].number));
        SHOW("unaligned", madvise(memory + 1, P, advices[i].number));
        SHOW("unaligned length", madvise(memory, 1, advices[i].number));
        SHOW("length 0", madvise(memory + 3 * P, 0, advices[i].number));
        SHOW("unaligned, length 0", madvise(memory + 1, 0, advices[i].number));
        SHOW("length -1", madvise(memory, (size_t)-1, advices[i].number));
        SHOW("length -4096", madvise(memory, (size_t)-4096, advices[i].number));
        SHOW("wraps to 0", madvise(memory, -(size_t)memory, advices[i].number));
        SHOW("the kernel's half", madvise((void *)0xffff800000000000ul, P, advices[i].number));
    }
    printf("left: %d %d %d %d\n", memory[0], memory[2 * P], memory[5 * P], memory[6 * P]);
}

/* ---- Bytes ---- */

static void what_is_left(void)
{
    char *memory = map_private(8);

    for (int i = 0; i < 8; i++)
        memory[i * P] = 'a' + i;
    SHOW("DONTNEED", madvise(memory + P, 2 * P, MADV_DONTNEED));
    SHOW("FREE", madvise(memory + 4 * P, 2 * P, MADV_FREE));
    SHOW("COLD", madvise(memory, 8 * P, MADV_COLD));
    memory[4 * P + 1] = 'z'; /* takes it back, the rest of its page with it */
    printf("bytes: %d %d %d %d, and %d\n", memory[0], memory[P], memory[2 * P], memory[3 * P],
           memory[4 * P + 1]);
    char kept = memory[4 * P];
    SHOW_TRUE("freed: there or zero", kept == 'a' + 4 || kept == 0);
    mlock(memory + 6 * P, P);
    SHOW("DONTNEED up to a locked page", madvise(memory + 5 * P, 3 * P, MADV_DONTNEED));
    printf("bytes: %d %d %d\n", memory[5 * P], memory[6 * P], memory[7 * P]);
    SHOW("DONTNEED_LOCKED", madvise(memory + 6 * P, 2 * P, DONTNEED_LOCKED));
    printf("bytes: %d %d\n", memory[6 * P], memory[7 * P]);
}

static void removed(void)
{
    int file = memfd_create("memory", 0);

    if (ftruncate(file, 4 * P))
        exit(1);
    char *shared = map(4, RW, MAP_SHARED, file), *private = map(4, RW, MAP_PRIVATE, file);
    for (int i = 0; i < 4; i++)
        shared[i * P] = 'a' + i;
    private[P] = 'p';
    SHOW("REMOVE", madvise(shared + P, 2 * P, MADV_REMOVE));
    printf("shared: %d %d %d %d\n", shared[0], shared[P], shared[2 * P], shared[3 * P]);
    printf("private: %d %d %d %d\n", private[0], private[P], private[2 * P], private[3 * P]);
    SHOW("data from page 1 on", lseek(file, P, SEEK_DATA) / P);
    SHOW("size", lseek(file, 0, SEEK_END) / P);
    close(file);
    SHOW("REMOVE, descriptor closed", madvise(shared, P, MADV_REMOVE));
    printf("shared: %d %d\n", shared[0], shared[3 * P]);
}

/* ---- Fork ---- */

static sigjmp_buf escape;

static void caught(int signal)
{
    siglongjmp(escape, signal);
}

/* A read, or a write where `byte` is not 0. */
static int touch(volatile char *at, char byte)
{
    int signal = sigsetjmp(escape, 1);

    if (signal)
        return -signal;
    if (byte)
        *at = byte;
    return *at;
}

static void show_bytes(const char *name, char *memory, int pages)
{
    printf("%s:", name);
    for (int i = 0; i < pages; i++)
        printf(" %d", touch(memory + i * P, 0));
    printf("\n");
}

static void forks(void)
{
    char *memory = map_private(8);
    int status;

    for (int i = 0; i < 8; i++)
        memory[i * P] = 'a' + i;
    madvise(memory + P, P, MADV_DONTFORK);
    madvise(memory + 3 * P, 2 * P, MADV_WIPEONFORK);
    madvise(memory + 6 * P, P, MADV_RANDOM);
    mlock(memory + 7 * P, P);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        show_bytes("child", memory, 8);
        show_areas(memory, 8);
        madvise(memory + 3 * P, P, MADV_KEEPONFORK);
        memory[3 * P] = 'k';
        memory[4 * P] = 'w';
        fflush(stdout);
        if (fork() == 0) {
            show_bytes("its child", memory, 8);
            fflush(stdout);
            _exit(0);
        }
        wait(&status);
        _exit(0);
    }
    waitpid(child, &status, 0);
    show_bytes("parent", memory, 8);
    show_areas(memory, 8);
}

/* ---- Files that shrink, and descriptors that are closed ---- */

static void shrinking(int file)
{
    if (ftruncate(file, 4 * P))
        exit(1);
    char *shared = map(6, RW, MAP_SHARED, file), *private = map(6, RW, MAP_PRIVATE, file);
    char byte = 0;

    for (int i = 0; i < 4; i++)
        shared[i * P] = 'a' + i;
    private[0] = 'A';
    private[2 * P] = 'C';
    private[3 * P] = 'D';
    show_bytes("shared", shared, 6);
    show_bytes("private", private, 6);
    SHOW("shorter", ftruncate(file, P + 10));
    show_bytes("shared", shared, 6);
    show_bytes("private", private, 6);
    printf("stores past the end: %d %d\n", touch(shared + 2 * P, 1), touch(private + 2 * P, 1));
    printf("store behind the end: %d\n", touch(shared + P + 20, 's'));
    SHOW("read there", pread(file, &byte, 1, P + 20));
    int other = memfd_create("other", 0), zero = open("/dev/zero", O_RDONLY);
    SHOW("write from past the end", write(other, shared + 2 * P, 1));
    SHOW("write up to there", write(other, shared + 2 * P - 3, 6));
    SHOW("read into it", read(zero, private + 3 * P, 3));
    close(other);
    close(zero);
    SHOW("POPULATE_READ", madvise(shared, 4 * P, 22));
    SHOW("longer again", ftruncate(file, 4 * P));
    show_bytes("shared", shared, 6);
    show_bytes("private", private, 6);
    private[3 * P] = 'd';
    shared[3 * P] = 'e';
    SHOW("punched", fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4 * P));
    show_bytes("shared", shared, 4);
    show_bytes("private", private, 4);
    shared[0] = 'z';
    close(file);
    show_bytes("closed", shared, 6);
    printf("stored: %d\n", touch(shared + P, 'y'));
    SHOW("msync", msync(shared, 4 * P, MS_SYNC));
    munmap(shared, 6 * P);
    show_bytes("the other map", private, 6);
}

/* ---- Files ---- */

static void file_calls(const char *path)
{
    static const int kinds[] = {0, 1, 2, 3, 4, 5, 6, -1};
    int disk = open(path, O_RDONLY), writer = open("/tmp/advices.file", O_CREAT | O_WRONLY, 0600),
        folder = open("/", O_RDONLY), name = open(path, O_PATH), fds[2];
    const int files[] = {disk, memfd_create("memory", 0), writer, folder, name, -1, 0};
    const char *const names[] = {"disk", "memfd", "write-only", "folder", "O_PATH", "bad", "pipe"};

    if (pipe(fds))
        exit(1);
    for (int f = 0; f < 7; f++) {
        int fd = f == 6 ? fds[0] : files[f];
        printf("-- %s\n", names[f]);
        for (int i = 0; i < 8; i++)
            SHOW("fadvise", syscall(SYS_fadvise64, fd, 0L, 0L, kinds[i]));
        SHOW("negative length", syscall(SYS_fadvise64, fd, 0L, -1L, 0));
        SHOW("negative offset", syscall(SYS_fadvise64, fd, -1L, 10L, 0));
        SHOW("negative both", syscall(SYS_fadvise64, fd, -1L, -1L, 0));
        SHOW("a long way", syscall(SYS_fadvise64, fd, INT64_MAX, INT64_MAX, POSIX_FADV_WILLNEED));
        SHOW("readahead", syscall(SYS_readahead, fd, 0L, P));
        SHOW("nothing", syscall(SYS_readahead, fd, 0L, 0L));
        SHOW("from -1", syscall(SYS_readahead, fd, -1L, P));
        SHOW("to the end of numbers", syscall(SYS_readahead, fd, INT64_MAX, P));
        SHOW("negative count", syscall(SYS_readahead, fd, 0L, -1L));
    }
    unlink("/tmp/advices.file");
}

int main(int argc, char **argv)
{
    const char *path = argv[0];

    (void)argc;
    signal(SIGSEGV, caught);
    signal(SIGBUS, caught);
    splits();
    on_every_kind(path);
    ranges();
    what_is_left();
    removed();
    forks();
    shrinking(memfd_create("memory", 0));
    int file = open("/dev/shm/advices", O_CREAT | O_RDWR, 0600);
    unlink("/dev/shm/advices");
    shrinking(file);
    file_calls(path);
    return 0;
}
