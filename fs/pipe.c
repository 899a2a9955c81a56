/*
 * Pipes and FIFOs.
 *
 *     read_at                    write_at            positions only grow; a byte's page is
 *        |  page  |  page  |  pa|      |             slot (position / PAGE_SIZE) % slots
 *
 * Pages come when a write gets to them and go when all of them is read, so an empty pipe costs
 * nothing. pipe_give() puts a program's own page in a slot: it is full, so nothing is ever written to
 * it here, and the program's next write to it makes a copy, because the pipe has a reference.
 *
 * Rules:
 *   - pipe->lock guards the pages and both positions, and is held while user memory is copied:
 *     that keeps writes of up to PIPE_BUF_BYTES whole. No fault takes it.
 *   - pipe->state_lock, a spinlock, guards who is there: the counts of readers and writers.
 *   - Who changes what others wait for wakes all of their queue; they look again.
 *   - A pipe of an inode lives from its first open to its last close (fifo_lock).
 */
#include "fs/pipe.h"

#include "fs/inode_time.h"
#include "fs/poll.h"
#include "kernel/sched/sync_point.h"
#include "lib/errno.h"
#include "lib/format.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/slab.h"
#include "mm/mmap.h"
#include "mm/reclaim.h"
#include "mm/user_memory.h"

#define SLOTS_MAX        16 /* 64 KiB */
#define SLOTS_WHEN_SHORT 2  /* where all pipes together may take too much */
#define MEMORY_SHARE     16 /* of memory for pipes with all their slots */

#define FIONREAD 0x541bu

struct pipe {
    struct mutex lock;
    u64 read_at, write_at; /* lock; read without it by poll */
    u32 slots;
    struct page *pages[SLOTS_MAX]; /* lock; NULL: empty */
    struct spinlock state_lock;
    u32 readers, writers;               /* state_lock */
    u64 readers_so_far, writers_so_far; /* opens, for those that wait for one; state_lock */
    struct wait_queue changed_for_read, changed_for_write;
    u32 files; /* fifo_lock */
};

static SLEEP_LOCK_CLASS(pipe_lock_class, "pipe");
static LOCK_CLASS(pipe_state_class, "pipe state");
static SLEEP_LOCK_CLASS(fifo_lock_class, "fifo");
static struct mutex fifo_lock = MUTEX_INIT(fifo_lock, &fifo_lock_class);
static u64 slots_promised; /* atomic: of all pipes */
static u64 pages_used;     /* atomic */

u64 pipe_pages_used(void)
{
    return atomic_load(&pages_used);
}

/* ---- A pipe ---- */

static u32 promise_slots(void)
{
    u32 slots = SLOTS_MAX;

    if (atomic_add(&slots_promised, SLOTS_MAX) > frames_total() / MEMORY_SHARE) {
        atomic_sub(&slots_promised, SLOTS_MAX - SLOTS_WHEN_SHORT);
        slots = SLOTS_WHEN_SHORT;
    }
    return slots;
}

static struct pipe *pipe_new(void)
{
    struct pipe *pipe = kzalloc(sizeof(*pipe));

    if (!pipe)
        return NULL;
    pipe->slots = promise_slots();
    mutex_init(&pipe->lock, &pipe_lock_class);
    spin_init(&pipe->state_lock, &pipe_state_class);
    wait_queue_init(&pipe->changed_for_read);
    wait_queue_init(&pipe->changed_for_write);
    return pipe;
}

static void drop_page(struct pipe *pipe, u64 slot)
{
    if (!pipe->pages[slot])
        return;
    page_put(pipe->pages[slot]);
    pipe->pages[slot] = NULL;
    atomic_sub(&pages_used, 1);
}

static void pipe_free(struct pipe *pipe)
{
    for (u32 i = 0; i < pipe->slots; i++)
        drop_page(pipe, i);
    atomic_sub(&slots_promised, pipe->slots);
    kfree(pipe);
}

