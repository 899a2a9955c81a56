/*
 * The local APIC of each CPU: switching it on, interrupts to other CPUs, end of interrupt; and
 * silencing the old 8259 controllers. The I/O APICs are in ioapic.c.
 */
#include "drivers/apic.h"

#include "drivers/devices.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/log/log.h"
#include "mm/core/page_table.h"

#define MSR_APIC_BASE         0x1b
#define APIC_BASE_X2APIC      (1ul << 10)
#define APIC_BASE_ENABLE      (1ul << 11)
#define APIC_BASE_ADDRESS     0x000ffffffffff000ul
#define LAPIC_DEFAULT_ADDRESS 0xfee00000ul

#define LAPIC_SOFTWARE_ENABLE   (1u << 8) /* in LAPIC_SPURIOUS */
#define LAPIC_DELIVER_FIXED     (0u << 8)
#define LAPIC_DELIVER_NMI       (4u << 8)
#define LAPIC_DELIVER_INIT      (5u << 8)
#define LAPIC_DELIVER_STARTUP   (6u << 8)
#define LAPIC_COMMAND_PENDING   (1u << 12)
#define LAPIC_COMMAND_ASSERT    (1u << 14)
#define LAPIC_DESTINATION_SHIFT 24
#define LAPIC_MAX_LVT_SHIFT     16
#define DELIVERY_POLLS          1000000 /* an interrupt message takes well under a microsecond */

#define PIC1_COMMAND    0x20
#define PIC1_DATA       0x21
#define PIC2_COMMAND    0xa0
#define PIC2_DATA       0xa1
#define PIC_INIT_WITH_4 0x11
#define PIC_MODE_8086   0x01
#define PIC_VECTOR_BASE 0x20 /* outside the exceptions, should one ever come through */

static volatile u32 *lapic; /* the same address shows each CPU its own; set by apic_init() */

u32 lapic_read(enum lapic_register reg)
{
    return lapic[reg / sizeof(u32)];
}

void lapic_write(enum lapic_register reg, u32 value)
{
    lapic[reg / sizeof(u32)] = value;
}

u32 lapic_id(void)
{
    return lapic_read(LAPIC_ID) >> LAPIC_DESTINATION_SHIFT;
}

/* Sends one message. The two halves must not be torn apart by an interrupt that sends one, too. */
static void lapic_command(u32 apic_id, u32 command)
{
    bool were_on = irq_save_disable();

    lapic_write(LAPIC_COMMAND_HIGH, apic_id << LAPIC_DESTINATION_SHIFT);
    lapic_write(LAPIC_COMMAND_LOW, command);
    for (unsigned i = 0; i < DELIVERY_POLLS; i++) {
        if (!(lapic_read(LAPIC_COMMAND_LOW) & LAPIC_COMMAND_PENDING))
            break;
        cpu_pause();
    }
    irq_restore(were_on);
}

static void lapic_send_ipi(u32 apic_id, u8 vector)
{
    lapic_command(apic_id, LAPIC_DELIVER_FIXED | LAPIC_COMMAND_ASSERT | vector);
}

static void lapic_send_nmi(u32 apic_id)
{
    lapic_command(apic_id, LAPIC_DELIVER_NMI | LAPIC_COMMAND_ASSERT);
}

static void lapic_send_init(u32 apic_id)
{
    lapic_command(apic_id, LAPIC_DELIVER_INIT | LAPIC_COMMAND_ASSERT);
}

static void lapic_send_startup(u32 apic_id, u8 page)
{
    lapic_command(apic_id, LAPIC_DELIVER_STARTUP | LAPIC_COMMAND_ASSERT | page);
}

static void lapic_end_of_interrupt(void)
{
    lapic_write(LAPIC_EOI, 0);
}

