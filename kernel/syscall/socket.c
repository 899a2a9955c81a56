/*
 * System calls about connected pairs of sockets; the only sockets there are.
 */
#include "fs/socket.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/signal.h"

#define SOCK_RAW       3 /* of AF_UNIX: a datagram socket */
#define SOCK_TYPE_MASK 15u
#define SOCK_TYPE_LAST 10u
#define MESSAGE_MAX    0x7ffff000ul

/* => SOCK_*, or -EAFNOSUPPORT, -EINVAL, -EPROTONOSUPPORT, -ESOCKTNOSUPPORT */
static int check_kind(u32 domain, u32 type, u32 protocol)
{
    if (type & ~(SOCK_TYPE_MASK | O_CLOEXEC | O_NONBLOCK))
        return -EINVAL;
    if (domain != AF_UNIX)
        return -EAFNOSUPPORT;
    if ((type & SOCK_TYPE_MASK) > SOCK_TYPE_LAST)
        return -EINVAL;
    if (protocol && protocol != AF_UNIX)
        return -EPROTONOSUPPORT;
    switch (type & SOCK_TYPE_MASK) {
    case SOCK_STREAM:
    case SOCK_SEQPACKET: return (int)(type & SOCK_TYPE_MASK);
    case SOCK_DGRAM:
    case SOCK_RAW: return SOCK_DGRAM;
    default: return -ESOCKTNOSUPPORT;
    }
}

/* socketpair(domain, type, protocol, int fds[2]) */
s64 sys_socketpair(const u64 *a)
{
    int type = check_kind((u32)a[0], (u32)a[1], (u32)a[2]), error;
    struct file *ends[2];

    if (type < 0)
        return type;
    error = socket_pair_create((u32)type, a[1] & O_NONBLOCK, ends);
    return error ? error : syscall_install_pair(ends, a[1] & O_CLOEXEC, a[3]);
}

s64 sys_shutdown(const u64 *a)
{
    struct file *file = syscall_file(a[0]);
    s64 result;

    if (!file)
        return -EBADF;
    result = socket_shutdown(file, (u32)a[1]);
    file_put(file);
    return result;
}

/* sendto(fd, buf, len, flags, address, its length): who is connected names no address. */
s64 sys_sendto(const u64 *a)
{
    struct file *file = syscall_file(a[0]);
    u32 flags = (u32)a[3];
    s64 result;

    if (!file)
        return -EBADF;
    if (!user_range_is_ok(a[1], a[2]))
        result = -EFAULT;
    else
        result = a[4] ? -EISCONN : socket_send(file, a[1], MIN(a[2], MESSAGE_MAX), flags);
    file_put(file);
    if (result == -EPIPE && !(flags & MSG_NOSIGNAL))
        signal_send_self(SIGPIPE);
    return result;
}

/* recvfrom(fd, buf, len, flags, address, its length): the other end has no address. */
s64 sys_recvfrom(const u64 *a)
{
    static const u32 no_address = 0;
    struct file *file = syscall_file(a[0]);
    s64 result = -EFAULT;

    if (!file)
        return -EBADF;
    if (user_range_is_ok(a[1], a[2]))
        result = socket_receive(file, a[1], MIN(a[2], MESSAGE_MAX), (u32)a[3]);
    file_put(file);
    if (result >= 0 && a[4] && copy_to_user(a[5], &no_address, sizeof(no_address)))
        return -EFAULT;
    return result;
}
