/*
 * Tests of the drivers that make a PC a machine: PCI, the clock and its timer, the serial port's
 * interrupt, whole lines on the console. The parsers of ACPI tables are in test_acpi.c.
 */
#include "drivers/acpi.h"
#include "drivers/apic.h"
#include "drivers/devices.h"
#include "drivers/pci.h"
#include "drivers/serial.h"
#include "drivers/timer.h"
#include "kernel/cpu/clock.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/sched/timer.h"
#include "kernel/sched/wait.h"
#include "kernel/sync/atomic.h"
#include "lib/format.h"
#include "lib/string.h"
#include "tests/kernel/ktest.h"

#define MS 1000000ul

KTEST(platform, this_machine_says_how_to_switch_off)
{
    const struct acpi_facts *facts = acpi_facts();

    if (!facts->has_tables)
        KTEST_SKIP("no ACPI tables");
    KEXPECT(facts->has_fadt);
    KEXPECT(facts->has_sleep_off);
    KEXPECT(facts->fadt.pm1a_control != 0);
    KEXPECT(facts->madt.n_cpus >= cpu_count());
}

/* ---- PCI ----------------------------------------------------------------------------------- */

static u8 read_buffer(const void *source, unsigned offset)
{
    return ((const u8 *)source)[offset & 0xff];
}

KTEST(platform, pci_capability_list_in_a_circle_ends)
{
    u8 space[256] = {
        [PCI_CAPABILITIES] = 0x40, [0x40] = 9, [0x41] = 0x50, [0x50] = 9, [0x51] = 0x40};

    KEXPECT_EQ(pci_capability_walk(read_buffer, space, PCI_CAPABILITY_MSIX, 0), 0);
    KEXPECT_EQ(pci_capability_walk(read_buffer, space, 9, 0), 0x40);
    KEXPECT_EQ(pci_capability_walk(read_buffer, space, 9, 0x40), 0x50);
    KEXPECT_EQ(pci_capability_walk(read_buffer, space, 9, 0x50), 0);
    space[0x51] = 0x50; /* points at itself */
    KEXPECT_EQ(pci_capability_walk(read_buffer, space, 9, 0x50), 0);
}

KTEST(platform, pci_capability_list_that_leaves_its_area_ends)
{
    u8 space[256] = {
        [PCI_CAPABILITIES] = 0x43, [0x40] = 5, [0x41] = 0xe0, [0xe0] = 0x11, [0xe1] = 4};

    KEXPECT_EQ(pci_capability_walk(read_buffer, space, PCI_CAPABILITY_MSIX, 0), 0xe0);
    KEXPECT_EQ(pci_capability_walk(read_buffer, space, 1, 0), 0);
    KEXPECT_EQ(pci_capability_walk(read_buffer, space, PCI_CAPABILITY_MSIX, 0x44), 0);
    space[PCI_CAPABILITIES] = 0x0c;
    KEXPECT_EQ(pci_capability_walk(read_buffer, space, PCI_CAPABILITY_MSIX, 0), 0);
}

struct pci_seen {
    unsigned n;
    struct pci_device *host;
};

static int pci_note(struct pci_device *dev, void *ctx)
{
    struct pci_seen *seen = ctx;

    seen->n++;
    if (dev->bus == 0 && dev->slot == 0 && dev->function == 0)
        seen->host = dev;
    return 0;
}

KTEST(platform, pci_finds_the_host_bridge)
{
    enum { INTEL = 0x8086, CLASS_BRIDGE = 6 };
    struct pci_seen seen = {0};

    KEXPECT_EQ(pci_for_each(INTEL, PCI_ANY_DEVICE, pci_note, &seen), 0);
    KASSERT(seen.host);
    KEXPECT_EQ(seen.host->class, CLASS_BRIDGE);
    KEXPECT_EQ(pci_read32(seen.host, 0), (u32)seen.host->device << 16 | INTEL);
    KEXPECT_EQ(pci_read8(seen.host, PCI_CLASS), CLASS_BRIDGE);
    KEXPECT_STREQ(pci_access_name(), acpi_facts()->n_ecam ? "ECAM" : "ports");
    KEXPECT(pci_map_bar(seen.host, 0, 0, PAGE_SIZE) == NULL); /* has no such BAR */
    KEXPECT(pci_map_bar(seen.host, PCI_BARS, 0, PAGE_SIZE) == NULL);
}

