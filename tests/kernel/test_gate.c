/*
 * The I/O gate: holding, releasing, failing, the log, and the delay model.
 */
#include "drivers/block/gate.h"
#include "drivers/block/ramdisk.h"
#include "kernel/cpu/clock.h"
#include "kernel/sched/task.h"
#include "mm/core/slab.h"
#include "tests/kernel/block_fake.h"
#include "tests/kernel/ktest.h"

#define FAKE_SECTORS 8192
#define SEGMENTS     64
#define MS           1000000ul

struct bench {
    struct fake_disk *disk;
    struct block_device *device;
    struct probe *probe;
};

static bool bench_open(struct bench *bench)
{
    bench->disk = fake_disk_create(FAKE_SECTORS, SEGMENTS);
    if (!bench->disk)
        return false;
    bench->device = &bench->disk->device;
    bench->probe = kmalloc(sizeof(*bench->probe));
    return KEXPECT(bench->probe != NULL) && probe_init(bench->probe);
}

static void bench_close(struct bench *bench)
{
    gate_open(bench->device);
    fake_disk_complete_all(bench->disk);
    probe_destroy(bench->probe);
    kfree(bench->probe);
    fake_disk_destroy(bench->disk);
}

/* Reads page number n of the disk. */
static void read_page(struct bench *bench, u64 n)
{
    probe_submit(bench->probe, bench->device, n * SECTORS_PER_PAGE, 1, BIO_READ);
}

static void expect_started_page(struct bench *bench, u32 index, u64 page)
{
    KEXPECT(index < bench->disk->n_starts);
    KEXPECT_EQ(bench->disk->starts[index].sector, page * SECTORS_PER_PAGE);
}

/* ---- Holding ---- */

KTEST(gate, held_requests_go_on_in_the_order_of_release)
{
    struct bench bench;

    if (!bench_open(&bench))
        return;
    KEXPECT_EQ(gate_hold(bench.device, 0, FAKE_SECTORS, 0), 0);
    for (u64 n = 0; n < 4; n++)
        read_page(&bench, n);
    KEXPECT_EQ(gate_held(bench.device), 4);
    KEXPECT_EQ(bench.disk->n_starts, 0);
    KEXPECT_EQ(gate_release(bench.device, 2), 0);
    KEXPECT_EQ(gate_release(bench.device, 0), 0);
    KEXPECT_EQ(gate_release(bench.device, 1), 0);
    KEXPECT_EQ(gate_release(bench.device, 0), 0);
    KEXPECT_EQ(gate_release(bench.device, 0), -ENOENT);
    KEXPECT_EQ(bench.disk->n_starts, 4);
    expect_started_page(&bench, 0, 2);
    expect_started_page(&bench, 1, 0);
    expect_started_page(&bench, 2, 3);
    expect_started_page(&bench, 3, 1);
    bench_close(&bench);
}

KTEST(gate, only_requests_that_overlap_the_range_are_held)
{
    struct bench bench;

    if (!bench_open(&bench))
        return;
    KEXPECT_EQ(gate_hold(bench.device, 15, 16, 0), 0);
    read_page(&bench, 0); /* sectors 0-7 */
    read_page(&bench, 1); /* 8-15: the first of the range */
    read_page(&bench, 2); /* 16-23: the last */
    read_page(&bench, 3); /* 24-31 */
    KEXPECT_EQ(gate_held(bench.device), 2);
    KEXPECT_EQ(bench.disk->n_starts, 2);
    expect_started_page(&bench, 0, 0);
    expect_started_page(&bench, 1, 3);
    bench_close(&bench);
}

KTEST(gate, a_counted_hold_catches_so_many_and_is_gone)
{
    struct bench bench;

    if (!bench_open(&bench))
        return;
    KEXPECT_EQ(gate_hold(bench.device, 0, 7, 2), 0);
    for (u32 i = 0; i < 3; i++)
        read_page(&bench, 0);
    KEXPECT_EQ(gate_held(bench.device), 2);
    KEXPECT_EQ(bench.disk->n_starts, 1);
    bench_close(&bench);
}

KTEST(gate, release_all_keeps_the_rules_and_open_drops_them)
{
    struct bench bench;

    if (!bench_open(&bench))
        return;
    KEXPECT_EQ(gate_hold(bench.device, 0, FAKE_SECTORS, 0), 0);
    read_page(&bench, 1);
    read_page(&bench, 2);
    gate_release_all(bench.device);
    KEXPECT_EQ(bench.disk->n_starts, 2);
    expect_started_page(&bench, 0, 1);
    expect_started_page(&bench, 1, 2);
    read_page(&bench, 3);
    KEXPECT_EQ(gate_held(bench.device), 1);
    gate_open(bench.device);
    KEXPECT_EQ(gate_held(bench.device), 0);
    read_page(&bench, 4);
    KEXPECT_EQ(bench.disk->n_starts, 4);
    bench_close(&bench);
}

