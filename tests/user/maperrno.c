/*
 * maperrno: calls on an address space with good, borderline and absurd arguments, each on the same
 * areas made anew. A line shows the call, what came of it, and the areas afterwards where they are
 * others than before. tests/data/maperrno.txt has these lines from Linux 6.12.
 *
 *     pages 0-3    private, read and write, the first two touched
 *     4-5          private, read
 *     8-11         a file of 16 pages and a half, shared, read and write, from its page 2
 *     12-13        the same, private, read
 *     14-15        the same, shared, read, by a descriptor that cannot write
 *     18-19        private, no access
 *     22-23        private, read and write, locked
  *     1000         private, grows down
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/user/show.h"

#define PAGE           SHOW_PAGE
#define BASE           0x200000000ul
#define WINDOW         2048ul
#define P(n)           (BASE + (unsigned long)(n)*PAGE)
#define B(n)           ((unsigned long)(n)*PAGE)
#define RW             (PROT_READ | PROT_WRITE)
#define R              PROT_READ
#define ANON           (MAP_PRIVATE | MAP_ANONYMOUS)
#define MOVE_TO        (MREMAP_MAYMOVE | MREMAP_FIXED)
#define USER_END       0x7ffffffff000ul
#define KERNEL         0xffffffff80000000ul
#define HALF           0x800000000000ul
#define ALL            (~0ul)
#define LAST           (~0xffful) /* the highest page of all */
#define FILE_BYTES     (16 * PAGE + PAGE / 2)
#define LINE_BYTES     512
#define MAP_BYTES      1024
#define NOREPLACE      0x100000ul
#define VALIDATE       0x03ul
#define DROPPABLE      0x08ul
#define LOW_2G         0x40ul
#define GROWSDOWN_PROT 0x01000000ul
#define GROWSUP_PROT   0x02000000ul

static long rw_file, ro_file, wo_file, path_file, folder, pipe_end, memory_file;

/* ---- The areas ---- */

static void put_area(const char *line, char *out)
{
    unsigned long start, end, offset, inode;
    size_t used = strlen(out);
    char prot[5];

    if (sscanf(line, "%lx-%lx %4s %lx %*s %lu", &start, &end, prot, &offset, &inode) != 5 ||
        end <= BASE || start >= BASE + B(WINDOW))
        return;
    snprintf(out + used, MAP_BYTES - used, inode ? " [%lu,%lu)%s+f%lu" : " [%lu,%lu)%s",
             (start - BASE) / PAGE, (end - BASE) / PAGE, prot, offset / PAGE);
}

static void read_window(char *out)
{
    char line[LINE_BYTES];
    FILE *maps = fopen("/proc/self/maps", "r");

    *out = '\0';
    while (maps && fgets(line, sizeof(line), maps))
        put_area(line, out);
    if (maps)
        fclose(maps);
}

static void place(unsigned long first, unsigned long pages, int prot, int flags, int fd, long page)
{
    if (mmap((void *)P(first), B(pages), prot, flags | MAP_FIXED, fd, page * (long)PAGE) ==
        MAP_FAILED)
        exit(EXIT_FAILURE);
}

static void make_areas(void)
{
    munlockall();
    munmap((void *)BASE, B(WINDOW));
    place(0, 4, RW, ANON, -1, 0);
    *(volatile char *)P(0) = *(volatile char *)P(1) = 1;
    place(4, 2, R, ANON, -1, 0);
    place(8, 4, RW, MAP_SHARED, (int)rw_file, 2);
    place(12, 2, R, MAP_PRIVATE, (int)rw_file, 2);
    place(14, 2, R, MAP_SHARED, (int)ro_file, 0);
    place(18, 2, PROT_NONE, ANON, -1, 0);
    place(22, 2, RW, ANON, -1, 0);
    mlock((void *)P(22), B(2));
    place(1000, 1, RW, ANON | MAP_GROWSDOWN, -1, 0);
}

/* ---- One call ---- */

static void put_result(unsigned long result, int error)
{
    if (result == ~0ul)
        printf("%s", show_errno(error));
    else if (result >= BASE && result < BASE + B(WINDOW))
        printf("page %lu", (result - BASE) / PAGE);
    else if (result >= 1ul << 32)
        printf("elsewhere");
    else if (result >= 1ul << 16)
        printf("low");
    else
        printf("%lu", result);
}

