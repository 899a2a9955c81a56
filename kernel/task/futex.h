/*
 * Futexes: sleeping on the value of a word of the program's memory (futex(2)).
 */
#ifndef KERNEL_TASK_FUTEX_H
#define KERNEL_TASK_FUTEX_H

#include "lib/types.h"

#define FUTEX_ANY_BITS (~0u)

/* A word, and whether only threads of this address space wait on it (FUTEX_PRIVATE_FLAG). All in the current program; sleep. */
struct futex_word {
    u64 addr;
    bool is_private;
};

/*
 * Sleeps if the word holds `value`.
 *   deadline_ns  of clock_ns(); 0: none
 *   bits         a wake-up for any of these
 * => 0: woken; -EAGAIN: another value; -ETIMEDOUT; -EINTR: a signal; -EFAULT, -EINVAL (not aligned)
 */
s64 futex_wait(struct futex_word word, u32 value, u64 deadline_ns, u32 bits);
/* Wakes up to `max` of those who wait with one of the bits. => how many; -EFAULT, -EINVAL */
s64 futex_wake(struct futex_word word, u32 max, u32 bits);
/*
 * Wakes up to max_wake and lets up to max_move others wait on `to` instead.
 *   expected  NULL, or what the word has to hold, else -EAGAIN
 * => woken and moved; -EFAULT, -EINVAL
 */
s64 futex_requeue(struct futex_word from, struct futex_word to, u32 max_wake, u32 max_move,
                  const u32 *expected);
/* Changes `second` by the operation coded in `code` (FUTEX_WAKE_OP), then wakes on both. => woken; -EFAULT, -EINVAL, -ENOSYS */
s64 futex_wake_op(struct futex_word first, struct futex_word second, u32 max_first, u32 max_second,
                  u32 code);

void futex_init(void);

#endif
