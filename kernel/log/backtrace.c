/*
 * The way to where we are: along the frame pointers, and through trap frames into the code that was
 * interrupted.
 *
 * Every C function keeps rbp: [rbp] is the caller's rbp, [rbp + 8] the return address. The doors of
 * trap.S do not push a frame of their own: what C returns to there tells that the trap frame lies
 * right above, and the interrupted rip and rbp are in it.
 *
 * Nothing on the way is trusted: words are read with kernel_probe_read(), and the walk only goes upwards.
 */
#include "kernel/cpu/trap.h"
#include "kernel/cpu/uaccess.h"
#include "kernel/log/internal.h"

#define MAX_FRAMES 40
#define KERNEL_HALF 0xffff800000000000ul

extern char trap_dispatch_return[], trap_paranoid_return[], trap_syscall_return[];

typedef void (*line_fn)(const char *fmt, ...);

struct walk {
    u64 rip, rbp;
    bool is_return; /* rip is a return address: the call lies before it */
};

static bool is_door(u64 rip)
{
    return rip == (u64)trap_dispatch_return || rip == (u64)trap_paranoid_return ||
           rip == (u64)trap_syscall_return;
}

static bool read_word(u64 addr, u64 *out)
{
    return addr >= KERNEL_HALF && IS_ALIGNED(addr, 8) && kernel_probe_read(addr, out) == 0;
}

static void print_step(const struct walk *w, line_fn line)
{
    char text[SYMBOL_TEXT_BYTES];

    line("  %#018lx  %s", w->rip, symbol_format(w->is_return ? w->rip - 1 : w->rip, text));
}

/* Over the trap frame at `addr`. => false where the walk ends */
static bool cross_door(struct walk *w, u64 addr, line_fn line)
{
    u64 vector, rip, rbp, cs, fault_address;
    const struct trap_frame *f = (const struct trap_frame *)addr;

    if (!read_word((u64)&f->vector, &vector) || !read_word((u64)&f->rip, &rip) ||
        !read_word((u64)&f->rbp, &rbp) || !read_word((u64)&f->cs, &cs) ||
        !read_word((u64)&f->fault_address, &fault_address))
        return false;
    bool user = (cs & 3) == 3;
    if (vector == TRAP_PAGE_FAULT)
        line("  -- %s on %#lx, in %s mode", trap_name(vector), fault_address, user ? "user" : "kernel");
    else
        line("  -- %s %#lx, in %s mode", trap_name(vector), vector, user ? "user" : "kernel");
    *w = (struct walk){.rip = rip, .rbp = rbp};
    print_step(w, line);
    return !user;
}

void backtrace_print(const struct trap_frame *frame, line_fn line)
{
    struct walk w = {.rbp = (u64)__builtin_frame_address(0)};

    if (frame) {
        w = (struct walk){.rip = frame->rip, .rbp = frame->rbp};
        print_step(&w, line);
        if (trap_from_user(frame))
            return;
    }
    for (int n = 0; n < MAX_FRAMES; n++) {
        u64 caller_rbp, rip;
        if (!read_word(w.rbp, &caller_rbp) || !read_word(w.rbp + 8, &rip) || rip == 0)
            return;
        if (is_door(rip)) {
            if (!cross_door(&w, w.rbp + 16, line))
                return;
            continue;
        }
        bool goes_up = caller_rbp > w.rbp;
        w = (struct walk){.rip = rip, .rbp = caller_rbp, .is_return = true};
        print_step(&w, line);
        if (!goes_up)
            return;
    }
    line("  … and more");
}