KTEST(gate, the_rule_that_was_set_first_decides)
{
    struct bench bench;

    if (!bench_open(&bench))
        return;
    KEXPECT_EQ(gate_fail(bench.device, 0, 7, -EIO, 1), 0);
    KEXPECT_EQ(gate_hold(bench.device, 0, 7, 1), 0);
    read_page(&bench, 0);
    KEXPECT_EQ(bench.probe->n_done, 1);
    KEXPECT_EQ(gate_held(bench.device), 0);
    read_page(&bench, 0);
    KEXPECT_EQ(bench.probe->n_done, 1);
    KEXPECT_EQ(gate_held(bench.device), 1);
    bench_close(&bench);
}

KTEST(gate, rules_run_out_with_an_error)
{
    struct bench bench;

    if (!bench_open(&bench))
        return;
    for (u32 i = 0; i < GATE_MAX_RULES; i++)
        KEXPECT_EQ(gate_hold(bench.device, i, i, 0), 0);
    KEXPECT_EQ(gate_hold(bench.device, 0, 0, 0), -ENOSPC);
    gate_open(bench.device);
    KEXPECT_EQ(gate_hold(bench.device, 0, 0, 0), 0);
    bench_close(&bench);
}

static void read_two_pages(void *arg)
{
    read_page(arg, 5);
    read_page(arg, 6);
}

KTEST(gate, wait_held_returns_when_another_task_ran_into_it)
{
    struct bench bench;
    struct task *task;

    if (!bench_open(&bench))
        return;
    KEXPECT_EQ(gate_hold(bench.device, 0, FAKE_SECTORS, 0), 0);
    task = task_create("reader", read_two_pages, &bench, -1);
    KASSERT(task != NULL);
    gate_wait_held(bench.device, 2);
    KEXPECT_EQ(gate_held(bench.device), 2);
    task_join(task);
    bench_close(&bench);
}

KTEST(gate, a_merged_request_is_held_whole)
{
    struct bench bench;
    struct block_plug plug;

    if (!bench_open(&bench))
        return;
    KEXPECT_EQ(gate_hold(bench.device, 2 * SECTORS_PER_PAGE, 2 * SECTORS_PER_PAGE, 1), 0);
    block_plug_start(&plug);
    for (u64 n = 0; n < 4; n++)
        block_plug_add(&plug,
                       probe_bio(bench.probe, bench.device, n * SECTORS_PER_PAGE, 1, BIO_READ));
    block_plug_finish(&plug);
    KEXPECT_EQ(gate_held(bench.device), 1);
    KEXPECT_EQ(bench.disk->n_starts, 0);
    gate_release_all(bench.device);
    KEXPECT_EQ(bench.disk->starts[0].bytes, 4 * PAGE_SIZE);
    bench_close(&bench);
}

/* ---- Failing ---- */

KTEST(gate, a_counted_failure_never_reaches_the_driver_and_costs_nobody_else)
{
    struct bench bench;

    if (!bench_open(&bench))
        return;
    KEXPECT_EQ(gate_fail(bench.device, 8, 15, -EIO, 1), 0);
    for (u64 n = 0; n < 3; n++)
        read_page(&bench, n);
    KEXPECT_EQ(bench.disk->n_starts, 2);
    KEXPECT_EQ(bench.probe->n_done, 1);
    KEXPECT_EQ(bench.probe->done[0].sector, 8);
    KEXPECT_EQ(bench.probe->done[0].error, -EIO);
    read_page(&bench, 1);
    KEXPECT_EQ(bench.disk->n_starts, 3);
    fake_disk_complete_all(bench.disk);
    KASSERT_EQ(bench.probe->n_done, 4);
    for (u32 i = 1; i < 4; i++)
        KEXPECT_EQ(bench.probe->done[i].error, 0);
    bench_close(&bench);
}

KTEST(gate, a_failure_without_count_lasts_until_open)
{
    struct bench bench;

    if (!bench_open(&bench))
        return;
    KEXPECT_EQ(gate_fail(bench.device, 0, 7, -ENOMEM, 0), 0);
    for (u32 i = 0; i < 5; i++)
        read_page(&bench, 0);
    KASSERT_EQ(bench.probe->n_done, 5);
    KEXPECT_EQ(bench.probe->done[4].error, -ENOMEM);
    gate_open(bench.device);
    read_page(&bench, 0);
    KEXPECT_EQ(bench.disk->n_starts, 1);
    bench_close(&bench);
}

