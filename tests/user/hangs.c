/*
 * hangs: one thread waits for a page whose read the gate holds, with its address space locked; another waits for that
 * lock. Both for longer than the kernel likes; a third one as long for a pipe, which is no matter. Use: hangs FILE DISK
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define GATE "/sys/kernel/debug/faultline/gate"

static pthread_barrier_t hold_is_set, read_is_held;
static volatile char *map;

static void put(int fd, const char *text)
{
    if (write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        perror(text);
        exit(1);
    }
}

static void set(const char *path, const char *value)
{
    int fd = open(path, O_WRONLY);
    put(fd, value);
    close(fd);
}

__attribute__((noinline)) static void touch_page(void)
{
    (void)map[5 * PAGE];
}

static void *reader(void *unused)
{
    prctl(PR_SET_NAME, "reader");
    pthread_barrier_wait(&hold_is_set);
    touch_page();
    return unused;
}

static void *mapper(void *unused)
{
    prctl(PR_SET_NAME, "mapper");
    pthread_barrier_wait(&read_is_held);
    mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return unused;
}

/* Waits for as long, but for the world. */
static void *listener(void *pipe_end)
{
    char byte;
    prctl(PR_SET_NAME, "listener");
    return read(*(int *)pipe_end, &byte, 1) == 0 ? NULL : pipe_end;
}

int main(int argc, char **argv)
{
    pthread_t threads[3];
    int ends[2];
    char command[64];
    int gate = open(GATE, O_RDWR), file = open(argc == 3 ? argv[1] : "", O_RDONLY);
    struct timespec longer = {.tv_sec = 3};

    map = mmap(NULL, 16 * PAGE, PROT_READ, MAP_SHARED, file, 0);
    if (gate < 0 || map == MAP_FAILED)
        return 1;
    set("/proc/sys/kernel/hung_task_timeout_secs", "1");
    set("/proc/sys/vm/fault_lock", "mmap");
    set("/proc/sys/vm/fault_retry", "hold");
    set("/proc/sys/vm/readahead", "none");
    pthread_barrier_init(&hold_is_set, NULL, 2);
    pthread_barrier_init(&read_is_held, NULL, 2);
    pthread_create(&threads[0], NULL, reader, NULL);
    pthread_create(&threads[1], NULL, mapper, NULL);
    if (pipe(ends))
        return 1;
    pthread_create(&threads[2], NULL, listener, &ends[0]);
    printf("hangs\n");
    fflush(stdout);
    munmap((void *)map, 16 * PAGE); /* it is to be absent: mlockall() brings in what is mapped */
    mlockall(MCL_CURRENT);
    map = mmap(NULL, 16 * PAGE, PROT_READ, MAP_SHARED, file, 0);

    snprintf(command, sizeof(command), "hold %s 0 65536 1", argv[2]);
    put(gate, command);
    pthread_barrier_wait(&hold_is_set);
    snprintf(command, sizeof(command), "wait %s 1", argv[2]);
    put(gate, command);
    pthread_barrier_wait(&read_is_held);
    nanosleep(&longer, NULL);
    snprintf(command, sizeof(command), "open %s", argv[2]);
    put(gate, command);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    close(ends[1]);
    pthread_join(threads[2], NULL);
    printf("goes on\n");
    return 0;
}
