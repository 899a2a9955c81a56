/*
 * procself: what a program finds about itself under /proc/self: one line `WHAT: yes` or `no` for
 * each promise, the same on every kernel that keeps them.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE            4096UL
#define STAT_FIELDS     52
#define STAT_MINFLT     10
#define STAT_VSIZE      23
#define STAT_RSS        24
#define STAT_STARTSTACK 28
#define PAGES_TO_TOUCH  1000
#define LARGE_FILE      0100000UL /* the kernel's O_LARGEFILE; the library's is 0 where all are */
#define RSS_MAY_LAG     500       /* Linux adds up its CPUs' counts now and then */

static char text[65536];

static void say(const char *what, bool is_so)
{
    printf("%s: %s\n", what, is_so ? "yes" : "no");
}

/* => length of the file, in `text`; -1 if it cannot be read */
static long load(const char *path)
{
    long used = 0;
    ssize_t got;
    int fd = open(path, O_RDONLY);

    if (fd < 0)
        return -1;
    while ((got = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
        used += got;
    text[used] = '\0';
    close(fd);
    return used;
}

/* The line of maps that covers the address, or NULL. */
static char *maps_line(const void *address)
{
    static char found[1024];

    load("/proc/self/maps");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        unsigned long start, end;

        if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start <= (uintptr_t)address &&
            (uintptr_t)address < end) {
            snprintf(found, sizeof(found), "%s", line);
            return found;
        }
    }
    return NULL;
}

static bool line_has(const char *line, const char *what)
{
    return line && strstr(line, what) != NULL;
}

/* Field `wanted` of stat, as proc(5) numbers them; they end up in *count. */
static unsigned long stat_field(int wanted, int *count)
{
    unsigned long value = 0;
    char *at;

    load("/proc/self/stat");
    at = strrchr(text, ')');
    *count = 2;
    for (char *word = at ? strtok(at + 1, " \n") : NULL; word; word = strtok(NULL, " \n"))
        if (++*count == wanted)
            value = strtoul(word, NULL, 10);
    return value;
}

static bool is_listed(const char *folder, const char *name)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    bool found = false;

    while (dir && (entry = readdir(dir)) != NULL)
        found |= strcmp(entry->d_name, name) == 0;
    if (dir)
        closedir(dir);
    return found;
}

static void check_names(void)
{
    static const char *const names[] = {"cmdline", "comm", "exe",   "fdinfo",
                                        "maps",    "stat", "statm", "status"};
    char pid[32], target[4096] = "", path[64];

    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    snprintf(path, sizeof(path), "/proc/%s", pid);
    say("self leads to the pid",
        readlink("/proc/self", target, sizeof(target) - 1) > 0 && strcmp(target, pid) == 0);
    say("the pid is listed", is_listed("/proc", pid));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        say(names[i], is_listed(path, names[i]));
    memset(target, 0, sizeof(target));
    say("exe is this program", readlink("/proc/self/exe", target, sizeof(target) - 1) > 0 &&
                                   strcmp(strrchr(target, '/'), "/procself") == 0);
    say("no such process", access("/proc/4000000/maps", F_OK) < 0);
    say("no such file", access("/proc/self/nothing", F_OK) < 0);
}

static void check_maps(void)
{
    int on_stack;
    char *map = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *heap = malloc(16);

    say("text is mapped to be executed", line_has(maps_line((void *)check_maps), " r-xp ") &&
                                             line_has(maps_line((void *)check_maps), "/procself"));
    say("the stack has its name", line_has(maps_line(&on_stack), "[stack]"));
    say("the heap can be written", line_has(maps_line(heap), " rw-p "));
    say("a new area is there", line_has(maps_line(map), " r--p 00000000 00:00 0"));
    mprotect(map + PAGE, PAGE, PROT_NONE);
    say("a changed half is told apart",
        line_has(maps_line(map), " r--p ") && line_has(maps_line(map + PAGE), " ---p "));
    munmap(map, 2 * PAGE);
    say("an unmapped area is gone", maps_line(map) == NULL);
    free(heap);
}

