/*
 * Readahead: the worked sequences of FAULTS.md section 4, on a file of 512 pages.
 *
 * A sequence is written as the document writes it: "@a:(s,n)" where touching page a made the disk
 * be asked for n pages from page s; "*" behind it: without a mark.
 */
#include "lib/format.h"
#include "lib/string.h"
#include "mm/file_read.h"
#include "mm/knobs.h"
#include "mm/user_memory.h"
#include "tests/kernel/fault_rig.h"
#include "tests/kernel/test_mm.h"

#define PAGES      GATED_FILE_MAX_PAGES
#define TEXT_BYTES 1024
#define MAX_PAGES  32
#define BATCH      31 /* pages that read() looks at together */

static struct {
    struct fault_rig rig;
    u32 read_ahead_kb;
    u64 log_pos;
    char text[TEXT_BYTES];
    size_t used;
    char buf[BATCH * PAGE_SIZE];
} stage;

static u64 number_at(char **at)
{
    u64 value = 0;

    while (**at == ' ')
        (*at)++;
    for (; **at >= '0' && **at <= '9'; (*at)++)
        value = value * 10 + (**at - '0');
    return value;
}

static void skip_words(char **at, unsigned n)
{
    while (n-- > 0) {
        while (**at == ' ')
            (*at)++;
        while (**at != ' ')
            (*at)++;
    }
}

/* Appends what has been logged since the last call. */
static void note_windows(pgoff_t touched)
{
    char line[READAHEAD_LOG_LINE + 1];

    for (bool first = true; readahead_log_read(stage.log_pos, line, READAHEAD_LOG_LINE) > 0;
         first = false) {
        char *at = line;

        line[READAHEAD_LOG_LINE] = '\0';
        stage.log_pos += READAHEAD_LOG_LINE;
        if (!KEXPECT(strstr(line, ":4242 ") != NULL))
            continue;
        skip_words(&at, 4);
        u64 start = number_at(&at), n = number_at(&at);
        if (first)
            format_append(stage.text, TEXT_BYTES, &stage.used, "%s@%lu:", stage.used ? " " : "",
                          touched);
        format_append(stage.text, TEXT_BYTES, &stage.used, "(%lu,%lu)%s", start, n,
                      at[1] == '-' ? "*" : "");
    }
}

static void forget_windows(void)
{
    stage.log_pos = readahead_log_end();
    stage.used = 0;
    stage.text[0] = '\0';
}

/* => whether the sequence since the last call is the expected one */
static bool expect_windows(const char *expected)
{
    bool ok = KEXPECT_STREQ(stage.text, expected);

    forget_windows();
    return ok;
}

/* window_kb: the device's knob. The test's thread works in the file's address space. => false:
 * skipped or failed */
static bool begin(u32 window_kb)
{
    if (!rig_init(&stage.rig, PAGES, PROT_READ, MAP_SHARED)) {
        ktest_skip("no 2 MiB of memory in one piece");
        return false;
    }
    knob_set("readahead", "ondemand");
    stage.read_ahead_kb = window_kb;
    stage.rig.file->cache.read_ahead_kb = &stage.read_ahead_kb;
    readahead_init(&stage.rig.file->mapped.readahead, &stage.rig.file->cache);
    test_mm_attach(stage.rig.mm);
    forget_windows();
    return true;
}

static void end(void)
{
    test_mm_attach(NULL);
    rig_end(&stage.rig);
}

static struct readahead *state(void)
{
    return &stage.rig.file->mapped.readahead;
}

static void touch(pgoff_t page)
{
    u64 word = 0;

    KEXPECT_EQ(copy_from_user(&word, rig_addr(page), sizeof(word)), 0);
    KEXPECT_EQ(word, gated_file_word(page, 0));
    note_windows(page);
}

static void touch_range(pgoff_t first, pgoff_t last)
{
    for (pgoff_t i = first; i <= last; i++)
        touch(i);
}

