/*
 * Counting faults. A fault is one record from its trap to its end; everything but `started` and `retries` is
 * counted at the end, so when nothing runs
 *
 *     started  = major + minor + sigbus + sigsegv + oom + killed
 *     attempts = started + retries
 *
 * for each task and for the system, and no counter ever goes down. Each fault is in `latency` once, each hold of its lock, from
 * the lookup of the VMA to the release, in `lock_hold`. vm.account chooses which pure function of the record
 * getrusage and Linux's names in /proc/vmstat follow; these counters here are always Faultline's own.
 */
#include "mm/account.h"

#include "kernel/cpu/clock.h"
#include "kernel/log/trace.h"
#include "kernel/sync/mutant.h"
#include "lib/errno.h"
#include "lib/string.h"

/* Written by the CPU itself outside interrupts, so plain additions are enough. */
static PERCPU(struct task_fault_counters, system_faults);

struct counts {
    struct task_fault_counters *task, *system;
};

/* Good until the caller sleeps. */
static inline struct counts counts_now(void)
{
    return (struct counts){&task_current()->faults, percpu_this(system_faults)};
}

/* In both: `field` and `n` are looked at twice, so let them be plain values. */
#define COUNT(of, field, n)           \
    do {                              \
        struct counts counts_ = (of); \
        counts_.task->field += (n);   \
        counts_.system->field += (n); \
    } while (0)

/* What one fault adds to the numbers that programs are shown. */
struct account_shown {
    s32 major, minor;        /* getrusage, /proc/PID/stat */
    u32 pgfault, pgmajfault; /* /proc/vmstat */
};

/* One rule of vm.account: a pure function of the finished fault. */
struct account_rule {
    const char *name;
    struct account_shown (*count)(const struct fault *f);
};

static struct account_shown count_faultline(const struct fault *f)
{
    bool is_done = f->outcome == FAULT_DONE;
    return (struct account_shown){
        .major = is_done && f->slept,
        .minor = is_done && !f->slept,
        .pgfault = is_done,
        .pgmajfault = is_done && f->slept,
    };
}

static bool was_refused(const struct fault *f)
{
    return f->outcome == FAULT_SIGSEGV_MAPERR || f->outcome == FAULT_SIGSEGV_ACCERR;
}

/* Attempts that got past mapping and permission: only the last one can have been refused. */
static u32 attempts_past_checks(const struct fault *f)
{
    return f->retries + (was_refused(f) ? 0 : 1);
}

/* Populating calls have no major faults, whatever the disk had to do. */
static struct account_shown count_linux(const struct fault *f, u32 pgfault, bool is_major)
{
    bool is_done = f->outcome == FAULT_DONE;
    is_major &= !(f->flags & FAULT_FLAG_POPULATE);
    return (struct account_shown){
        .major = is_done && is_major,
        .minor = is_done && !is_major,
        .pgfault = pgfault,
        .pgmajfault = f->absent_looks,
    };
}

/* pgfault once for each fault that completed, well or not; major: absent at the first look, or retried twice. */
static struct account_shown count_linux_6_12(const struct fault *f)
{
    return count_linux(f, !was_refused(f) && f->outcome != FAULT_KILLED,
                       f->absent || f->retries > 1);
}

/* pgfault once for each attempt; major: absent, or retried at all. */
static struct account_shown count_linux_6_1(const struct fault *f)
{
    return count_linux(f, attempts_past_checks(f), f->absent || f->retries > 0);
}

/*
 * The repair of 2009: a retry adds a major and takes a minor off, in the hope that the last attempt will add that minor
 * again. Where it does not, because the mapping is gone, the minor count has gone down for nothing, below zero even;
 * where the last attempt waits, too, the fault counts as two majors.
 */
static struct account_shown count_linux_2009(const struct fault *f)
{
    bool is_done = f->outcome == FAULT_DONE;
    bool last_waited = f->retries > 0 ? f->slept_again : f->slept;
    s32 retries = (s32)f->retries;
    return (struct account_shown){
        .major = retries + (is_done && last_waited),
        .minor = -retries + (is_done && !last_waited),
        .pgfault = attempts_past_checks(f),
        .pgmajfault = f->absent_looks,
    };
}

static const struct account_rule rules[] = {
    {"faultline", count_faultline},
    {"linux-6.12", count_linux_6_12},
    {"linux-6.1", count_linux_6_1},
    {"linux-2009", count_linux_2009},
};
static const struct account_rule *rule = &rules[0];

int account_set_rule(const char *name)
{
    for (unsigned i = 0; i < ARRAY_SIZE(rules); i++) {
        if (strcmp(rules[i].name, name) == 0) {
            rule = &rules[i];
            return 0;
        }
    }
    return -EINVAL;
}

