/*
 * Terminals: a line discipline between a serial port and the programs in front of it.
 *
 *     port --interrupt--> raw ring --tty's task--> line discipline --> input buffer --> read()
 *                                        | echo, signals
 *     port <-------------------------- output processing <--------------------------- write()
 *
 * A byte from the port only enters a ring in the interrupt; all the rest happens in the terminal's
 * own kernel task, where locks may be slept for: ^C works while a program writes without end. One
 * mutex, tty->lock, guards everything but the ring. User memory is never touched with it held.
 *
 * A process has a controlling terminal when the terminal's session is its own: the terminal keeps
 * the numbers, a process keeps none. What the terminal must know of processes comes through struct
 * tty_jobs, which kernel/task fills in.
 *
 * Lock order: tty->lock, then the console's writer lock, or kernel/task's locks.
 */
#ifndef FS_TTY_TTY_H
#define FS_TTY_TTY_H

#include "fs/tty/termios.h"
#include "fs/vfs.h"
#include "kernel/sched/mutex.h"
#include "lib/ring.h"

#define TTY_INPUT_CHARACTERS 4096 /* the longest line, its end included */
#define TTY_RAW_BYTES        4096

/* An entry of the input buffer: the byte, and what it means in canonical mode. */
#define TTY_LINE_END 0x100u
#define TTY_EOF_MARK 0x200u /* ends a line, and is no character of it */

struct tty {
    struct ring raw; /* interrupt -> task, no lock */
    u8 raw_data[TTY_RAW_BYTES];
    struct wait_queue raw_arrived;

    struct mutex lock; /* guards all that follows */
    struct termios termios;
    struct winsize size;
    u16 input
        [TTY_INPUT_CHARACTERS]; /* [tail, committed) may be read, [committed, head) is edited */
    u32 head, committed, tail;  /* count up; positions modulo the size */
    u32 lines;                  /* line ends in [tail, head) */
    u32 column;                 /* of the cursor */
    u32 line_column;            /* where the line that is edited began */
    bool next_is_literal;       /* after ^V */
    bool is_stopped;            /* after ^S */
    u32 session, foreground;    /* 0: none */

    struct wait_queue readable; /* readers, and pollers of both kinds */
    struct wait_queue started;  /* writers that wait for ^Q */
    u64 device;                 /* number of the device that /proc/PID/stat shows */
    /* Sends bytes to the port. May sleep. */
    void (*send)(const char *text, size_t len);
    /* Waits until they have left. NULL: nothing to wait for */
    void (*drain)(void);
};

/* What a terminal asks about processes: those without an argument are about the caller. Called with
 * tty->lock held or not; may sleep. */
struct tty_jobs {
    u32 (*session)(void);
    u32 (*group)(void);
    bool (*leads_session)(void);
    void (*terminal_taken)(void); /* the terminal is the caller's session's now; it leads it */
    bool (*ignores)(u32 signal);  /* ignored or blocked */
    bool (*group_is_orphaned)(u32 group);
    u32 (*session_of_group)(u32 group);          /* 0: there is no such group */
    void (*signal_group)(u32 group, u32 signal); /* none of that number: nothing happens */
};
/* Once, at boot. Until then there are no jobs: everybody is in the foreground. */
void tty_set_jobs(const struct tty_jobs *jobs);

/* Signals that terminals send. */
enum tty_signal {
    TTY_SIGHUP = 1,
    TTY_SIGINT = 2,
    TTY_SIGQUIT = 3,
    TTY_SIGCONT = 18,
    TTY_SIGTSTP = 20,
    TTY_SIGTTIN = 21,
    TTY_SIGTTOU = 22,
    TTY_SIGWINCH = 28,
};

/* A terminal with the usual settings, without the task (tests feed it by tty_receive_now). */
void tty_init(struct tty *tty, u64 device, void (*send)(const char *text, size_t len));

/* The console becomes a terminal of that many rows and columns (0: not known). Once, at boot, after
 * serial_init_irq(). Panics when out of memory. */
void tty_start_console(u16 rows, u16 columns);
/* NULL: the console is a plain port. */
struct tty *tty_console(void);

/* The controlling terminal of a session; NULL: it has none. Never sleeps. */
struct tty *tty_of_session(u32 session);
/* Its device number as /proc/PID/stat shows it (0: none), and its foreground group (-1: none). */
u64 tty_device_of_session(u32 session, s32 *foreground);
/* The leader of a session has ended: its terminal is given up, the foreground job hears SIGHUP and
 * SIGCONT. May sleep. */
void tty_session_ended(u32 session);

/* file->private_: the tty. Opening never makes a terminal the controlling one: TIOCSCTTY does. */
extern const struct file_ops file_ops_tty;

/* ---- Between the files of this folder; tests use them too ---- */

/* input.c. Bytes from the port, through the line discipline. Takes the lock. */
void tty_receive_now(struct tty *tty, const u8 *bytes, size_t n);
/* Lock held. Takes up to len characters that may be read out of the buffer: in canonical mode at
 * most one line. *line_ended: it was taken to its end, or an end of file was met. => how many */
size_t tty_take_locked(struct tty *tty, char *buf, size_t len, bool *line_ended);
u32 tty_readable_locked(const struct tty *tty);   /* characters that may be read now */
bool tty_has_input_locked(const struct tty *tty); /* canonical: a line; else: a character */
void tty_discard_input_locked(struct tty *tty);
/* The mode has just changed from or to canonical: what was typed stays readable. */
void tty_mode_changed_locked(struct tty *tty);

/* output.c. Lock held; may sleep. */
void tty_output_locked(struct tty *tty, const char *text, size_t len);
void tty_echo_locked(struct tty *tty, u8 c);                 /* as ECHO and ECHOCTL say */
u32 tty_echo_width(const struct tty *tty, u8 c, u32 column); /* columns that the echo takes */
void tty_send_raw_locked(struct tty *tty, const char *text);

/* jobs.c */
extern const struct tty_jobs *tty_jobs; /* never NULL */
/* May the caller read (SIGTTIN), write or change (SIGTTOU)? => 0, -EIO, or -ERESTARTSYS with the
 * signal sent to its group */
int tty_check_job(struct tty *tty, u32 signal);
void tty_signal_foreground_locked(struct tty *tty, u32 signal);
bool tty_is_controlling(const struct tty *tty);
int tty_become_controlling(struct tty *tty, bool steal);
int tty_give_up(struct tty *tty);
int tty_set_foreground(struct tty *tty, s32 group);
struct tty *tty_of_caller(void); /* its controlling terminal, NULL: none */

/* ioctl.c */
int tty_ioctl(struct file *file, u64 request, u64 argument);

#endif
