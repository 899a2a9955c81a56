/*
 * Connected pairs of sockets.
 *
 *     end 0 --send--> [inbox of end 1] --receive--> end 1          and the other way round
 *
 * An inbox is a list of messages. A stream's messages have no borders: one receive takes from several,
 * and a part of one.
 *
 * Rules:
 *   - pair->lock guards both inboxes and who is there, and is held while user memory is copied out;
 *     a message is filled before it is queued. No fault takes it.
 *   - Who changes what others wait for wakes all of `changed`; they look again.
 */
#include "fs/socket.h"

#include "fs/poll.h"
#include "lib/errno.h"
#include "lib/format.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/slab.h"
#include "mm/user_memory.h"

#define INBOX_BYTES       65536u
#define INBOX_WHEN_SHORT  8192u /* where all pairs together may take too much */
#define STREAM_PART_BYTES 4000u /* of one queued message of a stream */
#define MEMORY_SHARE      16    /* of memory for inboxes that are full */

#define FIONREAD 0x541bu

struct message {
    struct list link;
    u32 len, taken; /* taken: of a stream's */
    u8 bytes[];
};

struct end {
    struct list inbox; /* oldest first */
    u32 inbox_bytes;
    bool is_open;
    bool no_receive, no_send; /* shut down */
    bool is_reset;            /* the other end went without reading all */
};

struct socket_pair {
    struct mutex lock;
    struct wait_queue changed;
    u32 type;
    u32 capacity; /* bytes of each inbox */
    struct end ends[2];
};

static SLEEP_LOCK_CLASS(pair_lock_class, "socket pair");
static u64 bytes_promised; /* atomic: of all inboxes */

/* An end as its file knows it. */
struct side {
    struct socket_pair *pair;
    struct end *own, *other;
};

static const struct file_ops socket_ops[2];

static bool is_socket(const struct file *file)
{
    return file->ops == &socket_ops[0] || file->ops == &socket_ops[1];
}

static struct side side_of(const struct file *file)
{
    struct socket_pair *pair = file->private_;
    unsigned index = file->ops == &socket_ops[1];

    return (struct side){pair, &pair->ends[index], &pair->ends[!index]};
}

static bool has_borders(const struct socket_pair *pair)
{
    return pair->type != SOCK_STREAM;
}

static void drop_inbox(struct end *end)
{
    struct message *message, *next;

    list_for_each_safe (message, next, &end->inbox, link) {
        list_del(&message->link);
        kfree(message);
    }
    end->inbox_bytes = 0;
}

/* Sleeps until `is_ready`, or a signal. => 0; -EAGAIN, -ERESTARTSYS */
static int wait_until(const struct side *side, bool (*is_ready)(const struct side *side),
                      const char *reason, bool nonblocking)
{
    struct waiter w;
    int error = 0;

    if (nonblocking)
        return -EAGAIN;
    wait_begin(&side->pair->changed, &w, reason, 0, 0);
    while (!error && !is_ready(side))
        error = wait_sleep_interruptible(&w, 0);
    wait_end(&side->pair->changed, &w);
    return error ? -ERESTARTSYS : 0;
}

/* ---- Sending ---- */

static bool has_room(const struct side *side)
{
    return READ_ONCE(side->other->inbox_bytes) < side->pair->capacity;
}

static bool cannot_send(const struct side *side)
{
    return READ_ONCE(side->own->no_send) || !READ_ONCE(side->other->is_open) ||
           READ_ONCE(side->other->no_receive);
}

static bool may_go_on_sending(const struct side *side)
{
    return has_room(side) || cannot_send(side);
}

static int send_error(const struct side *side)
{
    bool refuses = side->pair->type == SOCK_DGRAM && !side->own->no_send && !side->other->is_open;

    return refuses ? -ECONNREFUSED : -EPIPE;
}

/* => 0; -EAGAIN: no room; -EPIPE, -ECONNREFUSED */
static int queue(const struct side *side, struct message *message)
{
    int error = 0;

    mutex_lock(&side->pair->lock);
    if (cannot_send(side))
        error = send_error(side);
    else if (!has_room(side))
        error = -EAGAIN;
    if (!error) {
        list_add_tail(&side->other->inbox, &message->link);
        WRITE_ONCE(side->other->inbox_bytes,
                   side->other->inbox_bytes + message->len + sizeof(*message));
    }
    mutex_unlock(&side->pair->lock);
    if (!error)
        wait_wake_all(&side->pair->changed);
    return error;
}

/* One message, filled and queued. => 0 or an error */
static int send_message(const struct side *side, u64 user_buf, size_t len, bool nonblocking)
{
    struct message *message = kmalloc(sizeof(*message) + len);
    int error = -ENOMEM;

    if (!message)
        return error;
    message->len = (u32)len;
    message->taken = 0;
    error = copy_from_user(message->bytes, user_buf, len);
    while (!error && (error = queue(side, message)) == -EAGAIN)
        error = wait_until(side, may_go_on_sending, "room in a socket", nonblocking);
    if (error)
        kfree(message);
    return error;
}

