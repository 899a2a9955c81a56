/*
 * The order in which the machine's devices are found, for kernel/main.c.
 */
#ifndef DRIVERS_DEVICES_H
#define DRIVERS_DEVICES_H

#include "boot/boot_info.h"
#include "kernel/cpu/cpu.h"

void serial_init_early(void); /* both UARTs, polled output, registers log sinks. First call of kernel_main. */
void serial_init_irq(void);   /* after interrupts work: interrupt-driven both ways */
/* Console (COM2, or COM1 if alone). */
void console_write(const char *text, size_t len); /* whole, lines of several CPUs never mix; may sleep for room unless irqs off */
ssize_t console_read(char *buf, size_t len, bool wait); /* => bytes, 0 none (wait false), -EINTR */
void console_set_input(void (*receive)(u8 byte)); /* kernel/tty later: raw bytes in interrupt context */
void console_flush(void);

int acpi_init(const struct boot_info *boot); /* => 0; -ENOENT without tables (one CPU, legacy routing) */
void apic_init(void);                        /* local APIC of this CPU, IOAPICs, smp_ops */
void timer_device_init(bool icount);         /* TSC rate, LAPIC timer; timer_set_device() */
void timer_device_init_cpu(void);
unsigned cpus_start(unsigned max);           /* MADT list -> smp_start_all */
void pci_init(void);
void virtio_blk_init(void);                  /* registers vda, vdb … */

/* ACPI facts other rooms ask for. */
unsigned acpi_cpu_apic_ids(u32 *out, unsigned max); /* usable local APICs of the MADT, boot CPU first */
/* Routes a legacy/ISA interrupt through the IOAPIC to `vector` on the boot CPU. */
int ioapic_route_isa(unsigned irq, u8 vector);

#endif
