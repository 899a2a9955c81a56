/*
 * The kernel's clock: nanoseconds since boot, from the time-stamp counter.
 * The rate is measured or known (under `icount` TSC is virtual nanoseconds, 1 GHz exactly); until
 * it is set the clock assumes 1 GHz. Monotonic on each CPU.
 */
#ifndef KERNEL_CPU_CLOCK_H
#define KERNEL_CPU_CLOCK_H

#include "lib/types.h"

static inline u64 tsc_read(void)
{
    u32 lo, hi;
    __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
    return (u64)hi << 32 | lo;
}

/* ns = base_ns + ((tsc - base_tsc) * mult >> CLOCK_SHIFT); constant once other CPUs run. */
#define CLOCK_SHIFT 56
extern struct clock_scale {
    u64 base_tsc, base_ns, mult;
} clock_scale;

static inline u64 clock_ns(void) /* nanoseconds since boot */
{
    unsigned __int128 product =
        (unsigned __int128)(tsc_read() - clock_scale.base_tsc) * clock_scale.mult;
    return clock_scale.base_ns + (u64)(product >> CLOCK_SHIFT);
}
u64 clock_wall_ns(void);           /* nanoseconds since 1970 (RTC at boot + clock_ns) */
void clock_set_frequency(u64 hz);  /* called by drivers/timer once */
void clock_set_wall(u64 epoch_ns); /* wall time now */
u64 clock_frequency(void);

extern bool
    clock_is_icount; /* `icount` on the command line: virtual time, no time-outs for real devices */

#endif
