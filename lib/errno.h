/*
 * Error numbers of the Linux x86-64 interface (man-pages, errno(3)). Functions return them negated.
 */
#ifndef LIB_ERRNO_H
#define LIB_ERRNO_H

#if __STDC_HOSTED__
#include <errno.h>
#else
#define EPERM           1
#define ENOENT          2
#define ESRCH           3
#define EINTR           4
#define EIO             5
#define ENXIO           6
#define E2BIG           7
#define ENOEXEC         8
#define EBADF           9
#define ECHILD          10
#define EAGAIN          11
#define ENOMEM          12
#define EACCES          13
#define EFAULT          14
#define EBUSY           16
#define EEXIST          17
#define EXDEV           18
#define ENODEV          19
#define ENOTDIR         20
#define EISDIR          21
#define EINVAL          22
#define ENFILE          23
#define EMFILE          24
#define ENOTTY          25
#define ETXTBSY         26
#define EFBIG           27
#define ENOSPC          28
#define ESPIPE          29
#define EROFS           30
#define EMLINK          31
#define EPIPE           32
#define EDOM            33
#define ERANGE          34
#define EDEADLK         35
#define ENAMETOOLONG    36
#define ENOLCK          37
#define ENOSYS          38
#define ENOTEMPTY       39
#define ELOOP           40
#define EOVERFLOW       75
#define ELIBBAD         80
#define ENOTSOCK        88
#define EMSGSIZE        90
#define EPROTONOSUPPORT 93
#define ESOCKTNOSUPPORT 94
#define EOPNOTSUPP      95
#define EAFNOSUPPORT    97
#define ECONNRESET      104
#define EISCONN         106
#define ETIMEDOUT       110
#define ECONNREFUSED    111
#define EUCLEAN         117
#endif

/*
 * Results of system calls that a signal interrupted; they become a second call or EINTR on the way back, programs never
 * see them (kernel/task/signal_deliver.c).
 */
#define ERESTARTSYS           512 /* again, unless a handler without SA_RESTART runs */
#define ERESTARTNOINTR        513 /* again, always */
#define ERESTARTNOHAND        514 /* again, unless a handler runs */
#define ERESTART_RESTARTBLOCK 516 /* goes on by restart_syscall, unless a handler runs */

#endif