ssize_t socket_send(struct file *file, u64 user_buf, size_t len, u32 flags)
{
    bool nonblocking = (file->flags & O_NONBLOCK) || (flags & MSG_DONTWAIT);
    struct side side;
    size_t done = 0;
    int error = 0;

    if (!is_socket(file))
        return -ENOTSOCK;
    side = side_of(file);
    if (has_borders(side.pair)) {
        error =
            len > side.pair->capacity ? -EMSGSIZE : send_message(&side, user_buf, len, nonblocking);
        return error ? error : (ssize_t)len;
    }
    if (len == 0 && cannot_send(&side))
        return -EPIPE;
    while (done < len && !error) {
        size_t part = MIN(len - done, STREAM_PART_BYTES);

        error = send_message(&side, user_buf + done, part, nonblocking);
        done += error ? 0 : part;
    }
    return done ? (ssize_t)done : error;
}

/* ---- Receiving ---- */

static bool has_message(const struct side *side)
{
    return READ_ONCE(side->own->inbox_bytes) > 0;
}

/* Nothing comes any more. A datagram socket does not know: anybody could send to it. */
static bool is_at_end(const struct side *side)
{
    return READ_ONCE(side->own->no_receive) ||
           (side->pair->type != SOCK_DGRAM &&
            (!READ_ONCE(side->other->is_open) || READ_ONCE(side->other->no_send)));
}

static bool may_go_on_receiving(const struct side *side)
{
    return has_message(side) || is_at_end(side) || READ_ONCE(side->own->is_reset);
}

static void drop_first(struct end *end)
{
    struct message *message = container_of(end->inbox.next, struct message, link);

    list_del(&message->link);
    WRITE_ONCE(end->inbox_bytes, end->inbox_bytes - message->len - (u32)sizeof(*message));
    kfree(message);
}

/* lock held, there is one. What does not fit is lost. => bytes, -EFAULT */
static ssize_t take_message(struct end *end, u64 user_buf, size_t len, u32 flags)
{
    struct message *message = container_of(end->inbox.next, struct message, link);
    size_t whole = message->len, part = MIN(len, whole);
    int error = copy_to_user(user_buf, message->bytes, part);

    if (!(flags & MSG_PEEK) || error)
        drop_first(end);
    return error ? error : (ssize_t)(flags & MSG_TRUNC ? whole : part);
}

/* lock held. => bytes, -EFAULT */
static ssize_t take_bytes(struct end *end, u64 user_buf, size_t len, u32 flags)
{
    struct message *message, *next;
    size_t done = 0;

    list_for_each_safe (message, next, &end->inbox, link) {
        size_t part = MIN(message->len - message->taken, len - done);
        size_t copied =
            copy_to_user_partial(user_buf + done, message->bytes + message->taken, part);

        done += copied;
        if (!(flags & MSG_PEEK)) {
            message->taken += (u32)copied;
            if (message->taken == message->len)
                drop_first(end);
        }
        if (copied < part)
            return done ? (ssize_t)done : -EFAULT;
        if (done == len)
            break;
    }
    return done;
}

/* => bytes; 0: the end; -EAGAIN: nothing there */
static ssize_t receive_once(const struct side *side, u64 user_buf, size_t len, u32 flags)
{
    ssize_t n = -EAGAIN;

    mutex_lock(&side->pair->lock);
    if (has_message(side))
        n = has_borders(side->pair) ? take_message(side->own, user_buf, len, flags)
                                    : take_bytes(side->own, user_buf, len, flags);
    else if (side->own->is_reset)
        n = -ECONNRESET;
    else if (is_at_end(side))
        n = 0;
    if (n == -ECONNRESET)
        side->own->is_reset = false;
    mutex_unlock(&side->pair->lock);
    if (n != -EAGAIN)
        wait_wake_all(&side->pair->changed);
    return n;
}

ssize_t socket_receive(struct file *file, u64 user_buf, size_t len, u32 flags)
{
    bool nonblocking = (file->flags & O_NONBLOCK) || (flags & MSG_DONTWAIT);
    struct side side;
    ssize_t n;

    if (!is_socket(file))
        return -ENOTSOCK;
    side = side_of(file);
    if (len == 0 && !has_borders(side.pair))
        return 0;
    while ((n = receive_once(&side, user_buf, len, flags)) == -EAGAIN) {
        int error = wait_until(&side, may_go_on_receiving, "a message in a socket", nonblocking);

        if (error)
            return error;
    }
    return n;
}

/* ---- The file's operations ---- */

static ssize_t socket_read(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    (void)pos;
    return len == 0 ? 0 : socket_receive(file, user_buf, len, 0);
}

static ssize_t socket_write(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    (void)pos;
    return socket_send(file, user_buf, len, 0);
}

