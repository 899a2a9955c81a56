/*
 * The local APIC of each CPU (xAPIC, by memory-mapped registers) and the I/O APICs.
 *
 * apic_init() runs on the boot CPU after acpi_init(); the other CPUs come through
 * smp_ops.init_this_cpu. A CPU touches only its own local APIC; interrupts are off between the two
 * halves of the command register. The redirection tables are guarded by one spinlock.
 * Sources: Intel SDM vol. 3, chapter 11 (APIC); 82093AA I/O APIC data sheet; ACPI 5.2.12.5
 * (overrides).
 */
#ifndef DRIVERS_APIC_H
#define DRIVERS_APIC_H

#include "drivers/acpi.h"

enum lapic_register {
    LAPIC_ID = 0x020,
    LAPIC_VERSION = 0x030,
    LAPIC_TASK_PRIORITY = 0x080,
    LAPIC_EOI = 0x0b0,
    LAPIC_SPURIOUS = 0x0f0,
    LAPIC_IN_SERVICE = 0x100, /* 8 registers, 0x10 apart */
    LAPIC_REQUESTED = 0x200,
    LAPIC_ERROR_STATUS = 0x280,
    LAPIC_COMMAND_LOW = 0x300,
    LAPIC_COMMAND_HIGH = 0x310,
    LAPIC_LVT_TIMER = 0x320,
    LAPIC_LVT_THERMAL = 0x330,
    LAPIC_LVT_PERFORMANCE = 0x340,
    LAPIC_LVT_LINT0 = 0x350,
    LAPIC_LVT_LINT1 = 0x360,
    LAPIC_LVT_ERROR = 0x370,
    LAPIC_TIMER_INITIAL = 0x380,
    LAPIC_TIMER_CURRENT = 0x390,
    LAPIC_TIMER_DIVIDE = 0x3e0,
};

#define LAPIC_LVT_MASKED (1u << 16)

/* This CPU's registers. Only after apic_init(). */
u32 lapic_read(enum lapic_register reg);
void lapic_write(enum lapic_register reg, u32 value);
u32 lapic_id(void); /* of this CPU, as the hardware says */

/* Maps the I/O APICs of the MADT and masks every pin. By apic_init() only. */
void ioapic_init(void);

/* Which pin an ISA interrupt arrives at, by the MADT. Pure. */
struct acpi_override ioapic_isa_wiring(const struct acpi_madt *madt, unsigned irq);

/* Redirection entry of a global system interrupt, for tests and the log. => 0, -ENOENT */
MUST_CHECK int ioapic_read_entry(u32 gsi, u64 *entry);
#define IOAPIC_ENTRY_MASKED (1ul << 16)
/* Masks the pin of a legacy interrupt again. */
void ioapic_mask_isa(unsigned irq);

#endif
