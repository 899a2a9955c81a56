/*
 * Finding the ACPI tables in memory, and switching off. The parsing is in acpi_tables.c.
 *
 * The facts are written by acpi_init() on the boot CPU before other CPUs run, and never again.
 */
#include "drivers/acpi.h"

#include "drivers/devices.h"
#include "kernel/log/log.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/page_table.h"

#define BIOS_AREA_START 0xe0000ul
#define BIOS_AREA_END   0x100000ul
#define EBDA_POINTER    0x40eul /* real-mode segment of the extended BIOS data area */
#define EBDA_BYTES      1024ul
#define RSDP_ALIGN      16
#define RSDP_BYTES_MAX  36

#define PM1_SCI_ENABLE       1u
#define PM1_SLEEP_TYPE_SHIFT 10
#define PM1_SLEEP_TYPE_MASK  (7u << PM1_SLEEP_TYPE_SHIFT)
#define PM1_SLEEP_ENABLE     (1u << 13)
#define ACPI_MODE_POLLS      100000

static struct acpi_facts facts;

const struct acpi_facts *acpi_facts(void)
{
    return &facts;
}

/*
 * Firmware memory of any kind, readable. Mostly it lies in the direct map; where it does not it is
 * mapped for good, uncached.
 * => NULL when out of memory
 */
static const void *acpi_map(phys_t phys, size_t bytes)
{
    const u8 *direct = phys_to_virt(phys);

    for (size_t at = 0; at < bytes + PAGE_SIZE; at += PAGE_SIZE) {
        size_t last = MIN(at, bytes - 1);

        if (pt_kernel_translate((u64)(direct + last)) != phys + last)
            return (const void *)mmio_map(phys, bytes);
    }
    return direct;
}

/* ---- The root pointer ---------------------------------------------------------------------- */

static const u8 *rsdp_scan(phys_t start, phys_t end)
{
    const u8 *bytes = acpi_map(start, end - start);

    for (size_t at = 0; bytes && at + RSDP_BYTES_MAX <= end - start; at += RSDP_ALIGN)
        if (acpi_rsdp_check(bytes + at, RSDP_BYTES_MAX))
            return bytes + at;
    return NULL;
}

static const u8 *rsdp_find(const struct boot_info *boot)
{
    const u8 *rsdp;

    if (boot->has_rsdp && acpi_rsdp_check(boot->rsdp_copy, sizeof(boot->rsdp_copy)))
        return boot->rsdp_copy;
    if (boot->rsdp) {
        rsdp = acpi_map(boot->rsdp, RSDP_BYTES_MAX);
        if (rsdp && acpi_rsdp_check(rsdp, RSDP_BYTES_MAX))
            return rsdp;
    }
    const u8 *low = acpi_map(EBDA_POINTER, sizeof(u16));
    phys_t ebda = low ? (phys_t)(low[0] | low[1] << 8) << 4 : 0;

    rsdp = ebda >= PAGE_SIZE && ebda < BIOS_AREA_START ? rsdp_scan(ebda, ebda + EBDA_BYTES) : NULL;
    return rsdp ? rsdp : rsdp_scan(BIOS_AREA_START, BIOS_AREA_END);
}

/* ---- Tables -------------------------------------------------------------------------------- */

/* The table at phys, whole and checked, or NULL with a line in the log. */
static const struct acpi_header *table_map(phys_t phys, const char *signature)
{
    const struct acpi_header *header = phys ? acpi_map(phys, sizeof(*header)) : NULL;

    if (!header)
        return NULL;
    u32 length = header->length;

    if (length < sizeof(*header) || length > ACPI_TABLE_MAX_BYTES) {
        log_warn("acpi: table %.4s at 0x%lx: length %u cannot be", header->signature, phys, length);
        return NULL;
    }
    header = acpi_map(phys, length);
    if (header && acpi_table_check(header, length, signature)) {
        log_warn("acpi: table %.4s at 0x%lx: bad checksum", signature, phys);
        return NULL;
    }
    return header;
}

static void take_madt(const struct acpi_header *table)
{
    facts.has_madt = acpi_parse_madt(table, &facts.madt) == 0 && facts.madt.n_cpus > 0;
    if (!facts.has_madt)
        log_warn("acpi: the MADT is damaged; one CPU only");
}

static void take_fadt(const struct acpi_header *table)
{
    if (acpi_parse_fadt(table, &facts.fadt)) {
        log_warn("acpi: the FADT is damaged");
        return;
    }
    facts.has_fadt = true;
    const struct acpi_header *dsdt = table_map(facts.fadt.dsdt, "DSDT");

    facts.has_sleep_off =
        dsdt && acpi_find_sleep_off((const u8 *)(dsdt + 1), dsdt->length - sizeof(*dsdt),
                                    &facts.sleep_off_a, &facts.sleep_off_b) == 0;
}

static void take_mcfg(const struct acpi_header *table)
{
    if (acpi_parse_mcfg(table, facts.ecam, ACPI_MAX_ECAM, &facts.n_ecam))
        log_warn("acpi: the MCFG is damaged; PCI by ports");
}

