/*
 * Signals: what is pending, who may take it, what is done about it. Numbers, structures and rules of Linux x86-64
 * (man-pages: signal(7), sigaction(2), sigaltstack(2), rt_sigqueueinfo(2)).
 *
 *   signal.c           sending: choosing a thread, waking it, job control's cancelling of opposites
 *   signal_queue.c     pending sets and queues
 *   signal_actions.c   the table of handlers, and what fork, exec and exit do with it
 *   signal_deliver.c   before each return to user mode: stop, end, call a handler, restart a call
 *   signal_frame.c     the frame on the program's stack, and rt_sigreturn
 *   signal_fpu.c       the extended registers in that frame
 *   itimer.c           setitimer;  posix_timer.c  timer_create
 *
 * A signal is sent in any context (timers send from interrupts), and acted upon only by its thread, on the way to user
 * mode. In between it is pending: of a thread, or of the whole process, where any thread that does not block it takes it.
 * A signal whose default is to end the process does so at the time of sending: it marks all threads killed, so that
 * also waits for the disk end (task_kill).
 *
 * Locks: signal_process.lock, interrupts off, guards everything in struct signal_process and in the signal_thread of its
 * threads that is not marked "own thread"; under it signal_actions.lock, run queues, the slab. process_tree_lock and
 * process->lock may be held outside it.
 *
 * Calls that sleep interruptibly return -ERESTARTSYS (and its like, lib/errno.h) and leave the rest to signal_deliver.c:
 * the call is made again, or the program sees EINTR.
 */
#ifndef KERNEL_TASK_SIGNAL_H
#define KERNEL_TASK_SIGNAL_H

#include "kernel/cpu/trap.h"
#include "kernel/sched/timer.h"
#include "kernel/sched/wait.h"
#include "kernel/sync/spin.h"
#include "kernel/task/signal_number.h"
#include "lib/errno.h"
#include "lib/list.h"

struct process;
struct thread;
struct trap_frame;

typedef u64 sigset_bits; /* bit n - 1: signal n */
static inline sigset_bits signal_bit(u32 signal)
{
    return 1ul << (signal - 1);
}

/* The first 48 bytes of siginfo_t; the other 80 are zero. */
struct signal_info {
    s32 signal, error, code;
    u32 pad;
    union {
        u64 raw[4];
        struct {
            u32 pid, uid;
            u64 value;
        } from; /* kill, sigqueue */
        struct {
            s32 id, overrun;
            u64 value;
        } timer;
        struct {
            u32 pid, uid;
            s32 status, pad;
            s64 user_ticks, system_ticks; /* 1/100 s */
        } child;
        struct {
            u64 addr;
            u64 pad;
            u32 key; /* protection key, SEGV_PKUERR */
        } fault;
    };
};
_Static_assert(sizeof(struct signal_info) == 48, "siginfo_t of x86-64");
#define SIGNAL_INFO_BYTES 128 /* siginfo_t in the program's memory */

/* si_code: who sent it (signal(7), sigaction(2)). */
enum {
    SI_USER = 0,
    SI_KERNEL = 0x80,
    SI_QUEUE = -1,
    SI_TIMER = -2,
    SI_TKILL = -6,
    ILL_ILLOPN = 2,
    FPE_INTDIV = 1,
    FPE_INTOVF = 2,
    FPE_FLTDIV = 3,
    FPE_FLTOVF = 4,
    FPE_FLTUND = 5,
    FPE_FLTRES = 6,
    FPE_FLTINV = 7,
    SEGV_MAPERR = 1,
    SEGV_ACCERR = 2,
    SEGV_PKUERR = 4,
    BUS_ADRALN = 1,
    BUS_ADRERR = 2,
    TRAP_BRKPT = 1,
    TRAP_TRACE = 2,
};

/* struct sigaction as rt_sigaction has it. */
struct signal_action {
    u64 handler; /* SIGNAL_DEFAULT, SIGNAL_IGNORE or an address */
    u64 flags;   /* SA_* */
    u64 restorer;
    sigset_bits mask;
};
#define SIGNAL_DEFAULT 0ul
#define SIGNAL_IGNORE  1ul

#define SA_NOCLDSTOP 0x1ul
#define SA_NOCLDWAIT 0x2ul
#define SA_SIGINFO   0x4ul
#define SA_RESTORER  0x04000000ul
#define SA_ONSTACK   0x08000000ul
#define SA_RESTART   0x10000000ul
#define SA_NODEFER   0x40000000ul
#define SA_RESETHAND 0x80000000ul

/* What CLONE_SIGHAND shares. */
struct signal_actions {
    struct spinlock lock; /* interrupts off: senders look at it */
    s32 refs;
    struct signal_action action[SIGNAL_MAX + 1]; /* [0] unused */
};

/* Signals on their way: one of each standard signal, any number of the others, first in first out. */
struct signal_pending {
    sigset_bits set;
    struct signal_info standard[SIGRTMIN];
    struct list queue; /* struct signal_entry: SIGRTMIN and up */
};

