/*
 * The devices on the PCI buses: finding them, their BARs, and MSI-X.
 *
 * Buses are walked from bus 0 through the bridges, whose bus numbers the firmware gave out; each
 * bus at most once, so that a bridge that points back at its own bus does no harm.
 */
#include "drivers/pci.h"

#include "drivers/devices.h"
#include "drivers/pci_internal.h"
#include "kernel/cpu/cpu.h"
#include "kernel/log/log.h"
#include "lib/bitmap.h"
#include "lib/errno.h"
#include "mm/core/page_table.h"
#include "mm/core/slab.h"

#define PCI_BUSES                256
#define PCI_SLOTS                32
#define PCI_FUNCTIONS            8
#define PCI_NO_VENDOR            0xffff
#define PCI_HEADER_MULTIFUNCTION 0x80
#define PCI_HEADER_KIND          0x7f
#define PCI_HEADER_DEVICE        0
#define PCI_HEADER_BRIDGE        1
#define PCI_BRIDGE_BARS          2

#define PCI_COMMAND_IO       (1u << 0)
#define PCI_COMMAND_MEMORY   (1u << 1)
#define PCI_COMMAND_MASTER   (1u << 2)
#define PCI_COMMAND_INTX_OFF (1u << 10)

#define BAR_IS_IO        1u
#define BAR_TYPE_MASK    6u
#define BAR_TYPE_64      4u
#define BAR_PREFETCHABLE 8u
#define BAR_IO_MASK      0xfffffffcu
#define BAR_MEMORY_MASK  0xfffffff0u

#define MSIX_CONTROL          2
#define MSIX_TABLE            4
#define MSIX_CONTROL_SIZE     0x7ff
#define MSIX_CONTROL_MASK_ALL (1u << 14)
#define MSIX_CONTROL_ENABLE   (1u << 15)
#define MSIX_BAR_MASK         7u
#define MSIX_ENTRY_MASKED     1u
#define MSI_ADDRESS           0xfee00000u
#define MSI_DESTINATION_SHIFT 12

/* One entry of the table in the device's memory. */
struct msix_entry {
    u32 address_low, address_high, data, control;
};
_Static_assert(sizeof(struct msix_entry) == 16, "PCI 3.0, 6.8.2.6");

static struct list devices = LIST_INIT(devices); /* constant after pci_init() */
static u64 buses_seen[BITMAP_WORDS(PCI_BUSES)];  /* pci_init() only */

/* ---- BARs ---------------------------------------------------------------------------------- */

/* Writes ones and reads back which bits stick. The device decodes nothing meanwhile. */
static u32 bar_probe(const struct pci_device *dev, unsigned offset)
{
    u32 old = pci_read32(dev, offset);

    pci_write32(dev, offset, ~0u);
    u32 sticks = pci_read32(dev, offset);

    pci_write32(dev, offset, old);
    return sticks;
}

/* => how many registers the BAR takes: 1, or 2 where it is 64 bits wide */
static unsigned bar_decode(struct pci_device *dev, unsigned index)
{
    struct pci_bar *bar = &dev->bars[index];
    unsigned offset = PCI_BAR_FIRST + index * 4;
    u32 low = pci_read32(dev, offset);
    u64 mask = bar_probe(dev, offset);

    bar->is_io = low & BAR_IS_IO;
    if (bar->is_io) {
        mask = (mask & BAR_IO_MASK) | 0xffffffffffff0000ul; /* ports have 16 bits */
        bar->base = low & BAR_IO_MASK & 0xffff;
        bar->bytes = (u16)mask ? ~mask + 1 : 0;
        return 1;
    }
    bar->is_prefetchable = low & BAR_PREFETCHABLE;
    bar->is_64bit = (low & BAR_TYPE_MASK) == BAR_TYPE_64 && index + 1 < PCI_BARS;
    bar->base = low & BAR_MEMORY_MASK;
    mask &= BAR_MEMORY_MASK;
    if (bar->is_64bit) {
        bar->base |= (u64)pci_read32(dev, offset + 4) << 32;
        mask |= (u64)bar_probe(dev, offset + 4) << 32;
    } else if (mask) {
        mask |= 0xffffffff00000000ul;
    }
    bar->bytes = mask ? ~mask + 1 : 0;
    return bar->is_64bit ? 2 : 1;
}

