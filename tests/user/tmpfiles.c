/*
 * Files that can be written, in a directory of their own: `tmpfiles DIR`. Prints results, errno and
 * contents; the same on every kernel whose DIR is a file system in memory (or any other).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096

/* Of the kernel's interface; the C library may not know them. */
#define NOREPLACE   1u
#define EXCHANGE    2u
#define BASIC_STATS 0x7ffu

static int rename2(const char *from, const char *to, unsigned flags)
{
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

/* The part of struct statx that is looked at. */
struct statx_words {
    uint32_t mask, blksize;
    uint64_t attributes;
    uint32_t nlink, uid, gid;
    uint16_t mode, pad;
    uint64_t ino, size, rest[27];
};

static int statx_of(int fd, const char *name, int flags, struct statx_words *words)
{
    return (int)syscall(SYS_statx, fd, name, flags, BASIC_STATS, words);
}

#define SHOW(call) show(#call, (long)(call))

static void show(const char *what, long result)
{
    if (result < 0)
        printf("%s: %s\n", what, strerror(errno));
    else
        printf("%s: %ld\n", what, result);
}

/* For calls that return a descriptor or something else that differs. */
static int ok(const char *what, int result)
{
    if (result < 0)
        printf("%s: %s\n", what, strerror(errno));
    else
        printf("%s: ok\n", what);
    return result;
}

static void sum(const char *name)
{
    static unsigned char bytes[65536];
    uint64_t h = 0xcbf29ce484222325u;
    long total = 0, n;
    int fd = open(name, O_RDONLY);
    while ((n = read(fd, bytes, sizeof(bytes))) > 0) {
        for (long i = 0; i < n; i++)
            h = (h ^ bytes[i]) * 0x100000001b3u;
        total += n;
    }
    printf("%s holds %ld bytes, sum %016lx\n", name, total, (unsigned long)h);
    close(fd);
}

static void attributes(const char *name)
{
    struct stat st;
    if (lstat(name, &st)) {
        printf("%s: %s\n", name, strerror(errno));
        return;
    }
    printf("%s: mode %o size %ld links %lu\n", name, st.st_mode,
           S_ISDIR(st.st_mode) ? 0L : (long)st.st_size,
           S_ISDIR(st.st_mode) ? 0ul : (unsigned long)st.st_nlink);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list(const char *name)
{
    char *names[512];
    int n = 0;
    struct dirent *entry;
    DIR *dir = opendir(name);
    if (!dir) {
        printf("list %s: %s\n", name, strerror(errno));
        return;
    }
    while ((entry = readdir(dir)) && n < 512)
        if (entry->d_name[0] != '.')
            names[n++] = strdup(entry->d_name);
    closedir(dir);
    qsort(names, n, sizeof(*names), by_name);
    printf("%s:", name);
    for (int i = 0; i < n; i++)
        printf(" %s", names[i]);
    printf("\n");
}

static void opening(void)
{
    char buf[16] = "";
    printf("-- opening\n");
    umask(022);
    int fd = ok("creat", open("a", O_CREAT | O_RDWR | O_EXCL, 0666));
    attributes("a");
    SHOW(open("a", O_CREAT | O_EXCL | O_RDWR, 0666));
    SHOW(write(fd, "hello", 5));
    SHOW(pread(fd, buf, 16, 0));
    SHOW(pwrite(fd, "J", 1, 0));
    SHOW(lseek(fd, 0, SEEK_CUR));
    SHOW(pwrite(fd, "x", 1, -1));
    close(fd);
    sum("a");
    SHOW(open("missing", O_RDWR));
    SHOW(open("missing/", O_RDWR | O_CREAT, 0600));
    SHOW(open("a/", O_RDONLY));
    SHOW(open("a/b", O_RDWR | O_CREAT, 0600));
    SHOW(open(".", O_RDWR));
    SHOW(open(".", O_WRONLY | O_CREAT, 0600));
    SHOW(open("", O_RDWR | O_CREAT, 0600));
    fd = ok("append", open("a", O_WRONLY | O_APPEND));
    SHOW(write(fd, " one", 4));
    SHOW(lseek(fd, 0, SEEK_SET));
    SHOW(write(fd, " two", 4));
    SHOW(lseek(fd, 0, SEEK_CUR));
    SHOW(pread(fd, buf, 4, 0));
    SHOW(fcntl(fd, F_GETFL) & (O_APPEND | O_ACCMODE));
    close(fd);
    sum("a");
    close(ok("truncating", open("a", O_WRONLY | O_TRUNC)));
    attributes("a");
    umask(077);
    close(ok("masked", open("b", O_CREAT | O_WRONLY, 0777)));
    attributes("b");
    umask(022);
    SHOW(symlink("through", "dangling"));
    close(ok("through a link", open("dangling", O_CREAT | O_WRONLY, 0644)));
    attributes("through");
    SHOW(open("dangling", O_CREAT | O_EXCL | O_WRONLY, 0644));
    SHOW(open("dangling", O_NOFOLLOW | O_WRONLY));
    unlink("through");
    unlink("dangling");
    unlink("a");
    unlink("b");
}

static void names(void)
{
    char long_name[300], target[64];
    printf("-- names\n");
    memset(long_name, 'n', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    SHOW(mkdir("d", 0755));
    SHOW(mkdir("d", 0755));
    SHOW(mkdir("d/", 0755));
    SHOW(mkdir(".", 0755));
    SHOW(mkdir("..", 0755));
    SHOW(mkdir("/", 0755));
    SHOW(mkdir("x/y", 0755));
    SHOW(mkdir("e/", 0700));
    SHOW(mkdir(long_name, 0755));
    SHOW(rmdir("."));
    SHOW(rmdir("d/."));
    SHOW(rmdir("d/.."));
    SHOW(rmdir("x"));
    attributes("e");
    SHOW(symlink("d", "l"));
    SHOW(symlink("d", "l"));
    SHOW(symlink("", "m"));
    SHOW(readlink("l", target, sizeof(target)));
    SHOW(mkdir("l/in", 0755));
    SHOW(mkdir("l", 0755));
    list("d");
    SHOW(rmdir("l"));
    SHOW(rmdir("d"));
    SHOW(unlink("d"));
    SHOW(unlink("l/"));
    close(open("d/f", O_CREAT | O_RDWR, 0644));
    SHOW(rmdir("d/f"));
    SHOW(unlink("d/f/"));
    SHOW(link("d/f", "hard"));
    SHOW(link("d/f", "hard"));
    SHOW(link("d", "hard2"));
    SHOW(link("none", "hard2"));
    SHOW(link("l", "link-of-link"));
    attributes("link-of-link");
    attributes("hard");
    SHOW(unlink("d/f"));
    attributes("hard");
    SHOW(unlink("none"));
    SHOW(unlinkat(AT_FDCWD, "d/in", AT_REMOVEDIR));
    SHOW(unlinkat(AT_FDCWD, "d", 0));
    SHOW(rmdir("d/"));
    SHOW(unlink("l"));
    SHOW(unlink("link-of-link"));
    SHOW(mknod("fifo", S_IFIFO | 0644, 0));
    attributes("fifo");
    SHOW(mkfifo("fifo", 0644));
    SHOW(mknod("plain", 0600, 0));
    attributes("plain");
    SHOW(access("plain", W_OK | R_OK));
    SHOW(access("plain", X_OK));
    SHOW(access("none", F_OK));
    list(".");
    unlink("fifo");
    unlink("plain");
    unlink("hard");
    rmdir("e");
}

static void touch(const char *name, const char *text)
{
    int fd = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (write(fd, text, strlen(text)) < 0)
        perror(name);
    close(fd);
}

static void renames(void)
{
    printf("-- renames\n");
    mkdir("p", 0755);
    mkdir("p/q", 0755);
    mkdir("r", 0755);
    touch("f", "file f");
    touch("g", "file g!");
    SHOW(rename("f", "g"));
    sum("g");
    SHOW(rename("f", "g"));
    SHOW(rename("g", "p/g"));
    SHOW(rename("p", "p/q/p"));
    SHOW(rename("p", "p/q"));
    SHOW(rename("p/q", "p"));
    SHOW(rename("p/g", "r"));
    SHOW(rename("r", "p/g"));
    SHOW(rename("r", "p/q"));
    list("p");
    SHOW(rename("p/q", "r2"));
    SHOW(rename("p", "r2"));
    list(".");
    list("r2");
    SHOW(rename("r2/.", "x"));
    SHOW(rename("r2", ".."));
    SHOW(rename("r2/g", "r2/g"));
    link("r2/g", "same");
    SHOW(rename("r2/g", "same"));
    list("r2");
    SHOW(rename("same", "new/"));
    SHOW(rename("r2", "r3/"));
    SHOW(rename2("same", "r3/g", NOREPLACE));
    SHOW(rename2("same", "other", NOREPLACE));
    SHOW(rename2("other", "r3", EXCHANGE));
    attributes("r3");
    attributes("other");
    SHOW(rename2("other", "none", EXCHANGE));
    SHOW(rename2("other", "none", EXCHANGE | NOREPLACE));
    SHOW(rename("other/g", "/proc/none"));
    int fd = open("other", O_RDONLY | O_DIRECTORY);
    SHOW(renameat(fd, "g", AT_FDCWD, "back"));
    SHOW(mkdirat(fd, "sub", 0700));
    SHOW(chdir("other/sub"));
    SHOW(rename("../../back", "here"));
    list(".");
    SHOW(unlink("here"));
    SHOW(chdir("../.."));
    SHOW(unlinkat(fd, "sub", AT_REMOVEDIR));
    close(fd);
    SHOW(rmdir("other"));
    unlink("r3");
    list(".");
}

static void truncation(void)
{
    struct stat st;
    char *map, byte = 1;
    printf("-- sizes\n");
    int fd = open("t", O_CREAT | O_RDWR, 0644);
    SHOW(ftruncate(fd, 3 * PAGE + 100));
    fstat(fd, &st);
    printf("%ld bytes, any blocks: %d\n", (long)st.st_size, st.st_blocks > 16);
    map = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    map[2 * PAGE] = 'm';
    map[3 * PAGE + 99] = 'e';
    map[3 * PAGE + 200] = 'x'; /* behind the end */
    SHOW(pread(fd, &byte, 1, 2 * PAGE));
    printf("%c\n", byte);
    SHOW(ftruncate(fd, 5 * PAGE));
    SHOW(pread(fd, &byte, 1, 3 * PAGE + 99));
    printf("%c\n", byte);
    SHOW(pwrite(fd, "written", 7, 4 * PAGE - 3));
    printf("%.3s%.4s\n", map + 4 * PAGE - 3, map + 4 * PAGE);
    SHOW(ftruncate(fd, 2 * PAGE + 1));
    SHOW(ftruncate(fd, 3 * PAGE));
    printf("%c %d %d\n", map[2 * PAGE], map[2 * PAGE + 1], map[3 * PAGE - 1]);
    SHOW(lseek(fd, 0, SEEK_END));
    SHOW(write(fd, map + 2 * PAGE, PAGE));            /* from a mapping of the file */
    SHOW(pwrite(fd, map + 2 * PAGE, PAGE, 2 * PAGE)); /* from a mapping of the very page */
    SHOW(pwrite(fd, map + 2 * PAGE + 10, PAGE, 2 * PAGE));
    SHOW(pread(fd, map + PAGE, PAGE, 2 * PAGE)); /* into a mapping of the file */
    sum("t");
    SHOW(ftruncate(fd, -1));
    SHOW(truncate("t", 10));
    SHOW(truncate("none", 10));
    SHOW(truncate(".", 10));
    SHOW(pwrite(fd, "z", 1, 1000000));
    SHOW(unlink("t"));
    map[5] = 'u'; /* unlinked, open and mapped */
    SHOW(pread(fd, &byte, 1, 5));
    printf("%c\n", byte);
    fstat(fd, &st);
    printf("links %lu size %ld\n", (unsigned long)st.st_nlink, (long)st.st_size);
    close(fd);
    map[6] = 'v'; /* only mapped */
    printf("%c%c\n", map[5], map[6]);
    munmap(map, 8 * PAGE);
    fd = open("ro", O_CREAT | O_RDONLY, 0644);
    SHOW(ftruncate(fd, 10));
    SHOW(write(fd, "x", 1));
    SHOW(mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
    SHOW(write(fd, (void *)8, 0));
    close(fd);
    unlink("ro");
}

static void short_writes(void)
{
    static char buf[2 * PAGE];
    struct iovec iov[3] = {{"one ", 4}, {"", 0}, {"two", 3}};
    printf("-- bad addresses, vectors\n");
    int fd = open("w", O_CREAT | O_RDWR, 0644);
    char *map = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(map + PAGE, PAGE);
    memset(map, 's', PAGE);
    SHOW(write(fd, map + PAGE - 10, 10));
    SHOW(write(fd, map + PAGE, 10));
    SHOW(write(fd, (void *)8, 10));
    SHOW(lseek(fd, 0, SEEK_CUR) <= 20);
    SHOW(ftruncate(fd, 10));
    SHOW(lseek(fd, 0, SEEK_END));
    SHOW(writev(fd, iov, 3));
    SHOW(pwritev(fd, iov, 3, 2));
    SHOW(preadv(fd, &(struct iovec){buf, sizeof(buf)}, 1, 1));
    printf("%.16s\n", buf);
    SHOW(writev(fd, iov, -1));
    SHOW(writev(fd, iov, 0));
    SHOW(pread(fd, (void *)8, 4, 0));
    close(fd);
    SHOW(write(fd, "x", 1));
    sum("w");
    unlink("w");
}

static void holes(void)
{
    printf("-- holes\n");
    int fd = open("h", O_CREAT | O_RDWR, 0644);
    pwrite(fd, "data", 4, 64 * PAGE);
    SHOW(lseek(fd, 0, SEEK_DATA));
    SHOW(lseek(fd, 0, SEEK_HOLE));
    SHOW(lseek(fd, 64 * PAGE + 1, SEEK_DATA));
    SHOW(lseek(fd, 64 * PAGE + 1, SEEK_HOLE));
    SHOW(lseek(fd, 64 * PAGE + 4, SEEK_DATA));
    SHOW(lseek(fd, -1, SEEK_DATA));
    SHOW(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 100 * PAGE));
    SHOW(lseek(fd, 0, SEEK_END));
    SHOW(fallocate(fd, 0, 0, 70 * PAGE));
    SHOW(lseek(fd, 0, SEEK_END));
    for (int i = 0; i < 8; i++)
        pwrite(fd, "pppppppppp", 10, i * PAGE + PAGE - 5);
    SHOW(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE - 2, 3 * PAGE));
    SHOW(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 6 * PAGE + 1, 2));
    SHOW(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, PAGE));
    SHOW(fallocate(fd, 0, -1, PAGE));
    SHOW(fallocate(fd, 0, 0, 0));
    SHOW(fallocate(fd, 0, INT64_MAX, 10));
    SHOW(fsync(fd));
    SHOW(fdatasync(fd));
    close(fd);
    sum("h");
    unlink("h");
}

