/*
 * tree: walks a folder and prints a line for each name, in order: path, type, permissions, size,
 * and what is in it: a checksum of a file's bytes, read and (small files) mapped; a link's target.
 *
 *     tree FOLDER
 *
 * The same folder gives the same lines on every kernel.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES (64 * 1024)
#define MAP_LIMIT  (1024 * 1024)
#define PATH_BYTES 4096
#define FNV_START  0xcbf29ce484222325UL
#define FNV_PRIME  0x100000001b3UL

static int failures;

static void fail(const char *path, const char *what)
{
    printf("%s: %s: %s\n", path, what, strerror(errno));
    failures++;
}

/* FNV over words, the last one filled up with zeros: fast enough for large files. */
static uint64_t add_bytes(uint64_t sum, const unsigned char *bytes, size_t n)
{
    for (; n > 0; bytes += 8, n -= n < 8 ? n : 8) {
        uint64_t word = 0;

        memcpy(&word, bytes, n < 8 ? n : 8);
        sum = (sum ^ word) * FNV_PRIME;
        sum ^= sum >> 29;
    }
    return sum;
}

/* Fills the buffer unless the file ends, so that words fall alike however short the reads are. */
static ssize_t read_full(int fd, unsigned char *buf, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = read(fd, buf + done, len - done);

        if (n < 0)
            return n;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

static uint64_t sum_by_read(int fd, const char *path)
{
    static unsigned char buf[READ_BYTES];
    uint64_t sum = FNV_START;
    ssize_t n;

    while ((n = read_full(fd, buf, sizeof(buf))) > 0)
        sum = add_bytes(sum, buf, (size_t)n);
    if (n < 0)
        fail(path, "read");
    return sum;
}

static void check_map(int fd, const char *path, size_t size, uint64_t expected)
{
    unsigned char *bytes;

    if (size == 0 || size > MAP_LIMIT)
        return;
    bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED) {
        fail(path, "mmap");
        return;
    }
    if (add_bytes(FNV_START, bytes, size) != expected) {
        printf("%s: mapped bytes differ from those read\n", path);
        failures++;
    }
    munmap(bytes, size);
}

static void show_file(const char *path, const struct stat *info)
{
    int fd = open(path, O_RDONLY);
    uint64_t sum;

    if (fd < 0) {
        fail(path, "open");
        return;
    }
    sum = sum_by_read(fd, path);
    printf("%s file %o %lld %016lx\n", path, info->st_mode & 07777, (long long)info->st_size, sum);
    check_map(fd, path, (size_t)info->st_size, sum);
    close(fd);
}

static void show_link(const char *path)
{
    char target[PATH_BYTES];
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    struct stat info;

    if (n < 0) {
        fail(path, "readlink");
        return;
    }
    target[n] = '\0';
    printf("%s link %zd %s%s\n", path, n, target, stat(path, &info) == 0 ? "" : " (dangling)");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* => the names in the folder without "." and "..", sorted; NULL: cannot be read */
static char **names_of(const char *path, size_t *count)
{
    DIR *dir = opendir(path);
    char **names = NULL;
    size_t n = 0, room = 0;
    struct dirent *entry;

    if (!dir)
        return NULL;
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (n == room) {
            room = room ? 2 * room : 64;
            names = realloc(names, room * sizeof(*names));
        }
        names[n++] = strdup(entry->d_name);
    }
    closedir(dir);
    qsort(names, n, sizeof(*names), by_name);
    *count = n;
    return names ? names : calloc(1, sizeof(*names));
}

static void show(const char *path);

static void show_folder(const char *path, const struct stat *info)
{
    size_t count = 0;
    char **names = names_of(path, &count);

    if (!names) {
        fail(path, "opendir");
        return;
    }
    printf("%s folder %o %zu\n", path, info->st_mode & 07777, count);
    for (size_t i = 0; i < count; i++) {
        char below[PATH_BYTES];

        snprintf(below, sizeof(below), "%s/%s", path, names[i]);
        show(below);
        free(names[i]);
    }
    free(names);
}

static void show(const char *path)
{
    struct stat info;

    if (lstat(path, &info) < 0)
        fail(path, "lstat");
    else if (S_ISDIR(info.st_mode))
        show_folder(path, &info);
    else if (S_ISLNK(info.st_mode))
        show_link(path);
    else if (S_ISREG(info.st_mode))
        show_file(path, &info);
    else
        printf("%s special %o\n", path, info.st_mode);
}

int main(int argc, char **argv)
{
    if (argc != 2 || chdir(argv[1]) < 0) {
        fprintf(stderr, "usage: tree FOLDER\n");
        return 2;
    }
    show(".");
    return failures ? 1 : 0;
}
