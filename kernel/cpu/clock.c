/*
 * Nanoseconds from the time-stamp counter: ns = base + (ticks * mult) >> 56, in 128 bits, with
 * mult = 10^9 * 2^56 / hz. For 1 GHz mult is 2^56 exactly, so virtual time passes unrounded; for
 * others the error is below one part in 10^15.
 */
#include "kernel/cpu/clock.h"

#include "kernel/log/log.h"

#define NS_PER_SECOND 1000000000ul
#define MIN_HZ        4000000ul /* below, mult would not fit */

/* Written by clock_set_frequency() while one CPU runs; constant afterwards. */
struct clock_scale clock_scale = {.mult = 1ul << CLOCK_SHIFT};
static u64 frequency = NS_PER_SECOND;
static u64 wall_offset_ns;

bool clock_is_icount;

u64 clock_wall_ns(void)
{
    return READ_ONCE(wall_offset_ns) + clock_ns();
}

/* 128 by 64 bits; the quotient must fit, that is, high < divisor. */
static u64 divide_128(u64 high, u64 low, u64 divisor)
{
    u64 quotient, remainder;

    __asm__("divq %4"
            : "=a"(quotient), "=d"(remainder)
            : "0"(low), "1"(high), "rm"(divisor)
            : "cc");
    return quotient;
}

void clock_set_frequency(u64 hz)
{
    ASSERT(hz >= MIN_HZ);
    u64 now_ns = clock_ns();

    clock_scale.base_tsc = tsc_read();
    clock_scale.base_ns = now_ns;
    frequency = hz;
    clock_scale.mult =
        divide_128(NS_PER_SECOND >> (64 - CLOCK_SHIFT), NS_PER_SECOND << CLOCK_SHIFT, hz);
}

void clock_set_wall(u64 epoch_ns)
{
    WRITE_ONCE(wall_offset_ns, epoch_ns - clock_ns());
}

u64 clock_frequency(void)
{
    return frequency;
}
