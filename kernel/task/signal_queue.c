/*
 * Signals on their way. A standard signal is pending once, however often it was sent, and keeps the information of the
 * first time; so it needs no memory and cannot be lost. SIGRTMIN and up are queued, each with its own information.
 * A timer's signal that is still pending is not queued again: it counts an overrun (timer_getoverrun(2)).
 *
 * The caller holds signal_process.lock.
 */
#include "kernel/task/process.h"
#include "kernel/task/signal.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"

struct signal_entry {
    struct list link;
    struct signal_info info;
};

/* Of the thread's own making: they come first, so that the frame of their handler is the place of the fault. */
#define FAULT_SIGNALS                                                                          \
    (1ul << (SIGSEGV - 1) | 1ul << (SIGBUS - 1) | 1ul << (SIGILL - 1) | 1ul << (SIGTRAP - 1) | \
     1ul << (SIGFPE - 1) | 1ul << (SIGSYS - 1))

void signal_pending_init(struct signal_pending *pending)
{
    pending->set = 0;
    list_init(&pending->queue);
}

static bool is_same_timer(const struct signal_info *a, const struct signal_info *b)
{
    return a->code == SI_TIMER && b->code == SI_TIMER && a->signal == b->signal &&
           a->timer.id == b->timer.id;
}

static int add_standard(struct signal_pending *pending, const struct signal_info *info)
{
    struct signal_info *slot = &pending->standard[info->signal];
    if (!(pending->set & signal_bit(info->signal)))
        *slot = *info;
    else if (is_same_timer(slot, info))
        slot->timer.overrun += 1 + info->timer.overrun;
    pending->set |= signal_bit(info->signal);
    return 0;
}

static bool count_overrun(struct signal_pending *pending, const struct signal_info *info)
{
    struct signal_entry *entry;
    list_for_each (entry, &pending->queue, link) {
        if (!is_same_timer(&entry->info, info))
            continue;
        entry->info.timer.overrun += 1 + info->timer.overrun;
        return true;
    }
    return false;
}

int signal_pending_add_locked(struct signal_process *shared, struct signal_pending *pending,
                              const struct signal_info *info)
{
    if (info->signal < SIGRTMIN)
        return add_standard(pending, info);
    if (info->code == SI_TIMER && count_overrun(pending, info))
        return 0;
    if (shared->n_queued >= shared->process->limits[LIMIT_SIGPENDING].soft)
        return -EAGAIN;
    struct signal_entry *entry = kmalloc(sizeof(*entry));
    if (!entry)
        return -EAGAIN;
    entry->info = *info;
    list_add_tail(&pending->queue, &entry->link);
    shared->n_queued++;
    pending->set |= signal_bit(info->signal);
    return 0;
}

/* The first entry of the signal; *is_last: there is no other. */
static struct signal_entry *find_entry(struct signal_pending *pending, s32 signal, bool *is_last)
{
    struct signal_entry *entry, *first = NULL;
    *is_last = true;
    list_for_each (entry, &pending->queue, link) {
        if (entry->info.signal != signal)
            continue;
        if (first) {
            *is_last = false;
            break;
        }
        first = entry;
    }
    return first;
}

static void remove_entry(struct signal_process *shared, struct signal_entry *entry)
{
    list_del(&entry->link);
    shared->n_queued--;
    kfree(entry);
}

bool signal_pending_take_locked(struct signal_process *shared, struct signal_pending *pending,
                                sigset_bits set, struct signal_info *info)
{
    set &= pending->set;
    if (!set)
        return false;
    u32 signal = __builtin_ctzl(set & FAULT_SIGNALS ? set & FAULT_SIGNALS : set) + 1;
    bool is_last = true;
    if (signal < SIGRTMIN) {
        *info = pending->standard[signal];
    } else {
        struct signal_entry *entry = find_entry(pending, signal, &is_last);
        *info = entry->info;
        remove_entry(shared, entry);
    }
    if (is_last)
        pending->set &= ~signal_bit(signal);
    return true;
}

void signal_pending_discard_locked(struct signal_process *shared, struct signal_pending *pending,
                                   sigset_bits set)
{
    struct signal_entry *entry, *next;
    pending->set &= ~set;
    list_for_each_safe (entry, next, &pending->queue, link) {
        if (set & signal_bit(entry->info.signal))
            remove_entry(shared, entry);
    }
}
