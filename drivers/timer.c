/*
 * The rates of the time-stamp counter and of the local APIC's timer, the one-shot timer interrupt,
 * and silence for the timers we do not use. The date is in rtc.c.
 */
#include "drivers/timer.h"

#include "drivers/apic.h"
#include "drivers/devices.h"
#include "kernel/cpu/clock.h"
#include "kernel/cpu/trap.h"
#include "kernel/log/log.h"
#include "kernel/sched/timer.h"
#include "mm/core/page_table.h"

#define ICOUNT_HZ           1000000000ul
#define CALIBRATION_NS      20000000ul
#define CALIBRATION_SAMPLES 16
#define STUCK_POLLS         10000000 /* a reference that does not move for so many reads is none */

#define LAPIC_TIMER_DIVIDE_BY_1 0xb
#define LAPIC_TIMER_COUNT_MAX \
    0x7ffffffful /* about 2 s at 1 GHz; longer waits are cut into pieces */

#define PIT_HZ         1193182ul
#define PIT_CHANNEL_0  0x40
#define PIT_CHANNEL_2  0x42
#define PIT_COMMAND    0x43
#define PIT_LATCH_2    0x80
#define PIT_ONESHOT_0  0x30 /* channel 0, low then high byte, mode 0 */
#define PIT_RATE_0     0x34 /* the same, mode 2 */
#define PIT_TICKS_HZ   1000ul
#define PIT_RATE_2     0xb4 /* channel 2, low then high byte, mode 2 */
#define SPEAKER_PORT   0x61
#define SPEAKER_GATE_2 0x01
#define SPEAKER_SOUND  0x02

#define PM_TIMER_HZ 3579545ul

#define HPET_CONFIG 0x10
#define HPET_BYTES  0x400
#define HPET_ENABLE 1u
#define HPET_LEGACY 2u

static u64 lapic_hz; /* set once by timer_device_init() */

u64 lapic_timer_frequency(void)
{
    return lapic_hz;
}

/* ---- Arithmetic ---------------------------------------------------------------------------- */

/*
 * Whole seconds apart, so that ns * hz fits: below 1 s the product stays under 2^64 up to 18 GHz.
 * Rounded up: never early.
 */
u64 timer_ticks_for_ns(u64 ns, u64 hz, u64 max)
{
    u64 seconds = ns / NS_PER_SECOND;

    if (hz == 0 || seconds > max / hz)
        return max;
    u64 ticks = seconds * hz + DIV_ROUND_UP(ns % NS_PER_SECOND * hz, NS_PER_SECOND);

    return MIN(ticks, max);
}

u64 timer_rate_from(u64 ticks, u64 reference_ticks, u64 reference_hz)
{
    u64 whole = ticks / reference_ticks, rest = ticks % reference_ticks;

    return whole * reference_hz + rest * reference_hz / reference_ticks;
}

/* ---- References of known rate -------------------------------------------------------------- */

static u32 pm_timer_read(void)
{
    return port_in32(acpi_facts()->fadt.pm_timer);
}

static u32 pit_read(void)
{
    port_out8(PIT_COMMAND, PIT_LATCH_2);
    u32 low = port_in8(PIT_CHANNEL_2);
    u32 high = port_in8(PIT_CHANNEL_2);

    return 0x10000 - (low | high << 8); /* it counts down */
}

/* Channel 2 counts from 65536 down and over again, with its sound switched off. */
static void pit_start(void)
{
    u8 port = port_in8(SPEAKER_PORT) & (u8) ~(SPEAKER_SOUND | SPEAKER_GATE_2);

    port_out8(SPEAKER_PORT, port);
    port_out8(PIT_COMMAND, PIT_RATE_2);
    port_out8(PIT_CHANNEL_2, 0);
    port_out8(PIT_CHANNEL_2, 0);
    port_out8(SPEAKER_PORT, port | SPEAKER_GATE_2);
}

