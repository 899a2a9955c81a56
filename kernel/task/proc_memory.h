/*
 * The files of /proc/PID that show a process's memory; for the tables of proc_files.c.
 */
#ifndef KERNEL_TASK_PROC_MEMORY_H
#define KERNEL_TASK_PROC_MEMORY_H

#include "fs/vfs.h"

struct mm;

/* The address space of a process, with a use; NULL: it has none (any more). Never sleeps. */
struct mm *proc_mm_of(u32 pid);

/* arg: the pid; see struct text_file. */
size_t proc_show_smaps(void *arg, char *buf, size_t size);
size_t proc_show_smaps_rollup(void *arg, char *buf, size_t size);

size_t proc_show_statm(void *arg, char *buf, size_t size);
int proc_store_clear_refs(void *arg, const char *text, size_t len); /* 0, -EINVAL, -ESRCH */

struct text_out;

/* The lines Vm… and Rss… of /proc/PID/status. Takes mmap_lock. */
void proc_put_status_sizes(struct text_out *out, struct mm *mm);

extern const struct file_ops proc_pagemap_ops; /* 8 bytes for each page; read only */
extern const struct file_ops proc_mem_ops;     /* the memory itself */

#endif
