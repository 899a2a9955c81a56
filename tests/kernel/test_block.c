/*
 * The request layer: merging, splitting, order, statistics, bounds, and the watch over requests
 * that do not come back. On a disk that does only what the test says.
 */
#include "drivers/block/block.h"
#include "drivers/block/queue.h"
#include "kernel/cpu/clock.h"
#include "kernel/sched/task.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "tests/kernel/block_fake.h"
#include "tests/kernel/ktest.h"

#define FAKE_SECTORS  8192
#define MANY_SEGMENTS 64

/* Every test here: a disk and a probe. They are large, so they do not live on the stack. */
struct bench {
    struct fake_disk *disk;
    struct block_device *device;
    struct probe *probe;
};

static bool bench_open(struct bench *bench, u32 max_segments)
{
    bench->disk = fake_disk_create(FAKE_SECTORS, max_segments);
    if (!bench->disk)
        return false;
    bench->device = &bench->disk->device;
    bench->probe = kmalloc(sizeof(*bench->probe));
    return KEXPECT(bench->probe != NULL) && probe_init(bench->probe);
}

static void bench_close(struct bench *bench)
{
    fake_disk_complete_all(bench->disk);
    probe_destroy(bench->probe);
    kfree(bench->probe);
    fake_disk_destroy(bench->disk);
}

/* Plugs one-page reads of these pages of the disk, in this order. */
static void plug_pages(struct bench *bench, const u64 *pages, u32 n)
{
    struct block_plug plug;

    block_plug_start(&plug);
    for (u32 i = 0; i < n; i++)
        block_plug_add(&plug, probe_bio(bench->probe, bench->device, pages[i] * SECTORS_PER_PAGE, 1,
                                        BIO_READ));
    block_plug_finish(&plug);
}

static void expect_start(struct bench *bench, u32 index, u64 sector, u32 n_pages)
{
    KEXPECT(index < bench->disk->n_starts);
    KEXPECT_EQ(bench->disk->starts[index].sector, sector);
    KEXPECT_EQ(bench->disk->starts[index].bytes, n_pages * PAGE_SIZE);
}

/* ---- Merging ---- */

KTEST(block, neighbours_become_one_request_in_any_order_of_coming)
{
    static const u64 pages[] = {1, 0, 3, 2};
    struct bench bench;
    struct block_stats stats;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    plug_pages(&bench, pages, ARRAY_SIZE(pages));
    KEXPECT_EQ(bench.disk->n_starts, 1);
    expect_start(&bench, 0, 0, 4);
    KEXPECT_EQ(bench.probe->n_done, 0);
    fake_disk_complete(bench.disk, 0, 0);
    KEXPECT_EQ(bench.probe->n_done, 4);
    for (u32 i = 0; i < 4; i++)
        KEXPECT_EQ(bench.probe->done[i].sector, i * SECTORS_PER_PAGE);
    block_stats_get(bench.device, &stats);
    KEXPECT_EQ(stats.merges[0], 3);
    KEXPECT_EQ(stats.requests[0], 1);
    bench_close(&bench);
}

KTEST(block, nothing_reaches_the_driver_before_the_plug_is_finished)
{
    struct bench bench;
    struct block_plug plug;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    block_plug_start(&plug);
    block_plug_add(&plug, probe_bio(bench.probe, bench.device, 0, 1, BIO_READ));
    KEXPECT_EQ(bench.disk->n_starts, 0);
    KEXPECT_EQ(plug.n, 1);
    block_plug_finish(&plug);
    KEXPECT_EQ(bench.disk->n_starts, 1);
    KEXPECT_EQ(plug.n, 0);
    bench_close(&bench);
}

KTEST(block, a_gap_parts_requests_and_they_go_in_sector_order)
{
    static const u64 pages[] = {9, 5, 4, 8};
    struct bench bench;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    plug_pages(&bench, pages, ARRAY_SIZE(pages));
    KEXPECT_EQ(bench.disk->n_starts, 2);
    expect_start(&bench, 0, 4 * SECTORS_PER_PAGE, 2);
    expect_start(&bench, 1, 8 * SECTORS_PER_PAGE, 2);
    bench_close(&bench);
}