static bool reference_moves(const struct timer_reference *reference)
{
    u32 start = reference->read();

    for (unsigned i = 0; i < 1000; i++)
        if (reference->read() != start)
            return true;
    return false;
}

static struct timer_reference reference_choose(void)
{
    const struct acpi_fadt *fadt = &acpi_facts()->fadt;
    struct timer_reference pm = {"PM timer", PM_TIMER_HZ, 0xffffff, pm_timer_read};

    if (fadt->pm_timer && reference_moves(&pm))
        return pm;
    pit_start();
    return (struct timer_reference){"PIT", PIT_HZ, 0xffff, pit_read};
}

/* ---- Measuring ----------------------------------------------------------------------------- */

struct sample {
    u64 tsc;
    u32 lapic, reference;
};

/* Of several readings, the one that took the shortest: the least disturbed by the host. */
static struct sample sample_take(const struct timer_reference *reference)
{
    struct sample best = {0};
    u64 best_cycles = ~0ul;

    for (unsigned i = 0; i < CALIBRATION_SAMPLES; i++) {
        u64 before = tsc_read();
        struct sample sample = {.reference = reference->read(),
                                .lapic = lapic_read(LAPIC_TIMER_CURRENT)};
        u64 cycles = tsc_read() - before;

        sample.tsc = before + cycles / 2;
        if (cycles < best_cycles) {
            best_cycles = cycles;
            best = sample;
        }
    }
    return best;
}

/*
 * Counts both over 20 ms of the reference. => TSC rate in Hz, 0 if the reference stands still; sets
 * lapic_hz
 */
static u64 measure(const struct timer_reference *reference)
{
    u32 wanted = (u32)timer_ticks_for_ns(CALIBRATION_NS, reference->hz, reference->mask / 2);

    lapic_write(LAPIC_TIMER_DIVIDE, LAPIC_TIMER_DIVIDE_BY_1);
    lapic_write(LAPIC_TIMER_INITIAL, 0xffffffff);
    struct sample start = sample_take(reference);

    for (u32 polls = 0; ((reference->read() - start.reference) & reference->mask) < wanted; polls++)
        if (polls == STUCK_POLLS)
            return 0;
    struct sample end = sample_take(reference);
    u32 moved = (end.reference - start.reference) & reference->mask;

    lapic_write(LAPIC_TIMER_INITIAL, 0);
    lapic_hz = timer_rate_from(start.lapic - end.lapic, moved, reference->hz);
    return timer_rate_from(end.tsc - start.tsc, moved, reference->hz);
}

static void cpuid(u32 leaf, u32 out[4])
{
    __asm__ volatile("cpuid"
                     : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3])
                     : "a"(leaf), "c"(0));
}

/*
 * What the processor says its TSC runs at, or 0. Leaf 15H: crystal and ratio; 16H stands in for a
 * crystal left out.
 */
static u64 tsc_hz_from_cpuid(void)
{
    enum { LEAF_TSC = 0x15, LEAF_FREQUENCY = 0x16 };
    u32 top[4], tsc[4], frequency[4] = {0};

    cpuid(0, top);
    if (top[0] < LEAF_TSC)
        return 0;
    cpuid(LEAF_TSC, tsc);
    if (tsc[0] == 0 || tsc[1] == 0)
        return 0;
    if (tsc[2] != 0)
        return (u64)tsc[2] * tsc[1] / tsc[0];
    if (top[0] >= LEAF_FREQUENCY)
        cpuid(LEAF_FREQUENCY, frequency);
    return (u64)(frequency[0] & 0xffff) * 1000000;
}

