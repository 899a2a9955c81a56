/*
 * The counters beside majors and minors: what faults ask the disk for, how long they hold their lock and take, who holds it
 * across I/O, what read() waits for, and what becomes of pages read ahead.
 */
#include "lib/string.h"
#include "mm/core/slab.h"
#include "mm/file_read.h"
#include "mm/knobs.h"
#include "mm/readahead_use.h"
#include "tests/kernel/ext2_image.h"
#include "tests/kernel/readahead_stage.h"

#define RIG_PAGES      64
#define REFUSED_STORES 300u

static u64 sum_of(const u64 *buckets)
{
    u64 sum = 0;
    for (unsigned i = 0; i < FAULT_TIME_BUCKETS; i++)
        sum += buckets[i];
    return sum;
}

/* At least as long as what is counted in the highest bucket took may be. */
static u64 longest_below_ns(const u64 *buckets)
{
    for (unsigned i = FAULT_TIME_BUCKETS - 1; i > 0; i--)
        if (buckets[i])
            return i == FAULT_TIME_BUCKETS - 1 ? ~0ul : 2ul << i;
    return 2;
}

static bool begin(struct fault_rig *rig, const char *readahead)
{
    if (!KEXPECT(rig_init(rig, RIG_PAGES, PROT_READ, MAP_SHARED)))
        return false;
    knob_set("readahead", readahead);
    return true;
}

/* ---- What faults read ---- */

static void expect_reads(struct task_fault_counters c, u64 reads, u64 pages)
{
    KEXPECT_EQ(c.reads, reads);
    KEXPECT_EQ(c.read_pages, pages);
}

FAULT_TEST_OF_EACH_POLICY(counters, reads_are_the_windows_that_a_fault_asks_for)
{
    struct fault_rig rig;
    if (begin(&rig, "ondemand")) {
        expect_reads(rig_touch(&rig, 0, NULL), 1, 32);
        expect_reads(rig_touch(&rig, 1, NULL), 0, 0);
        expect_reads(rig_touch(&rig, 24, NULL), 1, 32); /* its mark, though the fault is minor */
        knob_set("readahead", "none");
        gated_file_truncate(rig.file, 0);
        gated_file_truncate(rig.file, RIG_PAGES * PAGE_SIZE);
        expect_reads(rig_touch(&rig, 7, NULL), 1, 1);
    }
    rig_end(&rig);
}

FAULT_TEST_OF_EACH_POLICY(counters, a_failed_page_is_one_read_more_and_a_hole_is_none)
{
    struct fault_rig rig;
    if (begin(&rig, "ondemand")) {
        gated_file_fail(rig.file, 20, 20);
        expect_reads(rig_touch_slow(&rig, 5, NULL), 2, 32 + 1);
    }
    rig_end(&rig);
    if (begin(&rig, "ondemand")) {
        gated_file_punch(rig.file, 8, 11);
        expect_reads(rig_touch(&rig, 0, NULL), 2, 32 - 4);
        expect_reads(rig_touch(&rig, 9, NULL), 0, 0);
    }
    rig_end(&rig);
}

FAULT_TEST(counters, a_page_that_another_reads_is_no_read_of_ones_own)
{
    struct fault_rig rig;
    struct actor first = {0}, second = {.addr = rig_addr(5)};
    if (begin(&rig, "none")) {
        rig_touch_held(&rig, &first, 5);
        actor_start(&second, &rig, act_touch);
        KEXPECT(!actor_settle(&second));
        gate_open(rig.file->disk);
        actor_join(&first);
        actor_join(&second);
        expect_reads(first.faults, 1, 1);
        expect_reads(second.faults, 0, 0);
        KEXPECT_EQ(second.faults.waits, 1);
    }
    rig_end(&rig);
}

/* ---- Times ---- */

