/*
 * PCI: configuration space, the devices found at boot, their BARs, capabilities and MSI-X.
 *
 * pci_init() walks all buses once, before any driver looks, and the list never changes afterwards:
 * reading it needs no lock. A device belongs to the driver that took it; its functions below are
 * called by that driver alone. None of them sleeps.
 * Sources: PCI Local Bus 3.0 (chapter 6), PCI Express Base 3.0 (7.2.2 ECAM, 7.7 MSI-X).
 */
#ifndef DRIVERS_PCI_H
#define DRIVERS_PCI_H

#include "lib/list.h"
#include "lib/types.h"

#define PCI_CAPABILITY_MSIX   0x11
#define PCI_CAPABILITY_VENDOR 0x09
#define PCI_BARS              6

enum pci_register {
    PCI_VENDOR = 0x00,
    PCI_DEVICE = 0x02,
    PCI_COMMAND = 0x04,
    PCI_STATUS = 0x06,
    PCI_REVISION = 0x08,
    PCI_PROG_IF = 0x09,
    PCI_SUBCLASS = 0x0a,
    PCI_CLASS = 0x0b,
    PCI_HEADER_TYPE = 0x0e,
    PCI_BAR_FIRST = 0x10,
    PCI_SECONDARY_BUS = 0x19,
    PCI_SUBSYSTEM = 0x2e,
    PCI_CAPABILITIES = 0x34,
};

struct pci_bar {
    phys_t base; /* port number if is_io; 0 where the firmware gave none */
    u64 bytes;   /* 0: no such BAR (also the upper half of a 64-bit one) */
    bool is_io, is_64bit, is_prefetchable;
};

struct pci_device {
    u8 bus, slot, function;
    u8 class, subclass, prog_if, revision;
    u16 vendor, device, subsystem;
    struct pci_bar bars[PCI_BARS];
    u16 msix_capability;      /* offset in configuration space; 0: none */
    u16 msix_entries;         /* size of its table */
    volatile u32 *msix_table; /* mapped by pci_msix_enable() */
    void *driver;             /* the driver's own */
    struct list link;
};

/*
 * Configuration space, by register offset (natural alignment). Any context. A hole reads as ones.
 */
u8 pci_read8(const struct pci_device *dev, unsigned offset);
u16 pci_read16(const struct pci_device *dev, unsigned offset);
u32 pci_read32(const struct pci_device *dev, unsigned offset);
void pci_write8(const struct pci_device *dev, unsigned offset, u8 value);
void pci_write16(const struct pci_device *dev, unsigned offset, u16 value);
void pci_write32(const struct pci_device *dev, unsigned offset, u32 value);

/*
 * The next capability `id` behind the one at offset `after` (0: from the start).
 * => its offset, 0 if there is none (also where `after` is not in the list). A list that runs in
 * circles or into the header ends there.
 */
unsigned pci_capability_next(const struct pci_device *dev, u8 id, unsigned after);
/* The walk itself, over any source of configuration bytes (for tests). */
unsigned pci_capability_walk(u8 (*read)(const void *source, unsigned offset), const void *source,
                             u8 id, unsigned after);

/*
 * Maps bytes [offset, offset + bytes) of a memory BAR, uncached.
 * => NULL where the BAR is missing, a port BAR, without address or too small, or memory is out
 */
volatile void *pci_map_bar(const struct pci_device *dev, unsigned bar, u64 offset, size_t bytes);

/* Memory decoding and bus mastering on, INTx off. */
void pci_enable(const struct pci_device *dev);

/*
 * MSI-X: maps the table, masks every entry, switches MSI-X on.
 * => number of entries, -ENOENT without the capability, -EINVAL where its table lies outside the
 * BAR, -ENOMEM
 */
int pci_msix_enable(struct pci_device *dev);
/*
 * Entry `index` sends interrupt `vector` to CPU `cpu` (an index) from now on. => 0, -EINVAL (no
 * such entry or CPU)
 */
int pci_msix_set(struct pci_device *dev, unsigned index, u8 vector, unsigned cpu);
void pci_msix_mask(
    struct pci_device *dev,
    unsigned index); /* the entry sends nothing; a pending message is kept by the device */

/*
 * Calls fn for each device with that vendor whose (device & device_mask) equals `device`, in bus
 * order, until fn returns non-zero. => that result, or 0
 */
int pci_for_each(u16 vendor, u16 device, u16 device_mask,
                 int (*fn)(struct pci_device *dev, void *ctx), void *ctx);
#define PCI_ANY_DEVICE 0, 0 /* device, device_mask */

/* How configuration space is reached: "ECAM" or "ports"; for the log and tests. */
const char *pci_access_name(void);

#endif