/* What lies elsewhere goes again, so that all calls find the same. */
static void tidy(long number, unsigned long result, unsigned long length)
{
    if ((number == SYS_mmap || number == SYS_mremap) && result != ~0ul &&
        (result < BASE || result >= BASE + B(WINDOW)))
        munmap((void *)result, (length + PAGE - 1) & ~(PAGE - 1));
}

static void call(const char *text, long number, unsigned long a, unsigned long b, unsigned long c,
                 unsigned long d, unsigned long e, unsigned long f)
{
    static char before[MAP_BYTES], after[MAP_BYTES];
    unsigned long result;
    int error;

    make_areas();
    read_window(before);
    errno = 0;
    result = (unsigned long)syscall(number, a, b, c, d, e, f);
    error = errno;
    read_window(after);
    printf("%s: ", text);
    put_result(result, error);
    printf("%s%s\n", strcmp(before, after) ? " |" : "", strcmp(before, after) ? after : "");
    tidy(number, result, number == SYS_mremap ? c : b);
}

#define MMAP(addr, length, prot, flags, fd, offset)                                             \
    call("mmap(" #addr ", " #length ", " #prot ", " #flags ", " #fd ", " #offset ")", SYS_mmap, \
         addr, length, prot, flags, (unsigned long)(fd), offset)
