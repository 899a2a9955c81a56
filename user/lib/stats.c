/*
 * Stats: see stats.h.
 */
#include "user/lib/stats.h"

#include <string.h>

#include "user/lib/text.h"

#define US_PER_SECOND 1000000
#define NS_PER_US     1000

enum stat_source { SOURCE_FAULTS, SOURCE_VMSTAT, SOURCE_FILE, SOURCE_USE, SOURCE_COUNT };

static const char *const source_paths[SOURCE_COUNT] = {
    [SOURCE_FAULTS] = "/proc/self/faults",
    [SOURCE_VMSTAT] = "/proc/vmstat",
    [SOURCE_FILE] = NULL, /* stats->file_path */
    [SOURCE_USE] = "/proc/vmstat",
};
#define FDINFO_FOLDER "/proc/self/fdinfo/"

static const struct {
    enum stat_source source;
    const char *name;
} stat_places[STAT_COUNT] = {
    [STAT_WAITS] = {SOURCE_FAULTS, "waits"},
    [STAT_RETRIES] = {SOURCE_FAULTS, "retries"},
    [STAT_RETRY_MISSES] = {SOURCE_FAULTS, "retry_misses"},
    [STAT_REASON_ZERO] = {SOURCE_FAULTS, "reason_zero"},
    [STAT_REASON_COW] = {SOURCE_FAULTS, "reason_cow"},
    [STAT_REASON_CACHE] = {SOURCE_FAULTS, "reason_cache"},
    [STAT_REASON_AROUND] = {SOURCE_FAULTS, "reason_around"},
    [STAT_REASON_IO] = {SOURCE_FAULTS, "reason_io"},
    [STAT_REASON_OTHER_IO] = {SOURCE_FAULTS, "reason_other_io"},
    [STAT_REASON_SWAP] = {SOURCE_FAULTS, "reason_swap"},
    [STAT_REASON_SPURIOUS] = {SOURCE_FAULTS, "reason_spurious"},
    [STAT_REASON_FAILED] = {SOURCE_FAULTS, "reason_failed"},
    [STAT_WINDOWS] = {SOURCE_FILE, "ra_windows:"},
    [STAT_WINDOW_PAGES] = {SOURCE_FILE, "ra_pages:"},
    [STAT_DATA_REQUESTS] = {SOURCE_VMSTAT, "disk_data_requests"},
    [STAT_DATA_PAGES] = {SOURCE_VMSTAT, "disk_data_pages"},
    [STAT_META_REQUESTS] = {SOURCE_VMSTAT, "disk_meta_requests"},
    [STAT_READS] = {SOURCE_FAULTS, "reads"},
    [STAT_READ_PAGES] = {SOURCE_FAULTS, "read_pages"},
    [STAT_LOCK_ACROSS_IO] = {SOURCE_FAULTS, "lock_across_io"},
    [STAT_WAIT_NS] = {SOURCE_FAULTS, "wait_ns"},
    [STAT_READ_WAITS] = {SOURCE_FAULTS, "read_waits"},
    [STAT_READ_WAIT_NS] = {SOURCE_FAULTS, "read_wait_ns"},
    [STAT_AHEAD] = {SOURCE_USE, "ra_ahead"},
    [STAT_AHEAD_USED] = {SOURCE_USE, "ra_ahead_used"},
};

static const char *const times_prefixes[STAT_TIMES_COUNT] = {
    [STAT_LOCK_HOLD] = "lock_hold_",
    [STAT_LATENCY] = "latency_",
};

/* A line `PREFIX_N value` of a histogram. */
static void take_times(struct stats_sample *sample, const char *line)
{
    for (int id = 0; id < STAT_TIMES_COUNT; id++) {
        const char *at = line + strlen(times_prefixes[id]);
        uint64_t bucket;

        if (strncmp(line, times_prefixes[id], strlen(times_prefixes[id])) == 0 &&
            text_take_number(&at, &bucket) && bucket < STAT_BUCKETS)
            text_take_number(&at, &sample->times[id][bucket]);
    }
}

