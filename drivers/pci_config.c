/*
 * PCI configuration space: memory-mapped (ECAM) where the MCFG table gives it, else by the ports
 * 0xcf8 and 0xcfc.
 *
 * A bus's megabyte of ECAM is mapped when a register of it is first asked for, which pci_init()
 * does on the boot CPU.
 */
#include "drivers/acpi.h"
#include "drivers/pci_internal.h"
#include "kernel/sync/spin.h"
#include "mm/core/page_table.h"

#define PORT_ADDRESS        0xcf8
#define PORT_DATA           0xcfc
#define PORT_ADDRESS_ENABLE (1u << 31)
#define PORT_SPACE_BYTES    256u /* the extended part is out of the ports' reach */
#define ECAM_BUS_BYTES      (1ul << 20)
#define ECAM_SLOT_SHIFT     15
#define ECAM_FUNCTION_SHIFT 12
#define ECAM_SPACE_BYTES    4096u
#define PCI_BUSES           256

LOCK_CLASS(pci_ports_class, "pci ports");
static struct spinlock ports_lock = SPINLOCK_INIT(&pci_ports_class); /* address + data */
static volatile u8 *ecam_buses[PCI_BUSES]; /* NULL: not mapped; written by pci_init() only */

static phys_t ecam_bus_base(u8 bus)
{
    const struct acpi_facts *facts = acpi_facts();

    for (u32 i = 0; i < facts->n_ecam; i++)
        if (bus >= facts->ecam[i].first_bus && bus <= facts->ecam[i].last_bus)
            return facts->ecam[i].base + bus * ECAM_BUS_BYTES;
    return 0;
}

void pci_config_open_bus(u8 bus)
{
    phys_t base = ecam_bus_base(bus);

    if (base && !ecam_buses[bus])
        ecam_buses[bus] = mmio_map(base, ECAM_BUS_BYTES);
}

const char *pci_access_name(void)
{
    return ecam_buses[0] ? "ECAM" : "ports";
}

/* => where the register is in memory; NULL: by the ports */
static volatile u8 *ecam_address(const struct pci_device *dev, unsigned offset)
{
    volatile u8 *bus = ecam_buses[dev->bus];

    return bus ? bus + ((u32)dev->slot << ECAM_SLOT_SHIFT |
                        (u32)dev->function << ECAM_FUNCTION_SHIFT | offset % ECAM_SPACE_BYTES)
               : NULL;
}

static void ports_select_locked(const struct pci_device *dev, unsigned offset)
{
    port_out32(PORT_ADDRESS, PORT_ADDRESS_ENABLE | (u32)dev->bus << 16 | (u32)dev->slot << 11 |
                                 (u32)dev->function << 8 | (offset & 0xfc));
}

/* A register of 1, 2 or 4 bytes. */
static u32 config_read(const struct pci_device *dev, unsigned offset, unsigned bytes)
{
    volatile u8 *at = ecam_address(dev, offset);
    u16 port = (u16)(PORT_DATA + (offset & 3));
    u32 value;

    if (at)
        return bytes == 1 ? *at : bytes == 2 ? *(volatile u16 *)at : *(volatile u32 *)at;
    if (offset >= PORT_SPACE_BYTES)
        return ~0u;
    bool were_on = spin_lock_irq(&ports_lock);

    ports_select_locked(dev, offset);
    value = bytes == 1 ? port_in8(port) : bytes == 2 ? port_in16(port) : port_in32(port);
    spin_unlock_irq(&ports_lock, were_on);
    return value;
}

static void config_write_ports(const struct pci_device *dev, unsigned offset, unsigned bytes,
                               u32 value)
{
    u16 port = (u16)(PORT_DATA + (offset & 3));
    bool were_on = spin_lock_irq(&ports_lock);

    ports_select_locked(dev, offset);
    if (bytes == 1)
        port_out8(port, (u8)value);
    else if (bytes == 2)
        port_out16(port, (u16)value);
    else
        port_out32(port, value);
    spin_unlock_irq(&ports_lock, were_on);
}

static void config_write(const struct pci_device *dev, unsigned offset, unsigned bytes, u32 value)
{
    volatile u8 *at = ecam_address(dev, offset);

    if (!at) {
        if (offset < PORT_SPACE_BYTES)
            config_write_ports(dev, offset, bytes, value);
    } else if (bytes == 1) {
        *at = (u8)value;
    } else if (bytes == 2) {
        *(volatile u16 *)at = (u16)value;
    } else {
        *(volatile u32 *)at = value;
    }
}

u8 pci_read8(const struct pci_device *dev, unsigned offset)
{
    return (u8)config_read(dev, offset, 1);
}

u16 pci_read16(const struct pci_device *dev, unsigned offset)
{
    return (u16)config_read(dev, offset, 2);
}

u32 pci_read32(const struct pci_device *dev, unsigned offset)
{
    return config_read(dev, offset, 4);
}

void pci_write8(const struct pci_device *dev, unsigned offset, u8 value)
{
    config_write(dev, offset, 1, value);
}

void pci_write16(const struct pci_device *dev, unsigned offset, u16 value)
{
    config_write(dev, offset, 2, value);
}

void pci_write32(const struct pci_device *dev, unsigned offset, u32 value)
{
    config_write(dev, offset, 4, value);
}

/*
 * Always walks from the start and remembers where it has been. So a list that runs in circles ends,
 * also for a caller who asks for one capability after the other.
 */
unsigned pci_capability_walk(u8 (*read)(const void *source, unsigned offset), const void *source,
                             u8 id, unsigned after)
{
    enum { HEADER_END = 0x40, SPACE_END = 0x100, POINTER_MASK = 0xfc, ALIGN = 4 };
    u64 seen = 0; /* bit n: the place at n * ALIGN */
    bool is_behind = after == 0;
    unsigned at = read(source, PCI_CAPABILITIES) & POINTER_MASK;

    while (at >= HEADER_END && at < SPACE_END && !(seen & 1ul << at / ALIGN)) {
        u8 found = read(source, at);

        if (found == 0xff) /* the device is gone */
            return 0;
        if (is_behind && found == id)
            return at;
        is_behind |= at == after;
        seen |= 1ul << at / ALIGN;
        at = read(source, at + 1) & POINTER_MASK;
    }
    return 0;
}

static u8 read_device(const void *source, unsigned offset)
{
    return pci_read8(source, offset);
}

unsigned pci_capability_next(const struct pci_device *dev, u8 id, unsigned after)
{
    enum { STATUS_HAS_CAPABILITIES = 1u << 4 };

    if (!(pci_read16(dev, PCI_STATUS) & STATUS_HAS_CAPABILITIES))
        return 0;
    return pci_capability_walk(read_device, dev, id, after);
}