#define CALL2(name, a, b)    call(#name "(" #a ", " #b ")", SYS_##name, a, b, 0, 0, 0, 0)
#define CALL3(name, a, b, c) call(#name "(" #a ", " #b ", " #c ")", SYS_##name, a, b, c, 0, 0, 0)
#define MREMAP(a, b, c, d, e) \
    call("mremap(" #a ", " #b ", " #c ", " #d ", " #e ")", SYS_mremap, a, b, c, d, e, 0)

/* ---- The calls ---- */

static void mmap_lengths(void)
{
    MMAP(0, 0, R, ANON, -1, 0);
    MMAP(0, 1, R, ANON, -1, 0);
    MMAP(0, B(1) + 1, R, ANON, -1, 0);
    MMAP(0, ALL, R, ANON, -1, 0);
    MMAP(0, LAST, R, ANON, -1, 0);
    MMAP(0, LAST + 1, R, ANON, -1, 0);
    MMAP(0, HALF, R, ANON, -1, 0);
    MMAP(0, HALF - B(1), R, ANON, -1, 0);
    MMAP(0, 1ul << 63, R, ANON, -1, 0);
    MMAP(0, 1ul << 46, R, ANON | MAP_NORESERVE, -1, 0);
    MMAP(0, 1ul << 40, RW, ANON, -1, 0);
    MMAP(0, 1ul << 40, RW, ANON | MAP_NORESERVE, -1, 0);
    MMAP(0, 1ul << 40, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MMAP(0, 1ul << 40, R, ANON, -1, 0);
    MMAP(P(30), 0, R, ANON | MAP_FIXED, -1, 0);
}

static void mmap_places(void)
{
    MMAP(P(30), B(2), R, ANON, -1, 0);
    MMAP(P(30) + 5, B(2), R, ANON, -1, 0);
    MMAP(P(0), B(1), R, ANON, -1, 0);
    MMAP(P(6), B(3), R, ANON, -1, 0);
    MMAP(P(6), B(2), R, ANON, -1, 0);
    MMAP(1, B(1), R, ANON, -1, 0);
    MMAP(B(1), B(1), R, ANON, -1, 0);
    MMAP(KERNEL, B(1), R, ANON, -1, 0);
    MMAP(LAST, B(1), R, ANON, -1, 0);
    MMAP(USER_END - B(1), B(2), R, ANON, -1, 0);
    MMAP(HALF, B(1), R, ANON, -1, 0);
    MMAP(P(900), B(2), R, ANON, -1, 0); /* in the guard of the area that grows down */
    MMAP(P(900), B(2), R, ANON | MAP_FIXED, -1, 0);
    MMAP(P(900), B(2), R, ANON | NOREPLACE, -1, 0);
    MMAP(P(30), B(2), R, ANON | MAP_FIXED, -1, 0);
    MMAP(P(30) + 1, B(2), R, ANON | MAP_FIXED, -1, 0);
    MMAP(P(1), B(2), R, ANON | MAP_FIXED, -1, 0);
    MMAP(P(3), B(9), R, ANON | MAP_FIXED, -1, 0);
    MMAP(P(3), B(60), PROT_NONE, ANON | MAP_FIXED, -1, 0);
    MMAP(KERNEL, B(1), R, ANON | MAP_FIXED, -1, 0);
    MMAP(KERNEL + 1, B(1), R, ANON | MAP_FIXED, -1, 0);
    MMAP(LAST, B(1), R, ANON | MAP_FIXED, -1, 0);
    MMAP(USER_END, B(1), R, ANON | MAP_FIXED, -1, 0);
    MMAP(USER_END - B(1), B(2), R, ANON | MAP_FIXED, -1, 0);
    MMAP(P(0), USER_END, R, ANON | MAP_FIXED, -1, 0);
    MMAP(P(0), B(1), R, ANON | NOREPLACE, -1, 0);
    MMAP(P(6), B(3), R, ANON | NOREPLACE, -1, 0);
    MMAP(P(6), B(2), R, ANON | NOREPLACE, -1, 0);
    MMAP(P(6) + 1, B(1), R, ANON | NOREPLACE, -1, 0);
    MMAP(KERNEL, B(1), R, ANON | NOREPLACE, -1, 0);
    MMAP(P(0), B(1), R, ANON | NOREPLACE | MAP_FIXED, -1, 0);
    MMAP(0, B(1), R, ANON | LOW_2G, -1, 0);
    MMAP(P(30), B(1), R, ANON | LOW_2G, -1, 0);
    MMAP(0x50000000ul, B(1), R, ANON | LOW_2G, -1, 0);
    MMAP(0, (1ul << 30) + 1, R, ANON | LOW_2G, -1, 0);
    MMAP(P(30), B(1), R, ANON | LOW_2G | MAP_FIXED, -1, 0);
}

static void mmap_flags(void)
{
    MMAP(P(30), B(1), R, MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    MMAP(P(30), B(1), R, VALIDATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    MMAP(P(30), B(1), R, 0x04ul | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    MMAP(P(30), B(1), R, 0x0ful | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    MMAP(P(30), B(1), R, ANON | MAP_FIXED | MAP_DENYWRITE | MAP_EXECUTABLE, -1, 0);
    MMAP(P(30), B(1), R, ANON | MAP_FIXED | MAP_NONBLOCK | MAP_POPULATE, -1, 0);
    MMAP(P(30), B(1), R, ANON | MAP_FIXED | 0x80000000ul, -1, 0);
    MMAP(P(30), B(1), R, ANON | MAP_FIXED, 999, 0);
    MMAP(P(30), B(1), R, ANON | MAP_FIXED, wo_file, 0);
    MMAP(P(30), B(1), R, ANON | MAP_FIXED, -1, 1);
    MMAP(P(30), B(1), R, ANON | MAP_FIXED, -1, B(5));
    MMAP(P(30), B(1), R, ANON | MAP_FIXED, -1, LAST);
    MMAP(P(30), B(2), R, ANON | MAP_FIXED, -1, LAST);
    MMAP(P(30), B(1), R, ANON | MAP_FIXED | MAP_GROWSDOWN, -1, 0);
    MMAP(P(30), B(1), R, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED | MAP_GROWSDOWN, -1, 0);
    MMAP(P(30), B(1), R, MAP_PRIVATE | MAP_FIXED | MAP_GROWSDOWN, rw_file, 0);
    MMAP(P(30), B(1), R, MAP_SHARED | MAP_FIXED | MAP_GROWSDOWN, rw_file, 0);
    MMAP(P(4), B(2), RW, ANON | MAP_FIXED, -1, 0); /* merges with its neighbour */
    MMAP(P(4), B(2), RW, ANON | MAP_FIXED | MAP_NORESERVE, -1, 0);
    MMAP(P(4), B(2), RW, ANON | MAP_FIXED | MAP_LOCKED, -1, 0);
    MMAP(P(24), B(2), RW, ANON | MAP_FIXED | MAP_LOCKED, -1, 0);
    MMAP(P(4), B(2), RW, ANON | MAP_FIXED | MAP_POPULATE, -1, 0);
    MMAP(P(4), B(2), RW, ANON | MAP_FIXED | MAP_STACK, -1, 0);
    MMAP(P(30), B(1), 0xf00000000ul | R, ANON | MAP_FIXED, -1, 0);
    MMAP(P(30), B(1), 0x80f0ul | R, ANON | MAP_FIXED, -1, 0);
    MMAP(P(30), B(1), R | PROT_WRITE | PROT_EXEC, ANON | MAP_FIXED, -1, 0);
    MMAP(P(30), B(1), PROT_EXEC, ANON | MAP_FIXED, -1, 0);
    MMAP(P(30), B(1), PROT_WRITE, ANON | MAP_FIXED, -1, 0);
}

static void mmap_files(void)
{
    MMAP(P(30), B(1), R, MAP_SHARED | MAP_FIXED, 999, 0);
    MMAP(P(30), B(1), R, MAP_SHARED | MAP_FIXED, -1, 0);
    MMAP(P(30), 0, R, MAP_SHARED | MAP_FIXED, 999, 0);
    MMAP(P(30), B(1), R, MAP_SHARED | MAP_FIXED, 999, 1);
    MMAP(P(30), 0, R, MAP_SHARED | MAP_FIXED, rw_file, 0);
    MMAP(P(30), B(1), R, MAP_FIXED, rw_file, 0);
    MMAP(P(30), B(1), R, DROPPABLE | MAP_FIXED, rw_file, 0);
    MMAP(P(30), B(1), R, MAP_SHARED | MAP_FIXED, rw_file, 100);
    MMAP(P(30), B(1), RW, MAP_SHARED | MAP_FIXED, rw_file, 0);
    MMAP(P(30), B(1), RW, MAP_SHARED | MAP_FIXED, ro_file, 0);
    MMAP(P(30), B(1), PROT_WRITE, MAP_SHARED | MAP_FIXED, ro_file, 0);
    MMAP(P(30), B(1), PROT_NONE, MAP_SHARED | MAP_FIXED, ro_file, 0);
    MMAP(P(30), B(1), RW, MAP_PRIVATE | MAP_FIXED, ro_file, 0);
    MMAP(P(30), B(1), RW, MAP_SHARED | MAP_FIXED, wo_file, 0);
    MMAP(P(30), B(1), PROT_NONE, MAP_PRIVATE | MAP_FIXED, wo_file, 0);
    MMAP(P(30), B(1), R, MAP_PRIVATE | MAP_FIXED, path_file, 0);
    MMAP(P(30), B(1), R, MAP_PRIVATE | MAP_FIXED, folder, 0);
    MMAP(P(30), B(1), R, MAP_PRIVATE | MAP_FIXED, pipe_end, 0);
    MMAP(P(30), B(1), RW, MAP_SHARED | MAP_FIXED, pipe_end, 0);
    MMAP(P(30), B(1), R, MAP_SHARED | MAP_FIXED, rw_file, B(100));
    MMAP(P(30), B(1), R, MAP_SHARED | MAP_FIXED, rw_file, LAST);
    MMAP(P(30), B(2), R, MAP_SHARED | MAP_FIXED, rw_file, LAST);
    MMAP(P(30), B(1), R, MAP_SHARED | MAP_FIXED, rw_file, 1ul << 63);
    MMAP(P(30), B(1), R, MAP_SHARED | MAP_FIXED, memory_file, (1ul << 63) - B(1));
    MMAP(P(30), B(1), R, MAP_SHARED | MAP_FIXED, memory_file, (1ul << 63) - B(2));
    MMAP(P(30), B(2), R, MAP_SHARED | MAP_FIXED, memory_file, (1ul << 63) - B(2));
    MMAP(P(30), B(1), R, VALIDATE | MAP_FIXED, rw_file, 0);
    MMAP(P(30), B(1), RW, VALIDATE | MAP_FIXED, ro_file, 0);
    MMAP(P(30), B(1), R, VALIDATE | MAP_FIXED | 0x80000ul, rw_file, 0);
    MMAP(P(30), B(1), R, VALIDATE | NOREPLACE, rw_file, 0);
    MMAP(P(30), B(1), R, VALIDATE | MAP_FIXED | 0x80ul, rw_file, 0);
    MMAP(P(30), B(1), R, VALIDATE | MAP_FIXED | 0x10000000ul, rw_file, 0);
    MMAP(P(30), B(1), R, VALIDATE | MAP_FIXED | 0x80000000ul, rw_file, 0);
    MMAP(P(30), B(1), RW, VALIDATE | MAP_FIXED | 0x80000000ul, ro_file, 0);
    MMAP(P(30), B(1), R, VALIDATE | MAP_FIXED | MAP_STACK | MAP_NORESERVE, rw_file, 0);
    MMAP(P(30), B(1), R, MAP_SHARED | MAP_FIXED | 0x80080000ul, rw_file, 0);
    MMAP(P(16), B(2), R, MAP_SHARED | MAP_FIXED, ro_file, B(2)); /* goes on with its neighbour */
    MMAP(P(16), B(2), R, MAP_SHARED | MAP_FIXED, rw_file, B(2));
    MMAP(P(6), B(2), RW, MAP_SHARED | MAP_FIXED, rw_file, 0);
    MMAP(P(14), B(2), R, MAP_PRIVATE | MAP_FIXED, rw_file, B(4));
    MMAP(P(0), B(2), R, MAP_SHARED | NOREPLACE, 999, 0);
    MMAP(P(0), B(2), RW, MAP_SHARED | NOREPLACE, ro_file, 0);
    MMAP(KERNEL, B(2), RW, MAP_SHARED | MAP_FIXED, ro_file, 0);
}

static void munmaps(void)
{
    CALL2(munmap, P(0), B(1));
    CALL2(munmap, P(1), 1);
    CALL2(munmap, P(1) + 1, B(1));
    CALL2(munmap, P(1), 0);
    CALL2(munmap, P(1) + 1, 0);
    CALL2(munmap, P(6), B(2));
    CALL2(munmap, P(3), B(8));
    CALL2(munmap, P(0), B(64));
    CALL2(munmap, P(0), ALL);
    CALL2(munmap, P(0), LAST);
    CALL2(munmap, P(0), 1ul << 63);
    CALL2(munmap, KERNEL, B(1));
    CALL2(munmap, LAST, B(1));
    CALL2(munmap, USER_END, B(1));
    CALL2(munmap, USER_END, 0);
    CALL2(munmap, USER_END - B(1), B(2));
    CALL2(munmap, P(10), B(1));
    CALL2(munmap, P(22), B(1));
}

static void mprotects(void)
{
    CALL3(mprotect, P(0), B(1), R);
    CALL3(mprotect, P(1), B(2), R);
    CALL3(mprotect, P(2), B(4), R);
    CALL3(mprotect, P(4), B(2), RW);
    CALL3(mprotect, P(2), B(2), R); /* no page there: joins its neighbour */
    CALL3(mprotect, P(0), B(4), R);
    CALL3(mprotect, P(0), B(6), PROT_NONE);
    CALL3(mprotect, P(0), 0, R);
    CALL3(mprotect, P(0), 0, 0x100);
    CALL3(mprotect, P(0), 1, R);
    CALL3(mprotect, P(0) + 1, B(1), R);
    CALL3(mprotect, P(0) + 1, 0, R);
    CALL3(mprotect, P(0), B(1), 0x10);
    CALL3(mprotect, P(0), B(1), 0x8 | R);
    CALL3(mprotect, P(0), B(1), 1ul << 40 | R);
    CALL3(mprotect, P(0), B(1), GROWSDOWN_PROT | R);
    CALL3(mprotect, P(0), B(1), GROWSUP_PROT | R);
    CALL3(mprotect, P(0), B(1), GROWSUP_PROT | GROWSDOWN_PROT | R);
    CALL3(mprotect, P(1000), B(1), GROWSDOWN_PROT | R);
    CALL3(mprotect, P(1000), B(1), GROWSUP_PROT | R);
    CALL3(mprotect, P(999), B(2), GROWSDOWN_PROT | R);
    CALL3(mprotect, P(999), B(1), GROWSDOWN_PROT | R);
    CALL3(mprotect, P(30), B(1), GROWSUP_PROT | R);
    CALL3(mprotect, P(999), B(2), GROWSUP_PROT | R);
    CALL3(mprotect, P(30), B(1), 0x100 | R);
    CALL3(mprotect, P(30), B(1), R);
    CALL3(mprotect, P(4), B(6), R);
    CALL3(mprotect, P(6), B(4), R);
    CALL3(mprotect, P(0), ALL, R);
    CALL3(mprotect, P(0), LAST, R);
    CALL3(mprotect, LAST, B(1), R);
    CALL3(mprotect, KERNEL, B(1), R);
    CALL3(mprotect, KERNEL + 1, B(1), R);
    CALL3(mprotect, USER_END, B(1), R);
    CALL3(mprotect, P(14), B(2), RW);
    CALL3(mprotect, P(14), B(2), R | PROT_EXEC);
    CALL3(mprotect, P(12), B(4), RW); /* the second of them may not */
    CALL3(mprotect, P(12), B(1), RW);
    CALL3(mprotect, P(9), B(1), R);
    CALL3(mprotect, P(18), B(2), RW);
    CALL3(mprotect, P(22), B(1), R);
}

static void mremap_sizes(void)
{
    MREMAP(P(0), B(4), B(4), 0, 0);
    MREMAP(P(0), B(4), B(2), 0, 0);
    MREMAP(P(0), B(4), B(8), 0, 0);
    MREMAP(P(4), B(2), B(4), 0, 0);
    MREMAP(P(4), B(2), B(5), 0, 0);
    MREMAP(P(4), B(1), B(4), 0, 0);
    MREMAP(P(4), B(1), B(4), MREMAP_MAYMOVE, 0);
    MREMAP(P(4), B(2), B(5), MREMAP_MAYMOVE, 0);
    MREMAP(P(0), B(4), 0, 0, 0);
    MREMAP(P(0), B(4), 1, 0, 0);
    MREMAP(P(0), B(3) + 1, B(3) + 2, 0, 0);
    MREMAP(P(0), 0, B(1), 0, 0);
    MREMAP(P(0), 0, B(1), MREMAP_MAYMOVE, 0);
    MREMAP(P(8), 0, B(2), 0, 0);
    MREMAP(P(8), 0, B(2), MREMAP_MAYMOVE, 0);
    MREMAP(P(9), 0, B(2), MOVE_TO, P(50));
    MREMAP(P(12), 0, B(2), MOVE_TO, P(50));
    MREMAP(P(0) + 1, B(1), B(2), MREMAP_MAYMOVE, 0);
    MREMAP(P(0), B(6), B(7), MREMAP_MAYMOVE, 0);
    MREMAP(P(0), B(6), B(6), MREMAP_MAYMOVE, 0);
    MREMAP(P(0), B(6), B(5), 0, 0);
    MREMAP(P(0), B(10), B(1), 0, 0);
    MREMAP(P(30), B(1), B(1), 0, 0);
    MREMAP(P(30), B(1), B(2), MREMAP_MAYMOVE, 0);
    MREMAP(P(0), B(4), ALL, MREMAP_MAYMOVE, 0);
    MREMAP(P(0), B(4), LAST, MREMAP_MAYMOVE, 0);
    MREMAP(P(0), B(4), HALF, MREMAP_MAYMOVE, 0);
    MREMAP(P(0), ALL, B(1), MREMAP_MAYMOVE, 0);
    MREMAP(P(0), LAST, B(1), MREMAP_MAYMOVE, 0);
    MREMAP(P(0), LAST, LAST, MREMAP_MAYMOVE, 0);
    MREMAP(P(0), 1ul << 62, B(1), 0, 0);
    MREMAP(KERNEL, B(1), B(2), MREMAP_MAYMOVE, 0);
    MREMAP(KERNEL, B(2), B(1), 0, 0);
    MREMAP(P(18), B(2), B(4), 0, 0);
    MREMAP(P(22), B(2), B(4), 0, 0);
    MREMAP(P(998), B(1), B(2), 0, 0);
    MREMAP(P(18), B(2), B(20), 0, 0);
    MREMAP(P(1000), B(1), B(4), 0, 0);
    MREMAP(P(23), B(1), B(970), 0, 0); /* up to the area that grows down: no guard is kept */
    MREMAP(P(0), B(4), 1ul << 40, MREMAP_MAYMOVE, 0);
    MREMAP(P(18), B(2), 1ul << 40, MREMAP_MAYMOVE, 0);
}

static void mremap_flags(void)
{
    MREMAP(P(0), B(4), B(4), 8, 0);
    MREMAP(P(0), B(4), B(4), 1ul << 40, 0);
    MREMAP(P(0), B(4), B(4), MREMAP_FIXED, P(50));
    MREMAP(P(0), B(4), B(4), MREMAP_DONTUNMAP, 0);
    MREMAP(P(0), B(4), B(5), MREMAP_DONTUNMAP | MREMAP_MAYMOVE, 0);
    MREMAP(P(0), B(3) + 1, B(4), MREMAP_DONTUNMAP | MREMAP_MAYMOVE, 0);
    MREMAP(P(0), B(4), B(4), MREMAP_DONTUNMAP | MREMAP_MAYMOVE, 0);
    MREMAP(P(0), B(4), B(4), MREMAP_DONTUNMAP | MREMAP_MAYMOVE, P(50));
    MREMAP(P(0), B(4), B(4), MREMAP_DONTUNMAP | MREMAP_MAYMOVE, P(50) + 1);
    MREMAP(P(0), B(4), B(4), MREMAP_DONTUNMAP | MREMAP_MAYMOVE, P(1));
    MREMAP(P(0), B(4), B(4), MREMAP_DONTUNMAP | MOVE_TO, P(50));
    MREMAP(P(1), B(2), B(2), MREMAP_DONTUNMAP | MOVE_TO, P(50));
    MREMAP(P(8), B(4), B(4), MREMAP_DONTUNMAP | MOVE_TO, P(50));
    MREMAP(P(12), B(2), B(2), MREMAP_DONTUNMAP | MOVE_TO, P(50));
    MREMAP(P(22), B(2), B(2), MREMAP_DONTUNMAP | MOVE_TO, P(50));
    MREMAP(P(0), 0, 0, MREMAP_DONTUNMAP | MOVE_TO, P(50));
    MREMAP(P(0), B(6), B(6), MREMAP_DONTUNMAP | MOVE_TO, P(50));
}

static void mremap_targets(void)
{
    MREMAP(P(0), B(4), B(4), MOVE_TO, P(50));
    MREMAP(P(0), B(4), B(6), MOVE_TO, P(50));
    MREMAP(P(0), B(4), B(2), MOVE_TO, P(50));
    MREMAP(P(1), B(2), B(2), MOVE_TO, P(50));
    MREMAP(P(2), B(2), B(2), MOVE_TO, P(6)); /* no page there: as new at its new place */
    MREMAP(P(0), B(2), B(2), MOVE_TO, P(6));
    MREMAP(P(0), B(4), B(4), MOVE_TO, P(8));
    MREMAP(P(0), B(2), B(2), MOVE_TO, P(2));
    MREMAP(P(0), B(4), B(4), MOVE_TO, P(0));
    MREMAP(P(0), B(4), B(4), MOVE_TO, P(3));
    MREMAP(P(4), B(2), B(4), MOVE_TO, P(2));
    MREMAP(P(4), B(2), B(2), MOVE_TO, P(2));
    MREMAP(P(0), B(4), B(4), MOVE_TO, P(50) + 1);
    MREMAP(P(0), B(4), B(4), MOVE_TO, KERNEL);
    MREMAP(P(0), B(4), B(4), MOVE_TO, LAST);
    MREMAP(P(0), B(4), B(4), MOVE_TO, USER_END - B(2));
    MREMAP(P(0), B(4), HALF, MOVE_TO, P(50));
    MREMAP(P(0), B(4), LAST, MOVE_TO, P(50));
    /* These fail behind the point where Linux has unmapped the target. */
    MREMAP(P(0), B(6), B(6), MOVE_TO, P(8));
    MREMAP(P(0), B(6), B(7), MOVE_TO, P(8));
    MREMAP(P(0), B(8), B(5), MOVE_TO, P(8));
    MREMAP(P(0), 0, B(2), MOVE_TO, P(8));
    MREMAP(P(30), B(2), B(2), MOVE_TO, P(8)); /* but not here */
    MREMAP(P(3), 1ul << 62, B(1), MOVE_TO, P(8));
    MREMAP(P(3), 1ul << 62, B(1), MOVE_TO, P(1));
    MREMAP(P(0), B(4), B(4), MOVE_TO, P(20));
    MREMAP(P(8), B(2), B(2), MOVE_TO, P(6));
    MREMAP(P(8), B(4), B(6), MOVE_TO, P(50));
    MREMAP(P(22), B(2), B(4), MOVE_TO, P(50));
    MREMAP(P(12), B(2), B(2), MOVE_TO, P(16));
    MREMAP(P(1000), B(1), B(2), MOVE_TO, P(50));
}

static void locks(void)
{
    CALL2(mlock, P(0), B(4));
    CALL2(mlock, P(0), B(1));
    CALL2(mlock, P(2), B(1));
    CALL2(mlock, P(1) + 5, B(1));
    CALL2(mlock, P(2), 0);
    CALL2(mlock, P(2) + 1, 0);
    CALL2(mlock, P(0), B(6));
    CALL2(mlock, P(0), B(8));
    CALL2(mlock, P(6), B(4));
    CALL2(mlock, P(18), B(2));
    CALL2(mlock, P(8), B(4));
    CALL2(mlock, P(0), ALL);
    CALL2(mlock, P(0), ALL - 1);
    CALL2(mlock, P(0), LAST);
    CALL2(mlock, LAST, B(1));
    CALL2(mlock, KERNEL, B(1));
    CALL3(mlock2, P(0), B(4), 0);
    CALL3(mlock2, P(0), B(4), 1);
    CALL3(mlock2, P(2), B(1), 1);
    CALL3(mlock2, P(22), B(1), 1);
    CALL3(mlock2, P(0), B(4), 2);
    CALL3(mlock2, P(0), B(4), 1ul << 40);
    CALL3(mlock2, P(18), B(2), 1);
    CALL3(mlock2, P(0), B(8), 1);
    CALL2(munlock, P(22), B(2));
    CALL2(munlock, P(22), B(1));
    CALL2(munlock, P(20), B(4));
    CALL2(munlock, P(0), B(8));
    CALL2(munlock, P(0), ALL);
    CALL2(munlock, P(0), LAST);
    CALL2(mlockall, 0, 0);
    CALL2(mlockall, 8, 0);
    CALL2(mlockall, 4, 0);
    CALL2(mlockall, 1, 0);
    CALL2(mlockall, 5, 0);
    CALL2(mlockall, 2, 0);
    CALL2(munlockall, 0, 0);
}

static void others(void)
{
    CALL3(msync, P(0), B(6), MS_SYNC);
    CALL3(msync, P(8), B(4), MS_SYNC);
    CALL3(msync, P(8), B(4), MS_ASYNC);
    CALL3(msync, P(8), B(4), 0);
    CALL3(msync, P(8), B(4), MS_ASYNC | MS_SYNC);
    CALL3(msync, P(8), B(4), MS_INVALIDATE);
    CALL3(msync, P(8), B(4), 8);
    CALL3(msync, P(8), B(4), 1ul << 40);
    CALL3(msync, P(22), B(1), MS_INVALIDATE);
    CALL3(msync, P(22), B(1), MS_SYNC | MS_INVALIDATE);
    CALL3(msync, P(22), B(1), MS_SYNC);
    CALL3(msync, P(0), B(8), MS_SYNC);
    CALL3(msync, P(0), B(12), MS_ASYNC);
    CALL3(msync, P(6), B(20), MS_INVALIDATE);
    CALL3(msync, P(6), B(2), MS_SYNC);
    CALL3(msync, P(0) + 1, B(1), MS_SYNC);
    CALL3(msync, P(0), 0, MS_SYNC);
    CALL3(msync, P(6), 0, MS_SYNC);
    CALL3(msync, P(0), ALL, MS_SYNC);
    CALL3(msync, P(0), LAST, MS_SYNC);
    CALL3(msync, KERNEL, B(1), MS_SYNC);
    CALL3(msync, LAST, B(1), MS_SYNC);
    CALL3(mincore, P(0), B(6), P(1));
    CALL3(mincore, P(0), 0, P(1));
    CALL3(mincore, P(0), 0, KERNEL);
    CALL3(mincore, P(0) + 1, B(1), P(1));
    CALL3(mincore, P(0), B(8), P(1));
    CALL3(mincore, P(6), B(1), P(1));
    CALL3(mincore, P(0), B(1), P(6));
    CALL3(mincore, P(0), B(1), P(4));
    CALL3(mincore, P(6), B(1), P(6));
    CALL3(mincore, P(0), B(1), KERNEL);
    CALL3(mincore, P(6), B(1), KERNEL);
    CALL3(mincore, P(0), ALL, P(1));
    CALL3(mincore, P(0), LAST, P(1));
    CALL3(mincore, P(0), 1ul << 46, P(1));
    CALL3(mincore, KERNEL, B(1), P(1));
    CALL3(mincore, LAST, B(1), P(1));
    CALL3(mincore, USER_END, B(1), P(1));
}

static void must(const char *what, long fd)
{
    if (fd >= 0)
        return;
    perror(what);
    exit(EXIT_FAILURE);
}

static void open_files(void)
{
    const char *path = "/tmp/maperrno";
    int ends[2];

    must(path, rw_file = open(path, O_RDWR | O_CREAT, 0600));
    must("its size", ftruncate((int)rw_file, (long)FILE_BYTES));
    must(path, ro_file = open(path, O_RDONLY));
    must(path, wo_file = open(path, O_WRONLY));
    must(path, path_file = open(path, O_PATH));
    must("/tmp", folder = open("/tmp", O_RDONLY | O_DIRECTORY));
    must("a pipe", pipe(ends));
    pipe_end = ends[0];
    must("memory", memory_file = memfd_create("maperrno", 0));
    unlink(path);
}

int main(void)
{
    open_files();
    setvbuf(stdout, malloc(BUFSIZ), _IOFBF, BUFSIZ);
    mmap_lengths();
    mmap_places();
    mmap_flags();
    mmap_files();
    munmaps();
    mprotects();
    mremap_sizes();
    mremap_flags();
    mremap_targets();
    locks();
    others();
    return 0;
}