static void read_at(pgoff_t page, u64 n_pages)
{
    KASSERT(n_pages <= BATCH);
    KEXPECT_EQ(
        file_read_kernel(&stage.rig.file->mapped, page * PAGE_SIZE, stage.buf, n_pages * PAGE_SIZE),
        n_pages * PAGE_SIZE);
    KEXPECT_EQ(*(u64 *)stage.buf, stage.rig.file->is_hole[page] ? 0 : gated_file_word(page, 0));
    note_windows(page);
}

static void read_range(pgoff_t first, pgoff_t last)
{
    for (pgoff_t i = first; i <= last; i++)
        read_at(i, 1);
}

/* Everything out of the page tables and out of the cache. */
static void forget_pages(void)
{
    KEXPECT_EQ(mm_madvise(stage.rig.mm, RIG_BASE, PAGES * PAGE_SIZE, MADV_DONTNEED), 0);
    page_cache_drop_range(&stage.rig.file->cache, 0, PAGES - 1);
    KEXPECT_EQ(stage.rig.file->cache.n_pages, 0);
}

static void cache_pages(pgoff_t first, pgoff_t last)
{
    struct page *page;

    for (pgoff_t i = first; i <= last; i++) {
        KASSERT_EQ(page_cache_get_page(&stage.rig.file->cache, i, false, &page), 0);
        page_put(page);
    }
}

/* ---- read() ---- */

KTEST(readahead, read_from_0)
{
    if (!begin(128))
        return;
    read_range(0, 100);
    expect_windows("@0:(0,4) @1:(4,8) @4:(12,16) @12:(28,32) @28:(60,32) @60:(92,32) @92:(124,32)");
    end();
}

KTEST(readahead, read_from_the_middle)
{
    if (!begin(128))
        return;
    read_range(200, 270);
    expect_windows("@200:(200,1)* @201:(201,4) @202:(205,8) @205:(213,16) @213:(229,32) "
                   "@229:(261,32) @261:(293,32)");
    end();
}

KTEST(readahead, read_backward_gets_nothing_ahead)
{
    if (!begin(128))
        return;
    for (pgoff_t i = 203; i >= 200; i--)
        read_at(i, 1);
    expect_windows("@203:(203,1)* @202:(202,1)* @201:(201,1)* @200:(200,1)*");
    end();
}

KTEST(readahead, two_read_streams)
{
    if (!begin(128))
        return;
    for (pgoff_t i = 0; i < 50; i++) {
        read_at(100 + i, 1);
        forget_windows(); /* the other stream's are as this one's */
        read_at(300 + i, 1);
        if (i < 2)
            expect_windows(i ? "@301:(301,1)*" : "@300:(300,1)*");
        else if (i == 2)
            expect_windows("@302:(302,3)");
        else if (i == 4)
            expect_windows("@304:(305,4)");
        else if (i == 5)
            expect_windows("@305:(309,10)");
        else if (i == 9)
            expect_windows("@309:(319,22)");
        else if (i == 19)
            expect_windows("@319:(341,32)");
        else
            expect_windows(i == 41 ? "@341:(373,32)" : "");
    }
    end();
}

KTEST(readahead, read_near_the_end_is_clipped)
{
    if (!begin(128))
        return;
    read_range(498, 511);
    expect_windows("@498:(498,1)* @499:(499,4) @500:(503,8) @503:(511,1)");
    end();
}

KTEST(readahead, holes_are_cached_and_never_read)
{
    if (!begin(128))
        return;
    gated_file_truncate(stage.rig.file, 100 * PAGE_SIZE);
    gated_file_punch(stage.rig.file, 10, 39);
    gated_file_punch(stage.rig.file, 50, 99);
    read_range(0, 99);
    expect_windows("@0:(0,4) @1:(4,6) @12:(40,10)*");
    KEXPECT_EQ(stage.rig.file->cache.n_pages, 100);
    end();
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
        if (!begin(cases[i].window_kb))
            return;
        read_at(0, cases[i].n);
        if (!expect_windows(cases[i].expected))
            ktest_note("%lu pages, read_ahead_kb %u", cases[i].n, cases[i].window_kb);
        end();
    }
}

