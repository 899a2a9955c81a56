/*
 * Vectors of buffers, as readv(2) and process_vm_readv(2) take them.
 */
#ifndef KERNEL_SYSCALL_IOVEC_H
#define KERNEL_SYSCALL_IOVEC_H

#include "kernel/syscall/syscall.h"

#define RW_MAX_BYTES 0x7ffff000ul /* one call transfers at most this much */
#define IOV_ON_STACK 8

struct iovec {
    u64 base, len;
};

/*
 * Copies and checks an array. is_own: the buffers lie in the caller's memory, so they must be in the user half.
 * => 0 with *out (which iovecs_free ends), -EINVAL, -EFAULT, -ENOMEM
 */
int iovecs_get(u64 user_iov, u64 count, bool is_own, struct iovec *few, struct iovec **out);
static inline void iovecs_free(struct iovec *iov, struct iovec *few)
{
    if (iov != few)
        kfree(iov);
}

#endif