KTEST(block, different_flags_are_not_merged)
{
    static const u32 flags[] = {BIO_READ, BIO_READ | BIO_META, BIO_WRITE, BIO_READ | BIO_READAHEAD};
    struct bench bench;
    struct block_plug plug;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    block_plug_start(&plug);
    for (u32 i = 0; i < ARRAY_SIZE(flags); i++)
        block_plug_add(&plug,
                       probe_bio(bench.probe, bench.device, i * SECTORS_PER_PAGE, 1, flags[i]));
    block_plug_finish(&plug);
    KEXPECT_EQ(bench.disk->n_starts, ARRAY_SIZE(flags));
    for (u32 i = 0; i < ARRAY_SIZE(flags); i++)
        KEXPECT_EQ(bench.disk->starts[i].flags, flags[i]);
    bench_close(&bench);
}

KTEST(block, merging_stops_at_the_devices_segments)
{
    static const u64 pages[] = {0, 1, 2, 3, 4, 5};
    struct bench bench;

    if (!bench_open(&bench, 4))
        return;
    plug_pages(&bench, pages, ARRAY_SIZE(pages));
    KEXPECT_EQ(bench.disk->n_starts, 2);
    expect_start(&bench, 0, 0, 4);
    expect_start(&bench, 1, 4 * SECTORS_PER_PAGE, 2);
    bench_close(&bench);
}

KTEST(block, merging_stops_at_the_devices_request_size)
{
    static const u64 pages[] = {0, 1, 2};
    struct bench bench;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    bench.device->max_request_pages = 2;
    plug_pages(&bench, pages, ARRAY_SIZE(pages));
    KEXPECT_EQ(bench.disk->n_starts, 2);
    expect_start(&bench, 0, 0, 2);
    expect_start(&bench, 1, 2 * SECTORS_PER_PAGE, 1);
    bench_close(&bench);
}

KTEST(block, a_flush_goes_after_what_was_plugged_before_it)
{
    struct bench bench;
    struct block_plug plug;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    block_plug_start(&plug);
    block_plug_add(&plug, probe_bio(bench.probe, bench.device, 800, 1, BIO_WRITE));
    block_plug_add(&plug, probe_bio(bench.probe, bench.device, 0, 0, BIO_FLUSH));
    block_plug_add(&plug, probe_bio(bench.probe, bench.device, 0, 1, BIO_WRITE));
    block_plug_finish(&plug);
    KEXPECT_EQ(bench.disk->n_starts, 3);
    KEXPECT_EQ(bench.disk->starts[0].sector, 800);
    KEXPECT_EQ(bench.disk->starts[1].flags, BIO_FLUSH);
    KEXPECT_EQ(bench.disk->starts[2].sector, 0);
    bench_close(&bench);
}

/* ---- One bio ---- */

KTEST(block, a_bio_joins_runs_within_a_page_and_says_when_it_is_full)
{
    struct page *pages[2];
    struct bench bench;
    struct bio *bio;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    if (pages_get(pages, 2)) {
        bio = bio_alloc(bench.device, 1);
        KEXPECT(bio_add(bio, pages[0], 0, 1024));
        KEXPECT(bio_add(bio, pages[0], 1024, 512));
        KEXPECT(!bio_add(bio, pages[0], 2048, 512));
        KEXPECT(!bio_add(bio, pages[1], 0, 512));
        KEXPECT_EQ(bio->n_segments, 1);
        KEXPECT_EQ(bio->bytes, 1536);
        bio_free(bio);
        pages_put(pages, 2);
    }
    bench_close(&bench);
}

KTEST(block, a_bio_larger_than_the_device_takes_is_split_and_ends_once)
{
    struct bench bench;

    if (!bench_open(&bench, 2))
        return;
    probe_submit(bench.probe, bench.device, 16, 5, BIO_READ);
    KEXPECT_EQ(bench.disk->n_starts, 3);
    expect_start(&bench, 0, 16, 2);
    expect_start(&bench, 1, 16 + 2 * SECTORS_PER_PAGE, 2);
    expect_start(&bench, 2, 16 + 4 * SECTORS_PER_PAGE, 1);
    fake_disk_complete(bench.disk, 2, 0);
    fake_disk_complete(bench.disk, 0, 0);
    KEXPECT_EQ(bench.probe->n_done, 0);
    fake_disk_complete(bench.disk, 0, 0);
    KEXPECT_EQ(bench.probe->n_done, 1);
    KEXPECT_EQ(bench.probe->done[0].error, 0);
    bench_close(&bench);
}

