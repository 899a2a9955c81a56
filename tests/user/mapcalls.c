/*
 * mapcalls: mmap, munmap and mprotect with good and bad arguments. Every line must be equal on
 * every kernel. Use: mapcalls FILE, a file of at least one page whose size is no multiple of the
 * page.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/user/show.h"

#define PAGE       SHOW_PAGE
#define ANONYMOUS  (MAP_PRIVATE | MAP_ANONYMOUS)
#define READ_WRITE (PROT_READ | PROT_WRITE)

static char *map_pages(size_t pages)
{
    return mmap(NULL, pages * PAGE, READ_WRITE, ANONYMOUS, -1, 0);
}

static void bad_arguments(int fd)
{
    char *page = map_pages(1);

    SHOW_MAP("mmap length 0", mmap(NULL, 0, PROT_READ, ANONYMOUS, -1, 0));
    SHOW_MAP("mmap no sharing flag", mmap(NULL, PAGE, PROT_READ, MAP_ANONYMOUS, -1, 0));
    SHOW_MAP("mmap unaligned offset",
             (void *)syscall(SYS_mmap, NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 100L));
    SHOW_MAP("mmap unaligned fixed", mmap(page + 1, PAGE, PROT_READ, ANONYMOUS | MAP_FIXED, -1, 0));
    SHOW_MAP("mmap bad descriptor", mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, 999, 0));
    SHOW_MAP("mmap minus one", mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, -1, 0));
    SHOW_MAP("mmap shared writable of a read-only descriptor",
             mmap(NULL, PAGE, READ_WRITE, MAP_SHARED, fd, 0));
    SHOW_MAP("mmap private writable of it", mmap(NULL, PAGE, READ_WRITE, MAP_PRIVATE, fd, 0));
    SHOW_MAP("mmap too large",
             (void *)syscall(SYS_mmap, NULL, 1UL << 47, PROT_READ, ANONYMOUS, -1, 0L));
    SHOW_MAP("mmap nearly everything",
             (void *)syscall(SYS_mmap, NULL, ~0xfffUL, PROT_READ, ANONYMOUS, -1, 0L));
    SHOW_MAP("mmap fixed noreplace on something",
             mmap(page, PAGE, PROT_READ, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
    SHOW("munmap unaligned", munmap(page + 1, PAGE));
    SHOW("munmap length 0", munmap(page, 0));
    SHOW("munmap the kernel's half", munmap((void *)0xffff800000000000UL, PAGE));
    SHOW("mprotect unaligned", syscall(SYS_mprotect, page + 1, PAGE, PROT_READ));
    SHOW("mprotect length 0", mprotect(page, 0, PROT_READ));
    SHOW("munmap", munmap(page, PAGE));
}

static void shared_protection(int fd)
{
    char *map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);

    SHOW_TRUE("shared readable map", map != MAP_FAILED);
    SHOW("mprotect it to writable", mprotect(map, PAGE, READ_WRITE));
    SHOW("mprotect it to none", mprotect(map, PAGE, PROT_NONE));
    SHOW("mprotect it to readable", mprotect(map, PAGE, PROT_READ));
    SHOW_TRUE("its bytes are there", map[0] != 0 || map[1] != 0);
    munmap(map, PAGE);
}

static void holes(void)
{
    char *map = map_pages(8);

    SHOW("munmap the middle", munmap(map + 3 * PAGE, 2 * PAGE));
    SHOW("munmap it again", munmap(map + 3 * PAGE, 2 * PAGE));
    map[0] = 'a';
    map[7 * PAGE] = 'z';
    SHOW_TRUE("both sides live", map[0] == 'a' && map[7 * PAGE] == 'z');
    SHOW("mprotect across the hole", mprotect(map, 8 * PAGE, PROT_READ));
    SHOW("munmap across the hole", munmap(map, 8 * PAGE));
    SHOW("mprotect of nothing", mprotect(map, PAGE, PROT_READ));
}

static void places(void)
{
    char *upper = map_pages(4), *lower = map_pages(2), *again, *hint, *fixed;

    SHOW_TRUE("the second map lies right below the first", lower + 2 * PAGE == upper);
    munmap(upper + PAGE, 2 * PAGE);
    again = map_pages(2);
    SHOW_TRUE("the highest hole that fits is used again", again == upper + PAGE);
    hint = mmap(upper, PAGE, READ_WRITE, ANONYMOUS, -1, 0);
    SHOW_TRUE("an occupied hint means another place", hint != MAP_FAILED && hint != upper);
    upper[0] = 'x';
    fixed = mmap(upper, PAGE, READ_WRITE, ANONYMOUS | MAP_FIXED, -1, 0);
    SHOW_TRUE("fixed replaces", fixed == upper && upper[0] == 0);
    munmap(upper, 4 * PAGE);
    hint = mmap(upper + PAGE, PAGE, READ_WRITE, ANONYMOUS, -1, 0);
    SHOW_TRUE("a free hint is taken", hint == upper + PAGE);
}

static void file_tail(int fd)
{
    struct stat status;
    unsigned int nonzero = 0;
    char *map;

    if (fstat(fd, &status) < 0)
        return;

    size_t size = (size_t)status.st_size, end = (size + PAGE - 1) & ~(PAGE - 1);

    map = mmap(NULL, end, READ_WRITE, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return;
    for (size_t i = size; i < end; i++)
        nonzero += map[i] != 0;
    printf("bytes behind the end that are not zero: %u\n", nonzero);
    map[0] ^= 0x55;

    char first;

    SHOW("pread after a private store", pread(fd, &first, 1, 0));
    SHOW_TRUE("the file is unchanged", first == (map[0] ^ 0x55));
    munmap(map, end);
}

static void anonymous_bytes(void)
{
    char *map = map_pages(3);

    SHOW_TRUE("a new page reads as zero", map[PAGE + 17] == 0);
    map[PAGE + 17] = 5;
    SHOW("mprotect to read-only", mprotect(map, 3 * PAGE, PROT_READ));
    SHOW_TRUE("the byte is kept", map[PAGE + 17] == 5);
    SHOW("mprotect back", mprotect(map, 3 * PAGE, READ_WRITE));
    map[PAGE + 17]++;
    SHOW_TRUE("and can be changed", map[PAGE + 17] == 6);
    munmap(map, 3 * PAGE);
}

int main(int argc, char **argv)
{
    int fd = open(argc > 1 ? argv[1] : "/data/small.txt", O_RDONLY);

    if (fd < 0) {
        perror("the file");
        return 1;
    }
    bad_arguments(fd);
    shared_protection(fd);
    holes();
    places();
    file_tail(fd);
    anonymous_bytes();
    return 0;
}
