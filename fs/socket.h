/*
 * Two sockets that are connected to each other (socketpair(2)); there is no network, and no socket
 * with an address.
 */
#ifndef FS_SOCKET_H
#define FS_SOCKET_H

#include "fs/vfs.h"

#define AF_UNIX        1
#define SOCK_STREAM    1
#define SOCK_DGRAM     2
#define SOCK_SEQPACKET 5
#define SHUT_RD        0
#define SHUT_WR        1
#define SHUT_RDWR      2

#define MSG_PEEK     0x02u
#define MSG_TRUNC    0x20u
#define MSG_DONTWAIT 0x40u
#define MSG_NOSIGNAL 0x4000u

/* A connected pair, each end with one reference. type: SOCK_*; flags: O_NONBLOCK or 0.
 * => 0; -ENOMEM, -ENFILE. May sleep. */
int socket_pair_create(u32 type, u32 flags, struct file *ends[2]);
/*
 * Bytes, or one message, from or to user memory; read and write of the file are these without flags.
 * flags: MSG_DONTWAIT; for receiving also MSG_PEEK (it stays), MSG_TRUNC (the message's whole length
 * comes back). => bytes; -ENOTSOCK, -EAGAIN, -ERESTARTSYS, -EFAULT, -ENOMEM; sending: -EPIPE,
 * -ECONNREFUSED (datagrams: the other end is closed), -EMSGSIZE; receiving: -ECONNRESET, once, where
 * the other end was closed without reading all. May sleep.
 */
ssize_t socket_send(struct file *file, u64 user_buf, size_t len, u32 flags);
ssize_t socket_receive(struct file *file, u64 user_buf, size_t len, u32 flags);
/* how: SHUT_*. => 0; -ENOTSOCK, -EINVAL */
int socket_shutdown(struct file *file, u32 how);

#endif
