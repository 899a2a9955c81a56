/*
 * replayed: five page faults in known functions, and a variable that is set between them, for a
 * recording that gdb goes back in (tests/gdb/test_replay.py). Run with vm.map_around_bytes=4096 and
 * vm.readahead=none, so that each page is a fault of its own.
 *
 *     choose(42)               the last store to `chosen`
 *     touch(file + n pages)    n from 1 to 5; `touched` is n then
 *
 * Exit status: 0, or 1 where the file cannot be mapped.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE     4096
#define TOUCHES  5
#define NOINLINE __attribute__((noinline, noclone, noipa))

int chosen = 7;
int touched;
int never_written = 5;

NOINLINE void choose(int value)
{
    chosen = value;
}

NOINLINE int touch(const volatile char *page, int number)
{
    touched = number;
    return *page;
}

int main(void)
{
    int fd = open("/data/medium.bin", O_RDONLY);
    const volatile char *file = mmap(NULL, (TOUCHES + 1) * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    int sum = 0;

    if (fd < 0 || file == MAP_FAILED) {
        perror("replayed: /data/medium.bin");
        return 1;
    }
    touch(file, 0);
    choose(41);
    choose(42);
    write(1, "replayed\n", 9);
    for (int n = 1; n <= TOUCHES; n++)
        sum += touch(file + n * PAGE, n);
    _exit(sum < -1000000 || never_written != 5); /* no fault comes behind the fifth */
}
