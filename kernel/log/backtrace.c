/*
 * The way to where we are: along the frame pointers, and through trap frames into the code that was
 * interrupted.
 *
 * Every C function keeps rbp: [rbp] is the caller's rbp, [rbp + 8] the return address. The doors of
 * trap.S do not push a frame of their own: what C returns to there tells that the trap frame lies
 * right above, and the interrupted rip and rbp are in it.
 *
 * A function that calls nobody may have no frame: then the word at the interrupted rsp is its
 * return address, which would be passed over. Where that word points into the text it is shown with
 * a question mark.
 *
 * Nothing on the way is trusted: words are read with kernel_probe_read(), and the walk only goes
 * upwards.
 */
#include "kernel/cpu/trap.h"
#include "kernel/cpu/uaccess.h"
#include "kernel/log/internal.h"
#include "kernel/log/report.h"

#define MAX_FRAMES  1000 /* steps; a function that calls itself takes two lines however deep it is */
#define KERNEL_HALF 0xffff800000000000ul

extern char trap_dispatch_return[], trap_paranoid_return[], trap_syscall_return[];

typedef report_line line_fn;

struct walk {
    u64 rip, rbp;
    bool is_return; /* rip is a return address: the call lies before it */
    u32 n_same;     /* steps that were like the last one printed */
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

static void print_repetition(struct walk *w, line_fn line)
{
    if (w->n_same)
        line("  … %u times more", w->n_same);
    w->n_same = 0;
}

static void print_step(const struct walk *w, line_fn line)
{
    char text[SYMBOL_TEXT_BYTES];

    line("%#018lx  %s", w->rip, symbol_format(w->is_return ? w->rip - 1 : w->rip, text));
}

/* At a trap: the return address of a function without a frame, if it looks like one. */
static void print_possible_caller(u64 rsp, u64 rbp, line_fn line)
{
    char text[SYMBOL_TEXT_BYTES];
    u64 word, next, offset;

    if (!read_word(rsp, &word) || !symbol_find(word, &offset))
        return;
    if (read_word(rbp + 8, &next) && next == word)
        return;
    line("%#018lx  %s ?", word, symbol_format(word - 1, text));
}

/* Over the trap frame at `addr`. => false where the walk ends */
static bool cross_door(struct walk *w, u64 addr, line_fn line)
{
    u64 vector, rip, rbp, rsp, cs, fault_address;
    const struct trap_frame *f = (const struct trap_frame *)addr;

    if (!read_word((u64)&f->vector, &vector) || !read_word((u64)&f->rip, &rip) ||
        !read_word((u64)&f->rbp, &rbp) || !read_word((u64)&f->rsp, &rsp) ||
        !read_word((u64)&f->cs, &cs) || !read_word((u64)&f->fault_address, &fault_address))
        return false;
    bool user = (cs & 3) == 3;
    if (vector == TRAP_PAGE_FAULT)
        line("-- %s on %#lx, in %s mode", trap_name(vector), fault_address,
             user ? "user" : "kernel");
    else
        line("-- %s %#lx, in %s mode", trap_name(vector), vector, user ? "user" : "kernel");
    *w = (struct walk){.rip = rip, .rbp = rbp};
    print_step(w, line);
    if (!user)
        print_possible_caller(rsp, rbp, line);
    return !user;
}

static void step_to_caller(struct walk *w, u64 rip, line_fn line)
{
    if (w->is_return && w->rip == rip) {
        w->n_same++;
        return;
    }
    print_repetition(w, line);
    w->rip = rip;
    w->is_return = true;
    print_step(w, line);
}

void backtrace_print(const struct trap_frame *frame, line_fn line)
{
    struct walk w = {.rbp = (u64)__builtin_frame_address(0)};

    if (frame) {
        w = (struct walk){.rip = frame->rip, .rbp = frame->rbp};
        print_step(&w, line);
        if (trap_from_user(frame))
            return;
        print_possible_caller(frame->rsp, frame->rbp, line);
    }
    for (int n = 0; n < MAX_FRAMES; n++) {
        u64 caller_rbp, rip;
        if (!read_word(w.rbp, &caller_rbp) || !read_word(w.rbp + 8, &rip) || rip == 0)
            return;
        if (is_door(rip)) {
            print_repetition(&w, line);
            if (!cross_door(&w, w.rbp + 16, line))
                return;
            continue;
        }
        step_to_caller(&w, rip, line);
        if (caller_rbp <= w.rbp)
            return;
        w.rbp = caller_rbp;
    }
    line("… and more");
}

/* The return addresses alone; a walk ends at a door. */
unsigned backtrace_take(u64 from, u32 *places, unsigned max)
{
    u64 rbp = (u64)__builtin_frame_address(0), caller_rbp, rip;
    bool is_there = false;
    unsigned n = 0;

    while (n < max && read_word(rbp, &caller_rbp) && read_word(rbp + 8, &rip) && rip != 0 &&
           !is_door(rip)) {
        is_there |= rip == from;
        if (is_there)
            places[n++] = (u32)rip;
        if (caller_rbp <= rbp)
            break;
        rbp = caller_rbp;
    }
    return n;
}

bool backtrace_has(u64 return_address, u64 *rbp_out)
{
    u64 rbp = (u64)__builtin_frame_address(0), caller_rbp, rip;

    while (read_word(rbp, &caller_rbp) && read_word(rbp + 8, &rip) && !is_door(rip)) {
        if (rbp_out)
            *rbp_out = caller_rbp;
        if (rip == return_address)
            return true;
        if (caller_rbp <= rbp)
            break;
        rbp = caller_rbp;
    }
    return false;
}

void backtrace_print_taken(const u32 *places, unsigned n, line_fn line)
{
    char text[SYMBOL_TEXT_BYTES];

    for (unsigned i = 0; i < n && places[i]; i++) {
        u64 addr = (u64)(s64)(s32)places[i];
        line("%#018lx  %s", addr, symbol_format(addr - 1, text));
    }
}

/* Callers above the frame, at most `max`; *function is where the last one of them begins, 0: unknown. */
static unsigned climb(const struct trap_frame *frame, unsigned max, u64 counted, unsigned *times,
                      u64 *function)
{
    u64 rbp = frame->rbp, caller_rbp, rip, offset;
    unsigned n = 0;

    while (n < max && read_word(rbp, &caller_rbp) && read_word(rbp + 8, &rip)) {
        n++;
        *function = symbol_find(rip - 1, &offset) ? rip - 1 - offset : 0;
        *times += *function == counted;
        if (caller_rbp <= rbp)
            break;
        rbp = caller_rbp;
    }
    return n;
}

unsigned backtrace_depth(const struct trap_frame *frame, u64 *function, unsigned *times)
{
    u64 last = 0;
    unsigned depth = climb(frame, MAX_FRAMES, 0, times, &last);

    climb(frame, depth / 2, 0, times, function);
    *times = 0;
    climb(frame, depth, *function, times, &last);
    return depth;
}
