/*
 * oracle: many measured runs in one process, from a script, for tests that compare with
 * tests/data/readahead.txt. (One boot starts one program; so the batch is in here.)
 *
 * Use: oracle SCRIPT. A line of the script is
 * `NAME FILE ADVICE POLICY READAHEAD_KB MAP_AROUND PATTERN`; `-` leaves a knob alone; `#` starts a
 * comment line. Each line gives two:
 *
 *     NAME io: @a:(s,n) ...
 *     NAME touched=N major=N minor=N signals=N waits=N read_waits=N windows=N window_pages=N ahead=N
 *          ahead_used=N resident=N undropped=N checksum=X
 *
 * and at the end `N scenarios`. Exit status 0, or 1 at the first line that cannot be done. A touch
 * behind the end of a file is a signal: it is counted, and a page is put there so that the run goes
 * on. Two lines are no scenarios: `quiet`: from here on without the first line of the two; `leave
 * PAGES`: from here on no more memory than that can be had.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "user/lib/knobs.h"
#include "user/lib/pattern.h"
#include "user/lib/play.h"
#include "user/lib/report.h"

#define LINE_BYTES  32768
#define WORDS       7
#define PAGE_BYTES  4096
#define KB_PER_PAGE 4

static struct knobs knobs;
static bool is_quiet;
static volatile uint64_t signals;

static void on_bus_error(int signal, siginfo_t *info, void *context)
{
    void *page = (void *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE_BYTES - 1));

    (void)signal;
    (void)context;
    signals++;
    if (mmap(page, PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != page)
        _exit(EXIT_FAILURE);
}

static uint64_t available_pages(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    unsigned long kb = 0;
    char line[128];

    while (file && fgets(line, sizeof(line), file) &&
           sscanf(line, "MemAvailable: %lu kB", &kb) != 1)
        ;
    if (file)
        fclose(file);
    return kb / KB_PER_PAGE;
}

/* Takes what is more than this, for good. */
static bool leave_available(uint64_t pages)
{
    uint64_t now;

    while ((now = available_pages()) > pages) {
        void *taken = mmap(NULL, (now - pages + 1) / 2 * PAGE_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (taken == MAP_FAILED)
            return false;
    }
    return true;
}

static int set_unless_dash(const char *path, const char *value)
{
    if (strcmp(value, "-") == 0)
        return 0;
    return path ? knobs_set(&knobs, path, value) : knobs_set_readahead_kb(&knobs, value);
}

static void print_numbers(const char *name, const struct play_result *result)
{
    static const struct {
        const char *name;
        enum stat_id id;
    } counters[] = {
        {"waits", STAT_WAITS},     {"read_waits", STAT_READ_WAITS},
        {"windows", STAT_WINDOWS}, {"window_pages", STAT_WINDOW_PAGES},
        {"ahead", STAT_AHEAD},     {"ahead_used", STAT_AHEAD_USED},
    };

    printf("%s touched=%" PRIu64 " major=%" PRIu64 " minor=%" PRIu64 " signals=%" PRIu64, name,
           result->touched_pages, stats_major_faults(&result->stats),
           stats_minor_faults(&result->stats), signals);
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        char text[24];

        report_format_stat(text, sizeof(text), &result->stats, counters[i].id);
        printf(" %s=%s", counters[i].name, text);
    }
    printf(" resident=%" PRId64 " undropped=%" PRId64 " checksum=%016" PRIx64 "\n",
           result->resident_pages, result->undropped_pages, result->checksum);
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
    options.io_prefix = is_quiet ? NULL : prefix;
    signals = 0;
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
    if (used == 1 && strcmp(words[0], "quiet") == 0) {
        is_quiet = true;
        return true;
    }
    if (used == 2 && strcmp(words[0], "leave") == 0)
        return leave_available(strtoul(words[1], NULL, 10));
    if (used < WORDS) {
        printf("%s: a line of the script has %d words\n", words[0], WORDS);
        return false;
    }
    ++*count;
    return run_scenario(words);
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    static char line[LINE_BYTES];
    unsigned int count = 0;
    bool good = true;
    FILE *script;

    if (argc != 2) {
        fprintf(stderr, "use: oracle SCRIPT\n");
        return EXIT_FAILURE;
    }
    sigaction(SIGBUS, &action, NULL);
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
