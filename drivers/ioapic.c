/*
 * The I/O APICs: which pin a legacy interrupt arrives at, and where it goes from there.
 *
 * All interrupts of this kind go to the boot CPU. Devices on PCI send theirs as messages (MSI-X)
 * and need no pin.
 */
#include "drivers/apic.h"
#include "drivers/devices.h"
#include "kernel/log/log.h"
#include "kernel/sync/spin.h"
#include "lib/errno.h"
#include "mm/core/page_table.h"

#define IOAPIC_DEFAULT_ADDRESS   0xfec00000ul
#define IOAPIC_SELECT            0x00
#define IOAPIC_WINDOW            0x10
#define IOAPIC_VERSION           0x01
#define IOAPIC_ENTRY_FIRST       0x10
#define IOAPIC_ENTRY_ACTIVE_LOW  (1ul << 13)
#define IOAPIC_ENTRY_LEVEL       (1ul << 15)
#define IOAPIC_DESTINATION_SHIFT 56
#define IOAPIC_PINS_MAX          240

#define ISA_IRQS    16
#define ISA_IRQ_PIT 0
#define PIT_PIN     2 /* where the PIT is wired if no table says otherwise */

struct ioapic {
    volatile u32 *registers;
    u32 gsi_base, n_pins;
};

LOCK_CLASS(ioapic_lock_class, "ioapic");
static struct spinlock ioapic_lock = SPINLOCK_INIT(&ioapic_lock_class); /* select + window */
static struct ioapic ioapics[ACPI_MAX_IOAPICS]; /* constant after ioapic_init() */
static u32 n_ioapics;
static u32 boot_apic_id;

static u32 ioapic_read(const struct ioapic *ioapic, u32 reg)
{
    ioapic->registers[IOAPIC_SELECT / sizeof(u32)] = reg;
    return ioapic->registers[IOAPIC_WINDOW / sizeof(u32)];
}

static void ioapic_write(const struct ioapic *ioapic, u32 reg, u32 value)
{
    ioapic->registers[IOAPIC_SELECT / sizeof(u32)] = reg;
    ioapic->registers[IOAPIC_WINDOW / sizeof(u32)] = value;
}

static u64 entry_read_locked(const struct ioapic *ioapic, u32 pin)
{
    u32 reg = IOAPIC_ENTRY_FIRST + 2 * pin;

    return ioapic_read(ioapic, reg) | (u64)ioapic_read(ioapic, reg + 1) << 32;
}

/* The half with the mask bit is written last when unmasking and first when masking. */
static void entry_write_locked(const struct ioapic *ioapic, u32 pin, u64 entry)
{
    u32 reg = IOAPIC_ENTRY_FIRST + 2 * pin;

    ioapic_write(ioapic, reg, (u32)(IOAPIC_ENTRY_MASKED | (u32)entry));
    ioapic_write(ioapic, reg + 1, (u32)(entry >> 32));
    ioapic_write(ioapic, reg, (u32)entry);
}

static void ioapic_add(phys_t address, u32 gsi_base)
{
    struct ioapic *ioapic = &ioapics[n_ioapics];

    ioapic->registers = mmio_map(address, PAGE_SIZE);
    if (!ioapic->registers) {
        log_error("ioapic: no memory to map the one at 0x%lx", address);
        return;
    }
    ioapic->gsi_base = gsi_base;
    ioapic->n_pins = (ioapic_read(ioapic, IOAPIC_VERSION) >> 16 & 0xff) + 1;
    if (ioapic->n_pins > IOAPIC_PINS_MAX) { /* reads as all ones: nobody there */
        log_warn("ioapic: nothing answers at 0x%lx", address);
        return;
    }
    for (u32 pin = 0; pin < ioapic->n_pins; pin++)
        entry_write_locked(ioapic, pin, IOAPIC_ENTRY_MASKED);
    n_ioapics++;
}

/*
 * Without a MADT there may still be the one I/O APIC that every PC chipset has had at the same
 * address.
 */
void ioapic_init(void)
{
    const struct acpi_madt *madt = &acpi_facts()->madt;

    boot_apic_id = lapic_id();
    for (u32 i = 0; i < madt->n_ioapics; i++)
        ioapic_add(madt->ioapics[i].address & PAGE_MASK, madt->ioapics[i].gsi_base);
    if (n_ioapics == 0)
        ioapic_add(IOAPIC_DEFAULT_ADDRESS, 0);
}

struct acpi_override ioapic_isa_wiring(const struct acpi_madt *madt, unsigned irq)
{
    struct acpi_override wiring = {.isa_irq = (u8)irq, .gsi = irq};

    for (u32 i = 0; i < madt->n_overrides; i++)
        if (madt->overrides[i].isa_irq == irq)
            return madt->overrides[i];
    if (irq == ISA_IRQ_PIT && madt->n_ioapics == 0)
        wiring.gsi = PIT_PIN;
    return wiring;
}

/* => the I/O APIC whose pin *pin is the global interrupt, or NULL */
static const struct ioapic *ioapic_find(u32 gsi, u32 *pin)
{
    for (u32 i = 0; i < n_ioapics; i++) {
        if (gsi < ioapics[i].gsi_base || gsi - ioapics[i].gsi_base >= ioapics[i].n_pins)
            continue;
        *pin = gsi - ioapics[i].gsi_base;
        return &ioapics[i];
    }
    return NULL;
}

static int ioapic_set_isa(unsigned irq, u64 entry)
{
    struct acpi_override wiring = ioapic_isa_wiring(&acpi_facts()->madt, irq);
    u32 pin;
    const struct ioapic *ioapic = irq < ISA_IRQS ? ioapic_find(wiring.gsi, &pin) : NULL;

    if (!ioapic)
        return -ENODEV;
    entry |= (u64)boot_apic_id << IOAPIC_DESTINATION_SHIFT;
    entry |= wiring.is_active_low ? IOAPIC_ENTRY_ACTIVE_LOW : 0;
    entry |= wiring.is_level ? IOAPIC_ENTRY_LEVEL : 0;
    bool were_on = spin_lock_irq(&ioapic_lock);

    entry_write_locked(ioapic, pin, entry);
    spin_unlock_irq(&ioapic_lock, were_on);
    return 0;
}

int ioapic_route_isa(unsigned irq, u8 vector)
{
    return ioapic_set_isa(irq, vector);
}

void ioapic_mask_isa(unsigned irq)
{
    (void)ioapic_set_isa(irq, IOAPIC_ENTRY_MASKED);
}

int ioapic_read_entry(u32 gsi, u64 *entry)
{
    u32 pin;
    const struct ioapic *ioapic = ioapic_find(gsi, &pin);

    if (!ioapic)
        return -ENOENT;
    bool were_on = spin_lock_irq(&ioapic_lock);

    *entry = entry_read_locked(ioapic, pin);
    spin_unlock_irq(&ioapic_lock, were_on);
    return 0;
}