FAULT_TEST_OF_EACH_POLICY(counters, each_fault_has_a_latency_and_each_hold_of_its_lock_a_time)
{
    struct fault_rig rig;
    if (begin(&rig, "none")) {
        struct task_fault_counters c = rig_touch_slow(&rig, 5, NULL);
        KEXPECT_EQ(sum_of(c.latency), 1);
        KEXPECT_EQ(sum_of(c.lock_hold), 2); /* before the wait, and after it */
        KEXPECT(longest_below_ns(c.latency) > c.wait_ns);
        c = rig_touch(&rig, RIG_PAGES + 100, NULL); /* no area: nothing to lock */
        KEXPECT_EQ(sum_of(c.latency), 1);
        KEXPECT_EQ(sum_of(c.lock_hold), 0);
        c = rig_store(&rig, 5, 1); /* refused with the lock held */
        KEXPECT_EQ(sum_of(c.latency), 1);
        KEXPECT_EQ(sum_of(c.lock_hold), 1);
    }
    rig_end(&rig);
}

FAULT_TEST(counters, a_lock_that_is_kept_is_held_for_all_of_the_wait)
{
    struct fault_rig rig;
    if (begin(&rig, "none")) {
        knob_set("fault_retry", "hold");
        struct task_fault_counters c = rig_touch_slow(&rig, 5, NULL);
        KEXPECT_EQ(sum_of(c.lock_hold), 1);
        KEXPECT(longest_below_ns(c.lock_hold) > c.wait_ns);
        KEXPECT_EQ(c.lock_across_io, 1);
    }
    rig_end(&rig);
}

/* Both are counted at once from one reading of the time: read twice, it is at times across the border of a bucket. */
FAULT_TEST(counters, a_fault_is_in_the_same_buckets_for_its_task_and_the_system)
{
    struct fault_rig rig;
    struct task_fault_counters before, after, own = {0};
    if (begin(&rig, "none")) {
        account_system(&before);
        for (unsigned n = 0; n < REFUSED_STORES; n++) {
            struct task_fault_counters c = rig_store(&rig, 5, 1);
            for (unsigned i = 0; i < FAULT_TIME_BUCKETS; i++) {
                own.latency[i] += c.latency[i];
                own.lock_hold[i] += c.lock_hold[i];
            }
        }
        account_system(&after);
        KEXPECT_EQ(sum_of(own.lock_hold), REFUSED_STORES);
        for (unsigned i = 0; i < FAULT_TIME_BUCKETS; i++) {
            KEXPECT_EQ(after.latency[i] - before.latency[i], own.latency[i]);
            KEXPECT_EQ(after.lock_hold[i] - before.lock_hold[i], own.lock_hold[i]);
        }
    }
    rig_end(&rig);
}

KTEST(counters, histograms_are_printed_without_their_empty_buckets)
{
    struct task_fault_counters c = {.lock_hold = {[0] = 3, [17] = 4}, .latency = {[31] = 5}};
    size_t size = 4096;
    char *text = kmalloc(size);
    KASSERT(text != NULL);
    int length = account_format(&c, "x_", text, size);
    KEXPECT_EQ(length, strlen(text));
    const char *times = strstr(text, "x_lock_hold");
    if (KEXPECT(times != NULL))
        KEXPECT_STREQ(times, "x_lock_hold_0 3\nx_lock_hold_17 4\nx_latency_31 5\n");
    KEXPECT_EQ(account_format(&c, "x_", text, 10), length);
    KEXPECT_STREQ(text, "x_started");
    kfree(text);
}

/* ---- Locks held across I/O ---- */

#define EXT2_BASE       0x30000000ul
#define BEHIND_INDIRECT 13 /* a page whose block number stands in the file's indirect block */

/* A touch of a page whose block number is still on the disk, which holds it back. => its counters */
static struct task_fault_counters touch_behind_indirect(const char *drop)
{
    struct actor reader = {.addr = EXT2_BASE + BEHIND_INDIRECT * PAGE_SIZE};
    struct ext2_image image;
    struct fault_rig rig;
    int error;

