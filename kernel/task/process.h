/*
 * A process: a group of threads with one address space, its open files, its place in the tree of names and in the
 * family of processes, and how it ended.
 *
 * Locks:
 *   process_tree_lock   spinlock: the list of all processes, parent, children, siblings, pgid, sid, state and the
 *                       fields of the wait calls. Not from interrupts. Under it: process->lock, the signal locks, wait queues.
 *                       Also the pointers mm and task.
 *   process->lock       spinlock: threads, n_threads, is_ending, limits. Under it: run queues.
 *   fd_table, fs_context have their own.
 * A process found under process_tree_lock stays while the lock is held, or for as long as a reference is.
 * Life: running -> (all threads gone) zombie, holds only its status -> reaped, out of the tree -> freed with the last reference.
 */
#ifndef KERNEL_TASK_PROCESS_H
#define KERNEL_TASK_PROCESS_H

#include "fs/vfs.h"
#include "kernel/sched/task.h"
#include "kernel/sched/wait.h"
#include "kernel/task/capability.h"
#include "kernel/task/fd_table.h"
#include "kernel/task/fs_context.h"
#include "kernel/task/limits.h"
#include "kernel/task/signal_number.h"
#include "kernel/task/thread.h"
#include "mm/fault.h"
#include "mm/vma.h"

struct signal_actions; /* kernel/task/signal.h: what CLONE_SIGHAND shares */
struct signal_process; /* kernel/task/signal.h: pending signals of the whole process, timers */

enum process_state { PROCESS_RUNNING, PROCESS_ZOMBIE, PROCESS_REAPED };

/* What processes have used: of one, or of all children waited for. */
struct process_usage {
    u64 user_ns, system_ns, minor_faults, major_faults, max_rss_pages;
};

struct process {
    u32 pid; /* = the thread group's id */
    char name[TASK_NAME_SIZE];
    struct mm *mm; /* NULL once it has ended; under process_tree_lock; own threads read it freely */
    struct task *
        task; /* of its first thread; for /proc; under process_tree_lock. Stays its own after it has gone */
    struct fd_table *files;
    struct fs_context *fs;
    char exe_path[PATH_MAX_BYTES]; /* changed by exec only */
    bool is_protected;    /* init, the console's shell: never chosen when memory runs out */
    bool is_being_killed; /* chosen already; its memory is on the way */

    struct spinlock lock;
    struct list threads; /* struct thread.link */
    u32 n_threads;
    bool is_ending;    /* exit_group or a fatal signal: no new threads; status_of_end is set */
    u32 status_of_end; /* in the form of wait(2) */
    struct thread *exec_thread;    /* waits for the others to go, in exec */
    struct wait_queue thread_gone; /* exec waits here */
    struct limit limits[LIMIT_COUNT];
    struct capabilities capabilities;

    struct signal_actions *signal_actions;
    struct signal_process *signals;
    u32 exit_signal; /* sent to the parent at the end: SIGCHLD or what clone said; 0: none */

    /* The family; process_tree_lock. */
    struct process *parent; /* NULL: init and what the kernel started */
    struct list children, sibling;
    u32 pgid, sid;
    bool is_session_leader;
    bool has_execed;                    /* setpgid by the parent is over */
    struct wait_queue children_changed; /* wait4 of this process sleeps here */

    /* State as the parent sees it; process_tree_lock. */
    u32 state;       /* enum process_state */
    u32 wait_status; /* of a zombie, as wait4 gives it */
    u32 stop_signal; /* job control: the signal that stopped it, 0: it runs */
    bool stop_unreported, continue_unreported;
    struct process_usage usage; /* of threads that have gone; complete when it is a zombie */
    struct process_usage children_usage;
    struct task_fault_counters final_faults;

    s32 refs;
    struct wait_queue ended;      /* process_wait */
    struct wait_queue vfork_done; /* the parent in vfork */
    bool is_vfork_child; /* holds its parent's address space; cleared and woken by exec and exit */
    struct list link;    /* all processes, under process_tree_lock */
};

extern struct spinlock process_tree_lock;

static inline bool process_has_ended(const struct process *process)
{
    return READ_ONCE(process->state) != PROCESS_RUNNING;
}

static inline struct process *process_current(void)
{
    return task_current()->process;
}

/*
 * Starts the program at `path` with argv and envp (NULL-terminated; copied before the call returns), console on 0, 1 and 2.
 * It leads its own session and group. The first one is init, pid 1 (if that pid is free).
 *   is_protected  see struct process
 * => the process with one reference (process_wait or process_put), or NULL with *error: -ENOENT, -ENOEXEC, -E2BIG, -ENOMEM, …
 * Sleeps until the program is loaded or has failed to.
 */
