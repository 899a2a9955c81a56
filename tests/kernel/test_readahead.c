/*
 * Readahead under `ondemand`: the worked sequences of FAULTS.md section 4, on a file of 512 pages.
 */
#include "kernel/log/trace_read.h"
#include "lib/format.h"
#include "lib/string.h"
#include "mm/file_read.h"
#include "mm/knobs.h"
#include "tests/kernel/readahead_stage.h"

/* ---- read() ---- */

KTEST(readahead, read_from_0)
{
    if (!stage_begin(128))
        return;
    stage_read_range(0, 100);
    stage_expect("@0:(0,4) @1:(4,8) @4:(12,16) @12:(28,32) @28:(60,32) @60:(92,32) @92:(124,32)");
    stage_end();
}

KTEST(readahead, read_from_the_middle)
{
    if (!stage_begin(128))
        return;
    stage_read_range(200, 270);
    stage_expect("@200:(200,1)* @201:(201,4) @202:(205,8) @205:(213,16) @213:(229,32) "
                 "@229:(261,32) @261:(293,32)");
    stage_end();
}

KTEST(readahead, read_backward_gets_nothing_ahead)
{
    if (!stage_begin(128))
        return;
    for (pgoff_t i = 203; i >= 200; i--)
        stage_read(i, 1);
    stage_expect("@203:(203,1)* @202:(202,1)* @201:(201,1)* @200:(200,1)*");
    stage_end();
}

KTEST(readahead, two_read_streams)
{
    if (!stage_begin(128))
        return;
    for (pgoff_t i = 0; i < 50; i++) {
        stage_read(100 + i, 1);
        stage_forget_windows(); /* the other stream's are as this one's */
        stage_read(300 + i, 1);
        if (i < 2)
            stage_expect(i ? "@301:(301,1)*" : "@300:(300,1)*");
        else if (i == 2)
            stage_expect("@302:(302,3)");
        else if (i == 4)
            stage_expect("@304:(305,4)");
        else if (i == 5)
            stage_expect("@305:(309,10)");
        else if (i == 9)
            stage_expect("@309:(319,22)");
        else if (i == 19)
            stage_expect("@319:(341,32)");
        else
            stage_expect(i == 41 ? "@341:(373,32)" : "");
    }
    stage_end();
}

KTEST(readahead, read_near_the_end_is_clipped)
{
    if (!stage_begin(128))
        return;
    stage_read_range(498, 511);
    stage_expect("@498:(498,1)* @499:(499,4) @500:(503,8) @503:(511,1)");
    stage_end();
}

KTEST(readahead, holes_are_cached_and_never_read)
{
    if (!stage_begin(128))
        return;
    gated_file_truncate(stage.rig.file, 100 * PAGE_SIZE);
    gated_file_punch(stage.rig.file, 10, 39);
    gated_file_punch(stage.rig.file, 50, 99);
    stage_read_range(0, 99);
    stage_expect("@0:(0,4) @1:(4,6) @12:(40,10)*");
    KEXPECT_EQ(stage.rig.file->cache.n_pages, 100);
    stage_end();
}

KTEST(readahead, first_window_by_the_size_of_the_request)
{
    static const struct {
        u32 window_kb;
        u64 n;
        const char *expected;
    } cases[] = {
        {128, 1, "@0:(0,4)"},   {128, 2, "@0:(0,4)"},   {128, 3, "@0:(0,8)"},
        {128, 4, "@0:(0,8)"},   {128, 5, "@0:(0,16)"},  {128, 8, "@0:(0,16)"},
        {128, 9, "@0:(0,32)"},  {128, 16, "@0:(0,32)"}, {32, 1, "@0:(0,2)"},
        {32, 2, "@0:(0,4)"},    {32, 3, "@0:(0,8)"},    {512, 1, "@0:(0,4)"},
        {512, 2, "@0:(0,8)"},   {512, 4, "@0:(0,16)"},  {512, 5, "@0:(0,16)"},
        {512, 16, "@0:(0,32)"}, {512, 17, "@0:(0,64)"},
    };

    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        if (!stage_begin(cases[i].window_kb))
            return;
        stage_read(0, cases[i].n);
        if (!stage_expect(cases[i].expected))
            ktest_note("%lu pages, read_ahead_kb %u", cases[i].n, cases[i].window_kb);
        stage_end();
    }
}

