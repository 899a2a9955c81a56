/*
 * Report: see report.h.
 */
#include "user/lib/report.h"

#include <inttypes.h>

#include "user/lib/knobs.h"

#define US_PER_MS          1000
#define MS_PER_SECOND      1000
#define SECONDS_PER_MINUTE 60

void report_format_time(char *text, uint64_t microseconds)
{
    uint64_t ms = microseconds / US_PER_MS, seconds = ms / MS_PER_SECOND;

    snprintf(text, REPORT_TIME_BYTES, "%" PRIu64 "m%" PRIu64 ".%03us", seconds / SECONDS_PER_MINUTE,
             seconds % SECONDS_PER_MINUTE, (unsigned int)(ms % MS_PER_SECOND));
}

void report_format_stat(char *text, size_t size, const struct stats *stats, enum stat_id id)
{
    uint64_t value;

    if (stats_get(stats, id, &value))
        snprintf(text, size, "%" PRIu64, value);
    else
        snprintf(text, size, "n/a");
}

static void print_number(FILE *out, const char *name, uint64_t value)
{
    fprintf(out, "%s: %" PRIu64 "\n", name, value);
}

static void print_stat(FILE *out, const char *name, const struct stats *stats, enum stat_id id)
{
    uint64_t value;

    if (stats_get(stats, id, &value))
        print_number(out, name, value);
    else
        fprintf(out, "%s: " REPORT_NOT_AVAILABLE "\n", name);
}

static void print_time(FILE *out, const char *name, uint64_t microseconds)
{
    char text[REPORT_TIME_BYTES];

    report_format_time(text, microseconds);
    fprintf(out, "%s: %s\n", name, text);
}

static void print_knobs(FILE *out, const struct play_result *result)
{
    char value[KNOB_VALUE_BYTES];

    knob_read(KNOB_POLICY, value, sizeof(value));
    fprintf(out, "policy: %s\n", *value ? value : REPORT_NOT_AVAILABLE);
    knob_read_readahead_kb(result->dev, value, sizeof(value));
    fprintf(out, "readahead_kb: %s\n", *value ? value : "n/a");
    knob_read(KNOB_MAP_AROUND, value, sizeof(value));
    fprintf(out, "map_around: %s\n", *value ? value : REPORT_NOT_AVAILABLE);
}

static const struct {
    const char *name;
    enum stat_id id;
} reasons[] = {
    {"zero", STAT_REASON_ZERO},     {"cow", STAT_REASON_COW},
    {"cache", STAT_REASON_CACHE},   {"around", STAT_REASON_AROUND},
    {"io", STAT_REASON_IO},         {"other_io", STAT_REASON_OTHER_IO},
    {"swap", STAT_REASON_SWAP},     {"spurious", STAT_REASON_SPURIOUS},
    {"failed", STAT_REASON_FAILED},
};

static void print_reasons(FILE *out, const struct stats *stats)
{
    uint64_t value;

    fprintf(out, "reasons:");
    if (!stats_get(stats, reasons[0].id, &value)) {
        fprintf(out, " " REPORT_NOT_AVAILABLE "\n");
        return;
    }
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        char text[24];

        report_format_stat(text, sizeof(text), stats, reasons[i].id);
        fprintf(out, " %s=%s", reasons[i].name, text);
    }
    fprintf(out, "\n");
}

/* A histogram: log2 of nanoseconds, and how many, where there are any. */
static void print_times(FILE *out, const char *name, const struct stats *stats,
                        enum stat_times_id id)
{
    uint64_t value;

    fprintf(out, "%s:", name);
    if (!stats_get_times(stats, id, 0, &value)) {
        fprintf(out, " " REPORT_NOT_AVAILABLE "\n");
        return;
    }
    for (unsigned int bucket = 0; bucket < STAT_BUCKETS; bucket++)
        if (stats_get_times(stats, id, bucket, &value) && value > 0)
            fprintf(out, " %u=%" PRIu64, bucket, value);
    fprintf(out, "\n");
}

/* What was read ahead and is not used: dropped, or still cached. */
static void print_unused(FILE *out, const struct stats *stats)
{
    uint64_t ahead, used;

    if (stats_get(stats, STAT_AHEAD, &ahead) && stats_get(stats, STAT_AHEAD_USED, &used))
        print_number(out, "ahead_unused", ahead - used);
    else
        fprintf(out, "ahead_unused: " REPORT_NOT_AVAILABLE "\n");
}

/* From the log of the file's own windows where it was read, else from the system's counters. */
static void print_windows(FILE *out, const struct play_result *result)
{
    if (result->has_io_log) {
        print_number(out, "windows", result->io_windows);
        print_number(out, "window_pages", result->io_window_pages);
        return;
    }
    print_stat(out, "windows", &result->stats, STAT_WINDOWS);
    print_stat(out, "window_pages", &result->stats, STAT_WINDOW_PAGES);
}

void report_print(FILE *out, const struct play_result *result)
{
    const struct stats *stats = &result->stats;

    print_knobs(out, result);
    print_number(out, "touched", result->touched_pages);
    print_number(out, "major", stats_major_faults(stats));
    print_number(out, "minor", stats_minor_faults(stats));
    print_stat(out, "waits", stats, STAT_WAITS);
    print_stat(out, "wait_ns", stats, STAT_WAIT_NS);
    print_stat(out, "read_waits", stats, STAT_READ_WAITS);
    print_stat(out, "read_wait_ns", stats, STAT_READ_WAIT_NS);
    print_reasons(out, stats);
    print_stat(out, "retries", stats, STAT_RETRIES);
    print_stat(out, "retry_misses", stats, STAT_RETRY_MISSES);
    print_stat(out, "lock_across_io", stats, STAT_LOCK_ACROSS_IO);
    print_times(out, "lock_hold", stats, STAT_LOCK_HOLD);
    print_times(out, "latency", stats, STAT_LATENCY);
    print_stat(out, "fault_reads", stats, STAT_READS);
    print_stat(out, "fault_read_pages", stats, STAT_READ_PAGES);
    print_windows(out, result);
    print_stat(out, "ahead", stats, STAT_AHEAD);
    print_unused(out, stats);
    print_stat(out, "data_requests", stats, STAT_DATA_REQUESTS);
    print_stat(out, "data_pages", stats, STAT_DATA_PAGES);
    print_stat(out, "meta_requests", stats, STAT_META_REQUESTS);
    if (result->resident_pages >= 0)
        print_number(out, "resident", (uint64_t)result->resident_pages);
    else
        fprintf(out, "resident: n/a\n");
    fprintf(out, "checksum: %016" PRIx64 "\n", result->checksum);
    print_time(out, "user", stats_user_us(stats));
    print_time(out, "system", stats_system_us(stats));
    print_time(out, "real", stats_real_us(stats));
    print_number(out, "user_us", stats_user_us(stats));
    print_number(out, "system_us", stats_system_us(stats));
    print_number(out, "real_us", stats_real_us(stats));
}
