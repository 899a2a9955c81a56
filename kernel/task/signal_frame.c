/*
 * The frame of a signal handler on the program's stack, laid out as on Linux x86-64 (the C libraries, debuggers and
 * unwinders know it), and the way back from it.
 *
 *     higher addresses   the interrupted stack, and 128 bytes below it that its function may use without saying so
 *                        extended registers, 64-byte aligned (signal_fpu.c)
 *                        struct frame: return address (SA_RESTORER), ucontext, siginfo
 *     rsp ->             ends at an address 8 below a multiple of 16, as behind a CALL
 *
 * Nothing of it is trusted on the way back: registers go through trap_frame_sanitise(), the mask loses SIGKILL and
 * SIGSTOP, extended registers are checked.
 * Sources: System V ABI, AMD64 supplement, 3.2.2 (red zone); sigaltstack(2), sigreturn(2).
 */
#include "kernel/cpu/trap.h"
#include "kernel/task/process.h"
#include "kernel/task/signal.h"
#include "lib/errno.h"
#include "mm/user_memory.h"

#define RED_ZONE_BYTES 128
#define FPU_ALIGN      64
#define STACK_ALIGN    16

#define UC_FP_XSTATE         1u
#define UC_SIGCONTEXT_SS     2u
#define UC_STRICT_RESTORE_SS 4u

#define RFLAGS_TRAP      (1ul << 8)
#define RFLAGS_DIRECTION (1ul << 10)
#define RFLAGS_RESUME    (1ul << 16)

/* struct sigcontext */
struct machine_context {
    u64 r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, rflags;
    u16 cs, gs, fs, ss;
    u64 error, vector, old_mask, fault_address;
    u64 fpu; /* address of the extended registers */
    u64 reserved[8];
};
_Static_assert(sizeof(struct machine_context) == 256, "struct sigcontext of x86-64");

/* stack_t */
struct user_stack {
    u64 sp;
    u32 flags, pad;
    u64 bytes;
};

struct user_context {
    u64 flags, link;
    struct user_stack stack;
    struct machine_context machine;
    sigset_bits mask;
};

struct frame {
    u64 return_address;
    struct user_context context;
    struct signal_info info;
    u8 info_rest[SIGNAL_INFO_BYTES - sizeof(struct signal_info)];
};
_Static_assert(sizeof(struct user_context) == 304 && sizeof(struct frame) == 440,
               "struct rt_sigframe of x86-64");

/* ---- Where the frame goes -------------------------------------------------------------------- */

static bool is_on(const struct signal_stack *stack, u64 sp)
{
    return !(stack->flags & SS_DISABLE) && sp > stack->sp && sp - stack->sp <= stack->bytes;
}

bool signal_is_on_stack(const struct signal_stack *stack, u64 sp)
{
    return !(stack->flags & SS_AUTODISARM) && is_on(stack, sp);
}

/* A frame of the smallest machine fits (MINSIGSTKSZ), and the extended registers of this one. */
#define STACK_BYTES_MIN 2048

int signal_stack_change(struct signal_thread *me, const struct signal_stack *new, u64 rsp)
{
    u32 mode = new->flags & ~SS_AUTODISARM;
    if (signal_is_on_stack(&me->stack, rsp))
        return -EPERM;
    if (mode != 0 && mode != SS_ONSTACK && mode != SS_DISABLE)
        return -EINVAL;
    if (mode == SS_DISABLE) {
        me->stack = (struct signal_stack){.flags = new->flags};
        return 0;
    }
    if (new->bytes < STACK_BYTES_MIN)
        return -ENOMEM;
    me->stack = (struct signal_stack){
        .sp = new->sp, .bytes = new->bytes, .flags = new->flags & ~SS_ONSTACK};
    return 0;
}

struct place {
    u64 frame, fpu;
};

/* => false: the frame would leave the alternate stack */
static bool find_place(u64 rsp, const struct signal_stack *stack,
                       const struct signal_action *action, struct place *place)
{
    u64 sp = rsp - RED_ZONE_BYTES;
    bool is_inside = signal_is_on_stack(stack, rsp);
    if ((action->flags & SA_ONSTACK) && !(stack->flags & SS_DISABLE) && !is_inside) {
        sp = stack->sp + stack->bytes;
        is_inside = true;
    }
    place->fpu = ALIGN_DOWN(sp - signal_fpu_bytes(), FPU_ALIGN);
    place->frame = ALIGN_DOWN(place->fpu - sizeof(struct frame), STACK_ALIGN) - sizeof(u64);
    return !is_inside || is_on(stack, place->frame);
}

