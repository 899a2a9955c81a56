/*
 * membench: what the operations on an address space cost, in ticks of the time-stamp counter.
 *
 * Under `tools/qemu --icount` a tick is an instruction, so the numbers are the same in every run, on every machine, and
 * the same program can be run on Linux in the same QEMU (make bench). Elsewhere ticks are time.
 *
 *     membench FILE       FILE: at least FILE_PAGES pages; it is brought into the page cache first
 *
 * Each operation is done ROUNDS times and the cheapest round counts: the others may hold a timer interrupt, or fill
 * what is kept for later (lists of frames, slabs, tables). What the loop itself costs over memory that is mapped
 * already is taken off.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE       4096ul
#define PAGES      1000ul
#define FILE_PAGES 1024ul
#define FORK_PAGES 4096ul
#define PAIRS      100ul
#define ROUNDS     5

static __attribute__((noinline)) uint64_t ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static char *map(unsigned long pages, int prot, int flags, int fd)
{
    char *area = mmap(NULL, pages * PAGE, prot, flags, fd, 0);
    if (area == MAP_FAILED)
        die("mmap");
    /* Pages of 4 KiB are what is compared; a kernel without larger ones says so. */
    if (fd < 0)
        (void)madvise(area, pages * PAGE, MADV_NOHUGEPAGE);
    return area;
}

static char *map_memory(unsigned long pages)
{
    return map(pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void unmap(char *area, unsigned long pages)
{
    if (munmap(area, pages * PAGE))
        die("munmap");
}

static uint64_t time_to_write(char *area, unsigned long pages)
{
    uint64_t start = ticks();
    for (unsigned long i = 0; i < pages; i++)
        *(volatile char *)(area + i * PAGE) = 1;
    return ticks() - start;
}

static uint64_t time_to_read(const char *area, unsigned long pages)
{
    uint64_t start = ticks();
    for (unsigned long i = 0; i < pages; i++)
        (void)*(const volatile char *)(area + i * PAGE);
    return ticks() - start;
}

/* ---- The operations: each => ticks of one round ---- */

static uint64_t first_touch(int fd)
{
    (void)fd;
    char *area = map_memory(PAGES);
    uint64_t cold = time_to_write(area, PAGES);
    uint64_t warm = time_to_write(area, PAGES);
    unmap(area, PAGES);
    return cold - warm;
}

static uint64_t file_touch(int fd)
{
    char *area = map(FILE_PAGES, PROT_READ, MAP_SHARED, fd);
    uint64_t cold = time_to_read(area, FILE_PAGES);
    uint64_t warm = time_to_read(area, FILE_PAGES);
    unmap(area, FILE_PAGES);
    return cold - warm;
}

/* A child that lives until the pipe is closed shares the pages meanwhile. => its end of the pipe */
static int start_sharer(pid_t *child)
{
    int ends[2];
    char byte;
    if (pipe(ends))
        die("pipe");
    *child = fork();
    if (*child < 0)
        die("fork");
    if (*child == 0) {
        close(ends[1]);
        (void)!read(ends[0], &byte, 1);
        _exit(0);
    }
    close(ends[0]);
    return ends[1];
}

static uint64_t copy_on_write(int fd)
{
    (void)fd;
    pid_t child;
    char *area = map_memory(PAGES);
    time_to_write(area, PAGES);
    int held = start_sharer(&child);
    uint64_t shared = time_to_write(area, PAGES);
    uint64_t own = time_to_write(area, PAGES);
    close(held);
    waitpid(child, NULL, 0);
    unmap(area, PAGES);
    return shared - own;
}

static uint64_t unmap_touched(int fd)
{
    (void)fd;
    char *area = map_memory(PAGES);
    time_to_write(area, PAGES);
    uint64_t start = ticks();
    unmap(area, PAGES);
    return ticks() - start;
}

static uint64_t map_and_unmap(int fd)
{
    (void)fd;
    uint64_t start = ticks();
    for (unsigned long i = 0; i < PAIRS; i++) {
        void *area = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(area, PAGE);
    }
    return ticks() - start;
}

static uint64_t time_to_fork(void)
{
    uint64_t start = ticks();
    long child = syscall(SYS_fork);
    if (child == 0)
        _exit(0);
    uint64_t end = ticks();
    if (child < 0)
        die("fork");
    waitpid((pid_t)child, NULL, 0);
    return end - start;
}

/* What a fork costs more with the pages than without. */
static uint64_t fork_with_pages(int fd)
{
    (void)fd;
    char *area = map_memory(FORK_PAGES);
    uint64_t without = time_to_fork();
    time_to_write(area, FORK_PAGES);
    uint64_t with = time_to_fork();
    unmap(area, FORK_PAGES);
    return with - without;
}

/* To read-only and back: two calls. */
static uint64_t protect(int fd)
{
    (void)fd;
    char *area = map_memory(PAGES);
    time_to_write(area, PAGES);
    uint64_t start = ticks();
    if (mprotect(area, PAGES * PAGE, PROT_READ) ||
        mprotect(area, PAGES * PAGE, PROT_READ | PROT_WRITE))
        die("mprotect");
    uint64_t spent = ticks() - start;
    unmap(area, PAGES);
    return spent;
}

static const struct {
    const char *name;
    uint64_t (*round)(int fd);
    unsigned long count; /* operations in a round */
} operations[] = {
    {"first_touch", first_touch, PAGES},     {"file_map_around", file_touch, FILE_PAGES},
    {"copy_on_write", copy_on_write, PAGES}, {"unmap_page", unmap_touched, PAGES},
    {"mmap_munmap", map_and_unmap, PAIRS},   {"fork_page", fork_with_pages, FORK_PAGES},
    {"mprotect_1000", protect, 2},
};

static int open_cached(const char *path)
{
    static char buffer[16 * PAGE];
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        die(path);
    for (unsigned long done = 0; done < FILE_PAGES * PAGE; done += sizeof(buffer))
        if (read(fd, buffer, sizeof(buffer)) != (ssize_t)sizeof(buffer))
            die(path);
    return fd;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: membench FILE\n");
        return 2;
    }
    int fd = open_cached(argv[1]);
    for (unsigned i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        uint64_t best = ~0ul;
        for (int round = 0; round < ROUNDS; round++) {
            uint64_t spent = operations[i].round(fd);
            best = spent < best ? spent : best;
        }
        printf("%s %lu\n", operations[i].name, best / operations[i].count);
    }
    return 0;
}