KTEST(block, an_error_in_one_part_is_the_error_of_the_split_bio)
{
    struct bench bench;

    if (!bench_open(&bench, 1))
        return;
    probe_submit(bench.probe, bench.device, 0, 3, BIO_READ);
    fake_disk_complete(bench.disk, 0, 0);
    fake_disk_complete(bench.disk, 0, -EIO);
    fake_disk_complete(bench.disk, 0, 0);
    KEXPECT_EQ(bench.probe->n_done, 1);
    KEXPECT_EQ(bench.probe->done[0].error, -EIO);
    bench_close(&bench);
}

KTEST(block, the_end_of_the_device_is_exact)
{
    struct bench bench;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    probe_submit(bench.probe, bench.device, FAKE_SECTORS - SECTORS_PER_PAGE, 1, BIO_READ);
    KEXPECT_EQ(bench.disk->n_starts, 1);
    KEXPECT_EQ(bench.probe->n_done, 0);
    probe_submit(bench.probe, bench.device, FAKE_SECTORS - SECTORS_PER_PAGE + 1, 1, BIO_READ);
    probe_submit(bench.probe, bench.device, FAKE_SECTORS, 1, BIO_READ);
    probe_submit(bench.probe, bench.device, ~0ul - 1, 1, BIO_READ);
    KEXPECT_EQ(bench.disk->n_starts, 1);
    KEXPECT_EQ(bench.probe->n_done, 3);
    for (u32 i = 0; i < 3; i++)
        KEXPECT_EQ(bench.probe->done[i].error, -EIO);
    bench_close(&bench);
}

KTEST(block, a_bio_past_the_end_does_not_spoil_its_plugged_neighbour)
{
    static const u64 pages[] = {FAKE_SECTORS / SECTORS_PER_PAGE - 1,
                                FAKE_SECTORS / SECTORS_PER_PAGE};
    struct bench bench;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    plug_pages(&bench, pages, ARRAY_SIZE(pages));
    KEXPECT_EQ(bench.disk->n_starts, 1);
    expect_start(&bench, 0, FAKE_SECTORS - SECTORS_PER_PAGE, 1);
    KEXPECT_EQ(bench.probe->n_done, 1);
    KEXPECT_EQ(bench.probe->done[0].error, -EIO);
    fake_disk_complete_all(bench.disk);
    KEXPECT_EQ(bench.probe->done[1].error, 0);
    bench_close(&bench);
}

KTEST(block, what_the_device_cannot_do_is_refused_with_its_own_error)
{
    struct bench bench;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    bench.device->is_read_only = true;
    bench.device->block_bytes = PAGE_SIZE;
    probe_submit(bench.probe, bench.device, 0, 1, BIO_WRITE);
    probe_submit(bench.probe, bench.device, 0, 0, BIO_FLUSH);
    probe_submit(bench.probe, bench.device, 0, 0, BIO_READ);
    probe_submit(bench.probe, bench.device, 1, 1, BIO_READ);
    KEXPECT_EQ(bench.disk->n_starts, 0);
    KASSERT_EQ(bench.probe->n_done, 4);
    KEXPECT_EQ(bench.probe->done[0].error, -EROFS);
    KEXPECT_EQ(bench.probe->done[1].error, -EROFS);
    KEXPECT_EQ(bench.probe->done[2].error, -EINVAL);
    KEXPECT_EQ(bench.probe->done[3].error, -EINVAL);
    bench_close(&bench);
}

KTEST(block, an_error_is_that_requests_alone)
{
    struct bench bench;
    struct block_stats stats;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    for (u32 i = 0; i < 3; i++)
        probe_submit(bench.probe, bench.device, i * SECTORS_PER_PAGE, 1, BIO_READ);
    fake_disk_complete(bench.disk, 1, -EIO);
    fake_disk_complete_all(bench.disk);
    KASSERT_EQ(bench.probe->n_done, 3);
    for (u32 i = 0; i < 3; i++)
        KEXPECT_EQ(bench.probe->done[i].error,
                   bench.probe->done[i].sector == SECTORS_PER_PAGE ? -EIO : 0);
    block_stats_get(bench.device, &stats);
    KEXPECT_EQ(stats.errors, 1);
    bench_close(&bench);
}

