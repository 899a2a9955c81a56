/*
 * Traps, interrupts and system calls: the doors into the kernel and back out.
 *
 * trap.S pushes a full `struct trap_frame` for all three, with CFI, so gdb unwinds from any handler
 * into the interrupted code. Handlers run on the task's kernel stack, except double fault, NMI and
 * machine check (stacks of their own). Exceptions run with interrupts as they were; interrupts run
 * with interrupts off.
 */
#ifndef KERNEL_CPU_TRAP_H
#define KERNEL_CPU_TRAP_H

#include "kernel/cpu/cpu.h"

struct trap_frame {
    u64 fault_address; /* of a page fault (CR2, read before interrupts come on); 0 otherwise */
    u64 unused;        /* keeps the stack aligned to 16 bytes */
    u64 r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi;
    u64 vector; /* for a system call: TRAP_VECTOR_SYSCALL */
    u64 error;  /* for a system call: its number (rax holds the result on the way out) */
    u64 rip, cs, rflags, rsp, ss;
};
_Static_assert(sizeof(struct trap_frame) == 24 * 8, "trap.S relies on it");

enum trap_vector {
    TRAP_DIVIDE = 0,
    TRAP_DEBUG = 1,
    TRAP_NMI = 2,
    TRAP_BREAKPOINT = 3,
    TRAP_OVERFLOW = 4,
    TRAP_BOUND = 5,
    TRAP_INVALID_OPCODE = 6,
    TRAP_NO_FPU = 7,
    TRAP_DOUBLE_FAULT = 8,
    TRAP_INVALID_TSS = 10,
    TRAP_NO_SEGMENT = 11,
    TRAP_STACK = 12,
    TRAP_PROTECTION = 13,
    TRAP_PAGE_FAULT = 14,
    TRAP_FPU = 16,
    TRAP_ALIGNMENT = 17,
    TRAP_MACHINE_CHECK = 18,
    TRAP_SIMD = 19,
    IRQ_VECTOR_FIRST = 0x30,
    IRQ_VECTOR_LAST = 0xef, /* handed out by irq_vector_alloc() */
    IPI_VECTOR_RESCHEDULE = 0xf0,
    IPI_VECTOR_CALL = 0xf1,
    IPI_VECTOR_TLB = 0xf2,
    IPI_VECTOR_STOP = 0xf3,
    IRQ_VECTOR_TIMER = 0xf8,
    IRQ_VECTOR_SPURIOUS = 0xff,
    TRAP_VECTOR_SYSCALL = 0x100,
};

#define PF_ERROR_PRESENT  (1u << 0) /* 0: not present, 1: protection */
#define PF_ERROR_WRITE    (1u << 1)
#define PF_ERROR_USER     (1u << 2)
#define PF_ERROR_RESERVED (1u << 3)
#define PF_ERROR_EXEC     (1u << 4)
#define PF_ERROR_PKEY     (1u << 5)

/* "page fault", "system call" …; never NULL. */
const char *trap_name(u64 vector);

static inline bool trap_from_user(const struct trap_frame *frame)
{
    return (frame->cs & 3) == 3;
}

typedef void (*trap_handler)(struct trap_frame *frame);

/* Ends the machine with a report of an exception that nobody can serve (kernel/log/report.h). */
NORETURN void trap_die(const struct trap_frame *frame);

/*
 * Exceptions 0…31. Without a handler an exception panics (kernel) or goes to the user_exception
 * hook. A page fault of the kernel on a kernel address goes to the exception table first: nobody
 * serves it.
 */
void trap_register(unsigned vector, trap_handler handler);
/* Exceptions from user mode that nobody registered (kernel/task turns them into signals). */
void trap_set_user_exception(trap_handler handler);
/*
 * If the faulting instruction has an exception-table entry: continue at its fixup. => whether it
 * had one
 */
bool trap_fixup(struct trap_frame *frame);
bool trap_has_fixup(const struct trap_frame *frame); /* the same question, changing nothing */

#define RFLAGS_IF         (1u << 9) /* interrupts were on */
#define RFLAGS_ALWAYS_ONE (1u << 1)

/*
 * Interrupts. The handler runs with interrupts off; end-of-interrupt is sent by the trap code
 * before it is called. irq_vector_alloc gives a free vector for `handler` or -ENOSPC.
 */
typedef void (*irq_handler)(void *context);
int irq_vector_alloc(const char *name, irq_handler handler, void *context);
void irq_vector_free(int vector);
void irq_register_fixed(unsigned vector, const char *name, irq_handler handler, void *context);
u64 irq_count(unsigned vector, unsigned cpu); /* for /proc/interrupts */
const char *irq_name(unsigned vector);        /* NULL where nobody handles it */

/*
 * Set by kernel/syscall: called with interrupts on for each SYSCALL; stores the result in
 * frame->rax.
 */
void trap_set_syscall(trap_handler handler);

/*
 * Called with interrupts off just before any return to user mode (trap, interrupt, system call),
 * and again after it turned them on and did something, until it has nothing to do. kernel/sched
 * (reschedule) and kernel/task (signals) chain in.
 * => true if it did something (so that it is called again)
 */
void trap_set_user_return(bool (*hook)(struct trap_frame *frame));
/*
 * Set by kernel/sched, for user and system time: the CPU came from user mode. Interrupts off, in
 * every trap, interrupt and system call: it must be cheap.
 */
void trap_set_user_exit(void (*hook)(void));

/*
 * First entry to user mode: loads every register from *frame and irets; the user_return hook runs
 * before. *frame may lie on the current kernel stack or anywhere else in the kernel. Interrupts
 * must be off.
 */
NORETURN void trap_enter_user(struct trap_frame *frame);

/*
 * What a program may have in a frame that returns to it: its own segments, a rip in the user half,
 * flags that belong to it. Everything else is put right; a frame is always safe for IRET
 * afterwards.
 * => false if rip was not canonical (the caller raises a protection fault in its name)
 */
bool trap_frame_sanitise(struct trap_frame *frame);
/*
 * May SYSRET bring this frame back? It loads rip from rcx and rflags from r11, and on some CPUs
 * faults *in the kernel on the user's stack* where rcx is not canonical. Where the answer is no,
 * IRET does it.
 */
bool trap_sysret_is_safe(const struct trap_frame *frame);

#define USER_CS   0x2b
#define USER_SS   0x23
#define KERNEL_CS 0x08
#define KERNEL_SS 0x10

#endif