static void attributes_and_times(void)
{
    struct stat st;
    struct statx_words sx;
    struct timespec times[2] = {{1000000000, 123456789}, {1100000000, 987654321}};
    printf("-- attributes\n");
    touch("c", "c");
    SHOW(chmod("c", 04711));
    attributes("c");
    SHOW(chown("c", 12, 34));
    SHOW(utimensat(AT_FDCWD, "c", times, 0));
    stat("c", &st);
    printf("%u:%u %ld.%09ld %ld.%09ld\n", st.st_uid, st.st_gid, (long)st.st_atim.tv_sec,
           st.st_atim.tv_nsec, (long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    times[0].tv_nsec = UTIME_OMIT;
    times[1].tv_nsec = UTIME_NOW;
    SHOW(utimensat(AT_FDCWD, "c", times, 0));
    stat("c", &st);
    printf("%ld.%09ld %d\n", (long)st.st_atim.tv_sec, st.st_atim.tv_nsec,
           st.st_mtim.tv_sec > 1600000000);
    times[0].tv_nsec = 1000000000;
    SHOW(utimensat(AT_FDCWD, "c", times, 0));
    SHOW(utimensat(AT_FDCWD, "none", NULL, 0));
    SHOW(statx_of(AT_FDCWD, "c", 0, &sx));
    printf("%o %u %lu %u\n", sx.mode, sx.uid, (unsigned long)sx.size, sx.nlink);
    SHOW(statx_of(AT_FDCWD, "", 0, &sx));
    int fd = open("c", O_RDONLY);
    SHOW(fchmod(fd, 0600));
    SHOW(fchown(fd, -1, 56));
    SHOW(statx_of(fd, "", AT_EMPTY_PATH, &sx));
    printf("%o %u %u\n", sx.mode, sx.uid, sx.gid);
    close(fd);
    fd = open("c", O_PATH);
    SHOW(read(fd, &st, 1));
    SHOW(fchmod(fd, 0600));
    SHOW(ftruncate(fd, 0));
    SHOW(fstat(fd, &st));
    close(fd);
    unlink("c");
}

static void listings(void)
{
    char name[32];
    struct dirent *entry;
    int seen = 0, removed = 0;
    printf("-- listings\n");
    mkdir("many", 0755);
    for (int i = 0; i < 400; i++) {
        sprintf(name, "many/file%03d", i);
        close(open(name, O_CREAT | O_WRONLY, 0644));
    }
    DIR *dir = opendir("many");
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        seen++;
        snprintf(name, sizeof(name), "many/%.20s", entry->d_name);
        removed += unlink(name) == 0;
    }
    printf("seen %d removed %d\n", seen, removed);
    rewinddir(dir);
    for (seen = 0; readdir(dir);)
        seen++;
    printf("left %d\n", seen);
    SHOW(rmdir("many"));
    SHOW(mkdirat(dirfd(dir), "late", 0755));
    SHOW(openat(dirfd(dir), "late", O_CREAT | O_RDWR, 0644));
    closedir(dir);
}

static void locks(void)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 10};
    printf("-- locks\n");
    touch("k", "0123456789");
    int fd = open("k", O_RDWR), other = open("k", O_RDWR);
    SHOW(fcntl(fd, F_SETLK, &lock));
    SHOW(fcntl(other, F_SETLK, &lock)); /* the same process */
    lock.l_type = F_RDLCK;
    SHOW(fcntl(fd, F_GETLK, &lock));
    printf("type %d\n", lock.l_type);
    lock = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 15};
    SHOW(fcntl(other, F_OFD_GETLK, &lock));
    printf("type %d start %ld len %ld\n", lock.l_type, (long)lock.l_start, (long)lock.l_len);
    lock = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 15};
    SHOW(fcntl(other, F_OFD_SETLK, &lock));
    lock = (struct flock){.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = 12, .l_len = 2};
    SHOW(fcntl(fd, F_SETLK, &lock));
    lock = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 12, .l_len = 2};
    SHOW(fcntl(other, F_OFD_SETLK, &lock));
    lock = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0};
    SHOW(fcntl(fd, F_SETLK, &lock));
    lock.l_whence = 7;
    SHOW(fcntl(fd, F_SETLK, &lock));
    SHOW(flock(fd, LOCK_EX));
    SHOW(flock(other, LOCK_SH | LOCK_NB));
    SHOW(flock(fd, LOCK_SH));
    SHOW(flock(other, LOCK_SH | LOCK_NB));
    SHOW(flock(other, LOCK_EX | LOCK_NB));
    close(fd);
    SHOW(flock(other, LOCK_EX | LOCK_NB));
    close(other);
    unlink("k");
}

