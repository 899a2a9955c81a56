/*
 * Copies between kernel and user memory: the range checks, over the instructions of
 * kernel/cpu/uaccess.h.
 *
 * The check is what keeps a program from naming the kernel's own memory; the page tables do the
 * rest.
 */
#include "mm/user_memory.h"

#include "kernel/cpu/uaccess.h"
#include "kernel/sched/task.h"
#include "lib/errno.h"

#define USER_END 0x00007ffffffff000ul

/* How much of [addr, addr + n) lies in the user half. */
static size_t user_part(u64 addr, size_t n)
{
    return addr < USER_END ? MIN(n, USER_END - addr) : 0;
}

int copy_from_user(void *dst, u64 user_src, size_t n)
{
    return user_range_is_ok(user_src, n) && uaccess_copy_in(dst, user_src, n) == 0 ? 0 : -EFAULT;
}

int copy_to_user(u64 user_dst, const void *src, size_t n)
{
    return user_range_is_ok(user_dst, n) && uaccess_copy_out(user_dst, src, n) == 0 ? 0 : -EFAULT;
}

int clear_user(u64 user_dst, size_t n)
{
    return user_range_is_ok(user_dst, n) && uaccess_clear(user_dst, n) == 0 ? 0 : -EFAULT;
}

size_t copy_to_user_partial(u64 user_dst, const void *src, size_t n)
{
    n = user_part(user_dst, n);
    return n - uaccess_copy_out(user_dst, src, n);
}

size_t copy_from_user_partial(void *dst, u64 user_src, size_t n)
{
    n = user_part(user_src, n);
    return n - uaccess_copy_in(dst, user_src, n);
}

ssize_t copy_string_from_user(char *dst, u64 user_src, size_t size)
{
    size_t room = user_part(user_src, size);
    ssize_t len;

    if (size == 0)
        return -ENAMETOOLONG;
    if (room == 0)
        return -EFAULT;
    len = uaccess_copy_string(dst, user_src, room);
    if (len < 0 || (size_t)len < room)
        return len;
    /* No end within `room`: a string that is too long, or one that runs out of the user half. */
    return room < size ? -EFAULT : -ENAMETOOLONG;
}

size_t copy_to_user_nofault(u64 user_dst, const void *src, size_t n)
{
    struct task *task = task_current();

    task->pagefault_disabled++;
    n = copy_to_user_partial(user_dst, src, n);
    task->pagefault_disabled--;
    return n;
}

size_t copy_from_user_nofault(void *dst, u64 user_src, size_t n)
{
    struct task *task = task_current();

    task->pagefault_disabled++;
    n = copy_from_user_partial(dst, user_src, n);
    task->pagefault_disabled--;
    return n;
}
