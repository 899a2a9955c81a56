/*
 * sigdisk: a process that waits for the disk in a page fault is ended by a fatal signal at once, not when the disk answers.
 * Use: sigdisk FILE DISK. The I/O gate of this kernel holds the reads back, so it does not run elsewhere.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DISK_NS    "5000000000"
#define LIMIT_MS   2000
#define FAR_OFFSET (256 * 4096)

static long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void set_latency(const char *disk, const char *ns)
{
    char path[128];
    int fd;

    snprintf(path, sizeof(path), "/sys/block/%s/gate/latency_ns", disk);
    fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, ns, strlen(ns)) < 0)
        perror(path);
    close(fd);
}

static void kill_one(const char *name, const volatile char *place, int signal)
{
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(*place);
    nanosleep(&(struct timespec){0, 100000000}, NULL);
    long start = now_ms();

    kill(child, signal);
    waitpid(child, &status, 0);
    printf("%s: signal %d, %s\n", name, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
           now_ms() - start < LIMIT_MS ? "at once" : "only after the disk");
}

int main(int argc, char **argv)
{
    int fd = argc > 2 ? open(argv[1], O_RDONLY) : -1;
    const char *map = mmap(NULL, 2 * FAR_OFFSET, PROT_READ, MAP_PRIVATE, fd, 0);

    if (map == MAP_FAILED) {
        perror("a file to map");
        return 99;
    }
    /* It ends by itself, and brings in the code that the others need, and the file's block numbers. */
    kill_one("none", map + 2 * FAR_OFFSET - 4096, SIGKILL);
    set_latency(argv[2], DISK_NS);
    kill_one("SIGKILL", map, SIGKILL);
    kill_one("SIGTERM", map + FAR_OFFSET, SIGTERM);
    set_latency(argv[2], "0");
    return 0;
}
