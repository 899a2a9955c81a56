/*
 * Resident: see resident.h.
 */
#define _GNU_SOURCE
#include "user/lib/resident.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "user/lib/steps.h"

/* cachestat(2); the C library has no wrapper for it. */
#define SYSCALL_CACHESTAT 451

struct cachestat_range {
    uint64_t offset_bytes;
    uint64_t length_bytes;
};

struct cachestat {
    uint64_t cached_pages;
    uint64_t dirty_pages;
    uint64_t writeback_pages;
    uint64_t evicted_pages;
    uint64_t recently_evicted_pages;
};

static_assert(sizeof(struct cachestat_range) == 16, "layout of cachestat(2)");
static_assert(sizeof(struct cachestat) == 40, "layout of cachestat(2)");

#define MINCORE_LIMIT_BYTES (4ULL << 30)
#define MINCORE_CHUNK_PAGES 16384
#define WAIT_NS             1000000
/* Where nobody can tell what is left: so many drops, a wait between them. */
#define BLIND_TRIES 4

static int64_t count_by_mincore(int fd, uint64_t first, uint64_t count)
{
    static unsigned char present[MINCORE_CHUNK_PAGES];
    uint64_t bytes = count * PLAY_PAGE_BYTES;
    int64_t resident = 0;
    char *map;

    if (bytes > MINCORE_LIMIT_BYTES)
        return -1;
    if (bytes == 0)
        return 0;
    map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)(first * PLAY_PAGE_BYTES));
    if (map == MAP_FAILED)
        return -1;
    for (uint64_t page = 0; resident >= 0 && page < count; page += MINCORE_CHUNK_PAGES) {
        uint64_t pages = count - page < MINCORE_CHUNK_PAGES ? count - page : MINCORE_CHUNK_PAGES;

        if (mincore(map + page * PLAY_PAGE_BYTES, pages * PLAY_PAGE_BYTES, present) < 0) {
            resident = -1;
            break;
        }
        for (uint64_t i = 0; i < pages; i++)
            resident += present[i] & 1;
    }
    munmap(map, bytes);
    return resident;
}

int64_t resident_pages(int fd, uint64_t first, uint64_t count)
{
    struct cachestat_range range = {first * PLAY_PAGE_BYTES, count * PLAY_PAGE_BYTES};
    struct cachestat result;
    struct stat status;
    uint64_t end;

    if (syscall(SYSCALL_CACHESTAT, fd, &range, &result, 0) == 0)
        return (int64_t)result.cached_pages;
    if (fstat(fd, &status) < 0)
        return -1;
    end = ((uint64_t)status.st_size + PLAY_PAGE_BYTES - 1) / PLAY_PAGE_BYTES;
    if (first >= end)
        return 0;
    if (count == 0 || count > end - first)
        count = end - first;
    return count_by_mincore(fd, first, count);
}

int64_t resident_drop(int fd, uint64_t first, uint64_t count, unsigned int patience_ms)
{
    const struct timespec wait = {.tv_nsec = WAIT_NS};
    off_t offset = (off_t)(first * PLAY_PAGE_BYTES), bytes = (off_t)(count * PLAY_PAGE_BYTES);
    int64_t left;

    for (unsigned int try = 0;; try++) {
        posix_fadvise(fd, offset, bytes, POSIX_FADV_DONTNEED);
        left = resident_pages(fd, first, count);
        if (left == 0 || try >= patience_ms || (left < 0 && try + 1 >= BLIND_TRIES))
            return left;
        /* On Linux a page just written is dirty and stays: have it written first. */
        if (try == 0)
            fdatasync(fd);
        nanosleep(&wait, NULL);
    }
}
