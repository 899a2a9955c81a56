/*
 * The statistics columns of a disk: see disk_stats.h.
 */
#include "fs/disk_stats.h"

#include "drivers/block/block.h"
#include "kernel/cpu/clock.h"

#define NS_PER_MS 1000000ul

void disk_stats_put(struct text_out *out, struct block_device *device)
{
    struct block_stats stats;
    u64 total_ms, up_ms = clock_ns() / NS_PER_MS;

    block_stats_get(device, &stats);
    for (unsigned write = 0; write <= 1; write++)
        text_out_put(out, " %lu %lu %lu %lu", stats.requests[write], stats.merges[write],
                     stats.sectors[write], stats.ticks_ns[write] / NS_PER_MS);
    total_ms = (stats.ticks_ns[0] + stats.ticks_ns[1]) / NS_PER_MS;
    text_out_put(out, " %u %lu %lu\n", stats.in_flight, MIN(total_ms, up_ms), total_ms);
}
