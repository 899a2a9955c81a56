/*
 * Open files of a process by number. Shared by what CLONE_FILES joins.
 */
#ifndef KERNEL_TASK_FD_TABLE_H
#define KERNEL_TASK_FD_TABLE_H

#include "fs/vfs.h"

#define FD_MAX \
    4096 /* the hard RLIMIT_NOFILE; the soft one is the process's (kernel/task/limits.h) */

struct fd_table {
    s32 refs;
    struct spinlock lock;
    u32 capacity;
    struct fd_entry {
        struct file *file; /* one reference; NULL: free */
        bool close_on_exec;
    } * entries;
};

struct fd_table *fd_table_create(void); /* empty, one reference. NULL when out of memory */
struct fd_table *
fd_table_copy(struct fd_table *from); /* the same open files. NULL when out of memory */
void fd_table_get(struct fd_table *table);
void fd_table_put(struct fd_table *table); /* the last one closes all and frees. May sleep. */
void fd_table_close_for_exec(struct fd_table *table); /* those with close-on-exec. May sleep. */

/* Puts the file (reference passes to the table) at the lowest free number >= min. => number, -EMFILE, -ENOMEM (reference not taken) */
int fd_install(struct fd_table *table, struct file *file, int min, bool close_on_exec);
/* The file at fd with a reference of its own, or NULL. */
struct file *fd_get(struct fd_table *table, int fd);
int fd_close(struct fd_table *table, int fd); /* => 0, -EBADF. May sleep. */
/* Puts the file at exactly `fd`, closing what was there. => fd, -EBADF, -ENOMEM (reference not taken). May sleep. */
int fd_replace(struct fd_table *table, int fd, struct file *file, bool close_on_exec);
/* Close-on-exec flag: => 0/1, -EBADF; set: -1 leaves it. */
int fd_flags(struct fd_table *table, int fd, int set);

#endif
