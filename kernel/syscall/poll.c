/*
 * System calls that wait for several files: poll, ppoll, select, pselect6.
 */
#include "fs/poll.h"

#include "kernel/cpu/clock.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/signal.h"

#define NS_PER_SECOND 1000000000ul
#define NS_PER_MS     1000000ul
#define NS_PER_US     1000ul

/* ---- Times ---- */

struct time_pair {
    s64 seconds, fraction;
};

/* The deadline for a relative time of `unit_ns` fractions; user 0: none.
 * => 0; -EFAULT, -EINVAL */
static int read_deadline(u64 user, u64 unit_ns, u64 *deadline_ns)
{
    struct time_pair time;
    *deadline_ns = POLL_FOREVER;
    if (!user)
        return 0;
    if (copy_from_user(&time, user, sizeof(time)))
        return -EFAULT;
    if (unit_ns == NS_PER_US && time.seconds >= 0 &&
        time.fraction > 0) { /* select takes more than a second of them */
        time.seconds += time.fraction / (NS_PER_SECOND / NS_PER_US);
        time.fraction %= NS_PER_SECOND / NS_PER_US;
    }
    if (time.seconds < 0 || time.fraction < 0 || (u64)time.fraction >= NS_PER_SECOND / unit_ns)
        return -EINVAL;
    u64 ns;
    if (__builtin_mul_overflow((u64)time.seconds, NS_PER_SECOND, &ns) ||
        __builtin_add_overflow(ns, time.fraction * unit_ns + clock_ns(), &ns))
        return 0; /* longer than any machine runs */
    *deadline_ns = time.seconds == 0 && time.fraction == 0 ? 0 : ns;
    return 0;
}

/* What is left goes back to the program, as Linux does. A pointer that cannot be written is no
 * error: the call is over. */
static void write_time_left(u64 user, u64 unit_ns, u64 deadline_ns)
{
    u64 now = clock_ns(), left = deadline_ns > now ? deadline_ns - now : 0;
    struct time_pair time = {left / NS_PER_SECOND, left % NS_PER_SECOND / unit_ns};
    if (user && deadline_ns != POLL_FOREVER && copy_to_user(user, &time, sizeof(time)))
        return;
}

/* A signal mask for the time of the call; user 0: none. => 0; -EFAULT, -EINVAL */
static int begin_mask(u64 user_mask, u64 bytes, bool *is_set)
{
    sigset_bits mask;
    *is_set = user_mask != 0;
    if (!user_mask)
        return 0;
    if (bytes != sizeof(mask))
        return -EINVAL;
    if (copy_from_user(&mask, user_mask, sizeof(mask)))
        return -EFAULT;
    signal_mask_begin(mask);
    return 0;
}

/* ---- poll ---- */

struct pollfd {
    s32 fd;
    s16 events, revents;
};

#define FDS_ON_STACK 8

static void put_files(struct poll_item *items, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (items[i].file)
            file_put(items[i].file);
}

static s64 poll_fds(struct pollfd *fds, struct poll_item *items, unsigned n, u64 deadline_ns)
{
    for (unsigned i = 0; i < n; i++) {
        items[i] = (struct poll_item){.events = (u16)fds[i].events, .ignored = fds[i].fd < 0};
        if (fds[i].fd >= 0)
            items[i].file = syscall_file((u32)fds[i].fd);
        if (items[i].file && (items[i].file->flags & O_PATH)) {
            file_put(items[i].file);
            items[i].file = NULL;
        }
    }
    s64 result = poll_files(items, n, deadline_ns);
    for (unsigned i = 0; i < n; i++)
        fds[i].revents = result > 0 ? (s16)items[i].ready : 0;
    put_files(items, n);
    return result;
}

static s64 do_poll(u64 user_fds, u64 n, u64 deadline_ns)
{
    struct pollfd few_fds[FDS_ON_STACK], *fds = few_fds;
    struct poll_item few_items[FDS_ON_STACK], *items = few_items;
    if (n > limit_current(LIMIT_NOFILE) || n > FD_MAX)
        return -EINVAL;
    if (n > FDS_ON_STACK) {
        fds = kmalloc(n * sizeof(*fds));
        items = kmalloc(n * sizeof(*items));
    }
    s64 result = fds && items ? copy_from_user(fds, user_fds, n * sizeof(*fds)) : -ENOMEM;
    if (!result)
        result = poll_fds(fds, items, n, deadline_ns);
    if (result >= 0 && copy_to_user(user_fds, fds, n * sizeof(*fds)))
        result = -EFAULT;
    if (fds != few_fds)
        kfree(fds);
    if (items != few_items)
        kfree(items);
    return result;
}

static s64 poll_again(struct signal_restart *restart)
{
    s64 result = do_poll(restart->args[0], restart->args[1], restart->args[2]);
    if (result == -EINTR)
        return signal_restart_by(poll_again, restart->args[0], restart->args[1], restart->args[2],
                                 0, 0);
    return result;
}

/* poll(fds, n, timeout in ms) */
s64 sys_poll(const u64 *a)
{
    s32 ms = a[2];
    u64 deadline_ns = ms < 0 ? POLL_FOREVER : ms ? clock_ns() + ms * NS_PER_MS : 0;
    s64 result = do_poll(a[0], (u32)a[1], deadline_ns);
    if (result == -EINTR)
        return signal_restart_by(poll_again, a[0], (u32)a[1], deadline_ns, 0, 0);
    return result;
}

