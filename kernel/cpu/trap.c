/*
 * What happens between a door (trap.S) and a handler, and on the way back to user mode.
 *
 *   trap_dispatch()            exceptions and interrupts
 *   trap_syscall()             SYSCALL
 *   trap_dispatch_paranoid()   NMI, double fault, machine check: stacks of their own, no hooks
 *
 * Rules: a door is entered and left with interrupts off. Exceptions and system calls turn them on
 * in between (exceptions only where they were on), interrupts do not. Every frame that returns to
 * user mode passes prepare_return_to_user().
 */
#include "kernel/cpu/trap.h"

#include "kernel/cpu/irq.h"
#include "kernel/log/log.h"
#include "kernel/log/report.h"
#include "kernel/sync/lockorder.h"

#define N_EXCEPTIONS 32

#define RFLAGS_ALWAYS_1 (1ul << 1)
#define RFLAGS_TF       (1ul << 8)
#define RFLAGS_RF       (1ul << 16)
/* Carry, parity, adjust, zero, sign, trap, direction, overflow, resume, alignment check, ID. */
#define RFLAGS_USER (0xd5ul | RFLAGS_TF | 1ul << 10 | 1ul << 11 | RFLAGS_RF | 1ul << 18 | 1ul << 21)

#define USER_HALF_END (1ul << 47)

/* Called from trap.S only. */
void trap_dispatch(struct trap_frame *frame);
void trap_dispatch_paranoid(struct trap_frame *frame);
bool trap_syscall(struct trap_frame *frame);
void trap_prepare_user(struct trap_frame *frame);

/* Set while one CPU runs, constant afterwards. */
static trap_handler handlers[N_EXCEPTIONS];
static trap_handler user_exception_hook;
/* These are set before the first program runs. */
static trap_handler syscall_hook;
static bool (*user_return_hook)(struct trap_frame *frame);
static void (*user_exit_hook)(void);

static const char *const exception_names[N_EXCEPTIONS] = {
    [TRAP_DIVIDE] = "divide error",
    [TRAP_DEBUG] = "debug exception",
    [TRAP_NMI] = "non-maskable interrupt",
    [TRAP_BREAKPOINT] = "breakpoint",
    [TRAP_OVERFLOW] = "overflow",
    [TRAP_BOUND] = "bound range exceeded",
    [TRAP_INVALID_OPCODE] = "invalid opcode",
    [TRAP_NO_FPU] = "device not available",
    [TRAP_DOUBLE_FAULT] = "double fault",
    [TRAP_INVALID_TSS] = "invalid TSS",
    [TRAP_NO_SEGMENT] = "segment not present",
    [TRAP_STACK] = "stack fault",
    [TRAP_PROTECTION] = "general protection fault",
    [TRAP_PAGE_FAULT] = "page fault",
    [TRAP_FPU] = "x87 floating-point error",
    [TRAP_ALIGNMENT] = "alignment check",
    [TRAP_MACHINE_CHECK] = "machine check",
    [TRAP_SIMD] = "SIMD floating-point error",
};

void trap_register(unsigned vector, trap_handler handler)
{
    ASSERT(vector < N_EXCEPTIONS);
    handlers[vector] = handler;
}

void trap_set_user_exception(trap_handler handler)
{
    user_exception_hook = handler;
}

void trap_set_syscall(trap_handler handler)
{
    syscall_hook = handler;
}

void trap_set_user_return(bool (*hook)(struct trap_frame *frame))
{
    user_return_hook = hook;
}

void trap_set_user_exit(void (*hook)(void))
{
    user_exit_hook = hook;
}

const char *trap_name(u64 vector)
{
    if (vector == TRAP_VECTOR_SYSCALL)
        return "system call";
    if (vector >= N_EXCEPTIONS)
        return "interrupt";
    return exception_names[vector] ? exception_names[vector] : "reserved exception";
}

/* Two offsets, each relative to itself: the instruction, and where to go on. */
struct fixup_entry {
    s32 instruction, fixup;
};
extern const struct fixup_entry __ex_table_start[], __ex_table_end[];

static const struct fixup_entry *find_fixup(u64 rip)
{
    for (const struct fixup_entry *e = __ex_table_start; e < __ex_table_end; e++)
        if ((u64)&e->instruction + (s64)e->instruction == rip)
            return e;
    return NULL;
}

bool trap_has_fixup(const struct trap_frame *frame)
{
    return find_fixup(frame->rip) != NULL;
}

bool trap_fixup(struct trap_frame *frame)
{
    const struct fixup_entry *e = find_fixup(frame->rip);
    if (!e)
        return false;
    frame->rip = (u64)&e->fixup + (s64)e->fixup;
    return true;
}

