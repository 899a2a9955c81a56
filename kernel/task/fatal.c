/*
 * How a program's mistake ends it: the signal that Linux would send, and a line in the log that says what happened.
 */
#include "kernel/cpu/trap.h"
#include "kernel/log/log.h"
#include "kernel/task/process.h"
#include "lib/string.h"

static const char *access_name(enum fault_access access)
{
    return access == FAULT_WRITE ? "write to" : access == FAULT_EXEC ? "execution of" : "read of";
}

/* Describes what is at addr, for the log. No lock held. */
static void describe_place(struct mm *mm, u64 addr, char *buf, size_t size)
{
    rwsem_read_lock(&mm->mmap_lock);
    struct vma *vma = vma_find(mm, addr);
    int len = vma ? vma_format_maps_line(vma, buf, size) : 0;
    rwsem_read_unlock(&mm->mmap_lock);
    if (len == 0)
        strlcpy(buf, "nothing is mapped there", size);
    else if ((size_t)len < size && buf[len - 1] == '\n')
        buf[len - 1] = '\0';
}

static u32 signal_of(enum fault_result result)
{
    switch (result) {
    case FAULT_SIGBUS_ADRERR:
        return SIGBUS;
    case FAULT_OOM:
    case FAULT_KILLED:
        return SIGKILL;
    default:
        return SIGSEGV;
    }
}

void fatal_bad_access(struct trap_frame *frame, enum fault_result result, u64 addr,
                      enum fault_access access)
{
    struct process *process = process_current();
    char place[384];
    if (result != FAULT_KILLED) {
        describe_place(process->mm, addr, place, sizeof(place));
        log_warn("process %u (%s): %s, %s %#lx at instruction %#lx; VMA: %s", process->pid,
                 process->name, fault_result_name(result), access_name(access), addr, frame->rip,
                 place);
    }
    process_exit_signal(signal_of(result));
}

static const struct {
    u8 vector, signal;
} exception_signals[] = {
    {TRAP_DIVIDE, SIGFPE},   {TRAP_DEBUG, SIGTRAP},    {TRAP_BREAKPOINT, SIGTRAP},
    {TRAP_OVERFLOW, SIGSEGV}, {TRAP_BOUND, SIGSEGV},   {TRAP_INVALID_OPCODE, SIGILL},
    {TRAP_NO_SEGMENT, SIGBUS}, {TRAP_STACK, SIGBUS},   {TRAP_PROTECTION, SIGSEGV},
    {TRAP_FPU, SIGFPE},      {TRAP_ALIGNMENT, SIGBUS}, {TRAP_SIMD, SIGFPE},
};

void fatal_exception(struct trap_frame *frame)
{
    struct process *process = process_current();
    u32 signal = SIGSEGV;
    for (unsigned i = 0; i < ARRAY_SIZE(exception_signals); i++)
        if (exception_signals[i].vector == frame->vector)
            signal = exception_signals[i].signal;
    log_warn("process %u (%s): exception %lu (error %#lx) at instruction %#lx: signal %u",
             process->pid, process->name, frame->vector, frame->error, frame->rip, signal);
    process_exit_signal(signal);
}