struct process *process_spawn(const char *path, const char *const *argv, const char *const *envp,
                              bool is_protected, int *error);
/* Waits for its end and drops the reference. => the shell's view: status, or 128 + signal */
int process_wait(struct process *process);
static inline void process_get(struct process *process)
{
    __atomic_add_fetch(&process->refs, 1, __ATOMIC_ACQ_REL);
}
void process_put(struct process *process);

/* Ends all threads of the current process; the first caller's status counts. Never return; no lock held. */
NORETURN void process_exit(u32 status);        /* exit_group */
NORETURN void process_exit_signal(u32 signal); /* by a signal */
/* Ends the current thread; the process too if it is the last one. No lock held. */
NORETURN void thread_exit(u32 status);
/* The current thread is marked killed (task_kill_is_pending): by exit_group, a fatal signal, or exec of another thread. */
NORETURN void thread_exit_killed(void);
/*
 * A fatal signal for the whole process, from anywhere: all its threads end as soon as they leave the kernel or sleep
 * killably. Takes process->lock; process_tree_lock may be held.
 */
void process_kill(struct process *process, u32 signal);

/* Calls fn for each process, also zombies, under process_tree_lock: fn must not sleep. */
void process_for_each(void (*fn)(struct process *process, void *ctx), void *ctx);
/* By pid. _locked: process_tree_lock is held. The other one gives a reference. NULL: none (zombies are found, reaped ones not). */
struct process *process_find_locked(u32 pid);
struct process *process_find(u32 pid);
/* Calls fn for each process of the group, process_tree_lock held by the caller. => number of processes */
unsigned process_for_each_in_group_locked(u32 pgid, void (*fn)(struct process *process, void *ctx),
                                          void *ctx);
/* Is no member's parent in another group of the session (process_tree_lock held)? Its stops by the terminal are void then. */
bool process_group_is_orphaned_locked(u32 pgid);
/* The thread with that id in `process` (NULL: in any). Its process has a reference for the caller and the thread
 * stays valid until thread_put. */
struct thread *thread_find(struct process *process, u32 tid);
void thread_put(struct thread *thread);

/* Job control, called by the signal room with process_tree_lock held: tells the parent's waits and sends it SIGCHLD. */
void process_note_stopped_locked(struct process *process, u32 signal);
void process_note_continued_locked(struct process *process);

/*
 * What the signal room (kernel/task/signal*.c) provides; declared there too.
 *   create            for a new process / thread. parent NULL: the first program. share_actions: CLONE_SIGHAND.
 *                     The mask is inherited from the creating thread; pending signals are not. => 0, -ENOMEM (nothing is left behind)
 *   destroy           when the last reference of the process goes / the thread has left the list
 *   exec              handlers to default, actions unshared, alternate stack off. => 0, -ENOMEM; before the point of no return
 *   notify_parent     SIGCHLD (process->exit_signal at the end) with code CLD_* and status to process->parent; under
 *                     process_tree_lock. => for CLD_EXITED and its like: whether the parent does not want a zombie (SIG_IGN, SA_NOCLDWAIT)
 *   send_process      a signal of the kernel's (SI_KERNEL) for the whole process; process_tree_lock may be held
 */
int signal_process_create(struct process *process, struct process *parent, bool share_actions);
void signal_process_destroy(struct process *process);
int signal_thread_create(struct thread *thread, struct thread *creator);
void signal_thread_destroy(struct thread *thread);
int signal_process_exec(struct process *process);
bool signal_notify_parent_locked(struct process *process, int code, int status);
void signal_send_process(struct process *process, u32 signal);
/* What kernel/task/signal*.c does before a return to user mode, interrupts off. => whether it did something */
bool signal_user_return(struct trap_frame *frame);
enum {
    CLD_EXITED = 1,
    CLD_KILLED = 2,
    CLD_DUMPED = 3,
    CLD_TRAPPED = 4,
    CLD_STOPPED = 5,
    CLD_CONTINUED = 6
};

/* Set by the terminal's room: a session leader ends (or gives its terminal up). May sleep; no lock held. */
extern void (*process_session_ended)(struct process *leader);

/* wait(2) status words. */
#define WAIT_STATUS_EXITED(code)     (((u32)(code)&0xff) << 8)
#define WAIT_STATUS_SIGNALED(signal) ((u32)(signal)&0x7f)
#define WAIT_STATUS_STOPPED(signal)  (((u32)(signal) << 8) | 0x7f)
#define WAIT_STATUS_CONTINUED        0xffffu
static inline u32 process_status_signal(u32 wait_status)
{
    return wait_status & 0x7f;
}

