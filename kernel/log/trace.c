/*
 * The trace ring: each CPU writes into its own; the index is taken first, so an interrupt in the
 * middle of a record takes the next one. Readers look while others write: for panics and tests.
 */
#include "kernel/log/trace.h"

#include "kernel/cpu/clock.h"
#include "kernel/cpu/cpu.h"
#include "lib/format.h"
#include "lib/string.h"

struct trace_ring {
    u64 n_written; /* records ever; the next one goes to n_written % TRACE_RING_EVENTS */
    struct trace_record records[TRACE_RING_EVENTS];
};

bool trace_on;

PERCPU(struct trace_ring, trace_ring);
static u32 (*pid_source)(void);

void trace_set_pid_source(u32 (*current_pid)(void))
{
    pid_source = current_pid;
}

void trace_write(const char *format, u64 a, u64 b, u64 c, u64 d)
{
    struct trace_ring *ring = percpu_this(trace_ring);
    u64 slot = 1;

    __asm__ volatile("xaddq %0, %1"
                     : "+r"(slot),
                       "+m"(ring->n_written)::"cc"); /* one instruction: no interrupt inside */
    ring->records[slot % TRACE_RING_EVENTS] = (struct trace_record){
        .time_ns = clock_ns(),
        .format = format,
        .args = {a, b, c, d},
        .pid = pid_source ? pid_source() : 0,
        .cpu = cpu_index(),
    };
}

/* Walks all rings in the order of time: `at[cpu]` is the number of the next record. */
struct merge {
    u64 at[MAX_CPUS];
};

static const struct trace_record *record_of(unsigned cpu, u64 n)
{
    return &percpu_of(trace_ring, cpu)->records[n % TRACE_RING_EVENTS];
}

/* Moves back over the latest record before the positions. => false if there is none */
static bool step_back(struct merge *m)
{
    unsigned best = MAX_CPUS;

    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        u64 written = percpu_of(trace_ring, cpu)->n_written;
        u64 oldest = written > TRACE_RING_EVENTS ? written - TRACE_RING_EVENTS : 0;
        if (m->at[cpu] <= oldest)
            continue;
        if (best == MAX_CPUS ||
            record_of(cpu, m->at[cpu] - 1)->time_ns >= record_of(best, m->at[best] - 1)->time_ns)
            best = cpu;
    }
    if (best == MAX_CPUS)
        return false;
    m->at[best]--;
    return true;
}

/* => the oldest record at the positions, which is passed; NULL at the end */
static const struct trace_record *step_forward(struct merge *m, const u64 *end)
{
    unsigned best = MAX_CPUS;

    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        if (m->at[cpu] < end[cpu] &&
            (best == MAX_CPUS ||
             record_of(cpu, m->at[cpu])->time_ns < record_of(best, m->at[best])->time_ns))
            best = cpu;
    }
    return best == MAX_CPUS ? NULL : record_of(best, m->at[best]++);
}

static void print_record(const struct trace_record *r, void (*line)(const char *fmt, ...))
{
    char text[160];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    format_to(text, sizeof text, r->format, r->args[0], r->args[1], r->args[2], r->args[3]);
#pragma GCC diagnostic pop
    line("  %4lu.%09lu cpu %u pid %u  %s", r->time_ns / 1000000000, r->time_ns % 1000000000, r->cpu,
         r->pid, text);
}

void trace_print_last(unsigned max, void (*line)(const char *fmt, ...))
{
    static struct merge m; /* too large for a stack that may be nearly full */
    static u64 end[MAX_CPUS];
    const struct trace_record *r;
    unsigned n = 0;

    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        m.at[cpu] = end[cpu] = percpu_of(trace_ring, cpu)->n_written;
    while (n < max && step_back(&m))
        n++;
    if (n == 0)
        return;
    line("last %u trace events:", n);
    while ((r = step_forward(&m, end)))
        print_record(r, line);
}