static void unnamed(void)
{
    struct stat st;
    char text[8] = "";
    printf("-- without a name\n");
    int fd = ok("memfd", memfd_create("scratch", MFD_CLOEXEC));
    SHOW(fcntl(fd, F_GETFD));
    SHOW(ftruncate(fd, 2 * PAGE));
    char *a = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *b = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    strcpy(a + PAGE, "shared");
    SHOW(pread(fd, text, 7, PAGE));
    printf("%s %s\n", text, b + PAGE);
    fstat(fd, &st);
    printf("mode %o links %lu\n", st.st_mode & S_IFMT, (unsigned long)st.st_nlink);
    close(fd);
    a = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    printf("%d %d\n", a[0], a[3 * PAGE - 1]);
    a[PAGE] = 7;
    printf("%d %d\n", a[PAGE], a[PAGE + 1]);
    fd = open("/dev/zero", O_RDWR);
    a = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    printf("%d\n", a == MAP_FAILED ? -1 : a[5]);
    a[5] = 1;
    close(fd);
}

static void without_an_entry(void)
{
    struct stat st;
    char text[8] = "";
    printf("-- O_TMPFILE\n");
    int fd = ok("made", open(".", O_TMPFILE | O_RDWR, 0640));
    fstat(fd, &st);
    printf("mode %o links %lu\n", st.st_mode, (unsigned long)st.st_nlink);
    printf("flags %x\n", fcntl(fd, F_GETFL));
    SHOW(write(fd, "kept", 5));
    SHOW(pread(fd, text, 5, 0));
    printf("%s\n", text);
    list(".");
    close(fd);
    SHOW(open(".", O_TMPFILE | O_RDONLY, 0600));
    SHOW(open(".", (O_TMPFILE & ~O_DIRECTORY) | O_RDWR, 0600));
    SHOW(open(".", O_TMPFILE | O_CREAT | O_RDWR, 0600));
    SHOW(open("none", O_TMPFILE | O_RDWR, 0600));
    close(ok("a file", open("plain", O_CREAT | O_RDWR, 0600)));
    SHOW(open("plain", O_TMPFILE | O_RDWR, 0600));
    SHOW(open("/proc", O_TMPFILE | O_RDWR, 0600));
    unlink("plain");
}

