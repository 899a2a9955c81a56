/*
 * hog: a program that wants memory, or the disk, for the tests of what happens when there is none.
 *
 *     hog grow PAGES         touches so many pages of new memory, checks them, ends
 *     hog spin N             computes for ever, without a system call
 *     hog hold PAGES         the same, then sleeps until it is killed
 *     hog disk FILE          reads one page of the file from the disk again and again, until it is
 * killed hog exit STATUS        ends with it hog read FILE PAGES    reads the file into so many new
 * pages; ends with the errno of the call that failed
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BYTES         4096ul
#define STATUS_USAGE       2
#define STATUS_WRONG_BYTES 3

static char *new_memory(unsigned long pages)
{
    char *memory = mmap(NULL, pages * PAGE_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        exit(errno);
    return memory;
}

static void fill(char *memory, unsigned long pages)
{
    for (unsigned long i = 0; i < pages; i++)
        *(volatile uint64_t *)(memory + i * PAGE_BYTES) = i + 1;
    for (unsigned long i = 0; i < pages; i++)
        if (*(volatile uint64_t *)(memory + i * PAGE_BYTES) != i + 1)
            exit(STATUS_WRONG_BYTES);
}

static int open_file(const char *path)
{
    int fd = open(path, O_RDONLY);

    if (fd < 0)
        exit(errno);
    return fd;
}

static void read_one_page_for_ever(const char *path)
{
    int fd = open_file(path);
    volatile char *page = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);

    if (page == MAP_FAILED)
        exit(errno);
    for (;;) {
        (void)*page;
        madvise((void *)page, PAGE_BYTES, MADV_DONTNEED);
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        sched_yield(); /* under icount QEMU runs the other CPUs only when this one pauses */
    }
}

static int read_into_new_memory(const char *path, unsigned long pages)
{
    int fd = open_file(path);
    char *memory = new_memory(pages);

    for (unsigned long i = 0; i < pages; i++) {
        ssize_t n = pread(fd, memory + i * PAGE_BYTES, PAGE_BYTES, 0);

        if (n < 0)
            return errno;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 2 ? argv[1] : "";
    unsigned long pages = argc > 2 ? strtoul(argv[argc - 1], NULL, 0) : 0;

    if (strcmp(mode, "grow") == 0 || strcmp(mode, "hold") == 0) {
        fill(new_memory(pages), pages);
        while (mode[0] == 'h')
            sleep(1000);
        return 0;
    }
    while (strcmp(mode, "spin") == 0)
        __asm__ volatile("pause");
    if (strcmp(mode, "exit") == 0)
        exit(atoi(argv[2]));
    if (strcmp(mode, "disk") == 0)
        read_one_page_for_ever(argv[2]);
    if (strcmp(mode, "read") == 0 && argc > 3)
        return read_into_new_memory(argv[2], pages);
    return STATUS_USAGE;
}