/* ppoll(fds, n, timespec, mask, mask bytes) */
s64 sys_ppoll(const u64 *a)
{
    u64 deadline_ns;
    bool has_mask;
    s64 result = read_deadline(a[2], 1, &deadline_ns);
    if (!result)
        result = begin_mask(a[3], a[4], &has_mask);
    if (result)
        return result;
    result = do_poll(a[0], (u32)a[1], deadline_ns);
    if (has_mask)
        signal_mask_end(result == -EINTR);
    write_time_left(a[2], 1, deadline_ns);
    return result == -EINTR ? -ERESTARTNOHAND : result;
}

/* ---- select ---- */

#define FD_BITS         64
#define FD_WORDS_MAX    (FD_MAX / FD_BITS)
#define SELECT_IN       (POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR)
#define SELECT_OUT      (POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR)
#define SELECT_PRIORITY POLLPRI

enum { SET_READ, SET_WRITE, SET_EXCEPT, SET_COUNT };

static const u32 set_events[SET_COUNT] = {SELECT_IN, SELECT_OUT, SELECT_PRIORITY};

struct select_sets {
    u64 user[SET_COUNT]; /* 0: not given */
    unsigned n_fds, words;
    u64 bits[SET_COUNT][FD_WORDS_MAX]; /* asked for */
    u64 ready[SET_COUNT][FD_WORDS_MAX];
};

static bool is_in(const u64 *bits, unsigned fd)
{
    return bits[fd / FD_BITS] >> fd % FD_BITS & 1;
}

static int read_sets(struct select_sets *sets)
{
    for (unsigned s = 0; s < SET_COUNT; s++)
        if (sets->user[s] &&
            copy_from_user(sets->bits[s], sets->user[s], sets->words * sizeof(u64)))
            return -EFAULT;
    return 0;
}

static int write_sets(struct select_sets *sets)
{
    for (unsigned s = 0; s < SET_COUNT; s++)
        if (sets->user[s] && copy_to_user(sets->user[s], sets->ready[s], sets->words * sizeof(u64)))
            return -EFAULT;
    return 0;
}

static u32 events_of(const struct select_sets *sets, unsigned fd)
{
    u32 events = 0;
    for (unsigned s = 0; s < SET_COUNT; s++)
        events |= is_in(sets->bits[s], fd) ? set_events[s] : 0;
    return events;
}

/* One item for each descriptor in a set. => number, or -EBADF with those before it in items */
static int collect(const struct select_sets *sets, struct poll_item *items, u32 *fds, unsigned *n)
{
    for (unsigned fd = 0; fd < sets->n_fds; fd++) {
        u32 events = events_of(sets, fd);
        if (!events)
            continue;
        struct file *file = syscall_file(fd);
        if (!file)
            return -EBADF;
        fds[*n] = fd;
        items[(*n)++] = (struct poll_item){.file = file, .events = events};
    }
    return 0;
}

/* => number of bits set in the three results */
static s64 spread(struct select_sets *sets, const struct poll_item *items, const u32 *fds,
                  unsigned n)
{
    s64 total = 0;
    for (unsigned i = 0; i < n; i++) {
        for (unsigned s = 0; s < SET_COUNT; s++) {
            if (!is_in(sets->bits[s], fds[i]) || !(items[i].ready & set_events[s]))
                continue;
            sets->ready[s][fds[i] / FD_BITS] |= 1ul << fds[i] % FD_BITS;
            total++;
        }
    }
    return total;
}

static s64 select_sets(struct select_sets *sets, u64 deadline_ns)
{
    unsigned n = 0, room = MAX(sets->n_fds, 1u);
    struct poll_item *items = kmalloc(room * sizeof(*items));
    u32 *fds = kmalloc(room * sizeof(*fds));
    s64 result = items && fds ? read_sets(sets) : -ENOMEM;
    if (!result)
        result = collect(sets, items, fds, &n);
    if (!result)
        result = poll_files(items, n, deadline_ns);
    if (result > 0)
        result = spread(sets, items, fds, n);
    if (result >= 0 && write_sets(sets))
        result = -EFAULT;
    put_files(items, n);
    kfree(items);
    kfree(fds);
    return result;
}

static s64 do_select(const u64 *a, u64 deadline_ns)
{
    s32 n_fds = a[0];
    if (n_fds < 0)
        return -EINVAL;
    struct select_sets *sets = kzalloc(sizeof(*sets));
    if (!sets)
        return -ENOMEM;
    sets->n_fds = MIN(n_fds, FD_MAX);
    sets->words = DIV_ROUND_UP(sets->n_fds, FD_BITS);
    memcpy(sets->user, a + 1, sizeof(sets->user));
    s64 result = select_sets(sets, deadline_ns);
    kfree(sets);
    return result == -EINTR ? -ERESTARTNOHAND : result;
}

/* select(n, read, write, except, timeval) */
s64 sys_select(const u64 *a)
{
    u64 deadline_ns;
    s64 result = read_deadline(a[4], NS_PER_US, &deadline_ns);
    if (result)
        return result;
    result = do_select(a, deadline_ns);
    write_time_left(a[4], NS_PER_US, deadline_ns);
    return result;
}

/* pselect6(n, read, write, except, timespec, {mask, mask bytes}) */
s64 sys_pselect6(const u64 *a)
{
    u64 deadline_ns, mask[2] = {0, 0};
    bool has_mask;
    s64 result = read_deadline(a[4], 1, &deadline_ns);
    if (!result && a[5] && copy_from_user(mask, a[5], sizeof(mask)))
        result = -EFAULT;
    if (!result)
        result = begin_mask(mask[0], mask[1], &has_mask);
    if (result)
        return result;
    result = do_select(a, deadline_ns);
    if (has_mask)
        signal_mask_end(result == -ERESTARTNOHAND);
    write_time_left(a[4], 1, deadline_ns);
    return result;
}