static void bars_decode(struct pci_device *dev, unsigned n)
{
    u16 command = pci_read16(dev, PCI_COMMAND);

    pci_write16(dev, PCI_COMMAND, command & (u16) ~(PCI_COMMAND_IO | PCI_COMMAND_MEMORY));
    for (unsigned i = 0; i < n;)
        i += bar_decode(dev, i);
    pci_write16(dev, PCI_COMMAND, command);
}

volatile void *pci_map_bar(const struct pci_device *dev, unsigned bar, u64 offset, size_t bytes)
{
    if (bar >= PCI_BARS)
        return NULL;
    const struct pci_bar *b = &dev->bars[bar];

    if (b->is_io || b->base == 0 || bytes == 0 || offset > b->bytes || bytes > b->bytes - offset)
        return NULL;
    return mmio_map(b->base + offset, bytes);
}

void pci_enable(const struct pci_device *dev)
{
    u16 command = pci_read16(dev, PCI_COMMAND);

    pci_write16(dev, PCI_COMMAND,
                command | PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_INTX_OFF);
}

/* ---- MSI-X --------------------------------------------------------------------------------- */

static volatile struct msix_entry *msix_entry(struct pci_device *dev, unsigned index)
{
    return (volatile struct msix_entry *)dev->msix_table + index;
}

int pci_msix_enable(struct pci_device *dev)
{
    u16 at = dev->msix_capability;

    if (!at)
        return -ENOENT;
    u32 table = pci_read32(dev, at + MSIX_TABLE);
    unsigned bar = table & MSIX_BAR_MASK;
    size_t bytes = dev->msix_entries * sizeof(struct msix_entry);
    u64 offset = table & ~MSIX_BAR_MASK;

    if (bar >= PCI_BARS || dev->bars[bar].is_io || offset > dev->bars[bar].bytes ||
        bytes > dev->bars[bar].bytes - offset || dev->bars[bar].base == 0)
        return -EINVAL;
    if (!dev->msix_table)
        dev->msix_table = pci_map_bar(dev, bar, offset, bytes);
    if (!dev->msix_table)
        return -ENOMEM;
    u16 control = pci_read16(dev, at + MSIX_CONTROL) | MSIX_CONTROL_ENABLE;

    /* All masked as a whole until every entry is masked by itself. */
    pci_enable(dev);
    pci_write16(dev, at + MSIX_CONTROL, control | MSIX_CONTROL_MASK_ALL);
    for (unsigned i = 0; i < dev->msix_entries; i++)
        pci_msix_mask(dev, i);
    pci_write16(dev, at + MSIX_CONTROL, control & (u16)~MSIX_CONTROL_MASK_ALL);
    return dev->msix_entries;
}

int pci_msix_set(struct pci_device *dev, unsigned index, u8 vector, unsigned cpu)
{
    struct cpu *target = cpu_get(cpu);

    if (!dev->msix_table || index >= dev->msix_entries || !target)
        return -EINVAL;
    volatile struct msix_entry *entry = msix_entry(dev, index);

    entry->control |= MSIX_ENTRY_MASKED; /* the device must not send a half-written message */
    entry->address_low = MSI_ADDRESS | target->apic_id << MSI_DESTINATION_SHIFT;
    entry->address_high = 0;
    entry->data = vector; /* fixed delivery, edge */
    entry->control &= ~MSIX_ENTRY_MASKED;
    return 0;
}

void pci_msix_mask(struct pci_device *dev, unsigned index)
{
    if (dev->msix_table && index < dev->msix_entries)
        msix_entry(dev, index)->control |= MSIX_ENTRY_MASKED;
}