KTEST(readahead, later_windows_by_the_one_before)
{
    if (!stage_begin(512))
        return;
    stage_read_range(0, 250);
    stage_expect(
        "@0:(0,4) @1:(4,16) @4:(20,32) @20:(52,64) @52:(116,128) @116:(244,128) @244:(372,128)");
    stage_end();
    if (!stage_begin(32))
        return;
    stage_read_range(0, 30);
    stage_expect("@0:(0,2) @1:(2,4) @2:(6,8) @6:(14,8) @14:(22,8) @22:(30,8) @30:(38,8)");
    stage_end();
}

KTEST(readahead, oversized_read_asks_for_more_than_was_wanted)
{
    char *large = stage.buf;

    if (!stage_begin(32))
        return;
    KEXPECT_EQ(file_read_kernel(&stage.rig.file->mapped, 0, large, 20 * PAGE_SIZE), 20 * PAGE_SIZE);
    stage_note_windows(0);
    /* n = 20 > 8: the window is as large as the request, its mark in the middle; met by the same
     * call. */
    stage_expect("@0:(0,20)(20,20)");
    KEXPECT_EQ(file_read_kernel(&stage.rig.file->mapped, 200 * PAGE_SIZE, large, 20 * PAGE_SIZE),
               20 * PAGE_SIZE);
    stage_note_windows(200);
    stage_expect("@200:(200,20)*"); /* not oversized any more, and not sequential */
    stage.rig.file->cache.max_request_pages = 16;
    KEXPECT_EQ(file_read_kernel(&stage.rig.file->mapped, 300 * PAGE_SIZE, large, 20 * PAGE_SIZE),
               20 * PAGE_SIZE);
    stage_note_windows(300);
    stage_expect("@300:(300,16)(316,16)(332,16)"); /* rule 4: more than the largest request */
    stage_end();
}

KTEST(readahead, request_of_the_whole_window_puts_its_mark_in_the_middle)
{
    if (!stage_begin(64))
        return;
    stage_read(0, 16);
    stage_expect("@0:(0,16)(16,16)"); /* the mark on page 8 is met by the same call */
    stage_end();
}

KTEST(readahead, position_of_the_last_read_decides_what_is_sequential)
{
    struct mapped_file *file;
    char byte;

    if (!stage_begin(128))
        return;
    file = &stage.rig.file->mapped;
    stage_read(1, 1); /* the first read of all: nothing before it, page 0 is not cached */
    stage_expect("@1:(1,1)*");
    KEXPECT_EQ(file_read_kernel(file, 100 * PAGE_SIZE + 7, &byte, 1), 1);
    stage_note_windows(100);
    stage_expect("@100:(100,1)*");
    KEXPECT_EQ(stage_readahead()->prev_bytes, 100 * PAGE_SIZE + 8);
    stage_forget_pages();
    KEXPECT_EQ(file_read_kernel(file, 100 * PAGE_SIZE + 8, &byte, 1), 1);
    stage_note_windows(100);
    stage_expect("@100:(100,4)"); /* the same page again, and missed: sequential */
    stage_read(200, 1);
    stage_read(202, 1); /* prev is at page 201: one further is sequential */
    stage_expect("@200:(200,1)* @202:(202,4)");
    stage_read(300, 1);
    stage_read(303, 1); /* two further is not */
    stage_expect("@300:(300,1)* @303:(303,1)*");
    stage_end();
}

KTEST(readahead, cached_history_back_to_page_0_counts_double)
{
    if (!stage_begin(128))
        return;
    stage_cache_pages(0, 3);
    stage_read(4, 1);
    stage_expect("@4:(4,9)");
    stage_cache_pages(100, 103);
    stage_read(104, 1);
    stage_expect("@104:(104,5)");
    stage_cache_pages(200, 203);
    stage_read(204, 5); /* more wanted than history: random */
    stage_expect("@204:(204,5)*");
    stage_end();
}

