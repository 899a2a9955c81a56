/*
 * System calls that move bytes of open files, or talk about their pages.
 */
#include "fs/pipe.h"
#include "kernel/syscall/iovec.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/signal.h"
#include "mm/file_read.h"

typedef ssize_t (*transfer_fn)(struct file *file, u64 user_buf, size_t len, u64 *pos);

/* Nobody reads any more: the writer gets the signal too. */
static s64 with_signal(s64 result)
{
    if (result == -EPIPE)
        signal_send_self(SIGPIPE);
    return result;
}

static bool may(const struct file *file, transfer_fn transfer)
{
    return transfer == file_read ? file->mapped.can_read : file->mapped.can_write;
}

static s64 transfer_one(u64 fd, u64 buf, u64 len, transfer_fn transfer)
{
    struct file *file = syscall_file(fd);
    s64 result = -EBADF;
    if (!file)
        return result;
    if (may(file, transfer))
        result = user_range_is_ok(buf, len) ? transfer(file, buf, MIN(len, RW_MAX_BYTES), NULL)
                                            : -EFAULT;
    file_put(file);
    return result;
}

s64 sys_read(const u64 *a)
{
    return transfer_one(a[0], a[1], a[2], file_read);
}

s64 sys_write(const u64 *a)
{
    return with_signal(transfer_one(a[0], a[1], a[2], file_write));
}

static s64 transfer_at(u64 fd, u64 buf, u64 len, s64 pos, transfer_fn transfer)
{
    if (pos < 0)
        return -EINVAL;
    struct file *file = syscall_file(fd);
    if (!file)
        return -EBADF;
    s64 result = -EBADF;
    u64 at = pos;
    if (!file->ops->is_seekable)
        result = -ESPIPE;
    else if (may(file, transfer))
        result =
            user_range_is_ok(buf, len) ? transfer(file, buf, MIN(len, RW_MAX_BYTES), &at) : -EFAULT;
    file_put(file);
    return result;
}

s64 sys_pread64(const u64 *a)
{
    return transfer_at(a[0], a[1], a[2], a[3], file_read);
}

s64 sys_pwrite64(const u64 *a)
{
    return transfer_at(a[0], a[1], a[2], a[3], file_write);
}

/* => bytes, or an error with nothing transferred */
static s64 transfer_all(struct file *file, const struct iovec *iov, u64 count, u64 *pos,
                        transfer_fn transfer)
{
    s64 done = 0, n = 0;
    for (u64 i = 0; i < count; i++) {
        u64 len = MIN(iov[i].len, RW_MAX_BYTES - (u64)done);
        n = transfer(file, iov[i].base, len, pos);
        if (n > 0)
            done += n;
        if (n < (s64)len || (u64)done == RW_MAX_BYTES)
            break;
    }
    return done > 0 || n >= 0 ? done : n;
}

/*
 * By the file's own position: the lock is kept for the whole vector, so that two vectors written through one open file
 * never mix, also in pipes and on terminals. Their readers only wait for bytes, and take no lock.
 */
static s64 transfer_all_locked(struct file *file, const struct iovec *iov, u64 count,
                               transfer_fn transfer)
{
    bool seeks = file->ops->is_seekable;
    if (!seeks && (transfer == file_read || count < 2))
        return transfer_all(file, iov, count, NULL, transfer);
    mutex_lock(&file->pos_lock);
    s64 result = transfer_all(file, iov, count, seeks ? &file->pos : NULL, transfer);
    mutex_unlock(&file->pos_lock);
    return result;
}

#define RWF_HIPRI   1u
#define RWF_DSYNC   2u
#define RWF_SYNC    4u
#define RWF_IGNORED (RWF_HIPRI | RWF_DSYNC | RWF_SYNC)

/* pos NULL: the file's own position. */
static s64 transfer_vector_flags(u64 fd, u64 user_iov, u64 count, u64 *pos, u32 flags,
                                 transfer_fn transfer)
{
    struct iovec few[IOV_ON_STACK], *iov;
    struct file *file = syscall_file(fd);
    if (!file)
        return -EBADF;
    s64 result = -EBADF;
    if (pos && !file->ops->is_seekable)
        result = -ESPIPE;
    else if (may(file, transfer))
        result = iovecs_get(user_iov, count, true, few, &iov);
    if (!result && (flags & ~RWF_IGNORED)) {
        result = -EOPNOTSUPP;
        iovecs_free(iov, few);
    } else if (!result) {
        result = pos ? transfer_all(file, iov, count, pos, transfer)
                     : transfer_all_locked(file, iov, count, transfer);
        iovecs_free(iov, few);
    }
    file_put(file);
    return result;
}

