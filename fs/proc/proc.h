/*
 * The files of /proc that tell about the whole system. Those about processes are kernel/task's,
 * which also fills in proc_sum_processes below.
 */
#ifndef FS_PROC_PROC_H
#define FS_PROC_PROC_H

#include "fs/vfs.h"

/* What uname and /proc/version say: the Linux whose interface this is. */
#define KERNEL_RELEASE "6.12.0-faultline"
#define KERNEL_VERSION "#1 Faultline"

/*
 * Adds all of them to the tree.
 *   cmdline  the kernel's command line, for /proc/cmdline; must stay
 * Panics when out of memory (boot). May sleep.
 */
void proc_add_system_files(struct super_block *proc, const char *cmdline);

/* What only the owner of the processes can add up. */
struct process_sums {
    u64 anon_pages;  /* in programs' memory */
    u64 table_pages; /* page tables */
};
/* Set by kernel/task at boot; until then all sums are 0. Any task context; never sleeps. */
extern void (*proc_sum_processes)(struct process_sums *sums);

/* Pages of disks' own caches: "Buffers" of /proc/meminfo, bufferram of sysinfo(2). Never sleeps. */
u64 proc_buffer_pages(void);

/* Between the files of this folder: adds a table of entries; panics when out of memory. */
void proc_add_table(struct super_block *proc, const struct text_file *entries, size_t n);
void proc_add_memory_files(struct super_block *proc);                       /* memory.c */
void proc_add_vm_files(struct super_block *proc);                           /* vm.c */
void proc_add_kernel_files(struct super_block *proc);                       /* kernel.c */
void proc_add_machine_files(struct super_block *proc, const char *cmdline); /* machine.c */
void proc_add_load_files(struct super_block *proc);                         /* load.c */
void proc_add_log_files(struct super_block *proc);                          /* logs.c */

#endif