KTEST(readahead, later_windows_by_the_one_before)
{
    if (!begin(512))
        return;
    read_range(0, 250);
    expect_windows(
        "@0:(0,4) @1:(4,16) @4:(20,32) @20:(52,64) @52:(116,128) @116:(244,128) @244:(372,128)");
    end();
    if (!begin(32))
        return;
    read_range(0, 30);
    expect_windows("@0:(0,2) @1:(2,4) @2:(6,8) @6:(14,8) @14:(22,8) @22:(30,8) @30:(38,8)");
    end();
}

KTEST(readahead, oversized_read_asks_for_more_than_was_wanted)
{
    char *large = stage.buf;

    if (!begin(32))
        return;
    KEXPECT_EQ(file_read_kernel(&stage.rig.file->mapped, 0, large, 20 * PAGE_SIZE), 20 * PAGE_SIZE);
    note_windows(0);
    /* n = 20 > 8: the window is as large as the request, its mark in the middle; met by the same
     * call. */
    expect_windows("@0:(0,20)(20,20)");
    KEXPECT_EQ(file_read_kernel(&stage.rig.file->mapped, 200 * PAGE_SIZE, large, 20 * PAGE_SIZE),
               20 * PAGE_SIZE);
    note_windows(200);
    expect_windows("@200:(200,20)*"); /* not oversized any more, and not sequential */
    stage.rig.file->cache.max_request_pages = 16;
    KEXPECT_EQ(file_read_kernel(&stage.rig.file->mapped, 300 * PAGE_SIZE, large, 20 * PAGE_SIZE),
               20 * PAGE_SIZE);
    note_windows(300);
    expect_windows("@300:(300,16)(316,16)(332,16)"); /* rule 4: more than the largest request */
    end();
}

KTEST(readahead, request_of_the_whole_window_puts_its_mark_in_the_middle)
{
    if (!begin(64))
        return;
    read_at(0, 16);
    expect_windows("@0:(0,16)(16,16)"); /* the mark on page 8 is met by the same call */
    end();
}

KTEST(readahead, position_of_the_last_read_decides_what_is_sequential)
{
    struct mapped_file *file;
    char byte;

    if (!begin(128))
        return;
    file = &stage.rig.file->mapped;
    read_at(1, 1); /* the first read of all: nothing before it, page 0 is not cached */
    expect_windows("@1:(1,1)*");
    KEXPECT_EQ(file_read_kernel(file, 100 * PAGE_SIZE + 7, &byte, 1), 1);
    note_windows(100);
    expect_windows("@100:(100,1)*");
    KEXPECT_EQ(state()->prev_bytes, 100 * PAGE_SIZE + 8);
    forget_pages();
    KEXPECT_EQ(file_read_kernel(file, 100 * PAGE_SIZE + 8, &byte, 1), 1);
    note_windows(100);
    expect_windows("@100:(100,4)"); /* the same page again, and missed: sequential */
    read_at(200, 1);
    read_at(202, 1); /* prev is at page 201: one further is sequential */
    expect_windows("@200:(200,1)* @202:(202,4)");
    read_at(300, 1);
    read_at(303, 1); /* two further is not */
    expect_windows("@300:(300,1)* @303:(303,1)*");
    end();
}

KTEST(readahead, cached_history_back_to_page_0_counts_double)
{
    if (!begin(128))
        return;
    cache_pages(0, 3);
    read_at(4, 1);
    expect_windows("@4:(4,9)");
    cache_pages(100, 103);
    read_at(104, 1);
    expect_windows("@104:(104,5)");
    cache_pages(200, 203);
    read_at(204, 5); /* more wanted than history: random */
    expect_windows("@204:(204,5)*");
    end();
}

