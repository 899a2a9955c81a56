/*
 * The report of a program that ends by its own mistake: kernel/log/report.h, filled in with signals,
 * areas and the program's functions.
 */
#include "kernel/task/fatal_report.h"

#include "kernel/cpu/clock.h"
#include "kernel/log/report.h"
#include "kernel/sync/atomic.h"
#include "kernel/task/process.h"
#include "kernel/task/signal.h"
#include "kernel/task/user_way.h"
#include "lib/format.h"
#include "lib/string.h"

#define NS_PER_SECOND    1000000000ul
#define REPORTS_AT_ONCE  8 /* then one a second */
#define NEAR_STACK_BYTES (16ul << 20)

/* ---- Names ----------------------------------------------------------------------------------- */

/* Signals that say that a program has made a mistake: where signal(7) has "Core". */
static const struct signal_words {
    u32 signal;
    const char *name, *advice;
} signal_words[] = {
    {SIGILL, "SIGILL",
     "No instruction of this CPU: a jump to where no code is, or __builtin_trap()."},
    {SIGTRAP, "SIGTRAP", "A breakpoint instruction, and no debugger."},
    {SIGABRT, "SIGABRT", "abort() was called, perhaps by assert(): its stderr may say why."},
    {SIGBUS, "SIGBUS",
     "Is the mapping longer than its file, or the file shorter by now? fstat() tells."},
    {SIGFPE, "SIGFPE",
     "A division by zero, or of the smallest number by -1: look at the registers."},
    {SIGSEGV, "SIGSEGV",
     "Compare the address with the registers: the one nearest to it was the pointer."},
    {SIGSYS, "SIGSYS", "A system call that is not allowed."},
};

static const struct signal_words *words_of(u32 signal)
{
    for (unsigned i = 0; i < ARRAY_SIZE(signal_words); i++)
        if (signal_words[i].signal == signal)
            return &signal_words[i];
    return NULL;
}

static const struct code_words {
    u32 signal;
    s32 code;
    const char *words;
} code_words[] = {
    {SIGSEGV, SEGV_MAPERR, "not mapped"},
    {SIGSEGV, SEGV_PKUERR, "memory that may only be executed"},
    {SIGSEGV, SI_KERNEL, "a privileged instruction, or an address that none can be"},
    {SIGBUS, BUS_ADRALN, "not aligned"},
    {SIGILL, ILL_ILLOPN, "no instruction of this CPU"},
    {SIGFPE, FPE_INTDIV, "integer division by zero, or a result too large"},
    {SIGFPE, FPE_FLTDIV, "floating-point division by zero"},
    {SIGTRAP, SI_KERNEL, "int3"},
};

/* ---- What ------------------------------------------------------------------------------------ */

static const char *access_name(enum fault_access access)
{
    return access == FAULT_WRITE ? "write to" : access == FAULT_EXEC ? "execution of" : "read of";
}

static const char *denied_name(enum fault_access access)
{
    return access == FAULT_WRITE  ? "mapped, but not writable"
           : access == FAULT_EXEC ? "mapped, but not executable"
                                  : "mapped, but not readable";
}

static const char *code_name(const struct fatal_cause *cause)
{
    if (cause->words)
        return cause->words;
    if (cause->signal == SIGSEGV && cause->code == SEGV_ACCERR)
        return denied_name(cause->access);
    if (cause->signal == SIGBUS && cause->code == BUS_ADRERR)
        return "mapped, but there is no such page";
    for (unsigned i = 0; i < ARRAY_SIZE(code_words); i++)
        if (code_words[i].signal == cause->signal && code_words[i].code == cause->code)
            return code_words[i].words;
    return "";
}

static void format_reason(const struct trap_frame *frame, const struct fatal_cause *cause,
                          char *text, size_t size)
{
    const struct process *process = process_current();
    const struct signal_words *words = words_of(cause->signal);
    size_t used = 0;

    format_append(text, size, &used, "process %u (%s): %s: ", process->pid, process->name,
                  words ? words->name : "a fatal signal");
    if (cause->has_access)
        format_append(text, size, &used, "%s %#lx at instruction %#lx: %s",
                      access_name(cause->access), cause->addr, frame->rip, code_name(cause));
    else
        format_append(text, size, &used, "at instruction %#lx: %s", frame->rip, code_name(cause));
}

static void print_area(const char *where, struct vma *vma, report_line line)
{
    char text[200];
    int len = vma_format_maps_line(vma, text, sizeof(text));

    if (len > 0 && text[len - 1] == '\n')
        text[len - 1] = '\0';
    line("%s: %s", where, text);
}

/* mmap_lock held. */
static void print_neighbours_locked(struct mm *mm, u64 addr, report_line line)
{
    struct vma *below = NULL, *vma = vma_find_from(mm, 0);
    char where[64];

    for (; vma && vma->end <= addr; vma = vma_find_from(mm, vma->end))
        below = vma;
    if (below) {
        format_to(where, sizeof(where), "below, %#lx bytes away", addr - below->end);
        print_area(where, below, line);
    }
    if (vma) {
        format_to(where, sizeof(where), "above, %#lx bytes away", vma->start - addr);
        print_area(where, vma, line);
    }
    if (vma && vma->flags & VMA_GROWSDOWN && vma->start - addr < NEAR_STACK_BYTES)
        line("the stack would have to grow there, and may not (ulimit -s): recursion without end?");
}

