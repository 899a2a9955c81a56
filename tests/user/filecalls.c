/*
 * filecalls: openat, read, pread, lseek, fstat and getdents64, good and bad. Every line must be
 * equal on every kernel. Use: filecalls DIRECTORY, which holds a file small.txt.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/user/show.h"

#define BAD_ADDRESS ((void *)0x10UL)

static void opening(int dir)
{
    char long_name[300];

    memset(long_name, 'n', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    SHOW("open nothing", openat(dir, "no-such-file", O_RDONLY));
    SHOW("open through a file", openat(dir, "small.txt/x", O_RDONLY));
    SHOW("open a long name", openat(dir, long_name, O_RDONLY));
    SHOW("open the empty name", openat(dir, "", O_RDONLY));
    SHOW("open a bad address", syscall(SYS_openat, dir, BAD_ADDRESS, O_RDONLY, 0));
    SHOW("open a directory to write", openat(dir, ".", O_WRONLY));
    SHOW("open a file as a directory", openat(dir, "small.txt", O_RDONLY | O_DIRECTORY));
    SHOW("openat a bad descriptor", openat(999, "small.txt", O_RDONLY));
    SHOW("close a bad descriptor", close(999));
    SHOW("close twice", close(999) + close(999));
}

static void reading(int fd, long size)
{
    static char buffer[65536];
    struct iovec pieces[2] = {{buffer, 3}, {buffer + 100, 5}};

    SHOW("read 10", read(fd, buffer, 10));
    SHOW("where it stands", lseek(fd, 0, SEEK_CUR));
    SHOW("readv 3 and 5", readv(fd, pieces, 2));
    SHOW("where it stands now", lseek(fd, 0, SEEK_CUR));
    SHOW("read nothing", read(fd, buffer, 0));
    SHOW_TRUE("lseek to the end", lseek(fd, 0, SEEK_END) == size);
    SHOW("read at the end", read(fd, buffer, 10));
    SHOW_TRUE("lseek behind the end", lseek(fd, 100, SEEK_END) == size + 100);
    SHOW("read behind the end", read(fd, buffer, 10));
    SHOW("lseek before the start", lseek(fd, -1, SEEK_SET));
    SHOW("lseek whence 9", lseek(fd, 0, 9));
    SHOW("pread 10 from 5", pread(fd, buffer, 10, 5));
    SHOW_TRUE("it did not move", lseek(fd, 0, SEEK_CUR) == size + 100);
    SHOW("pread from before the start", pread(fd, buffer, 10, -5));
    SHOW("pread over the end", pread(fd, buffer, 10, size - 4));
    SHOW_TRUE("pread all", pread(fd, buffer, sizeof(buffer), 0) ==
                               (size < (long)sizeof(buffer) ? size : (long)sizeof(buffer)));
    SHOW("read a bad descriptor", read(999, buffer, 10));
    SHOW("write a read-only descriptor", write(fd, buffer, 10));
    SHOW("lseek a bad descriptor", lseek(999, 0, SEEK_SET));
    SHOW("ioctl of a file", syscall(SYS_ioctl, fd, 0x5401, buffer));
}

static void status(int dir, int fd)
{
    struct stat by_descriptor, by_name;

    SHOW("fstat", fstat(fd, &by_descriptor));
    SHOW("stat", fstatat(dir, "small.txt", &by_name, 0));
    SHOW_TRUE("the same file",
              by_descriptor.st_ino == by_name.st_ino && by_descriptor.st_dev == by_name.st_dev);
    SHOW_TRUE("a regular one", S_ISREG(by_descriptor.st_mode));
    SHOW("fstat a bad descriptor", fstat(999, &by_descriptor));
    SHOW("fstat to a bad address", syscall(SYS_fstat, fd, BAD_ADDRESS));
    SHOW("stat nothing", fstatat(dir, "nothing", &by_name, 0));
    SHOW("stat .", fstatat(dir, ".", &by_name, 0));
    SHOW_TRUE("a directory", S_ISDIR(by_name.st_mode));
}

static void directory(int dir, int fd)
{
    char entries[4096];
    int dots = 0, seen = 0;
    struct dirent *entry;
    DIR *list;

    SHOW("getdents64 of a file", syscall(SYS_getdents64, fd, entries, sizeof(entries)));
    SHOW("getdents64 without room", syscall(SYS_getdents64, dir, entries, 8));
    SHOW("getdents64 to a bad address", syscall(SYS_getdents64, dir, BAD_ADDRESS, 4096));
    SHOW("getdents64 of a bad descriptor", syscall(SYS_getdents64, 999, entries, 4096));
    SHOW("read a directory", read(dir, entries, 10));
    list = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY));
    while (list && (entry = readdir(list)) != NULL) {
        dots += strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        seen += strcmp(entry->d_name, "small.txt") == 0 && entry->d_type == DT_REG;
    }
    if (list)
        closedir(list);
    printf("dots %d, small.txt %d\n", dots, seen);
}

static void numbers(int dir)
{
    int first = openat(dir, "small.txt", O_RDONLY), second = openat(dir, "small.txt", O_RDONLY),
        again;

    close(first);
    again = openat(dir, "small.txt", O_RDONLY);
    SHOW_TRUE("the lowest free number is taken", again == first && second == first + 1);
    close(again);
    close(second);
}

int main(int argc, char **argv)
{
    int dir = open(argc > 1 ? argv[1] : "/data", O_RDONLY | O_DIRECTORY);
    int fd = openat(dir, "small.txt", O_RDONLY);
    struct stat file;

    if (dir < 0 || fd < 0 || fstat(fd, &file) < 0) {
        perror("the directory");
        return 1;
    }
    opening(dir);
    reading(fd, (long)file.st_size);
    status(dir, fd);
    directory(dir, fd);
    numbers(dir);
    SHOW("an unknown call", syscall(9999));
    return 0;
}