KTEST(block, done_is_called_with_interrupts_off)
{
    struct bench bench;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    probe_submit(bench.probe, bench.device, 0, 1, BIO_READ);
    KEXPECT(irqs_are_on());
    fake_disk_complete_all(bench.disk);
    KEXPECT(irqs_are_on());
    KEXPECT(!bench.probe->done[0].irqs_were_on);
    bench_close(&bench);
}

/* ---- A driver that is busy, or refuses ---- */

KTEST(block, what_a_busy_driver_does_not_take_waits_in_order)
{
    struct bench bench;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    bench.disk->capacity = 1;
    probe_submit(bench.probe, bench.device, 80, 1, BIO_READ);
    probe_submit(bench.probe, bench.device, 40, 1, BIO_READ);
    probe_submit(bench.probe, bench.device, 0, 1, BIO_READ);
    KEXPECT_EQ(bench.disk->n_starts, 1);
    fake_disk_complete(bench.disk, 0, 0);
    KEXPECT_EQ(bench.disk->n_starts, 2);
    KEXPECT_EQ(bench.disk->starts[1].sector, 40);
    fake_disk_complete(bench.disk, 0, 0);
    KEXPECT_EQ(bench.disk->n_starts, 3);
    KEXPECT_EQ(bench.disk->starts[2].sector, 0);
    bench_close(&bench);
}

KTEST(block, what_the_driver_refuses_ends_with_its_error_and_the_next_goes_on)
{
    struct bench bench;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    bench.disk->refuse = -EIO;
    probe_submit(bench.probe, bench.device, 0, 1, BIO_READ);
    KEXPECT_EQ(bench.probe->n_done, 1);
    KEXPECT_EQ(bench.probe->done[0].error, -EIO);
    bench.disk->refuse = 0;
    probe_submit(bench.probe, bench.device, 8, 1, BIO_READ);
    KEXPECT_EQ(bench.disk->n_starts, 1);
    bench_close(&bench);
}

static void submit_one_more(void *arg)
{
    struct bench *bench = arg;

    probe_submit(bench->probe, bench->device, FAKE_SECTORS - 8, 1, BIO_READ);
}

#define YIELDS_AT_MOST 1000000

static bool wait_for_slot_waiter(struct block_device *device)
{
    for (u32 i = 0; i < YIELDS_AT_MOST; i++) {
        if (READ_ONCE(device->queue->slot_waiters))
            return true;
        sched_yield();
    }
    return false;
}

KTEST(block, a_submitter_without_a_free_request_sleeps_until_one_is_done)
{
    struct bench bench;
    struct task *task;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    for (u32 i = 0; i < BLOCK_REQUESTS; i++)
        probe_submit(bench.probe, bench.device, i * SECTORS_PER_PAGE, 1, BIO_READ);
    KEXPECT_EQ(bench.disk->n_starts, BLOCK_REQUESTS);
    task = task_create("submitter", submit_one_more, &bench, -1);
    KASSERT(task != NULL);
    KEXPECT(wait_for_slot_waiter(bench.device));
    KEXPECT_EQ(bench.disk->n_starts, BLOCK_REQUESTS);
    fake_disk_complete(bench.disk, 0, 0);
    task_join(task);
    KEXPECT_EQ(bench.disk->n_starts, BLOCK_REQUESTS + 1);
    KEXPECT_EQ(bench.disk->starts[BLOCK_REQUESTS].sector, FAKE_SECTORS - 8);
    bench_close(&bench);
}

/* ---- Statistics ---- */

KTEST(block, statistics_count_requests_pages_and_sectors_exactly)
{
    struct bench bench;
    struct block_stats stats, total_before, total;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    block_stats_total(&total_before);
    probe_submit(bench.probe, bench.device, 0, 3, BIO_READ);
    probe_submit(bench.probe, bench.device, 80, 2, BIO_READ | BIO_READAHEAD);
    probe_submit(bench.probe, bench.device, 160, 1, BIO_READ | BIO_META);
    probe_submit(bench.probe, bench.device, 240, 4, BIO_WRITE);
    block_stats_get(bench.device, &stats);
    KEXPECT_EQ(stats.in_flight, 4);
    KEXPECT_EQ(stats.data_requests, 2); /* when they are asked for */
    KEXPECT_EQ(stats.data_pages, 5);
    KEXPECT_EQ(stats.meta_requests, 1);
    KEXPECT_EQ(stats.meta_pages, 1);
    KEXPECT_EQ(stats.requests[0], 0); /* when they are done */
    fake_disk_complete_all(bench.disk);
    block_stats_get(bench.device, &stats);
    KEXPECT_EQ(stats.in_flight, 0);
    KEXPECT_EQ(stats.requests[0], 3);
    KEXPECT_EQ(stats.requests[1], 1);
    KEXPECT_EQ(stats.sectors[0], 6 * SECTORS_PER_PAGE);
    KEXPECT_EQ(stats.sectors[1], 4 * SECTORS_PER_PAGE);
    KEXPECT_EQ(stats.errors, 0);
    block_stats_total(&total);
    KEXPECT(total.data_pages - total_before.data_pages >= 5);
    bench_close(&bench);
}

