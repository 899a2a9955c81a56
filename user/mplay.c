/*
 * mplay: touch or read pages of a file in a given order, and count what that costs.
 *
 * The first measuring tool: one run, one list of numbers. See --help for the use,
 * user/lib/pattern.h for the language of patterns, user/lib/play.h for how a run is done.
 *
 * Exit status: 0; 1 where the run failed; 2 where the call was wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/lib/knobs.h"
#include "user/lib/pattern.h"
#include "user/lib/play.h"
#include "user/lib/report.h"
#include "user/lib/text.h"

#define EXIT_USAGE 2
/* Larger than any window or block a kernel takes; it has the last word. */
#define KNOB_NUMBER_LIMIT (1ULL << 40)

struct arguments {
    struct play_options play;
    const char *policy;
    const char *readahead_kb;
    const char *map_around;
    const char *trace;
    const char *pattern; /* NULL: the whole file in order, by mmap */
};

static const char help_text[] =
    "Usage: mplay [options] [PATTERN] FILE\n"
    "       mplay [options] --load TRACE FILE\n"
    "\n"
    "Drops FILE's cached pages, touches or reads pages of it in the order that PATTERN\n"
    "or TRACE gives (without either: all of them in order, by mmap), and prints what it cost.\n"
    "\n"
    "  --advice A           none, fseq, frand (on the descriptor), mseq, mrand, mwill (on the\n"
    "                       mapping)\n"
    "  --policy P           readahead policy for this run: ondemand, stream, around,\n"
    "                       none (Faultline)\n"
    "  --readahead-kb N     window of every block device for this run\n"
    "  --map-around BYTES   how much one minor fault maps, for this run (Faultline)\n"
    "  --show-io            also print one line `io: @a:(s,n) ...`: touching page a asked for n\n"
    "                       pages from page s (Faultline)\n"
    "  --load TRACE         a text file, one request a line: position [length], in pages;\n"
    "                       # starts a comment; - is the standard input\n"
    "  --help               this text\n"
    "\n"
    "PATTERN is KIND:ITEM,ITEM,... all in pages of 4096 bytes:\n"
    "  m:  touch each page through mmap    r:  read it    rxN:  N pages in each read\n"
    "  a   page a       a-b   a up or down to b       a-b/s   every s-th of them\n"
    "  i1000/5000x60    streams interleaved, 60 rounds: 1000 5000 1001 5001 ...\n"
    "  dA-B  drop these pages from the cache          wA-B    announce them (WILLNEED)\n"
    "  Ra Ma in an m: pattern: read page a, touch page a\n"
    "\n"
    "Numbers: major and minor faults and times are this process's, by getrusage; waits, reasons\n"
    "and retries are from /proc/self/faults, windows from /proc/self/fdinfo, disk requests from\n"
    "/proc/vmstat.\n"
    "`touched` counts pages seen, `resident` pages of FILE in the cache at the end, `checksum`\n"
    "goes over the bytes in the order they were seen.\n";

static __attribute__((noreturn)) void usage_error(const char *message, const char *word)
{
    fprintf(stderr, "mplay: %s%s%s\nTry `mplay --help`.\n", message, word ? ": " : "",
            word ? word : "");
    exit(EXIT_USAGE);
}

static const char *checked_number(const char *word, const char *option)
{
    uint64_t value;

    if (!text_parse_number(word, KNOB_NUMBER_LIMIT, &value)) {
        fprintf(stderr, "mplay: %s takes a number, not `%s`\n", option, word);
        exit(EXIT_USAGE);
    }
    return word;
}

enum option_id {
    OPT_ADVICE = 1,
    OPT_POLICY,
    OPT_READAHEAD,
    OPT_AROUND,
    OPT_IO,
    OPT_LOAD,
    OPT_HELP
};

static const struct option options[] = {
    {"advice", required_argument, NULL, OPT_ADVICE},
    {"policy", required_argument, NULL, OPT_POLICY},
    {"readahead-kb", required_argument, NULL, OPT_READAHEAD},
    {"map-around", required_argument, NULL, OPT_AROUND},
    {"show-io", no_argument, NULL, OPT_IO},
    {"load", required_argument, NULL, OPT_LOAD},
    {"help", no_argument, NULL, OPT_HELP},
    {0},
};

static void take_option(struct arguments *arguments, int option)
{
    switch (option) {
    case OPT_ADVICE:
        if (!play_parse_advice(optarg, &arguments->play.advice))
            usage_error("there is no such advice", optarg);
        break;
    case OPT_POLICY: arguments->policy = optarg; break;
    case OPT_READAHEAD: arguments->readahead_kb = checked_number(optarg, "--readahead-kb"); break;
    case OPT_AROUND: arguments->map_around = checked_number(optarg, "--map-around"); break;
    case OPT_IO: arguments->play.io_prefix = "io:"; break;
    case OPT_LOAD: arguments->trace = optarg; break;
    case OPT_HELP: fputs(help_text, stdout); exit(EXIT_SUCCESS);
    default: usage_error("this call is not understood", NULL);
    }
}

