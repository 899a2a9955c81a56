/*
 * System calls that tell about the system: names, clocks, randomness.
 */
#include "fs/proc/proc.h"
#include "kernel/cpu/clock.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/timespec.h"
#include "lib/hash.h"
#include "mm/core/frames.h"
#include "mm/page_cache.h"

#define UTS_FIELD 65

struct utsname {
    char sysname[UTS_FIELD], nodename[UTS_FIELD], release[UTS_FIELD], version[UTS_FIELD],
        machine[UTS_FIELD], domain[UTS_FIELD];
};

s64 sys_uname(const u64 *a)
{
    static const struct utsname names = {.sysname = "Linux",
                                         .nodename = "faultline",
                                         .release = KERNEL_RELEASE,
                                         .version = KERNEL_VERSION,
                                         .machine = "x86_64",
                                         .domain = "(none)"};
    return copy_to_user(a[0], &names, sizeof(names));
}

struct sysinfo {
    s64 uptime;
    u64 loads[3], totalram, freeram, sharedram, bufferram, totalswap, freeswap;
    u16 procs, pad;
    u64 totalhigh, freehigh;
    u32 mem_unit;
    u32 end_pad;
};
_Static_assert(sizeof(struct sysinfo) == 112, "struct sysinfo of x86-64");

static void count_process(struct process *process, void *ctx)
{
    (void)process;
    ++*(u16 *)ctx;
}

s64 sys_sysinfo(const u64 *a)
{
    struct sysinfo info = {.uptime = clock_ns() / NS_PER_SECOND,
                           .totalram = frames_total() * PAGE_SIZE,
                           .freeram = frames_free_count() * PAGE_SIZE,
                           .bufferram = proc_buffer_pages() * PAGE_SIZE,
                           .mem_unit = 1};
    process_for_each(count_process, &info.procs);
    return copy_to_user(a[0], &info, sizeof(info));
}

#define RANDOM_CHUNK 64

#define GRND_ALL    7u /* NONBLOCK, RANDOM, INSECURE: all the same here */
#define GRND_EITHER 6u /* RANDOM and INSECURE exclude each other */

/* Good enough for hash seeds and temporary names, not for keys. */
s64 sys_getrandom(const u64 *a)
{
    u32 flags = a[2];
    if ((flags & ~GRND_ALL) || (flags & GRND_EITHER) == GRND_EITHER)
        return -EINVAL;
    size_t len = MIN(a[1], 0x2000000ul);
    for (size_t done = 0; done < len; done += RANDOM_CHUNK) {
        u64 chunk[RANDOM_CHUNK / sizeof(u64)];
        static u64 counter;
        for (unsigned i = 0; i < ARRAY_SIZE(chunk); i++)
            chunk[i] = mix64(atomic_add(&counter, 1) ^ (clock_is_icount ? 0 : tsc_read()));
        if (copy_to_user(a[0] + done, chunk, MIN(len - done, sizeof(chunk))))
            return -EFAULT;
        if (task_kill_is_pending(task_current()))
            return done;
    }
    return len;
}

int syscall_clock_read(s32 id, u64 *ns)
{
    u64 user_ns, system_ns;
    switch (id) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE: *ns = clock_wall_ns(); return 0;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME: *ns = clock_ns(); return 0;
    case CLOCK_PROCESS_CPUTIME:
    case CLOCK_THREAD_CPUTIME:
        task_times(task_current(), &user_ns, &system_ns);
        *ns = user_ns + system_ns;
        return 0;
    default: return -EINVAL;
    }
}

s64 sys_clock_gettime(const u64 *a)
{
    u64 ns;
    int error = syscall_clock_read(a[0], &ns);
    if (error)
        return error;
    struct timespec ts = timespec_of(ns);
    return copy_to_user(a[1], &ts, sizeof(ts));
}

s64 sys_clock_getres(const u64 *a)
{
    u64 ns;
    struct timespec ts = {0, 1};
    int error = syscall_clock_read(a[0], &ns);
    if (error)
        return error;
    return a[1] ? copy_to_user(a[1], &ts, sizeof(ts)) : 0;
}

s64 sys_gettimeofday(const u64 *a)
{
    u64 ns = clock_wall_ns();
    s64 tv[2] = {ns / NS_PER_SECOND, ns % NS_PER_SECOND / 1000};
    if (a[0] && copy_to_user(a[0], tv, sizeof(tv)))
        return -EFAULT;
    return a[1] ? clear_user(a[1], 8) : 0; /* struct timezone: UTC */
}

s64 sys_time(const u64 *a)
{
    s64 seconds = clock_wall_ns() / NS_PER_SECOND;
    if (a[0] && copy_to_user(a[0], &seconds, sizeof(seconds)))
        return -EFAULT;
    return seconds;
}

s64 sys_getcpu(const u64 *a)
{
    u32 cpu = cpu_index(), node = 0;
    if ((a[0] && copy_to_user(a[0], &cpu, sizeof(cpu))) ||
        (a[1] && copy_to_user(a[1], &node, sizeof(node))))
        return -EFAULT;
    return 0;
}
