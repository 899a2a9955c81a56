/*
 * The order in which the machine's devices are found, for kernel/main.c.
 */
#ifndef DRIVERS_DEVICES_H
#define DRIVERS_DEVICES_H

#include "boot/boot_info.h"
#include "kernel/cpu/cpu.h"

/* Both UARTs, polled output, registers the log sinks. First call of kernel_main. */
void serial_init_early(void);
void serial_init_irq(void); /* after apic_init(): interrupt-driven both ways */

/*
 * The console: COM2, or COM1 if alone.
 *
 * console_write: a line, or a text of up to 4 KiB, leaves whole. Sleeps for room; with interrupts
 *     off, in an interrupt or before serial_init_irq() it polls instead. Not with interrupts on and
 *     a spinlock held.
 * console_read: => bytes, 0 (none is there; wait false), -EINTR (a fatal signal came)
 * console_set_input: from now on `receive` gets each byte, in interrupt context, and console_read
 *     nothing. NULL: console_read again.
 * console_flush: returns when all that was written has left, the log included. Polls. Any context.
 */
void console_write(const char *text, size_t len);
ssize_t console_read(char *buf, size_t len, bool wait);
void console_set_input(void (*receive)(u8 byte));
void console_flush(void);

/* => 0; -ENOENT without tables (one CPU, the usual wiring, no power-off) */
int acpi_init(const struct boot_info *boot);
void apic_init(void); /* local APIC of this CPU, IOAPICs, smp_ops */
/* TSC rate, LAPIC timer; timer_set_device(). `ticks`: leaves one that the machine needs, without
 * interrupts. */
void timer_device_init(bool icount, bool ticks);
void timer_device_init_cpu(void);
unsigned cpus_start(unsigned max); /* MADT list -> smp_start_all */
void pci_init(void);
void virtio_blk_init(void); /* registers vda, vdb … */

/* ACPI facts other rooms ask for. */
/* Usable local APICs of the MADT, the caller's first. => how many */
unsigned acpi_cpu_apic_ids(u32 *out, unsigned max);
/* Routes a legacy/ISA interrupt through the IOAPIC to `vector` on the boot CPU. */
int ioapic_route_isa(unsigned irq, u8 vector);

#endif