static void print_file_end(const struct vma *vma, u64 addr, report_line line)
{
    u64 size = READ_ONCE(vma->file->cache->size_bytes);
    u64 page = vma->pgoff + ((addr - vma->start) >> PAGE_SHIFT);

    if (page << PAGE_SHIFT >= size)
        line("page %lu of the file lies behind its end: it has %lu bytes", page, size);
    else
        line("page %lu of the file could not be read", page);
}

static void print_place(const struct report *r, report_line line)
{
    const struct fatal_cause *cause = r->context;
    struct mm *mm = process_current()->mm;

    if (!cause->has_access)
        return;
    if (cause->addr >= USER_ADDRESS_END) {
        line("%#lx belongs to the kernel", cause->addr);
        return;
    }
    if (cause->addr < PAGE_SIZE)
        line("%#lx is in the first page: a NULL pointer, or a small offset from one", cause->addr);
    rwsem_read_lock(&mm->mmap_lock);
    struct vma *vma = vma_find(mm, cause->addr);
    if (vma)
        print_area("there", vma, line);
    else
        print_neighbours_locked(mm, cause->addr, line);
    if (vma && vma->file && cause->signal == SIGBUS)
        print_file_end(vma, cause->addr, line);
    rwsem_read_unlock(&mm->mmap_lock);
}

/* ---- Where, whose, the way, what to try ------------------------------------------------------- */

static void print_function(const struct report *r, report_line line)
{
    char text[USER_PLACE_BYTES];

    line("in %s", user_place_format(r->frame->rip, text));
}

/* In panics too: fields only. */
static void print_process(const struct report *r, report_line line)
{
    const struct process *process = r->task ? r->task->process : NULL;

    if (process)
        line("process %u \"%s\", %s, %u thread%s, child of %u", process->pid, process->name,
             process->exe_path, process->n_threads, process->n_threads == 1 ? "" : "s",
             process->parent ? process->parent->pid : 0);
}

static void print_advice(const struct report *r, report_line line)
{
    const struct fatal_cause *cause = r->context;
    const struct signal_words *words = words_of(cause->signal);

    if (words)
        line("%s", words->advice);
    line(
        "make gdb PROG=\"...\", then fl user PROGRAM and a breakpoint at the function named first: "
        "docs/gdb.md");
}

#define FATAL REPORT_KIND_BIT(REPORT_FATAL_SIGNAL)

static struct report_section sections[] = {
    {REPORT_WHAT, FATAL, print_place, NULL},
    {REPORT_WHERE, FATAL, print_function, NULL},
    {REPORT_WHOSE, REPORT_OF_ALL, print_process, NULL},
    {REPORT_WAY, FATAL, user_way_print, NULL},
    {REPORT_TRY, FATAL, print_advice, NULL},
};

void fatal_report_init(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(sections); i++)
        report_add_section(&sections[i]);
}

/* ---- When ------------------------------------------------------------------------------------ */

static u32 is_reporting; /* 1: somebody writes one; no lock, since nobody waits for it */

/* Tokens: some at once, then one a second. is_reporting is ours */
static bool has_token(void)
{
    static u64 tokens = REPORTS_AT_ONCE, last_ns;
    u64 seconds = (clock_ns() - last_ns) / NS_PER_SECOND;

    if (seconds > 0) {
        tokens = MIN(tokens + seconds, (u64)REPORTS_AT_ONCE);
        last_ns += seconds * NS_PER_SECOND;
    }
    if (tokens == 0)
        return false;
    tokens--;
    return true;
}

void fatal_report(const struct trap_frame *frame, const struct fatal_cause *cause)
{
    char reason[256];
    format_reason(frame, cause, reason, sizeof(reason));
    bool is_ours = atomic_exchange(&is_reporting, 1) == 0;
    if (!is_ours || !has_token()) {
        log_warn("%s", reason);
    } else {
        struct report report = {
            .kind = REPORT_FATAL_SIGNAL,
            .reason = reason,
            .frame = frame,
            .has_registers = true,
            .task = task_current(),
            .context = cause,
            .heading = report_log_heading,
            .line = report_log_line,
        };
        report_print(&report);
    }
    if (is_ours)
        atomic_store(&is_reporting, 0);
}

void fatal_note_own_signal(u32 signal, u32 tid)
{
    struct thread *me = thread_current();
    struct fatal_cause cause = {.signal = signal, .words = "sent by the program to itself"};

    if (words_of(signal) && tid == me->tid && !(me->signals->mask & signal_bit(signal)) &&
        signal_action_get(me->process, signal).handler == SIGNAL_DEFAULT)
        fatal_report(me->frame, &cause);
}
