/*
 * threadcounts: what each of two threads counts, by /proc/self/task/TID/faults.
 *
 * Use: threadcounts FILE. One thread touches TOUCHES pages of FILE far from each other; both then
 * print a line `NAME started=N attempts=N latencies=N`, with what has been counted since the
 * touches began.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE    4096UL
#define TOUCHES 50
#define APART   100

struct counts {
    unsigned long started, attempts, latencies;
};

static const volatile char *map;
static struct counts of_thread;

/* The buffer is on no page that is new: both samples cost the same. */
static struct counts take(void)
{
    static char text[16384];
    struct counts counts = {0};
    char path[64], *line;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/self/task/%ld/faults", syscall(SYS_gettid));
    fd = open(path, O_RDONLY);
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    text[n] = '\0';
    for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        unsigned long value = strtoul(strchr(line, ' '), NULL, 10);

        if (strncmp(line, "started ", 8) == 0)
            counts.started = value;
        else if (strncmp(line, "attempts ", 9) == 0)
            counts.attempts = value;
        else if (strncmp(line, "latency_", 8) == 0)
            counts.latencies += value;
    }
    return counts;
}

static void print(const char *name, struct counts before, struct counts after)
{
    printf("%s started=%lu attempts=%lu latencies=%lu\n", name, after.started - before.started,
           after.attempts - before.attempts, after.latencies - before.latencies);
}

static void *touch(void *arg)
{
    struct counts before;

    (void)arg;
    take(); /* the stack and the buffer are there now */
    before = take();
    for (unsigned long i = 0; i < TOUCHES; i++)
        (void)map[i * APART * PAGE];
    of_thread = take();
    of_thread.started -= before.started;
    of_thread.attempts -= before.attempts;
    of_thread.latencies -= before.latencies;
    return NULL;
}

int main(int argc, char **argv)
{
    int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    struct counts before;
    pthread_t thread;

    map = fd < 0 ? MAP_FAILED : mmap(NULL, TOUCHES * APART * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        perror("threadcounts");
        return EXIT_FAILURE;
    }
    take();
    if (pthread_create(&thread, NULL, touch, NULL) != 0)
        return EXIT_FAILURE;
    before = take();
    pthread_join(thread, NULL);
    print("main", before, take());
    print("thread", (struct counts){0}, of_thread);
    return EXIT_SUCCESS;
}
