/*
 * What /proc/self says about memory, against what the program knows: smaps, smaps_rollup, pagemap,
 * mem, auxv, environ, limits, task. Prints the same on every kernel that does it right.
 *
 * Use: procmem [FILE]: a file of more than 40 pages; default the program itself.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/user/show.h"
#include "tests/user/under_init.h"

#define PAGES    16
#define TOUCHED  10
#define FAR_PAGE 37

#define PRESENT (1ull << 63)
#define OF_FILE (1ull << 61)

static long file_bytes(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY);
    long done = 0, n;

    while (fd >= 0 && (n = read(fd, buf + done, size - 1 - done)) > 0)
        done += n;
    close(fd);
    buf[done] = '\0';
    return done;
}

/* The number of a line of the area that begins at `at` (0: of the whole file); -1: it is not there. */
static long number_of(const char *path, const void *at, const char *name)
{
    char line[512], begin[32];
    int here = !at;
    long value = -1;
    FILE *file = fopen(path, "r");

    snprintf(begin, sizeof(begin), "%lx-", (unsigned long)at);
    while (file && value < 0 && fgets(line, sizeof(line), file)) {
        if (at && strncmp(line, begin, strlen(begin)) == 0)
            here = 1;
        if (here && strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            value = strtol(line + strlen(name) + 1, NULL, 10);
    }
    if (file)
        fclose(file);
    return value;
}

static void smaps(char *memory)
{
    static const char *const names[] = {"Size",         "Rss",       "Pss",  "Private_Dirty",
                                        "Shared_Dirty", "Anonymous", "Swap", "KernelPageSize"};
    long pss;

    for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
        printf("smaps %s: %ld kB\n", names[i], number_of("/proc/self/smaps", memory, names[i]));
    pss = number_of("/proc/self/smaps_rollup", NULL, "Pss");
    SHOW_TRUE("rollup", pss >= 40 && pss <= number_of("/proc/self/smaps_rollup", NULL, "Rss"));
    SHOW_TRUE("as much as status says, or nearly",
              labs(number_of("/proc/self/smaps_rollup", NULL, "Rss") -
                   number_of("/proc/self/status", NULL, "VmRSS")) <= 400);
}

static void shared_with_a_child(char *memory)
{
    int status;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        printf("in a child: Pss %ld kB, Shared_Dirty %ld kB\n",
               number_of("/proc/self/smaps", memory, "Pss"),
               number_of("/proc/self/smaps", memory, "Shared_Dirty"));
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, &status, 0);
}

static void pagemap(char *memory, char *of_file)
{
    uint64_t entries[PAGES] = {0}, one = 0;
    int fd = open("/proc/self/pagemap", O_RDONLY), present = 0, of_files = 0;

    SHOW("pagemap", pread(fd, entries, sizeof(entries), (uintptr_t)memory / SHOW_PAGE * 8));
    for (int i = 0; i < PAGES; i++) {
        present += (entries[i] & PRESENT) != 0;
        of_files += (entries[i] & OF_FILE) != 0;
    }
    printf("present: %d, of files: %d\n", present, of_files);
    SHOW("of a file", pread(fd, &one, 8, (uintptr_t)of_file / SHOW_PAGE * 8));
    SHOW_TRUE("present", one & PRESENT);
    SHOW_TRUE("a file's", one & OF_FILE);
    SHOW("not a multiple of 8", pread(fd, &one, 7, 0));
    SHOW("not at a multiple of 8", pread(fd, &one, 8, 4));
    SHOW("behind the end", pread(fd, &one, 8, 1l << 50));
    close(fd);
}

static void mem(char *memory, char *of_file, const char *path)
{
    int fd = open("/proc/self/mem", O_RDWR), other = open(path, O_RDONLY);
    char buf[64], wanted[64];

    SHOW("mem", pread(fd, buf, 10, (uintptr_t)memory + 4090));
    SHOW_TRUE("right", memcmp(buf, memory + 4090, 10) == 0);
    SHOW("written", pwrite(fd, "across two", 10, (uintptr_t)memory + 4090));
    SHOW_TRUE("seen", memcmp(memory + 4090, "across two", 10) == 0);
    SHOW("a page that was not there",
         pread(fd, buf, 64, (uintptr_t)of_file + FAR_PAGE * SHOW_PAGE));
    SHOW_TRUE("right",
              pread(other, wanted, 64, FAR_PAGE * SHOW_PAGE) == 64 && memcmp(buf, wanted, 64) == 0);
    munmap(memory + 2 * SHOW_PAGE, SHOW_PAGE);
    SHOW("nothing mapped", pread(fd, buf, 10, (uintptr_t)memory + 2 * SHOW_PAGE));
    SHOW("up to what is not mapped", pread(fd, buf, 10, (uintptr_t)memory + 2 * SHOW_PAGE - 4));
    SHOW("into nowhere", pread(fd, (void *)8, 10, (uintptr_t)memory));
    close(fd);
    close(other);
}