static s64 transfer_vector(u64 fd, u64 user_iov, u64 count, u64 *pos, transfer_fn transfer)
{
    return transfer_vector_flags(fd, user_iov, count, pos, 0, transfer);
}

s64 sys_readv(const u64 *a)
{
    return transfer_vector(a[0], a[1], a[2], NULL, file_read);
}

s64 sys_writev(const u64 *a)
{
    return with_signal(transfer_vector(a[0], a[1], a[2], NULL, file_write));
}

s64 sys_preadv(const u64 *a)
{
    u64 pos = a[3];
    return (s64)pos < 0 ? -EINVAL : transfer_vector(a[0], a[1], a[2], &pos, file_read);
}

s64 sys_pwritev(const u64 *a)
{
    u64 pos = a[3];
    return (s64)pos < 0 ? -EINVAL : transfer_vector(a[0], a[1], a[2], &pos, file_write);
}

/* preadv2 and pwritev2(fd, iov, n, pos, high half of pos, flags): position -1 is the file's own. */
static s64 transfer_vector2(const u64 *a, transfer_fn transfer)
{
    u64 pos = a[3];
    if ((s64)pos < -1)
        return -EINVAL;
    return transfer_vector_flags(a[0], a[1], a[2], (s64)pos == -1 ? NULL : &pos, a[5], transfer);
}

s64 sys_preadv2(const u64 *a)
{
    return transfer_vector2(a, file_read);
}

s64 sys_pwritev2(const u64 *a)
{
    return with_signal(transfer_vector2(a, file_write));
}

/* ---- vmsplice ---- */

#define SPLICE_F_NONBLOCK 2u
#define SPLICE_F_ALL      15u

/* => bytes, or an error with nothing transferred */
static s64 give_all(struct file *file, const struct iovec *iov, u64 count, bool nonblocking)
{
    struct mm *mm = process_current()->mm;
    s64 done = 0, n = 0;
    for (u64 i = 0; i < count && n >= 0; i++) {
        /* Behind the first bytes nothing is waited for. */
        n = pipe_give(file, mm, iov[i].base, iov[i].len, nonblocking || done);
        done += MAX(n, 0);
        if (n < (s64)iov[i].len)
            break;
    }
    return done ? done : n;
}

/* vmsplice(pipe, iov, n, flags): into the end that is written, or out of the other. */
s64 sys_vmsplice(const u64 *a)
{
    struct iovec few[IOV_ON_STACK], *iov;
    u32 flags = a[3];
    struct file *file = syscall_file(a[0]);
    if (!file)
        return -EBADF;
    s64 result = pipe_capacity(file) < 0 ? -EBADF : flags & ~SPLICE_F_ALL ? -EINVAL : 0;
    if (!result)
        result = iovecs_get(a[1], a[2], true, few, &iov);
    if (!result) {
        result = file->mapped.can_write ? give_all(file, iov, a[2], flags & SPLICE_F_NONBLOCK)
                                        : transfer_all(file, iov, a[2], NULL, file_read);
        iovecs_free(iov, few);
    }
    file_put(file);
    return with_signal(result);
}

s64 sys_lseek(const u64 *a)
{
    struct file *file = syscall_file(a[0]);
    if (!file)
        return -EBADF;
    s64 result = (u32)a[2] > SEEK_HOLE ? -EINVAL : file_seek(file, a[1], a[2]);
    file_put(file);
    return result;
}

enum { FIONREAD = 0x541b, FIONBIO = 0x5421, FIONCLEX = 0x5450, FIOCLEX = 0x5451 };

static s64 set_nonblocking(struct file *file, u64 user)
{
    s32 is_on;
    if (copy_from_user(&is_on, user, sizeof(is_on)))
        return -EFAULT;
    file->flags = is_on ? file->flags | O_NONBLOCK : file->flags & ~(u32)O_NONBLOCK;
    return 0;
}

static s64 bytes_left(struct file *file, u64 user)
{
    s32 left = READ_ONCE(file->inode->cache.size_bytes) - READ_ONCE(file->pos);
    return copy_to_user(user, &left, sizeof(left));
}

