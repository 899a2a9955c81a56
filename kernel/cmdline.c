/*
 * The kernel command line: a table of words. Everything behind a lone "--" belongs to the program.
 */
#include "kernel/cmdline.h"

#include "kernel/log/log.h"
#include "kernel/sched/hung.h"
#include "lib/errno.h"
#include "lib/parse.h"
#include "lib/string.h"
#include "mm/knobs.h"

#define WORDS_BYTES 8192
#define KNOBS_MAX   16

struct cmdline cmdline = {.max_cpus = ~0ul,
                          .loglevel = LOG_INFO,
                          .read_ahead_kb = ~0ul,
                          .hung_task_timeout_secs = HUNG_TASK_TIMEOUT_DEFAULT_SECS};

static char storage[WORDS_BYTES];
static size_t storage_used;
static const char *knob_words[KNOBS_MAX];
static unsigned n_knob_words;

struct option {
    const char *name; /* with "=": a value follows */
    const char **text;
    u64 *number;
    bool *flag;
};

static const struct option options[] = {
    {"init=", .text = &cmdline.init},
    {"ktest=", .text = &cmdline.ktest},
    {"ktest.after=", .text = &cmdline.ktest_after},
    {"ktest.seeds=", .number = &cmdline.ktest_seeds},
    {"ktest.mutant=", .text = &cmdline.ktest_mutant},
    {"root=", .text = &cmdline.root},
    {"console=", .text = &cmdline.console},
    {"console.rows=", .number = &cmdline.console_rows},
    {"console.columns=", .number = &cmdline.console_columns},
    {"icount", .flag = &cmdline.icount},
    {"recorded", .flag = &cmdline.recorded},
    {"maxcpus=", .number = &cmdline.max_cpus},
    {"loglevel=", .number = &cmdline.loglevel},
    {"sync.seed=", .number = &cmdline.sync_seed},
    {"gate.latency_ns=", .number = &cmdline.gate_latency_ns},
    {"gate.per_request_ns=", .number = &cmdline.gate_per_request_ns},
    {"gate.bandwidth=", .number = &cmdline.gate_bandwidth},
    {"read_ahead_kb=", .number = &cmdline.read_ahead_kb},
    {"hugepages=", .number = &cmdline.hugepages},
    {"kernel.hung_task_timeout_secs=", .number = &cmdline.hung_task_timeout_secs},
};

/* Numbers are read when the word is used, after the log works: a bad one is reported, and the default stays. */
static void apply(const struct option *option, const char *word)
{
    const char *value = word + strlen(option->name);
    if (option->flag)
        *option->flag = true;
    else if (option->text)
        *option->text = value;
    else if (parse_u64(value, PARSE_WHOLE_STRING, 0, option->number))
        log_warn("command line: \"%s\" needs a number; ignored", word);
}

static bool matches(const struct option *option, const char *word)
{
    size_t n = strlen(option->name);
    if (option->flag)
        return strcmp(option->name, word) == 0;
    return strncmp(option->name, word, n) == 0;
}

static void take_word(const char *word)
{
    if (strncmp(word, "vm.", 3) == 0 && n_knob_words < KNOBS_MAX) {
        knob_words[n_knob_words++] = word + 3;
        return;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(options); i++) {
        if (matches(&options[i], word)) {
            apply(&options[i], word);
            return;
        }
    }
    log_warn("command line: \"%s\" is not known here; ignored", word);
}

void cmdline_parse(const char *text)
{
    bool for_program = false;
    int result;
    while (storage_used < sizeof(storage)) {
        char *word = storage + storage_used;
        result = cmdline_next_word(&text, word, sizeof(storage) - storage_used);
        if (result == 0)
            return;
        if (result < 0)
            break;
        storage_used += strlen(word) + 1;
        if (for_program && cmdline.n_args < CMDLINE_MAX_ARGS)
            cmdline.args[cmdline.n_args++] = word;
        else if (for_program)
            log_warn("command line: more than %d arguments; \"%s\" is dropped", CMDLINE_MAX_ARGS,
                     word);
        else if (strcmp(word, "--") == 0)
            for_program = true;
        else
            take_word(word);
    }
    log_warn("command line: too long; the rest is ignored");
}

void cmdline_apply_knobs(void)
{
    for (unsigned i = 0; i < n_knob_words; i++) {
        char name[32];
        const char *equals = strchr(knob_words[i], '=');
        size_t n = equals ? (size_t)(equals - knob_words[i]) : 0;
        if (n == 0 || n >= sizeof(name)) {
            log_warn("command line: \"vm.%s\" needs a value; ignored", knob_words[i]);
            continue;
        }
        memcpy(name, knob_words[i], n);
        name[n] = '\0';
        int error = knob_set(name, equals + 1);
        if (error)
            log_warn("command line: vm.%s: %s", knob_words[i],
                     error == -ENOENT ? "there is no such knob"
                                      : "that value is not one of its values");
    }
}
