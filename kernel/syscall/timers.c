/*
 * System calls that sleep by the clock, and alarms: nanosleep, setitimer, timer_create and their like.
 */
#include "kernel/cpu/clock.h"
#include "kernel/sched/wait.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/timespec.h"
#include "kernel/task/posix_timer.h"

/* ---- Sleeping -------------------------------------------------------------------------------- */

#define TIMER_ABSTIME 1

/* args: deadline, where to write what is left (0: nowhere) */
static s64 sleep_on(struct signal_restart *restart)
{
    u64 deadline_ns = restart->args[0], user_left = restart->args[1];
    if (!sleep_until_ns_interruptible(deadline_ns))
        return 0;
    u64 now = clock_ns();
    if (now >= deadline_ns)
        return 0;
    struct timespec left = timespec_of(deadline_ns - now);
    if (user_left && copy_to_user(user_left, &left, sizeof(left)))
        return -EFAULT;
    return signal_restart_by(sleep_on, deadline_ns, user_left, 0, 0, 0);
}

static s64 sleep_for(u64 ns, u64 user_left)
{
    struct signal_restart now = {.args = {clock_ns() + ns, user_left}};
    return sleep_on(&now);
}

s64 sys_nanosleep(const u64 *a)
{
    u64 ns;
    int error = timespec_read(a[0], &ns);
    return error ? error : sleep_for(ns, a[1]);
}

/* An absolute time: called again as it is, it goes on. */
static s64 sleep_until(u64 clock_now, u64 time)
{
    u64 deadline_ns = clock_ns() + (time > clock_now ? time - clock_now : 0);
    return sleep_until_ns_interruptible(deadline_ns) ? -ERESTARTNOHAND : 0;
}

static bool can_sleep_on(s32 clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_PROCESS_CPUTIME ||
           clock == CLOCK_BOOTTIME;
}

s64 sys_clock_nanosleep(const u64 *a)
{
    u64 now, ns;
    s32 clock = a[0];
    int error = syscall_clock_read(clock, &now);
    if (!error && !can_sleep_on(clock))
        error = -EOPNOTSUPP;
    if (!error)
        error = timespec_read(a[2], &ns);
    if (error)
        return error;
    return a[1] & TIMER_ABSTIME ? sleep_until(now, ns) : sleep_for(ns, a[3]);
}

/* ---- setitimer ------------------------------------------------------------------------------- */

struct itimerval {
    struct timeval interval, value;
};

static struct itimerval itimerval_of(const struct signal_itimer *timer)
{
    u64 left = timer->deadline_ns; /* never shown as 0 while it runs */
    return (struct itimerval){timeval_of(timer->interval_ns),
                              timeval_of(left ? MAX(left, NS_PER_US) : 0)};
}

static bool timeval_is_valid(const struct timeval *tv)
{
    return tv->sec >= 0 && tv->usec >= 0 && tv->usec < US_PER_SECOND;
}

s64 sys_setitimer(const u64 *a)
{
    struct itimerval user = {0}, user_old;
    struct signal_itimer new, old;
    if (a[1] && copy_from_user(&user, a[1], sizeof(user)))
        return -EFAULT;
    if ((u32)a[0] >= ITIMER_COUNT || !timeval_is_valid(&user.value) ||
        !timeval_is_valid(&user.interval))
        return -EINVAL;
    new.deadline_ns = time_ns(user.value.sec, user.value.usec * NS_PER_US);
    new.interval_ns = time_ns(user.interval.sec, user.interval.usec * NS_PER_US);
    itimer_change((u32)a[0], &new, &old);
    user_old = itimerval_of(&old);
    return a[2] ? copy_to_user(a[2], &user_old, sizeof(user_old)) : 0;
}

s64 sys_getitimer(const u64 *a)
{
    struct signal_itimer now;
    if ((u32)a[0] >= ITIMER_COUNT)
        return -EINVAL;
    itimer_change((u32)a[0], NULL, &now);
    struct itimerval user = itimerval_of(&now);
    return copy_to_user(a[1], &user, sizeof(user));
}