    if (!image_create(&image, PAGE_SIZE, 128) || !KEXPECT_EQ(image_mount(&image), 0) ||
        !begin(&rig, "none"))
        return reader.faults;
    knob_set("fault_drop", drop);
    struct file *file = image_open(&image, "run", O_RDONLY, &error);
    if (KEXPECT(file != NULL)) {
        u64 sectors = image.block_bytes / SECTOR_SIZE;
        u64 at = image_inode(&image, IMAGE_RUN)->block[12] * sectors;
        KEXPECT_EQ(mm_mmap(rig.mm, EXT2_BASE, IMAGE_RUN_BLOCKS * PAGE_SIZE, PROT_READ,
                           MAP_SHARED | MAP_FIXED, &file->mapped, 0),
                   EXT2_BASE);
        gate_hold(image.device, at, at + sectors - 1, 1);
        actor_start(&reader, &rig, act_touch);
        gate_wait_held(image.device, 1);
        KEXPECT(!actor_settle(&reader));
        gate_open(image.device);
        actor_join(&reader);
        KEXPECT((u8)reader.value == image_byte(BEHIND_INDIRECT));
        file_put(file);
    }
    rig_end(&rig);
    image_destroy(&image);
    return reader.faults;
}

FAULT_TEST(counters, block_numbers_read_under_the_lock_are_a_lock_across_io)
{
    struct task_fault_counters c = touch_behind_indirect("wait");
    KEXPECT_EQ(c.lock_across_io, 1);
    KEXPECT_EQ(c.waits, 0); /* the page itself was there at once */
    KEXPECT_EQ(c.minor, 1);
}

FAULT_TEST(counters, block_numbers_are_read_without_the_lock_where_it_is_let_go_before)
{
    struct task_fault_counters c = touch_behind_indirect("submit");
    KEXPECT_EQ(c.lock_across_io, 0);
    KEXPECT_EQ(c.minor, 1);
    KEXPECT_EQ(c.retries, 1);
}

/* ---- Waits of read() ---- */

static void act_read(struct actor *actor)
{
    actor->result = file_read_kernel(&actor->rig->file->mapped, actor->addr - RIG_BASE,
                                     &actor->value, sizeof(actor->value));
}

KTEST(counters, a_read_that_sleeps_for_a_page_is_a_read_wait_and_no_fault)
{
    struct fault_rig rig;
    struct actor reader = {.addr = rig_addr(5)}, again = {.addr = rig_addr(5)};
    if (begin(&rig, "none")) {
        gated_file_hold(rig.file, 5, 5);
        actor_start(&reader, &rig, act_read);
        gate_wait_held(rig.file->disk, 1);
        KEXPECT(!actor_settle(&reader));
        gate_open(rig.file->disk);
        actor_join(&reader);
        KEXPECT_EQ(reader.value, gated_file_word(5, 0));
        KEXPECT_EQ(reader.faults.read_waits, 1);
        KEXPECT(reader.faults.read_wait_ns > 0);
        KEXPECT_EQ(reader.faults.waits + reader.faults.started + reader.faults.reads, 0);
        actor_start(&again, &rig, act_read);
        actor_join(&again);
        KEXPECT_EQ(again.faults.read_waits, 0);
        KEXPECT_EQ(again.faults.read_wait_ns, 0);
    }
    rig_end(&rig);
}

/* ---- Pages read ahead ---- */

static struct readahead_use use_before;

static bool begin_use(const char *readahead)
{
    if (!stage_begin(128))
        return false;
    knob_set("readahead", readahead);
    readahead_use_count(&use_before);
    return true;
}

static u64 cached_unused(void)
{
    u64 n = 0;
    for (pgoff_t i = 0; i < PAGES; i++) {
        struct page *page = page_cache_find(&stage.rig.file->cache, i);
        if (!page)
            continue;
        n += page_has(page, PAGE_AHEAD);
        page_put(page);
    }
    return n;
}

