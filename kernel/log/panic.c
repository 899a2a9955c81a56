/*
 * The kernel's last words: what happened, where, whose, what was held, how we got here, and what
 * happened before.
 *
 * A panic trusts nothing. Other CPUs are stopped first; no lock is taken; the report is made of
 * parts, and a part that itself fails (a broken list, a bad pointer) is left where it is, and the
 * next one follows. Two CPUs that panic at once: the first one speaks, the other one is stopped.
 */
#include "kernel/cpu/clock.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/log/internal.h"
#include "kernel/log/trace.h"
#include "kernel/sync/atomic.h"
#include "lib/format.h"
#include "lib/string.h"

#define TRACE_EVENTS_SHOWN 24
#define NOBODY             0

static u32 panicking_cpu; /* index + 1; NOBODY */

/* All below is the panicking CPU's alone. */
static char reason[512];
static struct trap_frame frame_copy;
static bool was_trap; /* frame_copy is a whole trap frame; else rip, rbp and cs only */
static unsigned next_part;
static struct panic_section *sections, *next_section;
static const char *unprinted_title; /* of the section that has not said anything yet */

bool panic_in_progress(void)
{
    return atomic_load(&panicking_cpu) != NOBODY;
}

bool panic_is_ours(void)
{
    return atomic_load(&panicking_cpu) == cpu_index() + 1;
}

void panic_add_section(struct panic_section *section)
{
    struct panic_section **link = &sections;

    while (*link)
        link = &(*link)->next;
    section->next = NULL;
    *link = section;
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

/* A section's line; its title goes before the first one, and a section that is silent has none. */
static PRINTF_LIKE(1, 2) void section_line(const char *fmt, ...)
{
    va_list args;

    if (unprinted_title)
        panic_line("%s:", unprinted_title);
    unprinted_title = NULL;
    va_start(args, fmt);
    write_line("  ", fmt, args);
    va_end(args);
}

static void print_what(void)
{
    panic_line(" ");
    panic_line("KERNEL PANIC: %s", reason);
}

static void print_where(void)
{
    u64 now = clock_ns();
    u64 rip = frame_copy.rip;
    char text[SYMBOL_TEXT_BYTES];

    panic_line("at %#018lx (%s), CPU %u of %u, %lu.%06lu s after boot", rip,
               symbol_format(rip, text), cpu_index(), cpu_count(), now / 1000000000,
               now % 1000000000 / 1000);
}

static void print_registers(void)
{
    const struct trap_frame *f = &frame_copy;

    if (was_trap) {
        panic_line("rax %016lx  rbx %016lx  rcx %016lx  rdx %016lx", f->rax, f->rbx, f->rcx,
                   f->rdx);
        panic_line("rsi %016lx  rdi %016lx  rbp %016lx  rsp %016lx", f->rsi, f->rdi, f->rbp,
                   f->rsp);
        panic_line("r8  %016lx  r9  %016lx  r10 %016lx  r11 %016lx", f->r8, f->r9, f->r10, f->r11);
        panic_line("r12 %016lx  r13 %016lx  r14 %016lx  r15 %016lx", f->r12, f->r13, f->r14,
                   f->r15);
        panic_line("cs %04lx  ss %04lx  rflags %08lx  vector %lu (%s)  error %#lx", f->cs, f->ss,
                   f->rflags, f->vector, trap_name(f->vector), f->error);
    }
    panic_line("cr0 %08lx  cr2 %016lx  cr3 %016lx  cr4 %08lx", CPU_READ_CR(0), CPU_READ_CR(2),
               CPU_READ_CR(3), CPU_READ_CR(4));
}

static void print_sections(void)
{
    while (next_section) {
        struct panic_section *section = next_section;
        next_section = section->next; /* first: a section that fails is not printed again */
        unprinted_title = section->title;
        section->print(section_line);
    }
}

static void print_backtrace(void)
{
    panic_line("backtrace:");
    backtrace_print(&frame_copy, panic_line);
}

static void print_trace(void)
{
    trace_print_last(TRACE_EVENTS_SHOWN, panic_line);
}

static void (*const parts[])(void) = {
    print_what, print_where, print_registers, print_sections, print_backtrace, print_trace,
};

/* Goes on with the report, wherever an earlier attempt got stuck. */
NORETURN static void print_report(void)
{
    while (next_part < ARRAY_SIZE(parts)) {
        void (*part)(void) = parts[next_part];
        if (part != print_sections)
            next_part++;
        part();
        if (part == print_sections)
            next_part++;
    }
    panic_line("The machine stops here.");
    machine_end(MACHINE_PANIC, 0);
}

/* A panic while this CPU reports one: one line about it, then the rest of the report. */
NORETURN static PRINTF_LIKE(1, 0) void panic_again(const char *fmt, va_list args)
{
    static unsigned times;
    static char text[200];

    if (++times > ARRAY_SIZE(parts) + 8)
        machine_end(MACHINE_PANIC, 0);
    format_v(text, sizeof text, fmt, args);
    panic_line("  (this part of the report failed: %s)", text);
    print_report();
}

NORETURN static PRINTF_LIKE(3, 0) void panic_v(const struct trap_frame *frame, bool is_trap,
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
    was_trap = is_trap;
    next_section = sections;
    print_report();
}

/* A frame that says only where its function was called. */
static struct trap_frame caller_of(const u64 *own_frame)
{
    /* At the frame pointer lie the caller's, then the return address. */
    return (struct trap_frame){.rip = own_frame[1], .rbp = own_frame[0], .cs = KERNEL_CS};
}

void panic(const char *fmt, ...)
{
    struct trap_frame caller = caller_of(__builtin_frame_address(0));
    va_list args;

    va_start(args, fmt);
    panic_v(&caller, false, fmt, args);
}

void panic_frame(const struct trap_frame *frame, const char *fmt, ...)
{
    struct trap_frame caller = caller_of(__builtin_frame_address(0));
    va_list args;

    va_start(args, fmt);
    panic_v(frame ? frame : &caller, frame != NULL, fmt, args);
}