/* A long mix of stores, writes, truncations and holes, the same on every kernel. */
static void mixture(void)
{
    enum { PAGES = 48, BYTES = PAGES * PAGE };
    static char buf[5 * PAGE];
    uint64_t random = 42;
    long size = 0;
    printf("-- mixture\n");
    int fd = open("mix", O_CREAT | O_RDWR, 0644);
    char *map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (int turn = 0; turn < 3000; turn++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        long at = (random >> 20) % BYTES, len = (random >> 44) % sizeof(buf);
        if (at + len > BYTES)
            len = BYTES - at;
        switch (random >> 61) {
        case 0:
        case 1:
            memset(buf, turn, len);
            if (pwrite(fd, buf, len, at) != len)
                printf("turn %d: write failed\n", turn);
            if (len && at + len > size)
                size = at + len;
            break;
        case 2:
        case 3:
            if (at < size)
                memset(map + at, turn ^ 0x55, at + len > size ? size - at : len);
            break;
        case 4:
            if (at < size) { /* from the file's own mapping */
                len = at + len > size ? size - at : len;
                if (pwrite(fd, map + at, len, (at * 7) % (BYTES - len)) != len)
                    printf("turn %d: write from the mapping failed\n", turn);
                if (len && (at * 7) % (BYTES - len) + len > size)
                    size = (at * 7) % (BYTES - len) + len;
            }
            break;
        case 5:
            if (turn % 4 == 0) {
                ftruncate(fd, at);
                size = at;
            }
            break;
        case 6:
            if (turn % 4 == 0 && len)
                fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, len);
            break;
        case 7:
            if (pread(fd, buf, len, at) > 0 && at < size &&
                memcmp(buf, map + at, at + len > size ? size - at : len))
                printf("turn %d: read and mapping differ\n", turn);
            break;
        }
    }
    SHOW(lseek(fd, 0, SEEK_END) == size);
    close(fd);
    munmap(map, BYTES);
    sum("mix");
    unlink("mix");
}