/* What the process itself may not do, a debugger may. */
static void forced(char *memory, char *of_file)
{
    int fd = open("/proc/self/mem", O_RDWR), zero = open("/dev/zero", O_RDWR);
    char before = memory[0], buf[8] = "", *shared;
    int status;
    pid_t pid;

    mprotect(memory, SHOW_PAGE, PROT_READ);
    SHOW("into read-only", pwrite(fd, "X", 1, (uintptr_t)memory));
    SHOW_TRUE("seen", memory[0] == 'X');
    SHOW("still read-only", read(zero, memory, 1));
    SHOW("into a file's page", pwrite(fd, "Y", 1, (uintptr_t)of_file + SHOW_PAGE));
    SHOW_TRUE("seen", of_file[SHOW_PAGE] == 'Y');
    pid = fork();
    if (pid == 0) {
        SHOW("a child's own",
             pwrite(fd, "Z", 1, (uintptr_t)memory)); /* the parent's, by its file */
        fflush(stdout);
        _exit(memory[0]);
    }
    waitpid(pid, &status, 0);
    printf("%c %c\n", WEXITSTATUS(status), memory[0]);
    mprotect(memory, SHOW_PAGE, PROT_NONE);
    SHOW("out of PROT_NONE", pread(fd, buf, 1, (uintptr_t)memory));
    printf("%c\n", buf[0]);
    mprotect(memory, SHOW_PAGE, PROT_READ | PROT_WRITE);
    memory[0] = before;
    shared = mmap(NULL, SHOW_PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    SHOW("into read-only shared", pwrite(fd, "X", 1, (uintptr_t)shared));
    munmap(shared, SHOW_PAGE);
    close(zero);
    close(fd);
}

static void auxv_and_environ(void)
{
    static char buf[65536];
    Elf64_auxv_t *aux = (Elf64_auxv_t *)buf;
    long n = file_bytes("/proc/self/auxv", buf, sizeof(buf)) / sizeof(*aux), same = 0, wrong = 0;
    size_t at = 0;

    for (long i = 0; i < n && aux[i].a_type != AT_NULL; i++)
        if (aux[i].a_type == AT_PAGESZ || aux[i].a_type == AT_ENTRY || aux[i].a_type == AT_PHDR ||
            aux[i].a_type == AT_RANDOM)
            same += getauxval(aux[i].a_type) == aux[i].a_un.a_val;
    printf("auxv: %ld\n", same);
    n = file_bytes("/proc/self/environ", buf, sizeof(buf));
    for (char **e = environ; *e; at += strlen(*e) + 1, e++)
        wrong += strcmp(buf + at, *e) != 0;
    printf("environ: wrong %ld, rest %ld\n", wrong, n - (long)at);
}

static void limits(void)
{
    char text[4096], wanted[128];
    struct rlimit limit;
    const char *line;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 99;
    setrlimit(RLIMIT_NOFILE, &limit);
    file_bytes("/proc/self/limits", text, sizeof(text));
    snprintf(wanted, sizeof(wanted), "%-25s %-20d ", "Max open files", 99);
    line = strstr(text, wanted);
    SHOW_TRUE("limits", line != NULL);
    printf("%.*s\n", (int)strcspn(text, "\n"), text);
    SHOW_TRUE("map count", number_of("/proc/self/limits", NULL, "x") == -1 &&
                               file_bytes("/proc/sys/vm/max_map_count", text, sizeof(text)) > 0 &&
                               atoi(text) >= 65530);
    SHOW_TRUE("overcommit", file_bytes("/proc/sys/vm/overcommit_memory", text, sizeof(text)) == 2);
}

static pthread_barrier_t barrier;

static void *stay(void *arg)
{
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return arg;
}

static void tasks(void)
{
    pthread_t threads[3];
    struct dirent *entry;
    char path[64], text[1024];
    int n = 0, own = 0, with_stat = 0;
    DIR *dir;

    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, stay, NULL);
    pthread_barrier_wait(&barrier);
    dir = opendir("/proc/self/task");
    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        n++;
        own += atoi(entry->d_name) == getpid();
        snprintf(path, sizeof(path), "/proc/self/task/%.20s/stat", entry->d_name);
        with_stat += file_bytes(path, text, sizeof(text)) > 50 && atoi(text) == atoi(entry->d_name);
    }
    if (dir)
        closedir(dir);
    printf("tasks: %d, own: %d, with stat: %d\n", n, own, with_stat);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "/proc/self/exe";
    char *memory, *of_file;
    int fd;

    under_init();
    memory = mmap(NULL, (PAGES + 2) * SHOW_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory += SHOW_PAGE; /* an area of its own, between others that stay apart */
    mprotect(memory, PAGES * SHOW_PAGE, PROT_READ | PROT_WRITE);
    for (int i = 0; i < TOUCHED; i++)
        memory[i * SHOW_PAGE] = 1;
    fd = open(path, O_RDONLY);
    of_file = mmap(NULL, 64 * SHOW_PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    if (*(volatile char *)of_file == 1)
        puts("an odd file");
    smaps(memory);
    shared_with_a_child(memory);
    pagemap(memory, of_file);
    mem(memory, of_file, path);
    forced(memory, of_file);
    auxv_and_environ();
    limits();
    tasks();
    return 0;
}
