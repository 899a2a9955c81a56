/*
 * The first program: from the root disk to user mode.
 */
#ifndef KERNEL_FIRST_PROGRAM_H
#define KERNEL_FIRST_PROGRAM_H

#include "drivers/block/block.h"

/* Mounts the ext2 file system of the device as "/". => 0 or a negative errno. May sleep. */
int first_program_mount_root(struct block_device *device);

/*
 * Mounts the root disk (root=, else ram0, else vda), runs the program of the command line (init=, else a shell, else the demonstration) and ends the
 * machine with its status. Where that cannot be done: a sentence on the console and in the log, status 127.
 */
NORETURN void first_program_run(void);

#endif