KTEST(readahead, mark_elsewhere_looks_for_the_next_absent_page)
{
    struct page *page;

    if (!stage_begin(128))
        return;
    stage_cache_pages(100, 103);
    page = page_cache_find(&stage.rig.file->cache, 100);
    page_set(page, PAGE_READAHEAD);
    stage_read(100, 1);
    stage_expect("@100:(104,10)"); /* NEXT(104 - 100 + 1) */
    KEXPECT(!page_has(page, PAGE_READAHEAD));
    page_put(page);
    stage_end();
}

KTEST(readahead, mark_with_nothing_absent_behind_it_starts_nothing)
{
    struct page *page;

    if (!stage_begin(128))
        return;
    stage_cache_pages(100, 100 + MAX_PAGES);
    page = page_cache_find(&stage.rig.file->cache, 100);
    page_set(page, PAGE_READAHEAD);
    stage_read(100, 1);
    stage_expect("");
    page_put(page);
    stage_end();
}

KTEST(readahead, window_of_0_reads_what_is_missing)
{
    if (!stage_begin(0))
        return;
    stage_read_range(0, 2);
    stage_touch(200);
    stage_touch(201);
    stage_expect("@0:(0,1)* @1:(1,1)* @2:(2,1)* @200:(200,1)* @201:(201,1)*");
    stage_end();
}

/* ---- Faults ---- */

KTEST(readahead, mmap_from_0)
{
    if (!stage_begin(128))
        return;
    stage_touch_range(0, 100);
    stage_expect("@0:(0,32) @24:(32,32) @32:(64,32) @64:(96,32) @96:(128,32)");
    stage_end();
}

KTEST(readahead, mmap_from_the_middle)
{
    if (!stage_begin(128))
        return;
    stage_touch_range(200, 290);
    stage_expect("@200:(184,32) @208:(216,32) @216:(248,32) @248:(280,32) @280:(312,32)");
    stage_end();
}

KTEST(readahead, mmap_with_neighbours_mapped_gives_the_same_windows)
{
    if (!stage_begin(128))
        return;
    knob_set("map_around_bytes", "65536");
    stage_touch_range(0, 100); /* pages with the mark stay unmapped */
    stage_expect("@0:(0,32) @24:(32,32) @32:(64,32) @64:(96,32) @96:(128,32)");
    stage_end();
}

KTEST(readahead, mmap_backward)
{
    if (!stage_begin(128))
        return;
    for (pgoff_t i = 400; i > 350; i--)
        stage_touch(i);
    stage_expect("@400:(384,32) @383:(367,17)* @366:(350,17)*");
    stage_end();
}

KTEST(readahead, two_mmap_streams_are_each_as_if_alone)
{
    if (!stage_begin(128))
        return;
    for (pgoff_t i = 0; i < 70; i++) {
        stage_touch(i);
        stage_touch(300 + i);
    }
    stage_expect("@0:(0,32) @300:(284,32) @308:(316,32) @316:(348,32) @24:(32,32) @32:(64,32) "
                 "@348:(380,32) @64:(96,32)");
    stage_end();
}

KTEST(readahead, mmap_at_the_edges_is_clipped)
{
    if (!stage_begin(128))
        return;
    stage_touch(5);
    stage_touch(510);
    stage_expect("@5:(0,32) @510:(494,18)*"); /* the mark would lie behind the end */
    stage_end();
}

KTEST(readahead, mmap_over_holes)
{
    if (!stage_begin(128))
        return;
    gated_file_truncate(stage.rig.file, 100 * PAGE_SIZE);
    gated_file_punch(stage.rig.file, 10, 39);
    gated_file_punch(stage.rig.file, 50, 99);
    for (pgoff_t i = 0; i < 100; i++) {
        KEXPECT(user_peek(rig_addr(i)) >= 0);
        stage_note_windows(i);
    }
    stage_expect("@0:(0,10)* @24:(40,10)*");
    stage_end();
}

