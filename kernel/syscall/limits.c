/*
 * Resource limits: getrlimit, setrlimit, prlimit64. What each of them limits: kernel/task/limits.c.
 */
#include "kernel/syscall/syscall.h"

/* The address space keeps the limits that it asks for in the middle of a fault. */
static void tell_memory(struct process *process)
{
    if (process == process_current())
        limits_tell_memory(process->mm);
}

/* All is root: the hard limit may go up; but for NOFILE, whose table is of that size. */
static int check(u64 number, const struct limit *new)
{
    if (new->soft > new->hard)
        return -EINVAL;
    return number == LIMIT_NOFILE && new->hard > FD_MAX ? -EPERM : 0;
}

static int exchange(struct process *process, u64 number, const struct limit *new, struct limit *old)
{
    int error = new ? check(number, new) : 0;
    if (error)
        return error;
    spin_lock(&process->lock);
    *old = process->limits[number];
    if (new)
        process->limits[number] = *new;
    spin_unlock(&process->lock);
    if (new)
        tell_memory(process);
    return 0;
}

static s64 limit_call(u64 pid, u64 number, u64 user_new, u64 user_old)
{
    struct limit new, old;
    if (user_new && copy_from_user(&new, user_new, sizeof(new)))
        return -EFAULT;
    struct process *process = process_find(pid ? pid : process_current()->pid);
    if (!process)
        return -ESRCH;
    int error =
        number < LIMIT_COUNT ? exchange(process, number, user_new ? &new : NULL, &old) : -EINVAL;
    process_put(process);
    if (!error && user_old)
        error = copy_to_user(user_old, &old, sizeof(old));
    return error;
}

s64 sys_getrlimit(const u64 *a)
{
    return limit_call(0, (u32)a[0], 0, a[1]);
}

s64 sys_setrlimit(const u64 *a)
{
    return a[1] ? limit_call(0, (u32)a[0], a[1], 0) : -EFAULT;
}

/* prlimit64(pid, resource, new, old) */
s64 sys_prlimit64(const u64 *a)
{
    return limit_call((u32)a[0], (u32)a[1], a[2], a[3]);
}
