/*
 * Reports: what the kernel says when something has died, always with the same parts in the same
 * order:
 *
 *     what             one sentence; more lines where the kind knows more
 *     where            the instruction, the CPU, the time, the registers
 *     whose            the task, its stack, its fault; in a panic also who ran on the other CPUs
 *     held             the locks it holds
 *     how we got here  the functions on the way, down to the program's
 *     what to try      next steps, by the kind of report
 *
 * The text of a part is made by sections, which rooms add for themselves, so this room knows
 * nothing of tasks, locks or memory. Rules for a section: no lock that may be held by who died, no
 * memory asked for, no sleep, interrupts may be off, on any CPU; of tasks only r->task. (Those of
 * REPORT_FATAL_SIGNAL run in the dying program and may sleep.)
 */
#ifndef KERNEL_LOG_REPORT_H
#define KERNEL_LOG_REPORT_H

#include "lib/types.h"

struct task;
struct trap_frame;

enum report_kind {
    REPORT_PANIC,          /* the kernel has found that something is wrong */
    REPORT_NULL_POINTER,   /* the kernel touched an address in the first page */
    REPORT_BAD_POINTER,    /* or another one that is not its own */
    REPORT_EXCEPTION,      /* any other exception in kernel mode */
    REPORT_STACK_OVERFLOW, /* a kernel stack has run into its guard */
    REPORT_LOCK_ORDER,     /* two orders of the same locks */
    REPORT_LOCK_RULE,      /* the lock checker's other rules */
    REPORT_FREED_MEMORY,   /* memory was used after it was freed, or past its end */
    REPORT_FATAL_SIGNAL,   /* a program ends by its own mistake; the kernel goes on */
    REPORT_HUNG_TASK,      /* a task waits for too long; the kernel goes on */
    REPORT_KINDS,
};

#define REPORT_KIND_BIT(kind) (1u << (kind))
#define REPORT_OF_ALL         ((1u << REPORT_KINDS) - 1)
/* The kernel ends: other CPUs stand still. */
#define REPORT_OF_PANICS (REPORT_KIND_BIT(REPORT_FATAL_SIGNAL) - 1)

enum report_part {
    REPORT_WHAT,
    REPORT_WHERE,
    REPORT_WHOSE,
    REPORT_HELD,
    REPORT_WAY,
    REPORT_TRY,
    REPORT_PARTS,
};

/* Writes one line; the newline is added. */
typedef void (*report_line)(const char *fmt, ...);

struct report {
    enum report_kind kind;
    const char *reason;             /* the first line of `what` */
    const struct trap_frame *frame; /* where; rip and rbp at least */
    bool has_registers;             /* the rest of it, too */
    struct task *task;              /* whose; NULL where there are no tasks yet */
    const void *context;            /* of who reports, for its own sections */
    report_line heading, line;      /* where it goes: a title, and a line below it */
    unsigned part, step;            /* what comes next: a report may be taken up again */
};

struct report_section {
    enum report_part part;
    u32 kinds; /* REPORT_KIND_BIT; REPORT_OF_ALL */
    void (*print)(const struct report *r, report_line line);
    struct report_section *next;
};

/* In a part, sections follow each other in the order of their registration. At boot, one CPU. */
void report_add_section(struct report_section *section);

/*
 * Prints all parts, or those that are still to come: what was begun and not ended (its section
 * failed) is passed over. => r->part is REPORT_PARTS
 */
void report_print(struct report *r);

/* The n-th general register of a report that has them. => its name; NULL behind the last */
const char *report_register(const struct report *r, unsigned n, u64 *value);

/* r->heading and r->line for what goes into the log (and a panic has its own). */
void report_log_heading(const char *fmt, ...) PRINTF_LIKE(1, 2);
void report_log_line(const char *fmt, ...) PRINTF_LIKE(1, 2);

/*
 * The way here from the return address `from` outwards, as return addresses (text lies in the upper
 * 2 GiB, so 32 bits name them), the rest of `places` untouched. For what wants to remember a stack.
 * Any context. => how many; 0 where `from` is none on the way
 */
unsigned backtrace_take(u64 from, u32 *places, unsigned max);
void backtrace_print_taken(const u32 *places, unsigned n, report_line line); /* up to a zero */

/* Whether a function on the way here returns to that address; *rbp is its frame pointer then (may be NULL). */
bool backtrace_has(u64 return_address, u64 *rbp);

/* As panic_frame(), for a kind that has its own advice. */
NORETURN void panic_report(enum report_kind kind, const struct trap_frame *frame, const char *fmt,
                           ...) PRINTF_LIKE(3, 4);

/*
 * The same; the report begins with the function that will be returned to at `place`: who called the
 * checks that found something. Where that is none on the way here: with the caller.
 */
NORETURN void panic_at(enum report_kind kind, u64 place, const char *fmt, ...) PRINTF_LIKE(3, 4);

#endif