/* ---- Out ------------------------------------------------------------------------------------- */

static struct machine_context machine_of(const struct trap_frame *f, const struct signal_thread *me)
{
    return (struct machine_context){
        .r8 = f->r8,
        .r9 = f->r9,
        .r10 = f->r10,
        .r11 = f->r11,
        .r12 = f->r12,
        .r13 = f->r13,
        .r14 = f->r14,
        .r15 = f->r15,
        .rdi = f->rdi,
        .rsi = f->rsi,
        .rbp = f->rbp,
        .rbx = f->rbx,
        .rdx = f->rdx,
        .rax = f->rax,
        .rcx = f->rcx,
        .rsp = f->rsp,
        .rip = f->rip,
        .rflags = f->rflags,
        .cs = f->cs,
        .ss = f->ss,
        .error = me->trap_error,
        .vector = me->trap_vector,
        .fault_address = me->trap_address,
    };
}

static void enter_handler(struct trap_frame *f, const struct signal_info *info,
                          const struct signal_action *action, u64 frame)
{
    f->rdi = info->signal;
    f->rsi = frame + offsetof(struct frame, info);
    f->rdx = frame + offsetof(struct frame, context);
    f->rax = 0;
    f->rip = action->handler;
    f->rsp = frame;
    f->rflags &= ~(RFLAGS_TRAP | RFLAGS_DIRECTION | RFLAGS_RESUME);
}

bool signal_frame_push(struct trap_frame *f, const struct signal_info *info,
                       const struct signal_action *action, sigset_bits mask_to_restore)
{
    struct signal_thread *me = thread_current()->signals;
    struct place place;
    if (!(action->flags & SA_RESTORER) || !find_place(f->rsp, &me->stack, action, &place))
        return false;
    struct frame frame = {
        .return_address = action->restorer,
        .context = {.flags = UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS |
                             (cpu_features.xsave ? UC_FP_XSTATE : 0),
                    .stack = {.sp = me->stack.sp,
                              .flags = me->stack.flags,
                              .bytes = me->stack.bytes},
                    .machine = machine_of(f, me),
                    .mask = mask_to_restore},
        .info = *info,
    };
    frame.context.machine.old_mask = mask_to_restore;
    frame.context.machine.fpu = place.fpu;
    /* The frame first: the extended registers are reset once they are saved. */
    if (copy_to_user(place.frame, &frame, sizeof(frame)) || signal_fpu_save(place.fpu))
        return false;
    if (me->stack.flags & SS_AUTODISARM)
        me->stack = (struct signal_stack){.flags = SS_DISABLE};
    enter_handler(f, info, action, place.frame);
    return true;
}

/* ---- Back ------------------------------------------------------------------------------------ */

static void load_machine(struct trap_frame *f, const struct machine_context *m)
{
    f->r8 = m->r8, f->r9 = m->r9, f->r10 = m->r10, f->r11 = m->r11;
    f->r12 = m->r12, f->r13 = m->r13, f->r14 = m->r14, f->r15 = m->r15;
    f->rdi = m->rdi, f->rsi = m->rsi, f->rbp = m->rbp, f->rbx = m->rbx;
    f->rdx = m->rdx, f->rax = m->rax, f->rcx = m->rcx, f->rsp = m->rsp;
    f->rip = m->rip, f->rflags = m->rflags;
    f->cs = USER_CS, f->ss = USER_SS;
}

/* The stack's description as it was; one that is not valid is left out, as on Linux. */
static void load_stack(struct signal_thread *me, const struct user_stack *stack, u64 rsp)
{
    struct signal_stack new = {.sp = stack->sp, .bytes = stack->bytes, .flags = stack->flags};
    (void)signal_stack_change(me, &new, rsp);
}

s64 signal_frame_return(struct trap_frame *f)
{
    struct signal_thread *me = thread_current()->signals;
    struct user_context context;
    u64 at =
        f->rsp - sizeof(u64) + offsetof(struct frame, context); /* RET took the return address */
    bool is_bad =
        copy_from_user(&context, at, sizeof(context)) || signal_fpu_restore(context.machine.fpu);
    f->vector = TRAP_VECTOR_NONE;
    if (is_bad) {
        signal_force_fault(f, SIGSEGV, SI_KERNEL, 0);
        return 0;
    }
    signal_mask_set(context.mask);
    load_machine(f, &context.machine);
    load_stack(me, &context.stack, f->rsp);
    return f->rax;
}
