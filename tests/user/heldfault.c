/*
 * heldfault: faults that gdb finds asleep (tests/gdb/test_helpers.py). Run with vm.readahead=none, so
 * that each touch is a read of one page.
 *
 *     slow_touch(file + 1 page)   the disk's delay keeps the fault waiting
 *     bad_touch(file + 3 pages)   the sector is bad: waits, starts over, reads again, waits, SIGBUS
 *
 * Ends by SIGBUS; exit status 1 where something could not be set up.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE     4096
#define PAGES    8
#define NOINLINE __attribute__((noinline, noclone, noipa))

static void set(const char *name, const char *text)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/sys/block/vda/gate/%s", name);
    fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, text, strlen(text)) < 0) {
        perror(path);
        _exit(1);
    }
    close(fd);
}

/* Every sector is bad from now on. */
static void fail_all(void)
{
    char text[64];
    unsigned long sectors = 0;
    FILE *size = fopen("/sys/block/vda/size", "r");

    if (!size || fscanf(size, "%lu", &sectors) != 1)
        _exit(1);
    snprintf(text, sizeof(text), "0 %lu", sectors - 1);
    set("fail", text);
}

NOINLINE int slow_touch(const volatile char *page)
{
    return *page + 1;
}

NOINLINE int bad_touch(const volatile char *page)
{
    return *page + 2;
}

int main(void)
{
    int fd = open("/data/medium.bin", O_RDONLY);
    const volatile char *file = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    volatile int sum;

    if (fd < 0 || file == MAP_FAILED) {
        perror("heldfault: /data/medium.bin");
        return 1;
    }
    sum = file[0];
    set("latency_ns", "300000000");
    sum += slow_touch(file + PAGE);
    fail_all();
    sum += bad_touch(file + 3 * PAGE);
    puts("heldfault: the bad sector was read");
    return 1;
}
