/*
 * process_vm_readv and process_vm_writev: bytes between the caller's memory and another process's,
 * without a stop between (process_vm_readv(2)).
 */
#include "kernel/syscall/iovec.h"
#include "kernel/task/thread.h"
#include "mm/remote_memory.h"

/* A place in a vector. */
struct cursor {
    const struct iovec *iov;
    u64 left; /* elements, the current one included */
    u64 done; /* bytes of the current one */
};

/* Steps over what is used up. => bytes left in the current element; 0: the end */
static u64 cursor_room(struct cursor *at)
{
    while (at->left && at->done == at->iov->len) {
        at->iov++;
        at->left--;
        at->done = 0;
    }
    return at->left ? at->iov->len - at->done : 0;
}

/* The address space of the process that has a thread of this id. => with a use; NULL: none, or it has ended */
static struct mm *mm_of_thread(u32 tid)
{
    struct thread *thread = tid ? thread_find(NULL, tid) : NULL;
    struct mm *mm = NULL;

    if (!thread)
        return NULL;
    spin_lock(&process_tree_lock);
    if (thread->process->mm) {
        mm = thread->process->mm;
        mm_get(mm);
    }
    spin_unlock(&process_tree_lock);
    thread_put(thread);
    return mm;
}

/* => bytes, or an error with none */
static s64 transfer(struct mm *mm, struct cursor *here, struct cursor *there, u32 flags)
{
    u64 done = 0, room;
    ssize_t n = 0;

    while ((room = MIN(cursor_room(here), cursor_room(there))) && done < RW_MAX_BYTES) {
        if (there->done == 0 &&
            !remote_memory_reach(mm, there->iov->base, there->iov->len, flags)) {
            n = -EIO; /* before own memory is touched */
            break;
        }
        room = MIN(room, RW_MAX_BYTES - done);
        n = remote_memory_transfer(mm, there->iov->base + there->done, here->iov->base + here->done,
                                   room, flags);
        if (n > 0) {
            done += (u64)n;
            here->done += (u64)n;
            there->done += (u64)n;
        }
        if (n < (ssize_t)room)
            break;
    }
    if (done)
        return (s64)done;
    return n == -EIO ? -EFAULT : n;
}

static bool has_bytes(const struct iovec *iov, u64 count)
{
    for (u64 i = 0; i < count; i++)
        if (iov[i].len)
            return true;
    return false;
}

/* `own` is read; the other vector is still the program's. */
static s64 with_remote_vector(const u64 *a, const struct iovec *own, u32 flags)
{
    struct iovec few[IOV_ON_STACK], *remote;
    struct cursor here = {own, a[2], 0};
    s64 result = iovecs_get(a[3], a[4], false, few, &remote);

    if (result)
        return result;
    if (has_bytes(remote, a[4])) {
        struct cursor there = {remote, a[4], 0};
        struct mm *mm = mm_of_thread((u32)a[0]);

        result = mm ? transfer(mm, &here, &there, flags) : -ESRCH;
        if (mm)
            mm_put(mm);
    }
    iovecs_free(remote, few);
    return result;
}

/* (pid, own vector, n, the other's vector, n, flags) */
static s64 process_vm(const u64 *a, u32 flags)
{
    struct iovec few[IOV_ON_STACK], *own;

    if (a[5])
        return -EINVAL;
    s64 result = iovecs_get(a[1], a[2], true, few, &own);
    if (result)
        return result;
    if (has_bytes(own, a[2]))
        result = with_remote_vector(a, own, flags);
    iovecs_free(own, few);
    return result;
}

s64 sys_process_vm_readv(const u64 *a)
{
    return process_vm(a, 0);
}

s64 sys_process_vm_writev(const u64 *a)
{
    return process_vm(a, REMOTE_WRITE);
}
