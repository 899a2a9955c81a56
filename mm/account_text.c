/*
 * The counters of faults as text: /proc/PID/faults, and with a prefix in /proc/vmstat.
 */
#include "lib/format.h"
#include "mm/account.h"

struct text {
    const char *prefix;
    char *buf;
    size_t size;
    int length; /* of the whole text, whether it fits or not */
};

static size_t room(const struct text *text)
{
    size_t used = (size_t)text->length;
    return used < text->size ? text->size - used : 0;
}

static void put(struct text *text, const char *name, u64 value)
{
    size_t left = room(text);
    text->length += format_to(left ? text->buf + text->length : NULL, left, "%s%s %lu\n",
                              text->prefix, name, value);
}

/* A histogram: the buckets that are not empty. */
static void put_times(struct text *text, const char *name, const u64 *buckets)
{
    for (unsigned i = 0; i < FAULT_TIME_BUCKETS; i++) {
        char bucket[24];
        format_to(bucket, sizeof(bucket), "%s_%u", name, i);
        if (buckets[i])
            put(text, bucket, buckets[i]);
    }
}

int account_format(const struct task_fault_counters *c, const char *prefix, char *buf, size_t size)
{
    const struct {
        const char *name;
        u64 value;
    } lines[] = {
        {"started", c->started},
        {"major", c->major},
        {"minor", c->minor},
        {"sigbus", c->sigbus},
        {"sigsegv", c->sigsegv},
        {"oom", c->oom},
        {"killed", c->killed},
        {"attempts", c->attempts},
        {"retries", c->retries},
        {"retry_misses", c->retry_misses},
        {"reason_zero", c->reason[FAULT_REASON_ZERO]},
        {"reason_cow", c->reason[FAULT_REASON_COW]},
        {"reason_cache", c->reason[FAULT_REASON_CACHE]},
        {"reason_around", c->reason[FAULT_REASON_AROUND]},
        {"reason_io", c->reason[FAULT_REASON_IO]},
        {"reason_other_io", c->reason[FAULT_REASON_OTHER_IO]},
        {"reason_swap", c->reason[FAULT_REASON_SWAP]},
        {"reason_spurious", c->reason[FAULT_REASON_SPURIOUS]},
        {"reason_failed", c->reason[FAULT_REASON_FAILED]},
        {"reads", c->reads},
        {"read_pages", c->read_pages},
        {"waits", c->waits},
        {"wait_ns", c->wait_ns},
        {"lock_across_io", c->lock_across_io},
        {"fallback_none_there", c->fallback[FAULT_FALLBACK_NONE_THERE]},
        {"fallback_busy", c->fallback[FAULT_FALLBACK_BUSY]},
        {"fallback_detached", c->fallback[FAULT_FALLBACK_DETACHED]},
        {"fallback_fork", c->fallback[FAULT_FALLBACK_FORK]},
    };
    struct text text = {.prefix = prefix, .buf = buf, .size = size};
    for (unsigned i = 0; i < ARRAY_SIZE(lines); i++)
        put(&text, lines[i].name, lines[i].value);
    put_times(&text, "lock_hold", c->lock_hold);
    put_times(&text, "latency", c->latency);
    return text.length;
}

const char *account_access_name(enum fault_access access)
{
    static const char *const names[] = {
        [FAULT_READ] = "read", [FAULT_WRITE] = "write", [FAULT_EXEC] = "exec"};

    return names[access];
}

const char *account_outcome_name(enum fault_result result)
{
    static const char *const names[] = {
        [FAULT_DONE] = "done",
        [FAULT_RETRY] = "retry",
        [FAULT_KILLED] = "killed",
        [FAULT_SIGSEGV_MAPERR] = "sigsegv_maperr",
        [FAULT_SIGSEGV_ACCERR] = "sigsegv_accerr",
        [FAULT_SIGBUS_ADRERR] = "sigbus",
        [FAULT_OOM] = "oom",
    };

    return names[result];
}

const char *account_reason_name(enum fault_reason reason)
{
    static const char *const names[FAULT_REASON_COUNT] = {
        [FAULT_REASON_ZERO] = "zero",     [FAULT_REASON_COW] = "cow",
        [FAULT_REASON_CACHE] = "cache",   [FAULT_REASON_AROUND] = "around",
        [FAULT_REASON_IO] = "io",         [FAULT_REASON_OTHER_IO] = "other_io",
        [FAULT_REASON_SWAP] = "swap",     [FAULT_REASON_SPURIOUS] = "spurious",
        [FAULT_REASON_FAILED] = "failed",
    };

    return names[reason];
}