static void check_stat(void)
{
    int count, on_stack;
    unsigned long before = stat_field(STAT_RSS, &count), vsize = stat_field(STAT_VSIZE, &count);
    char *map = mmap(NULL, PAGES_TO_TOUCH * PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct rusage usage;
    unsigned long faults, stack;

    madvise(map, PAGES_TO_TOUCH * PAGE, MADV_NOHUGEPAGE);
    for (int i = 0; i < PAGES_TO_TOUCH; i++)
        ((volatile char *)map)[i * PAGE] = 1;
    say("stat has 52 fields", count == STAT_FIELDS);
    say("vsize grows by what is mapped",
        stat_field(STAT_VSIZE, &count) == vsize + PAGES_TO_TOUCH * PAGE);
    say("rss grows by what is touched",
        stat_field(STAT_RSS, &count) >= before + PAGES_TO_TOUCH - RSS_MAY_LAG);
    faults = stat_field(STAT_MINFLT, &count);
    getrusage(RUSAGE_SELF, &usage);
    say("minflt is getrusage's", (unsigned long)usage.ru_minflt == faults);
    stack = stat_field(STAT_STARTSTACK, &count);
    say("startstack is above what is in use", stack > (uintptr_t)&on_stack);
    load("/proc/self/stat");
    say("comm stands in brackets", strstr(text, " (procself) R ") != NULL);
}

static void check_texts(char **argv)
{
    long len = load("/proc/self/cmdline"), at = 0;
    bool equal = true;

    for (; *argv && at < len; argv++, at += strlen(text + at) + 1)
        equal &= strcmp(text + at, *argv) == 0;
    say("cmdline is what the program got", equal && !*argv && at == len);
    load("/proc/self/comm");
    say("comm", strcmp(text, "procself\n") == 0);
    load("/proc/self/status");
    say("status names the program", strncmp(text, "Name:\tprocself\n", 15) == 0);
    say("status counts one thread", strstr(text, "\nThreads:\t1\n") != NULL);
    say("status has sizes",
        strstr(text, "\nVmSize:\t") && strstr(text, "\nVmRSS:\t") && strstr(text, "\nRssAnon:\t"));
    load("/proc/self/statm");
    say("statm is seven numbers", isdigit((unsigned char)text[0]) && strchr(text, '\n') != NULL);
}

/* Whether the text in `text` has a line `name:` with that value. */
static bool has_value(const char *name, const char *format, unsigned long value)
{
    char number[32], line[64];

    snprintf(number, sizeof(number), format, value);
    snprintf(line, sizeof(line), "%s:\t%s\n", name, number);
    return strstr(text, line) != NULL;
}

static void check_fdinfo(void)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    char path[64], name[16];
    struct stat status;

    fstat(fd, &status);
    lseek(fd, 4711, SEEK_SET);
    snprintf(name, sizeof(name), "%d", fd);
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", name);
    say("fdinfo can be read", load(path) > 0);
    say("fdinfo has the position", has_value("pos", "%lu", 4711));
    say("fdinfo has the flags", has_value("flags", "%#lo", O_RDONLY | O_CLOEXEC | LARGE_FILE));
    say("fdinfo has the inode", has_value("ino", "%lu", status.st_ino));
    say("fdinfo has a mount", strstr(text, "\nmnt_id:\t") != NULL);
    say("fdinfo lists the descriptor", is_listed("/proc/self/fdinfo", name));
    close(fd);
    say("a closed descriptor is gone", access(path, F_OK) < 0);
    say("no such descriptor", access("/proc/self/fdinfo/1000", F_OK) < 0);
    say("no such number", access("/proc/self/fdinfo/00", F_OK) < 0);
    say("fdinfo is left upwards", access("/proc/self/fdinfo/../maps", F_OK) == 0);
}

int main(int argc, char **argv)
{
    (void)argc;
    check_names();
    check_maps();
    check_stat();
    check_texts(argv);
    check_fdinfo();
    return 0;
}