KTEST(readahead, advice_sequential_from_0)
{
    if (!stage_begin(128))
        return;
    KEXPECT_EQ(mm_madvise(stage.rig.mm, RIG_BASE, PAGES * PAGE_SIZE, MADV_SEQUENTIAL), 0);
    stage_touch_range(0, 70);
    stage_expect("@0:(0,32) @16:(32,32) @32:(64,32) @64:(96,32)");
    stage_end();
}

KTEST(readahead, advice_random_reads_the_page_alone)
{
    if (!stage_begin(128))
        return;
    KEXPECT_EQ(mm_madvise(stage.rig.mm, RIG_BASE, PAGES * PAGE_SIZE, MADV_RANDOM), 0);
    stage_touch_range(0, 2);
    stage_touch(100);
    stage_expect("@0:(0,1)* @1:(1,1)* @2:(2,1)* @100:(100,1)*");
    KEXPECT_EQ(stage_readahead()->miss, 0); /* it is no score of reading around */
    stage_end();
}

KTEST(readahead, reading_around_ends_after_100_misses)
{
    if (!stage_begin(128))
        return;
    for (unsigned i = 1; i <= 101; i++) {
        stage_touch(200);
        stage_expect(i <= 100 ? "@200:(184,32)" : "@200:(200,1)*");
        KEXPECT_EQ(stage_readahead()->miss, i);
        stage_forget_pages();
    }
    stage_readahead()->miss = 1000;
    stage_touch(200);
    KEXPECT_EQ(stage_readahead()->miss, 1000); /* and no more */
    stage_end();
}

KTEST(readahead, hits_make_up_for_misses)
{
    if (!stage_begin(128))
        return;
    stage_touch(200);
    KEXPECT_EQ(stage_readahead()->miss, 1);
    stage_touch(200); /* mapped: no fault, no hit */
    KEXPECT_EQ(stage_readahead()->miss, 1);
    stage_touch(201);
    KEXPECT_EQ(stage_readahead()->miss, 0);
    stage_touch(202);
    KEXPECT_EQ(stage_readahead()->miss, 0);
    stage_forget_windows();
    stage_end();
}

KTEST(readahead, fault_that_misses_waits_and_restarts_is_one_miss_and_no_hit)
{
    if (!stage_begin(128))
        return;
    KEXPECT_EQ(rig_touch_slow(&stage.rig, 200, NULL).retries, 1);
    KEXPECT_EQ(stage_readahead()->miss, 1);
    stage_end();
}

KTEST(readahead, locked_page_is_no_hit_but_its_mark_counts)
{
    struct actor first = {0}, second = {0};

    if (!stage_begin(128))
        return;
    rig_touch_held(&stage.rig, &first, 0); /* (0,32) is held, its mark on 24 */
    stage_forget_windows();
    second.addr = rig_addr(24);
    actor_start(&second, &stage.rig, act_touch);
    KEXPECT(!actor_settle(&second));
    stage_note_windows(24);
    stage_expect("@24:(32,32)");
    KEXPECT_EQ(stage_readahead()->miss, 1);
    gate_open(stage.rig.file->disk);
    actor_join(&first);
    actor_join(&second);
    KEXPECT_EQ(second.value, gated_file_word(24, 0));
    KEXPECT_EQ(stage_readahead()->miss, 1);
    stage_end();
}

KTEST(readahead, cached_pages_inside_a_window_are_not_asked_for_again)
{
    if (!stage_begin(128))
        return;
    stage_cache_pages(190, 191);
    stage_cache_pages(208, 208); /* where the mark would go: none then */
    stage_touch(200);
    stage_expect("@200:(184,6)*(192,16)*(209,7)*");
    stage_end();
}

KTEST(readahead, around_reads_at_every_miss_without_a_mark)
{
    if (!stage_begin(128))
        return;
    knob_set("readahead", "around");
    stage_touch_range(0, 70);
    stage_expect("@0:(0,32)* @32:(32,16)* @48:(48,16)* @64:(64,16)*");
    stage_end();
}