static u32 socket_poll(struct file *file, struct poll_round *round)
{
    struct side side = side_of(file);
    u32 ready = 0;

    poll_wait_on(round, &side.pair->changed);
    if (has_message(&side) || is_at_end(&side) || READ_ONCE(side.own->is_reset))
        ready |= POLLIN | POLLRDNORM;
    if (is_at_end(&side))
        ready |= POLLRDHUP;
    if (has_room(&side))
        ready |= POLLOUT | POLLWRNORM | POLLWRBAND;
    if (is_at_end(&side) && cannot_send(&side))
        ready |= POLLHUP;
    return ready | (READ_ONCE(side.own->is_reset) ? POLLERR : 0);
}

static int socket_ioctl(struct file *file, u64 request, u64 argument)
{
    struct side side = side_of(file);
    struct message *message;
    s32 bytes = 0;

    if ((u32)request != FIONREAD)
        return -ENOTTY;
    mutex_lock(&side.pair->lock);
    list_for_each (message, &side.own->inbox, link) {
        bytes += (s32)(message->len - message->taken);
        if (side.pair->type == SOCK_DGRAM)
            break; /* the next message's */
    }
    mutex_unlock(&side.pair->lock);
    return copy_to_user(argument, &bytes, sizeof(bytes));
}

static void socket_close(struct file *file)
{
    struct side side = side_of(file);
    bool is_last;

    mutex_lock(&side.pair->lock);
    if (side.pair->type != SOCK_DGRAM && has_message(&side))
        WRITE_ONCE(side.other->is_reset, true);
    drop_inbox(side.own);
    WRITE_ONCE(side.own->is_open, false);
    is_last = !side.other->is_open;
    mutex_unlock(&side.pair->lock);
    if (!is_last) {
        wait_wake_all(&side.pair->changed);
        return;
    }
    atomic_sub(&bytes_promised, 2 * side.pair->capacity);
    kfree(side.pair);
}

int socket_shutdown(struct file *file, u32 how)
{
    struct side side;

    if (!is_socket(file))
        return -ENOTSOCK;
    if (how > SHUT_RDWR)
        return -EINVAL;
    side = side_of(file);
    mutex_lock(&side.pair->lock);
    if (how != SHUT_WR)
        WRITE_ONCE(side.own->no_receive, true);
    if (how != SHUT_RD)
        WRITE_ONCE(side.own->no_send, true);
    mutex_unlock(&side.pair->lock);
    wait_wake_all(&side.pair->changed);
    return 0;
}

/* Two tables, so that a file tells which end it is. */
#define SOCKET_OPS                                                                              \
    {                                                                                           \
        .read = socket_read, .write = socket_write, .poll = socket_poll, .ioctl = socket_ioctl, \
        .close = socket_close,                                                                  \
    }
static const struct file_ops socket_ops[2] = {SOCKET_OPS, SOCKET_OPS};

/* ---- Making a pair ---- */

static struct super_block socket_super = {.type = "sockfs", .block_bytes = PAGE_SIZE};

static u32 promise_capacity(void)
{
    if (atomic_add(&bytes_promised, 2 * INBOX_BYTES) <= frames_total() * PAGE_SIZE / MEMORY_SHARE)
        return INBOX_BYTES;
    atomic_sub(&bytes_promised, 2 * (INBOX_BYTES - INBOX_WHEN_SHORT));
    return INBOX_WHEN_SHORT;
}

static struct socket_pair *pair_new(u32 type)
{
    struct socket_pair *pair = kzalloc(sizeof(*pair));

    if (!pair)
        return NULL;
    mutex_init(&pair->lock, &pair_lock_class);
    wait_queue_init(&pair->changed);
    pair->type = type;
    for (unsigned i = 0; i < 2; i++) {
        list_init(&pair->ends[i].inbox);
        pair->ends[i].is_open = true;
    }
    pair->capacity = promise_capacity();
    return pair;
}

/* The file of one end. => NULL with *error */
static struct file *open_end(struct socket_pair *pair, unsigned index, u32 flags, int *error)
{
    struct inode *inode = inode_new_anonymous(&socket_super, S_IFSOCK | 0777);
    char name[sizeof("socket:[18446744073709551615]")];
    struct file *file;

    *error = -ENOMEM;
    if (!inode)
        return NULL;
    inode->file_ops = &socket_ops[index];
    format_to(name, sizeof(name), "socket:[%lu]", inode->ino);
    file = file_open_inode(inode, O_RDWR | flags, name, error);
    if (file)
        file->private_ = pair;
    inode_put(inode);
    return file;
}

int socket_pair_create(u32 type, u32 flags, struct file *ends[2])
{
    struct socket_pair *pair = pair_new(type);
    int error;

    if (!pair)
        return -ENOMEM;
    if (socket_super.dev == 0)
        socket_super.dev = super_anonymous_dev();
    ends[0] = open_end(pair, 0, flags, &error);
    if (!ends[0]) {
        atomic_sub(&bytes_promised, 2 * pair->capacity);
        kfree(pair);
        return error;
    }
    ends[1] = open_end(pair, 1, flags, &error);
    if (!ends[1]) {
        pair->ends[1].is_open = false;
        file_put(ends[0]);
    }
    return error;
}
