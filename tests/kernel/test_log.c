/*
 * What a panic is made of, tried without dying: symbols, and backtraces through trap frames.
 */
#include "kernel/cpu/cpu.h"
#include "kernel/cpu/trap.h"
#include "kernel/log/log.h"
#include "lib/format.h"
#include "lib/string.h"
#include "tests/kernel/ktest.h"

#define MAX_LINES  48
#define LINE_BYTES 160

/* Lines that a report printed. */
static char lines[MAX_LINES][LINE_BYTES];
static unsigned n_lines;

static PRINTF_LIKE(1, 2) void keep_line(const char *fmt, ...)
{
    va_list args;

    if (n_lines == MAX_LINES)
        return;
    va_start(args, fmt);
    format_v(lines[n_lines++], LINE_BYTES, fmt, args);
    va_end(args);
}

/* Index of the first line from `from` on that contains the text, or -1. */
static int find_line(const char *text, int from)
{
    for (int i = from; i < (int)n_lines; i++) {
        if (strstr(lines[i], text))
            return i;
    }
    return -1;
}

KTEST(log, symbol_is_found_by_any_address_in_it)
{
    u64 offset = 99;

    KASSERT(symbol_find((u64)&log_write, &offset) != NULL);
    KEXPECT_STREQ(symbol_find((u64)&log_write, &offset), "log_write");
    KEXPECT_EQ(offset, 0);
    KEXPECT_STREQ(symbol_find((u64)&log_write + 5, &offset), "log_write");
    KEXPECT_EQ(offset, 5);
    KEXPECT(symbol_find(0, &offset) == NULL);
    KEXPECT(symbol_find((u64)&n_lines, &offset) == NULL);
    KEXPECT(symbol_find(~0ul, &offset) == NULL);
}

static __attribute__((noinline)) void inner(void)
{
    backtrace_print(NULL, keep_line);
    __asm__ volatile(""); /* no tail call */
}

static __attribute__((noinline)) void outer(void)
{
    inner();
    __asm__ volatile("");
}

KTEST(log, backtrace_names_the_callers_in_order)
{
    n_lines = 0;
    outer();
    int at_inner = find_line("inner+", 0);
    int at_outer = find_line("outer+", at_inner + 1);
    int at_test = find_line("ktest_log_backtrace_names_the_callers_in_order+", at_outer + 1);
    KEXPECT(at_inner >= 0);
    KEXPECT_EQ(at_outer, at_inner + 1);
    KEXPECT_EQ(at_test, at_outer + 1);
}

static void on_breakpoint(struct trap_frame *frame)
{
    (void)frame;
    outer();
    __asm__ volatile("");
}

static __attribute__((noinline)) void trapped(void)
{
    __asm__ volatile("int3" ::: "memory");
}

KTEST(log, backtrace_goes_through_a_trap_into_what_was_interrupted)
{
    n_lines = 0;
    trap_register(TRAP_BREAKPOINT, on_breakpoint);
    trapped();
    trap_register(TRAP_BREAKPOINT, NULL);
    int at_handler = find_line("on_breakpoint+", 0);
    int at_door = find_line("breakpoint", at_handler + 1);
    int at_trapped = find_line("trapped+", at_door + 1);
    KEXPECT(at_handler >= 0);
    KEXPECT(at_door > at_handler);
    KEXPECT_EQ(at_trapped, at_door + 1);
    KEXPECT_EQ(find_line("ktest_log_backtrace_goes_through", at_trapped), at_trapped + 1);
}

KTEST(log, backtrace_of_a_broken_chain_ends)
{
    struct trap_frame frame = {.rip = (u64)&log_write, .rbp = 0xdead00000001ul, .cs = KERNEL_CS};
    u64 loop[2] = {(u64)loop, (u64)&log_write};

    n_lines = 0;
    backtrace_print(&frame, keep_line);
    KEXPECT_EQ(n_lines, 1);
    frame.rbp = (u64)loop;
    n_lines = 0;
    backtrace_print(&frame, keep_line);
    KEXPECT_EQ(n_lines, 2);
    frame.rbp = 0xffffffffffff0000ul; /* not mapped */
    n_lines = 0;
    backtrace_print(&frame, keep_line);
    KEXPECT_EQ(n_lines, 1);
}
