/*
 * record: runs a program with trace events on, and writes what happened behind what the program wrote.
 *
 * Works by Linux's files in /sys/kernel/tracing alone. After the program come a line of its own, numbers that the kernel
 * counted meanwhile, another line, and the trace:
 *
 *     ==== record: counted ====
 *     faults: 812
 *     ...
 *     ==== record: trace ====
 *     # tracer: nop
 *
 * Exit status: the program's (128 and the signal where one ended it); 126 where nothing can be recorded; 127 where there is
 * no such program; 2 where the call was wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACING       "/sys/kernel/tracing/"
#define EXIT_USAGE    2
#define EXIT_NO_TRACE 126
#define EXIT_NOT_RUN  127
#define SYSTEMS_MAX   16
#define COPY_BYTES    65536

static const char *const numbers[] = {"disk_data_requests", "disk_meta_requests", "fault_retries",
                                      "nr_file_pages"};
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static char buffer[COPY_BYTES];

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "record: %s: %s\n", what, strerror(errno));
    exit(EXIT_NO_TRACE);
}

static void put(const char *name, const char *value)
{
    char path[256];
    int fd;

    snprintf(path, sizeof(path), TRACING "%s", name);
    fd = open(path, O_WRONLY | O_TRUNC);
    if (fd < 0 || write(fd, value, strlen(value)) < 0)
        fail(path);
    close(fd);
}

/* The numbers of /proc/vmstat that have names above; one that is not there is 0. */
static void count(long long *values)
{
    int fd = open("/proc/vmstat", O_RDONLY);
    ssize_t used = 0, n;
    char *rest;

    while (fd >= 0 && (n = read(fd, buffer + used, sizeof(buffer) - 1 - used)) > 0)
        used += n;
    close(fd);
    buffer[used] = '\0';
    for (unsigned i = 0; i < NUMBERS; i++)
        values[i] = 0;
    for (char *line = strtok_r(buffer, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        for (unsigned i = 0; i < NUMBERS; i++)
            if (strncmp(line, numbers[i], strlen(numbers[i])) == 0 &&
                line[strlen(numbers[i])] == ' ')
                values[i] = atoll(line + strlen(numbers[i]) + 1);
}

static void switch_systems(char *const *systems, unsigned n, const char *value)
{
    char name[128];

    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "events/%s/enable", systems[i]);
        put(name, value);
    }
}

static int run(char **program)
{
    int status;
    pid_t pid = fork();

    if (pid < 0)
        fail("fork");
    if (pid == 0) {
        execvp(program[0], program);
        fprintf(stderr, "record: %s: %s\n", program[0], strerror(errno));
        _exit(EXIT_NOT_RUN);
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            fail("wait");
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void copy_trace(void)
{
    int fd = open(TRACING "trace", O_RDONLY);
    ssize_t n;

    while (fd >= 0 && (n = read(fd, buffer, sizeof(buffer))) > 0)
        for (ssize_t at = 0, done; at < n; at += done)
            if ((done = write(STDOUT_FILENO, buffer + at, n - at)) < 0)
                fail("output");
    if (fd < 0 || n < 0)
        fail(TRACING "trace");
    close(fd);
}

static unsigned split(char *list, char **words)
{
    unsigned n = 0;

    for (char *word = strtok(list, ","); word && n < SYSTEMS_MAX; word = strtok(NULL, ","))
        words[n++] = word;
    return n;
}

int main(int argc, char **argv)
{
    static char usual[] = "faultline,filemap,block";
    char *systems[SYSTEMS_MAX], *list = usual;
    const char *kb = "16384";
    long long before[NUMBERS], after[NUMBERS];
    struct rusage usage;
    int option, status;

    while ((option = getopt(argc, argv, "+b:e:")) != -1) {
        if (option == 'b')
            kb = optarg;
        else if (option == 'e')
            list = optarg;
        else
            return EXIT_USAGE;
    }
    if (optind == argc) {
        fprintf(stderr, "Usage: record [-b KB] [-e SYSTEM,...] PROGRAM ARGS...\n");
        return EXIT_USAGE;
    }
    setenv("PATH", "/bin:/sbin:/tests", 0);
    unsigned n = split(list, systems);
    put("buffer_size_kb", kb);
    switch_systems(systems, n, "1"); /* once for nothing: afterwards our own pages are there */
    switch_systems(systems, n, "0");
    count(before);
    count(after);
    put("trace", "\n");
    count(before);
    switch_systems(systems, n, "1");
    status = run(argv + optind);
    switch_systems(systems, n, "0");
    count(after);
    getrusage(RUSAGE_CHILDREN, &usage);
    printf("\n==== record: counted ====\nown_pid: %d\nfaults: %ld\nmajor: %ld\n", getpid(),
           usage.ru_minflt + usage.ru_majflt, usage.ru_majflt);
    printf("cached_before: %lld\n", before[NUMBERS - 1]);
    for (unsigned i = 0; i < NUMBERS; i++)
        printf("%s: %lld\n", numbers[i], after[i] - before[i]);
    printf("==== record: trace ====\n");
    fflush(stdout);
    copy_trace();
    return status;
}
