/*
 * Time: how fast the time-stamp counter and the local APIC's timer run, the one-shot timer
 * interrupt, and the date from the real-time clock. (devices.h has what main.c calls.)
 *
 * Under `icount` both run at 1 GHz by definition; otherwise they are measured against a counter of
 * known rate. The legacy timers (PIT, HPET, periodic RTC) are silenced: under `icount` an armed
 * legacy timer would move virtual time while all CPUs sleep.
 * Sources: Intel SDM vol. 3, 11.5.4 (APIC timer), 19.7.3 (CPUID 15H); 8254 data sheet; ACPI
 * 4.8.3.3 (PM timer); IA-PC HPET 1.0a; MC146818A data sheet.
 */
#ifndef DRIVERS_TIMER_H
#define DRIVERS_TIMER_H

#include "lib/types.h"

#define NS_PER_SECOND 1000000000ul

/* A counter of known rate to measure others against. */
struct timer_reference {
    const char *name;
    u64 hz;
    u32 mask;          /* it counts modulo mask + 1 */
    u32 (*read)(void); /* always counting up */
};

u64 lapic_timer_frequency(void); /* Hz */

/* Ticks of a counter of `hz` that cover `ns` at least, at most `max`. Pure; never overflows. */
u64 timer_ticks_for_ns(u64 ns, u64 hz, u64 max);

/*
 * Rate of a counter that moved `ticks` while one of `reference_hz` moved `reference_ticks` (not 0).
 * Pure.
 */
u64 timer_rate_from(u64 ticks, u64 reference_ticks, u64 reference_hz);

/*
 * Seconds since 1970-01-01 of a date of the Gregorian calendar (UTC; month and day from 1). Pure.
 */
u64 rtc_to_epoch(unsigned year, unsigned month, unsigned day, unsigned hour, unsigned minute,
                 unsigned second);
/*
 * Reads the real-time clock. => seconds since 1970, or 0 where it gives no sensible date. Polls up
 * to a few ms.
 */
u64 rtc_read_epoch(void);

/*
 * Its interrupts off. With `stop` the clock itself stands still: QEMU keeps a timer armed for the
 * next alarm (up to a day away) even where nobody wants to know, and under `icount` an idle machine
 * jumps there. Not for a real machine, which would lose the time.
 */
void rtc_silence(bool stop);

#endif