KTEST(readahead, none_reads_what_is_missing)
{
    if (!stage_begin(128))
        return;
    knob_set("readahead", "none");
    stage_touch_range(200, 202);
    stage_read_range(300, 302);
    stage_expect(
        "@200:(200,1)* @201:(201,1)* @202:(202,1)* @300:(300,1)* @301:(301,1)* @302:(302,1)*");
    stage_end();
}

KTEST(readahead, mark_left_by_another_policy_starts_nothing)
{
    if (!stage_begin(128))
        return;
    stage_touch(0);
    stage_expect("@0:(0,32)");
    knob_set("readahead", "none");
    stage_touch(24);
    stage_expect("");
    stage_end();
}

/* ---- Hints ---- */

enum { FADV_NORMAL, FADV_RANDOM, FADV_SEQUENTIAL, FADV_WILLNEED, FADV_DONTNEED, FADV_NOREUSE };

static int advise(u64 first_page, u64 n_pages, int advice)
{
    return file_advise(&stage.rig.file->mapped, first_page * PAGE_SIZE, n_pages * PAGE_SIZE,
                       advice);
}

KTEST(readahead, fadvise_sequential_doubles_the_window_and_normal_takes_it_back)
{
    if (!stage_begin(128))
        return;
    KEXPECT_EQ(advise(0, 0, FADV_SEQUENTIAL), 0);
    stage_read_range(0, 60);
    stage_expect("@0:(0,4) @1:(4,8) @4:(12,16) @12:(28,32) @28:(60,64) @60:(124,64)");
    KEXPECT_EQ(advise(0, 0, FADV_NORMAL), 0);
    KEXPECT_EQ(stage_readahead()->max_pages, MAX_PAGES);
    stage_touch(300);
    stage_expect("@300:(284,32)");
    stage_end();
}

KTEST(readahead, fadvise_random_reads_what_is_wanted_and_leaves_faults_alone)
{
    if (!stage_begin(128))
        return;
    KEXPECT_EQ(advise(0, 0, FADV_RANDOM), 0);
    stage_read(0, 4);
    stage_read(4, 2);
    stage_touch(200);
    stage_expect("@0:(0,4)* @4:(4,2)* @200:(184,32)");
    stage_end();
}

KTEST(readahead, fadvise_willneed_reads_absent_pages_without_a_mark)
{
    if (!stage_begin(128))
        return;
    stage_cache_pages(10, 10);
    KEXPECT_EQ(advise(8, 6, FADV_WILLNEED), 0);
    stage_note_windows(8);
    stage_expect("@8:(8,2)*(11,3)*");
    KEXPECT_EQ(file_advise(&stage.rig.file->mapped, 100 * PAGE_SIZE + 5, PAGE_SIZE, FADV_WILLNEED),
               0);
    stage_note_windows(100);
    stage_expect("@100:(100,2)*");              /* bytes of two pages */
    KEXPECT_EQ(advise(0, 0, FADV_WILLNEED), 0); /* stops after one large request */
    KEXPECT_EQ(page_cache_next_absent(&stage.rig.file->cache, 0, PAGES - 1), 320);
    KEXPECT_EQ(stage_readahead()->prev_bytes, READAHEAD_NONE_YET);
    stage_end();
}

KTEST(readahead, fadvise_dontneed_drops_whole_pages_only)
{
    struct gated_file *file;

    if (!stage_begin(128))
        return;
    file = stage.rig.file;
    gated_file_truncate(file, 12 * PAGE_SIZE + 100);
    stage_cache_pages(0, 12);
    KEXPECT_EQ(file_advise(&file->mapped, 2 * PAGE_SIZE + 1, 3 * PAGE_SIZE, FADV_DONTNEED), 0);
    KEXPECT_EQ(file->cache.n_pages, 11); /* pages 3 and 4 of 2…5 */
    KEXPECT_EQ(page_cache_next_absent(&file->cache, 0, 12), 3);
    KEXPECT_EQ(page_cache_next_absent(&file->cache, 5, 12), 13);
    KEXPECT_EQ(file_advise(&file->mapped, 11 * PAGE_SIZE, 50, FADV_DONTNEED), 0);
    KEXPECT_EQ(file->cache.n_pages, 11); /* less than a page */
    stage_touch(6);
    KEXPECT_EQ(advise(0, 0, FADV_DONTNEED), 0); /* to the end, with the last, partial page */
    KEXPECT_EQ(file->cache.n_pages, 1);         /* the mapped one */
    stage_forget_windows();
    stage_end();
}