/* ---- Finding devices ----------------------------------------------------------------------- */

static void device_read(struct pci_device *dev)
{
    dev->device = pci_read16(dev, PCI_DEVICE);
    dev->class = pci_read8(dev, PCI_CLASS);
    dev->subclass = pci_read8(dev, PCI_SUBCLASS);
    dev->prog_if = pci_read8(dev, PCI_PROG_IF);
    dev->revision = pci_read8(dev, PCI_REVISION);
    dev->msix_capability = (u16)pci_capability_next(dev, PCI_CAPABILITY_MSIX, 0);
    if (dev->msix_capability)
        dev->msix_entries =
            (pci_read16(dev, dev->msix_capability + MSIX_CONTROL) & MSIX_CONTROL_SIZE) + 1;
}

/* The device at this place joins the list. => its header type, or -ENODEV, -ENOMEM */
static int function_scan(u8 bus, u8 slot, u8 function)
{
    struct pci_device probe = {.bus = bus, .slot = slot, .function = function};

    probe.vendor = pci_read16(&probe, PCI_VENDOR);
    if (probe.vendor == PCI_NO_VENDOR)
        return -ENODEV;
    u8 header = pci_read8(&probe, PCI_HEADER_TYPE);
    struct pci_device *dev = kzalloc(sizeof(*dev));

    if (!dev)
        return -ENOMEM;
    *dev = probe;
    device_read(dev);
    if ((header & PCI_HEADER_KIND) == PCI_HEADER_DEVICE) {
        dev->subsystem = pci_read16(dev, PCI_SUBSYSTEM);
        bars_decode(dev, PCI_BARS);
    } else if ((header & PCI_HEADER_KIND) == PCI_HEADER_BRIDGE) {
        bars_decode(dev, PCI_BRIDGE_BARS);
    }
    list_add_tail(&devices, &dev->link);
    log_info("pci: %02x:%02x.%x %04x:%04x class %02x%02x, %u MSI-X vectors", bus, slot, function,
             dev->vendor, dev->device, dev->class, dev->subclass, dev->msix_entries);
    return header;
}

static void slot_scan(u8 bus, u8 slot)
{
    int header = function_scan(bus, slot, 0);

    if (header < 0 || !(header & PCI_HEADER_MULTIFUNCTION))
        return;
    for (u8 function = 1; function < PCI_FUNCTIONS; function++)
        (void)function_scan(bus, slot, function);
}

static void bus_scan(u8 bus)
{
    bitmap_set(buses_seen, bus);
    pci_config_open_bus(bus);
    for (u8 slot = 0; slot < PCI_SLOTS; slot++)
        slot_scan(bus, slot);
}

static bool device_is_bridge(const struct pci_device *dev)
{
    return (pci_read8(dev, PCI_HEADER_TYPE) & PCI_HEADER_KIND) == PCI_HEADER_BRIDGE;
}

/*
 * Bridges join the list's tail while we walk it, so buses behind buses are found without recursion.
 */
void pci_init(void)
{
    struct pci_device *dev;
    unsigned n = 0;

    bus_scan(0);
    list_for_each (dev, &devices, link) {
        u8 bus = device_is_bridge(dev) ? pci_read8(dev, PCI_SECONDARY_BUS) : 0;

        n++;
        if (!bitmap_test(buses_seen, bus))
            bus_scan(bus);
    }
    log_info("pci: %u devices on %lu buses, configuration by %s", n,
             bitmap_count_set(buses_seen, PCI_BUSES), pci_access_name());
}

int pci_for_each(u16 vendor, u16 device, u16 device_mask,
                 int (*fn)(struct pci_device *dev, void *ctx), void *ctx)
{
    struct pci_device *dev;
    int result = 0;

    list_for_each (dev, &devices, link) {
        if (dev->vendor != vendor || (dev->device & device_mask) != device)
            continue;
        result = fn(dev, ctx);
        if (result)
            break;
    }
    return result;
}
