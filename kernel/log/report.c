/*
 * The form of a report: parts, their titles, the sections in them, and the advice at the end. See
 * report.h.
 */
#include "kernel/log/report.h"

#include "kernel/cpu/clock.h"
#include "kernel/cpu/trap.h"
#include "kernel/log/internal.h"
#include "kernel/log/trace.h"
#include "lib/format.h"

#define TRACE_EVENTS_SHOWN 24
#define NS_PER_SECOND      1000000000ul
#define NS_PER_MICROSECOND 1000ul

static const char *const part_titles[REPORT_PARTS] = {
    [REPORT_WHAT] = "what", [REPORT_WHERE] = "where",         [REPORT_WHOSE] = "whose",
    [REPORT_HELD] = "held", [REPORT_WAY] = "how we got here", [REPORT_TRY] = "what to try",
};

static const struct {
    const char *title;
    const char *advice[4];
} kinds[REPORT_KINDS] = {
    [REPORT_PANIC] =
        {"KERNEL PANIC",
         {"Read the code named first under \"how we got here\": what it asks for did not hold.",
          "make gdb PROG=\"...\", a breakpoint there, then bt and fl tasks: docs/gdb.md"}},
    [REPORT_NULL_POINTER] =
        {"KERNEL OOPS",
         {"A pointer was NULL, and the address is the offset of the field that was wanted: find it",
          "in the structure that the function works on (gdb: ptype /o struct NAME).",
          "The register that is 0, or nearly, was the pointer: who should have set or checked "
          "it?"}},
    [REPORT_BAD_POINTER] =
        {"KERNEL OOPS",
         {"Compare the address with the registers: the one nearest to it held the pointer.",
          "Was it ever set? Is its object freed? gdb: fl pte ADDR shows what is mapped there.",
          "Memory of a program must be touched by mm/user_memory.h."}},
    [REPORT_EXCEPTION] =
        {"KERNEL OOPS",
         {"A general protection fault is mostly an address that no pointer can have: look for one",
          "among the registers. 6b6b6b6b... is the poison of freed memory: used after the free."}},
    [REPORT_STACK_OVERFLOW] =
        {"KERNEL STACK OVERFLOW",
         {"A function that comes many times calls itself: what should have ended that?",
          "One that comes once may have a large array: kmalloc() in mm/core/slab.h."}},
    [REPORT_LOCK_ORDER] =
        {"LOCK ORDER INVERTED",
         {"Two tasks that go these two ways at once wait for each other for ever. One of the ways",
          "must take its locks in the other order, or let one go before it takes the next.",
          "The documented order, outer to inner, is the tree in docs/locking.md."}},
    [REPORT_LOCK_RULE] =
        {"LOCK RULE BROKEN",
         {"docs/locking.md, \"The checker\", has the rules. What this place clashes with stands",
          "under \"what\". A lock that an interrupt takes needs spin_lock_irq() everywhere; nobody",
          "sleeps with a spinlock held."}},
    [REPORT_FREED_MEMORY] =
        {"MEMORY MISUSE",
         {"Who freed it stands above: who else had a pointer then, and why no reference of its "
          "own?",
          "gdb: watch the bytes named above, then continue; or make replay, fl who-wrote ADDR."}},
    [REPORT_FATAL_SIGNAL] = {"PROGRAM ENDED", {NULL}}, /* by signal: kernel/task/fatal_report.c */
    [REPORT_HUNG_TASK] =
        {"TASK HANGS",
         {"make gdb-attach, then fl bt PID (where it waits), fl locks (who holds what) and",
          "fl disk (requests under way). If its holder waits too, follow the chain.",
          "A gate that holds requests looks like this, too: docs/block.md"}},
};

/* Grows at boot only, while one CPU runs. */
static struct report_section *sections;

void report_add_section(struct report_section *section)
{
    struct report_section **link = &sections;

    while (*link)
        link = &(*link)->next;
    section->next = NULL;
    *link = section;
}

/* ---- What this room has to say itself ------------------------------------------------------- */

static void print_depth(const struct report *r)
{
    u64 function = 0, offset;
    unsigned times = 0, depth = backtrace_depth(r->frame, &function, &times);
    const char *name = symbol_find(function, &offset);

    r->line("%u functions deep; %s is there %u time%s", depth, name ? name : "?", times,
            times == 1 ? "" : "s");
}

const char *report_register(const struct report *r, unsigned n, u64 *value)
{
#define REGISTER(name)                           \
    {                                            \
#name, offsetof(struct trap_frame, name) \
    }
    static const struct {
        const char *name;
        size_t offset;
    } registers[] = {
        REGISTER(rax), REGISTER(rbx), REGISTER(rcx), REGISTER(rdx), REGISTER(rsi),
        REGISTER(rdi), REGISTER(rbp), REGISTER(r8),  REGISTER(r9),  REGISTER(r10),
        REGISTER(r11), REGISTER(r12), REGISTER(r13), REGISTER(r14), REGISTER(r15),
    };
#undef REGISTER
    if (!r->has_registers || n >= ARRAY_SIZE(registers))
        return NULL;
    *value = *(const u64 *)((const char *)r->frame + registers[n].offset);
    return registers[n].name;
}

