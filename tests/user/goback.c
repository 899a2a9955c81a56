/*
 * goback: the program of docs/walk.md (tests/gdb/test_walk.py). Touches four pages of a mapped file in
 * turn, and stores into `answer` before and after.
 *
 * The disk is given a delay, by the kernel's own clock: so a recording is the same on every host.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE     4096
#define PAGES    4
#define NOINLINE __attribute__((noinline, noclone, noipa))

volatile long answer;

static int make_disk_slow(void)
{
    static const char text[] = "5000000";
    int fd = open("/sys/block/vda/gate/latency_ns", O_WRONLY);
    int failed = fd < 0 || write(fd, text, sizeof(text) - 1) < 0;

    close(fd);
    return failed;
}

NOINLINE int touch(const volatile char *page)
{
    return *page;
}

NOINLINE void store_first(long value)
{
    answer = value;
}

NOINLINE void store_again(long value)
{
    answer = value * 2;
}

int main(void)
{
    int fd = open("/data/medium.bin", O_RDONLY);
    const volatile char *file = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    int sum = 0;

    if (fd < 0 || file == MAP_FAILED || make_disk_slow()) {
        perror("goback");
        return 1;
    }
    store_first(20);
    for (int i = 0; i < PAGES; i++)
        sum += touch(file + i * PAGE);
    store_again(21);
    printf("goback: %ld\n", answer + 0 * sum);
    return 0;
}
