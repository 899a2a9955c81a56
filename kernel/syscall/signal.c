/*
 * System calls about signals: sending, masks, handlers, waiting. What happens to a signal is in kernel/task/signal*.c.
 */
#include "kernel/task/signal.h"
#include "kernel/cpu/clock.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/timespec.h"
#include "kernel/task/fatal_report.h"
#include "kernel/task/thread.h"

static struct signal_thread *self(void)
{
    return thread_current()->signals;
}

static int read_mask(u64 user_mask, u64 bytes, sigset_bits *mask)
{
    if (bytes != sizeof(*mask))
        return -EINVAL;
    if (copy_from_user(mask, user_mask, sizeof(*mask)))
        return -EFAULT;
    *mask &= ~SIGNALS_UNBLOCKABLE;
    return 0;
}

/* ---- Handlers and masks ---------------------------------------------------------------------- */

/* Flags of Linux that this kernel knows; others are taken out, as Linux does, so that programs can ask. */
#define SA_KNOWN                                                                        \
    (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_RESTORER | SA_ONSTACK | SA_RESTART | \
     SA_NODEFER | SA_RESETHAND)

s64 sys_rt_sigaction(const u64 *a)
{
    struct signal_action new = {0}, old;
    u32 signal = a[0];
    if (a[3] != sizeof(sigset_bits))
        return -EINVAL;
    if (a[1] && copy_from_user(&new, a[1], sizeof(new)))
        return -EFAULT;
    if (!signal_is_valid(signal) || (a[1] && (signal_bit(signal) & SIGNALS_UNBLOCKABLE)))
        return -EINVAL;
    new.mask &= ~SIGNALS_UNBLOCKABLE;
    new.flags &= SA_KNOWN;
    signal_action_change(signal, a[1] ? &new : NULL, &old);
    return a[2] ? copy_to_user(a[2], &old, sizeof(old)) : 0;
}

enum { SIG_BLOCK = 0, SIG_UNBLOCK = 1, SIG_SETMASK = 2 };

s64 sys_rt_sigprocmask(const u64 *a)
{
    sigset_bits old = self()->mask, set;
    if (a[3] != sizeof(set))
        return -EINVAL;
    if (a[1]) {
        int error = read_mask(a[1], a[3], &set);
        if (error)
            return error;
        u32 how = a[0];
        if (how > SIG_SETMASK)
            return -EINVAL;
        signal_mask_set(how == SIG_BLOCK ? old | set : how == SIG_UNBLOCK ? old & ~set : set);
    }
    return a[2] ? copy_to_user(a[2], &old, sizeof(old)) : 0;
}

s64 sys_rt_sigpending(const u64 *a)
{
    struct signal_thread *me = self();
    if (a[1] > sizeof(sigset_bits))
        return -EINVAL;
    sigset_bits pending =
        (READ_ONCE(me->pending.set) | READ_ONCE(me->shared->pending.set)) & me->mask;
    return copy_to_user(a[0], &pending, a[1]);
}

s64 sys_rt_sigreturn(const u64 *a)
{
    (void)a;
    return signal_frame_return(thread_current()->frame);
}

/* stack_t */
struct user_stack {
    u64 sp;
    u32 flags, pad;
    u64 bytes;
};

s64 sys_sigaltstack(const u64 *a)
{
    struct signal_thread *me = self();
    u64 rsp = thread_current()->frame->rsp;
    struct user_stack user;
    struct user_stack old = {
        .sp = me->stack.sp, .bytes = me->stack.bytes, .flags = me->stack.flags};
    if (!(old.flags & SS_DISABLE) && signal_is_on_stack(&me->stack, rsp))
        old.flags |= SS_ONSTACK;
    if (a[0]) {
        if (copy_from_user(&user, a[0], sizeof(user)))
            return -EFAULT;
        struct signal_stack new = {.sp = user.sp, .bytes = user.bytes, .flags = user.flags};
        int error = signal_stack_change(me, &new, rsp);
        if (error)
            return error;
    }
    return a[1] ? copy_to_user(a[1], &old, sizeof(old)) : 0;
}

/* ---- Sending --------------------------------------------------------------------------------- */

static struct signal_info info_of_sender(u32 signal, s32 code)
{
    return (struct signal_info){
        .signal = signal, .code = code, .from = {.pid = process_current()->pid}};
}

static int send_to_pid(u32 pid, const struct signal_info *info)
{
    struct process *process = process_find(pid);
    if (!process)
        return -ESRCH;
    int error = (u32)info->signal > SIGNAL_MAX ? -EINVAL : 0; /* in Linux's order */
    if (!error)
        fatal_note_own_signal(info->signal, pid);
    if (!error && info->signal)
        error = signal_send_process_info(process, info);
    process_put(process);
    return error;
}

struct sending {
    const struct signal_info *info;
    unsigned n;
};

static void send_one(struct process *process, void *ctx)
{
    struct sending *sending = ctx;
    sending->n++;
    if (sending->info->signal && (u32)sending->info->signal <= SIGNAL_MAX)
        (void)signal_send_process_info(process,
                                       sending->info); /* whom it reaches counts, as on Linux */
}

/* What a call that sends to several answers. */
static int result_of(const struct sending *sending)
{
    return !sending->n ? -ESRCH : (u32)sending->info->signal > SIGNAL_MAX ? -EINVAL : 0;
}

static void send_unless_self_or_init(struct process *process, void *ctx)
{
    if (process->pid != 1 && process != process_current())
        send_one(process, ctx);
}

static int send_to_group(u32 pgid, const struct signal_info *info)
{
    struct sending sending = {.info = info};
    spin_lock(&process_tree_lock);
    process_for_each_in_group_locked(pgid, send_one, &sending);
    spin_unlock(&process_tree_lock);
    return result_of(&sending);
}