/* Without the lock both positions may move meanwhile; whoever looks then, looks again with it. */
static u64 used_bytes(const struct pipe *pipe)
{
    u64 read_at = READ_ONCE(pipe->read_at), write_at = READ_ONCE(pipe->write_at);

    return write_at > read_at ? write_at - read_at : 0;
}

/* A page that is read from is not written to again before all of it is read. */
static u64 room_bytes(const struct pipe *pipe)
{
    u64 begin = ALIGN_DOWN(READ_ONCE(pipe->read_at), PAGE_SIZE);
    u64 end = begin + (u64)pipe->slots * PAGE_SIZE, write_at = READ_ONCE(pipe->write_at);

    return write_at < end ? end - write_at : 0;
}

static u32 reader_count(struct pipe *pipe)
{
    return atomic_load(&pipe->readers);
}

static u32 writer_count(struct pipe *pipe)
{
    return atomic_load(&pipe->writers);
}

/* The page at a position of the buffer and the bytes left in it. lock held. */
static struct page **slot_at(struct pipe *pipe, u64 at, size_t *left)
{
    *left = PAGE_SIZE - at % PAGE_SIZE;
    return &pipe->pages[at / PAGE_SIZE % pipe->slots];
}

/* ---- Reading ---- */

/* The pipe is empty: all of its slots are free again. lock held. */
static void begin_new_page(struct pipe *pipe)
{
    u64 at = ALIGN_UP(pipe->read_at, PAGE_SIZE);

    WRITE_ONCE(pipe->write_at, at);
    WRITE_ONCE(pipe->read_at, at);
}

/* Takes out what is there, up to len. lock held. => bytes, -EFAULT */
static ssize_t take_out(struct pipe *pipe, u64 user_buf, size_t len)
{
    size_t done = 0;

    while (done < len && used_bytes(pipe) > 0) {
        size_t left, want, copied;
        struct page **slot = slot_at(pipe, pipe->read_at, &left);

        want = MIN(MIN(left, len - done), used_bytes(pipe));
        copied = copy_to_user_partial(user_buf + done,
                                      (char *)page_virt(*slot) + pipe->read_at % PAGE_SIZE, want);
        WRITE_ONCE(pipe->read_at, pipe->read_at + copied);
        done += copied;
        if (copied == left || used_bytes(pipe) == 0)
            drop_page(pipe, slot - pipe->pages);
        if (used_bytes(pipe) == 0)
            begin_new_page(pipe);
        if (copied < want)
            return done ? (ssize_t)done : -EFAULT;
    }
    return done;
}

/* Sleeps until there is something to read or nobody to write. => 0; -EAGAIN, -ERESTARTSYS */
static int wait_for_bytes(struct pipe *pipe, bool nonblocking)
{
    struct waiter w;
    int error = 0;

    if (nonblocking)
        return -EAGAIN;
    wait_begin(&pipe->changed_for_read, &w, "bytes in a pipe", 0, 0);
    while (!error && used_bytes(pipe) == 0 && writer_count(pipe) > 0)
        error = wait_sleep_interruptible(&w, 0);
    wait_end(&pipe->changed_for_read, &w);
    return error ? -ERESTARTSYS : 0;
}

static ssize_t pipe_read(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    struct pipe *pipe = file->private_;
    ssize_t done = 0;

    (void)pos;
    while (len > 0 && done == 0) {
        int error;

        mutex_lock(&pipe->lock);
        done = take_out(pipe, user_buf, len);
        mutex_unlock(&pipe->lock);
        if (done > 0)
            wait_wake_all(&pipe->changed_for_write);
        if (done != 0 || (writer_count(pipe) == 0 && used_bytes(pipe) == 0))
            break;
        error = wait_for_bytes(pipe, file->flags & O_NONBLOCK);
        if (error)
            return error;
    }
    return done;
}

/* ---- Writing ---- */

/* A page at the write position. => whether there is one */
static bool ensure_page(struct page **slot)
{
    if (*slot)
        return true;
    *slot = frame_alloc_reclaim(0);
    if (*slot)
        atomic_add(&pages_used, 1);
    return *slot;
}