static void take_hpet(const struct acpi_header *table)
{
    enum { HPET_ADDRESS_SPACE = 40, HPET_ADDRESS = 44, HPET_LENGTH = 56, SPACE_MEMORY = 0 };
    const u8 *bytes = (const u8 *)table;

    if (table->length >= HPET_LENGTH && bytes[HPET_ADDRESS_SPACE] == SPACE_MEMORY)
        memcpy(&facts.hpet, bytes + HPET_ADDRESS, sizeof(facts.hpet));
}

static const struct table_kind {
    char signature[5];
    void (*take)(const struct acpi_header *table);
} table_kinds[] = {
    {"APIC", take_madt},
    {"FACP", take_fadt},
    {"MCFG", take_mcfg},
    {"HPET", take_hpet},
};

static void take_table(phys_t phys)
{
    const struct acpi_header *header = phys ? acpi_map(phys, sizeof(*header)) : NULL;

    for (size_t i = 0; header && i < ARRAY_SIZE(table_kinds); i++) {
        if (memcmp(header->signature, table_kinds[i].signature, sizeof(header->signature)) != 0)
            continue;
        const struct acpi_header *table = table_map(phys, table_kinds[i].signature);

        if (table)
            table_kinds[i].take(table);
    }
}

/* The XSDT holds 8-byte addresses, the RSDT 4-byte ones; otherwise they are the same. */
static int take_root_table(phys_t phys, const char *signature, size_t pointer_bytes)
{
    const struct acpi_header *root = table_map(phys, signature);

    if (!root)
        return -EINVAL;
    const u8 *at = (const u8 *)(root + 1);
    size_t n = (root->length - sizeof(*root)) / pointer_bytes;

    for (size_t i = 0; i < n; i++) {
        phys_t table = 0;

        memcpy(&table, at + i * pointer_bytes, pointer_bytes);
        take_table(table);
    }
    return 0;
}

int acpi_init(const struct boot_info *boot)
{
    enum { RSDP_RSDT = 16, RSDP_XSDT = 24 };
    const u8 *rsdp = rsdp_find(boot);
    size_t bytes = rsdp ? acpi_rsdp_check(rsdp, RSDP_BYTES_MAX) : 0;
    u32 rsdt = 0;
    phys_t xsdt = 0;

    if (!rsdp) {
        log_warn("acpi: no tables: one CPU, no power-off");
        return -ENOENT;
    }
    memcpy(&rsdt, rsdp + RSDP_RSDT, sizeof(rsdt));
    if (bytes == RSDP_BYTES_MAX)
        memcpy(&xsdt, rsdp + RSDP_XSDT, sizeof(xsdt));
    if ((!xsdt || take_root_table(xsdt, "XSDT", sizeof(u64))) &&
        take_root_table(rsdt, "RSDT", sizeof(u32))) {
        log_warn("acpi: the root table is damaged: one CPU, no power-off");
        return -ENOENT;
    }
    facts.has_tables = true;
    machine_end_set_hooks(console_flush, acpi_power_off);
    log_info("acpi: %u CPUs, %u I/O APICs, power-off %s, PCI by %s", facts.madt.n_cpus,
             facts.madt.n_ioapics, facts.has_sleep_off ? "by PM1" : "unknown",
             facts.n_ecam ? "ECAM" : "ports");
    return 0;
}

/* ---- Questions ----------------------------------------------------------------------------- */

unsigned acpi_cpu_apic_ids(u32 *out, unsigned max)
{
    u32 boot_id = this_cpu()->apic_id;
    unsigned n = 0;

    if (max == 0)
        return 0;
    out[n++] = boot_id;
    for (u32 i = 0; i < facts.madt.n_cpus && n < max; i++)
        if (facts.madt.apic_ids[i] != boot_id)
            out[n++] = facts.madt.apic_ids[i];
    return n;
}

static void pm1_write_sleep(u16 port, u8 type)
{
    if (port == 0)
        return;
    u16 value = port_in16(port) & (u16) ~(PM1_SLEEP_TYPE_MASK | PM1_SLEEP_ENABLE);

    port_out16(port, (u16)(value | type << PM1_SLEEP_TYPE_SHIFT | PM1_SLEEP_ENABLE));
}

/* The registers obey only in ACPI mode; the firmware may have left the machine in legacy mode. */
static void enter_acpi_mode(const struct acpi_fadt *fadt)
{
    if (port_in16(fadt->pm1a_control) & PM1_SCI_ENABLE)
        return;
    if (fadt->smi_command == 0 || fadt->acpi_enable == 0)
        return;
    port_out8(fadt->smi_command, fadt->acpi_enable);
    for (unsigned i = 0; i < ACPI_MODE_POLLS; i++) {
        if (port_in16(fadt->pm1a_control) & PM1_SCI_ENABLE)
            return;
        cpu_pause();
    }
}

void acpi_power_off(void)
{
    if (!facts.has_sleep_off || facts.fadt.pm1a_control == 0)
        return;
    enter_acpi_mode(&facts.fadt);
    pm1_write_sleep(facts.fadt.pm1a_control, facts.sleep_off_a);
    pm1_write_sleep(facts.fadt.pm1b_control, facts.sleep_off_b);
}
