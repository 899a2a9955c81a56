/*
 * counts: what one access counts, by getrusage: one line `EVENT: MAJOR MINOR` for each event.
 *
 * Use: counts FILE SPARSE; FILE has at least 8,192 pages and lies on a disk that takes its time,
 * SPARSE begins with a hole of 1,000 pages. Sets map-around to one page for its time, where it can.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "user/lib/knobs.h"
#include "user/lib/pretouch.h"
#include "user/lib/resident.h"

#define PAGE       4096UL
#define READ_WRITE (PROT_READ | PROT_WRITE)
/* Far from each other, so that no window of one reaches the next. */
#define COLD_PAGE         2000
#define PRIVATE_COLD_PAGE 4000
#define WINDOW_BEFORE     16 /* read-around starts so many pages before the miss ... */
#define MARK_AFTER        8  /* ... and leaves its mark so many behind it */

static struct rusage before;

static void begin(void)
{
    getrusage(RUSAGE_SELF, &before);
}

static void end(const char *event)
{
    struct rusage after;

    getrusage(RUSAGE_SELF, &after);
    printf("%s: %ld %ld\n", event, after.ru_majflt - before.ru_majflt,
           after.ru_minflt - before.ru_minflt);
}

static char *map_file(int fd, int protection, int flags)
{
    void *map = mmap(NULL, 8192 * PAGE, protection, flags, fd, 0);

    if (map == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return map;
}

static char *map_anonymous(size_t pages)
{
    void *map = mmap(NULL, pages * PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (map == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return map;
}

static void load(const char *at)
{
    (void)*(const volatile char *)at;
}

static void store(char *at)
{
    *(volatile char *)at = 1;
}

static void file_events(const char *path)
{
    int fd = open(path, O_RDONLY);
    char *shared = map_file(fd, PROT_READ, MAP_SHARED),
         *own = map_file(fd, READ_WRITE, MAP_PRIVATE);
    char byte;

    resident_drop(fd, 0, 0, 500);
    begin();
    load(shared + COLD_PAGE * PAGE);
    end("cold file page");
    begin();
    load(shared + COLD_PAGE * PAGE);
    end("the same page again");
    /* The read comes back when the window's last page is there, so nothing is in flight below. */
    if (pread(fd, &byte, 1, (COLD_PAGE + WINDOW_BEFORE - 1) * PAGE) != 1)
        perror("pread");
    begin();
    load(shared + (COLD_PAGE + 1) * PAGE);
    end("cached file page");
    begin();
    load(shared + (COLD_PAGE + MARK_AFTER) * PAGE);
    end("cached file page with the mark");
    begin();
    store(own + PRIVATE_COLD_PAGE * PAGE);
    end("store to a cold private file page");
    begin();
    store(own + (COLD_PAGE + 2) * PAGE);
    end("store to a cached private file page");
    begin();
    load(own + (COLD_PAGE + 3) * PAGE);
    end("load of a cached private file page");
    begin();
    store(own + (COLD_PAGE + 3) * PAGE);
    end("store to it after the load");
    munmap(shared, 8192 * PAGE);
    munmap(own, 8192 * PAGE);
    close(fd);
}

static void hole_event(const char *path)
{
    int fd = open(path, O_RDONLY);
    char *map = mmap(NULL, 1000 * PAGE, PROT_READ, MAP_SHARED, fd, 0);

    resident_drop(fd, 0, 1000, 500);
    begin();
    load(map + 500 * PAGE);
    end("hole in a sparse file");
    close(fd);
}

static void anonymous_events(void)
{
    char *map = map_anonymous(16);

    begin();
    load(map);
    end("first read of anonymous memory");
    begin();
    store(map);
    end("write after read");
    begin();
    store(map + PAGE);
    end("first write of anonymous memory");
    begin();
    store(map + PAGE + 8);
    end("second write");
    begin();
    mprotect(map, 2 * PAGE, PROT_READ);
    mprotect(map, 2 * PAGE, READ_WRITE);
    store(map);
    end("mprotect to read-only and back, then a store");
}

static void call_events(const char *path)
{
    int fd = open(path, O_RDONLY);
    char *map = map_anonymous(16);
    ssize_t got;

    begin();
    got = pread(fd, map, 4 * PAGE, COLD_PAGE * PAGE);
    end("read into 4 absent pages");
    if (got != 4 * (ssize_t)PAGE)
        printf("short read: %zd\n", got);
    munmap(map + 8 * PAGE, PAGE);
    begin();
    got = pread(fd, map + 8 * PAGE, PAGE, 0);
    end("read into an unmapped page");
    begin();
    got = pread(fd, map + 7 * PAGE, 2 * PAGE, 0);
    end("read into one page with a hole behind it");
    if (got != (ssize_t)PAGE)
        printf("not one page: %zd\n", got);
    close(fd);
}

int main(int argc, char **argv)
{
    static struct knobs knobs;
    static char output[8192];

    if (argc != 3) {
        printf("use: counts FILE SPARSE\n");
        return 1;
    }
    setvbuf(stdout, output, _IOFBF, sizeof(output));
    knobs_set(&knobs, KNOB_MAP_AROUND, "4096");
    pretouch_program();
    file_events(argv[1]);
    hole_event(argv[2]);
    anonymous_events();
    call_events(argv[1]);
    knobs_restore(&knobs);
    return 0;
}