KTEST(block, a_device_is_found_by_name_and_number_until_it_is_unregistered)
{
    struct bench bench;
    u32 dev;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    dev = bench.device->dev;
    KEXPECT(block_device_find("fake0") == bench.device);
    KEXPECT(block_device_find_dev(dev) == bench.device);
    KEXPECT(block_device_find("fake") == NULL);
    bench_close(&bench);
    KEXPECT(block_device_find("fake0") == NULL);
    KEXPECT(block_device_find_dev(dev) == NULL);
}

/* ---- The watch ---- */

#define SHORT_TIMEOUT_NS 2000000ul

#define STEP_NS       1000000ul
#define STEPS_AT_MOST 10000

static u64 timeouts_of(struct bench *bench)
{
    struct block_stats stats;

    block_stats_get(bench->device, &stats);
    return stats.timeouts;
}

/* The host may keep a CPU from running for long: how late a report comes is not what is tested. */
static void wait_for_timeouts(struct bench *bench, u64 n)
{
    for (u32 i = 0; i < STEPS_AT_MOST && timeouts_of(bench) < n; i++)
        sleep_until_ns(clock_ns() + STEP_NS);
    KEXPECT_EQ(timeouts_of(bench), n);
}

KTEST(block_watch, a_request_that_does_not_come_back_is_reported_once)
{
    struct bench bench;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    bench.device->timeout_ns = SHORT_TIMEOUT_NS;
    probe_submit(bench.probe, bench.device, 8, 1, BIO_READ);
    wait_for_timeouts(&bench, 1);
    sleep_until_ns(clock_ns() + 5 * SHORT_TIMEOUT_NS);
    KEXPECT_EQ(timeouts_of(&bench), 1);
    KEXPECT_EQ(bench.disk->n_polls, 1);
    KEXPECT_EQ(bench.probe->n_done, 0);
    fake_disk_complete_all(bench.disk);
    KEXPECT_EQ(bench.probe->n_done, 1);
    bench_close(&bench);
}

KTEST(block_watch, each_of_several_lost_requests_is_reported)
{
    struct bench bench;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    bench.device->timeout_ns = SHORT_TIMEOUT_NS;
    probe_submit(bench.probe, bench.device, 8, 1, BIO_READ);
    wait_for_timeouts(&bench, 1);
    probe_submit(bench.probe, bench.device, 80, 1, BIO_READ);
    wait_for_timeouts(&bench, 2);
    bench_close(&bench);
}

KTEST(block_watch, the_driver_looks_once_more_before_a_report)
{
    struct bench bench;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    bench.device->timeout_ns = SHORT_TIMEOUT_NS;
    bench.disk->poll_completes = true;
    probe_submit(bench.probe, bench.device, 8, 1, BIO_READ);
    probe_wait(bench.probe, 1);
    KEXPECT_EQ(bench.disk->n_polls, 1);
    KEXPECT_EQ(timeouts_of(&bench), 0);
    bench_close(&bench);
}

KTEST(block_watch, hardware_is_not_watched_under_icount)
{
    struct bench bench;
    bool was_icount = clock_is_icount;

    if (!bench_open(&bench, MANY_SEGMENTS))
        return;
    bench.device->is_virtual = false;
    clock_is_icount = true;
    probe_submit(bench.probe, bench.device, 8, 1, BIO_READ);
    KEXPECT(!bench.device->queue->watch_is_armed);
    bench.device->is_virtual = true;
    probe_submit(bench.probe, bench.device, 80, 1, BIO_READ);
    KEXPECT(bench.device->queue->watch_is_armed);
    clock_is_icount = was_icount;
    bench_close(&bench);
}
