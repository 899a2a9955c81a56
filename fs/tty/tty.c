/*
 * The terminal as a file: reading by the rules of the mode, writing, and the console's terminal
 * with the task that feeds it.
 */
#include "fs/tty/tty.h"

#include "drivers/devices.h"
#include "fs/poll.h"
#include "kernel/cpu/clock.h"
#include "kernel/log/log.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/user_memory.h"

#define CHUNK_BYTES   512
#define NS_PER_VTIME  100000000ul /* tenths of a second */
#define CONSOLE_MAJOR 4           /* /dev/ttyS1 */
#define CONSOLE_MINOR 65
#define CTRL(c)       ((c)&0x1f)

static SLEEP_LOCK_CLASS(tty_lock_class, "tty->lock");

static const struct termios usual_settings = {
    .input = ICRNL | IXON | IUTF8 | IMAXBEL,
    .output = OPOST | ONLCR,
    .control_modes = B115200 | CS8 | CREAD | HUPCL,
    .line = ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN,
    .control = {[VINTR] = CTRL('C'),
                [VQUIT] = CTRL('\\'),
                [VERASE] = 0x7f,
                [VKILL] = CTRL('U'),
                [VEOF] = CTRL('D'),
                [VMIN] = 1,
                [VSTART] = CTRL('Q'),
                [VSTOP] = CTRL('S'),
                [VSUSP] = CTRL('Z'),
                [VREPRINT] = CTRL('R'),
                [VDISCARD] = CTRL('O'),
                [VWERASE] = CTRL('W'),
                [VLNEXT] = CTRL('V')},
};

void tty_init(struct tty *tty, u64 device, void (*send)(const char *text, size_t len))
{
    memset(tty, 0, sizeof(*tty));
    ring_init(&tty->raw, tty->raw_data, sizeof(tty->raw_data));
    wait_queue_init(&tty->raw_arrived);
    wait_queue_init(&tty->readable);
    wait_queue_init(&tty->started);
    mutex_init(&tty->lock, &tty_lock_class);
    tty->termios = usual_settings;
    tty->device = device;
    tty->send = send;
}

/* ---- Reading ---- */

/* How a read waits: for how many characters, and until when. */
struct read_wait {
    u32 wanted;     /* raw mode: 0 never waits for more than the first one, see total_ns */
    u64 total_ns;   /* deadline from the beginning on; 0: none */
    u64 between_ns; /* from one character to the next; 0: no limit */
    bool returns_at_once;
};

/* The four cases of VMIN and VTIME (POSIX, "Non-Canonical Mode Input Processing"). */
static struct read_wait wait_of_mode_locked(const struct tty *tty, size_t len)
{
    u32 min = tty->termios.control[VMIN];
    u64 time_ns = tty->termios.control[VTIME] * NS_PER_VTIME;
    struct read_wait wait = {.wanted = 1};

    if (tty->termios.line & ICANON)
        return wait;
    if (min > 0) {
        wait.wanted = MIN((size_t)min, len);
        wait.between_ns = time_ns;
    } else if (time_ns > 0) {
        wait.total_ns = clock_ns() + time_ns;
    } else {
        wait.returns_at_once = true;
    }
    return wait;
}

static bool has_enough_locked(const struct tty *tty, const struct read_wait *wait)
{
    if (tty->termios.line & ICANON)
        return tty_has_input_locked(tty);
    return tty_readable_locked(tty) >= wait->wanted;
}

/* One look and one sleep. => 1: go on and read; 0: look again; -EINTR, -ETIMEDOUT */
static int look_and_sleep(struct tty *tty, struct waiter *waiter, const struct read_wait *wait,
                          u32 *seen)
{
    u64 deadline = wait->total_ns;
    bool is_enough;
    u32 readable;

    mutex_lock(&tty->lock);
    is_enough = has_enough_locked(tty, wait);
    readable = tty_readable_locked(tty);
    mutex_unlock(&tty->lock);
    if (is_enough)
        return 1;
    if (wait->between_ns && readable > 0)
        deadline = clock_ns() + wait->between_ns;
    *seen = readable;
    return wait_sleep_interruptible(waiter, deadline);
}

/* => 0: there is what the mode asks for, or the time is over; -EAGAIN, -ERESTARTSYS, -EIO */
static int wait_for_input(struct tty *tty, const struct read_wait *wait, bool may_wait)
{
    struct waiter waiter;
    u32 seen = 0;
    int result;

    if (!may_wait) {
        mutex_lock(&tty->lock);
        result = tty_has_input_locked(tty) || wait->returns_at_once ? 0 : -EAGAIN;
        mutex_unlock(&tty->lock);
        return result;
    }
    if (wait->returns_at_once)
        return 0;
    wait_begin(&tty->readable, &waiter, "input of the terminal", 0, 0);
    do {
        result = look_and_sleep(tty, &waiter, wait, &seen);
        if (result == 0) /* the job may have been put into the background meanwhile */
            result = tty_check_job(tty, TTY_SIGTTIN);
    } while (result == 0);
    wait_end(&tty->readable, &waiter);
    if (result == -EINTR)
        return -ERESTARTSYS;
    return result == 1 || result == -ETIMEDOUT ? 0 : result;
}

