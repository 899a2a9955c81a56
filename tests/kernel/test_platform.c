/*
 * Tests of the drivers that make a PC a machine: ACPI tables fed with damaged ones, PCI's capability lists, the
 * clock and its timer, interrupts of the serial port, the console's whole lines.
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

/* ---- ACPI tables --------------------------------------------------------------------------- */

struct table {
    u8 bytes[256];
    u32 length;
};

static void table_start(struct table *table, const char *signature)
{
    memset(table, 0, sizeof(*table));
    memcpy(table->bytes, signature, 4);
    table->length = sizeof(struct acpi_header);
}

static void table_add(struct table *table, const void *bytes, u32 n)
{
    memcpy(table->bytes + table->length, bytes, n);
    table->length += n;
}

/* Length and checksum into the header. */
static void table_seal(struct table *table)
{
    struct acpi_header *header = (struct acpi_header *)table->bytes;
    u8 sum = 0;

    header->length = table->length;
    header->checksum = 0;
    for (u32 i = 0; i < table->length; i++)
        sum = (u8)(sum + table->bytes[i]);
    header->checksum = (u8)-sum;
}

static const u8 madt_fixed[8] = {0, 0, 0xe0, 0xfe, 1};
static const u8 madt_cpu_0[] = {0, 8, 0, 0, 1, 0, 0, 0};
static const u8 madt_cpu_7[] = {0, 8, 1, 7, 1, 0, 0, 0};
static const u8 madt_cpu_off[] = {0, 8, 2, 8, 0, 0, 0, 0};
static const u8 madt_ioapic[] = {1, 12, 3, 0, 0, 0, 0xc0, 0xfe, 16, 0, 0, 0};
static const u8 madt_override[] = {2, 10, 0, 9, 22, 0, 0, 0, 0x0f, 0};
static const u8 madt_unknown[] = {0x7f, 3, 1};

static void madt_build(struct table *table)
{
    table_start(table, "APIC");
    table_add(table, madt_fixed, sizeof(madt_fixed));
    table_add(table, madt_cpu_0, sizeof(madt_cpu_0));
    table_add(table, madt_unknown, sizeof(madt_unknown));
    table_add(table, madt_cpu_off, sizeof(madt_cpu_off));
    table_add(table, madt_cpu_7, sizeof(madt_cpu_7));
    table_add(table, madt_ioapic, sizeof(madt_ioapic));
    table_add(table, madt_override, sizeof(madt_override));
    table_seal(table);
}

KTEST(platform, acpi_table_with_one_wrong_bit_is_refused)
{
    struct table table;

    madt_build(&table);
    KEXPECT_EQ(acpi_table_check(table.bytes, sizeof(table.bytes), "APIC"), 0);
    KEXPECT_EQ(acpi_table_check(table.bytes, sizeof(table.bytes), "FACP"), -EINVAL);
    for (u32 bit = 0; bit < table.length * 8; bit++) {
        table.bytes[bit / 8] ^= (u8)(1u << bit % 8);
        if (acpi_table_check(table.bytes, sizeof(table.bytes), "APIC") == 0)
            ktest_fail(__FILE__, __LINE__, "bit %u wrong, and taken", bit);
        table.bytes[bit / 8] ^= (u8)(1u << bit % 8);
    }
}

KTEST(platform, acpi_table_longer_than_what_is_there_is_refused)
{
    struct table table;
    struct acpi_header *header = (struct acpi_header *)table.bytes;

    madt_build(&table);
    KEXPECT_EQ(acpi_table_check(table.bytes, table.length, "APIC"), 0);
    KEXPECT_EQ(acpi_table_check(table.bytes, table.length - 1, "APIC"), -EINVAL);
    KEXPECT_EQ(acpi_table_check(table.bytes, 10, "APIC"), -EINVAL);
    header->length = 0xffffffff;
    KEXPECT_EQ(acpi_table_check(table.bytes, ~0ul, "APIC"), -EINVAL);
    header->length = 8;
    KEXPECT_EQ(acpi_table_check(table.bytes, table.length, "APIC"), -EINVAL);
}

