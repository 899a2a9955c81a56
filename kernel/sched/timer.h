/*
 * One-shot timers on the kernel's clock. Callbacks run in interrupt context on the CPU that armed
 * them. An idle CPU keeps no periodic tick: the device is armed for the next timer or slice end
 * only.
 */
#ifndef KERNEL_SCHED_TIMER_H
#define KERNEL_SCHED_TIMER_H

#include "kernel/sync/spin.h"
#include "lib/list.h"

struct timer {
    u64 deadline_ns;
    void (*fn)(struct timer *timer);
    struct list link; /* sorted list of its CPU */
    u32 cpu;
    bool is_armed;
};

void timer_init(struct timer *timer, void (*fn)(struct timer *timer));
/* Re-arming moves it. Any context; but callers see to it that no two arm or cancel one timer at the same time. */
void timer_arm(struct timer *timer, u64 deadline_ns);
bool timer_cancel(struct timer *timer); /* => was armed. When false the callback may be running;
                                           timer_cancel_sync waits for it */
bool timer_cancel_sync(struct timer *timer); /* not from interrupts */

/* The clock-event device (local APIC timer), filled in by drivers/timer. set_next: interrupt at
 * deadline_ns on this CPU; 0 = none. */
struct timer_device {
    void (*set_next)(u64 deadline_ns);
};
void timer_set_device(const struct timer_device *device);
void timer_interrupt(void); /* by the device, interrupts off: runs what is due, arms the next */

#endif