/* The CPU could not push a page fault's frame: the stack has run into the page below it. */
static bool is_stack_overflow(const struct trap_frame *frame)
{
    return frame->vector == TRAP_DOUBLE_FAULT && frame->rsp - CPU_READ_CR(2) < PAGE_SIZE;
}

static const char *reason_of(const struct trap_frame *frame)
{
    return frame->error & PF_ERROR_RESERVED  ? "its page table entry is malformed"
           : frame->error & PF_ERROR_PRESENT ? "not allowed there"
                                             : "nothing is mapped there";
}

void trap_die(const struct trap_frame *frame)
{
    const char *mode = trap_from_user(frame) ? "user" : "kernel";

    if (is_stack_overflow(frame))
        panic_report(REPORT_STACK_OVERFLOW, frame, "kernel stack overflow (double fault, rsp %#lx)",
                     frame->rsp);
    if (frame->vector != TRAP_PAGE_FAULT)
        panic_report(REPORT_EXCEPTION, frame, "%s in %s mode, error code %#lx",
                     trap_name(frame->vector), mode, frame->error);
    panic_report(frame->fault_address < PAGE_SIZE ? REPORT_NULL_POINTER : REPORT_BAD_POINTER, frame,
                 "%s mode %s %#lx: %s (page fault, error code %#lx)", mode,
                 frame->error & PF_ERROR_EXEC    ? "executed"
                 : frame->error & PF_ERROR_WRITE ? "wrote to"
                                                 : "read from",
                 frame->fault_address, reason_of(frame), frame->error);
}

/* A kernel address is served by nobody; and in a panic nothing is. */
static bool is_for_fixup_only(const struct trap_frame *frame)
{
    return !trap_from_user(frame) && frame->vector == TRAP_PAGE_FAULT &&
           (frame->fault_address >= USER_HALF_END || panic_in_progress());
}

static void handle_exception(struct trap_frame *frame)
{
    if (frame->vector == TRAP_PAGE_FAULT)
        frame->fault_address = CPU_READ_CR(2);
    if (is_for_fixup_only(frame) && trap_fixup(frame))
        return;
    if (frame->rflags & RFLAGS_IF)
        irq_enable();
    if (handlers[frame->vector])
        handlers[frame->vector](frame);
    else if (trap_from_user(frame) && user_exception_hook)
        user_exception_hook(frame);
    else if (trap_from_user(frame) || !trap_fixup(frame))
        trap_die(frame);
    irq_disable();
}

bool trap_frame_sanitise(struct trap_frame *frame)
{
    frame->cs = USER_CS;
    frame->ss = USER_SS;
    frame->rflags = (frame->rflags & RFLAGS_USER) | RFLAGS_ALWAYS_1 | RFLAGS_IF;
    return frame->rip < USER_HALF_END;
}

bool trap_sysret_is_safe(const struct trap_frame *frame)
{
    return frame->rcx == frame->rip && frame->r11 == frame->rflags && frame->rip < USER_HALF_END &&
           frame->cs == USER_CS && frame->ss == USER_SS &&
           (frame->rflags & (RFLAGS_IF | RFLAGS_TF | RFLAGS_RF)) == RFLAGS_IF;
}

/*
 * A frame whose rip cannot be a program's is a protection fault of the program, not of the kernel's
 * IRET.
 */
static void raise_protection_fault(struct trap_frame *frame)
{
    frame->vector = TRAP_PROTECTION;
    frame->error = 0;
    if (!user_exception_hook)
        trap_die(frame);
    user_exit_hook();
    irq_enable();
    user_exception_hook(frame);
    irq_disable();
}

static void prepare_return_to_user(struct trap_frame *frame)
{
    for (;;) {
        while (user_return_hook(frame))
            ;
        if (trap_frame_sanitise(frame))
            break;
        raise_protection_fault(frame);
    }
    lockorder_user_return();
}

void trap_prepare_user(struct trap_frame *frame)
{
    ASSERT(!irqs_are_on());
    prepare_return_to_user(frame);
}

void trap_dispatch(struct trap_frame *frame)
{
    bool from_user = trap_from_user(frame);

    if (from_user)
        user_exit_hook();
    if (frame->vector < N_EXCEPTIONS) {
        handle_exception(frame);
    } else {
        this_cpu()->irq_depth++;
        irq_dispatch(frame->vector);
        this_cpu()->irq_depth--;
    }
    if (from_user)
        prepare_return_to_user(frame);
}

void trap_dispatch_paranoid(struct trap_frame *frame)
{
    if (handlers[frame->vector])
        handlers[frame->vector](frame);
    else
        trap_die(frame);
}

/* => whether SYSRET may bring the frame back */
bool trap_syscall(struct trap_frame *frame)
{
    user_exit_hook();
    irq_enable();
    syscall_hook(frame);
    irq_disable();
    prepare_return_to_user(frame);
    return trap_sysret_is_safe(frame);
}
