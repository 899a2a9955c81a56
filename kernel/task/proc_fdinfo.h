/*
 * Between proc_dir.c, which has the directory of a process, and proc_fdinfo.c, which has fd and
 * fdinfo.
 */
#ifndef KERNEL_TASK_PROC_FDINFO_H
#define KERNEL_TASK_PROC_FDINFO_H

#include "kernel/task/fd_table.h"

/*
 * The directories /proc/PID/fd and /proc/PID/fdinfo, made anew for each lookup.
 *   ino  its inode number; the files in it have those behind it, one for each descriptor
 * => with a reference; NULL when out of memory. Never sleeps.
 */
struct inode *proc_fd_create(struct super_block *super, u32 pid, u64 ino);
struct inode *proc_fdinfo_create(struct super_block *super, u32 pid, u64 ino);
#define PROC_FDINFO_INODES (1 + FD_MAX) /* the numbers that it takes */

/* Its "..": the directory /proc/PID, of the same kind. */
struct inode *proc_pid_dir_create(struct super_block *super, u32 pid);

#endif
