/*
 * The calls that look at pages, hold them, and advise about them.
 */
#include "tests/user/mmfuzz/fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MINCORE_PAGES (AREA_PAGES * 2)

bool everything_locked;

static const struct {
    int number;
    unsigned weight;
    const char *name;
} advices[] = {
    {0, 2, "NORMAL"},
    {1, 2, "RANDOM"},
    {2, 2, "SEQUENTIAL"},
    {3, 2, "WILLNEED"},
    {4, 10, "DONTNEED"},
    {8, 5, "FREE"},
    {9, 4, "REMOVE"},
    {10, 3, "DONTFORK"},
    {11, 2, "DOFORK"},
    {18, 3, "WIPEONFORK"},
    {19, 2, "KEEPONFORK"},
    {20, 2, "COLD"},
    {21, 2, "PAGEOUT"},
    {22, 5, "POPULATE_READ"},
    {23, 5, "POPULATE_WRITE"},
    {14, 1, "HUGEPAGE"},
    {15, 1, "NOHUGEPAGE"},
    {16, 1, "DONTDUMP"},
    {17, 1, "DODUMP"},
    {24, 2, "DONTNEED_LOCKED"},
    {5, 1, "5"},
    {7, 1, "7"},
    {26, 1, "26"},
    {-1, 1, "-1"},
};

static size_t choose_advice(void)
{
    unsigned long total = 0, n;
    size_t i;

    for (i = 0; i < sizeof advices / sizeof *advices; i++)
        total += advices[i].weight;
    n = below(total);
    for (i = 0; n >= advices[i].weight; i++)
        n -= advices[i].weight;
    return i;
}

void step_madvise(void)
{
    struct range range = choose_range();
    size_t advice = choose_advice();

    log_add("madvise(");
    log_range(range);
    log_add(", %s)", advices[advice].name);
    log_result(syscall(SYS_madvise, range.start, range.length, (long)advices[advice].number),
               false);
    state_log_maps(false);
}

/* Pages of the file on disk may be in the cache or not, as reclaim and readahead like: pages that are
 * not there now are counted as there. */
void step_mincore(void)
{
    static unsigned char present[MINCORE_PAGES];
    struct range range = choose_range();
    unsigned long pages = (range.length + PAGE - 1) / PAGE;
    long result;

    memset(present, 9, sizeof present);
    log_add("mincore(");
    log_range(range);
    log_add(")");
    result = syscall(SYS_mincore, range.start, range.length, present);
    if (result == 0 && !log_hides_presence()) {
        state_look();
        log_add(" ");
        for (unsigned long i = 0; i < pages && i < sizeof present; i++)
            log_add("%d", state_is_disk_file(range.start + i * PAGE) ? 1 : present[i]);
    }
    log_result(result, false);
}

void step_msync(void)
{
    static const int often[] = {MS_SYNC, MS_ASYNC, MS_INVALIDATE, MS_SYNC | MS_INVALIDATE, 0};
    struct range range = choose_range();
    int flags = chance(90) ? often[below(5)] : (int)below(10);

    log_add("msync(");
    log_range(range);
    log_add(", %d)", flags);
    log_result(syscall(SYS_msync, range.start, range.length, (long)flags), false);
}

void step_mlock(void)
{
    struct range range = choose_range();
    bool two = chance(50);
    long flags = chance(96) ? (long)below(2) : 2;

    log_add(two ? "mlock2(" : "mlock(");
    log_range(range);
    if (two)
        log_add(", %ld)", flags);
    else
        log_add(")");
    log_result(two ? syscall(SYS_mlock2, range.start, range.length, flags)
                   : syscall(SYS_mlock, range.start, range.length),
               false);
    state_log_locked();
    state_log_maps(false);
}

void step_munlock(void)
{
    struct range range = choose_range();

    log_add("munlock(");
    log_range(range);
    log_add(")");
    log_result(syscall(SYS_munlock, range.start, range.length), false);
    state_log_locked();
    state_log_maps(false);
}

void step_mlockall(void)
{
    long flags = (long)below(chance(90) ? 8 : 10);

    if (chance(60)) {
        log_add("munlockall()");
        log_result(syscall(SYS_munlockall), false);
        everything_locked = false;
        state_log_locked();
    } else {
        log_add("mlockall(%ld)", flags);
        everything_locked |= (flags & 1) != 0;
        log_result(syscall(SYS_mlockall, flags), false);
    }
    state_log_maps(false);
}

/* POSIX_FADV_DONTNEED is not given for the file on disk: all sequences share its pages. */
void step_fadvise(void)
{
    enum file file = choose_file();
    long advice = (long)below(chance(90) ? 6 : 8);
    long offset = (long)(below(24) * PAGE), length = (long)(below(10) * PAGE);

    if (file == FILE_DISK && advice == 4)
        advice = 0;
    if (chance(5))
        length = -1 - (long)below(PAGE);
    log_add("fadvise(%s, %#lx, %ld, %ld)", file_name(file), offset, length, advice);
    log_result(syscall(SYS_fadvise64, (long)file_fd[file], offset, length, advice), false);
}
