/*
 * What the files of the PCI driver need of each other. Not for other rooms.
 */
#ifndef DRIVERS_PCI_INTERNAL_H
#define DRIVERS_PCI_INTERNAL_H

#include "drivers/pci.h"

/*
 * Makes the bus's configuration space reachable. Boot CPU, before the bus's first register is read.
 */
void pci_config_open_bus(u8 bus);

#endif
