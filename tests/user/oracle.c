/*
 * oracle: many measured runs in one process, from a script, for tests that compare with
 * tests/data/readahead.txt. (One boot starts one program; so the batch is in here.)
 *
 * Use: oracle SCRIPT. A line of the script is
 * `NAME FILE ADVICE POLICY READAHEAD_KB MAP_AROUND PATTERN`; `-` leaves a knob alone; `#` starts a
 * comment line. Each line gives two:
 *
 *     NAME io: @a:(s,n) ...
 *     NAME touched=N major=N minor=N waits=N windows=N resident=N undropped=N checksum=X
 *
 * and at the end `N scenarios`. Exit status 0, or 1 at the first line that cannot be done.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/knobs.h"
#include "user/lib/pattern.h"
#include "user/lib/play.h"
#include "user/lib/report.h"

#define LINE_BYTES 1024
#define WORDS      7

static struct knobs knobs;

static int set_unless_dash(const char *path, const char *value)
{
    if (strcmp(value, "-") == 0)
        return 0;
    return path ? knobs_set(&knobs, path, value) : knobs_set_readahead_kb(&knobs, value);
}

static void print_numbers(const char *name, const struct play_result *result)
{
    char waits[24];

    report_format_stat(waits, sizeof(waits), &result->stats, STAT_WAITS);
    printf("%s touched=%" PRIu64 " major=%" PRIu64 " minor=%" PRIu64 " waits=%s windows=%" PRIu64
           " resident=%" PRId64 " undropped=%" PRId64 " checksum=%016" PRIx64 "\n",
           name, result->touched_pages, stats_major_faults(&result->stats),
           stats_minor_faults(&result->stats), waits, result->io_windows, result->resident_pages,
           result->undropped_pages, result->checksum);
}

/* NAME FILE ADVICE POLICY READAHEAD_KB MAP_AROUND PATTERN */
static bool run_scenario(char *words[WORDS])
{
    static struct play_result result;
    struct play_options options = {.path = words[1]};
    struct pattern_error error;
    struct steps steps;
    char prefix[160];
    bool good;

    steps_init(&steps);
    if (!play_parse_advice(words[2], &options.advice) ||
        set_unless_dash(KNOB_POLICY, words[3]) != 0 || set_unless_dash(NULL, words[4]) != 0 ||
        set_unless_dash(KNOB_MAP_AROUND, words[5]) != 0) {
        printf("%s cannot be set up: advice %s, policy %s, readahead %s, map-around %s\n", words[0],
               words[2], words[3], words[4], words[5]);
        return false;
    }
    if (pattern_parse(words[6], &steps, &error) != 0) {
        printf("%s pattern, column %lu: %s\n", words[0], error.column, error.text);
        return false;
    }
    snprintf(prefix, sizeof(prefix), "%s io:", words[0]);
    options.io_prefix = prefix;
    good = play_run(&options, &steps, &result) == 0 && result.io_lost == 0;
    if (good)
        print_numbers(words[0], &result);
    else
        printf("%s failed: %s, %" PRIu64 " records lost\n", words[0], result.error, result.io_lost);
    steps_free(&steps);
    return good;
}

static bool run_line(char *line, unsigned int *count)
{
    char *words[WORDS];
    size_t used = 0;

    if (line[0] == '#')
        return true;
    for (char *word = strtok(line, " \n"); word && used < WORDS; word = strtok(NULL, " \n"))
        words[used++] = word;
    if (used == 0)
        return true;
    if (used < WORDS) {
        printf("%s: a line of the script has %d words\n", words[0], WORDS);
        return false;
    }
    ++*count;
    return run_scenario(words);
}

int main(int argc, char **argv)
{
    char line[LINE_BYTES];
    unsigned int count = 0;
    bool good = true;
    FILE *script;

    if (argc != 2) {
        fprintf(stderr, "use: oracle SCRIPT\n");
        return EXIT_FAILURE;
    }
    script = fopen(argv[1], "r");
    if (!script) {
        perror(argv[1]);
        return EXIT_FAILURE;
    }
    while (good && fgets(line, sizeof(line), script))
        good = run_line(line, &count);
    fclose(script);
    knobs_restore(&knobs);
    printf("%u scenarios\n", count);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
