/*
 * Times as programs give them, and the kernel's nanoseconds.
 */
#ifndef KERNEL_SYSCALL_TIMESPEC_H
#define KERNEL_SYSCALL_TIMESPEC_H

#include "lib/errno.h"
#include "lib/types.h"
#include "mm/user_memory.h"

#define NS_PER_SECOND 1000000000ul
#define NS_PER_US     1000ul
#define US_PER_SECOND 1000000l

enum {
    CLOCK_REALTIME = 0,
    CLOCK_MONOTONIC = 1,
    CLOCK_PROCESS_CPUTIME = 2,
    CLOCK_THREAD_CPUTIME = 3,
    CLOCK_MONOTONIC_RAW = 4,
    CLOCK_REALTIME_COARSE = 5,
    CLOCK_MONOTONIC_COARSE = 6,
    CLOCK_BOOTTIME = 7,
};

struct timespec {
    s64 sec, nsec;
};
struct timeval {
    s64 sec, usec;
};

/* Longer times are cut off: 146 years, so that sums of two do not overflow. */
#define TIME_MAX_SECONDS (~0ul / NS_PER_SECOND / 4)

static inline u64 time_ns(s64 seconds, u64 rest_ns)
{
    return MIN((u64)seconds, TIME_MAX_SECONDS) * NS_PER_SECOND + rest_ns;
}

static inline struct timespec timespec_of(u64 ns)
{
    return (struct timespec){ns / NS_PER_SECOND, ns % NS_PER_SECOND};
}

static inline struct timeval timeval_of(u64 ns)
{
    return (struct timeval){ns / NS_PER_SECOND, ns % NS_PER_SECOND / NS_PER_US};
}

static inline bool timespec_is_valid(const struct timespec *ts)
{
    return ts->sec >= 0 && ts->nsec >= 0 && ts->nsec < (s64)NS_PER_SECOND;
}

/* From the program's memory. => 0, -EFAULT, -EINVAL: negative or not normal */
MUST_CHECK static inline int timespec_read(u64 user, u64 *ns)
{
    struct timespec ts;
    if (copy_from_user(&ts, user, sizeof(ts)))
        return -EFAULT;
    if (!timespec_is_valid(&ts))
        return -EINVAL;
    *ns = time_ns(ts.sec, ts.nsec);
    return 0;
}

/* info.c: => 0, -EINVAL for a clock that does not exist */
int syscall_clock_read(s32 id, u64 *ns);

#endif