/* ---- The log ---- */

KTEST(gate, the_log_has_requests_in_order_of_arrival_with_their_flags)
{
    struct gate_log_entry entries[4];
    struct bench bench;

    if (!bench_open(&bench))
        return;
    read_page(&bench, 9);
    gate_log_reset(bench.device);
    KEXPECT_EQ(gate_hold(bench.device, 8, 8, 1), 0);
    probe_submit(bench.probe, bench.device, 8, 2, BIO_READ | BIO_META);
    probe_submit(bench.probe, bench.device, 0, 1, BIO_READ);
    KASSERT_EQ(gate_log(bench.device, entries, ARRAY_SIZE(entries)), 2);
    KEXPECT_EQ(entries[0].sector, 8);
    KEXPECT_EQ(entries[0].bytes, 2 * PAGE_SIZE);
    KEXPECT_EQ(entries[0].flags, BIO_META);
    KEXPECT_EQ(entries[1].sector, 0);
    gate_log_reset(bench.device);
    KEXPECT_EQ(gate_log(bench.device, entries, ARRAY_SIZE(entries)), 0);
    bench_close(&bench);
}

/* ---- The delay model: arithmetic ---- */

KTEST(gate_delay, latency_overlaps)
{
    const struct gate_delay delay = {.latency_ns = 5 * MS};
    u64 disk_free = 0;

    KEXPECT_EQ(gate_delay_deliver_ns(&delay, 1000, PAGE_SIZE, &disk_free), 1000 + 5 * MS);
    KEXPECT_EQ(disk_free, 1000);
    KEXPECT_EQ(gate_delay_deliver_ns(&delay, 1000, PAGE_SIZE, &disk_free), 1000 + 5 * MS);
    KEXPECT_EQ(gate_delay_deliver_ns(&delay, 1700, PAGE_SIZE, &disk_free), 1700 + 5 * MS);
}

KTEST(gate_delay, per_request_time_queues)
{
    const struct gate_delay delay = {.per_request_ns = 18180000};
    u64 disk_free = 0;

    KEXPECT_EQ(gate_delay_deliver_ns(&delay, 1000, PAGE_SIZE, &disk_free), 1000 + 18180000);
    KEXPECT_EQ(gate_delay_deliver_ns(&delay, 1000, PAGE_SIZE, &disk_free), 1000 + 2 * 18180000);
    KEXPECT_EQ(gate_delay_deliver_ns(&delay, 2000, PAGE_SIZE, &disk_free), 1000 + 3 * 18180000);
    KEXPECT_EQ(disk_free, 1000 + 3 * 18180000);
    /* The disk was idle meanwhile: nothing is left of the queue. */
    KEXPECT_EQ(gate_delay_deliver_ns(&delay, 100 * MS, PAGE_SIZE, &disk_free), 100 * MS + 18180000);
}

KTEST(gate_delay, bandwidth_charges_bytes_to_the_nanosecond)
{
    const struct gate_delay delay = {.bandwidth = 100000000};
    u64 disk_free = 0;

    KEXPECT_EQ(gate_delay_deliver_ns(&delay, 0, 131072, &disk_free), 1310720);
    KEXPECT_EQ(gate_delay_deliver_ns(&delay, 0, 4096, &disk_free), 1310720 + 40960);
    KEXPECT_EQ(gate_delay_deliver_ns(&(struct gate_delay){.bandwidth = 3}, 2 * MS, 512, &(u64){0}),
               2 * MS + 170666666666ul);
}

KTEST(gate_delay, all_three_add_up)
{
    const struct gate_delay delay = {
        .latency_ns = 70, .per_request_ns = 3, .bandwidth = 1000000000};
    u64 disk_free = 500;

    KEXPECT_EQ(gate_delay_deliver_ns(&delay, 100, 512, &disk_free), 500 + 3 + 512 + 70);
    KEXPECT_EQ(disk_free, 500 + 3 + 512);
    KEXPECT_EQ(gate_delay_deliver_ns(&delay, 2000, 512, &disk_free), 2000 + 3 + 512 + 70);
}

/* ---- The delay model: on a disk ---- */

struct slow_disk {
    void *data;
    struct block_device *device;
    struct probe *probe;
};

static bool slow_open(struct slow_disk *slow, const struct gate_delay *delay)
{
    slow->data = kzalloc(16 * PAGE_SIZE);
    slow->probe = kmalloc(sizeof(*slow->probe));
    if (!KEXPECT(slow->data && slow->probe) || !probe_init(slow->probe))
        return false;
    slow->device = ramdisk_create("ramslow", slow->data, 16 * PAGE_SIZE);
    if (!KEXPECT(slow->device != NULL))
        return false;
    return KEXPECT_EQ(gate_set_delay(slow->device, delay), 0);
}