/* Sets the clock's rate and lapic_hz. => where they come from */
static const char *rates_find(bool icount)
{
    if (icount) {
        lapic_hz = ICOUNT_HZ;
        clock_set_frequency(ICOUNT_HZ);
        return "icount";
    }
    struct timer_reference reference = reference_choose();
    u64 measured = measure(&reference);
    u64 told = tsc_hz_from_cpuid();

    if (measured == 0 || lapic_hz == 0)
        panic("no timer of known rate: the %s does not count", reference.name);
    clock_set_frequency(told ? told : measured);
    return told ? "CPUID" : reference.name;
}

/* ---- The one-shot timer -------------------------------------------------------------------- */

/*
 * The interrupt may come before deadline_ns by the error of the measured rate, or because the
 * counter is only 32 bits wide: timer_interrupt() looks at the clock and sets the rest again.
 */
static void lapic_timer_set_next(u64 deadline_ns)
{
    u64 now = clock_ns();
    u64 ticks = 0;

    if (deadline_ns != 0)
        ticks = deadline_ns <= now
                    ? 1
                    : timer_ticks_for_ns(deadline_ns - now, lapic_hz, LAPIC_TIMER_COUNT_MAX);
    lapic_write(LAPIC_TIMER_INITIAL, (u32)ticks); /* 0 stops it */
}

static const struct timer_device lapic_timer = {.set_next = lapic_timer_set_next};

static void lapic_timer_interrupt(void *context)
{
    (void)context;
    timer_interrupt();
}

void timer_device_init_cpu(void)
{
    lapic_write(LAPIC_TIMER_DIVIDE, LAPIC_TIMER_DIVIDE_BY_1);
    lapic_write(LAPIC_LVT_TIMER, IRQ_VECTOR_TIMER); /* one-shot, not masked */
    lapic_write(LAPIC_TIMER_INITIAL, 0);
}

/* ---- The timers we do not use -------------------------------------------------------------- */

/* One shot, over within a microsecond: then the channel is quiet for good. */
static void pit_silence(void)
{
    port_out8(PIT_COMMAND, PIT_ONESHOT_0);
    port_out8(PIT_CHANNEL_0, 1);
    port_out8(PIT_CHANNEL_0, 0);
    port_out8(SPEAKER_PORT, port_in8(SPEAKER_PORT) & (u8) ~(SPEAKER_SOUND | SPEAKER_GATE_2));
}

/*
 * While QEMU records a run, or plays one again, it hands a disk's completions over only between the
 * timers of virtual time: an idle machine without any would wait for ever. The interrupt stays masked.
 */
static void pit_tick(void)
{
    u16 count = PIT_HZ / PIT_TICKS_HZ;

    port_out8(PIT_COMMAND, PIT_RATE_0);
    port_out8(PIT_CHANNEL_0, (u8)count);
    port_out8(PIT_CHANNEL_0, (u8)(count >> 8));
}

static void hpet_silence(void)
{
    phys_t base = acpi_facts()->hpet;
    volatile u8 *hpet = base ? mmio_map(base, HPET_BYTES) : NULL;

    if (!hpet)
        return;
    volatile u32 *config = (volatile u32 *)(hpet + HPET_CONFIG);

    *config &= ~(HPET_ENABLE | HPET_LEGACY);
}

static void silence_others(bool icount, bool ticks)
{
    pit_silence();
    if (ticks)
        pit_tick();
    hpet_silence();
    rtc_silence(icount);
}

void timer_device_init(bool icount, bool ticks)
{
    bool were_on = irq_save_disable();
    const char *source = rates_find(icount);

    irq_restore(were_on);
    u64 epoch = rtc_read_epoch();

    silence_others(icount, ticks);
    clock_set_wall(epoch * NS_PER_SECOND);
    irq_register_fixed(IRQ_VECTOR_TIMER, "timer", lapic_timer_interrupt, NULL);
    timer_device_init_cpu();
    timer_set_device(&lapic_timer);
    log_info("timer: TSC %lu kHz, APIC timer %lu kHz (%s), %lu s since 1970",
             clock_frequency() / 1000, lapic_hz / 1000, source, epoch);
}