static void take_arguments(struct arguments *arguments, int argc, char **argv)
{
    int option;

    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1)
        take_option(arguments, option == 'h' ? OPT_HELP : option);
    if (optind == argc)
        usage_error("there must be a FILE", NULL);
    if (arguments->trace && argc - optind > 1)
        usage_error("with --load there is one FILE and no PATTERN", NULL);
    if (argc - optind > 2)
        usage_error("there are too many words", argv[optind + 2]);
    if (argc - optind == 2)
        arguments->pattern = argv[optind++];
    arguments->play.path = argv[optind];
}

/* Names the place of a mistake; for a pattern, also shows it. */
static void print_pattern_error(const struct arguments *arguments,
                                const struct pattern_error *error)
{
    if (arguments->trace) {
        fprintf(stderr, "mplay: %s: line %lu, column %lu: %s\n", arguments->trace, error->line,
                error->column, error->text);
        return;
    }
    fprintf(stderr, "mplay: pattern, column %lu: %s\n  %s\n  %*s\n", error->column, error->text,
            arguments->pattern, (int)error->column, "^");
}

static int load_trace(const char *path, struct steps *steps, struct pattern_error *error)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    int result;

    if (fd < 0)
        return -errno;
    result = trace_parse(fd, steps, error);
    if (!is_stdin)
        close(fd);
    return result;
}

/* Without a pattern: every page of the file in order. */
static int add_whole_file(const char *path, struct steps *steps)
{
    struct step_run run = {.stride_pages = 1, .length_pages = 1, .kind = STEP_TOUCH};
    struct stat status;

    if (stat(path, &status) < 0)
        return -errno;
    run.count = ((uint64_t)status.st_size + PLAY_PAGE_BYTES - 1) / PLAY_PAGE_BYTES;
    return run.count ? steps_add_run(steps, &run) : 0;
}

static void load_steps(const struct arguments *arguments, struct steps *steps)
{
    struct pattern_error error = {.text = ""};
    const char *source = arguments->trace ? arguments->trace : arguments->play.path;
    int result;

    steps_init(steps);
    if (arguments->trace)
        result = load_trace(arguments->trace, steps, &error);
    else if (arguments->pattern)
        result = pattern_parse(arguments->pattern, steps, &error);
    else
        result = add_whole_file(arguments->play.path, steps);
    if (!result)
        return;
    if (result == -EINVAL && error.text[0]) {
        print_pattern_error(arguments, &error);
        exit(EXIT_USAGE);
    }
    fprintf(stderr, "mplay: %s: %s\n", source, strerror(-result));
    exit(EXIT_FAILURE);
}

static int set_knobs(struct knobs *knobs, const struct arguments *arguments)
{
    int error = 0;

    if (arguments->policy)
        error = knobs_set(knobs, KNOB_POLICY, arguments->policy);
    if (!error && arguments->map_around)
        error = knobs_set(knobs, KNOB_MAP_AROUND, arguments->map_around);
    if (!error && arguments->readahead_kb)
        error = knobs_set_readahead_kb(knobs, arguments->readahead_kb);
    if (error)
        fprintf(stderr, "mplay: cannot set %s: %s%s\n", knobs->failed_path, strerror(-error),
                error == -ENOENT ? " (this knob needs Faultline)" : "");
    return error;
}

static int run(const struct arguments *arguments, const struct steps *steps)
{
    static struct play_result result;
    int error = play_run(&arguments->play, steps, &result);

    if (error) {
        fprintf(stderr, "mplay: %s\n", result.error);
        return EXIT_FAILURE;
    }
    report_print(stdout, &result);
    if (result.undropped_pages > 0)
        fprintf(stderr, "mplay: %lld pages of the file could not be dropped before the run\n",
                (long long)result.undropped_pages);
    if (result.io_lost > 0) {
        fprintf(stderr, "mplay: the io line lacks %llu records that were overwritten too soon\n",
                (unsigned long long)result.io_lost);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.play.advice = ADVICE_NONE};
    static struct knobs knobs;
    struct steps steps;
    int status;

    take_arguments(&arguments, argc, argv);
    load_steps(&arguments, &steps);
    status = set_knobs(&knobs, &arguments) ? EXIT_FAILURE : run(&arguments, &steps);
    knobs_restore(&knobs);
    steps_free(&steps);
    if (fflush(stdout) != 0 && status == EXIT_SUCCESS) {
        perror("mplay: cannot write the numbers");
        status = EXIT_FAILURE;
    }
    return status;
}