/* Requests that every file knows, then those of its kind. */
static s64 control(struct file *file, const u64 *a)
{
    switch ((u32)a[1]) {
    case FIOCLEX:
    case FIONCLEX: return MIN(fd_flags(process_current()->files, a[0], (u32)a[1] == FIOCLEX), 0);
    case FIONBIO: return set_nonblocking(file, a[2]);
    case FIONREAD:
        if (inode_is(file->inode, S_IFREG))
            return bytes_left(file, a[2]);
    }
    return file_ioctl(file, (u32)a[1], a[2]);
}

s64 sys_ioctl(const u64 *a)
{
    struct file *file = syscall_file(a[0]);
    if (!file)
        return -EBADF;
    s64 result = control(file, a);
    file_put(file);
    return result;
}

/* Calls on the pages of a regular file. => the file, or NULL with *error */
static struct file *file_with_pages(u64 fd, s64 *error)
{
    struct file *file = syscall_file(fd);
    *error = file ? -EINVAL : -EBADF;
    if (!file || file->mapped.cache)
        return file;
    file_put(file);
    return NULL;
}

s64 sys_fadvise64(const u64 *a)
{
    s64 result;
    struct file *file = file_with_pages(a[0], &result);
    if (!file)
        return result == -EINVAL ? -ESPIPE : result;
    if (inode_is(file->inode, S_IFIFO))
        result = -ESPIPE;
    else
        result = (s64)a[2] < 0 ? -EINVAL : file_advise(&file->mapped, a[1], a[2], a[3]);
    file_put(file);
    return result;
}

#define ADVICE_WILLNEED 3

s64 sys_readahead(const u64 *a)
{
    s64 result;
    struct file *file = file_with_pages(a[0], &result);
    if (!file)
        return result;
    u32 type = file->inode->mode & S_IFMT;
    if (!file->mapped.can_read)
        result = -EBADF;
    else if ((s64)a[2] < 0 || (type != S_IFREG && type != S_IFBLK))
        result = -EINVAL;
    else
        result = a[2] == 0 ? 0 : file_advise(&file->mapped, a[1], a[2], ADVICE_WILLNEED);
    file_put(file);
    return result;
}

struct cachestat_range {
    u64 off, len;
};

struct cachestat {
    u64 nr_cache, nr_dirty, nr_writeback, nr_evicted, nr_recently_evicted;
};

static void count_cached(struct page_cache *cache, const struct cachestat_range *range,
                         struct cachestat *stat)
{
    struct page *pages[32];
    pgoff_t first = range->off / PAGE_SIZE;
    u64 end = range->len == 0 || range->off + range->len < range->off ? ~0ul - PAGE_SIZE
                                                                      : range->off + range->len;
    pgoff_t last = (end - 1) / PAGE_SIZE;
    unsigned n;
    while (first <= last &&
           (n = page_cache_find_range(cache, first, last, pages, ARRAY_SIZE(pages)))) {
        first = pages[n - 1]->index + 1;
        for (unsigned i = 0; i < n; i++) {
            stat->nr_cache++;
            stat->nr_dirty += page_has(pages[i], PAGE_DIRTY);
            stat->nr_writeback += page_has(pages[i], PAGE_WRITEBACK);
            page_put(pages[i]);
        }
    }
}

s64 sys_cachestat(const u64 *a)
{
    s64 result;
    struct cachestat_range range;
    struct cachestat stat = {0};
    struct file *file = file_with_pages(a[0], &result);
    if (!file)
        return result == -EINVAL ? -EOPNOTSUPP : result;
    if (a[3] != 0)
        result = -EINVAL;
    else if (copy_from_user(&range, a[1], sizeof(range)))
        result = -EFAULT;
    else {
        count_cached(file->mapped.cache, &range, &stat);
        result = copy_to_user(a[2], &stat, sizeof(stat));
    }
    file_put(file);
    return result;
}

/* Nothing here is ever dirty on a disk: file systems on disks are mounted read-only. */
s64 sys_fsync(const u64 *a)
{
    struct file *file = syscall_file(a[0]);
    if (!file)
        return -EBADF;
    bool has_data = inode_is(file->inode, S_IFREG) || inode_is_dir(file->inode) ||
                    inode_is(file->inode, S_IFBLK);
    s64 result = file->flags & O_PATH ? -EBADF : has_data ? 0 : -EINVAL;
    file_put(file);
    return result;
}

s64 sys_sync(const u64 *a)
{
    (void)a;
    return 0;
}
