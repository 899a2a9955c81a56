/*
 * efault: calls that are given memory they cannot use. Every line must be equal on every kernel.
 * Use: efault FILE, a file of at least three pages.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "tests/user/show.h"

#define PAGE SHOW_PAGE

static char *map_pages(size_t pages, int protection)
{
    return mmap(NULL, pages * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void into_memory(int fd)
{
    char *unmapped = map_pages(2, PROT_READ | PROT_WRITE);
    char *hole = map_pages(3, PROT_READ | PROT_WRITE);
    char *none = map_pages(1, PROT_NONE), *readonly = map_pages(1, PROT_READ);

    munmap(unmapped, 2 * PAGE);
    munmap(hole + PAGE, PAGE);
    SHOW("read into an unmapped page", syscall(SYS_read, fd, unmapped, PAGE));
    SHOW("read into PROT_NONE", syscall(SYS_read, fd, none, PAGE));
    SHOW("read into PROT_READ", syscall(SYS_read, fd, readonly, PAGE));
    SHOW("read into null", syscall(SYS_read, fd, NULL, 10L));
    SHOW("read into the kernel", syscall(SYS_read, fd, 0xffffffff80000000UL, 10L));
    SHOW("read over the end of the user half", syscall(SYS_read, fd, 0x7ffffffff000UL, 2 * PAGE));
    SHOW("pread into a page with a hole behind it", pread(fd, hole, 3 * PAGE, 0));
    SHOW("pread into the half page before a hole", pread(fd, hole + PAGE / 2, PAGE, 0));
    SHOW("read nothing into null", syscall(SYS_read, fd, NULL, 0L));

    struct iovec pieces[2] = {{hole, 100}, {unmapped, 100}};

    SHOW("readv into good and bad", readv(fd, pieces, 2));
    SHOW("readv with a bad list", syscall(SYS_readv, fd, unmapped, 1L));
    SHOW("lseek: what was read was passed", lseek(fd, 0, SEEK_CUR));
}

static void out_of_memory(void)
{
    char *hole = map_pages(2, PROT_READ | PROT_WRITE);

    memset(hole, '.', PAGE);
    munmap(hole + PAGE, PAGE);
    hole[PAGE - 1] = '\n';
    SHOW("write from a hole", syscall(SYS_write, 1, hole + PAGE, 10L));
    SHOW("write from null", syscall(SYS_write, 1, NULL, 10L));
    SHOW("open a name that ends in a hole", open(hole + PAGE - 1 - 20, O_RDONLY));
}

static void results(int fd)
{
    char *none = map_pages(1, PROT_NONE);

    SHOW("fstat", syscall(SYS_fstat, fd, none));
    SHOW("getrusage", syscall(SYS_getrusage, RUSAGE_SELF, none));
    SHOW("uname", syscall(SYS_uname, none));
    SHOW("clock_gettime", syscall(SYS_clock_gettime, CLOCK_MONOTONIC, none));
    SHOW("getrusage of nobody", syscall(SYS_getrusage, 77, none));
    SHOW("clock_gettime of no clock", syscall(SYS_clock_gettime, 99, none));
}

int main(int argc, char **argv)
{
    int fd = open(argc > 1 ? argv[1] : "/data/medium.bin", O_RDONLY);

    if (fd < 0) {
        perror("the file");
        return 1;
    }
    into_memory(fd);
    fflush(stdout);
    out_of_memory();
    results(fd);
    return 0;
}
