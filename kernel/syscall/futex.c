/*
 * The futex call, and robust lists.
 */
#include "kernel/task/futex.h"

#include "kernel/cpu/clock.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/timespec.h"

enum {
    FUTEX_WAIT = 0,
    FUTEX_WAKE = 1,
    FUTEX_REQUEUE = 3,
    FUTEX_CMP_REQUEUE = 4,
    FUTEX_WAKE_OP = 5,
    FUTEX_WAIT_BITSET = 9,
    FUTEX_WAKE_BITSET = 10,
    FUTEX_PRIVATE_FLAG = 128,
    FUTEX_CLOCK_REALTIME = 256,
};
#define FUTEX_COMMAND_MASK     (~(u32)(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME))
#define ROBUST_LIST_HEAD_BYTES 24

/* The deadline of a wait on clock_ns(). => 0, -EFAULT, -EINVAL */
static int deadline_of(u64 user_ts, bool is_absolute, bool is_realtime, u64 *deadline_ns)
{
    u64 ns, now = clock_ns();
    *deadline_ns = 0;
    if (!user_ts)
        return 0;
    int error = timespec_read(user_ts, &ns);
    if (error)
        return error;
    u64 reference = is_realtime ? clock_wall_ns() : now;
    if (is_absolute)
        ns = ns > reference ? ns - reference : 0;
    *deadline_ns = MAX(now + ns, 1ul);
    return 0;
}

/* A wait without a time limit is made again after a signal; the others tell the program, which knows what is left. */
static s64 wait(struct futex_word word, const u64 *a, u32 bits, bool is_absolute, bool is_realtime)
{
    u64 deadline_ns;
    int error = deadline_of(a[3], is_absolute, is_realtime, &deadline_ns);
    if (error)
        return error;
    s64 result = futex_wait(word, a[2], deadline_ns, bits);
    return result == -EINTR && !a[3] ? -ERESTARTSYS : result;
}

/* How many, as the program gives them: a negative number means the same as 0 here, and an error to Linux where it moves. */
static u32 at_most(u64 n)
{
    return (s32)n > 0 ? (u32)n : 0;
}

/* futex(word, operation, value, timeout or second number, second word, third value) */
s64 sys_futex(const u64 *a)
{
    u32 command = (u32)a[1] & FUTEX_COMMAND_MASK, third = a[5];
    bool is_private = a[1] & FUTEX_PRIVATE_FLAG, is_realtime = a[1] & FUTEX_CLOCK_REALTIME;
    struct futex_word word = {a[0], is_private}, second = {a[4], is_private};
    bool moves = command == FUTEX_REQUEUE || command == FUTEX_CMP_REQUEUE;

    if (is_realtime && command != FUTEX_WAIT_BITSET)
        return -ENOSYS;
    if (moves && ((s32)a[2] < 0 || (s32)a[3] < 0))
        return -EINVAL;
    switch (command) {
    case FUTEX_WAIT: return wait(word, a, FUTEX_ANY_BITS, false, false);
    case FUTEX_WAIT_BITSET: return wait(word, a, third, true, is_realtime);
    case FUTEX_WAKE:
        return futex_wake(word, MAX(at_most(a[2]), 1u),
                          FUTEX_ANY_BITS); /* 0 wakes one, as on Linux */
    case FUTEX_WAKE_BITSET: return futex_wake(word, MAX(at_most(a[2]), 1u), third);
    case FUTEX_REQUEUE: return futex_requeue(word, second, a[2], a[3], NULL);
    case FUTEX_CMP_REQUEUE: return futex_requeue(word, second, a[2], a[3], &third);
    case FUTEX_WAKE_OP: return futex_wake_op(word, second, at_most(a[2]), at_most(a[3]), third);
    default: /* priority inheritance */ return -ENOSYS;
    }
}

s64 sys_set_robust_list(const u64 *a)
{
    if (a[1] != ROBUST_LIST_HEAD_BYTES)
        return -EINVAL;
    thread_current()->robust_list = a[0];
    return 0;
}

/* get_robust_list(tid, head, length) */
s64 sys_get_robust_list(const u64 *a)
{
    const u64 length = ROBUST_LIST_HEAD_BYTES;
    u64 list = thread_current()->robust_list;
    if ((u32)a[0] != 0) {
        struct thread *thread = thread_find(NULL, a[0]);
        if (!thread)
            return -ESRCH;
        list = READ_ONCE(thread->robust_list);
        thread_put(thread);
    }
    if (copy_to_user(a[1], &list, sizeof(list)) || copy_to_user(a[2], &length, sizeof(length)))
        return -EFAULT;
    return 0;
}
