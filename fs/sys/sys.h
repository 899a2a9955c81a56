/*
 * The files of /sys: disks, CPUs, huge pages, and the files that arrange races.
 */
#ifndef FS_SYS_SYS_H
#define FS_SYS_SYS_H

#include "fs/vfs.h"

/*
 * Adds all of them for the disks that are registered now. Panics when out of memory (boot).
 * May sleep.
 */
void sysfs_add_files(struct super_block *sys);

/* The parts. block: /sys/block/NAME and /sys/class/bdi/MAJOR:MINOR. */
void sysfs_add_block_devices(struct super_block *sys);
void sysfs_add_cpus(struct super_block *sys);
void sysfs_add_huge_pages(struct super_block *sys);
/* /sys/kernel/debug/faultline: gate, and in debug builds sync. */
void sysfs_add_debug_files(struct super_block *sys);
/* A process ends: what it has set up by those files is undone. Only compared. May sleep. */
void sysfs_process_ended(const void *process);

#endif
