/*
 * Between the two halves of /proc/PID: proc_files.c has the files, proc_dir.c the directories.
 */
#ifndef KERNEL_TASK_PROC_FILES_H
#define KERNEL_TASK_PROC_FILES_H

#include "fs/vfs.h"

/* The files of /proc/PID; their argument is the pid. path is a plain name. */
extern const struct text_file proc_pid_files[];
extern const unsigned proc_pid_files_count;

#endif
