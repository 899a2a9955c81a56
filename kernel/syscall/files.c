/*
 * System calls about descriptors: opening, closing, duplicating, fcntl and flock.
 */
#include "fs/file_lock.h"
#include "fs/pipe.h"
#include "fs/tmpfs.h"
#include "kernel/syscall/path.h"
#include "lib/format.h"

/* With O_PATH, Linux looks at no others. */
#define O_PATH_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static s64 install(struct file *file, u32 flags)
{
    int fd = fd_install(process_current()->files, file, 0, flags & O_CLOEXEC);
    if (fd < 0)
        file_put(file);
    return fd;
}

static s64 open_at(u64 dirfd, u64 user_path, u32 flags, u32 mode)
{
    struct syscall_at at;
    if (flags & O_PATH)
        flags &= O_PATH_FLAGS;
    if (flags & O_TMPFILE &&
        ((flags & (O_CREAT | O_DIRECTORY)) != O_DIRECTORY || (flags & O_ACCMODE) == O_RDONLY))
        return -EINVAL;
    if ((flags & (O_CREAT | O_DIRECTORY)) == (O_CREAT | O_DIRECTORY))
        return -EINVAL;
    int error = syscall_at_begin(&at, dirfd, user_path);
    if (error)
        return error;
    mode &= ~process_current()->fs->umask & 07777;
    struct file *file = file_open(at.dir, at.dir_path, at.path, flags, mode, &error);
    syscall_at_end(&at);
    if (!file)
        return error;
    if (!(flags & O_PATH))
        file->flags |= O_LARGEFILE; /* every file may be large on x86-64 */
    return install(file, flags);
}

s64 sys_open(const u64 *a)
{
    return open_at((u64)AT_FDCWD, a[0], a[1], a[2]);
}

s64 sys_openat(const u64 *a)
{
    return open_at(a[0], a[1], a[2], a[3]);
}

s64 sys_creat(const u64 *a)
{
    return open_at((u64)AT_FDCWD, a[0], O_CREAT | O_WRONLY | O_TRUNC, a[1]);
}

s64 sys_close(const u64 *a)
{
    return fd_close(process_current()->files, a[0]);
}

#define CLOSE_RANGE_CLOEXEC 4u

s64 sys_close_range(const u64 *a)
{
    struct fd_table *files = process_current()->files;
    u32 first = a[0], last = MIN((u32)a[1], READ_ONCE(files->capacity));
    if (((u32)a[2] & ~CLOSE_RANGE_CLOEXEC) || (u32)a[1] < first)
        return -EINVAL;
    for (u32 fd = first; fd <= last; fd++) {
        if (a[2] & CLOSE_RANGE_CLOEXEC)
            fd_flags(files, fd, 1);
        else
            fd_close(files, fd);
    }
    return 0;
}

/* ---- Duplicating ---- */

static s64 duplicate(u64 fd, int min, bool close_on_exec)
{
    struct file *file = syscall_file_or_path(fd);
    if (!file)
        return -EBADF;
    int new_fd = fd_install(process_current()->files, file, min, close_on_exec);
    if (new_fd < 0)
        file_put(file);
    return new_fd;
}

s64 sys_dup(const u64 *a)
{
    return duplicate(a[0], 0, false);
}

static s64 duplicate_to(u64 fd, u64 target, bool close_on_exec)
{
    struct file *file = syscall_file_or_path(fd);
    if (!file)
        return -EBADF;
    int result = fd_replace(process_current()->files, target, file, close_on_exec);
    if (result < 0)
        file_put(file);
    return result;
}

s64 sys_dup2(const u64 *a)
{
    if ((u32)a[0] != (u32)a[1])
        return duplicate_to(a[0], a[1], false);
    return fd_flags(process_current()->files, a[0], -1) < 0 ? -EBADF : (int)a[0];
}

s64 sys_dup3(const u64 *a)
{
    if ((u32)a[0] == (u32)a[1] || ((u32)a[2] & ~(u32)O_CLOEXEC))
        return -EINVAL;
    return duplicate_to(a[0], a[1], a[2] & O_CLOEXEC);
}

/* ---- Locks ---- */

/* struct flock of Linux x86-64. */
struct flock64 {
    s16 type, whence;
    u32 pad0;
    s64 start, len;
    s32 pid;
    u32 pad1;
};
_Static_assert(sizeof(struct flock64) == 32, "struct flock of x86-64");

enum { F_RDLCK = 0, F_WRLCK = 1, F_UNLCK = 2 };
enum { LOCK_SH = 1, LOCK_EX = 2, LOCK_NB = 4, LOCK_UN = 8 };