/* kernel/task/proc_dir.c: adds /proc/self and /proc/PID to the tree; once, at boot. Panics when out of memory. */
void process_add_proc_files(struct super_block *proc);

/* Registers what ends programs: bad accesses, exceptions, fatal signals, out of memory. */
void process_init(void);

/* ---- Making processes and threads: kernel/task/clone.c --------------------------------------- */

enum clone_flag {
    CLONE_VM = 0x100,
    CLONE_FS = 0x200,
    CLONE_FILES = 0x400,
    CLONE_SIGHAND = 0x800,
    CLONE_PIDFD = 0x1000,
    CLONE_PTRACE = 0x2000,
    CLONE_VFORK = 0x4000,
    CLONE_PARENT = 0x8000,
    CLONE_THREAD = 0x10000,
    CLONE_NEWNS = 0x20000,
    CLONE_SYSVSEM = 0x40000,
    CLONE_SETTLS = 0x80000,
    CLONE_PARENT_SETTID = 0x100000,
    CLONE_CHILD_CLEARTID = 0x200000,
    CLONE_DETACHED = 0x400000,
    CLONE_UNTRACED = 0x800000,
    CLONE_CHILD_SETTID = 0x1000000,
};

struct clone_arguments {
    u64 flags; /* enum clone_flag */
    u32 exit_signal;
    u64 stack; /* user rsp of the child; 0: the caller's */
    u64 parent_tid, child_tid, tls;
};
/* clone(2) of the current thread, in a system call. => the child's id, -EAGAIN, -ENOMEM, -EINVAL, -ERESTARTNOINTR. Sleeps. */
s64 process_clone(const struct clone_arguments *arguments);

/* ---- Waiting for children: kernel/task/wait_child.c ------------------------------------------ */

enum { WAIT_FOR_ANY = 0, WAIT_FOR_PID = 1, WAIT_FOR_GROUP = 2 }; /* P_ALL, P_PID, P_PGID */
enum {
    WNOHANG = 1,
    WUNTRACED = 2,
    WSTOPPED = 2,
    WEXITED = 4,
    WCONTINUED = 8,
    WNOWAIT = 0x1000000,
    WAIT_NO_THREADS = 0x20000000,
    WAIT_ALL_KINDS = 0x40000000,
    WAIT_CLONES = (int)0x80000000, /* __WNOTHREAD, __WALL, __WCLONE */
};

struct wait_request {
    u32 kind, id;
    u32 options; /* WEXITED and so on say what counts */
};
struct wait_result {
    u32 pid, status;       /* of wait4 */
    int code, code_status; /* of waitid: CLD_*, and the exit status or signal */
    struct process_usage usage;
};
/* => the child's pid; 0: none with WNOHANG; -ECHILD, -ERESTARTSYS. Sleeps. */
s64 process_wait_child(const struct wait_request *request, struct wait_result *result);

/* ---- Another program: kernel/task/exec_replace.c --------------------------------------------- */

/*
 * execve(2) of the current thread, in a system call. argv, envp: user addresses of NULL-terminated arrays.
 * => 0: the registers of the call are the new program's; else the old program goes on (if the error is -ENOMEM or -EINTR,
 * its other threads may have been ended). Past the point of no return nothing can fail. Sleeps.
 */
s64 process_exec(struct inode *base, const char *base_path, const char *path, u64 argv, u64 envp);

/* What the process has used up to now, threads that have gone included; ended children are not. */
void process_usage_get(struct process *process, struct process_usage *usage);
void process_usage_add(struct process_usage *sum, const struct process_usage *usage);

/* kernel/task/exec.c: fills the empty mm of the current task. => 0 with the frame to enter user mode by, or an error. */
struct exec_arguments {
    int argc, envc;
    const char *const *argv;
    const char *const *envp;
    const char *exec_path; /* AT_EXECFN; NULL: argv[0] */
};
int exec_load(struct file *file, const struct exec_arguments *arguments, struct trap_frame *frame);

/* kernel/task/oom.c: see mm/fault.h, fault_init(). */
bool oom_kill_largest(void);
/* The memory of a process that has left the list of processes is given back. */
void oom_note_gone(struct process *process);
/* kernel/task/fatal.c: exceptions and bad accesses of programs. */
void fatal_bad_access(struct trap_frame *frame, enum fault_result result, u64 addr,
                      enum fault_access access);
void fatal_exception(struct trap_frame *frame);
/* A handler cannot be called: there is no memory at the stack pointer. */
void fatal_no_signal_frame(struct trap_frame *frame);

#endif