/* kill(pid, signal): one process, a group (0: the own one, -n: n), or all (-1). */
s64 sys_kill(const u64 *a)
{
    s32 pid = a[0];
    struct signal_info info = info_of_sender(a[1], SI_USER);
    if (pid > 0)
        return send_to_pid(pid, &info);
    if (pid == 0)
        return send_to_group(process_current()->pgid, &info);
    if (pid != -1)
        return pid == (s32)0x80000000 ? -ESRCH : send_to_group(-pid, &info);
    struct sending sending = {.info = &info};
    process_for_each(send_unless_self_or_init, &sending);
    return result_of(&sending);
}

/* tgid 0: any process's thread */
static s64 send_to_thread(u32 tgid, u32 tid, const struct signal_info *info)
{
    if ((s32)tid <= 0 || (s32)tgid < 0)
        return -EINVAL;
    struct thread *thread = thread_find(NULL, tid);
    int error = thread && (!tgid || thread->process->pid == tgid) ? 0 : -ESRCH;
    if (!error && (u32)info->signal > SIGNAL_MAX)
        error = -EINVAL;
    if (!error)
        fatal_note_own_signal(info->signal, tid);
    if (!error && info->signal)
        error = signal_send_thread(thread, info);
    if (thread)
        thread_put(thread);
    return error;
}

s64 sys_tkill(const u64 *a)
{
    struct signal_info info = info_of_sender(a[1], SI_TKILL);
    return send_to_thread(0, a[0], &info);
}

s64 sys_tgkill(const u64 *a)
{
    struct signal_info info = info_of_sender(a[2], SI_TKILL);
    return (s32)a[0] <= 0 ? -EINVAL : send_to_thread(a[0], a[1], &info);
}

/* What a program says about its signal; only the kernel and kill() may speak with codes >= 0 to others. */
static int read_info(u64 user_info, u64 signal, bool to_self, struct signal_info *info)
{
    if (copy_from_user(info, user_info, sizeof(*info)))
        return -EFAULT;
    if ((info->code >= 0 || info->code == SI_TKILL) && !to_self)
        return -EPERM;
    info->signal = signal;
    info->pad = 0;
    return 0;
}

s64 sys_rt_sigqueueinfo(const u64 *a)
{
    struct signal_info info;
    int error = read_info(a[2], (u32)a[1], (u32)a[0] == thread_current()->tid, &info);
    return error ? error : send_to_pid(a[0], &info);
}

s64 sys_rt_tgsigqueueinfo(const u64 *a)
{
    struct signal_info info;
    int error = read_info(a[3], (u32)a[2], (u32)a[1] == thread_current()->tid, &info);
    if (error != -EFAULT && ((s32)a[0] <= 0 || (s32)a[1] <= 0)) /* in Linux's order */
        error = -EINVAL;
    return error ? error : send_to_thread(a[0], a[1], &info);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Until a signal has to be handled. */
static void sleep_until_signal(void)
{
    struct wait_queue nobody_wakes = WAIT_QUEUE_INIT(nobody_wakes);
    struct waiter w;
    wait_begin(&nobody_wakes, &w, "a signal", 0, 0);
    while (!wait_sleep_interruptible(&w, 0))
        ;
    wait_end(&nobody_wakes, &w);
}

s64 sys_pause(const u64 *a)
{
    (void)a;
    sleep_until_signal();
    return -ERESTARTNOHAND;
}

s64 sys_rt_sigsuspend(const u64 *a)
{
    sigset_bits mask;
    int error = read_mask(a[0], a[1], &mask);
    if (error)
        return error;
    signal_mask_begin(mask);
    sleep_until_signal();
    return -ERESTARTNOHAND;
}

static void set_waited_for(sigset_bits set)
{
    struct signal_thread *me = self();
    bool irqs = spin_lock_irq(&me->shared->lock);
    me->waited_for = set;
    spin_unlock_irq(&me->shared->lock, irqs);
}

/* Other signals end the wait only where they are not blocked; those waited for are taken although they are. */
static int wait_for_signal(sigset_bits set, u64 deadline_ns, struct signal_info *info)
{
    struct wait_queue nobody_wakes = WAIT_QUEUE_INIT(nobody_wakes);
    struct waiter w;
    int error = 0;
    bool got = false;
    wait_begin(&nobody_wakes, &w, "one of the signals %#lx", set, 0);
    set_waited_for(set);
    while (!(got = signal_take(set, info)) && !error)
        error = wait_sleep_interruptible(&w, deadline_ns);
    set_waited_for(0);
    wait_end(&nobody_wakes, &w);
    if (!got) /* one more look: it may have come with what ended the wait */
        got = signal_take(set, info);
    return got ? 0 : error == -ETIMEDOUT ? -EAGAIN : -EINTR;
}

s64 sys_rt_sigtimedwait(const u64 *a)
{
    sigset_bits set;
    u64 deadline_ns = 0, ns;
    int error = read_mask(a[0], a[3], &set);
    if (!error && a[2]) {
        error = timespec_read(a[2], &ns);
        deadline_ns = clock_ns() + ns;
    }
    if (error)
        return error;
    struct signal_info info;
    error = wait_for_signal(set, deadline_ns, &info);
    if (error)
        return error;
    if (a[1] && (copy_to_user(a[1], &info, sizeof(info)) ||
                 clear_user(a[1] + sizeof(info), SIGNAL_INFO_BYTES - sizeof(info))))
        return -EFAULT;
    return info.signal;
}

s64 sys_restart_syscall(const u64 *a)
{
    (void)a;
    struct signal_restart *restart = &self()->restart;
    return restart->fn ? restart->fn(restart) : -EINTR;
}
