/*
 * Between the processor and the restart loop: the #PF handler, and what a fault that ended badly turns into.
 *
 *   program's access            a signal (kernel/task fills it in), described by address, access and VMA
 *   kernel's access for it      the exception table's fixup: a short copy or EFAULT
 *   anything else               a bug of ours: panic
 */
#include "kernel/cpu/trap.h"
#include "kernel/log/log.h"
#include "kernel/log/report.h"
#include "kernel/log/trace.h"
#include "kernel/sched/task.h"
#include "mm/fault_internal.h"
#include "mm/reclaim.h"

#define RECLAIM_FOR_FAULT_PAGES 32

static void (*signal_program)(struct trap_frame *frame, enum fault_result result, u64 addr,
                              enum fault_access access);
static bool (*end_a_program)(void);

bool fault_memory_was_freed(struct fault *f)
{
    (void)f;
    if (task_kill_is_pending(task_current()))
        return false;
    if (reclaim_pages(RECLAIM_FOR_FAULT_PAGES) > 0)
        return true;
    return end_a_program && end_a_program();
}

static enum fault_access access_of(u64 error)
{
    return error & PF_ERROR_EXEC ? FAULT_EXEC : error & PF_ERROR_WRITE ? FAULT_WRITE : FAULT_READ;
}

NORETURN static void kernel_bug(const struct trap_frame *frame)
{
    if (kernel_stack_guard_hit(frame->fault_address))
        panic_report(REPORT_STACK_OVERFLOW, frame, "kernel stack overflow: guard page at %#lx %s",
                     frame->fault_address, frame->error & PF_ERROR_WRITE ? "written" : "read");
    trap_die(frame);
}

/* The kernel touched user memory for the current program, by one of the instructions that may fault. */
static void serve_kernel_access(struct trap_frame *frame, struct task *task, u64 addr)
{
    bool may_serve = task->mm && !task->pagefault_disabled && (frame->rflags & RFLAGS_IF) &&
                     addr < USER_ADDRESS_END;
    if (may_serve && fault_user(task->mm, addr, access_of(frame->error), 0) == FAULT_DONE)
        return;
    trap_fixup(frame);
}

static void page_fault_trap(struct trap_frame *frame)
{
    u64 addr = frame->fault_address;
    struct task *task = task_current();

    if (frame->error & PF_ERROR_RESERVED)
        panic_frame(frame, "page tables are corrupt at address %lx", addr);
    if (!trap_from_user(frame)) {
        TRACE(page_fault_kernel, .address = addr, .ip = frame->rip, .error_code = frame->error);
        if (!trap_has_fixup(frame))
            kernel_bug(frame);
        serve_kernel_access(frame, task, addr);
        return;
    }
    TRACE(page_fault_user, .address = addr, .ip = frame->rip, .error_code = frame->error);
    enum fault_access access = access_of(frame->error);
    enum fault_result result = fault_user(task->mm, addr, access, FAULT_FLAG_USER);
    if (result != FAULT_DONE)
        signal_program(frame, result, addr, access);
}

void fault_init(void (*signal)(struct trap_frame *frame, enum fault_result result, u64 addr,
                               enum fault_access access),
                bool (*oom_kill)(void))
{
    signal_program = signal;
    end_a_program = oom_kill;
    fault_anon_init();
    fault_huge_init();
    trap_register(TRAP_PAGE_FAULT, page_fault_trap);
}
