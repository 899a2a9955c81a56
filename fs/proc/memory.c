/*
 * /proc files about memory: vmstat, meminfo, buddyinfo, slabinfo. Names and columns as proc(5) has
 * them; behind Linux's names vmstat has Faultline's own counters.
 */
#include "drivers/block/block.h"
#include "fs/proc/proc.h"
#include "fs/text_out.h"
#include "fs/tmpfs.h"
#include "kernel/sched/task.h"
#include "mm/account.h"
#include "mm/commit.h"
#include "mm/core/frames.h"
#include "mm/core/page_table.h"
#include "mm/core/slab.h"
#include "mm/huge_pool.h"
#include "mm/lazy_free.h"
#include "mm/page_cache.h"
#include "mm/readahead_log.h"
#include "mm/readahead_use.h"
#include "mm/reclaim.h"

#define KIB_PER_PAGE    (PAGE_SIZE / 1024)
#define SECTORS_PER_KIB (1024 / SECTOR_SIZE)

static void no_processes(struct process_sums *sums)
{
    *sums = (struct process_sums){0};
}

void (*proc_sum_processes)(struct process_sums *sums) = no_processes;

static void put_counter(struct text_out *out, const char *name, u64 value)
{
    text_out_put(out, "%s %lu\n", name, value);
}

static void put_faults(struct text_out *out, const struct task_fault_counters *faults)
{
    size_t room;

    put_counter(out, "pgfault", faults->shown_pgfault);
    put_counter(out, "pgmajfault", faults->shown_pgmajfault);
    room = text_out_room(out);
    out->len += account_format(faults, "fault_", room ? out->buf + out->len : NULL, room);
}

static void put_reads(struct text_out *out, const struct task_fault_counters *tasks,
                      const struct block_stats *disks)
{
    struct readahead_use use;
    u64 windows, pages;

    readahead_counts(&windows, &pages);
    put_counter(out, "ra_windows", windows);
    put_counter(out, "ra_pages", pages);
    readahead_use_count(&use);
    put_counter(out, "ra_ahead", use.ahead);
    put_counter(out, "ra_ahead_used", use.used);
    put_counter(out, "ra_ahead_dropped", use.dropped);
    put_counter(out, "read_waits", tasks->read_waits);
    put_counter(out, "read_wait_ns", tasks->read_wait_ns);
    put_counter(out, "disk_data_requests", disks->data_requests);
    put_counter(out, "disk_data_pages", disks->data_pages);
    put_counter(out, "disk_meta_requests", disks->meta_requests);
    put_counter(out, "disk_meta_pages", disks->meta_pages);
}

static size_t show_vmstat(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct task_fault_counters faults;
    struct process_sums sums;
    struct block_stats disks;

    (void)arg;
    proc_sum_processes(&sums);
    account_system(&faults);
    block_stats_total(&disks);
    put_counter(&out, "nr_free_pages", frames_free_count());
    put_counter(&out, "nr_anon_pages", sums.anon_pages);
    put_counter(&out, "nr_file_pages", page_cache_total_pages());
    put_counter(&out, "nr_page_table_pages", sums.table_pages);
    put_counter(&out, "nr_slab_unreclaimable", slab_frames_total());
    put_counter(&out, "pgpgin", disks.sectors[0] / SECTORS_PER_KIB);
    put_counter(&out, "pgpgout", disks.sectors[1] / SECTORS_PER_KIB);
    put_counter(&out, "pgsteal_direct", reclaim_total());
    put_counter(&out, "pglazyfree", lazy_free_marked_total());
    put_counter(&out, "pglazyfreed", lazy_free_taken_total());
    put_faults(&out, &faults);
    put_reads(&out, &faults, &disks);
    return out.len;
}

static void put_kib(struct text_out *out, const char *label, u64 pages)
{
    text_out_put(out, "%-16s%8lu kB\n", label, pages * KIB_PER_PAGE);
}

/* Cached blocks of disks, which Linux calls buffers. */
static void add_buffers(struct block_device *device, void *ctx)
{
    const struct inode *inode = atomic_load(&device->upper);

    if (inode)
        *(u64 *)ctx += READ_ONCE(inode->cache.n_pages);
}