static void expect_use(u64 ahead, u64 used, u64 dropped)
{
    struct readahead_use now;
    readahead_use_count(&now);
    KEXPECT_EQ(now.ahead - use_before.ahead, ahead);
    KEXPECT_EQ(now.used - use_before.used, used);
    KEXPECT_EQ(now.dropped - use_before.dropped, dropped);
    KEXPECT_EQ(cached_unused(), ahead - used - dropped);
}

KTEST(counters, a_page_read_ahead_is_used_once_or_dropped)
{
    if (!begin_use("ondemand"))
        return;
    stage_touch(0);
    expect_use(31, 0, 0);
    stage_touch_range(1, 10);
    stage_touch_range(1, 10);
    expect_use(31, 10, 0);
    stage_touch(24); /* the mark: 32 more, and none of them is wanted yet */
    expect_use(31 + 32, 11, 0);
    stage_forget_pages();
    expect_use(31 + 32, 11, 20 + 32);
    stage_end();
}

KTEST(counters, pages_that_a_read_wants_are_not_read_ahead)
{
    if (!begin_use("ondemand"))
        return;
    stage_read(0, 20);
    expect_use(12, 0, 0);
    stage_read(20, 1);
    expect_use(12 + 32, 1, 0); /* its mark */
    stage_read(21, 20);
    expect_use(12 + 32 + 32, 21, 0);
    stage_end();
}

KTEST(counters, to_be_mapped_around_is_no_use_but_an_access_is)
{
    if (!begin_use("ondemand"))
        return;
    knob_set("map_around_bytes", "65536");
    stage_touch(0); /* maps pages 0 to 15 */
    KEXPECT(rig_is_mapped(&stage.rig, 15));
    expect_use(31, 0, 0);
    stage_touch_range(3, 6); /* no faults: only the processor knows */
    expect_use(31, 0, 0);
    KEXPECT_EQ(mm_madvise(stage.rig.mm, RIG_BASE, PAGES * PAGE_SIZE, MADV_DONTNEED), 0);
    expect_use(31, 4, 0);
    stage_touch(20); /* maps 16 to 31, without the mark on 24 */
    expect_use(31, 5, 0);
    stage_touch(21);
    mm_clear_referenced(stage.rig.mm, false, true); /* looks at accessed bits, too */
    expect_use(31, 6, 0);
    stage_forget_pages();
    expect_use(31, 6, 25);
    stage_end();
}

KTEST(counters, truncated_and_invalidated_pages_are_dropped_unused)
{
    if (!begin_use("ondemand"))
        return;
    stage_touch(0);
    stage_touch(31);
    expect_use(31, 1, 0);
    gated_file_truncate(stage.rig.file, 20 * PAGE_SIZE);
    expect_use(31, 1, 11);
    stage_end();
}

KTEST(counters, what_advice_asks_for_is_wanted_and_holes_are_not_read)
{
    if (!begin_use("ondemand"))
        return;
    readahead_advise_willneed(&stage.rig.file->mapped, 100, 40);
    expect_use(0, 0, 0);
    gated_file_punch(stage.rig.file, 4, 11);
    stage_touch(0);
    expect_use(31 - 8, 0, 0);
    stage_read(5, 1); /* a hole */
    stage_touch(12);
    expect_use(31 - 8, 1, 0);
    stage_forget_pages();
    expect_use(31 - 8, 1, 22);
    stage_end();
}

/* A miss in the middle of a window that is read around: pages on both sides of it are ahead. */
KTEST(counters, pages_before_the_miss_are_read_ahead_too)
{
    if (!begin_use("around"))
        return;
    stage_touch(100);
    expect_use(31, 0, 0);
    stage_touch(90);
    stage_read(110, 1);
    expect_use(31, 2, 0);
    stage_end();
}