/* Takes one line `name value`, if the table has its name. */
static void take_line(struct stats_sample *sample, enum stat_source source, const char *line)
{
    size_t name_length = strcspn(line, " \t\n");
    const char *at = line + name_length;

    for (int id = 0; id < STAT_COUNT; id++) {
        const char *name = stat_places[id].name;

        if (stat_places[id].source != source || strlen(name) != name_length ||
            memcmp(name, line, name_length) != 0)
            continue;
        sample->known[id] = text_take_number(&at, &sample->value[id]);
        return;
    }
    if (source == SOURCE_FAULTS)
        take_times(sample, line);
}

static void read_source(const struct stats *stats, struct stats_sample *sample,
                        enum stat_source source)
{
    const char *path = source_paths[source] ? source_paths[source] : stats->file_path;
    static char text[32768];
    const char *line = text;

    if (text_read_file(path, text, sizeof(text)) < 0)
        return;
    while (*line) {
        take_line(sample, source, line);
        line += strcspn(line, "\n");
        if (*line)
            line++;
    }
}

void stats_begin(struct stats *stats, int fd)
{
    *stats = (struct stats){.file_path = FDINFO_FOLDER};
    text_put_number(stats->file_path + sizeof(FDINFO_FOLDER) - 1, (uint64_t)fd);
    /* The first call may touch pages that the kernel shares with programs: before the sample. */
    clock_gettime(CLOCK_MONOTONIC, &stats->before.clock);
    for (int source = 0; source < SOURCE_COUNT; source++)
        read_source(stats, &stats->before, source);
    getrusage(RUSAGE_SELF, &stats->before.usage);
    clock_gettime(CLOCK_MONOTONIC, &stats->before.clock);
}

void stats_end(struct stats *stats)
{
    clock_gettime(CLOCK_MONOTONIC, &stats->after.clock);
    getrusage(RUSAGE_SELF, &stats->after.usage);
    for (int source = 0; source < SOURCE_COUNT; source++)
        read_source(stats, &stats->after, source);
}

void stats_end_use(struct stats *stats)
{
    read_source(stats, &stats->after, SOURCE_USE);
}

bool stats_get(const struct stats *stats, enum stat_id id, uint64_t *value)
{
    if (!stats->before.known[id] || !stats->after.known[id])
        return false;
    *value = stats->after.value[id] - stats->before.value[id];
    return true;
}

bool stats_get_times(const struct stats *stats, enum stat_times_id id, unsigned int bucket,
                     uint64_t *value)
{
    if (!stats->before.known[STAT_WAITS] || !stats->after.known[STAT_WAITS])
        return false;
    *value = stats->after.times[id][bucket] - stats->before.times[id][bucket];
    return true;
}

uint64_t stats_minor_faults(const struct stats *stats)
{
    return (uint64_t)(stats->after.usage.ru_minflt - stats->before.usage.ru_minflt);
}

uint64_t stats_major_faults(const struct stats *stats)
{
    return (uint64_t)(stats->after.usage.ru_majflt - stats->before.usage.ru_majflt);
}

static uint64_t time_between_us(const struct timeval *from, const struct timeval *to)
{
    return (uint64_t)((to->tv_sec - from->tv_sec) * US_PER_SECOND + to->tv_usec - from->tv_usec);
}

uint64_t stats_user_us(const struct stats *stats)
{
    return time_between_us(&stats->before.usage.ru_utime, &stats->after.usage.ru_utime);
}

uint64_t stats_system_us(const struct stats *stats)
{
    return time_between_us(&stats->before.usage.ru_stime, &stats->after.usage.ru_stime);
}

uint64_t stats_real_us(const struct stats *stats)
{
    const struct timespec *from = &stats->before.clock, *to = &stats->after.clock;

    return (uint64_t)((to->tv_sec - from->tv_sec) * US_PER_SECOND +
                      (to->tv_nsec - from->tv_nsec) / NS_PER_US);
}
