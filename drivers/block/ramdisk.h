/*
 * The RAM disk: a block device over a stretch of memory (a boot module, or pages of a test). Completion goes through
 * the gate's delay model by a one-shot timer, so with `icount` every run is the same to the instruction.
 */
#ifndef DRIVERS_BLOCK_RAMDISK_H
#define DRIVERS_BLOCK_RAMDISK_H

#include "drivers/block/block.h"

/* Registers `name` over [data, data + bytes). => device, or NULL with a log line (too small, out of memory). */
struct block_device *ramdisk_create(const char *name, void *data, u64 bytes);
void *ramdisk_data(struct block_device *device); /* tests look behind the driver's back */

#endif
