/*
 * Readahead under `stream`: what it asks for, and what it does not, where `ondemand` can be beaten (FAULTS.md section 4).
 */
#include "kernel/cpu/uaccess.h"
#include "mm/file_read.h"
#include "mm/knobs.h"
#include "tests/kernel/readahead_stage.h"

static bool begin(u32 window_kb)
{
    if (!stage_begin(window_kb))
        return false;
    KEXPECT_EQ(knob_set("readahead", "stream"), 0);
    return true;
}

static void end(void)
{
    knob_set("readahead", "ondemand");
    stage_end();
}

/* Touches far from each other, until guesses are not made any more. => the last of them */
static void lose_trust(void)
{
    static const pgoff_t far[] = {37, 91, 143, 203, 259, 301, 367, 421, 467, 503};
    for (unsigned i = 0; i < ARRAY_SIZE(far); i++)
        stage_read(far[i], 1);
    stage_forget_windows();
}

KTEST(readahead_stream, mmap_from_0)
{
    if (!begin(128))
        return;
    stage_touch_range(0, 100);
    stage_expect("@0:(0,32) @1:(32,32) @32:(64,32) @64:(96,32) @96:(128,32)");
    end();
}

KTEST(readahead_stream, from_the_middle_nothing_is_read_backwards)
{
    if (!begin(128))
        return;
    stage_touch_range(200, 290);
    stage_expect(
        "@200:(200,4) @201:(204,16) @204:(220,32) @220:(252,32) @252:(284,32) @284:(316,32)");
    stage_forget_pages();
    stage_read_range(400, 440);
    stage_expect("@400:(400,4) @401:(404,16) @404:(420,32) @420:(452,32)");
    end();
}

KTEST(readahead_stream, backward_by_touch_and_by_read)
{
    if (!begin(128))
        return;
    for (pgoff_t i = 300; i >= 230; i--)
        stage_touch(i);
    stage_expect("@300:(300,4) @299:(284,16) @298:(252,32) @283:(220,32) @251:(188,32)");
    stage_forget_pages();
    for (pgoff_t i = 450; i >= 420; i--)
        stage_read(i, 1);
    stage_expect("@450:(450,4) @449:(434,16) @448:(402,32) @433:(370,32)");
    end();
}

/* More than a window may have: its first pages are what the reader waits for. */
KTEST(readahead_stream, backward_in_reads_larger_than_a_window)
{
    if (!begin(16))
        return;
    stage.rig.file->cache.max_request_pages = 4;
    stage_read(400, 20);
    stage_forget_windows();
    stage_read(380, 20);
    stage_expect("@380:(380,8)*(388,8)*(396,4)*");
    stage_read(360, 20);
    stage_expect("@360:(360,8)*(368,8)*(376,4)*");
    end();
}

KTEST(readahead_stream, interleaved_reads_each_as_if_alone)
{
    if (!begin(128))
        return;
    for (pgoff_t i = 0; i < 40; i++) {
        stage_read(50 + i, 1);
        if (i == 0)
            stage_expect("@50:(50,4)");
        else if (i == 1)
            stage_expect("@51:(54,16)");
        else if (i == 4)
            stage_expect("@54:(70,32)");
        else
            stage_expect(i == 20 ? "@70:(102,32)" : "");
        for (pgoff_t start = 150; start < 450; start += 100)
            stage_read(start + i, 1);
        stage_forget_windows(); /* the others' are as the first one's */
    }
    end();
}

KTEST(readahead_stream, wide_stride_asks_for_the_pages_alone)
{
    if (!begin(128))
        return;
    for (pgoff_t i = 10; i < 460; i += 50)
        stage_touch(i);
    stage_expect("@10:(10,4) @60:(60,4) @110:(110,1)*(160,1)(210,1) @160:(260,1) @210:(310,1) "
                 "@260:(360,1) @310:(410,1) @360:(460,1) @410:(510,1)");
    end();
}

KTEST(readahead_stream, narrow_stride_marks_a_page_that_will_be_touched)
{
    if (!begin(128))
        return;
    for (pgoff_t i = 100; i < 200; i += 8)
        stage_read(i, 1);
    stage_expect(
        "@100:(100,4) @108:(108,4) @116:(116,16) @124:(132,32) @132:(164,32) @164:(196,32) "
        "@196:(228,32)");
    end();
}

KTEST(readahead_stream, random_reads_lose_trust_and_read_what_they_want)
{
    if (!begin(128))
        return;
    lose_trust();
    stage_read(60, 1);
    stage_touch(400);
    stage_read(250, 3);
    stage_expect("@60:(60,1)* @400:(400,1)* @250:(250,3)*");
    /* Two side by side may be a coincidence, three hardly are; the fourth brings trust back. */
    stage_read_range(160, 165);
    stage_expect("@160:(160,1)* @161:(161,1)* @162:(162,4) @163:(166,16)");
    stage_touch(480);
    stage_expect("@480:(480,4)");
    end();
}

KTEST(readahead_stream, coincidences_among_random_accesses_cost_little)
{
    if (!begin(128))
        return;
    lose_trust();
    stage_read(61, 1);
    stage_touch(400);
    stage_read(60, 1); /* right before one of the last */
    stage_expect("@61:(61,1)* @400:(400,1)* @60:(60,1)*");
    for (pgoff_t i = 210; i < 240; i += 6)
        stage_read(i, 1);
    stage_expect("@210:(210,1)* @216:(216,1)* @222:(222,1)* @228:(228,4)* @234:(234,4)*");
    end();
}