static void slow_close(struct slow_disk *slow)
{
    ramdisk_destroy(slow->device);
    probe_destroy(slow->probe);
    kfree(slow->probe);
    kfree(slow->data);
}

/* n reads at once. => when the first was submitted */
static u64 slow_read(struct slow_disk *slow, u32 n)
{
    u64 start = clock_ns();

    for (u32 i = 0; i < n; i++)
        probe_submit(slow->probe, slow->device, i * SECTORS_PER_PAGE, 1, BIO_READ);
    probe_wait(slow->probe, n);
    return start;
}

KTEST(gate_delay, a_delayed_request_is_delivered_by_interrupt_not_before_its_time)
{
    struct slow_disk slow;
    u64 start;

    if (!slow_open(&slow, &(struct gate_delay){.latency_ns = 20 * MS}))
        return;
    start = slow_read(&slow, 1);
    KEXPECT(slow.probe->done[0].in_interrupt);
    KEXPECT(slow.probe->done[0].time_ns >= start + 20 * MS);
    slow_close(&slow);
}

KTEST(gate_delay, requests_overlap_their_latency)
{
    struct slow_disk slow;
    u64 start;

    if (!slow_open(&slow, &(struct gate_delay){.latency_ns = 200 * MS}))
        return;
    start = slow_read(&slow, 4);
    for (u32 i = 0; i < 4; i++) {
        KEXPECT_EQ(slow.probe->done[i].sector, i * SECTORS_PER_PAGE);
        KEXPECT(slow.probe->done[i].time_ns >= start + 200 * MS);
    }
    KEXPECT(slow.probe->done[3].time_ns < start + 4 * 200 * MS);
    slow_close(&slow);
}

KTEST(gate_delay, requests_queue_for_their_per_request_time)
{
    struct slow_disk slow;
    u64 start;

    if (!slow_open(&slow, &(struct gate_delay){.per_request_ns = 10 * MS}))
        return;
    start = slow_read(&slow, 4);
    for (u32 i = 0; i < 4; i++) {
        KEXPECT_EQ(slow.probe->done[i].sector, i * SECTORS_PER_PAGE);
        KEXPECT(slow.probe->done[i].time_ns >= start + (i + 1) * 10 * MS);
    }
    slow_close(&slow);
}

KTEST(gate_delay, a_held_request_is_charged_from_its_release)
{
    struct slow_disk slow;
    u64 released;

    if (!slow_open(&slow, &(struct gate_delay){.latency_ns = 5 * MS}))
        return;
    KEXPECT_EQ(gate_hold(slow.device, 0, 7, 1), 0);
    probe_submit(slow.probe, slow.device, 0, 1, BIO_READ);
    sleep_until_ns(clock_ns() + 10 * MS);
    KEXPECT_EQ(slow.probe->n_done, 0);
    released = clock_ns();
    KEXPECT_EQ(gate_release(slow.device, 0), 0);
    probe_wait(slow.probe, 1);
    KEXPECT(slow.probe->done[0].time_ns >= released + 5 * MS);
    gate_open(slow.device);
    slow_close(&slow);
}

KTEST(gate_delay, a_failure_takes_its_time_too_and_comes_by_interrupt)
{
    struct slow_disk slow;
    u64 start;

    if (!slow_open(&slow, &(struct gate_delay){.latency_ns = 5 * MS}))
        return;
    KEXPECT_EQ(gate_fail(slow.device, 0, 7, -EIO, 1), 0);
    start = slow_read(&slow, 1);
    KEXPECT_EQ(slow.probe->done[0].error, -EIO);
    KEXPECT(slow.probe->done[0].in_interrupt);
    KEXPECT(slow.probe->done[0].time_ns >= start + 5 * MS);
    slow_close(&slow);
}

KTEST(gate_delay, it_can_be_read_back_and_switched_off)
{
    struct slow_disk slow;
    struct gate_delay delay;

    if (!slow_open(&slow, &(struct gate_delay){1, 2, 3}))
        return;
    gate_get_delay(slow.device, &delay);
    KEXPECT_EQ(delay.latency_ns, 1);
    KEXPECT_EQ(delay.per_request_ns, 2);
    KEXPECT_EQ(delay.bandwidth, 3);
    KEXPECT_EQ(gate_set_delay(slow.device, &(struct gate_delay){0}), 0);
    probe_submit(slow.probe, slow.device, 0, 1, BIO_READ);
    KEXPECT_EQ(slow.probe->n_done, 1);
    slow_close(&slow);
}
