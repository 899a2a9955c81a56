/*
 * /proc/PID/task: the threads of a process.
 */
#ifndef KERNEL_TASK_PROC_TASK_H
#define KERNEL_TASK_PROC_TASK_H

#include "fs/vfs.h"

/*
 * The directory, made anew for each lookup. In it a directory for each thread, by its id, with
 * those files of the process's that differ between threads.
 *   first_ino  gives the first inode number of a thread's, of PROC_TASK_INODES
 * => with a reference; NULL when out of memory. Never sleeps.
 */
struct inode *proc_task_create(struct super_block *super, u32 pid, u64 ino);
#define PROC_TASK_INODES 16ul /* of the directory itself, and for a thread's own */

/* proc_dir.c: the numbers for a thread's directory and files. */
u64 proc_task_first_inode(u32 tid);

/* The argument of a file of /proc/PID that is to show one thread only. */
static inline void *proc_thread_argument(u32 pid, u32 tid)
{
    return (void *)((u64)tid << 32 | pid);
}

#endif
