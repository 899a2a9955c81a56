/*
 * The statistics columns of a disk, as /proc/diskstats and /sys/block/NAME/stat show them.
 */
#ifndef FS_DISK_STATS_H
#define FS_DISK_STATS_H

#include "fs/text_out.h"

struct block_device;

/*
 * Appends a blank before each of: reads, reads merged, sectors read, milliseconds; the same four of
 * writes; requests in flight, milliseconds busy (at most what the machine is up), milliseconds of
 * all requests together; and a newline. Any context, never sleeps.
 */
void disk_stats_put(struct text_out *out, struct block_device *device);

#endif
