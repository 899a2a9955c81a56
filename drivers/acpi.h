/*
 * ACPI: the facts we need from the firmware's tables, read once at boot.
 *
 * No interpreter: fixed tables, and the one package of the DSDT that says how to switch off. Every
 * length and checksum is checked before a byte behind it is used; a table that fails is named in
 * the log and ignored. The parsers are pure functions over a buffer, so tests can feed them
 * anything.
 * Source: ACPI specification 6.4 (5.2 tables, 7.4.2 \_Sx, 20.2 AML encoding); PCI Firmware 3.2
 * (MCFG).
 */
#ifndef DRIVERS_ACPI_H
#define DRIVERS_ACPI_H

#include "boot/boot_info.h"
#include "kernel/cpu/cpu.h"

#define ACPI_MAX_IOAPICS     8
#define ACPI_MAX_OVERRIDES   24
#define ACPI_MAX_ECAM        4
#define ACPI_TABLE_MAX_BYTES (4ul << 20) /* larger is taken for garbage */

struct acpi_header { /* of every system description table */
    char signature[4];
    u32 length; /* bytes, this header included */
    u8 revision, checksum;
    char oem_id[6], oem_table_id[8];
    u32 oem_revision, creator_id, creator_revision;
} PACKED;
_Static_assert(sizeof(struct acpi_header) == 36, "ACPI 5.2.6");

struct acpi_ioapic {
    u32 id;
    phys_t address;
    u32 gsi_base; /* first global system interrupt */
};

/* An ISA interrupt that is not wired to the pin of its own number. */
struct acpi_override {
    u8 isa_irq;
    u32 gsi;
    bool is_active_low, is_level;
};

struct acpi_madt {
    phys_t lapic_address;
    u32 n_cpus;
    u32 apic_ids[MAX_CPUS]; /* usable ones, in the table's order */
    u32 n_ioapics;
    struct acpi_ioapic ioapics[ACPI_MAX_IOAPICS];
    u32 n_overrides;
    struct acpi_override overrides[ACPI_MAX_OVERRIDES];
    bool has_nmi_lint; /* the same pin on all CPUs is all we know of */
    u8 nmi_lint;
    bool has_legacy_pics;
};

struct acpi_fadt {
    phys_t dsdt;
    u16 pm1a_control, pm1b_control; /* ports; 0: none */
    u16 pm_timer;                   /* port; 0: none */
    bool pm_timer_is_32bit;
    u16 smi_command; /* port; 0: ACPI mode is always on */
    u8 acpi_enable;  /* value for it */
    u8 rtc_century;  /* CMOS register; 0: none */
};

struct acpi_ecam { /* memory-mapped PCI configuration space of segment 0 */
    phys_t base;   /* of bus 0, also if first_bus is larger */
    u8 first_bus, last_bus;
};

struct acpi_facts {
    bool has_tables, has_madt, has_fadt, has_sleep_off;
    struct acpi_madt madt;
    struct acpi_fadt fadt;
    u8 sleep_off_a, sleep_off_b; /* SLP_TYP values of \_S5 */
    u32 n_ecam;
    struct acpi_ecam ecam[ACPI_MAX_ECAM];
    phys_t hpet; /* base of its registers; 0: none */
};

/* What acpi_init() found. All zero before it. Constant afterwards. */
const struct acpi_facts *acpi_facts(void);

/* The parsers. Any context, no locks. `size` is what may be read, in bytes. */
bool acpi_checksum_is_ok(const void *data, size_t size); /* the bytes add up to 0 (mod 256) */
/* => length of the root pointer (20 or 36), 0 if this is none or it is damaged */
size_t acpi_rsdp_check(const void *data, size_t size);
/* A whole table in `size` bytes, with that signature. => 0, -EINVAL */
MUST_CHECK int acpi_table_check(const void *table, size_t size, const char *signature);
/* Each takes a table that passed acpi_table_check. => 0, or -EINVAL for a length that cannot be */
MUST_CHECK int acpi_parse_madt(const void *table, struct acpi_madt *out);
MUST_CHECK int acpi_parse_fadt(const void *table, struct acpi_fadt *out);
MUST_CHECK int acpi_parse_mcfg(const void *table, struct acpi_ecam *out, u32 max, u32 *n);
/* Looks for Name(\_S5, Package{a, b, …}) in AML code. => 0, -ENOENT */
MUST_CHECK int acpi_find_sleep_off(const u8 *aml, size_t size, u8 *type_a, u8 *type_b);

/*
 * Switches the machine off by the PM1 control registers; returns where that is not possible. Any
 * context, also a panic.
 */
void acpi_power_off(void);

#endif
