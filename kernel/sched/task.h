/*
 * struct task: one thread of execution, and the calls that create, run and end it.
 *
 * Kernel code is not preempted: a task runs in the kernel until it sleeps or returns. User code is
 * preempted at the end of its time slice. Fields above the scheduler's floor (mm, process) are
 * opaque here.
 */
#ifndef KERNEL_SCHED_TASK_H
#define KERNEL_SCHED_TASK_H

#include "kernel/sync/lockorder.h"
#include "kernel/sync/spin.h"
#include "lib/deferred.h"
#include "lib/list.h"

struct mm;
struct process;
struct pt_space;
struct thread;
struct trap_frame;

enum task_state {
    TASK_NEW,      /* not started yet */
    TASK_RUNNABLE, /* in a run queue */
    TASK_RUNNING,  /* on a CPU; also while it prepares to sleep */
    TASK_SLEEPING, /* gave the CPU away (or is just doing so: see on_cpu) until woken */
    TASK_DEAD,
};

#define TASK_NAME_SIZE     16
#define FAULT_TIME_BUCKETS 32

/* Filled in by mm/account.c for each finished fault; read by getrusage and /proc. Own task writes,
 * anybody reads. */
struct task_fault_counters {
    u64 started, major, minor, sigbus, sigsegv, oom, killed, attempts, retries, retry_misses;
    u64 reason[10]; /* enum fault_reason of mm/fault.h */
    u64 waits, wait_ns, lock_across_io;
    u64 fallback[4];              /* enum fault_fallback of mm/fault.h */
    u64 reads, read_pages;        /* runs of pages that faults asked the disk for */
    u64 read_waits, read_wait_ns; /* of read(2): no faults, but they wait for the same pages */
    /* [N]: how often it took 2^N to 2^(N+1) ns; the last one: or longer */
    u64 lock_hold[FAULT_TIME_BUCKETS], latency[FAULT_TIME_BUCKETS];
    /* As vm.account counts; modulo 2^64, since linux-2009 goes below zero. */
    u64 shown_major, shown_minor;
    u64 shown_pgfault, shown_pgmajfault;
};

/* Says who holds a lock or page that somebody waits for, without any lock of its own: what it reads may change. */
typedef void (*wait_holder_fn)(const void *object, void (*line)(const char *fmt, ...));

struct task {
    u32 pid;   /* thread id; unique */
    u32 state; /* enum task_state; guarded by run_lock */
    char name[TASK_NAME_SIZE];
    u64 saved_rsp;          /* while not running */
    void *stack;            /* lowest byte; NULL for a CPU's first (idle) task */
    void *fpu_area;         /* NULL for kernel threads */
    struct pt_space *space; /* address space to run with; NULL: any (kernel thread) */
    struct mm *mm; /* of mm/; may be set on kernel threads that work in a program's memory */
    struct process *process; /* of kernel/task/ */
    struct thread *thread;   /* of kernel/task/; NULL for kernel threads */
    u64 fs_base, gs_base;    /* user's, while not running */

    void (*start_fn)(void *arg);
    void *start_arg;

    u32 cpu;        /* where it runs, waits to run, or ran last */
    u32 on_cpu;     /* its stack is in use on `cpu`; cleared by the task that follows it there */
    bool is_pinned; /* never moved to another CPU */
    cpumask_t allowed_cpus; /* 0: all; kernel/sched/affinity.h */
    bool is_idle;           /* a CPU's first task: never queued, runs when nothing else does */
    struct spinlock run_lock;
    struct list run_link; /* run queue; guarded by that queue's lock */
    struct list all_link; /* list of all tasks */
    u64 slice_end_ns;

    bool sleep_prepared; /* between sched_sleep_prepare and sched_sleep; guarded by run_lock */
    bool wake_pending;   /* a wake-up came between prepare and sleep; guarded by run_lock */
    bool has_exited;     /* exit_code is valid; joiners go on */
    u32 kill_pending;    /* a fatal signal is pending: killable sleeps end; set by task_kill() */
    u32 signal_pending; /* a signal waits to be handled: interruptible sleeps end; set by kernel/task */
    u32 pagefault_disabled; /* > 0: user-memory faults go straight to the exception table */

    const char *wait_reason; /* printf format of what it waits for (two u64), NULL when running */
    u64 wait_args[2];
    u64 wait_since_ns;
    bool wait_may_last; /* nobody is to be worried however long it takes (hung.h) */
    u64 hung_since_ns;  /* wait_since_ns of the last wait that was reported; hung.c only */
    /* What it waits for and who can say who has it (NULL: nobody can); written while awake. */
    const void *wait_object;
    wait_holder_fn wait_holder;

    u64 user_ns, system_ns; /* time used; updated at every switch and at entry/exit of the kernel */
    u64 time_stamp_ns;      /* when the current stretch began */
    bool in_user;           /* the stretch belongs to user_ns */