/* Takes what is there, piece by piece: no user memory under the lock. *ends: no further piece. */
static ssize_t take_piece(struct tty *tty, u64 user_buf, size_t len, bool *ends)
{
    char piece[CHUNK_BYTES];
    size_t wanted = MIN(len, sizeof(piece)), n, copied;
    bool line_ended;

    mutex_lock(&tty->lock);
    n = tty_take_locked(tty, piece, wanted, &line_ended);
    mutex_unlock(&tty->lock);
    copied = copy_to_user_partial(user_buf, piece, n);
    *ends = line_ended || n < wanted || copied < n;
    return copied < n && copied == 0 ? -EFAULT : (ssize_t)copied;
}

static ssize_t tty_read(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    struct tty *tty = file->private_;
    struct read_wait wait;
    size_t done = 0;
    bool ends = false;
    int error;

    (void)pos;
    error = tty_check_job(tty, TTY_SIGTTIN);
    if (error || len == 0)
        return error;
    mutex_lock(&tty->lock);
    wait = wait_of_mode_locked(tty, len);
    mutex_unlock(&tty->lock);
    error = wait_for_input(tty, &wait, !(file->flags & O_NONBLOCK));
    if (error)
        return error;
    while (!ends && done < len) {
        ssize_t n = take_piece(tty, user_buf + done, len - done, &ends);

        if (n < 0)
            return done ? (ssize_t)done : n;
        done += n;
    }
    return done;
}

/* ---- Writing ---- */

static int wait_until_started(struct tty *tty, bool may_wait)
{
    struct waiter waiter;
    int error = 0;

    if (!READ_ONCE(tty->is_stopped))
        return 0;
    if (!may_wait)
        return -EAGAIN;
    wait_begin(&tty->started, &waiter, "^Q on the terminal", 0, 0);
    while (!error && READ_ONCE(tty->is_stopped))
        error = wait_sleep_interruptible(&waiter, 0);
    wait_end(&tty->started, &waiter);
    return error ? -ERESTARTSYS : 0;
}

static ssize_t tty_write(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    struct tty *tty = file->private_;
    char chunk[CHUNK_BYTES];
    size_t done = 0;
    int error = READ_ONCE(tty->termios.line) & TOSTOP ? tty_check_job(tty, TTY_SIGTTOU) : 0;

    (void)pos;
    while (!error && done < len) {
        size_t n = MIN(len - done, sizeof(chunk));
        size_t copied = copy_from_user_partial(chunk, user_buf + done, n);

        error = wait_until_started(tty, !(file->flags & O_NONBLOCK));
        if (!error) {
            mutex_lock(&tty->lock);
            tty_output_locked(tty, chunk, copied);
            mutex_unlock(&tty->lock);
            done += copied;
        }
        if (copied < n && !error)
            error = -EFAULT;
        else if (done < len && task_signal_is_pending(task_current()))
            error = -ERESTARTSYS;
    }
    return done ? (ssize_t)done : error;
}

/* ---- The file ---- */

static u32 tty_poll(struct file *file, struct poll_round *round)
{
    struct tty *tty = file->private_;
    u32 ready = 0;

    poll_wait_on(round, &tty->readable);
    mutex_lock(&tty->lock);
    if (tty_has_input_locked(tty))
        ready |= POLLIN | POLLRDNORM;
    if (!tty->is_stopped)
        ready |= POLLOUT | POLLWRNORM;
    mutex_unlock(&tty->lock);
    return ready;
}

const struct file_ops file_ops_tty = {
    .read = tty_read,
    .write = tty_write,
    .ioctl = tty_ioctl,
    .poll = tty_poll,
};

/* ---- The console's terminal ---- */

static struct tty console;
static bool console_is_tty;

struct tty *tty_console(void)
{
    return console_is_tty ? &console : NULL;
}

/* Interrupt context. A full ring loses the byte, as a port without flow control does. */
static void console_receive(u8 byte)
{
    ring_put(&console.raw, byte);
    wait_wake_one(&console.raw_arrived);
}

NORETURN static void feed_console(void *arg)
{
    u8 bytes[CHUNK_BYTES];

    (void)arg;
    for (;;) {
        WAIT_HOWEVER_LONG_FOR(&console.raw_arrived, ring_used(&console.raw) > 0,
                              "bytes for the terminal", 0, 0);
        tty_receive_now(&console, bytes, ring_read(&console.raw, bytes, sizeof(bytes)));
    }
}

void tty_start_console(u16 rows, u16 columns)
{
    tty_init(&console, CONSOLE_MAJOR << 8 | CONSOLE_MINOR, console_write);
    console.drain = console_flush;
    console.size = (struct winsize){.rows = rows, .columns = columns};
    console_is_tty = true;
    if (!task_create("tty", feed_console, NULL, -1))
        panic("out of memory while starting the terminal");
    console_set_input(console_receive);
}