KTEST(readahead, mark_elsewhere_looks_for_the_next_absent_page)
{
    struct page *page;

    if (!begin(128))
        return;
    cache_pages(100, 103);
    page = page_cache_find(&stage.rig.file->cache, 100);
    page_set(page, PAGE_READAHEAD);
    read_at(100, 1);
    expect_windows("@100:(104,10)"); /* NEXT(104 - 100 + 1) */
    KEXPECT(!page_has(page, PAGE_READAHEAD));
    page_put(page);
    end();
}

KTEST(readahead, mark_with_nothing_absent_behind_it_starts_nothing)
{
    struct page *page;

    if (!begin(128))
        return;
    cache_pages(100, 100 + MAX_PAGES);
    page = page_cache_find(&stage.rig.file->cache, 100);
    page_set(page, PAGE_READAHEAD);
    read_at(100, 1);
    expect_windows("");
    page_put(page);
    end();
}

KTEST(readahead, window_of_0_reads_what_is_missing)
{
    if (!begin(0))
        return;
    read_range(0, 2);
    touch(200);
    touch(201);
    expect_windows("@0:(0,1)* @1:(1,1)* @2:(2,1)* @200:(200,1)* @201:(201,1)*");
    end();
}

/* ---- Faults ---- */

KTEST(readahead, mmap_from_0)
{
    if (!begin(128))
        return;
    touch_range(0, 100);
    expect_windows("@0:(0,32) @24:(32,32) @32:(64,32) @64:(96,32) @96:(128,32)");
    end();
}

KTEST(readahead, mmap_from_the_middle)
{
    if (!begin(128))
        return;
    touch_range(200, 290);
    expect_windows("@200:(184,32) @208:(216,32) @216:(248,32) @248:(280,32) @280:(312,32)");
    end();
}

KTEST(readahead, mmap_with_neighbours_mapped_gives_the_same_windows)
{
    if (!begin(128))
        return;
    knob_set("map_around_bytes", "65536");
    touch_range(0, 100); /* pages with the mark stay unmapped */
    expect_windows("@0:(0,32) @24:(32,32) @32:(64,32) @64:(96,32) @96:(128,32)");
    end();
}

KTEST(readahead, mmap_backward)
{
    if (!begin(128))
        return;
    for (pgoff_t i = 400; i > 350; i--)
        touch(i);
    expect_windows("@400:(384,32) @383:(367,17)* @366:(350,17)*");
    end();
}

KTEST(readahead, two_mmap_streams_are_each_as_if_alone)
{
    if (!begin(128))
        return;
    for (pgoff_t i = 0; i < 70; i++) {
        touch(i);
        touch(300 + i);
    }
    expect_windows("@0:(0,32) @300:(284,32) @308:(316,32) @316:(348,32) @24:(32,32) @32:(64,32) "
                   "@348:(380,32) @64:(96,32)");
    end();
}

KTEST(readahead, mmap_at_the_edges_is_clipped)
{
    if (!begin(128))
        return;
    touch(5);
    touch(510);
    expect_windows("@5:(0,32) @510:(494,18)*"); /* the mark would lie behind the end */
    end();
}

KTEST(readahead, mmap_over_holes)
{
    if (!begin(128))
        return;
    gated_file_truncate(stage.rig.file, 100 * PAGE_SIZE);
    gated_file_punch(stage.rig.file, 10, 39);
    gated_file_punch(stage.rig.file, 50, 99);
    for (pgoff_t i = 0; i < 100; i++) {
        KEXPECT(user_peek(rig_addr(i)) >= 0);
        note_windows(i);
    }
    expect_windows("@0:(0,10)* @24:(40,10)*");
    end();
}

KTEST(readahead, advice_sequential_from_0)
{
    if (!begin(128))
        return;
    KEXPECT_EQ(mm_madvise(stage.rig.mm, RIG_BASE, PAGES * PAGE_SIZE, MADV_SEQUENTIAL), 0);
    touch_range(0, 70);
    expect_windows("@0:(0,32) @16:(32,32) @32:(64,32) @64:(96,32)");
    end();
}