    struct task_fault_counters faults;
    struct fault *fault; /* the fault in hand, for gdb and panics (mm/fault.h) */
    s32 ref_count;       /* the struct is freed with the last one */
    int exit_code;
    void (*on_exit)(struct task *task); /* called in the dying task, for its owner room */
    struct deferred death;              /* gives the stack back once the CPU has left it */
    u32 sync_id;  /* what seeded yields know it by: its pid, unless a test gives it another */
    u64 sync_rng; /* how many sync points it came by while a seed was set */
    struct lock_held_list held; /* lock-order checker; empty in release builds */
};

static inline struct task *task_current(void)
{
    return this_cpu()->current;
}

/*
 * Makes the boot CPU's flow of control task 0, the one that will be its idle task; until then it
 * may sleep like any other (with nothing else to run, the CPU halts meanwhile). After slab_init,
 * before any lock that sleeps.
 */
void sched_init(void);
void sched_init_cpu(void);           /* the same on each other CPU, interrupts off */
NORETURN void sched_idle_loop(void); /* every CPU's first task ends here */

/*
 * A kernel thread that runs fn(arg), runnable at once; its exit code is 0 if fn returns. cpu -1:
 * any; else it stays on that CPU. => task with one reference for the caller (task_join or task_put
 * drops it), NULL when out of memory.
 */
struct task *task_create(const char *name, void (*fn)(void *arg), void *arg, int cpu);
/* As task_create but not yet started, so that the caller can fill fields in; then task_start(), or
 * task_put() to give up. */
struct task *task_create_stopped(const char *name, void (*fn)(void *arg), void *arg, int cpu);
void task_start(struct task *task);
NORETURN void task_exit(int code); /* ends the current task; calls on_exit first */
int task_join(struct task *task);  /* waits for its end, drops the caller's reference. => exit code.
                                      May sleep. */
void task_get(struct task *task);
void task_put(struct task *task);
/*
 * Marks a fatal signal, wakes the task from killable sleeps, and makes it enter the kernel if it runs a program on another CPU.
 * Any context.
 */
void task_kill(struct task *task);
static inline bool task_kill_is_pending(const struct task *task)
{
    return READ_ONCE(task->kill_pending);
}
/* Marks that a signal waits to be handled and wakes the task from interruptible sleeps. Any context. */
void task_interrupt(struct task *task);
/* Must an interruptible sleep end? Also with a fatal signal. */
static inline bool task_signal_is_pending(const struct task *task)
{
    return READ_ONCE(task->kill_pending) || READ_ONCE(task->signal_pending);
}
void task_for_each(void (*fn)(struct task *task, void *ctx),
                   void *ctx); /* under the list lock: fn must not sleep */
/* The same if the lock is free at once, also from interrupts. => whether it was */
bool task_for_each_if_free(void (*fn)(struct task *task, void *ctx), void *ctx);
/* What a sleeping task waits for, in words. Any context. */
void task_format_wait(const struct task *task, char *text, size_t size);
/* One line for each task that holds the lock at this address, by the lock checker's lists (debug builds). => how many */
unsigned task_print_holders(const void *lock, void (*line)(const char *fmt, ...));
/* Set by kernel/task: numbers that no new task may get although no task has them (a zombie's, a group's). May take spinlocks. */
void task_set_pid_filter(bool (*is_used)(u32 pid));
struct task *task_find(u32 pid); /* => with a reference, or NULL */

void sched_yield(void); /* lets others run. May sleep. */
/*
 * The two halves of every sleep; used by wait queues, locks, timers (kernel/sched/wait.h). A sleep
 * may end without a reason: whoever sleeps tests its condition again. sched_sleep without a prepare
 * before it returns at once.
 */
void sched_sleep_prepare(void); /* a wake-up from now on is not lost */
void sched_sleep(void); /* gives the CPU away until woken (returns at once if already woken) */
void sched_sleep_cancel(void);      /* after prepare, when the condition came true */
bool sched_wake(struct task *task); /* => whether it was asleep, or about to be. Any context, also
                                       interrupts. */
void sched_timer_tick(void);        /* by timer_interrupt(): the slice may be over */
/* The running task came from user mode: the time until now was its own. Interrupts off. */
void sched_account_user_exit(void);
/*
 * Before each return to user mode, interrupts off: runs others if the slice is over, and is the
 * quiet point of this CPU; in debug builds panics with a lock held. => whether others ran (they may
 * have left signals: look again); if not, the time from now on is user time
 */
bool sched_user_return_hook(void);
/* Time the task has used up to now, nanoseconds; exact for the current task, up to its last switch for others. */
void task_times(const struct task *task, u64 *user_ns, u64 *system_ns);
u64 sched_switch_count(void);    /* switches of all CPUs since boot */
u64 sched_idle_ns(unsigned cpu); /* time without anything to run */
u64 sched_user_ns(unsigned cpu); /* time in user mode, up to its last entry into the kernel */
/* One line for each sleeping task: pid, name, what it waits for and since when. line NULL: to the
 * log. For panics and gdb. */
void sched_print_waits(void (*line)(const char *fmt, ...));

#endif