/* Puts in what there is room for, up to len. lock held. => bytes; -EFAULT, -ENOMEM */
static ssize_t put_in(struct pipe *pipe, u64 user_buf, size_t len)
{
    u64 at = pipe->write_at;
    size_t done = 0;
    int error = 0;

    len = MIN(len, room_bytes(pipe));
    while (done < len && !error) {
        size_t left, want, copied;
        struct page **slot = slot_at(pipe, at + done, &left);

        if (!ensure_page(slot)) {
            error = -ENOMEM;
            break;
        }
        want = MIN(left, len - done);
        copied = copy_from_user_partial((char *)page_virt(*slot) + (at + done) % PAGE_SIZE,
                                        user_buf + done, want);
        done += copied;
        if (copied < want)
            error = -EFAULT;
    }
    WRITE_ONCE(pipe->write_at, at + done); /* all at once: a short write shows whole */
    return done ? (ssize_t)done : error;
}

static bool has_room_for(struct pipe *pipe, size_t len)
{
    return room_bytes(pipe) >= (len <= PIPE_BUF_BYTES ? len : 1);
}

/* Sleeps until there is room for what must not be torn, or nobody to read.
 * => 0; -EAGAIN, -ERESTARTSYS */
static int wait_for_room(struct pipe *pipe, size_t len, bool nonblocking)
{
    struct waiter w;
    int error = 0;

    if (nonblocking)
        return -EAGAIN;
    wait_begin(&pipe->changed_for_write, &w, "room in a pipe", 0, 0);
    while (!error && !has_room_for(pipe, len) && reader_count(pipe) > 0)
        error = wait_sleep_interruptible(&w, 0);
    wait_end(&pipe->changed_for_write, &w);
    return error ? -ERESTARTSYS : 0;
}

/* One turn. => bytes (0: no room); -EPIPE, -EFAULT, -ENOMEM */
static ssize_t write_once(struct pipe *pipe, u64 user_buf, size_t len, bool whole)
{
    ssize_t n = -EPIPE;

    mutex_lock(&pipe->lock);
    if (reader_count(pipe) > 0)
        n = room_bytes(pipe) >= (whole ? len : 1) ? put_in(pipe, user_buf, len) : 0;
    mutex_unlock(&pipe->lock);
    if (n > 0)
        wait_wake_all(&pipe->changed_for_read);
    return n;
}

static ssize_t pipe_write(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    struct pipe *pipe = file->private_;
    bool whole = len <= PIPE_BUF_BYTES;
    size_t done = 0;
    ssize_t n = 0;

    (void)pos;
    while (done < len) {
        n = write_once(pipe, user_buf + done, len - done, whole);
        if (n == 0)
            n = wait_for_room(pipe, whole ? len : PIPE_BUF_BYTES + 1, file->flags & O_NONBLOCK);
        if (n < 0)
            break;
        done += n;
    }
    return done ? (ssize_t)done : n;
}

/* ---- Giving pages ---- */

/* The memory at addr becomes the slot at the write position, if both begin there and the page is
 * whole. lock held. => PAGE_SIZE; 0: it has to be copied; errors of mm_page_get */
static ssize_t give_page(struct pipe *pipe, struct mm *mm, u64 addr, size_t len)
{
    size_t left;
    struct page **slot = slot_at(pipe, pipe->write_at, &left);
    int error;

    if (left < PAGE_SIZE || *slot || len < PAGE_SIZE || addr % PAGE_SIZE)
        return 0;
    error = mm_page_get(mm, addr, slot);
    if (error) {
        *slot = NULL;
        return error == -EOPNOTSUPP ? 0 : error;
    }
    atomic_add(&pages_used, 1);
    WRITE_ONCE(pipe->write_at, pipe->write_at + PAGE_SIZE);
    return PAGE_SIZE;
}

