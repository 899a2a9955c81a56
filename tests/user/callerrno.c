/*
 * callerrno: what calls answer to borderline arguments: 32-bit arguments with something in their
 * upper half, negative sizes, sums that wrap, addresses on the edge of the user half, several
 * errors at once. Every line must be equal on every kernel. Use: callerrno DIRECTORY, which holds a
 * file small.txt.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "tests/user/show.h"

#define PAGE     SHOW_PAGE
#define USER_END 0x7ffffffff000UL
#define KERNEL   0xffffffff80000000UL
#define UPPER    (1UL << 40)
#define NEGATIVE (~0UL)
#define BAD      16UL /* an address where nothing is */

static long fd, dir, path_only, writer;
static uint64_t buffer, last_page;
static char *name, *folder, from_parent[4096]; /* "../", the folder's last name, the file's */

#define CALL(number, ...) SHOW(#number ", " #__VA_ARGS__, syscall(SYS_##number, __VA_ARGS__))
/* The result is an address, or nobody's business. */
#define TRY(number, ...) \
    SHOW(#number ", " #__VA_ARGS__, syscall(SYS_##number, __VA_ARGS__) == -1 ? -1 : 0)

static void descriptors(void)
{
    CALL(read, fd | UPPER, buffer, 1);
    CALL(read, -1L, KERNEL, NEGATIVE);
    CALL(read, UPPER - 1, buffer, 1);
    CALL(read, fd, KERNEL, 0);
    CALL(read, fd, KERNEL, 1);
    CALL(read, fd, buffer, NEGATIVE);
    CALL(read, fd, buffer, 1UL << 63);
    CALL(read, fd, USER_END, 0);
    CALL(read, fd, USER_END, 1);
    CALL(read, fd, USER_END + 1, 0);
    CALL(read, fd, last_page, 2 * PAGE);
    CALL(read, fd, NULL, 0);
    CALL(read, dir, buffer, 10);
    CALL(read, dir, BAD, 10);
    CALL(read, path_only, buffer, 10);
    CALL(read, writer, buffer, 10);
    CALL(write, fd, BAD, 0);
    CALL(write, dir, buffer, 1);
    CALL(write, writer, KERNEL, 1);
    CALL(write, writer, BAD, 10);
    CALL(write, writer, buffer, 10);
    CALL(pread64, fd, buffer, 1, 1UL << 63);
    CALL(pread64, fd, buffer, 1, (1UL << 63) - 1);
    CALL(pread64, -1L, buffer, 1, -1L);
    CALL(pread64, dir, buffer, 1, 0);
    CALL(pread64, path_only, buffer, 1, 0);
    CALL(pwrite64, fd, buffer, 1, 0);
    CALL(close, UPPER | 999);
    CALL(close, NEGATIVE);
    CALL(dup, UPPER | 999);
    TRY(dup, UPPER | fd);
    CALL(dup2, fd, NEGATIVE);
    CALL(dup2, fd, 1L << 30);
    CALL(dup2, 999, 999);
    CALL(dup2, fd | UPPER, fd);
    CALL(dup3, fd, fd, 0);
    CALL(dup3, fd, fd | UPPER, 0);
    CALL(dup3, 999, 998, 1);
    CALL(dup3, fd, 60, O_CLOEXEC | 1);
    CALL(dup3, fd, 60, UPPER);
    CALL(fcntl, fd, UPPER | F_GETFD, 0);
    CALL(fcntl, fd, F_DUPFD, 1L << 30);
    CALL(fcntl, fd, F_DUPFD, -1L);
    CALL(fcntl, 999, 12345, 0);
    CALL(fcntl, fd, 12345, 0);
    CALL(fcntl, path_only, F_GETFD, 0);
    CALL(fcntl, path_only, F_SETFL, 0);
    CALL(fcntl, fd, F_SETFD, UPPER | 1);
    CALL(fcntl, fd, F_GETFD, 0);
    CALL(ioctl, path_only, 0x5401, buffer);
    CALL(ioctl, fd, 0x5401, BAD);
    CALL(ioctl, 999, 0x5401, BAD);
}

static void positions(void)
{
    CALL(lseek, fd, 0, UPPER | SEEK_SET);
    CALL(lseek, fd, 1UL << 40, SEEK_SET);
    CALL(lseek, fd, (1UL << 63) - 1, SEEK_CUR);
    CALL(read, fd, buffer, 1);
    CALL(lseek, fd, 1UL << 63, SEEK_SET);
    CALL(lseek, fd, (1UL << 63) - 1, SEEK_END);
    CALL(lseek, fd, -1L, SEEK_SET);
    CALL(lseek, fd, 0, 5);
    CALL(lseek, fd, 0, -1);
    CALL(lseek, path_only, 0, SEEK_SET);
    CALL(lseek, fd, 0, SEEK_SET);
    CALL(fadvise64, fd, -1L, 0, 0);
    CALL(fadvise64, fd, 0, -1L, 0);
    CALL(fadvise64, fd, (1UL << 63) - 1, (1UL << 63) - 1, 3);
    CALL(fadvise64, fd, 0, 0, 6);
    CALL(fadvise64, fd, 0, 0, UPPER | 4);
    CALL(fadvise64, path_only, 0, 0, 0);
    CALL(fadvise64, 999, -1L, 0, 77);
    CALL(readahead, fd, 0, NEGATIVE);
    CALL(readahead, fd, (1UL << 63) - 1, NEGATIVE);
    CALL(readahead, fd, (1UL << 63) - 1, 1);
    CALL(readahead, fd, 1UL << 63, (1UL << 63) - 1);
    CALL(readahead, dir, 0, 1);
    CALL(readahead, path_only, 0, 1);
    CALL(readahead, writer, 0, 1);
}

static void vectors(void)
{
    static struct iovec pieces[1024], negative[2], kernel[2], wraps[3];

    for (size_t i = 0; i < 1024; i++)
        pieces[i] = (struct iovec){(void *)buffer, 0};
    negative[0] = (struct iovec){(void *)buffer, 1};
    negative[1] = (struct iovec){(void *)buffer, NEGATIVE};
    kernel[0] = (struct iovec){(void *)buffer, 1};
    kernel[1] = (struct iovec){(void *)KERNEL, 1};
    for (size_t i = 0; i < 3; i++)
        wraps[i] = (struct iovec){(void *)buffer, 1UL << 62};
    CALL(readv, fd, pieces, 0);
    CALL(readv, fd, pieces, 1024);
    CALL(readv, fd, pieces, 1025);
    CALL(readv, fd, pieces, NEGATIVE);
    CALL(readv, fd, BAD, 0);
    CALL(readv, fd, BAD, 1);
    CALL(readv, fd, KERNEL, 1);
    CALL(readv, fd, KERNEL, 2000);
    CALL(readv, fd, negative, 2);
    CALL(readv, fd, kernel, 2);
    CALL(readv, 999, negative, 2);
    CALL(readv, fd, wraps, 3);
    CALL(lseek, fd, 0, SEEK_SET);
    CALL(writev, fd, pieces, 1);
    CALL(preadv, fd, pieces, 1, -1L, -1L);
    CALL(preadv, fd, pieces, 1, 5, 0);
}

static void names(void)
{
    static char long_path[8192];

    memset(long_path, '/', sizeof(long_path) - 1);
    CALL(open, long_path, 0, 0);
    long_path[4096] = '\0';
    CALL(open, long_path, 0, 0);
    long_path[4095] = '\0';
    TRY(open, long_path, 0, 0);
    CALL(open, BAD, 0, 0);
    CALL(open, KERNEL, 0, 0);
    CALL(openat, 999, BAD, 0, 0);
    CALL(openat, 999, "", 0, 0);
    CALL(openat, fd, "x", 0, 0);
    CALL(openat, fd, "", 0, 0);
    TRY(openat, UPPER | dir, "small.txt", 0, 0);
    TRY(openat, 0xffffff9cUL, folder, UPPER | O_RDONLY, 0);
    TRY(openat, dir, "..", O_RDONLY, 0);
    TRY(openat, dir, "../.", O_RDONLY, 0);
    SHOW_TRUE("a name in the parent of a descriptor", openat(dir, from_parent, O_RDONLY) >= 0);
    CALL(openat, dir, "proc/version", O_RDONLY, 0);
    CALL(openat, dir, "small.txt/", 0, 0);
    CALL(openat, dir, "small.txt/.", 0, 0);
    CALL(openat, dir, "small.txt/..", 0, 0);
    CALL(openat, dir, ".", O_RDWR, 0);
    CALL(openat, dir, "small.txt", O_CREAT | O_EXCL, 0);
    CALL(openat, dir, ".", O_CREAT, 0);
    CALL(openat, dir, "small.txt", O_DIRECTORY, 0);
    CALL(stat, folder, KERNEL);
    CALL(stat, folder, last_page + PAGE - 8);
    CALL(stat, "", buffer);
    CALL(stat, BAD, KERNEL);
    CALL(fstat, UPPER | 999, KERNEL);
    CALL(fstat, path_only, buffer);
    CALL(newfstatat, dir, "", buffer, 0);
    CALL(newfstatat, dir, "", buffer, 0x1000);
    CALL(newfstatat, 999, "", buffer, 0x1000);
    CALL(newfstatat, -100, "", buffer, 0x1000);
    CALL(newfstatat, dir, "small.txt", buffer, 0x2);
    CALL(newfstatat, dir, "small.txt", buffer, UPPER);
    CALL(access, folder, 8);
    CALL(access, folder, UPPER);
    CALL(access, folder, -1L);
    CALL(access, BAD, 8);
    CALL(faccessat, 999, BAD, 8);
    CALL(faccessat, UPPER | dir, "small.txt", 4);
    CALL(readlink, name, buffer, 0);
    CALL(readlink, name, buffer, -1L);
    CALL(readlink, name, buffer, 10);
    CALL(readlink, BAD, buffer, 0);
    CALL(readlinkat, 999, "x", buffer, 10);
    CALL(readlinkat, dir, "", buffer, 10);
    CALL(getcwd, buffer, 0);
    CALL(getcwd, buffer, 1);
    CALL(getcwd, KERNEL, 100);
    CALL(getcwd, BAD, 1);
    CALL(chdir, name);
    CALL(chdir, "");
    CALL(chdir, KERNEL);
    CALL(getdents64, fd, buffer, 100);
    CALL(getdents64, dir, buffer, 0);
    CALL(getdents64, dir, buffer, 20);
    CALL(getdents64, dir, BAD, 1000);
    CALL(getdents64, path_only, buffer, 1000);
    CALL(getdents64, 999, KERNEL, 0);
    CALL(statfs, KERNEL, buffer);
    CALL(statfs, folder, KERNEL);
    CALL(fstatfs, UPPER | 999, buffer);
}

static void spaces(void)
{
    TRY(mmap, 0, 0, 1, 0x22, -1L, 0);
    TRY(mmap, 0, NEGATIVE, 1, 0x22, -1L, 0);
    TRY(mmap, 0, 1UL << 47, 1, 0x22, -1L, 0);
    TRY(mmap, 0, USER_END, 1, 0x22, -1L, 0);
    TRY(mmap, 0, PAGE, 1, 0x22, -1L, 1);
    TRY(mmap, 0, PAGE, 1, 0x20, -1L, 0);
    TRY(mmap, 0, PAGE, 1, 0x02, 999, 0);
    TRY(mmap, 0, PAGE, 1, 0x02, UPPER | fd, 0);
    TRY(mmap, 0, PAGE, 1, 0x02, fd, (1UL << 63) - PAGE);
    TRY(mmap, 0, PAGE, 1, 0x02, fd, 1UL << 63);
    TRY(mmap, 0, PAGE, 1, 0x02, fd, ~0UL - PAGE + 1);
    TRY(mmap, 0, 2 * PAGE, 1, 0x02, fd, ~0UL - PAGE + 1);
    TRY(mmap, 0, PAGE, 3, 0x01, fd, 0);
    TRY(mmap, 0, PAGE, 1, 0x00, fd, 0);
    TRY(mmap, 0, PAGE, 1, 0x02, dir, 0);
    TRY(mmap, 0, PAGE, 1, 0x02, path_only, 0);
    TRY(mmap, 0, PAGE, 1, 0x02, writer, 0);
    TRY(mmap, 0, 0, 1, 0x02, 999, 1);
    TRY(mmap, 0, PAGE, 0xf00UL << 32 | 1, 0x22, -1L, 0);
    TRY(mmap, 0, PAGE, 0x8001, 0x22, -1L, 0);
    TRY(mmap, KERNEL, PAGE, 1, 0x22, -1L, 0);
    TRY(mmap, KERNEL, PAGE, 1, 0x32, -1L, 0);
    TRY(mmap, USER_END, PAGE, 1, 0x32, -1L, 0);
    TRY(mmap, USER_END - PAGE, 2 * PAGE, 1, 0x32, -1L, 0);
    TRY(mmap, buffer + 1, PAGE, 1, 0x32, -1L, 0);
    TRY(mmap, buffer, PAGE, 1, 0x100022, -1L, 0);
    CALL(munmap, buffer + 1, PAGE);
    CALL(munmap, buffer, 0);
    CALL(munmap, buffer, NEGATIVE);
    CALL(munmap, KERNEL, PAGE);
    CALL(munmap, USER_END, PAGE);
    CALL(munmap, USER_END - PAGE, 2 * PAGE);
    CALL(munmap, 1UL << 62, PAGE);
    CALL(mprotect, buffer + 1, 0, 1);
    CALL(mprotect, buffer, 0, 0x100);
    CALL(mprotect, buffer, NEGATIVE, 1);
    CALL(mprotect, buffer, PAGE, 0x100);
    CALL(mprotect, buffer, PAGE, UPPER | 3);
    CALL(mprotect, buffer, PAGE, 0x03000003);
    CALL(mprotect, KERNEL, PAGE, 3);
    CALL(mprotect, USER_END, PAGE, 3);
    CALL(mprotect, buffer, PAGE, 0x01000003);
    CALL(madvise, buffer, PAGE, UPPER);
    CALL(madvise, buffer, PAGE, 77);
    CALL(madvise, buffer + 1, PAGE, 4);
    CALL(madvise, buffer, 0, 77);
    CALL(madvise, buffer, NEGATIVE, 0);
    CALL(madvise, KERNEL, PAGE, 0);
    CALL(madvise, KERNEL, PAGE, 3);
    CALL(madvise, ~0UL - PAGE + 1, PAGE, 0);
    CALL(mincore, buffer + 1, PAGE, buffer);
    CALL(mincore, buffer, NEGATIVE, buffer);
    CALL(mincore, KERNEL, PAGE, buffer);
    CALL(mincore, buffer, PAGE, KERNEL);
    CALL(mincore, buffer, PAGE, BAD);
    CALL(mincore, buffer, 0, KERNEL);
    CALL(mincore, 0, PAGE, buffer);
    SHOW_TRUE("brk of the kernel half", syscall(SYS_brk, KERNEL) == (long)sbrk(0));
    SHOW_TRUE("brk of all", syscall(SYS_brk, NEGATIVE) == (long)sbrk(0));
}

static void clocks(void)
{
    static const struct timespec bad[] = {{-1, 0}, {0, -1}, {0, 1000000000}, {INT64_MAX, -1}};

    CALL(clock_gettime, UPPER, buffer);
    CALL(clock_gettime, 99, BAD);
    CALL(clock_gettime, 0, BAD);
    CALL(clock_gettime, 0, KERNEL);
    CALL(clock_gettime, -1L, buffer);
    CALL(clock_getres, 99, buffer);
    CALL(clock_getres, 1, 0);
    CALL(clock_getres, 1, KERNEL);
    CALL(gettimeofday, 0, 0);
    CALL(gettimeofday, KERNEL, 0);
    CALL(gettimeofday, buffer, BAD);
    for (size_t i = 0; i < 4; i++)
        SHOW("nanosleep of nonsense", syscall(SYS_nanosleep, &bad[i], KERNEL));
    CALL(nanosleep, KERNEL, 0);
    CALL(nanosleep, 0, 0);
    CALL(clock_nanosleep, 99, 0, BAD, 0);
    CALL(clock_nanosleep, 1, 0, BAD, 0);
    CALL(clock_nanosleep, 3, 0, buffer, 0);
    CALL(getrandom, buffer, 0, 0);
    CALL(getrandom, KERNEL, 10, 0);
    CALL(getrandom, BAD, 10, 0);
    CALL(getrandom, buffer, 10, 8);
    CALL(getrandom, buffer, 10, UPPER);
}

static void others(void)
{
    CALL(uname, KERNEL);
    CALL(sysinfo, BAD);
    CALL(getrusage, UPPER, buffer);
    CALL(getrusage, 77, buffer);
    CALL(getrusage, 0, KERNEL);
    CALL(getrlimit, 16, buffer);
    CALL(getrlimit, UPPER | 7, KERNEL);
    CALL(prlimit64, 0, 16, 0, 0);
    CALL(prlimit64, 0, 3, 0, KERNEL);
    CALL(prlimit64, 0, 3, BAD, 0);
    CALL(prlimit64, UPPER, UPPER | 3, 0, 0);
    CALL(prlimit64, 0, 99, BAD, 0);
    CALL(sched_getaffinity, 0, 0, buffer);
    CALL(sched_getaffinity, 0, 7, buffer);
    CALL(sched_getaffinity, 0, 9, buffer);
    CALL(sched_getaffinity, 0, 128, BAD);
    CALL(sched_getaffinity, -1L, 128, buffer);
    CALL(getcpu, KERNEL, 0);
    CALL(getcpu, 0, KERNEL);
    CALL(getcpu, 0, 0);
    CALL(arch_prctl, 0x1002, KERNEL);
    CALL(arch_prctl, 0x1002, USER_END);
    CALL(arch_prctl, 0x1001, NEGATIVE);
    CALL(arch_prctl, 0x1003, KERNEL);
    CALL(arch_prctl, 0x1003, BAD);
    CALL(arch_prctl, 0x7777, 0);
    CALL(kill, getpid(), 0);
    CALL(kill, getpid(), 65);
    CALL(kill, getpid(), -1L);
    CALL(kill, getpid(), UPPER);
    CALL(kill, UPPER | getpid(), 0);
    CALL(kill, 0x3fffffff, 0);
    CALL(kill, 0x3fffffff, 65);
    CALL(kill, getpid(), 17);
    CALL(kill, getpid(), 18);
    CALL(kill, getpid(), 23);
    CALL(kill, getpid(), 28);
    CALL(tgkill, -1L, getpid(), 0);
    CALL(tgkill, getpid(), -1L, 0);
    CALL(tgkill, getpid(), 0x3fffffff, 0);
    CALL(tgkill, getpid(), getpid(), 0);
    CALL(tkill, 0, 0);
    CALL(tkill, getpid(), 0);
    CALL(rt_sigprocmask, 0, 0, 0, 4);
    CALL(rt_sigprocmask, 0, 0, KERNEL, 8);
    CALL(rt_sigprocmask, 77, 0, 0, 8);
    CALL(rt_sigprocmask, 0, BAD, 0, 8);
    CALL(rt_sigprocmask, 77, buffer, 0, 8);
    SHOW("call -1", syscall(-1L));
    SHOW("call 9999", syscall(9999L));
    SHOW_TRUE("getpid with an upper half", syscall((long)(UPPER | SYS_getpid)) == getpid());
    CALL(umask, UPPER | 022);
    CALL(umask, 022);
}

int main(int argc, char **argv)
{
    static char path[4096];

    if (argc < 2)
        return 2;
    folder = argv[1];
    snprintf(path, sizeof(path), "%s/small.txt", folder);
    name = path;
    snprintf(from_parent, sizeof(from_parent), "..%s/small.txt", strrchr(folder, '/'));
    fd = open(name, O_RDONLY);
    dir = open(folder, O_RDONLY | O_DIRECTORY);
    path_only = open(name, O_PATH);
    writer = open("/dev/full", O_WRONLY);
    buffer =
        (uint64_t)mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    last_page = USER_END - PAGE;
    if (fd < 0 || dir < 0 || path_only < 0 || writer < 0)
        return 2;
    descriptors();
    positions();
    vectors();
    names();
    spaces();
    clocks();
    others();
    return 0;
}