/* The range of a struct flock as first and last byte. => 0, -EINVAL, -EOVERFLOW */
static int range_of(struct file *file, const struct flock64 *lock, struct file_lock_spec *spec)
{
    s64 start = lock->start, last;
    if (lock->whence == SEEK_CUR)
        start += file->pos;
    else if (lock->whence == SEEK_END)
        start += READ_ONCE(file->inode->cache.size_bytes);
    else if (lock->whence != SEEK_SET)
        return -EINVAL;
    if (__builtin_add_overflow(start, lock->len - (lock->len > 0), &last))
        return -EOVERFLOW;
    if (lock->len < 0) { /* the bytes before start */
        s64 behind = start;
        start = last;
        last = behind - 1;
    }
    if (start < 0)
        return -EINVAL;
    spec->first = start;
    spec->last = lock->len == 0 ? FILE_LOCK_TO_END : (u64)last;
    return 0;
}

static int spec_of(struct file *file, const struct flock64 *lock, bool of_file,
                   struct file_lock_spec *spec)
{
    static const enum file_lock_mode modes[] = {FILE_LOCK_SHARED, FILE_LOCK_EXCLUSIVE,
                                                FILE_LOCK_NONE};
    if (lock->type < F_RDLCK || lock->type > F_UNLCK || (of_file && lock->pid))
        return -EINVAL;
    *spec = (struct file_lock_spec){
        .kind = FILE_LOCK_RANGE,
        .mode = modes[lock->type],
        .owner = of_file ? (const void *)file : (const void *)process_current()->files,
        .pid = of_file ? -1 : (s32)process_current()->pid,
    };
    return range_of(file, lock, spec);
}

static s64 get_lock(struct file *file, struct flock64 *lock, struct file_lock_spec *spec, u64 user)
{
    if (spec->mode == FILE_LOCK_NONE)
        return -EINVAL;
    if (file_lock_test(file->inode, spec)) {
        lock->type = spec->mode == FILE_LOCK_SHARED ? F_RDLCK : F_WRLCK;
        lock->whence = SEEK_SET;
        lock->start = spec->first;
        lock->len = spec->last == FILE_LOCK_TO_END ? 0 : spec->last - spec->first + 1;
        lock->pid = spec->pid;
    } else {
        lock->type = F_UNLCK;
    }
    return copy_to_user(user, lock, sizeof(*lock));
}

static s64 set_lock(struct file *file, const struct file_lock_spec *spec, bool waits)
{
    if ((spec->mode == FILE_LOCK_SHARED && !file->mapped.can_read) ||
        (spec->mode == FILE_LOCK_EXCLUSIVE && !file->mapped.can_write))
        return -EBADF;
    return file_lock_set(file->inode, spec, waits);
}

enum lock_request { LOCK_GET, LOCK_SET, LOCK_WAIT };

static s64 lock_range(struct file *file, enum lock_request request, bool of_file, u64 user)
{
    struct flock64 lock;
    struct file_lock_spec spec;
    if (copy_from_user(&lock, user, sizeof(lock)))
        return -EFAULT;
    int error = spec_of(file, &lock, of_file, &spec);
    if (error)
        return error;
    if (request == LOCK_GET)
        return get_lock(file, &lock, &spec, user);
    return set_lock(file, &spec, request == LOCK_WAIT);
}

s64 sys_flock(const u64 *a)
{
    struct file_lock_spec spec = {.kind = FILE_LOCK_WHOLE, .last = FILE_LOCK_TO_END};
    switch ((u32)a[1] & ~(u32)LOCK_NB) {
    case LOCK_SH: spec.mode = FILE_LOCK_SHARED; break;
    case LOCK_EX: spec.mode = FILE_LOCK_EXCLUSIVE; break;
    case LOCK_UN: spec.mode = FILE_LOCK_NONE; break;
    default: return -EINVAL;
    }
    struct file *file = syscall_file(a[0]);
    if (!file)
        return -EBADF;
    spec.owner = file;
    s64 result =
        file->flags & O_PATH ? -EBADF : file_lock_set(file->inode, &spec, !(a[1] & LOCK_NB));
    file_put(file);
    return result;
}

/* ---- fcntl ---- */

enum {
    F_DUPFD = 0,
    F_GETFD = 1,
    F_SETFD = 2,
    F_GETFL = 3,
    F_SETFL = 4,
    F_GETLK = 5,
    F_SETLK = 6,
    F_SETLKW = 7,
    F_SETOWN = 8,
    F_GETOWN = 9,
    F_OFD_GETLK = 36,
    F_OFD_SETLK = 37,
    F_OFD_SETLKW = 38,
    F_DUPFD_CLOEXEC = 1030,
    F_SETPIPE_SZ = 1031,
    F_GETPIPE_SZ = 1032,
    F_GET_SEALS = 1034,
};
#define SETTABLE_FLAGS (O_APPEND | O_NONBLOCK)
#define F_SEAL_SEAL    1

static s64 set_pipe_size(struct file *file, u64 wanted)
{
    s64 capacity = pipe_capacity(file);
    if (capacity < 0)
        return capacity;
    return wanted <= (u64)capacity ? capacity : -EPERM;
}

