/*
 * Stats: what the kernel counts, read before and after a run.
 *
 * Faults, waits and reasons are this process's own (/proc/self/faults), windows the open file's
 * (/proc/self/fdinfo/N), disk requests the whole system's (/proc/vmstat): nobody else runs beside a
 * measurement, but a program's own pages may have to come back from the disk where memory is short.
 * Minor and major faults and times come from getrusage. Taking a sample allocates nothing. On Linux
 * the files, or the names in them, are missing: those counters are then not available, and never 0
 * by mistake.
 *
 * Whether a page that was read ahead has been used is known only once it is not mapped any more
 * (docs/readahead.md), so those counters have a sample of their own behind it.
 */
#ifndef USER_LIB_STATS_H
#define USER_LIB_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

enum stat_id {
    STAT_WAITS,
    STAT_RETRIES,
    STAT_RETRY_MISSES,
    STAT_REASON_ZERO,
    STAT_REASON_COW,
    STAT_REASON_CACHE,
    STAT_REASON_AROUND,
    STAT_REASON_IO,
    STAT_REASON_OTHER_IO,
    STAT_REASON_SWAP,
    STAT_REASON_SPURIOUS,
    STAT_REASON_FAILED,
    STAT_WINDOWS,
    STAT_WINDOW_PAGES,
    STAT_DATA_REQUESTS,
    STAT_DATA_PAGES,
    STAT_META_REQUESTS,
    STAT_READS,
    STAT_READ_PAGES,
    STAT_LOCK_ACROSS_IO,
    STAT_WAIT_NS,
    STAT_READ_WAITS,
    STAT_READ_WAIT_NS,
    STAT_AHEAD,
    STAT_AHEAD_USED,
    STAT_COUNT,
};

/* Histograms: [N] counts what took 2^N to 2^(N+1) ns, the last one what took longer, too. */
enum stat_times_id { STAT_LOCK_HOLD, STAT_LATENCY, STAT_TIMES_COUNT };
#define STAT_BUCKETS 32

struct stats_sample {
    struct rusage usage;
    struct timespec clock;
    uint64_t value[STAT_COUNT];
    bool known[STAT_COUNT];
    uint64_t times[STAT_TIMES_COUNT][STAT_BUCKETS]; /* as far as STAT_WAITS is known */
};

struct stats {
    char file_path[32]; /* the fdinfo of the file that the run is about */
    struct stats_sample before;
    struct stats_sample after;
};

/* Sample around a run on the open file `fd`: the files outermost, getrusage and the clock next to
 * what is measured. */
void stats_begin(struct stats *stats, int fd);
void stats_end(struct stats *stats);
/* After the end, once the file is not mapped any more: what became of pages read ahead. */
void stats_end_use(struct stats *stats);

/* How far a counter moved. False where this kernel does not have it. */
bool stats_get(const struct stats *stats, enum stat_id id, uint64_t *value);

/* The same for one bucket of a histogram. */
bool stats_get_times(const struct stats *stats, enum stat_times_id id, unsigned int bucket,
                     uint64_t *value);

/* The classic pair, and times in microseconds. */
uint64_t stats_minor_faults(const struct stats *stats);
uint64_t stats_major_faults(const struct stats *stats);
uint64_t stats_user_us(const struct stats *stats);
uint64_t stats_system_us(const struct stats *stats);
uint64_t stats_real_us(const struct stats *stats);

#endif