u64 proc_buffer_pages(void)
{
    u64 pages = 0;

    block_for_each(add_buffers, &pages);
    return pages;
}

static void count_stack(struct task *task, void *ctx)
{
    if (task->stack)
        ++*(u64 *)ctx;
}

static void put_huge_pages(struct text_out *out)
{
    struct huge_pool_counts n;

    huge_pool_count(&n);
    text_out_put(out, "HugePages_Total:   %5lu\n", n.total);
    text_out_put(out, "HugePages_Free:    %5lu\n", n.free);
    text_out_put(out, "HugePages_Rsvd:    %5lu\n", n.reserved);
    text_out_put(out, "HugePages_Surp:    %5lu\n", n.surplus);
    put_kib(out, "Hugepagesize:", HUGE_PAGE_FRAMES);
    put_kib(out, "Hugetlb:", n.total * HUGE_PAGE_FRAMES);
}

static size_t show_meminfo(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    u64 free = frames_free_count(), in_caches = page_cache_total_pages();
    u64 reserve = frames_reserve(), buffers = proc_buffer_pages(), stacks = 0;
    u64 in_memory = MIN(tmpfs_pages_used(), in_caches), available = free + in_caches - in_memory;
    struct process_sums sums;

    (void)arg;
    proc_sum_processes(&sums);
    task_for_each(count_stack, &stacks);
    buffers = MIN(buffers, in_caches); /* one was read after the other */
    put_kib(&out, "MemTotal:", frames_total());
    put_kib(&out, "MemFree:", free);
    put_kib(&out, "MemAvailable:", available - MIN(reserve, available));
    put_kib(&out, "Buffers:", buffers);
    put_kib(&out, "Cached:", in_caches - buffers);
    put_kib(&out, "SwapCached:", 0);
    put_kib(&out, "SwapTotal:", 0);
    put_kib(&out, "SwapFree:", 0);
    put_kib(&out, "Dirty:", 0);
    put_kib(&out, "Writeback:", 0);
    put_kib(&out, "AnonPages:", sums.anon_pages);
    put_kib(&out, "Shmem:", in_memory);
    put_kib(&out, "Slab:", slab_frames_total());
    put_kib(&out, "SReclaimable:", 0);
    put_kib(&out, "SUnreclaim:", slab_frames_total());
    put_kib(&out, "KernelStack:", stacks * (KERNEL_STACK_BYTES / PAGE_SIZE));
    put_kib(&out, "PageTables:", sums.table_pages);
    put_kib(&out, "CommitLimit:", commit_limit_pages());
    put_kib(&out, "Committed_AS:", commit_total_pages());
    put_huge_pages(&out);
    return out.len;
}

static size_t show_buddyinfo(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};

    (void)arg;
    text_out_put(&out, "Node 0, zone %8s ", "Normal");
    for (unsigned order = 0; order <= FRAME_MAX_ORDER; order++)
        text_out_put(&out, "%6lu ", frames_free_blocks(order));
    text_out_put(&out, "\n");
    return out.len;
}

static void put_slab(void *ctx, const char *name, u64 live, size_t object_bytes, u64 frames)
{
    u64 room = frames * PAGE_SIZE / object_bytes;

    text_out_put(ctx, "%-17s %6lu %6lu %6lu %4lu %4u : slabdata %6lu\n", name, live,
                 MAX(room, live), object_bytes, MAX(PAGE_SIZE / object_bytes, 1ul), 1, frames);
}

static size_t show_slabinfo(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};

    (void)arg;
    text_out_put(&out, "slabinfo - version: 2.1\n"
                       "# name            <active_objs> <num_objs> <objsize> <objperslab> "
                       "<pagesperslab> : slabdata <pages>\n");
    slab_for_each(put_slab, &out);
    return out.len;
}

static const struct text_file files[] = {
    {.path = "vmstat", .show = show_vmstat},
    {.path = "meminfo", .show = show_meminfo},
    {.path = "buddyinfo", .show = show_buddyinfo},
    {.path = "slabinfo", .show = show_slabinfo},
};

void proc_add_memory_files(struct super_block *proc)
{
    proc_add_table(proc, files, ARRAY_SIZE(files));
}