/* ---- Time ---------------------------------------------------------------------------------- */

KTEST(platform, ticks_are_rounded_up_and_never_overflow)
{
    KEXPECT_EQ(timer_ticks_for_ns(0, 1000, 100), 0);
    KEXPECT_EQ(timer_ticks_for_ns(1, 1000, 100), 1);
    KEXPECT_EQ(timer_ticks_for_ns(1000000, 1000, 100), 1);
    KEXPECT_EQ(timer_ticks_for_ns(1000001, 1000, 100), 2);
    KEXPECT_EQ(timer_ticks_for_ns(1500000000, 4000000000ul, ~0u), ~0u);
    KEXPECT_EQ(timer_ticks_for_ns(~0ul, 6000000000ul, 77), 77);
    KEXPECT_EQ(timer_ticks_for_ns(999999999, 6000000000ul, ~0ul), 5999999994ul);
    KEXPECT_EQ(timer_rate_from(60000000, 71591, 3579545), 2999995809ul);
}

KTEST(platform, dates_become_seconds_since_1970)
{
    KEXPECT_EQ(rtc_to_epoch(1970, 1, 1, 0, 0, 0), 0);
    KEXPECT_EQ(rtc_to_epoch(2000, 2, 29, 23, 59, 59), 951868799);
    KEXPECT_EQ(rtc_to_epoch(2000, 3, 1, 0, 0, 0), 951868800);
    KEXPECT_EQ(rtc_to_epoch(2020, 1, 1, 0, 0, 0), 1577836800);
    KEXPECT_EQ(rtc_to_epoch(2100, 3, 1, 0, 0, 0), 4107542400ul);
    KEXPECT(clock_wall_ns() / NS_PER_SECOND >= rtc_to_epoch(2020, 1, 1, 0, 0, 0));
}

struct clock_pass {
    u64 latest; /* the largest time any CPU has seen */
    u64 went_back_ns;
};

/* Each CPU in turn must not see a time before the one the CPU before it saw. */
static void clock_look(void *arg)
{
    struct clock_pass *pass = arg;
    u64 before = atomic_load(&pass->latest), now = clock_ns();

    if (now < before)
        pass->went_back_ns = MAX(pass->went_back_ns, before - now);
    atomic_store(&pass->latest, MAX(now, before));
}

KTEST(platform, clock_does_not_go_back_from_cpu_to_cpu)
{
    struct clock_pass pass = {0};

    for (unsigned round = 0; round < 50; round++) {
        clock_look(&pass);
        for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
            if (cpu != cpu_index())
                smp_call(1ul << cpu, clock_look, &pass);
    }
    KEXPECT_EQ(pass.went_back_ns, 0);
}

static void check_lapic_id(void *arg)
{
    if (lapic_id() != this_cpu()->apic_id)
        atomic_add((u32 *)arg, 1);
}

KTEST(platform, every_cpu_knows_its_own_apic_id)
{
    u32 wrong = 0;

    check_lapic_id(&wrong);
    smp_call(cpu_online_mask(), check_lapic_id, &wrong);
    KEXPECT_EQ(wrong, 0);
    for (unsigned a = 0; a < cpu_count(); a++)
        for (unsigned b = a + 1; b < cpu_count(); b++)
            KEXPECT(cpu_get(a)->apic_id != cpu_get(b)->apic_id);
}

#define N_TIMERS 4

struct timer_probe {
    struct timer timer;
    u64 fired_ns;
    u32 place; /* 1 for the first that fired */
};

static struct timer_probe probes[N_TIMERS];
static u32 n_fired;

static void probe_fire(struct timer *timer)
{
    struct timer_probe *probe = container_of(timer, struct timer_probe, timer);

    probe->fired_ns = clock_ns();
    probe->place = atomic_add(&n_fired, 1);
}

/* Waits for that many to fire (the host may be slow), and leaves none armed. => how many fired */
static u32 probes_wait(u32 wanted)
{
    u64 give_up = clock_ns() + 5 * NS_PER_SECOND;

    while (atomic_load(&n_fired) < wanted && clock_ns() < give_up)
        sleep_until_ns(clock_ns() + MS);
    for (unsigned i = 0; i < N_TIMERS; i++)
        (void)timer_cancel_sync(&probes[i].timer);
    return atomic_load(&n_fired);
}