/* ITIMER_REAL runs by the clock; the two others by the time that the process uses. */
struct signal_itimer {
    u64 deadline_ns; /* on its own clock; 0: not set */
    u64 interval_ns;
};
enum { ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF, ITIMER_COUNT };

struct signal_process {
    struct process *process;
    struct spinlock lock;
    struct list threads; /* struct signal_thread.link */
    u32 n_threads;
    struct signal_pending pending;
    u32 n_queued;             /* entries in all queues of the process; LIMIT_SIGPENDING */
    sigset_bits from_outside; /* of init: whose last sender was another process */
    u32 fatal_signal;         /* all threads are marked killed because of it; 0: none */

    /* Job control. */
    u32 stop_signal; /* threads stop before they go to user mode again; 0: they run */
    u32 n_stopped;   /* that did; the last one tells the parent */
    bool is_stop_told, must_tell_continued;
    u32 n_continues; /* SIGCONTs sent */
    struct wait_queue continued;

    struct signal_itimer itimers[ITIMER_COUNT];
    struct timer real_timer, cpu_timer;
    struct list posix_timers;
    s32 next_timer_id;
};

/* A call that goes on where it was interrupted (restart_syscall): nanosleep and others with a relative time. */
struct signal_restart {
    s64 (*fn)(struct signal_restart *restart);
    u64 args[5];
};

struct signal_stack {
    u64 sp;
    u64 bytes;
    u32 flags; /* SS_DISABLE, SS_AUTODISARM */
};
#define SS_ONSTACK    1u
#define SS_DISABLE    2u
#define SS_AUTODISARM 0x80000000u

struct signal_thread {
    struct thread *thread;
    struct signal_process *shared;
    struct list link;
    sigset_bits mask;       /* blocked; written by the own thread only */
    sigset_bits waited_for; /* sigtimedwait: a signal of these wakes it although blocked */
    struct signal_pending pending;

    /* Own thread only. */
    sigset_bits saved_mask; /* comes back when the call that set a temporary mask is over */
    bool has_saved_mask;
    struct signal_stack stack;
    struct signal_restart restart;
    u32 n_continues_seen; /* when the signal in hand was taken: a later SIGCONT makes a stop void */
    u64 trap_vector, trap_error, trap_address; /* of the last fault, for the frame */
};

/* ---- The life of processes and threads (called by kernel/task/process.c and its like) -------- */

/* parent NULL: the first program; share_actions: CLONE_SIGHAND. => 0, or -ENOMEM with nothing left behind */
int signal_process_create(struct process *process, struct process *parent, bool share_actions);
void signal_process_destroy(struct process *process); /* no thread is left. May sleep */
/* creator NULL: the first program's. Mask and alternate stack are inherited; the caller switches the latter off for threads. */
int signal_thread_create(struct thread *thread, struct thread *creator);
void signal_thread_destroy(struct thread *thread);
int signal_process_exec(
    struct process *process); /* in its only thread, before the point of no return. => 0, -ENOMEM */
/* SIGCHLD to process->parent, process_tree_lock held. => whether the parent wants no zombie (end of a process only) */
bool signal_notify_parent_locked(struct process *process, int code, int status);
/* Of the results of a system call, only these few mean that it may have to be made again. */
static inline bool signal_may_restart_call(const struct trap_frame *frame)
{
    return frame->vector == TRAP_VECTOR_SYSCALL && (s64)frame->rax >= -ERESTART_RESTARTBLOCK &&
           (s64)frame->rax <= -ERESTARTSYS;
}
/* Before each return to user mode, interrupts off. => whether it did something (call it again) */
bool signal_user_return(struct trap_frame *frame);
/* The signal that ends the current process (its threads are marked killed for it), 0: none. */
u32 signal_fatal_number(void);

/* ---- Sending. None sleeps. ------------------------------------------------------------------- */

/* A signal of the kernel's (SI_KERNEL). Any context. */
void signal_send_process(struct process *process, u32 signal);
/* With its information. Any context. => 0, or -EAGAIN: too many queued (SIGRTMIN and up only) */
int signal_send_process_info(struct process *process, const struct signal_info *info);
int signal_send_thread(struct thread *thread, const struct signal_info *info);
/* To every process of the group, process_tree_lock held (so not from interrupts). => number of processes */
unsigned signal_send_group_locked(u32 pgid, u32 signal);
unsigned signal_send_group(u32 pgid, u32 signal); /* takes the lock */
/* To the current thread, as if by itself: SIGPIPE. */
void signal_send_self(u32 signal);
/*
 * The current thread's instruction cannot go on. Where the signal is blocked or ignored, the process ends by it.
 *   frame  the registers at the fault; the handler returns to them
 *   code   SEGV_MAPERR …;  addr: si_addr
 * => whether a handler will be called (else the process is going to end on the way to user mode)
 */
