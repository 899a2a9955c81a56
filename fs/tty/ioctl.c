/*
 * The requests of ioctl_tty(2), as a table: the settings, the window, the jobs, the queues.
 */
#include "fs/tty/tty.h"

#include "lib/errno.h"
#include "lib/string.h"
#include "mm/user_memory.h"

/* What a setting waits for and throws away before it holds. */
enum { APPLY_NOW, APPLY_DRAINED, APPLY_FLUSHED };

static int get_settings(struct tty *tty, u64 argument)
{
    struct termios termios;

    mutex_lock(&tty->lock);
    termios = tty->termios;
    mutex_unlock(&tty->lock);
    return copy_to_user(argument, &termios, sizeof(termios)) ? -EFAULT : 0;
}

static void drain(struct tty *tty)
{
    if (tty->drain)
        tty->drain();
}

static int set_settings(struct tty *tty, u64 argument, int when)
{
    struct termios termios;
    bool was_canonical;

    if (copy_from_user(&termios, argument, sizeof(termios)))
        return -EFAULT;
    if (when != APPLY_NOW)
        drain(tty);
    mutex_lock(&tty->lock);
    if (when == APPLY_FLUSHED)
        tty_discard_input_locked(tty);
    was_canonical = tty->termios.line & ICANON;
    tty->termios = termios;
    if (was_canonical != !!(termios.line & ICANON))
        tty_mode_changed_locked(tty);
    if (tty->is_stopped && !(termios.input & IXON)) {
        tty->is_stopped = false;
        wait_wake_all(&tty->started);
    }
    mutex_unlock(&tty->lock);
    wait_wake_all(&tty->readable); /* what is there may be enough now */
    return 0;
}

static int set_now(struct tty *tty, u64 argument)
{
    return set_settings(tty, argument, APPLY_NOW);
}

static int set_drained(struct tty *tty, u64 argument)
{
    return set_settings(tty, argument, APPLY_DRAINED);
}

static int set_flushed(struct tty *tty, u64 argument)
{
    return set_settings(tty, argument, APPLY_FLUSHED);
}

static int send_break(struct tty *tty, u64 argument)
{
    (void)argument; /* a break itself means nothing to what is behind an emulated port */
    drain(tty);
    return 0;
}

static int flow(struct tty *tty, u64 argument)
{
    char key[1];

    if (argument > TCION)
        return -EINVAL;
    mutex_lock(&tty->lock);
    if (argument == TCOOFF || argument == TCOON) {
        tty->is_stopped = argument == TCOOFF;
        wait_wake_all(&tty->started);
    } else {
        key[0] = (char)tty->termios.control[argument == TCIOFF ? VSTOP : VSTART];
        if (key[0] != CONTROL_NONE)
            tty->send(key, sizeof(key));
    }
    mutex_unlock(&tty->lock);
    return 0;
}

/* What is in the port's ring is on its way already: only input can be thrown away. */
static int discard(struct tty *tty, u64 argument)
{
    if (argument > TCIOFLUSH)
        return -EINVAL;
    mutex_lock(&tty->lock);
    if (argument != TCOFLUSH)
        tty_discard_input_locked(tty);
    mutex_unlock(&tty->lock);
    return 0;
}

static int put_number(u64 argument, u32 number)
{
    return copy_to_user(argument, &number, sizeof(number)) ? -EFAULT : 0;
}

static int get_foreground(struct tty *tty, u64 argument)
{
    return tty_is_controlling(tty) ? put_number(argument, READ_ONCE(tty->foreground)) : -ENOTTY;
}

static int set_foreground(struct tty *tty, u64 argument)
{
    s32 group;

    if (copy_from_user(&group, argument, sizeof(group)))
        return -EFAULT;
    return tty_set_foreground(tty, group);
}

static int get_session(struct tty *tty, u64 argument)
{
    return tty_is_controlling(tty) ? put_number(argument, READ_ONCE(tty->session)) : -ENOTTY;
}

static int become_controlling(struct tty *tty, u64 argument)
{
    return tty_become_controlling(tty, argument == 1);
}

static int give_up(struct tty *tty, u64 argument)
{
    (void)argument;
    return tty_give_up(tty);
}

static int get_window(struct tty *tty, u64 argument)
{
    struct winsize size;

    mutex_lock(&tty->lock);
    size = tty->size;
    mutex_unlock(&tty->lock);
    return copy_to_user(argument, &size, sizeof(size)) ? -EFAULT : 0;
}

static int set_window(struct tty *tty, u64 argument)
{
    struct winsize size;

    if (copy_from_user(&size, argument, sizeof(size)))
        return -EFAULT;
    mutex_lock(&tty->lock);
    if (memcmp(&tty->size, &size, sizeof(size)) != 0) {
        tty->size = size;
        tty_signal_foreground_locked(tty, TTY_SIGWINCH);
    }
    mutex_unlock(&tty->lock);
    return 0;
}

static int count_input(struct tty *tty, u64 argument)
{
    u32 n;

    mutex_lock(&tty->lock);
    n = tty_readable_locked(tty);
    mutex_unlock(&tty->lock);
    return put_number(argument, n);
}

static int count_output(struct tty *tty, u64 argument)
{
    (void)tty; /* a write returns when its bytes are with the port */
    return put_number(argument, 0);
}

static const struct request {
    u32 number;
    bool changes; /* jobs in the background get SIGTTOU */
    int (*fn)(struct tty *tty, u64 argument);
} requests[] = {
    {TCGETS, false, get_settings},
    {TCSETS, true, set_now},
    {TCSETSW, true, set_drained},
    {TCSETSF, true, set_flushed},
    {TCSBRK, true, send_break},
    {TCSBRKP, true, send_break},
    {TCXONC, true, flow},
    {TCFLSH, true, discard},
    {TIOCGPGRP, false, get_foreground},
    {TIOCSPGRP, false, set_foreground}, /* checks for itself */
    {TIOCGSID, false, get_session},
    {TIOCSCTTY, false, become_controlling},
    {TIOCNOTTY, false, give_up},
    {TIOCGWINSZ, false, get_window},
    {TIOCSWINSZ, false, set_window},
    {FIONREAD, false, count_input},
    {TIOCOUTQ, false, count_output},
};

int tty_ioctl(struct file *file, u64 number, u64 argument)
{
    struct tty *tty = file->private_;

    for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
        const struct request *request = &requests[i];
        int error;

        if (request->number != number)
            continue;
        error = request->changes ? tty_check_job(tty, TTY_SIGTTOU) : 0;
        return error ? error : request->fn(tty, argument);
    }
    return -ENOTTY;
}
