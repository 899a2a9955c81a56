/*
 * What a program's mistake becomes: a signal with its place and reason, for a handler to take; or the end of the program,
 * and a report in the log that says what happened.
 *
 * Codes are those of sigaction(2), addresses exact: of a page fault the byte that was touched, of an exception the
 * instruction, or 0 where the CPU does not tell (#GP and its like: SI_KERNEL).
 */
#include "kernel/cpu/trap.h"
#include "kernel/log/log.h"
#include "kernel/task/fatal_report.h"
#include "kernel/task/process.h"
#include "kernel/task/signal.h"

/* ---- Bad accesses ---------------------------------------------------------------------------- */

/* Execute-only memory is refused by its protection key, whatever the page table would say. */
static bool is_refused_by_key(struct mm *mm, u64 addr, enum fault_access access)
{
    if (!cpu_features.pku || access == FAULT_EXEC)
        return false;
    rwsem_read_lock(&mm->mmap_lock);
    struct vma *vma = vma_find(mm, addr);
    bool is_execute_only = vma && vma->prot == PROT_EXEC;
    rwsem_read_unlock(&mm->mmap_lock);
    return is_execute_only;
}

static s32 access_code(struct mm *mm, enum fault_result result, u64 addr, enum fault_access access)
{
    switch (result) {
    case FAULT_SIGBUS_ADRERR: return BUS_ADRERR;
    case FAULT_SIGSEGV_ACCERR:
        return is_refused_by_key(mm, addr, access) ? SEGV_PKUERR : SEGV_ACCERR;
    default: return SEGV_MAPERR;
    }
}

/* Will the program take it? Else it ends: signal_force_fault() decides, a moment later. */
static bool is_handled(u32 signal)
{
    return !(thread_current()->signals->mask & signal_bit(signal)) &&
           signal_action_get(process_current(), signal).handler > SIGNAL_IGNORE;
}

void fatal_bad_access(struct trap_frame *frame, enum fault_result result, u64 addr,
                      enum fault_access access)
{
    struct process *process = process_current();
    if (result == FAULT_KILLED)
        return; /* it ends on the way to user mode */
    if (result == FAULT_OOM) {
        log_warn("process %u (%s): %s, at %#lx, instruction %#lx", process->pid, process->name,
                 fault_result_name(result), addr, frame->rip);
        process_exit_signal(SIGKILL);
    }
    u32 signal = result == FAULT_SIGBUS_ADRERR ? SIGBUS : SIGSEGV;
    s32 code = access_code(process->mm, result, addr, access);
    struct fatal_cause cause = {
        .signal = signal, .code = code, .has_access = true, .addr = addr, .access = access};
    if (!is_handled(signal))
        fatal_report(frame, &cause);
    signal_force_fault(frame, signal, code, addr);
}

void fatal_no_signal_frame(struct trap_frame *frame)
{
    struct fatal_cause cause = {.signal = SIGSEGV,
                                .has_access = true,
                                .addr = frame->rsp - sizeof(u64),
                                .access = FAULT_WRITE,
                                .words = "no room for the frame of a signal's handler"};
    if (!is_handled(SIGSEGV))
        fatal_report(frame, &cause);
    signal_force_fault(frame, SIGSEGV, SI_KERNEL, 0);
}

/* ---- Exceptions ------------------------------------------------------------------------------ */

/* Flags of x87 status word and MXCSR, in the order in which the first that is set and not masked gives the code. */
static const struct {
    u32 flags;
    s32 code;
} float_codes[] = {
    {0x01, FPE_FLTINV}, {0x04, FPE_FLTDIV}, {0x08, FPE_FLTOVF},
    {0x12, FPE_FLTUND}, {0x20, FPE_FLTRES},
};

static s32 float_code(u32 unmasked)
{
    for (unsigned i = 0; i < ARRAY_SIZE(float_codes); i++)
        if (unmasked & float_codes[i].flags)
            return float_codes[i].code;
    return FPE_FLTINV;
}

/* The program's x87 and SSE registers are in the CPU while it is served (Intel SDM vol. 1, 8.1.3, 8.1.5). */
static s32 code_of_x87(void)
{
    u16 status, control;
    __asm__ volatile("fnstsw %0\n\tfnstcw %1" : "=m"(status), "=m"(control));
    return float_code(status & ~control & 0x3f);
}

#define MXCSR_MASK_SHIFT 7

static s32 code_of_simd(void)
{
    u32 mxcsr;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    return float_code(mxcsr & ~(mxcsr >> MXCSR_MASK_SHIFT) & 0x3f);
}

#define DR6_SINGLE_STEP (1ul << 14)
#define DR6_CLEAR       0xffff0ff0ul

static s32 code_of_debug(void)
{
    u64 dr6, clear = DR6_CLEAR;
    __asm__ volatile("movq %%dr6, %0\n\tmovq %1, %%dr6" : "=&r"(dr6) : "r"(clear));
    return dr6 & DR6_SINGLE_STEP ? TRAP_TRACE : TRAP_BRKPT;
}

static const struct exception {
    u8 vector, signal;
    bool has_address; /* the instruction's */
    s32 code;
    s32 (*find_code)(void); /* NULL: code */
} exceptions[] = {
    {TRAP_DIVIDE, SIGFPE, true, FPE_INTDIV, NULL},
    {TRAP_DEBUG, SIGTRAP, true, 0, code_of_debug},
    {TRAP_BREAKPOINT, SIGTRAP, false, SI_KERNEL, NULL},
    {TRAP_OVERFLOW, SIGSEGV, false, SI_KERNEL, NULL},
    {TRAP_BOUND, SIGSEGV, false, SI_KERNEL, NULL},
    {TRAP_INVALID_OPCODE, SIGILL, true, ILL_ILLOPN, NULL},
    {TRAP_NO_SEGMENT, SIGBUS, false, SI_KERNEL, NULL},
    {TRAP_STACK, SIGBUS, false, SI_KERNEL, NULL},
    {TRAP_PROTECTION, SIGSEGV, false, SI_KERNEL, NULL},
    {TRAP_FPU, SIGFPE, true, 0, code_of_x87},
    {TRAP_ALIGNMENT, SIGBUS, false, BUS_ADRALN, NULL},
    {TRAP_SIMD, SIGFPE, true, 0, code_of_simd},
};

static struct exception exception_of(u64 vector)
{
    for (unsigned i = 0; i < ARRAY_SIZE(exceptions); i++)
        if (exceptions[i].vector == vector)
            return exceptions[i];
    return (struct exception){vector, SIGSEGV, false, SI_KERNEL, NULL};
}

void fatal_exception(struct trap_frame *frame)
{
    struct exception e = exception_of(frame->vector);
    s32 code = e.find_code ? e.find_code() : e.code;
    struct fatal_cause cause = {.signal = e.signal, .code = code};
    if (!is_handled(e.signal))
        fatal_report(frame, &cause);
    signal_force_fault(frame, e.signal, code, e.has_address ? frame->rip : 0);
}