/* What there is room for. lock held. => bytes; -EFAULT, -ENOMEM, -EINTR */
static ssize_t give_all(struct pipe *pipe, struct mm *mm, u64 addr, size_t len)
{
    size_t done = 0;
    ssize_t n = 1;

    while (done < len && n > 0 && room_bytes(pipe) > 0) {
        n = give_page(pipe, mm, addr + done, len - done);
        if (n == 0)
            n = put_in(pipe, addr + done, MIN(len - done, PAGE_SIZE - pipe->write_at % PAGE_SIZE));
        done += n > 0 ? n : 0;
    }
    return done ? (ssize_t)done : n;
}

ssize_t pipe_give(struct file *file, struct mm *mm, u64 addr, size_t len, bool nonblocking)
{
    struct pipe *pipe = file->private_;
    ssize_t n = 0;

    while (n == 0 && len > 0) {
        mutex_lock(&pipe->lock);
        n = reader_count(pipe) == 0 ? -EPIPE
            : room_bytes(pipe) > 0  ? give_all(pipe, mm, addr, len)
                                    : 0;
        mutex_unlock(&pipe->lock);
        if (n == 0)
            n = wait_for_room(pipe, PIPE_BUF_BYTES + 1, nonblocking);
    }
    if (n > 0)
        wait_wake_all(&pipe->changed_for_read);
    return n == -ENOMEM ? -EFAULT : n;
}

/* ---- The rest of a file's operations ---- */

static u32 pipe_poll(struct file *file, struct poll_round *round)
{
    struct pipe *pipe = file->private_;
    u32 ready = 0;

    if (file->mapped.can_read) {
        poll_wait_on(round, &pipe->changed_for_read);
        ready |= used_bytes(pipe) > 0 ? POLLIN | POLLRDNORM : 0;
        ready |= writer_count(pipe) == 0 && atomic_load(&pipe->writers_so_far) > 0 ? POLLHUP : 0;
    }
    if (file->mapped.can_write) {
        poll_wait_on(round, &pipe->changed_for_write);
        ready |= room_bytes(pipe) >= PIPE_BUF_BYTES ? POLLOUT | POLLWRNORM : 0;
        ready |= reader_count(pipe) == 0 ? POLLERR : 0;
    }
    return ready;
}

static int pipe_ioctl(struct file *file, u64 request, u64 argument)
{
    struct pipe *pipe = file->private_;
    s32 used = used_bytes(pipe);

    if ((u32)request != FIONREAD)
        return -ENOTTY;
    return copy_to_user(argument, &used, sizeof(used));
}

/* ---- Opening and closing ---- */

/* => the inode's pipe, counted for one more file; NULL when out of memory */
static struct pipe *pipe_of_inode(struct inode *inode)
{
    struct pipe *pipe;

    mutex_lock(&fifo_lock);
    if (!inode->pipe)
        inode->pipe = pipe_new();
    pipe = inode->pipe;
    if (pipe)
        pipe->files++;
    mutex_unlock(&fifo_lock);
    return pipe;
}

static void pipe_let_go(struct inode *inode, struct pipe *pipe)
{
    bool is_last;

    mutex_lock(&fifo_lock);
    is_last = --pipe->files == 0;
    if (is_last)
        inode->pipe = NULL;
    mutex_unlock(&fifo_lock);
    if (is_last)
        pipe_free(pipe);
}

static void wake_everybody(struct pipe *pipe)
{
    wait_wake_all(&pipe->changed_for_read);
    wait_wake_all(&pipe->changed_for_write);
}

/* The other end, as it was at the moment when a file was counted in. */
struct other_end {
    u32 present;
    u64 so_far;
};

/* => 0; -ENXIO: would write, must not wait, and nobody reads (nothing is counted) */
static int count_in(struct pipe *pipe, const struct file *file, struct other_end *other)
{
    bool reads = file->mapped.can_read, writes = file->mapped.can_write;
    bool is_refused;

    spin_lock(&pipe->state_lock);
    other->present = reads ? pipe->writers : pipe->readers;
    other->so_far = reads ? pipe->writers_so_far : pipe->readers_so_far;
    is_refused = !reads && (file->flags & O_NONBLOCK) && other->present == 0;
    if (!is_refused) {
        pipe->readers += reads;
        pipe->readers_so_far += reads;
        pipe->writers += writes;
        pipe->writers_so_far += writes;
    }
    spin_unlock(&pipe->state_lock);
    if (is_refused)
        return -ENXIO;
    wake_everybody(pipe);
    return 0;
}