bool signal_force_fault(struct trap_frame *frame, u32 signal, s32 code, u64 addr);

/* ---- For calls that wait --------------------------------------------------------------------- */

/* Would the current thread not see it (blocked or ignored)? For SIGTTIN, SIGTTOU. */
bool signal_is_held_back(u32 signal);
bool signal_is_ignored(u32 signal); /* set to be ignored, or so by default */
/*
 * sigsuspend, ppoll, pselect, epoll_pwait: the mask for the time of the call. Afterwards _end: is_interrupted (the call
 * returns -EINTR or an -ERESTART…): the old mask comes back only after the handler has run.
 */
void signal_mask_begin(sigset_bits mask);
void signal_mask_end(bool is_interrupted);
/* => -ERESTART_RESTARTBLOCK: unless a handler runs, fn(restart) is called again for the rest of the call. */
s64 signal_restart_by(s64 (*fn)(struct signal_restart *restart), u64 a, u64 b, u64 c, u64 d, u64 e);

/* ---- Inside the room ------------------------------------------------------------------------- */

#define SIGNALS_UNBLOCKABLE (1ul << (SIGKILL - 1) | 1ul << (SIGSTOP - 1))
enum signal_default { SIGNAL_ENDS, SIGNAL_IS_IGNORED, SIGNAL_STOPS, SIGNAL_CONTINUES };
enum signal_default signal_default_of(u32 signal);

static inline bool signal_is_valid(u64 signal)
{
    return signal >= 1 && signal <= SIGNAL_MAX;
}

/* signal_queue.c; lock held. */
void signal_pending_init(struct signal_pending *pending);
int signal_pending_add_locked(struct signal_process *shared, struct signal_pending *pending,
                              const struct signal_info *info);
/* Takes the next one out of `set`, faults first, then the lowest number. => whether there was one */
bool signal_pending_take_locked(struct signal_process *shared, struct signal_pending *pending,
                                sigset_bits set, struct signal_info *info);
void signal_pending_discard_locked(struct signal_process *shared, struct signal_pending *pending,
                                   sigset_bits set);

/* signal_actions.c */
struct signal_action signal_action_get(struct process *process, u32 signal);
/* Sets *action (NULL: only reads) and gives the old one. What is pending and now ignored is discarded. */
void signal_action_change(u32 signal, const struct signal_action *action,
                          struct signal_action *old);
/* Does the default action of a signal that was sent to init not happen? Only where init itself or the kernel sent it last, it does. */
bool signal_spares_init(struct signal_process *shared, u32 signal);
bool signal_is_ignored_by(struct process *process, u32 signal);

/* signal.c: current thread. */
void signal_mask_set(sigset_bits mask);
void signal_update_pending_locked(struct signal_thread *self);
void signal_wake_locked(
    struct signal_thread *thread); /* it has something to do on its way to user mode */
bool signal_take(sigset_bits set, struct signal_info *info);

/*
 * signal_fpu.c: extended state in a frame. user_area: 64-byte aligned, signal_fpu_bytes() long.
 *   save     the current registers; they are then those of a new program. => 0, -EFAULT, -ENOMEM
 *   restore  0: those of a new program. Bits that would fault are refused. => 0, -EFAULT, -EINVAL, -ENOMEM
 */
size_t signal_fpu_bytes(void);
int signal_fpu_save(u64 user_area);
int signal_fpu_restore(u64 user_area);

/* signal_frame.c: => whether it could be written; then *frame starts the handler. Sleeps. */
bool signal_frame_push(struct trap_frame *frame, const struct signal_info *info,
                       const struct signal_action *action, sigset_bits mask_to_restore);
/* Everything back from the frame at the program's rsp. => rax; a bad frame raises SIGSEGV. */
s64 signal_frame_return(struct trap_frame *frame);
/* Does the program run on its alternate stack? Never with SS_AUTODISARM. */
bool signal_is_on_stack(const struct signal_stack *stack, u64 sp);
/* => 0, -EPERM: the program runs on it (rsp), -EINVAL, -ENOMEM: too small */
int signal_stack_change(struct signal_thread *me, const struct signal_stack *new_stack, u64 rsp);
/* In trap_frame.vector once the result of a system call is settled, and rax is the program's own again. */
#define TRAP_VECTOR_NONE 0x101

/* itimer.c, posix_timer.c */
void posix_timers_destroy(struct signal_process *shared);
void posix_timer_note_taken_locked(struct signal_process *shared, const struct signal_info *info);
/* tid 0: to the process. Of a thread that has gone: nothing. */
void signal_send_timer_locked(struct signal_process *shared, u32 tid,
                              const struct signal_info *info);
void itimer_init(struct signal_process *shared);
void itimer_destroy(struct signal_process *shared);
/* Times in nanoseconds; new NULL: only reads. old: left, and interval. */
void itimer_change(u32 which, const struct signal_itimer *new_value, struct signal_itimer *old);

#endif
