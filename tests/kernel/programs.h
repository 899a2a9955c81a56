/*
 * For tests that run programs of the root file system: finding out whether they can, waiting for
 * their end, and measuring what they leave behind.
 */
#ifndef TESTS_KERNEL_PROGRAMS_H
#define TESTS_KERNEL_PROGRAMS_H

#include "kernel/task/process.h"

struct block_device;

bool program_exists(const char *path); /* false too where there is no root file system */
/* Starts path with up to three arguments (NULL: none), unprotected unless said. => with two
 * references, or NULL and *error */
struct process *program_start(const char *path, const char *a, const char *b, const char *c,
                              bool is_protected, int *error);
/* Waits until the program, and its task too, are gone. => status or 128 + signal; one reference
 * stays: process_put() */
int program_end(struct process *process);
struct block_device *program_disk(void); /* that the root file system lies on */

/* Frames that are free, or kept for a purpose that a program may change: slabs, stacks and the page
 * tables that map them, cached pages. */
u64 program_frames(void);
/* Objects handed out by all slab caches, but for those that cached files are made of. */
u64 program_objects(void);

#endif