KTEST(platform, madt_gives_usable_cpus_and_wiring)
{
    struct table table;
    struct acpi_madt madt;

    madt_build(&table);
    KASSERT_EQ(acpi_parse_madt(table.bytes, &madt), 0);
    KEXPECT_EQ(madt.lapic_address, 0xfee00000);
    KEXPECT_EQ(madt.n_cpus, 2);
    KEXPECT_EQ(madt.apic_ids[0], 0);
    KEXPECT_EQ(madt.apic_ids[1], 7);
    KEXPECT_EQ(madt.n_ioapics, 1);
    KEXPECT_EQ(madt.ioapics[0].address, 0xfec00000);
    KEXPECT_EQ(madt.ioapics[0].gsi_base, 16);
    struct acpi_override wiring = ioapic_isa_wiring(&madt, 9);

    KEXPECT_EQ(wiring.gsi, 22);
    KEXPECT(wiring.is_active_low && wiring.is_level);
    wiring = ioapic_isa_wiring(&madt, 3);
    KEXPECT_EQ(wiring.gsi, 3);
    KEXPECT(!wiring.is_active_low && !wiring.is_level);
}

/* Entry lengths of zero (an endless loop), beyond the table, and below what the type needs. */
KTEST(platform, madt_entry_with_an_impossible_length_is_refused)
{
    static const u8 bad[][2] = {{0, 0}, {0, 1}, {0, 7}, {1, 11}, {2, 9}, {5, 11}, {9, 15}, {0, 200}};
    struct acpi_madt madt;
    struct table table;

    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        u8 entry[16] = {bad[i][0], bad[i][1]};

        table_start(&table, "APIC");
        table_add(&table, madt_fixed, sizeof(madt_fixed));
        table_add(&table, entry, sizeof(entry));
        table_seal(&table);
        if (acpi_parse_madt(table.bytes, &madt) != -EINVAL)
            ktest_fail(__FILE__, __LINE__, "type %u of length %u was taken", bad[i][0], bad[i][1]);
    }
    table_start(&table, "APIC");
    table_seal(&table);
    KEXPECT_EQ(acpi_parse_madt(table.bytes, &madt), -EINVAL);
}

