/*
 * The kernel's last words: a report (report.h), then the end of the machine.
 *
 * A panic trusts nothing. Other CPUs are stopped first; no lock is taken; the report is made of
 * parts, and a part that itself fails (a broken list, a bad pointer) is left where it is, and the
 * next one follows. Two CPUs that panic at once: the first one speaks, the other one is stopped.
 */
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/log/internal.h"
#include "kernel/log/report.h"
#include "kernel/sync/atomic.h"
#include "lib/format.h"
#include "lib/string.h"

#define NOBODY       0
#define FAILURES_MAX 16 /* parts of the report that fail, before it is given up */

static u32 panicking_cpu; /* index + 1; NOBODY */

/* All below is the panicking CPU's alone. */
static char reason[512];
static struct trap_frame frame_copy;
static struct report report;

bool panic_in_progress(void)
{
    return atomic_load(&panicking_cpu) != NOBODY;
}

bool panic_is_ours(void)
{
    return atomic_load(&panicking_cpu) == cpu_index() + 1;
}

static PRINTF_LIKE(2, 0) void write_line(const char *indent, const char *fmt, va_list args)
{
    static char line[LOG_LINE_BYTES];
    size_t used = string_copy(line, indent, sizeof line);
    int len = format_v(line + used, sizeof line - 1 - used, fmt, args);

    used = MIN(used + (size_t)len, sizeof line - 2);
    line[used++] = '\n';
    log_write_panicking(line, used);
}

void panic_line(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    write_line("", fmt, args);
    va_end(args);
}

static PRINTF_LIKE(1, 2) void panic_indented_line(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    write_line("  ", fmt, args);
    va_end(args);
}

/* Goes on with the report, wherever an earlier attempt got stuck. */
NORETURN static void print_report(void)
{
    report_print(&report);
    panic_line("The machine stops here.");
    machine_end(MACHINE_PANIC, 0);
}

/* A panic while this CPU reports one: one line about it, then the rest of the report. */
NORETURN static PRINTF_LIKE(1, 0) void panic_again(const char *fmt, va_list args)
{
    static unsigned times;
    static char text[200];

    if (++times > FAILURES_MAX)
        machine_end(MACHINE_PANIC, 0);
    format_v(text, sizeof text, fmt, args);
    panic_line("  (this part of the report failed: %s)", text);
    print_report();
}

NORETURN static PRINTF_LIKE(4, 0) void panic_v(enum report_kind kind,
                                               const struct trap_frame *frame, bool is_trap,
                                               const char *fmt, va_list args)
{
    irq_disable();
    u32 me = cpu_index() + 1;
    u32 first = NOBODY;
    if (!__atomic_compare_exchange_n(&panicking_cpu, &first, me, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        if (first == me)
            panic_again(fmt, args);
        for (;;) /* the first one stops us */
            __asm__ volatile("cli; hlt");
    }
    smp_stop_others();
    format_v(reason, sizeof reason, fmt, args);
    frame_copy = *frame;
    report = (struct report){
        .kind = kind,
        .reason = reason,
        .frame = &frame_copy,
        .has_registers = is_trap,
        .task = this_cpu()->current,
        .heading = panic_line,
        .line = panic_indented_line,
    };
    panic_line(" ");
    print_report();
}

/* A frame that says only where its function was called. */
static struct trap_frame caller_of(const u64 *own_frame)
{
    /* At the frame pointer lie the caller's, then the return address. The call is what lies before that: behind a call
     * that does not return, another function may begin. */
    return (struct trap_frame){.rip = own_frame[1] - 1, .rbp = own_frame[0], .cs = KERNEL_CS};
}

void panic(const char *fmt, ...)
{
    struct trap_frame caller = caller_of(__builtin_frame_address(0));
    va_list args;

    va_start(args, fmt);
    panic_v(REPORT_PANIC, &caller, false, fmt, args);
}

void panic_frame(const struct trap_frame *frame, const char *fmt, ...)
{
    struct trap_frame caller = caller_of(__builtin_frame_address(0));
    va_list args;

    va_start(args, fmt);
    panic_v(REPORT_PANIC, frame ? frame : &caller, frame != NULL, fmt, args);
}

void panic_report(enum report_kind kind, const struct trap_frame *frame, const char *fmt, ...)
{
    struct trap_frame caller = caller_of(__builtin_frame_address(0));
    va_list args;

    va_start(args, fmt);
    panic_v(kind, frame ? frame : &caller, frame != NULL, fmt, args);
}

void panic_at(enum report_kind kind, u64 place, const char *fmt, ...)
{
    struct trap_frame at = caller_of(__builtin_frame_address(0));
    u64 rbp;
    va_list args;

    if (backtrace_has(place, &rbp))
        at = (struct trap_frame){.rip = place - 1, .rbp = rbp, .cs = KERNEL_CS};
    va_start(args, fmt);
    panic_v(kind, &at, false, fmt, args);
}
