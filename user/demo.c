/*
 * demo: the main job of this kernel, shown in one table.
 *
 * Touches every page of a large file in order, through mmap, under each readahead policy, and
 * checks what must hold: every page seen, the same bytes each time, one major fault for each wait,
 * at most one for each window, and with ondemand a scan that costs no more requests than its
 * windows. Runs on Linux too, as one row, without what Linux does not count.
 *
 * Use: demo [--quick] [FILE]. Exit status: 0; 1 where a promise is broken or there is no file.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/lib/knobs.h"
#include "user/lib/play.h"
#include "user/lib/report.h"
#include "user/lib/text.h"

#define KIB 1024
/* A window is split where one of the file's index blocks lies between: one for 1024 pages. */
#define PAGES_PER_INDEX_BLOCK 1024
/* Index blocks of index blocks, inodes, directories. */
#define META_SPARE 12
/* Of 25 windows one may be split in two. */
#define WINDOWS_PER_SPLIT 25
#define SPLIT_SPARE       2

static const char *const default_files[] = {"/data/random.bin", "/data/medium.bin",
                                            "/data/small.txt"};
static const char *const policies[] = {"ondemand", "around", "none"};

#define POLICY_COUNT (sizeof(policies) / sizeof(policies[0]))
/* --quick leaves out `none`, which asks the disk once for each page. */
#define QUICK_POLICY_COUNT (POLICY_COUNT - 1)

struct row {
    const char *policy;
    struct play_result result;
};

struct demo {
    const char *path; /* as asked for; NULL: a default one, until choose_file() */
    size_t policy_count;
    uint64_t file_pages;
    uint64_t window_pages; /* 0: not known */
    struct row rows[POLICY_COUNT];
    size_t row_count;
    unsigned int broken;
};

/* The file that was asked for, or the first default one that is there. */
static bool choose_file(struct demo *demo)
{
    const char *wanted = demo->path;
    struct stat status;

    for (size_t i = 0; !wanted && i < sizeof(default_files) / sizeof(default_files[0]); i++) {
        if (stat(default_files[i], &status) == 0) {
            wanted = default_files[i];
            if (i > 0)
                printf("(%s is not in this image: the demonstration takes %s)\n", default_files[0],
                       wanted);
        }
    }
    if (!wanted) {
        fprintf(stderr, "demo: none of the default files is there; use: demo FILE\n");
        return false;
    }
    if (stat(wanted, &status) < 0) {
        perror(wanted);
        return false;
    }
    if (!S_ISREG(status.st_mode) || status.st_size == 0) {
        fprintf(stderr, "demo: %s is not a file with bytes in it\n", wanted);
        return false;
    }
    demo->path = wanted;
    demo->file_pages = ((uint64_t)status.st_size + PLAY_PAGE_BYTES - 1) / PLAY_PAGE_BYTES;
    return true;
}

static void read_window(struct demo *demo)
{
    char value[KNOB_VALUE_BYTES];
    struct stat status;
    uint64_t kb;

    if (stat(demo->path, &status) < 0 ||
        knob_read_readahead_kb(status.st_dev, value, sizeof(value)) < 0 ||
        !text_parse_number(value, UINT32_MAX, &kb))
        return;
    demo->window_pages = kb * KIB / PLAY_PAGE_BYTES;
    printf("%s: %" PRIu64 " pages, touched in order by mmap; readahead window %" PRIu64 " KiB\n\n",
           demo->path, demo->file_pages, kb);
}

static void print_head(void)
{
    printf("%-9s %8s %8s %8s %8s %8s %8s %8s %12s  %-16s\n", "policy", "pages", "major", "minor",
           "waits", "windows", "requests", "metadata", "real", "checksum");
}

static void print_row(const struct row *row)
{
    static const enum stat_id columns[] = {STAT_WAITS, STAT_WINDOWS, STAT_DATA_REQUESTS,
                                           STAT_META_REQUESTS};
    const struct stats *stats = &row->result.stats;
    char time[REPORT_TIME_BYTES];

    printf("%-9s %8" PRIu64 " %8" PRIu64 " %8" PRIu64, row->policy, row->result.touched_pages,
           stats_major_faults(stats), stats_minor_faults(stats));
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        char text[24];

        report_format_stat(text, sizeof(text), stats, columns[i]);
        printf(" %8s", text);
    }
    report_format_time(time, stats_real_us(stats));
    printf(" %12s  %016" PRIx64 "\n", time, row->result.checksum);
    fflush(stdout);
}

static void print_legend(void)
{
    printf(
        "\n"
        "pages     pages seen, every byte of them in the checksum\n"
        "major     faults that slept until the page's data had come from the disk\n"
        "minor     faults that did not sleep: the page was there already\n"
        "waits     how often a fault slept; each is one major fault, however often it restarts\n"
        "windows   how often readahead decided to ask for pages, one or many at once\n"
        "requests  what the disk was asked for the file's bytes; the file's layout splits windows\n"
        "metadata  what it was asked for the file's index blocks; later runs find them cached\n"
        "real      the time of the run\n\n");
}

/* Runs one row. `policy` may be NULL: whatever this kernel does. False where it failed. */
static bool run_row(struct demo *demo, const struct steps *steps, const char *policy)
{
    const struct play_options options = {.path = demo->path};
    struct row *row = &demo->rows[demo->row_count];

    row->policy = policy ? policy : "(own)";
    if (play_run(&options, steps, &row->result) != 0) {
        fprintf(stderr, "demo: %s\n", row->result.error);
        return false;
    }
    demo->row_count++;
    print_row(row);
    return true;
}