/* Armed in no order, fired in the order of their deadlines; none before its deadline. */
KTEST(platform, timers_fire_in_order_and_never_early)
{
    static const u32 place_wanted[N_TIMERS] = {3, 1, 4, 2};
    u64 start = clock_ns();
    u64 irqs = 0;

    n_fired = 0;
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        irqs += irq_count(IRQ_VECTOR_TIMER, cpu);
    bool irqs_on =
        irq_save_disable(); /* all are armed before one can fire, however slow the host is */
    for (unsigned i = 0; i < N_TIMERS; i++) {
        probes[i].fired_ns = 0;
        timer_init(&probes[i].timer, probe_fire);
        timer_arm(&probes[i].timer, start + 2 * MS + place_wanted[i] * MS);
    }
    irq_restore(irqs_on);
    KASSERT_EQ(probes_wait(N_TIMERS), N_TIMERS);
    for (unsigned i = 0; i < N_TIMERS; i++) {
        KEXPECT_EQ(probes[i].place, place_wanted[i]);
        u64 deadline = start + 2 * MS + place_wanted[i] * MS;

        KEXPECT(probes[i].fired_ns >= deadline);
        /* Virtual time has nothing of the host in it; real time has its load. */
        KEXPECT(probes[i].fired_ns < deadline + (clock_is_icount ? MS / 10 : NS_PER_SECOND));
    }
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        irqs -= irq_count(IRQ_VECTOR_TIMER, cpu);
    KEXPECT((s64)-irqs >= 1); /* it was the device, not somebody's polling */
}

KTEST(platform, deadline_in_the_past_fires_at_once)
{
    u64 start = clock_ns();

    n_fired = 0;
    for (unsigned i = 0; i < N_TIMERS; i++)
        timer_init(&probes[i].timer, probe_fire);
    timer_arm(&probes[0].timer, start > MS ? start - MS : 1);
    KASSERT_EQ(probes_wait(1), 1);
    if (clock_is_icount) /* nothing of the host in it */
        KEXPECT(probes[0].fired_ns - start < MS / 10);
}

/* ---- The serial port ----------------------------------------------------------------------- */

/* Reads until `len` bytes are there or two seconds have gone. => how many */
static size_t read_back(char *text, size_t len)
{
    u64 deadline = clock_ns() + 2 * NS_PER_SECOND;
    size_t n = 0;

    while (n < len && clock_ns() < deadline) {
        ssize_t got = console_read(text + n, len - n, false);

        if (got <= 0)
            sleep_until_ns(clock_ns() + MS / 2);
        else
            n += (size_t)got;
    }
    return n;
}

KTEST(platform, interrupt_of_com2_arrives_through_the_ioapic)
{
    struct uart *console = serial_console();
    char byte = 0;
    u64 entry = 0;

    if (serial_loopback_start())
        KTEST_SKIP("the console has no port of its own");
    u64 irqs = READ_ONCE(console->irqs);

    console_write("x", 1);
    size_t n = read_back(&byte, 1);

    serial_loopback_stop();
    KEXPECT_EQ(n, 1);
    KEXPECT_EQ(byte, 'x');
    KEXPECT(READ_ONCE(console->irqs) > irqs);
    KASSERT_EQ(ioapic_read_entry(ioapic_isa_wiring(&acpi_facts()->madt, 3).gsi, &entry), 0);
    KEXPECT(!(entry & IOAPIC_ENTRY_MASKED));
    KEXPECT_EQ(entry >> 56, cpu_get(0)->apic_id);
}

#define N_WRITERS  4
#define LINES_EACH 75 /* in all more than the sending ring holds, less than the receiving one */
#define LINE_BYTES 40
#define TEXT_BYTES (N_WRITERS * LINES_EACH * LINE_BYTES)
_Static_assert(TEXT_BYTES > SERIAL_CONSOLE_RING_BYTES + N_WRITERS * LINE_BYTES &&
                   TEXT_BYTES < SERIAL_INPUT_RING_BYTES,
               "writers may have to wait for room, and nothing gets lost");

static char text_back[TEXT_BYTES];
static u32 writers_ready, writers_may_sleep, writers_may_go;

