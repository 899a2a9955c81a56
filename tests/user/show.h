/*
 * Show: one line for the outcome of a call, equal on every kernel that does it right.
 */
#ifndef TESTS_USER_SHOW_H
#define TESTS_USER_SHOW_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SHOW_PAGE 4096UL

static inline const char *show_errno(int error)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
        {EPERM, "EPERM"},
        {ENOENT, "ENOENT"},
        {EIO, "EIO"},
        {EBADF, "EBADF"},
        {ENOMEM, "ENOMEM"},
        {EACCES, "EACCES"},
        {EFAULT, "EFAULT"},
        {EEXIST, "EEXIST"},
        {ENOTDIR, "ENOTDIR"},
        {EISDIR, "EISDIR"},
        {EINVAL, "EINVAL"},
        {ENOTTY, "ENOTTY"},
        {ESPIPE, "ESPIPE"},
        {EROFS, "EROFS"},
        {ENOSYS, "ENOSYS"},
        {ELOOP, "ELOOP"},
        {ENAMETOOLONG, "ENAMETOOLONG"},
        {EOVERFLOW, "EOVERFLOW"},
        {ENODEV, "ENODEV"},
        {EMFILE, "EMFILE"},
        {ENXIO, "ENXIO"},
        {ERANGE, "ERANGE"},
    };
    static char other[32];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].number == error)
            return names[i].name;
    snprintf(other, sizeof(other), "errno %d", error);
    return other;
}

/* A call whose result is a number, or -1 with errno. */
#define SHOW(name, call)                                 \
    do {                                                 \
        errno = 0;                                       \
        long show_result_ = (long)(call);                \
        if (show_result_ == -1)                          \
            printf("%s: %s\n", name, show_errno(errno)); \
        else                                             \
            printf("%s: %ld\n", name, show_result_);     \
    } while (0)

/* A call whose result is an address, of which only success is told. */
#define SHOW_MAP(name, call)                                                           \
    do {                                                                               \
        errno = 0;                                                                     \
        printf("%s: %s\n", name, (call) == MAP_FAILED ? show_errno(errno) : "mapped"); \
    } while (0)

#define SHOW_TRUE(name, condition) printf("%s: %s\n", name, (condition) ? "yes" : "no")

#endif
