/*
 * The kernel command line, taken apart.
 */
#ifndef KERNEL_CMDLINE_H
#define KERNEL_CMDLINE_H

#include "lib/types.h"

#define CMDLINE_MAX_ARGS 64

struct cmdline {
    const char *init; /* init=PATH, NULL: the kernel chooses */
    int n_args;       /* words behind "--" */
    const char *args[CMDLINE_MAX_ARGS];
    const char *ktest; /* ktest=PATTERN, NULL: none */
    const char *ktest_after;
    u64 ktest_seeds;          /* how many seeds the seeded tests try, 0: few */
    const char *ktest_mutant; /* what is broken on purpose while the tests run, NULL: nothing */
    const char *root; /* root=vda|ram0, NULL: the RAM disk if there is one, else the first disk */
    const char *console; /* console=tty: a terminal; console=raw or NULL: a plain port */
    u64 console_rows, console_columns; /* of the terminal's window, 0: not known */
    bool icount;
    bool recorded; /* QEMU records the run, or plays one again */
    u64 max_cpus;
    u64 loglevel;
    u64 sync_seed;
    u64 gate_latency_ns, gate_per_request_ns, gate_bandwidth;
    u64 read_ahead_kb;          /* ~0: not given */
    u64 hugepages;              /* pages of 2 MiB put aside at boot */
    u64 hung_task_timeout_secs; /* 0: nobody looks */
};

/*
 * Takes `text` apart into static storage. Words that cannot be used (bad numbers, unknown names) are named in the log and
 * otherwise ignored. vm.NAME=VALUE words are kept for cmdline_apply_knobs(). Once, at boot.
 */
void cmdline_parse(const char *text);
extern struct cmdline cmdline;

/* Sets the knobs (vm.NAME=VALUE) given on the command line. */
void cmdline_apply_knobs(void);

#endif