static void writer(void *arg)
{
    u64 id = (u64)arg;
    char line[LINE_BYTES];

    memset(line, (int)('a' + id), LINE_BYTES - 1);
    line[LINE_BYTES - 1] = '\n';
    atomic_add(&writers_ready, 1);
    while (atomic_load(&writers_ready) < N_WRITERS || !atomic_load(&writers_may_go)) /* at once */
        sched_yield();
    for (unsigned i = 0; i < LINES_EACH; i++) {
        bool must_not_sleep = id == 0 && !writers_may_sleep;
        bool were_on = must_not_sleep ? irq_save_disable() : false;

        line[0] = (char)('0' + i % 10);
        console_write(line, LINE_BYTES);
        irq_restore(were_on);
        sched_yield();
    }
}

/* => number of lines that are not one writer's, whole */
static unsigned count_torn_lines(const char *text, unsigned lines)
{
    unsigned torn = 0;

    for (unsigned i = 0; i < lines; i++, text += LINE_BYTES) {
        bool is_whole = text[0] >= '0' && text[0] <= '9' && text[1] >= 'a' &&
                        text[1] < 'a' + N_WRITERS && text[LINE_BYTES - 1] == '\n';

        for (unsigned at = 2; at < LINE_BYTES - 1; at++)
            is_whole &= text[at] == text[1];
        torn += !is_whole;
    }
    return torn;
}

/* Starts the writers on the CPUs from first_cpu on, in loopback. */
static void writers_start(struct task *tasks[N_WRITERS], unsigned first_cpu, bool may_sleep)
{
    unsigned n_cpus = cpu_count() - first_cpu;

    writers_ready = 0;
    writers_may_sleep = may_sleep;
    writers_may_go = !may_sleep;
    for (u64 i = 0; i < N_WRITERS; i++)
        tasks[i] = task_create("writer", writer, (void *)i, (int)(first_cpu + i % n_cpus));
}

/* Joins them, reads everything back, ends the loopback and checks. */
static void writers_check(struct task *tasks[N_WRITERS], u64 lost_before)
{
    for (unsigned i = 0; i < N_WRITERS; i++)
        if (tasks[i])
            (void)task_join(tasks[i]);
    size_t n = read_back(text_back, TEXT_BYTES);

    serial_loopback_stop();
    KEXPECT_EQ(n, TEXT_BYTES);
    KEXPECT_EQ(serial_console()->rx_lost, lost_before);
    KEXPECT_EQ(count_torn_lines(text_back, (unsigned)(n / LINE_BYTES)), 0);
}

/* One of the four has its interrupts off and may not sleep. */
KTEST(platform, lines_of_four_threads_on_the_console_stay_whole)
{
    struct task *tasks[N_WRITERS];
    u64 lost = serial_console() ? serial_console()->rx_lost : 0;

    if (serial_loopback_start())
        KTEST_SKIP("the console has no port of its own");
    writers_start(tasks, 0, false);
    writers_check(tasks, lost);
}

/* Keeps the console's interrupt waiting until the sending ring is full and the writers sleep. */
static void block_console_irq(void *arg)
{
    struct uart *console = serial_console();
    u64 give_up = clock_ns() + NS_PER_SECOND;
    bool were_on = irq_save_disable();

    (void)arg;
    atomic_store(&writers_may_go, 1);
    while (ring_space(&console->tx) >= LINE_BYTES && clock_ns() < give_up)
        cpu_pause();
    irq_restore(were_on);
}

KTEST(platform, lines_of_writers_that_sleep_for_room_stay_whole)
{
    struct task *tasks[N_WRITERS], *blocker;
    u64 lost = serial_console() ? serial_console()->rx_lost : 0;

    if (cpu_count() < 2)
        KTEST_SKIP("the boot CPU takes the interrupt, another one must fill the ring");
    if (serial_loopback_start())
        KTEST_SKIP("the console has no port of its own");
    writers_start(tasks, 1, true);
    blocker = task_create("blocker", block_console_irq, NULL, 0);
    if (blocker)
        (void)task_join(blocker);
    atomic_store(&writers_may_go, 1);
    writers_check(tasks, lost);
}

KTEST(platform, console_read_without_waiting_returns_nothing)
{
    char byte;

    if (serial_loopback_start())
        KTEST_SKIP("the console has no port of its own");
    ssize_t n = console_read(&byte, 1, false);

    serial_loopback_stop();
    KEXPECT_EQ(n, 0);
}
