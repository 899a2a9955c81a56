/*
 * What the files of processes share among themselves.
 */
#ifndef KERNEL_TASK_PROCESS_INTERNAL_H
#define KERNEL_TASK_PROCESS_INTERNAL_H

#include "kernel/task/process.h"

/* process.c ------------------------------------------------------------------------------------- */

/* Empty, in no list, one reference: the tree's, once it is linked. Sleeping parts are NULL. NULL when out of memory */
struct process *process_alloc(const char *name);
/* Adds it to the list of all, and to its parent's children. process_tree_lock held. */
void process_link_locked(struct process *process, struct process *parent);
/* Takes a zombie out of the tree; the tree's reference is now the caller's to drop. process_tree_lock held. */
void process_unlink_locked(struct process *process);
/* The current task works in `mm` from here on (NULL: in none). */
void process_switch_mm(struct mm *mm);
extern struct process
    *process_init_one; /* pid 1, whom orphans go to; NULL: none. process_tree_lock */

/* thread.c -------------------------------------------------------------------------------------- */

/*
 * A stopped task that will run fn(arg), and its thread: not in the process's list yet, one reference. It inherits signal
 * mask and alternate stack of `creator` (NULL: none). NULL when out of memory
 */
struct thread *thread_create(struct process *process, struct thread *creator, void (*fn)(void *),
                             void *arg);
/* Puts it into the list; the reference passes to the list. => false: the process is ending (nothing has happened) */
bool thread_link(struct thread *thread);
/* Room for one more thread under the limits of processes? => 0, -EAGAIN. thread_uncount gives it back. */
int thread_count_one(void);
void thread_uncount(void);
void threads_init(void);
/*
 * The task's extended registers are saved no more. For the current task, or one that never ran: a switch on another CPU
 * would write into what is freed here.
 */
void thread_free_fpu_area(struct task *task);

/* futex.c: what the end of the current thread (or its exec) owes other threads: robust list, clear_child_tid. Sleeps. */
void futex_thread_exit(struct thread *thread);

/* exit.c: the parent in vfork goes on. */
void process_vfork_done(struct process *process);

/* family.c: the process has ended but for its status: children go to init, the parent is told. Drops nothing of the caller's. */
void process_become_zombie(struct process *process);

#endif