KTEST(readahead_stream, page_0_among_random_accesses_is_a_page_like_any_other)
{
    if (!begin(128))
        return;
    lose_trust();
    stage_touch(0);
    stage_expect("@0:(0,1)*");
    end();
}

/* Of more streams than there is room for, those that were forgotten are known by what they have left in the cache. */
KTEST(readahead_stream, cached_pages_right_before_a_miss_are_a_stream_that_was_forgotten)
{
    if (!begin(128))
        return;
    lose_trust();
    stage_cache_pages(211, 217);
    stage_cache_pages(220, 229);
    stage_touch(218);
    stage_touch(230);
    stage_expect("@218:(218,1)* @230:(230,10)");
    end();
}

/* Their first round looks like one stream with a stride of 100. */
KTEST(readahead_stream, streams_that_begin_at_equal_distances_are_told_apart)
{
    if (!begin(128))
        return;
    for (pgoff_t start = 0; start < 500; start += 100)
        stage_touch(start + 5);
    stage_expect("@5:(5,4) @105:(105,4) @205:(205,1)*(305,1)(405,1) @305:(505,1)");
    for (pgoff_t start = 0; start < 500; start += 100)
        stage_touch(start + 6);
    stage_expect("@6:(9,16) @106:(109,8) @206:(206,8) @306:(306,8) @406:(406,4)");
    end();
}

/* Nothing says how many pages are skipped: the mark is where many a reader comes by. */
KTEST(readahead_stream, one_who_skips_every_other_page_meets_his_marks)
{
    if (!begin(128))
        return;
    for (pgoff_t i = 101; i < 250; i += 2)
        stage_touch(i);
    stage_expect("@101:(101,4) @105:(105,16) @113:(121,32) @121:(153,32) @153:(185,32) "
                 "@185:(217,32) @217:(249,32) @249:(281,32)");
    end();
}

static void act_touch_each(struct actor *actor)
{
    for (u64 i = 0; i < actor->argument; i++)
        uaccess_touch_read(actor->addr + i * PAGE_SIZE);
}

/* The page with the mark is still to come, twice in a row: the reader is faster than the disk. */
KTEST(readahead_stream, windows_double_where_the_reader_waits_for_each)
{
    struct actor reader = {.addr = rig_addr(100), .argument = 50};
    if (!begin(32))
        return;
    gated_file_hold(stage.rig.file, 0, PAGES - 1);
    actor_start(&reader, &stage.rig, act_touch_each);
    while (!actor_settle(&reader))
        gate_release(stage.rig.file->disk, 0); /* what he waits for is the oldest */
    actor_join(&reader);
    stage_note_windows(100);
    stage_expect("@100:(100,4)(104,8)(112,8)(120,16)(136,16)(152,16)");
    end();
}

KTEST(readahead_stream, small_window_runs_ahead_too)
{
    if (!begin(8))
        return;
    stage_touch_range(100, 107);
    stage_expect("@100:(100,2) @101:(102,2) @102:(104,2) @104:(106,2) @106:(108,2)");
    end();
}

KTEST(readahead_stream, sequential_advice_holds_from_any_page)
{
    if (!begin(128))
        return;
    KEXPECT_EQ(mm_madvise(stage.rig.mm, RIG_BASE, PAGES * PAGE_SIZE, MADV_SEQUENTIAL), 0);
    stage_touch_range(200, 330);
    stage_expect("@200:(200,64) @201:(264,64) @264:(328,64) @328:(392,64)");
    end();
}

KTEST(readahead_stream, oversized_read_runs_ahead_by_one_request)
{
    if (!begin(32))
        return;
    for (pgoff_t i = 0; i < 120; i += 20) {
        KEXPECT_EQ(
            file_read_kernel(&stage.rig.file->mapped, i * PAGE_SIZE, stage.buf, 20 * PAGE_SIZE),
            20 * PAGE_SIZE);
        stage_note_windows(i);
    }
    stage_expect("@0:(0,40) @20:(40,40) @40:(80,40) @80:(120,40)");
    end();
}

KTEST(readahead_stream, dropped_before_use_halves_the_window)
{
    if (!begin(128))
        return;
    stage_touch_range(100, 124);
    stage_expect("@100:(100,4) @101:(104,16) @104:(120,32) @120:(152,32)");
    stage_forget_pages();
    stage_touch(125);
    stage_expect("@125:(125,16)");
    stage_touch_range(126, 150);
    stage_expect("@133:(141,17) @141:(158,18)");
    end();
}

KTEST(readahead_stream, willneed_reads_all_of_the_range)
{
    if (!begin(128))
        return;
    stage.rig.file->cache.max_request_pages = 100;
    readahead_advise_willneed(&stage.rig.file->mapped, 10, 450);
    stage_note_windows(10);
    stage_expect("@10:(10,100)*(110,100)*(210,100)*(310,100)*(410,50)*");
    end();
}

KTEST(readahead_stream, mark_of_a_forgotten_stream_is_followed)
{
    if (!begin(128))
        return;
    KEXPECT_EQ(knob_set("readahead", "ondemand"), 0);
    stage_touch(200);
    stage_expect("@200:(184,32)");
    KEXPECT_EQ(knob_set("readahead", "stream"), 0);
    stage_touch_range(201, 216);
    stage_expect("@208:(216,24) @216:(240,32)");
    end();
}

KTEST(readahead_stream, policies_can_be_changed_at_any_time)
{
    if (!begin(128))
        return;
    for (pgoff_t i = 0; i < 100; i++) {
        knob_set("readahead", i % 3 == 0 ? "stream" : i % 3 == 1 ? "ondemand" : "around");
        stage_touch(i * 5);
    }
    stage_forget_windows();
    end();
}