/* CPUs beyond MAX_CPUS, twice the same, and ids that an xAPIC cannot address are left out. */
KTEST(platform, madt_cpu_listed_twice_counts_once)
{
    static const u8 x2apic_wide[] = {9, 16, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
    static const u8 x2apic_7[] = {9, 16, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
    struct table table;
    struct acpi_madt madt;

    madt_build(&table);
    table_add(&table, x2apic_wide, sizeof(x2apic_wide));
    table_add(&table, x2apic_7, sizeof(x2apic_7));
    table_seal(&table);
    KASSERT_EQ(acpi_parse_madt(table.bytes, &madt), 0);
    KEXPECT_EQ(madt.n_cpus, 2);
}

KTEST(platform, fadt_shorter_than_its_fields_is_refused)
{
    struct table table;
    struct acpi_fadt fadt;
    u32 dsdt = 0x1234560, port = 0x604, too_wide = 0x12345;

    table_start(&table, "FACP");
    table.length = 115;
    table_seal(&table);
    KEXPECT_EQ(acpi_parse_fadt(table.bytes, &fadt), -EINVAL);
    table.length = 116;
    memcpy(table.bytes + 40, &dsdt, 4);
    memcpy(table.bytes + 64, &port, 4);
    memcpy(table.bytes + 68, &too_wide, 4);
    table_seal(&table);
    KASSERT_EQ(acpi_parse_fadt(table.bytes, &fadt), 0);
    KEXPECT_EQ(fadt.dsdt, dsdt);
    KEXPECT_EQ(fadt.pm1a_control, port);
    KEXPECT_EQ(fadt.pm1b_control, 0); /* is no port number */
}

KTEST(platform, mcfg_with_half_an_entry_is_refused)
{
    static const u8 entry[16] = {0, 0, 0, 0xb0, 0, 0, 0, 0, 0, 0, 0, 0xff};
    static const u8 backwards[16] = {0, 0, 0, 0xb0, 0, 0, 0, 0, 0, 0, 9, 8};
    static const u8 reserved[8];
    struct acpi_ecam ecam[2];
    struct table table;
    u32 n = 99;

    table_start(&table, "MCFG");
    table_add(&table, reserved, sizeof(reserved));
    table_add(&table, entry, sizeof(entry));
    table_add(&table, backwards, sizeof(backwards));
    table_seal(&table);
    KASSERT_EQ(acpi_parse_mcfg(table.bytes, ecam, 2, &n), 0);
    KEXPECT_EQ(n, 1);
    KEXPECT_EQ(ecam[0].base, 0xb0000000);
    KEXPECT_EQ(ecam[0].last_bus, 255);
    table.length -= 8;
    table_seal(&table);
    KEXPECT_EQ(acpi_parse_mcfg(table.bytes, ecam, 2, &n), -EINVAL);
    KEXPECT_EQ(n, 0);
}

KTEST(platform, root_pointer_needs_both_checksums)
{
    u8 rsdp[36] = "RSD PTR ";

    rsdp[15] = 2;
    rsdp[20] = 36;
    for (unsigned i = 0; i < 20; i++)
        rsdp[8] = (u8)(rsdp[8] - (i == 8 ? 0 : rsdp[i]));
    KEXPECT(acpi_checksum_is_ok(rsdp, 20));
    KEXPECT_EQ(acpi_rsdp_check(rsdp, 36), 0);
    rsdp[32] = (u8)-rsdp[20];
    KEXPECT_EQ(acpi_rsdp_check(rsdp, 36), 36);
    KEXPECT_EQ(acpi_rsdp_check(rsdp, 35), 0);
    rsdp[9]++;
    KEXPECT_EQ(acpi_rsdp_check(rsdp, 36), 0);
}

/* The package is found; cut off anywhere it is not, and nothing behind the cut is looked at. */
KTEST(platform, sleep_package_cut_off_anywhere_is_not_found)
{
    static const u8 aml[] = {'_', 'S', '5', '_', 0x11, 0x08, '_', 'S', '5', '_', 0x12, 0x07,
                             0x04, 0x0a, 0x05, 0x01, 0x00, 0x00};
    enum { ENOUGH = 16 };
    u8 copy[sizeof(aml)];
    u8 a = 99, b = 99;

    KASSERT_EQ(acpi_find_sleep_off(aml, sizeof(aml), &a, &b), 0);
    KEXPECT_EQ(a, 5);
    KEXPECT_EQ(b, 1);
    for (size_t size = 0; size < ENOUGH; size++) {
        memset(copy, 0x0a, sizeof(copy));
        memcpy(copy, aml, size);
        KEXPECT_EQ(acpi_find_sleep_off(copy, size, &a, &b), -ENOENT);
    }
    memcpy(copy, aml, sizeof(copy));
    copy[14] = 8; /* a sleep type has 3 bits */
    KEXPECT_EQ(acpi_find_sleep_off(copy, sizeof(copy), &a, &b), -ENOENT);
}

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
    u8 space[256] = {[PCI_CAPABILITIES] = 0x40, [0x40] = 9, [0x41] = 0x50, [0x50] = 9, [0x51] = 0x40};

    KEXPECT_EQ(pci_capability_walk(read_buffer, space, PCI_CAPABILITY_MSIX, 0), 0);
    KEXPECT_EQ(pci_capability_walk(read_buffer, space, 9, 0), 0x40);
    KEXPECT_EQ(pci_capability_walk(read_buffer, space, 9, 0x40), 0x50);
    KEXPECT_EQ(pci_capability_walk(read_buffer, space, 9, 0x50), 0);
    space[0x51] = 0x50; /* points at itself */
    KEXPECT_EQ(pci_capability_walk(read_buffer, space, 9, 0x50), 0);
}

KTEST(platform, pci_capability_list_that_leaves_its_area_ends)
{
    u8 space[256] = {[PCI_CAPABILITIES] = 0x43, [0x40] = 5, [0x41] = 0xe0, [0xe0] = 0x11, [0xe1] = 4};

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
    u64 latest;     /* the largest time any CPU has seen */
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

/* Armed in no order, fired in the order of their deadlines; none before its deadline. */
KTEST(platform, timers_fire_in_order_and_never_early)
{
    static const u32 place_wanted[N_TIMERS] = {3, 1, 4, 2};
    u64 start = clock_ns();
    u64 irqs = 0;

    n_fired = 0;
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        irqs += irq_count(IRQ_VECTOR_TIMER, cpu);
    for (unsigned i = 0; i < N_TIMERS; i++) {
        probes[i].fired_ns = 0;
        timer_init(&probes[i].timer, probe_fire);
        timer_arm(&probes[i].timer, start + 2 * MS + place_wanted[i] * MS);
    }
    sleep_until_ns(start + 10 * MS);
    KASSERT_EQ(atomic_load(&n_fired), N_TIMERS);
    for (unsigned i = 0; i < N_TIMERS; i++) {
        KEXPECT_EQ(probes[i].place, place_wanted[i]);
        KEXPECT(probes[i].fired_ns >= start + 2 * MS + place_wanted[i] * MS);
    }
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        irqs -= irq_count(IRQ_VECTOR_TIMER, cpu);
    KEXPECT((s64)-irqs >= 1); /* it was the device, not somebody's polling */
}

KTEST(platform, deadline_in_the_past_fires_at_once)
{
    u64 start = clock_ns();

    n_fired = 0;
    timer_init(&probes[0].timer, probe_fire);
    timer_arm(&probes[0].timer, start > MS ? start - MS : 1);
    sleep_until_ns(start + 2 * MS);
    KEXPECT_EQ(atomic_load(&n_fired), 1);
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

#define N_WRITERS 4
#define LINES_EACH 6
#define LINE_BYTES 40

static void writer(void *arg)
{
    u64 id = (u64)arg;
    char line[LINE_BYTES + 1];

    memset(line, (int)('a' + id), LINE_BYTES - 1);
    line[LINE_BYTES - 1] = '\n';
    for (unsigned i = 0; i < LINES_EACH; i++) {
        bool were_on = id == 0 ? irq_save_disable() : false; /* one of them may not sleep */

        line[0] = (char)('0' + i);
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
        bool is_whole = text[0] >= '0' && text[0] < '0' + LINES_EACH && text[1] >= 'a' &&
                        text[1] < 'a' + N_WRITERS && text[LINE_BYTES - 1] == '\n';

        for (unsigned at = 2; at < LINE_BYTES - 1; at++)
            is_whole &= text[at] == text[1];
        torn += !is_whole;
    }
    return torn;
}

KTEST(platform, lines_of_four_threads_on_the_console_stay_whole)
{
    static char text[N_WRITERS * LINES_EACH * LINE_BYTES + 1];
    struct task *tasks[N_WRITERS];
    u64 lost = serial_console() ? serial_console()->rx_lost : 0;

    if (serial_loopback_start())
        KTEST_SKIP("the console has no port of its own");
    for (u64 i = 0; i < N_WRITERS; i++)
        tasks[i] = task_create("writer", writer, (void *)i, (int)(i % cpu_count()));
    for (unsigned i = 0; i < N_WRITERS; i++)
        if (tasks[i])
            (void)task_join(tasks[i]);
    size_t n = read_back(text, sizeof(text) - 1);

    serial_loopback_stop();
    KEXPECT_EQ(n, sizeof(text) - 1);
    KEXPECT_EQ(serial_console()->rx_lost, lost);
    KEXPECT_EQ(count_torn_lines(text, N_WRITERS * LINES_EACH), 0);
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
