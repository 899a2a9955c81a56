/*
 * A thread: one task of a process, and what is its own: its id, its signals, the words of memory that its end has to
 * write.
 */
#ifndef KERNEL_TASK_THREAD_H
#define KERNEL_TASK_THREAD_H

#include "kernel/sched/task.h"

struct process;
struct signal_thread; /* kernel/task/signal.h: mask, pending signals, alternate stack */
struct trap_frame;

struct thread {
    s32 refs;                /* the list's, and those of thread_find */
    struct task *task;       /* one reference */
    struct process *process; /* one reference */
    u32 tid;          /* task->pid; the first thread's is the process's pid. What exec may change */
    struct list link; /* process->threads, under process->lock; empty once it has left */
    struct signal_thread *signals; /* owned by kernel/task/signal*.c */
    struct trap_frame *
        frame; /* the program's registers while it is in a system call or an exception; own thread only */

    /* Own thread only. User addresses, 0: none. */
    u64 clear_child_tid; /* this u32 becomes 0, and a futex waiter on it wakes, when the thread ends */
    u64 set_child_tid; /* CLONE_CHILD_SETTID: written before the first instruction */
    u64 robust_list;   /* struct robust_list_head of the futex interface */
};

/* The current thread; NULL in kernel threads. */
static inline struct thread *thread_current(void)
{
    return task_current()->thread;
}

#endif