/* xAPIC mode. Out of x2APIC mode the only way leads through "off" (SDM 11.12.5). */
static void lapic_enter_xapic_mode(void)
{
    u64 base = msr_read(MSR_APIC_BASE);

    if (base & APIC_BASE_X2APIC)
        msr_write(MSR_APIC_BASE, base & ~(APIC_BASE_X2APIC | APIC_BASE_ENABLE));
    msr_write(MSR_APIC_BASE, (base & ~APIC_BASE_X2APIC) | APIC_BASE_ENABLE);
}

static void lapic_init_lines(void)
{
    const struct acpi_madt *madt = &acpi_facts()->madt;
    u32 max_lvt = lapic_read(LAPIC_VERSION) >> LAPIC_MAX_LVT_SHIFT & 0xff;
    bool nmi_on_0 = madt->has_nmi_lint && madt->nmi_lint == 0;

    lapic_write(LAPIC_LVT_TIMER, LAPIC_LVT_MASKED | IRQ_VECTOR_TIMER);
    lapic_write(LAPIC_LVT_LINT0, nmi_on_0 ? LAPIC_DELIVER_NMI : LAPIC_LVT_MASKED);
    lapic_write(LAPIC_LVT_LINT1, nmi_on_0 ? LAPIC_LVT_MASKED : LAPIC_DELIVER_NMI);
    lapic_write(LAPIC_LVT_ERROR, LAPIC_LVT_MASKED);
    if (max_lvt >= 4)
        lapic_write(LAPIC_LVT_PERFORMANCE, LAPIC_LVT_MASKED);
    if (max_lvt >= 5)
        lapic_write(LAPIC_LVT_THERMAL, LAPIC_LVT_MASKED);
}

/* What firmware left in service or requested would block everything of lower priority for ever. */
static void lapic_finish_leftovers(void)
{
    enum { REGISTERS = 8, BITS = 32, STRIDE = 0x10 };

    for (unsigned i = 0; i < REGISTERS; i++)
        for (unsigned bit = 0; bit < BITS; bit++)
            if (lapic_read(LAPIC_IN_SERVICE + i * STRIDE) & (1u << bit))
                lapic_end_of_interrupt();
}

static void lapic_init_this_cpu(void)
{
    lapic_enter_xapic_mode();
    lapic_write(LAPIC_TASK_PRIORITY, 0);
    lapic_init_lines();
    lapic_write(LAPIC_SPURIOUS, LAPIC_SOFTWARE_ENABLE | IRQ_VECTOR_SPURIOUS);
    lapic_finish_leftovers();
    this_cpu()->apic_id = lapic_id();
}

static const struct smp_ops lapic_smp_ops = {
    .send_ipi = lapic_send_ipi,
    .send_nmi = lapic_send_nmi,
    .send_init = lapic_send_init,
    .send_startup = lapic_send_startup,
    .end_of_interrupt = lapic_end_of_interrupt,
    .init_this_cpu = lapic_init_this_cpu,
};

/* Moved away from the exception vectors first: a spurious interrupt cannot be masked. */
static void pics_silence(void)
{
    port_out8(PIC1_COMMAND, PIC_INIT_WITH_4);
    port_out8(PIC2_COMMAND, PIC_INIT_WITH_4);
    port_out8(PIC1_DATA, PIC_VECTOR_BASE);
    port_out8(PIC2_DATA, PIC_VECTOR_BASE + 8);
    port_out8(PIC1_DATA, 1u << 2); /* the second one hangs on line 2 of the first */
    port_out8(PIC2_DATA, 2);
    port_out8(PIC1_DATA, PIC_MODE_8086);
    port_out8(PIC2_DATA, PIC_MODE_8086);
    port_out8(PIC1_DATA, 0xff);
    port_out8(PIC2_DATA, 0xff);
}

void apic_init(void)
{
    phys_t base = msr_read(MSR_APIC_BASE) & APIC_BASE_ADDRESS;

    lapic = mmio_map(base ? base : LAPIC_DEFAULT_ADDRESS, PAGE_SIZE);
    if (!lapic)
        panic("no memory to map the local APIC");
    pics_silence();
    smp_set_ops(&lapic_smp_ops);
    lapic_init_this_cpu();
    ioapic_init();
}