/* All rows, with the policy put back at the end. */
static bool run_rows(struct demo *demo)
{
    static struct knobs knobs;
    struct step_run run = {0, 1, demo->file_pages, 1, STEP_TOUCH};
    struct steps steps;
    bool good = true;

    steps_init(&steps);
    if (steps_add_run(&steps, &run) != 0) {
        fprintf(stderr, "demo: not enough memory\n");
        return false;
    }
    print_head();
    if (access(KNOB_POLICY, F_OK) < 0)
        good = run_row(demo, &steps, NULL);
    else
        for (size_t i = 0; good && i < demo->policy_count; i++) {
            int error = knobs_set(&knobs, KNOB_POLICY, policies[i]);

            if (error)
                fprintf(stderr, "demo: cannot set the policy %s: %s\n", policies[i],
                        strerror(-error));
            good = !error && run_row(demo, &steps, policies[i]);
        }
    knobs_restore(&knobs);
    steps_free(&steps);
    return good;
}

/* Says whether a promise was kept; `row` may be NULL for one about all rows. */
static __attribute__((format(printf, 4, 5))) void check(struct demo *demo, const struct row *row,
                                                        bool kept, const char *format, ...)
{
    va_list arguments;

    printf("%-7s %-9s ", kept ? "kept" : "BROKEN", row ? row->policy : "all");
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    if (!kept)
        demo->broken++;
}

static void check_rows(struct demo *demo)
{
    bool same = true, whole = true;

    for (size_t i = 0; i < demo->row_count; i++) {
        same = same && demo->rows[i].result.checksum == demo->rows[0].result.checksum;
        whole = whole && demo->rows[i].result.touched_pages == demo->file_pages;
    }
    check(demo, NULL, whole, "exactly %" PRIu64 " pages seen", demo->file_pages);
    check(demo, NULL, same, "the same checksum, %016" PRIx64, demo->rows[0].result.checksum);
}

/*
 * A window that the file's layout splits comes back in two requests, and a reader who is faster than the disk may wait for
 * each. The policies that never read ahead wait for nearly every window, so there the requests are the limit.
 */
static void check_counts(struct demo *demo, const struct row *row)
{
    uint64_t major = stats_major_faults(&row->result.stats), waits, windows, requests;

    if (!stats_get(&row->result.stats, STAT_WAITS, &waits) ||
        !stats_get(&row->result.stats, STAT_WINDOWS, &windows) ||
        !stats_get(&row->result.stats, STAT_DATA_REQUESTS, &requests))
        return;
    check(demo, row, major == waits, "major faults are the waits: %" PRIu64 " and %" PRIu64, major,
          waits);
    if (major <= windows)
        check(demo, row, true, "at most one major fault for each window: %" PRIu64 " for %" PRIu64,
              major, windows);
    else
        check(demo, row, strcmp(row->policy, "ondemand") != 0 && major <= requests,
              "at most one major fault for each request: %" PRIu64 " for %" PRIu64, major,
              requests);
}

/* A scan costs its bytes: these limits are for ondemand. */
static void check_scan(struct demo *demo, const struct row *row)
{
    const struct stats *stats = &row->result.stats;
    uint64_t windows, requests, metadata, expected, limit;

    if (demo->window_pages == 0 || !stats_get(stats, STAT_WINDOWS, &windows) ||
        !stats_get(stats, STAT_DATA_REQUESTS, &requests) ||
        !stats_get(stats, STAT_META_REQUESTS, &metadata))
        return;
    expected = (demo->file_pages + demo->window_pages - 1) / demo->window_pages;
    check(demo, row, windows == expected,
          "as many windows as the file has: %" PRIu64 " of %" PRIu64, windows, expected);
    limit = expected + expected / WINDOWS_PER_SPLIT + SPLIT_SPARE;
    check(demo, row, requests <= limit, "data requests: %" PRIu64 ", at most %" PRIu64, requests,
          limit);
    limit = (demo->file_pages + PAGES_PER_INDEX_BLOCK - 1) / PAGES_PER_INDEX_BLOCK + META_SPARE;
    check(demo, row, metadata <= limit, "metadata reads: %" PRIu64 ", at most %" PRIu64, metadata,
          limit);
}

static __attribute__((noreturn)) void print_usage(int status)
{
    fprintf(status == EXIT_SUCCESS ? stdout : stderr,
            "Usage: demo [--quick] [FILE]\n"
            "Touches FILE (default %s) in order by mmap under each\n"
            "readahead policy, and shows what it cost.\n"
            "  --quick   without the policy `none`, which asks the disk for each page by itself\n",
            default_files[0]);
    exit(status);
}

static void take_arguments(struct demo *demo, int argc, char **argv)
{
    demo->policy_count = POLICY_COUNT;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            demo->policy_count = QUICK_POLICY_COUNT;
        else if (strcmp(argv[i], "--help") == 0)
            print_usage(EXIT_SUCCESS);
        else if (argv[i][0] == '-' || demo->path)
            print_usage(EXIT_FAILURE);
        else
            demo->path = argv[i];
    }
}

int main(int argc, char **argv)
{
    static struct demo demo;

    take_arguments(&demo, argc, argv);
    if (!choose_file(&demo))
        return EXIT_FAILURE;
    read_window(&demo);
    if (!run_rows(&demo))
        return EXIT_FAILURE;
    print_legend();
    check_rows(&demo);
    for (size_t i = 0; i < demo.row_count; i++)
        check_counts(&demo, &demo.rows[i]);
    if (strcmp(demo.rows[0].policy, policies[0]) == 0)
        check_scan(&demo, &demo.rows[0]);
    if (access(KNOB_POLICY, F_OK) < 0)
        printf("(n/a: this kernel does not count it; one row, as it has one policy)\n");
    return demo.broken ? EXIT_FAILURE : EXIT_SUCCESS;
}