KTEST(readahead, fadvise_knows_six_kinds)
{
    if (!stage_begin(128))
        return;
    KEXPECT_EQ(advise(0, 4, FADV_NOREUSE), 0);
    KEXPECT_EQ(advise(0, 4, FADV_NOREUSE + 1), -EINVAL);
    KEXPECT_EQ(advise(0, 4, -1), -EINVAL);
    KEXPECT_EQ(stage.rig.file->cache.n_pages, 0);
    KEXPECT_EQ(file_advise(&stage.rig.file->mapped, ~0ul - 5, 100, FADV_WILLNEED),
               0); /* past any end */
    KEXPECT_EQ(stage.rig.file->cache.n_pages, 0);
    stage_end();
}

KTEST(readahead, log_has_lines_of_one_width_with_kind_access_and_mark)
{
    char line[READAHEAD_LOG_LINE + 1], expected[READAHEAD_LOG_LINE];
    u64 begin_pos = readahead_log_end();

    if (!stage_begin(128))
        return;
    stage.rig.file->cache.dev = 77;
    stage_touch(0);
    KEXPECT_EQ(readahead_log_end(), begin_pos + READAHEAD_LOG_LINE);
    KEXPECT_EQ(readahead_log_read(begin_pos, line, READAHEAD_LOG_LINE), READAHEAD_LOG_LINE);
    KEXPECT_EQ(readahead_log_read(begin_pos + READAHEAD_LOG_LINE, line, 1), 0);
    KEXPECT_EQ(line[READAHEAD_LOG_LINE - 1], '\n');
    line[READAHEAD_LOG_LINE - 1] = '\0';
    for (size_t i = strlen(line); i > 0 && line[i - 1] == ' '; i--)
        line[i - 1] = '\0';
    format_to(expected, sizeof(expected), "%lu 77:4242 fault 0 0 32 24",
              begin_pos / READAHEAD_LOG_LINE);
    KEXPECT_STREQ(line, expected);
    stage_end();
}

/* ---- What the trace says of it ---- */

/* Takes the readahead events out: "start:pattern" of each. */
static void expect_patterns(const char *expected)
{
    static struct trace_found found;
    static char text[512];
    size_t used = 0;

    text[0] = '\0';
    while (trace_take(&found)) {
        const struct trace_readahead *e = (const struct trace_readahead *)found.record.fields;

        format_append(text, sizeof(text), &used, "%s%lu:%s", used ? " " : "", e->start, e->pattern);
    }
    KEXPECT_STREQ(text, expected);
}

KTEST(readahead, the_trace_names_patterns)
{
    if (!stage_begin(128))
        return;
    trace_clear();
    trace_enable(TRACE_ID_readahead, true);
    stage_read_range(0, 5);
    stage_read(300, 1);
    stage_read_range(301, 302);
    stage_touch(400);
    expect_patterns("0:initial 4:sequential 12:sequential 300:random 301:sequential 305:sequential "
                    "384:around");
    stage_forget_pages();
    KEXPECT_EQ(readahead_set_policy("stream"), 0);
    for (pgoff_t page = 120; page >= 118; page--)
        stage_read(page, 1);
    expect_patterns("120:guess 104:backward 72:backward");
    for (pgoff_t page = 200; page < 320; page += 40)
        stage_read(page, 1);
    trace_enable(TRACE_ID_readahead, false);
    expect_patterns("200:guess 240:guess 280:strided 320:strided 360:strided");
    stage_end();
}