static void count_out(struct pipe *pipe, const struct file *file)
{
    spin_lock(&pipe->state_lock);
    pipe->readers -= file->mapped.can_read;
    pipe->writers -= file->mapped.can_write;
    spin_unlock(&pipe->state_lock);
    wake_everybody(pipe);
}

/*
 * Somebody at the other end: there was one, or one has come since and may have gone. Two actors:
 *     reader                                writer, waits here
 *     1 is counted in, wakes the writer     1 opens, writes, closes
 *     2 looks how many writers came
 * What the reader compares with is from step 1, under one lock: at step 2 it is too late.
 */
static int wait_for_other_end(struct pipe *pipe, bool reads, const struct other_end *other)
{
    u64 *so_far = reads ? &pipe->writers_so_far : &pipe->readers_so_far;
    struct wait_queue *queue = reads ? &pipe->changed_for_read : &pipe->changed_for_write;
    struct waiter w;
    int error = 0;

    SYNC_POINT(fifo_counted_in);
    if (other->present > 0)
        return 0;
    wait_begin(queue, &w, "the other end of a FIFO", 0, 0);
    while (!error && atomic_load(so_far) == other->so_far)
        error = wait_sleep_interruptible(&w, 0);
    wait_end(queue, &w);
    return error ? -ERESTARTSYS : 0;
}

static int fifo_open(struct inode *inode, struct file *file)
{
    struct pipe *pipe = pipe_of_inode(inode);
    bool reads = file->mapped.can_read, writes = file->mapped.can_write;
    struct other_end other;
    int error;

    if (!pipe)
        return -ENOMEM;
    error = count_in(pipe, file, &other);
    if (!error && reads != writes && !(file->flags & O_NONBLOCK)) {
        error = wait_for_other_end(pipe, reads, &other);
        if (error)
            count_out(pipe, file);
    }
    if (error) {
        pipe_let_go(inode, pipe);
        return error;
    }
    file->private_ = pipe;
    return 0;
}

static void fifo_close(struct file *file)
{
    struct pipe *pipe = file->private_;

    count_out(pipe, file);
    pipe_let_go(file->inode, pipe);
}

const struct file_ops file_ops_fifo = {
    .open = fifo_open,
    .close = fifo_close,
    .read = pipe_read,
    .write = pipe_write,
    .ioctl = pipe_ioctl,
    .poll = pipe_poll,
};

static struct super_block pipe_super = {.type = "pipefs", .block_bytes = PAGE_SIZE};

int pipe_create(u32 flags, struct file *ends[2])
{
    struct inode *inode = inode_new_anonymous(&pipe_super, S_IFIFO | 0600);
    char name[sizeof("pipe:[18446744073709551615]")];
    int error = -ENOMEM;

    if (!inode)
        return error;
    if (pipe_super.dev == 0)
        pipe_super.dev = super_anonymous_dev();
    inode_touch(inode, INODE_ATIME | INODE_MTIME | INODE_CTIME);
    format_to(name, sizeof(name), "pipe:[%lu]", inode->ino);
    ends[0] = file_open_inode(inode, O_RDONLY | O_NONBLOCK, name, &error);
    if (ends[0]) {
        ends[1] = file_open_inode(inode, O_WRONLY | O_NONBLOCK, name, &error);
        if (!ends[1])
            file_put(ends[0]);
    }
    inode_put(inode);
    if (error)
        return error;
    ends[0]->flags = O_RDONLY | (flags & O_NONBLOCK);
    ends[1]->flags = O_WRONLY | (flags & O_NONBLOCK);
    return 0;
}

s64 pipe_capacity(const struct file *file)
{
    const struct pipe *pipe = file->private_;

    return file->ops == &file_ops_fifo ? (s64)pipe->slots * (s64)PAGE_SIZE : -EBADF;
}
