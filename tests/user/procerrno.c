/*
 * procerrno: what calls about processes, signals, timers, names, attributes, pipes, waiting and
 * locks answer to borderline arguments. Every line must be equal on every kernel, for root. It
 * works in a directory of its own in /dev/shm. See callerrno for the other calls.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/user/show.h"

#define USER_END 0x7ffffffff000UL
#define KERNEL   0xffffffff80000000UL
#define UPPER    (1UL << 40)
#define NEGATIVE (~0UL)
#define BAD      16UL /* an address where nothing is */
#define NOBODY   0x3fffffffL

#define CALL(number, ...) SHOW(#number ", " #__VA_ARGS__, syscall(SYS_##number, __VA_ARGS__))
/* The result is a number that differs from run to run. */
#define TRY(number, ...) \
    SHOW(#number ", " #__VA_ARGS__, syscall(SYS_##number, __VA_ARGS__) == -1 ? -1 : 0)

static long fd, reader, path_only, dir, pipe_in, pipe_out;
static uint64_t buffer[512];
static char path_of_255[257], path_of_256[258];

static void processes(void)
{
    CALL(getpgid, NOBODY);
    CALL(getpgid, -1L);
    TRY(getpgid, UPPER);
    CALL(getsid, NOBODY);
    CALL(setpgid, 0, -1L);
    CALL(setpgid, NOBODY, 0);
    CALL(setpgid, -1L, 0);
    CALL(getpriority, 3, 0);
    CALL(getpriority, -1L, 0);
    CALL(getpriority, UPPER, 0);
    CALL(getpriority, 0, NOBODY);
    CALL(getpriority, 1, NOBODY);
    CALL(getpriority, 2, NOBODY);
    CALL(setpriority, 3, 0, 0);
    CALL(setpriority, 0, NOBODY, 0);
    CALL(setpriority, 0, 0, 0);
    CALL(sched_getscheduler, -1L);
    CALL(sched_getscheduler, NOBODY);
    CALL(sched_getscheduler, UPPER);
    CALL(sched_getparam, 0, 0);
    CALL(sched_getparam, 0, BAD);
    CALL(sched_getparam, -1L, buffer);
    CALL(sched_getparam, NOBODY, BAD);
    CALL(sched_setscheduler, 0, 0, 0);
    CALL(sched_setscheduler, 0, 0, BAD);
    CALL(sched_setscheduler, -1L, 0, BAD);
    CALL(sched_setscheduler, NOBODY, 0, BAD);
    CALL(sched_setscheduler, 0, 77, buffer);
    CALL(sched_setscheduler, 0, -1L, BAD);
    CALL(sched_setscheduler, 0, 1, buffer);
    CALL(sched_get_priority_max, 1);
    CALL(sched_get_priority_max, UPPER | 2);
    CALL(sched_get_priority_max, 4);
    CALL(sched_get_priority_max, 6);
    CALL(sched_get_priority_max, -1L);
    CALL(sched_get_priority_min, 0);
    CALL(sched_get_priority_min, 1);
    CALL(sched_get_priority_min, 4);
    CALL(sched_setaffinity, 0, 8, BAD);
    CALL(sched_setaffinity, 0, 0, buffer);
    CALL(sched_setaffinity, NOBODY, 8, buffer);
    CALL(sched_setaffinity, 0, 8, buffer);
    CALL(prctl, 9999, 0, 0, 0, 0);
    CALL(prctl, 15, BAD, 0, 0, 0);
    CALL(prctl, 16, BAD, 0, 0, 0);
    CALL(prctl, 4, 7, 0, 0, 0);
    CALL(prctl, 38, 0, 0, 0, 0);
    CALL(prctl, 38, 1, 1, 0, 0);
    CALL(prctl, 39, 1, 0, 0, 0);
    CALL(setrlimit, 99, buffer);
    CALL(setrlimit, 99, BAD);
    CALL(setrlimit, 0, 0);
    buffer[0] = 5, buffer[1] = 4;
    CALL(setrlimit, 7, buffer);
    CALL(prlimit64, NOBODY, 7, 0, buffer);
    CALL(prlimit64, NOBODY, 99, BAD, 0);
    CALL(prlimit64, NOBODY, 99, 0, 0);
    CALL(prlimit64, -1L, 7, 0, 0);
    buffer[0] = buffer[1] = 0;
    CALL(set_robust_list, 0, 23);
    CALL(set_robust_list, 0, UPPER | 24);
    CALL(get_robust_list, NOBODY, buffer, buffer);
    CALL(get_robust_list, 0, BAD, buffer);
    CALL(get_robust_list, 0, buffer, BAD);
}

static void ends(void)
{
    CALL(wait4, -1L, 0, 0, 0);
    CALL(wait4, -1L, BAD, 1, BAD);
    CALL(wait4, -1L, 0, 0x100, 0);
    CALL(wait4, -1L, 0, UPPER, 0);
    CALL(wait4, 0x80000000L, 0, 0, 0);
    CALL(wait4, NOBODY, 0, 0, 0);
    CALL(wait4, 0, 0, 1, 0);
    CALL(wait4, -NOBODY, 0, 1, 0);
    CALL(waitid, 0, 0, 0, 4, 0);
    CALL(waitid, 0, -1L, 0, 4, 0);
    CALL(waitid, 0, 0, 0, 0, 0);
    CALL(waitid, 0, 0, 0, 1, 0);
    CALL(waitid, 0, 0, 0, 0x104, 0);
    CALL(waitid, 0, 0, BAD, 4, 0);
    CALL(waitid, 1, 0, 0, 4, 0);
    CALL(waitid, 1, -1L, 0, 4, 0);
    CALL(waitid, 1, NOBODY, buffer, 4, 0);
    CALL(waitid, 2, -1L, 0, 4, 0);
    CALL(waitid, 2, NOBODY, 0, 5, 0);
    CALL(waitid, 9, 0, 0, 4, 0);
    CALL(clone, CLONE_SIGHAND, 0, 0, 0, 0);
    CALL(clone, CLONE_THREAD, 0, 0, 0, 0);
    CALL(clone, CLONE_THREAD | CLONE_SIGHAND, 0, 0, 0, 0);
    CALL(execve, BAD, 0, 0);
    CALL(execve, "", 0, 0);
    CALL(execve, "none", 0, 0);
    CALL(execve, "file", 0, 0);
    CALL(execve, "file/x", 0, 0);
    CALL(execve, "d", 0, 0);
    CALL(execve, "program", 0, 0);
    CALL(execve, "program", BAD, 0);
    CALL(execveat, 999, "x", 0, 0, 0);
    CALL(execveat, fd, "x", 0, 0, 0);
    CALL(execveat, dir, "none", 0, 0, 0);
}

static void futexes(void)
{
    static uint32_t word;
    static struct timespec none, wrong = {0, 1000000000}, before = {-1, 0};

    CALL(futex, &word, 0, 1, 0);
    CALL(futex, &word, 128, 1, 0);
    CALL(futex, &word, 0, 0, &none);
    CALL(futex, &word, 0, 0, &wrong);
    CALL(futex, &word, 0, 1, &before);
    CALL(futex, &word, 0, 1, BAD);
    CALL(futex, (char *)&word + 1, 0, 0, 0);
    CALL(futex, (char *)&word + 1, 1, 1, 0);
    CALL(futex, BAD, 0, 0, 0);
    CALL(futex, BAD, 128, 0, 0);
    CALL(futex, KERNEL, 128, 0, 0);
    CALL(futex, KERNEL, 129, 1, 0);
    CALL(futex, KERNEL, 1, 1, 0);
    CALL(futex, BAD, 1, 1, 0);
    CALL(futex, BAD, 129, 1, 0);
    CALL(futex, &word, 1, 0, 0);
    CALL(futex, &word, 1, -1L, 0);
    CALL(futex, &word, UPPER | 1, UPPER, 0);
    CALL(futex, &word, 9, 0, &none, 0, 0);
    CALL(futex, &word, 9, 0, &none, 0, 1);
    CALL(futex, &word, 9 | 256, 0, &none, 0, ~0);
    CALL(futex, &word, 10, 1, 0, 0, 0);
    CALL(futex, &word, 10, 1, 0, 0, 1);
    CALL(futex, &word, 1 | 256, 1, 0);
    CALL(futex, &word, 0 | 256, 1, 0);
    CALL(futex, &word, 3, -1L, 0, &word, 0);
    CALL(futex, &word, 3, 1, -1L, &word, 0);
    CALL(futex, &word, 3, 1, 1, BAD, 0);
    CALL(futex, &word, 3, 1, 1, &word, 0);
    CALL(futex, &word, 4, 1, 1, &word, 1);
    CALL(futex, &word, 4, 1, 1, &word, 0);
    CALL(futex, &word, 5, 1, 1, &word, 0);
    CALL(futex, &word, 5, 1, 1, BAD, 0);
    CALL(futex, &word, 5, 1, 1, &word, 0x5f000000);
    CALL(futex, &word, 77, 1, 0);
    CALL(futex, &word, 2, 0, 0);
    TRY(set_tid_address, 0);
}

static void signals(void)
{
    static struct sigevent event;

    CALL(rt_sigaction, 0, 0, 0, 8);
    CALL(rt_sigaction, 65, 0, 0, 8);
    CALL(rt_sigaction, UPPER | 10, 0, buffer, 8);
    CALL(rt_sigaction, 10, 0, 0, 4);
    CALL(rt_sigaction, 9, 0, buffer, 8);
    CALL(rt_sigaction, 9, buffer + 100, 0, 8);
    CALL(rt_sigaction, 9, BAD, 0, 8);
    CALL(rt_sigaction, 10, BAD, 0, 8);
    CALL(rt_sigaction, 10, 0, BAD, 8);
    CALL(rt_sigaction, 0, BAD, 0, 8);
    CALL(rt_sigaction, -1L, 0, BAD, 8);
    CALL(rt_sigprocmask, UPPER, buffer + 100, 0, 8);
    CALL(rt_sigprocmask, UPPER | 3, buffer + 100, 0, 8);
    CALL(rt_sigprocmask, -1L, BAD, 0, 8);
    CALL(rt_sigprocmask, 0, buffer + 100, 0, UPPER | 8);
    CALL(rt_sigpending, buffer, 9);
    CALL(rt_sigpending, buffer, 8);
    CALL(rt_sigpending, BAD, 8);
    CALL(rt_sigpending, BAD, 0);
    CALL(rt_sigsuspend, buffer, 4);
    CALL(rt_sigsuspend, BAD, 8);
    buffer[0] = 0, buffer[1] = 0;
    CALL(rt_sigtimedwait, buffer + 100, 0, buffer, 8);
    CALL(rt_sigtimedwait, buffer + 100, 0, buffer, 4);
    CALL(rt_sigtimedwait, BAD, 0, buffer, 8);
    CALL(rt_sigtimedwait, buffer + 100, 0, BAD, 8);
    buffer[1] = 1000000000;
    CALL(rt_sigtimedwait, buffer + 100, 0, buffer, 8);
    buffer[0] = buffer[1] = 0;
    CALL(rt_sigqueueinfo, getpid(), 0, BAD);
    CALL(rt_sigqueueinfo, NOBODY, 0, buffer);
    CALL(rt_sigqueueinfo, NOBODY, 65, buffer);
    CALL(rt_sigqueueinfo, 1 << 30, 10, buffer);
    CALL(rt_sigqueueinfo, getpid(), 65, buffer);
    CALL(rt_sigqueueinfo, getpid(), 0, buffer);
    CALL(rt_tgsigqueueinfo, 0, getpid(), 0, buffer);
    CALL(rt_tgsigqueueinfo, getpid(), 0, 0, BAD);
    CALL(rt_tgsigqueueinfo, getpid(), NOBODY, 0, buffer);
    CALL(sigaltstack, BAD, 0);
    CALL(sigaltstack, 0, BAD);
    buffer[0] = (uint64_t)buffer, buffer[1] = 0, buffer[2] = 100;
    CALL(sigaltstack, buffer, 0);
    buffer[1] = 7;
    CALL(sigaltstack, buffer, 0);
    buffer[1] = 2;
    CALL(sigaltstack, buffer, 0);
    buffer[0] = buffer[1] = buffer[2] = 0;
    CALL(kill, -NOBODY, 0);
    CALL(kill, -NOBODY, 65);
    CALL(kill, 0, 65);
    CALL(kill, 0x80000000L, 0);
    CALL(tkill, -1L, 65);
    CALL(tkill, NOBODY, 65);
    CALL(tkill, getpid(), 65);
    CALL(tgkill, NOBODY, getpid(), 0);
    CALL(tgkill, 0, getpid(), 65);
    CALL(tgkill, getpid(), getpid(), 65);
    CALL(setitimer, 3, buffer, 0);
    CALL(setitimer, UPPER, buffer, 0);
    CALL(setitimer, 3, BAD, 0);
    CALL(setitimer, 0, buffer, BAD);
    CALL(setitimer, 3, 0, 0);
    buffer[3] = 1000000;
    CALL(setitimer, 0, buffer, 0);
    buffer[3] = 0, buffer[1] = NEGATIVE;
    CALL(setitimer, 0, buffer, 0);
    buffer[1] = 0;
    CALL(getitimer, 3, BAD);
    CALL(getitimer, UPPER | 1, buffer);
    CALL(getitimer, 0, BAD);
    CALL(alarm, UPPER);
    CALL(timer_create, 99, BAD, buffer);
    CALL(timer_create, 99, 0, buffer);
    CALL(timer_create, 4, 0, buffer);
    CALL(timer_create, 5, 0, buffer);
    CALL(timer_create, 1, 0, BAD);
    CALL(timer_create, 1, BAD, buffer);
    event.sigev_notify = 77;
    CALL(timer_create, 1, &event, buffer);
    event.sigev_notify = SIGEV_SIGNAL, event.sigev_signo = 0;
    CALL(timer_create, 1, &event, buffer);
    event.sigev_signo = 65;
    CALL(timer_create, 99, &event, buffer);
    event.sigev_signo = 65, event.sigev_notify = SIGEV_NONE;
    CALL(timer_create, 1, &event, buffer);
    event.sigev_signo = 10, event.sigev_notify = 4;
    CALL(timer_create, 1, &event, buffer);
    CALL(timer_create, UPPER | 1, 0, buffer);
    buffer[0] = 0;
    CALL(timer_settime, 99, 0, 0, 0);
    CALL(timer_settime, 99, 0, BAD, 0);
    CALL(timer_settime, 99, 0, buffer, 0);
    CALL(timer_settime, -1L, 0, buffer, 0);
    buffer[1] = 1000000000;
    CALL(timer_settime, 99, 0, buffer, 0);
    buffer[1] = 0;
    CALL(timer_gettime, 99, BAD);
    CALL(timer_getoverrun, 99);
    CALL(timer_delete, 99);
    CALL(timer_delete, -1L);
    CALL(clock_nanosleep, 4, 0, buffer, 0);
    CALL(clock_nanosleep, 5, 0, BAD, 0);
    CALL(clock_nanosleep, UPPER | 1, 0, buffer, BAD);
    CALL(clock_nanosleep, 1, 1, buffer, BAD);
}

static void names(void)
{
    CALL(mkdir, "d", 0700);
    CALL(mkdir, "", 0700);
    CALL(mkdir, "/", 0700);
    CALL(mkdir, ".", 0700);
    CALL(mkdir, "file/x", 0700);
    CALL(mkdir, "none/x", 0700);
    CALL(mkdir, path_of_255, 0700);
    CALL(mkdir, path_of_256, 0700);
    CALL(mkdir, "link", 0700);
    CALL(mkdir, "new/", UPPER | 0777);
    CALL(mkdirat, 999, "x", 0);
    CALL(mkdirat, fd, "x", 0);
    CALL(mkdirat, 999, "", 0);
    CALL(mknod, "n1", S_IFDIR, 0);
    CALL(mknod, "n1", S_IFLNK, 0);
    CALL(mknod, "n1", 0170000, 0);
    CALL(mknod, "file", S_IFREG, 0);
    CALL(mknod, "file", S_IFDIR, 0);
    CALL(mknod, "n1/", S_IFREG, 0);
    CALL(mknod, "n1", 0600, 0);
    CALL(mknod, "n2", S_IFIFO | 0600, 0);
    CALL(mknod, "n3", S_IFSOCK | 0600, 0);
    CALL(mknod, "n4", S_IFCHR | 0600, 0x103);
    CALL(mknod, BAD, S_IFREG, 0);
    CALL(symlink, "", "s1");
    CALL(symlink, "x", "");
    CALL(symlink, "x", "file");
    CALL(symlink, "x", "none/x");
    CALL(symlink, "x", "s1/");
    CALL(symlink, BAD, "s1");
    CALL(link, "none", "k1");
    CALL(link, "file", "d");
    CALL(link, "d", "k1");
    CALL(link, "file", "k1/");
    CALL(link, "file/", "k1");
    CALL(link, "", "k1");
    CALL(link, "file", "");
    CALL(linkat, dir, "file", dir, "k1", 1);
    CALL(linkat, 999, "file", 999, "k1", 0);
    CALL(linkat, fd, "", dir, "k2", 0x1000);
    CALL(linkat, dir, "link", dir, "k3", 0);
    CALL(linkat, dir, "link", dir, "k4", 0x400);
    CALL(unlink, "none");
    CALL(unlink, "d");
    CALL(unlink, "d/");
    CALL(unlink, "file/");
    CALL(unlink, "");
    CALL(unlink, ".");
    CALL(unlink, "..");
    CALL(unlink, "/");
    CALL(unlink, "file/x");
    CALL(rmdir, "file");
    CALL(rmdir, "none");
    CALL(rmdir, ".");
    CALL(rmdir, "d/.");
    CALL(rmdir, "d/..");
    CALL(rmdir, "..");
    CALL(rmdir, "/");
    CALL(rmdir, "d");
    CALL(rmdir, "link");
    CALL(rmdir, "link/");
    CALL(unlinkat, dir, "file", 1);
    CALL(unlinkat, dir, "d", 0x200);
    CALL(unlinkat, 999, "d", UPPER | 0x200);
    CALL(rename, "none", "x");
    CALL(rename, "file", "d");
    CALL(rename, "d", "file");
    CALL(rename, "d", "d/in");
    CALL(rename, "d/in/deep", "d");
    CALL(rename, "d", "d/in/deep");
    CALL(rename, "d", "d");
    CALL(rename, "file", "file");
    CALL(rename, "file", "x/");
    CALL(rename, "file/", "x");
    CALL(rename, ".", "x");
    CALL(rename, "d/..", "x");
    CALL(rename, "d", ".");
    CALL(rename, "", "x");
    CALL(rename, "file", "");
    CALL(rename, "file", "none/x");
    CALL(rename, "file", path_of_256);
    CALL(rename, "e", "d");
    CALL(rename, "file", "/proc/x");
    CALL(renameat2, dir, "file", dir, "other", 1);
    CALL(renameat2, dir, "file", dir, "other", 8);
    CALL(renameat2, dir, "file", dir, "other", 3);
    CALL(renameat2, dir, "file", dir, "none", 2);
    CALL(renameat2, dir, "none", dir, "file", 1);
    CALL(renameat2, 999, "file", 999, "x", 8);
    CALL(renameat2, 999, "file", 999, "x", 0);
    CALL(open, "d", O_CREAT, 0600);
    CALL(open, "d", O_WRONLY | O_CREAT, 0600);
    CALL(open, "d", O_RDONLY | O_TRUNC, 0600);
    CALL(open, "dx/", O_RDWR | O_CREAT, 0600);
    CALL(open, "file", O_CREAT | O_DIRECTORY, 0600);
    CALL(open, "link", O_CREAT | O_EXCL | O_RDWR, 0600);
    CALL(open, "link", O_NOFOLLOW, 0);
    CALL(open, "loop", 0, 0);
    CALL(open, "loop", O_CREAT | O_RDWR, 0600);
    CALL(open, "n3", 0, 0);
    CALL(open, "n2", O_WRONLY | O_NONBLOCK, 0);
    CALL(open, "none/x", O_CREAT | O_RDWR, 0600);
    CALL(open, "file/x", O_CREAT | O_RDWR, 0600);
    CALL(open, path_of_256, O_CREAT | O_RDWR, 0600);
    CALL(creat, "d", 0600);
    CALL(creat, "", 0600);
    CALL(fchdir, fd);
    CALL(fchdir, 999);
}

static void attributes(void)
{
    CALL(truncate, "file", -1L);
    CALL(truncate, "none", -1L);
    CALL(truncate, "none", 0);
    CALL(truncate, "d", 0);
    CALL(truncate, "n2", 0);
    CALL(truncate, "", 0);
    CALL(truncate, BAD, 0);
    CALL(truncate, "file", 1UL << 63);
    CALL(ftruncate, fd, -1L);
    CALL(ftruncate, 999, -1L);
    CALL(ftruncate, 999, 0);
    CALL(ftruncate, reader, 0);
    CALL(ftruncate, dir, 0);
    CALL(ftruncate, path_only, 0);
    CALL(ftruncate, pipe_in, 0);
    CALL(ftruncate, fd, 100);
    CALL(fallocate, fd, 0, -1L, 1);
    CALL(fallocate, fd, 0, 0, 0);
    CALL(fallocate, fd, 0, 0, -1L);
    CALL(fallocate, fd, 2, 0, 1);
    CALL(fallocate, fd, 0x1000, 0, 1);
    CALL(fallocate, fd, 0, (1UL << 63) - 1, 1);
    CALL(fallocate, fd, 0, (1UL << 63) - 1, (1UL << 63) - 1);
    CALL(fallocate, reader, 0, 0, 1);
    CALL(fallocate, reader, 0, 0, 0);
    CALL(fallocate, reader, 0x1000, 0, 1);
    CALL(fallocate, dir, 0, 0, 1);
    CALL(fallocate, pipe_in, 0, 0, 1);
    CALL(fallocate, pipe_out, 0, 0, 1);
    CALL(fallocate, 999, 0, -1L, 0);
    CALL(fallocate, path_only, 0, 0, 1);
    CALL(fallocate, fd, 0, 0, 200);
    CALL(fallocate, fd, 3, 0, 10);
    CALL(fallocate, fd, 1, 0, 5000);
    CALL(chmod, "none", 0);
    CALL(chmod, "", 0);
    CALL(chmod, "file", UPPER | 0600);
    CALL(chmod, "file", 0170600);
    CALL(fchmod, 999, 0);
    CALL(fchmod, path_only, 0);
    CALL(fchmodat, 999, "x", 0);
    CALL(fchmodat, 999, "", 0);
    CALL(chown, "none", 0, 0);
    CALL(chown, "file", -1L, -1L);
    CALL(fchown, path_only, 0, 0);
    CALL(fchownat, dir, "file", 0, 0, 1);
    CALL(fchownat, fd, "", 0, 0, 0x1000);
    CALL(fchownat, fd, "", 0, 0, 0);
    CALL(lchown, "dangling", 0, 0);
    CALL(chown, "dangling", 0, 0);
    CALL(utimensat, dir, "file", BAD, 0);
    CALL(utimensat, dir, "none", 0, 0);
    CALL(utimensat, dir, "file", 0, 1);
    CALL(utimensat, 999, 0, 0, 0);
    CALL(utimensat, fd, 0, 0, 0);
    CALL(utimensat, fd, 0, 0, 0x100);
    CALL(utimensat, path_only, 0, 0, 0);
    CALL(utimensat, -100L, 0, 0, 0);
    buffer[0] = 1, buffer[1] = 1000000000, buffer[2] = 1, buffer[3] = 0;
    CALL(utimensat, dir, "file", buffer, 0);
    CALL(utimensat, dir, "none", buffer, 0);
    CALL(utimes, "file", buffer);
    CALL(utimes, "none", buffer);
    buffer[1] = 0x3fffffff;
    CALL(utimensat, dir, "file", buffer, 0);
    buffer[1] = buffer[3] = 0x3ffffffe;
    CALL(utimensat, dir, "none", buffer, 0);
    CALL(utimensat, 999, "none", buffer, 77);
    buffer[1] = buffer[3] = NEGATIVE;
    CALL(utimensat, dir, "file", buffer, 0);
    memset(buffer, 0, 32);
    CALL(futimesat, 999, "file", 0);
    CALL(futimesat, dir, "file", BAD);
    CALL(utimes, "none", 0);
    CALL(utime, "file", BAD);
    CALL(utime, "none", 0);
    CALL(statx, dir, "file", 0, 0x80000000L, buffer);
    CALL(statx, dir, "file", 0x6000, 0, buffer);
    CALL(statx, dir, "file", 1, 0, buffer);
    CALL(statx, dir, "file", 0, 0, BAD);
    CALL(statx, fd, "", 0x1000, 0, buffer);
    CALL(statx, fd, "", 0, 0, buffer);
    CALL(statx, 999, "", 0x1000, 0, buffer);
    CALL(newfstatat, dir, "file", buffer, 0x2000);
    CALL(faccessat2, dir, "file", 0, 0x800);
    CALL(faccessat2, dir, "file", 9, 0);
    CALL(faccessat2, fd, "", 0, 0x1000);
}

static void pipes(void)
{
    static struct iovec piece;

    piece = (struct iovec){buffer, 1};
    CALL(pipe, BAD);
    CALL(pipe, KERNEL);
    CALL(pipe2, buffer, 1);
    CALL(pipe2, BAD, 1);
    CALL(pipe2, BAD, UPPER);
    CALL(lseek, pipe_in, 0, 0);
    CALL(lseek, pipe_in, 0, 77);
    CALL(pread64, pipe_in, buffer, 1, 0);
    CALL(pread64, pipe_in, buffer, 1, -1L);
    CALL(pwrite64, pipe_in, buffer, 1, 0);
    CALL(preadv, pipe_in, &piece, 1, 0, 0);
    CALL(preadv, pipe_in, BAD, 1, 0, 0);
    CALL(pwritev, pipe_out, &piece, 1, 0, 0);
    CALL(pwritev, pipe_in, &piece, 1, 0, 0);
    CALL(pwritev, reader, &piece, 1, 0, 0);
    CALL(preadv2, pipe_in, &piece, 1, 0, 0, 0);
    CALL(preadv2, fd, &piece, 1, 0, 0, 0x4000);
    CALL(preadv2, 999, &piece, 1, 0, 0, 0x4000);
    CALL(preadv2, fd, BAD, 1, 0, 0, 0x4000);
    CALL(preadv2, fd, &piece, 1, -2L, 0, 0);
    CALL(preadv2, fd, &piece, 1, -1L, 0, UPPER);
    CALL(pwritev2, pipe_in, &piece, 1, -1L, 0, 0);
    CALL(read, pipe_out, buffer, 1);
    CALL(read, pipe_in, buffer, 1);
    CALL(read, pipe_in, BAD, 0);
    CALL(write, pipe_in, buffer, 1);
    CALL(write, pipe_out, BAD, 1);
    CALL(write, pipe_out, BAD, 0);
    CALL(read, pipe_in, buffer, 0);
    CALL(fsync, pipe_in);
    CALL(fdatasync, path_only);
    CALL(ioctl, pipe_in, FIONREAD, BAD);
    CALL(ioctl, pipe_in, FIONREAD, buffer);
    CALL(ioctl, pipe_in, TCGETS, buffer);
    CALL(ioctl, fd, TIOCGPGRP, buffer);
    CALL(ioctl, fd, FIONREAD, buffer);
    CALL(ioctl, fd, FIONBIO, BAD);
    CALL(ioctl, 999, FIONBIO, BAD);
    CALL(ioctl, pipe_in, FIOCLEX, 0);
    CALL(memfd_create, BAD, 0);
    CALL(memfd_create, "x", 0x100);
    CALL(memfd_create, BAD, 0x100);
    CALL(memfd_create, path_of_255, 0);
    CALL(memfd_create, "x", 24);
    CALL(sendfile, fd, pipe_in, 0, 10);
    CALL(sendfile, fd, pipe_in, buffer, 10);
    CALL(sendfile, fd, reader, BAD, 10);
    CALL(sendfile, 999, reader, 0, 10);
    CALL(sendfile, fd, 999, 0, 10);
    CALL(sendfile, reader, reader, 0, 10);
    CALL(sendfile, fd, dir, 0, 10);
    buffer[0] = NEGATIVE;
    CALL(sendfile, fd, reader, buffer, 10);
    buffer[0] = 0;
    CALL(copy_file_range, reader, 0, fd, 0, 10, 1);
    CALL(copy_file_range, 999, 0, fd, 0, 10, 1);
    CALL(copy_file_range, reader, 0, 999, 0, 10, 0);
    CALL(copy_file_range, dir, 0, fd, 0, 10, 0);
    CALL(copy_file_range, pipe_in, 0, fd, 0, 10, 0);
    CALL(copy_file_range, reader, 0, reader, 0, 10, 0);
    CALL(copy_file_range, reader, BAD, fd, 0, 10, 0);
    CALL(copy_file_range, reader, 0, fd, 0, 10, 0);
    CALL(copy_file_range, reader, 0, fd, 0, 0, 0);
    CALL(close_range, 5, 4, 0);
    CALL(close_range, 900, 1000, 8);
    CALL(close_range, 900, -1L, 0);
    CALL(close_range, 900, 1000, UPPER);
}

static void waits(void)
{
    static struct pollfd fds[4];
    static struct timeval now, wrong = {0, -1}, much = {0, 0};
    static struct timespec none, bad = {0, 1000000000};

    CALL(poll, 0, 0, 0);
    CALL(poll, BAD, 0, 0);
    CALL(poll, BAD, 1, 0);
    CALL(poll, fds, -1L, 0);
    CALL(poll, fds, 1 << 30, 0);
    CALL(poll, fds, UPPER, 0);
    fds[0] = (struct pollfd){999, POLLIN, 7};
    CALL(poll, fds, 1, -1);
    SHOW("revents", fds[0].revents);
    fds[0] = (struct pollfd){-1, POLLIN, 7};
    CALL(poll, fds, 1, 0);
    SHOW("revents", fds[0].revents);
    fds[0] = (struct pollfd){path_only, POLLIN, 7};
    CALL(poll, fds, 1, 0);
    SHOW("revents", fds[0].revents);
    fds[0] = (struct pollfd){fd, -1, 0};
    CALL(poll, fds, 1, 0);
    SHOW("revents", fds[0].revents);
    fds[0] = (struct pollfd){dir, -1, 0};
    CALL(poll, fds, 1, 0);
    SHOW("revents", fds[0].revents);
    fds[0] = (struct pollfd){pipe_in, -1, 0};
    CALL(poll, fds, 1, 0);
    SHOW("revents", fds[0].revents);
    fds[0] = (struct pollfd){pipe_out, -1, 0};
    CALL(poll, fds, 1, 0);
    SHOW("revents", fds[0].revents);
    CALL(ppoll, fds, 0, BAD, 0, 8);
    CALL(ppoll, fds, 0, &bad, 0, 8);
    CALL(ppoll, fds, 0, &none, BAD, 8);
    CALL(ppoll, fds, 0, &none, BAD, 4);
    CALL(ppoll, fds, 0, &none, 0, 4);
    CALL(select, -1L, 0, 0, 0, &now);
    CALL(select, 0, 0, 0, 0, &now);
    CALL(select, 0, BAD, BAD, BAD, &now);
    CALL(select, 10, BAD, 0, 0, &now);
    CALL(select, 10, 0, 0, 0, BAD);
    CALL(select, 0, 0, 0, 0, &wrong);
    CALL(select, 1L << 30, 0, 0, 0, &now);
    much.tv_usec = 1000001;
    buffer[0] = 1UL << fd;
    CALL(select, 10, buffer, 0, 0, &much);
    buffer[0] = 1UL << 63;
    CALL(select, 64, buffer, 0, 0, &now);
    buffer[0] = 0;
    CALL(pselect6, 0, 0, 0, 0, &bad, 0);
    CALL(pselect6, 0, 0, 0, 0, &none, BAD);
    CALL(pselect6, -1L, 0, 0, 0, &none, 0);
}

static void locks(void)
{
    static struct flock lock;

    CALL(flock, fd, 0);
    CALL(flock, 999, 77);
    CALL(flock, 999, 2);
    CALL(flock, path_only, 2);
    CALL(flock, fd, UPPER | 2);
    CALL(flock, fd, 4);
    CALL(flock, pipe_in, 1);
    CALL(fcntl, fd, F_SETLK, BAD);
    CALL(fcntl, 999, F_SETLK, BAD);
    lock = (struct flock){.l_type = 77};
    CALL(fcntl, fd, F_SETLK, &lock);
    CALL(fcntl, fd, F_GETLK, &lock);
    lock = (struct flock){.l_type = F_UNLCK};
    CALL(fcntl, fd, F_GETLK, &lock);
    lock = (struct flock){.l_type = F_WRLCK, .l_whence = 77};
    CALL(fcntl, fd, F_SETLK, &lock);
    lock = (struct flock){.l_type = F_WRLCK, .l_start = -1};
    CALL(fcntl, fd, F_SETLK, &lock);
    lock = (struct flock){.l_type = F_WRLCK, .l_start = INT64_MAX, .l_len = INT64_MAX};
    CALL(fcntl, fd, F_SETLK, &lock);
    lock = (struct flock){.l_type = F_WRLCK, .l_start = 0, .l_len = -1};
    CALL(fcntl, fd, F_SETLK, &lock);
    lock = (struct flock){.l_type = F_WRLCK, .l_start = 5, .l_len = INT64_MIN};
    CALL(fcntl, fd, F_SETLK, &lock);
    lock = (struct flock){.l_type = F_WRLCK};
    CALL(fcntl, reader, F_SETLK, &lock);
    lock = (struct flock){.l_type = F_RDLCK};
    CALL(fcntl, pipe_out, F_SETLK, &lock);
    CALL(fcntl, path_only, F_SETLK, &lock);
    lock = (struct flock){.l_type = F_WRLCK, .l_pid = 7};
    CALL(fcntl, fd, F_OFD_SETLK, &lock);
    CALL(fcntl, fd, F_SETLK, &lock);
    CALL(fcntl, fd, F_GETPIPE_SZ, 0);
    CALL(fcntl, fd, F_SETPIPE_SZ, 0);
    CALL(fcntl, pipe_in, F_GETPIPE_SZ, 0);
    CALL(fcntl, reader, F_GET_SEALS, 0);
    CALL(fcntl, fd, F_DUPFD, UPPER | (1L << 30));
    CALL(fcntl, 999, F_DUPFD, -1L);
    CALL(fcntl, fd, F_SETFL, UPPER);
    CALL(fcntl, path_only, F_SETFL, 0);
    CALL(fcntl, path_only, F_SETOWN, 0);
    CALL(fcntl, fd, F_GETOWN, 0);
}

static void make(const char *name, mode_t mode)
{
    long made = open(name, O_RDWR | O_CREAT | O_EXCL, mode);

    if (made < 0 || write(made, "text\n", 5) != 5 || close(made))
        exit(3);
}

static void prepare(void)
{
    int ends[2];

    make("file", 0600);
    make("other", 0600);
    make("program", 0700);
    if (mkdir("d", 0700) || mkdir("d/in", 0700) || mkdir("d/in/deep", 0700) || mkdir("e", 0700) ||
        symlink("file", "link") || symlink("loop", "loop") || symlink("nowhere", "dangling"))
        exit(3);
    memset(path_of_256, 'x', 256);
    memset(path_of_255, 'y', 255);
    fd = open("file", O_RDWR);
    reader = open("other", O_RDONLY);
    path_only = open("file", O_PATH);
    dir = open(".", O_RDONLY);
    if (fd < 0 || reader < 0 || path_only < 0 || dir < 0 || pipe2(ends, O_NONBLOCK))
        exit(3);
    pipe_in = ends[0], pipe_out = ends[1];
}

static void leave(const char *work)
{
    static const char *const left[] = {"file", "other", "program", "link", "loop", "dangling",
                                       "n1",   "n2",    "n3",      "n4",   "k1",   "k2",
                                       "k3",   "k4",    "x",       "s1"};
    static const char *const folders[] = {"d/in/deep", "d/in", "d", "e", "new"};

    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
        unlink(left[i]);
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        rmdir(folders[i]);
    rmdir(path_of_255);
    SHOW("the directory is empty", rmdir(work));
}

int main(void)
{
    char work[] = "/dev/shm/procerrno-XXXXXX";

    signal(SIGPIPE, SIG_IGN);
    umask(022);
    if (!mkdtemp(work) || chdir(work))
        return 3;
    prepare();
    processes();
    ends();
    futexes();
    signals();
    names();
    attributes();
    pipes();
    waits();
    locks();
    leave(work);
    return 0;
}