const char *account_rule_name(void)
{
    return rule->name;
}

void account_fault_begin(struct fault *f)
{
    struct counts counts = counts_now();
    struct task *me = task_current();

    COUNT(counts, started, 1);
    COUNT(counts, attempts, 1);
    f->begin_ns = clock_ns();
    f->outer = me->fault;
    me->fault = f;
    TRACE(fault_begin, .addr = f->addr, .access = account_access_name(f->access),
          .user = f->flags & FAULT_FLAG_USER);
}

void account_fault_retry(struct fault *f)
{
    struct counts counts = counts_now();

    f->retries++;
    COUNT(counts, retries, 1);
    COUNT(counts, attempts, 1);
    if (MUTANT(count_each_try))
        COUNT(counts, started, 1);
}

void account_retry_miss(void)
{
    COUNT(counts_now(), retry_misses, 1);
}

void account_mapped_around(unsigned pages)
{
    COUNT(counts_now(), reason[FAULT_REASON_AROUND], pages);
}

void account_lock_fallback(enum fault_fallback why)
{
    COUNT(counts_now(), fallback[why], 1);
}

static unsigned time_bucket(u64 ns)
{
    unsigned log2 = 63 - __builtin_clzl(ns | 1);
    return MIN(log2, FAULT_TIME_BUCKETS - 1u);
}

void account_lock_held(const struct fault *f)
{
    unsigned bucket = time_bucket(clock_ns() - f->locked_ns);

    COUNT(counts_now(), lock_hold[bucket], 1);
}

void account_fault_read(u64 n_pages)
{
    struct counts counts = counts_now();

    COUNT(counts, reads, 1);
    COUNT(counts, read_pages, n_pages);
}

void account_metadata_wait(void)
{
    struct fault *f = task_current()->fault;

    if (f && f->locked)
        f->kept_lock_across_io = true;
}

void account_read_wait(u64 ns)
{
    struct counts counts = counts_now();

    COUNT(counts, read_waits, 1);
    COUNT(counts, read_wait_ns, ns);
}

static void count_outcome(struct counts counts, const struct fault *f)
{
    switch (f->outcome) {
    case FAULT_DONE:
        if (f->slept)
            COUNT(counts, major, 1);
        else
            COUNT(counts, minor, 1);
        break;
    case FAULT_SIGBUS_ADRERR: COUNT(counts, sigbus, 1); break;
    case FAULT_SIGSEGV_MAPERR:
    case FAULT_SIGSEGV_ACCERR: COUNT(counts, sigsegv, 1); break;
    case FAULT_OOM: COUNT(counts, oom, 1); break;
    case FAULT_KILLED:
    case FAULT_RETRY: /* never an outcome */ COUNT(counts, killed, 1); break;
    }
}

/* Having slept outweighs what was done afterwards: it is what the program noticed. */
static enum fault_reason reason_of(const struct fault *f)
{
    if (f->outcome != FAULT_DONE)
        return FAULT_REASON_FAILED;
    if (f->slept)
        return f->started_read ? FAULT_REASON_IO : FAULT_REASON_OTHER_IO;
    return f->reason;
}

void account_fault_end(struct fault *f, enum fault_result result)
{
    struct counts counts = counts_now();
    unsigned latency = time_bucket(clock_ns() - f->begin_ns);
    f->outcome = result;
    task_current()->fault = f->outer;
    count_outcome(counts, f);
    COUNT(counts, latency[latency], 1);
    COUNT(counts, reason[reason_of(f)], 1);
    if (f->slept) {
        COUNT(counts, waits, 1);
        COUNT(counts, wait_ns, f->wait_ns);
    }
    if (f->kept_lock_across_io)
        COUNT(counts, lock_across_io, 1);
    struct account_shown shown = rule->count(f);
    COUNT(counts, shown_major, (u64)shown.major);
    COUNT(counts, shown_minor, (u64)shown.minor);
    COUNT(counts, shown_pgfault, shown.pgfault);
    COUNT(counts, shown_pgmajfault, shown.pgmajfault);
    TRACE(fault_end, .addr = f->addr, .outcome = account_outcome_name(result),
          .reason = account_reason_name(reason_of(f)), .attempts = f->retries + 1,
          .waited_ns = f->wait_ns);
}

void account_system(struct task_fault_counters *out)
{
    *out = (struct task_fault_counters){0};
    u64 *sum = (u64 *)out;
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        const u64 *part = (const u64 *)percpu_of(system_faults, cpu);
        for (unsigned i = 0; i < sizeof(*out) / sizeof(u64); i++)
            sum[i] += READ_ONCE(part[i]);
    }
}