KTEST(readahead, advice_random_reads_the_page_alone)
{
    if (!begin(128))
        return;
    KEXPECT_EQ(mm_madvise(stage.rig.mm, RIG_BASE, PAGES * PAGE_SIZE, MADV_RANDOM), 0);
    touch_range(0, 2);
    touch(100);
    expect_windows("@0:(0,1)* @1:(1,1)* @2:(2,1)* @100:(100,1)*");
    KEXPECT_EQ(state()->miss, 0); /* it is no score of reading around */
    end();
}

KTEST(readahead, reading_around_ends_after_100_misses)
{
    if (!begin(128))
        return;
    for (unsigned i = 1; i <= 101; i++) {
        touch(200);
        expect_windows(i <= 100 ? "@200:(184,32)" : "@200:(200,1)*");
        KEXPECT_EQ(state()->miss, i);
        forget_pages();
    }
    state()->miss = 1000;
    touch(200);
    KEXPECT_EQ(state()->miss, 1000); /* and no more */
    end();
}

KTEST(readahead, hits_make_up_for_misses)
{
    if (!begin(128))
        return;
    touch(200);
    KEXPECT_EQ(state()->miss, 1);
    touch(200); /* mapped: no fault, no hit */
    KEXPECT_EQ(state()->miss, 1);
    touch(201);
    KEXPECT_EQ(state()->miss, 0);
    touch(202);
    KEXPECT_EQ(state()->miss, 0);
    forget_windows();
    end();
}

KTEST(readahead, fault_that_misses_waits_and_restarts_is_one_miss_and_no_hit)
{
    if (!begin(128))
        return;
    KEXPECT_EQ(rig_touch_slow(&stage.rig, 200, NULL).retries, 1);
    KEXPECT_EQ(state()->miss, 1);
    end();
}

KTEST(readahead, locked_page_is_no_hit_but_its_mark_counts)
{
    struct actor first = {0}, second = {0};

    if (!begin(128))
        return;
    rig_touch_held(&stage.rig, &first, 0); /* (0,32) is held, its mark on 24 */
    forget_windows();
    second.addr = rig_addr(24);
    actor_start(&second, &stage.rig, act_touch);
    KEXPECT(!actor_settle(&second));
    note_windows(24);
    expect_windows("@24:(32,32)");
    KEXPECT_EQ(state()->miss, 1);
    gate_open(stage.rig.file->disk);
    actor_join(&first);
    actor_join(&second);
    KEXPECT_EQ(second.value, gated_file_word(24, 0));
    KEXPECT_EQ(state()->miss, 1);
    end();
}

KTEST(readahead, cached_pages_inside_a_window_are_not_asked_for_again)
{
    if (!begin(128))
        return;
    cache_pages(190, 191);
    cache_pages(208, 208); /* where the mark would go: none then */
    touch(200);
    expect_windows("@200:(184,6)*(192,16)*(209,7)*");
    end();
}

KTEST(readahead, around_reads_at_every_miss_without_a_mark)
{
    if (!begin(128))
        return;
    knob_set("readahead", "around");
    touch_range(0, 70);
    expect_windows("@0:(0,32)* @32:(32,16)* @48:(48,16)* @64:(64,16)*");
    end();
}

KTEST(readahead, none_reads_what_is_missing)
{
    if (!begin(128))
        return;
    knob_set("readahead", "none");
    touch_range(200, 202);
    read_range(300, 302);
    expect_windows(
        "@200:(200,1)* @201:(201,1)* @202:(202,1)* @300:(300,1)* @301:(301,1)* @302:(302,1)*");
    end();
}

KTEST(readahead, mark_left_by_another_policy_starts_nothing)
{
    if (!begin(128))
        return;
    touch(0);
    expect_windows("@0:(0,32)");
    knob_set("readahead", "none");
    touch(24);
    expect_windows("");
    end();
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
    if (!begin(128))
        return;
    KEXPECT_EQ(advise(0, 0, FADV_SEQUENTIAL), 0);
    read_range(0, 60);
    expect_windows("@0:(0,4) @1:(4,8) @4:(12,16) @12:(28,32) @28:(60,64) @60:(124,64)");
    KEXPECT_EQ(advise(0, 0, FADV_NORMAL), 0);
    KEXPECT_EQ(state()->max_pages, MAX_PAGES);
    touch(300);
    expect_windows("@300:(284,32)");
    end();
}

