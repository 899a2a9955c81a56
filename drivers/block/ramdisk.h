/*
 * The RAM disk: a block device over a stretch of memory (a boot module, or pages of a test).
 *
 * The copy is made when the request reaches the driver, so a request held by the gate sees the
 * memory as it is at its release. Without a delay in the gate it is done before bio_submit()
 * returns, in the submitter's context; with one, in the interrupt of the gate's one-shot timer, so
 * that with `icount` every run is the same to the instruction.
 */
#ifndef DRIVERS_BLOCK_RAMDISK_H
#define DRIVERS_BLOCK_RAMDISK_H

#include "drivers/block/block.h"

/* Registers `name` over [data, data + bytes), kernel addresses; the memory stays the caller's.
 * => device, or NULL with a log line (below one sector, name in use, out of memory). Never sleeps.
 */
struct block_device *ramdisk_create(const char *name, void *data, u64 bytes);
/* For disks of tests: nothing is in flight and nobody uses it any more. May sleep. */
void ramdisk_destroy(struct block_device *device);
void *ramdisk_data(struct block_device *device); /* tests look behind the driver's back */

#endif