static s64 control_file(struct file *file, u32 command, u64 argument)
{
    switch (command) {
    case F_GETFL: return file->flags & ~(u32)O_CLOEXEC;
    case F_SETFL:
        file->flags = (file->flags & ~SETTABLE_FLAGS) | (argument & SETTABLE_FLAGS);
        return 0;
    case F_GETLK: return lock_range(file, LOCK_GET, false, argument);
    case F_SETLK: return lock_range(file, LOCK_SET, false, argument);
    case F_SETLKW: return lock_range(file, LOCK_WAIT, false, argument);
    case F_OFD_GETLK: return lock_range(file, LOCK_GET, true, argument);
    case F_OFD_SETLK: return lock_range(file, LOCK_SET, true, argument);
    case F_OFD_SETLKW: return lock_range(file, LOCK_WAIT, true, argument);
    case F_SETOWN:
    case F_GETOWN: return 0; /* nothing sends SIGIO */
    case F_SETPIPE_SZ: return set_pipe_size(file, argument);
    case F_GETPIPE_SZ: return pipe_capacity(file);
    case F_GET_SEALS: return F_SEAL_SEAL; /* there are none and there can be none */
    default: return -EINVAL;
    }
}

static bool works_on_names(u32 command)
{
    return command == F_GETFL;
}

static s64 duplicate_above(struct fd_table *files, u64 fd, u32 min, bool close_on_exec)
{
    if (fd_flags(files, fd, -1) < 0)
        return -EBADF;
    return min >= limit_current(LIMIT_NOFILE) ? -EINVAL : duplicate(fd, min, close_on_exec);
}

/*
 * Another thread may have closed the descriptor while this one waited for its lock. That close has dropped the process's
 * locks on the file; one that is set behind it would stay for ever.
 */
static s64 settle_lock(struct fd_table *files, int fd, struct file *file)
{
    struct file *now = fd_get(files, fd);
    if (now)
        file_put(now);
    if (now == file)
        return 0;
    file_lock_drop_owner(file->inode, files);
    return -EBADF;
}

s64 sys_fcntl(const u64 *a)
{
    struct fd_table *files = process_current()->files;
    u32 command = a[1];
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
        return duplicate_above(files, a[0], a[2], command == F_DUPFD_CLOEXEC);
    if (command == F_GETFD)
        return fd_flags(files, a[0], -1);
    if (command == F_SETFD) {
        int result = fd_flags(files, a[0], a[2] & 1);
        return MIN(result, 0);
    }
    struct file *file = syscall_file_or_path(a[0]);
    if (!file)
        return -EBADF;
    s64 result = -EBADF;
    if (!(file->flags & O_PATH) || works_on_names(command))
        result = control_file(file, command, a[2]);
    if (result == 0 && (command == F_SETLK || command == F_SETLKW))
        result = settle_lock(files, a[0], file);
    file_put(file);
    return result;
}

/* ---- Files without a name ---- */

#define MFD_CLOEXEC       1u
#define MFD_ALLOW_SEALING 2u
#define MFD_NOEXEC_SEAL   8u
#define MFD_EXEC          16u
#define MFD_EITHER        (MFD_NOEXEC_SEAL | MFD_EXEC) /* they exclude each other */
#define MFD_NAME_MAX      249                          /* so that "memfd:" and it fit a name */

s64 sys_memfd_create(const u64 *a)
{
    char name[MFD_NAME_MAX + 1], shown[sizeof("/memfd: (deleted)") + MFD_NAME_MAX];
    u32 flags = a[1];
    int error;
    if (flags & ~(MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EITHER) ||
        (flags & MFD_EITHER) == MFD_EITHER)
        return -EINVAL;
    ssize_t n = copy_string_from_user(name, a[0], sizeof(name));
    if (n < 0)
        return n == -ENAMETOOLONG ? -EINVAL : n;
    format_to(shown, sizeof(shown), "/memfd:%s (deleted)", name);
    struct file *file = tmpfs_open_unnamed(shown, 0, TMPFS_MEMFD, &error);
    if (!file)
        return error;
    file->flags |= O_LARGEFILE;
    return install(file, flags & MFD_CLOEXEC ? O_CLOEXEC : 0);
}

s64 syscall_install_pair(struct file *ends[2], u32 flags, u64 user_fds)
{
    struct fd_table *files = process_current()->files;
    s32 fds[2];
    fds[0] = install(ends[0], flags);
    if (fds[0] < 0) {
        file_put(ends[1]);
        return fds[0];
    }
    fds[1] = install(ends[1], flags);
    if (fds[1] >= 0 && copy_to_user(user_fds, fds, sizeof(fds)) == 0)
        return 0;
    s64 error = fds[1] < 0 ? fds[1] : -EFAULT;
    fd_close(files, fds[0]);
    if (fds[1] >= 0)
        fd_close(files, fds[1]);
    return error;
}

s64 sys_pipe2(const u64 *a)
{
    struct file *ends[2];
    if ((u32)a[1] & ~(u32)(O_CLOEXEC | O_NONBLOCK))
        return -EINVAL;
    int error = pipe_create(a[1], ends);
    return error ? error : syscall_install_pair(ends, (u32)a[1], a[0]);
}

s64 sys_pipe(const u64 *a)
{
    return sys_pipe2((const u64[]){a[0], 0});
}