/* A general protection fault does not tell the address; a register may. */
static void print_impossible_pointers(const struct report *r)
{
    const char *name;
    u64 value;

    for (unsigned n = 0; (name = report_register(r, n, &value)) != NULL; n++)
        if (value + (1ul << 47) >= 1ul << 48)
            r->line("%s is %#lx: no address, since bits 47 to 63 differ", name, value);
}

static void print_what(const struct report *r)
{
    r->line("%s", r->reason);
    if (r->kind == REPORT_STACK_OVERFLOW)
        print_depth(r);
    if (r->kind == REPORT_EXCEPTION && r->frame->vector == TRAP_PROTECTION)
        print_impossible_pointers(r);
}

static void print_registers(const struct trap_frame *f, report_line line)
{
    line("rax %016lx  rbx %016lx  rcx %016lx  rdx %016lx", f->rax, f->rbx, f->rcx, f->rdx);
    line("rsi %016lx  rdi %016lx  rbp %016lx  rsp %016lx", f->rsi, f->rdi, f->rbp, f->rsp);
    line("r8  %016lx  r9  %016lx  r10 %016lx  r11 %016lx", f->r8, f->r9, f->r10, f->r11);
    line("r12 %016lx  r13 %016lx  r14 %016lx  r15 %016lx", f->r12, f->r13, f->r14, f->r15);
    line("cs %04lx  ss %04lx  rflags %08lx  vector %lu (%s)  error %#lx", f->cs, f->ss, f->rflags,
         f->vector, trap_name(f->vector), f->error);
}

static void print_where(const struct report *r)
{
    u64 now = clock_ns();
    char text[SYMBOL_TEXT_BYTES];

    if (r->kind == REPORT_HUNG_TASK) {
        r->line("asleep at %#018lx (%s), seen %lu.%06lu s after boot", r->frame->rip,
                symbol_format(r->frame->rip, text), now / NS_PER_SECOND,
                now % NS_PER_SECOND / NS_PER_MICROSECOND);
        return;
    }

    r->line("at %#018lx (%s), CPU %u of %u, %lu.%06lu s after boot", r->frame->rip,
            symbol_format(r->frame->rip, text), cpu_index(), cpu_count(), now / NS_PER_SECOND,
            now % NS_PER_SECOND / NS_PER_MICROSECOND);
    if (r->has_registers)
        print_registers(r->frame, r->line);
    if (r->kind < REPORT_FATAL_SIGNAL)
        r->line("cr0 %08lx  cr2 %016lx  cr3 %016lx  cr4 %08lx", CPU_READ_CR(0), CPU_READ_CR(2),
                CPU_READ_CR(3), CPU_READ_CR(4));
}

static void print_way(const struct report *r)
{
    if (r->kind != REPORT_FATAL_SIGNAL)
        backtrace_print(r->frame, r->line);
}

static void print_events(const struct report *r, report_line line)
{
    (void)r;
    trace_print_last(TRACE_EVENTS_SHOWN, line);
}

static void print_advice(const struct report *r)
{
    for (unsigned i = 0; i < ARRAY_SIZE(kinds[r->kind].advice); i++)
        if (kinds[r->kind].advice[i])
            r->line("%s", kinds[r->kind].advice[i]);
}

static void (*const own_words[REPORT_PARTS])(const struct report *r) = {
    [REPORT_WHAT] = print_what,
    [REPORT_WHERE] = print_where,
    [REPORT_WAY] = print_way,
    [REPORT_TRY] = print_advice,
};

/* Behind all other sections of its part, whoever registers when. */
static struct report_section events_section = {REPORT_WAY, REPORT_OF_PANICS, print_events, NULL};

/* ---- All of it ------------------------------------------------------------------------------ */

/* => the n-th section for this part, or NULL */
static const struct report_section *section_of(const struct report *r, unsigned n)
{
    for (const struct report_section *s = sections; s; s = s->next)
        if (s->part == r->part && s->kinds & REPORT_KIND_BIT(r->kind) && n-- == 0)
            return s;
    return n == 0 && r->part == events_section.part &&
                   events_section.kinds & REPORT_KIND_BIT(r->kind)
               ? &events_section
               : NULL;
}

/* One step: the title and our own words, then section by section. => false: the part is over */
static bool print_step(struct report *r)
{
    unsigned step = r->step++; /* first: a step that fails is not taken again */

    if (step == 0) {
        r->heading("%s:", part_titles[r->part]);
        if (own_words[r->part])
            own_words[r->part](r);
        return true;
    }
    const struct report_section *section = section_of(r, step - 1);
    if (section)
        section->print(r, r->line);
    return section != NULL;
}

void report_print(struct report *r)
{
    if (r->part == 0 && r->step == 0)
        r->heading("==== %s ====", kinds[r->kind].title);
    for (; r->part < REPORT_PARTS; r->part++, r->step = 0)
        while (print_step(r))
            ;
}

void report_log_heading(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    log_write_v(LOG_WARN, fmt, args);
    va_end(args);
}

void report_log_line(const char *fmt, ...)
{
    char text[256];
    va_list args;

    va_start(args, fmt);
    format_v(text, sizeof(text), fmt, args);
    va_end(args);
    log_warn("  %s", text);
}