KTEST(readahead, fadvise_random_reads_what_is_wanted_and_leaves_faults_alone)
{
    if (!begin(128))
        return;
    KEXPECT_EQ(advise(0, 0, FADV_RANDOM), 0);
    read_at(0, 4);
    read_at(4, 2);
    touch(200);
    expect_windows("@0:(0,4)* @4:(4,2)* @200:(184,32)");
    end();
}

KTEST(readahead, fadvise_willneed_reads_absent_pages_without_a_mark)
{
    if (!begin(128))
        return;
    cache_pages(10, 10);
    KEXPECT_EQ(advise(8, 6, FADV_WILLNEED), 0);
    note_windows(8);
    expect_windows("@8:(8,2)*(11,3)*");
    KEXPECT_EQ(file_advise(&stage.rig.file->mapped, 100 * PAGE_SIZE + 5, PAGE_SIZE, FADV_WILLNEED),
               0);
    note_windows(100);
    expect_windows("@100:(100,2)*");            /* bytes of two pages */
    KEXPECT_EQ(advise(0, 0, FADV_WILLNEED), 0); /* stops after one large request */
    KEXPECT_EQ(page_cache_next_absent(&stage.rig.file->cache, 0, PAGES - 1), 320);
    KEXPECT_EQ(state()->prev_bytes, READAHEAD_NONE_YET);
    end();
}

KTEST(readahead, fadvise_dontneed_drops_whole_pages_only)
{
    struct gated_file *file;

    if (!begin(128))
        return;
    file = stage.rig.file;
    gated_file_truncate(file, 12 * PAGE_SIZE + 100);
    cache_pages(0, 12);
    KEXPECT_EQ(file_advise(&file->mapped, 2 * PAGE_SIZE + 1, 3 * PAGE_SIZE, FADV_DONTNEED), 0);
    KEXPECT_EQ(file->cache.n_pages, 11); /* pages 3 and 4 of 2…5 */
    KEXPECT_EQ(page_cache_next_absent(&file->cache, 0, 12), 3);
    KEXPECT_EQ(page_cache_next_absent(&file->cache, 5, 12), 13);
    KEXPECT_EQ(file_advise(&file->mapped, 11 * PAGE_SIZE, 50, FADV_DONTNEED), 0);
    KEXPECT_EQ(file->cache.n_pages, 11); /* less than a page */
    touch(6);
    KEXPECT_EQ(advise(0, 0, FADV_DONTNEED), 0); /* to the end, with the last, partial page */
    KEXPECT_EQ(file->cache.n_pages, 1);         /* the mapped one */
    forget_windows();
    end();
}

KTEST(readahead, fadvise_knows_six_kinds)
{
    if (!begin(128))
        return;
    KEXPECT_EQ(advise(0, 4, FADV_NOREUSE), 0);
    KEXPECT_EQ(advise(0, 4, FADV_NOREUSE + 1), -EINVAL);
    KEXPECT_EQ(advise(0, 4, -1), -EINVAL);
    KEXPECT_EQ(stage.rig.file->cache.n_pages, 0);
    KEXPECT_EQ(file_advise(&stage.rig.file->mapped, ~0ul - 5, 100, FADV_WILLNEED),
               0); /* past any end */
    KEXPECT_EQ(stage.rig.file->cache.n_pages, 0);
    end();
}

KTEST(readahead, log_has_lines_of_one_width_with_kind_access_and_mark)
{
    char line[READAHEAD_LOG_LINE + 1], expected[READAHEAD_LOG_LINE];
    u64 begin_pos = readahead_log_end();

    if (!begin(128))
        return;
    stage.rig.file->cache.dev = 77;
    touch(0);
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
    end();
}