/* => seconds that were left, rounded to the nearest, at least 1 while it ran */
s64 sys_alarm(const u64 *a)
{
    struct signal_itimer new = {.deadline_ns = (a[0] & 0xffffffff) * NS_PER_SECOND}, old;
    itimer_change(ITIMER_REAL, &new, &old);
    if (!old.deadline_ns)
        return 0;
    return MAX((old.deadline_ns + NS_PER_SECOND / 2) / NS_PER_SECOND, 1ul);
}

/* ---- timer_create ---------------------------------------------------------------------------- */

struct sigevent {
    u64 value;
    s32 signal, notify;
    s32 tid;
    u8 rest[44];
};
_Static_assert(sizeof(struct sigevent) == 64, "struct sigevent of x86-64");

struct itimerspec {
    struct timespec interval, value;
};

static int read_event(u64 user_event, struct posix_timer_event *event)
{
    struct sigevent user;
    *event = (struct posix_timer_event){.notify = SIGEV_SIGNAL, .signal = SIGALRM};
    if (!user_event)
        return 0;
    if (copy_from_user(&user, user_event, sizeof(user)))
        return -EFAULT;
    bool is_known =
        user.notify == SIGEV_SIGNAL || user.notify == SIGEV_NONE || user.notify == SIGEV_THREAD_ID;
    if (!is_known || (user.notify != SIGEV_NONE && !signal_is_valid((u32)user.signal)))
        return -EINVAL;
    *event = (struct posix_timer_event){.notify = user.notify,
                                        .signal = user.signal,
                                        .value = user.value,
                                        .has_value = true,
                                        .tid = user.tid};
    return 0;
}

static bool clock_has_timers(u32 clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME;
}

s64 sys_timer_create(const u64 *a)
{
    struct posix_timer_event event;
    u32 clock = a[0];
    int error = read_event(a[1], &event);
    if (error == -EFAULT) /* in Linux's order */
        return error;
    if (!clock_has_timers(clock))
        return clock <= CLOCK_BOOTTIME ? -EOPNOTSUPP : -EINVAL;
    if (error)
        return error;
    event.clock_is_wall = clock == CLOCK_REALTIME;
    s32 id = posix_timer_create(&event);
    if (id < 0)
        return id;
    if (!copy_to_user(a[2], &id, sizeof(id)))
        return 0;
    posix_timer_delete(id);
    return -EFAULT;
}

/* A wall-clock time on the kernel's clock, which counts from boot. */
static u64 from_wall(u64 wall_ns)
{
    u64 boot = clock_wall_ns() - clock_ns();
    return wall_ns > boot ? wall_ns - boot : 1;
}

static struct itimerspec itimerspec_of(const struct signal_itimer *timer)
{
    return (struct itimerspec){timespec_of(timer->interval_ns), timespec_of(timer->deadline_ns)};
}

s64 sys_timer_settime(const u64 *a)
{
    struct itimerspec user;
    struct signal_itimer new, old;
    if (!a[2])
        return -EINVAL;
    if (copy_from_user(&user, a[2], sizeof(user)))
        return -EFAULT;
    if (!timespec_is_valid(&user.value) || !timespec_is_valid(&user.interval))
        return -EINVAL;
    int is_wall = posix_timer_is_wall(a[0]);
    if (is_wall < 0)
        return is_wall;
    u64 value = time_ns(user.value.sec, user.value.nsec);
    new.interval_ns = time_ns(user.interval.sec, user.interval.nsec);
    new.deadline_ns = value;
    if (value)
        new.deadline_ns = !(a[1] & TIMER_ABSTIME) ? clock_ns() + value
                          : is_wall               ? from_wall(value)
                                                  : value;
    int error = posix_timer_change(a[0], &new, &old);
    user = itimerspec_of(&old);
    return error || !a[3] ? error : copy_to_user(a[3], &user, sizeof(user));
}

s64 sys_timer_gettime(const u64 *a)
{
    struct signal_itimer now;
    int error = posix_timer_change(a[0], NULL, &now);
    struct itimerspec user = {0};
    if (!error)
        user = itimerspec_of(&now);
    return error ? error : copy_to_user(a[1], &user, sizeof(user));
}

s64 sys_timer_getoverrun(const u64 *a)
{
    return posix_timer_overrun(a[0]);
}

s64 sys_timer_delete(const u64 *a)
{
    return posix_timer_delete(a[0]);
}
