/*
 * Job control: whose terminal it is, which group is in the foreground, and what becomes of the
 * others. Rules of POSIX's general terminal interface; tcsetpgrp(3), ioctl_tty(2), credentials(7).
 */
#include "fs/tty/tty.h"

#include "lib/errno.h"

static u32 nobody(void)
{
    return 0;
}

static bool never(void)
{
    return false;
}

static bool never_ignored(u32 signal)
{
    (void)signal;
    return false;
}

static bool never_orphaned(u32 group)
{
    (void)group;
    return false;
}

static u32 no_session(u32 group)
{
    (void)group;
    return 0;
}

static void signal_nobody(u32 group, u32 signal)
{
    (void)group, (void)signal;
}

static const struct tty_jobs no_jobs = {
    .session = nobody,
    .group = nobody,
    .leads_session = never,
    .ignores = never_ignored,
    .group_is_orphaned = never_orphaned,
    .session_of_group = no_session,
    .signal_group = signal_nobody,
};

const struct tty_jobs *tty_jobs = &no_jobs;

void tty_set_jobs(const struct tty_jobs *jobs)
{
    tty_jobs = jobs;
}

/* By number alone: a hint that needs no lock. The session may end right after. */
bool tty_is_controlling(const struct tty *tty)
{
    u32 session = READ_ONCE(tty->session);

    return session != 0 && session == tty_jobs->session();
}

static bool is_in_background(const struct tty *tty)
{
    u32 foreground = READ_ONCE(tty->foreground);

    return tty_is_controlling(tty) && foreground != 0 && foreground != tty_jobs->group();
}

/*
 * A reader that cannot be stopped must not steal input: -EIO. A writer that does not care about the
 * signal may write.
 */
int tty_check_job(struct tty *tty, u32 signal)
{
    u32 group = tty_jobs->group();

    if (!is_in_background(tty))
        return 0;
    if (tty_jobs->ignores(signal))
        return signal == TTY_SIGTTIN ? -EIO : 0;
    if (tty_jobs->group_is_orphaned(group))
        return -EIO;
    tty_jobs->signal_group(group, signal);
    return -ERESTARTSYS;
}

void tty_signal_foreground_locked(struct tty *tty, u32 signal)
{
    if (tty->foreground)
        tty_jobs->signal_group(tty->foreground, signal);
}

struct tty *tty_of_session(u32 session)
{
    struct tty *tty = tty_console();

    return tty && session && READ_ONCE(tty->session) == session ? tty : NULL;
}

u64 tty_device_of_session(u32 session, s32 *foreground)
{
    struct tty *tty = tty_of_session(session);

    *foreground = tty ? (s32)READ_ONCE(tty->foreground) : -1;
    return tty ? tty->device : 0;
}

struct tty *tty_of_caller(void)
{
    return tty_of_session(tty_jobs->session());
}

int tty_become_controlling(struct tty *tty, bool steal)
{
    u32 session = tty_jobs->session();
    int error = 0;

    mutex_lock(&tty->lock);
    if (!tty_jobs->leads_session())
        error = -EPERM;
    else if (tty->session && tty->session != session && !steal)
        error = -EPERM;
    else if (tty->session != session) {
        tty->session = session;
        tty->foreground = tty_jobs->group();
        tty_jobs->terminal_taken();
    }
    mutex_unlock(&tty->lock);
    return error;
}

void tty_session_ended(u32 session)
{
    struct tty *tty = tty_of_session(session);
    u32 foreground;

    if (!tty)
        return;
    mutex_lock(&tty->lock);
    foreground = tty->session == session ? tty->foreground : 0;
    if (tty->session == session)
        tty->session = tty->foreground = 0;
    mutex_unlock(&tty->lock);
    if (foreground) {
        tty_jobs->signal_group(foreground, TTY_SIGHUP);
        tty_jobs->signal_group(foreground, TTY_SIGCONT);
    }
    wait_wake_all(&tty->readable);
}

/* The leader gives the terminal up for its whole session. That of another member has no effect:
 * a process keeps no terminal of its own. */
int tty_give_up(struct tty *tty)
{
    if (!tty_is_controlling(tty))
        return -ENOTTY;
    if (tty_jobs->leads_session())
        tty_session_ended(tty_jobs->session());
    return 0;
}

int tty_set_foreground(struct tty *tty, s32 group)
{
    u32 session;
    int error;

    if (!tty_is_controlling(tty))
        return -ENOTTY;
    error = tty_check_job(tty, TTY_SIGTTOU);
    if (error)
        return error;
    if (group <= 0)
        return -EINVAL;
    session = tty_jobs->session_of_group((u32)group);
    if (!session)
        return -ESRCH;
    if (session != tty_jobs->session())
        return -EPERM;
    mutex_lock(&tty->lock);
    tty->foreground = (u32)group;
    mutex_unlock(&tty->lock);
    return 0;
}
