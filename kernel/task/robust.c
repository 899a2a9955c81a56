/*
 * What a thread leaves behind for the others when it ends: its robust list and its tid word (set_robust_list(2),
 * set_tid_address(2)). The list is the program's memory: it may be anything, also a ring.
 */
#include "kernel/cpu/uaccess.h"
#include "kernel/task/futex.h"
#include "kernel/task/process_internal.h"
#include "mm/user_memory.h"

#define ROBUST_ENTRIES_MAX 2048
#define FUTEX_WAITERS      0x80000000u
#define FUTEX_OWNER_DIED   0x40000000u
#define FUTEX_TID_MASK     0x3fffffffu
#define ENTRY_IS_PI        1ul

struct robust_list_head {
    u64 first;
    s64 futex_offset;
    u64 pending; /* the lock that is just being taken or let go */
};
_Static_assert(sizeof(struct robust_list_head) == 24, "robust_list_head of x86-64");

/* A lock whose owner ends: marked, and one of its waiters is woken. */
static void mark_owner_died(u64 addr, u32 tid)
{
    u32 word, seen;
    if (addr % sizeof(u32) || !user_range_is_ok(addr, sizeof(u32)) || uaccess_read_u32(addr, &word))
        return;
    while ((word & FUTEX_TID_MASK) == tid) {
        if (uaccess_change_u32(addr, word, (word & FUTEX_WAITERS) | FUTEX_OWNER_DIED, &seen))
            return;
        if (seen == word)
            break;
        word = seen;
    }
    if ((word & FUTEX_TID_MASK) == tid && (word & FUTEX_WAITERS))
        (void)futex_wake((struct futex_word){addr, false}, 1, FUTEX_ANY_BITS);
}

static void walk_robust_list(u64 list, u32 tid)
{
    struct robust_list_head head;
    if (copy_from_user(&head, list, sizeof(head)))
        return;
    u64 entry = head.first;
    for (unsigned n = 0; (entry & ~ENTRY_IS_PI) != list && n < ROBUST_ENTRIES_MAX; n++) {
        u64 at = entry & ~ENTRY_IS_PI, next;
        bool has_next =
            copy_from_user(&next, at, sizeof(next)) == 0; /* a lock that is let go may be reused */
        if (at != (head.pending & ~ENTRY_IS_PI))
            mark_owner_died(at + head.futex_offset, tid);
        if (!has_next)
            break;
        entry = next;
    }
    if (head.pending)
        mark_owner_died((head.pending & ~ENTRY_IS_PI) + head.futex_offset, tid);
}

void futex_thread_exit(struct thread *thread)
{
    const u32 zero = 0;
    if (thread->robust_list)
        walk_robust_list(thread->robust_list, thread->tid);
    thread->robust_list = 0;
    u64 addr = thread->clear_child_tid;
    thread->clear_child_tid = 0;
    if (!addr ||
        atomic_load(&task_current()->mm->users) + READ_ONCE(thread->process->n_threads) <= 2)
        return; /* nobody else is there to see it */
    if (copy_to_user(addr, &zero, sizeof(zero)) == 0)
        (void)futex_wake((struct futex_word){addr, false}, 1, FUTEX_ANY_BITS);
}