static void copies(void)
{
    static char text[100000];
    off_t at = 10;
    printf("-- copies\n");
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = i * 7 + i / 251;
    int in = open("in", O_CREAT | O_RDWR, 0644), out = open("out", O_CREAT | O_RDWR, 0644);
    SHOW(write(in, text, sizeof(text)));
    SHOW(sendfile(out, in, &at, 70000));
    printf("%ld\n", (long)at);
    SHOW(lseek(in, 0, SEEK_SET));
    SHOW(sendfile(out, in, NULL, 200000));
    SHOW(lseek(in, 0, SEEK_CUR));
    SHOW(sendfile(out, in, NULL, 1));
    SHOW(syscall(SYS_copy_file_range, in, &at, out, NULL, 1000, 0));
    SHOW(syscall(SYS_copy_file_range, in, NULL, in, NULL, 1000, 1));
    close(in);
    close(out);
    sum("out");
    unlink("in");
    unlink("out");
}

int main(int argc, char **argv)
{
    char place[512];
    setvbuf(stdout, NULL, _IOFBF, 65536);
    snprintf(place, sizeof(place), "%s/tmpfiles.XXXXXX", argc > 1 ? argv[1] : "/tmp");
    if (!mkdtemp(place) || chdir(place)) {
        perror(place);
        return 1;
    }
    opening();
    names();
    renames();
    truncation();
    short_writes();
    holes();
    attributes_and_times();
    listings();
    locks();
    unnamed();
    without_an_entry();
    mixture();
    copies();
    list(".");
    SHOW(chdir(".."));
    SHOW(rmdir(place));
    return 0;
}
