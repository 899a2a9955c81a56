/*
 * Vectors of buffers: from the program, checked before the first byte moves.
 */
#include "kernel/syscall/iovec.h"

#define IOV_MAX 1024

int iovecs_get(u64 user_iov, u64 count, bool is_own, struct iovec *few, struct iovec **out)
{
    u64 total = 0;
    if (count > IOV_MAX)
        return -EINVAL;
    struct iovec *iov = count > IOV_ON_STACK ? kmalloc(count * sizeof(*iov)) : few;
    if (!iov)
        return -ENOMEM;
    int error = copy_from_user(iov, user_iov, count * sizeof(*iov));
    for (u64 i = 0; i < count && !error; i++) {
        if ((s64)iov[i].len < 0 || (is_own && (total += iov[i].len) > ~0ul >> 1))
            error = -EINVAL;
        else if (is_own && !user_range_is_ok(iov[i].base, iov[i].len))
            error = -EFAULT;
    }
    if (error)
        iovecs_free(iov, few);
    *out = iov;
    return error;
}
