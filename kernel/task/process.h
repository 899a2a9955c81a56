/*
 * A process: a program's address space, its open files, its place in the tree of names, and how it ended.
 */
#ifndef KERNEL_TASK_PROCESS_H
#define KERNEL_TASK_PROCESS_H

#include "fs/vfs.h"
#include "kernel/sched/task.h"
#include "kernel/task/fd_table.h"
#include "mm/fault.h"
#include "mm/vma.h"

/* Signals that this kernel sends by itself; numbers of Linux x86-64. */
enum signal_number {
    SIGILL = 4, SIGTRAP = 5, SIGABRT = 6, SIGBUS = 7, SIGFPE = 8, SIGKILL = 9, SIGSEGV = 11, SIGPIPE = 13,
};

struct process {
    u32 pid;
    char name[TASK_NAME_SIZE];
    struct mm *mm;                /* NULL once it has ended */
    struct task *task;            /* its thread */
    struct fd_table files;
    struct inode *working_dir;
    char working_path[PATH_MAX_BYTES];
    char exe_path[PATH_MAX_BYTES];
    u32 umask;
    bool is_protected;            /* init, the console's shell: never chosen when memory runs out */
    bool is_being_killed;         /* chosen already; its memory is on the way */

    /* How it ended. */
    s32 refs;
    bool has_ended;               /* under ended.lock */
    u32 exit_status;              /* 0…255 */
    u32 exit_signal;              /* 0: it exited by itself */
    struct wait_queue ended;
    struct task_fault_counters final_faults;
    struct list link;             /* all processes */
};

static inline struct process *process_current(void)
{
    return task_current()->process;
}

/*
 * Starts the program at `path` with argv and envp (NULL-terminated; copied before the call returns), console on 0, 1 and 2.
 *   is_protected  see struct process
 * => the process with one reference (process_wait or process_put), or NULL with *error: -ENOENT, -ENOEXEC, -E2BIG, -ENOMEM, …
 * Sleeps until the program is loaded or has failed to.
 */
struct process *process_spawn(const char *path, const char *const *argv, const char *const *envp,
                              bool is_protected, int *error);
/* Waits for its end and drops the reference. => the shell's view: status, or 128 + signal */
int process_wait(struct process *process);
void process_put(struct process *process);

/* Ends the current process. Never return; no lock held. */
NORETURN void process_exit(u32 status);
NORETURN void process_exit_signal(u32 signal);

/* Calls fn for each process, under the list's lock: fn must not sleep. */
void process_for_each(void (*fn)(struct process *process, void *ctx), void *ctx);

/* kernel/task/proc_dir.c: adds /proc/self and /proc/PID to the tree; once, at boot. Panics when out of memory. */
void process_add_proc_files(struct super_block *proc);

/* Registers what ends programs: bad accesses, exceptions, fatal signals, out of memory. */
void process_init(void);

/* kernel/task/exec.c: replaces nothing; fills an empty mm of the current task. => 0 with the frame to enter user mode by, or an error. */
struct exec_arguments {
    int argc, envc;
    const char *const *argv;
    const char *const *envp;
};
int exec_load(struct file *file, const struct exec_arguments *arguments, struct trap_frame *frame);

/* kernel/task/oom.c: see mm/fault.h, fault_init(). */
bool oom_kill_largest(void);
/* The memory of a process that has left the list of processes is given back. */
void oom_note_gone(struct process *process);
/* kernel/task/fatal.c: exceptions and bad accesses of programs. */
void fatal_bad_access(struct trap_frame *frame, enum fault_result result, u64 addr, enum fault_access access);
void fatal_exception(struct trap_frame *frame);

#endif
