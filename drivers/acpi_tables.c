/*
 * The parsers of ACPI tables: pure functions over a buffer, which believe nothing they have not
 * checked.
 */
#include "drivers/acpi.h"
#include "lib/errno.h"
#include "lib/string.h"

struct acpi_rsdp {
    char signature[8];
    u8 checksum; /* over the first 20 bytes */
    char oem_id[6];
    u8 revision;
    u32 rsdt;
    u32 length; /* from here on only in revision 2 and later */
    u64 xsdt;
    u8 extended_checksum, reserved[3];
} PACKED;
_Static_assert(sizeof(struct acpi_rsdp) == 36, "ACPI 5.2.5.3");
#define RSDP_V1_BYTES 20

bool acpi_checksum_is_ok(const void *data, size_t size)
{
    const u8 *bytes = data;
    u8 sum = 0;

    for (size_t i = 0; i < size; i++)
        sum = (u8)(sum + bytes[i]);
    return sum == 0;
}

size_t acpi_rsdp_check(const void *data, size_t size)
{
    struct acpi_rsdp rsdp = {0};

    if (size < RSDP_V1_BYTES)
        return 0;
    memcpy(&rsdp, data, MIN(size, sizeof(rsdp)));
    if (memcmp(rsdp.signature, "RSD PTR ", sizeof(rsdp.signature)) != 0 ||
        !acpi_checksum_is_ok(data, RSDP_V1_BYTES))
        return 0;
    if (rsdp.revision < 2)
        return RSDP_V1_BYTES;
    if (size < sizeof(rsdp) || rsdp.length < sizeof(rsdp))
        return 0;
    /* Bytes behind the 36 we know would be summed too; nobody defines any. */
    if (rsdp.length != sizeof(rsdp) || !acpi_checksum_is_ok(data, sizeof(rsdp)))
        return 0;
    return sizeof(rsdp);
}

int acpi_table_check(const void *table, size_t size, const char *signature)
{
    struct acpi_header header;

    if (size < sizeof(header))
        return -EINVAL;
    memcpy(&header, table, sizeof(header));
    if (memcmp(header.signature, signature, sizeof(header.signature)) != 0 ||
        header.length < sizeof(header) || header.length > size ||
        header.length > ACPI_TABLE_MAX_BYTES)
        return -EINVAL;
    return acpi_checksum_is_ok(table, header.length) ? 0 : -EINVAL;
}

static u32 table_length(const void *table)
{
    return ((const struct acpi_header *)table)->length;
}

/* ---- MADT: processors and interrupt controllers -------------------------------------------- */

struct madt_start {
    struct acpi_header header;
    u32 lapic_address;
    u32 flags;
} PACKED;
_Static_assert(sizeof(struct madt_start) == 44, "ACPI 5.2.12");
#define MADT_HAS_PICS 1u

enum madt_type {
    MADT_LAPIC = 0,
    MADT_IOAPIC = 1,
    MADT_OVERRIDE = 2,
    MADT_LAPIC_NMI = 4,
    MADT_LAPIC_ADDRESS = 5,
    MADT_X2APIC = 9,
};
#define MADT_CPU_ENABLED 1u
#define XAPIC_ID_MAX     254 /* 255 is everybody */

struct madt_lapic {
    u8 type, length, acpi_id, apic_id;
    u32 flags;
} PACKED;
struct madt_ioapic {
    u8 type, length, id, reserved;
    u32 address, gsi_base;
} PACKED;
struct madt_override {
    u8 type, length, bus, irq;
    u32 gsi;
    u16 flags;
} PACKED;
struct madt_lapic_nmi {
    u8 type, length, acpi_id;
    u16 flags;
    u8 lint;
} PACKED;
struct madt_lapic_address {
    u8 type, length;
    u16 reserved;
    u64 address;
} PACKED;
struct madt_x2apic {
    u8 type, length;
    u16 reserved;
    u32 apic_id, flags, acpi_id;
} PACKED;
_Static_assert(sizeof(struct madt_lapic) == 8 && sizeof(struct madt_ioapic) == 12 &&
                   sizeof(struct madt_override) == 10 && sizeof(struct madt_lapic_nmi) == 6 &&
                   sizeof(struct madt_lapic_address) == 12 && sizeof(struct madt_x2apic) == 16,
               "ACPI 5.2.12.2 and following");

static void madt_add_cpu(struct acpi_madt *out, u32 apic_id, u32 flags)
{
    if (!(flags & MADT_CPU_ENABLED) || apic_id > XAPIC_ID_MAX || out->n_cpus == MAX_CPUS)
        return;
    for (u32 i = 0; i < out->n_cpus; i++)
        if (out->apic_ids[i] == apic_id)
            return;
    out->apic_ids[out->n_cpus++] = apic_id;
}

static void madt_take_lapic(struct acpi_madt *out, const void *entry)
{
    const struct madt_lapic *lapic = entry;

    madt_add_cpu(out, lapic->apic_id, lapic->flags);
}

static void madt_take_x2apic(struct acpi_madt *out, const void *entry)
{
    const struct madt_x2apic *x2apic = entry;

    madt_add_cpu(out, x2apic->apic_id, x2apic->flags);
}

static void madt_take_ioapic(struct acpi_madt *out, const void *entry)
{
    const struct madt_ioapic *ioapic = entry;

    if (out->n_ioapics < ACPI_MAX_IOAPICS)
        out->ioapics[out->n_ioapics++] = (struct acpi_ioapic){
            .id = ioapic->id, .address = ioapic->address, .gsi_base = ioapic->gsi_base};
}

static void madt_take_override(struct acpi_madt *out, const void *entry)
{
    const struct madt_override *override = entry;
    enum { POLARITY_MASK = 3, POLARITY_LOW = 3, TRIGGER_MASK = 0xc, TRIGGER_LEVEL = 0xc };

    if (out->n_overrides < ACPI_MAX_OVERRIDES)
        out->overrides[out->n_overrides++] = (struct acpi_override){
            .isa_irq = override->irq,
            .gsi = override->gsi,
            .is_active_low = (override->flags & POLARITY_MASK) == POLARITY_LOW,
            .is_level = (override->flags & TRIGGER_MASK) == TRIGGER_LEVEL,
        };
}

static void madt_take_nmi(struct acpi_madt *out, const void *entry)
{
    const struct madt_lapic_nmi *nmi = entry;

    if (nmi->lint <= 1) {
        out->has_nmi_lint = true;
        out->nmi_lint = nmi->lint;
    }
}

static void madt_take_address(struct acpi_madt *out, const void *entry)
{
    out->lapic_address = ((const struct madt_lapic_address *)entry)->address;
}

static const struct madt_kind {
    u8 type, length; /* the least length its fields need */
    void (*take)(struct acpi_madt *out, const void *entry);
} madt_kinds[] = {
    {MADT_LAPIC, sizeof(struct madt_lapic), madt_take_lapic},
    {MADT_IOAPIC, sizeof(struct madt_ioapic), madt_take_ioapic},
    {MADT_OVERRIDE, sizeof(struct madt_override), madt_take_override},
    {MADT_LAPIC_NMI, sizeof(struct madt_lapic_nmi), madt_take_nmi},
    {MADT_LAPIC_ADDRESS, sizeof(struct madt_lapic_address), madt_take_address},
    {MADT_X2APIC, sizeof(struct madt_x2apic), madt_take_x2apic},
};

/* => 0, or -EINVAL where the entry is of a known type but too short */
static int madt_take_entry(struct acpi_madt *out, const u8 *entry)
{
    for (size_t i = 0; i < ARRAY_SIZE(madt_kinds); i++) {
        if (madt_kinds[i].type != entry[0])
            continue;
        if (entry[1] < madt_kinds[i].length)
            return -EINVAL;
        madt_kinds[i].take(out, entry);
    }
    return 0;
}

int acpi_parse_madt(const void *table, struct acpi_madt *out)
{
    const struct madt_start *start = table;
    const u8 *bytes = table;
    u32 length = table_length(table);
    u32 at = sizeof(*start);

    memset(out, 0, sizeof(*out));
    if (length < sizeof(*start))
        return -EINVAL;
    out->lapic_address = start->lapic_address;
    out->has_legacy_pics = start->flags & MADT_HAS_PICS;
    while (at < length) {
        u32 left = length - at;

        if (left < 2 || bytes[at + 1] < 2 || bytes[at + 1] > left)
            return -EINVAL;
        if (madt_take_entry(out, bytes + at))
            return -EINVAL;
        at += bytes[at + 1];
    }
    return 0;
}

/* ---- FADT: fixed hardware ------------------------------------------------------------------ */

enum fadt_offset { /* bytes from the start of the table, ACPI 5.2.9 */
                   FADT_DSDT = 40,
                   FADT_SMI_COMMAND = 48,
                   FADT_ACPI_ENABLE = 52,
                   FADT_PM1A_CONTROL = 64,
                   FADT_PM1B_CONTROL = 68,
                   FADT_PM_TIMER = 76,
                   FADT_PM_TIMER_LENGTH = 91,
                   FADT_CENTURY = 108,
                   FADT_FLAGS = 112,
                   FADT_V1_BYTES = 116,
                   FADT_X_DSDT = 140,
                   FADT_X_DSDT_END = 148,
};
#define FADT_FLAG_TIMER_32BIT      (1u << 8)
#define FADT_FLAG_REDUCED_HARDWARE (1u << 20)

static u32 read_u32(const void *table, u32 offset)
{
    u32 value;

    memcpy(&value, (const u8 *)table + offset, sizeof(value));
    return value;
}

static u64 read_u64(const void *table, u32 offset)
{
    u64 value;

    memcpy(&value, (const u8 *)table + offset, sizeof(value));
    return value;
}

/* Port numbers are 16 bits wide; anything larger is no port. */
static u16 read_port(const void *table, u32 offset)
{
    u32 value = read_u32(table, offset);

    return value <= 0xffff ? (u16)value : 0;
}

int acpi_parse_fadt(const void *table, struct acpi_fadt *out)
{
    const u8 *bytes = table;
    u32 length = table_length(table);

    memset(out, 0, sizeof(*out));
    if (length < FADT_V1_BYTES)
        return -EINVAL;
    u32 flags = read_u32(table, FADT_FLAGS);

    out->dsdt = read_u32(table, FADT_DSDT);
    if (length >= FADT_X_DSDT_END && read_u64(table, FADT_X_DSDT))
        out->dsdt = read_u64(table, FADT_X_DSDT);
    out->rtc_century = bytes[FADT_CENTURY];
    if (flags & FADT_FLAG_REDUCED_HARDWARE)
        return 0; /* has none of the registers below */
    out->pm1a_control = read_port(table, FADT_PM1A_CONTROL);
    out->pm1b_control = read_port(table, FADT_PM1B_CONTROL);
    if (bytes[FADT_PM_TIMER_LENGTH] == 4)
        out->pm_timer = read_port(table, FADT_PM_TIMER);
    out->pm_timer_is_32bit = flags & FADT_FLAG_TIMER_32BIT;
    out->smi_command = read_port(table, FADT_SMI_COMMAND);
    out->acpi_enable = bytes[FADT_ACPI_ENABLE];
    return 0;
}

/* ---- MCFG: memory-mapped configuration space ----------------------------------------------- */

struct mcfg_entry {
    u64 base;
    u16 segment;
    u8 first_bus, last_bus;
    u32 reserved;
} PACKED;
_Static_assert(sizeof(struct mcfg_entry) == 16, "PCI Firmware 3.2, 4.1.2");
#define MCFG_ENTRIES 44 /* offset of the first */

int acpi_parse_mcfg(const void *table, struct acpi_ecam *out, u32 max, u32 *n)
{
    u32 length = table_length(table);

    *n = 0;
    if (length < MCFG_ENTRIES || (length - MCFG_ENTRIES) % sizeof(struct mcfg_entry) != 0)
        return -EINVAL;
    for (u32 at = MCFG_ENTRIES; at < length; at += sizeof(struct mcfg_entry)) {
        struct mcfg_entry entry;

        memcpy(&entry, (const u8 *)table + at, sizeof(entry));
        if (entry.segment != 0 || entry.base == 0 || entry.first_bus > entry.last_bus || *n == max)
            continue;
        out[(*n)++] = (struct acpi_ecam){
            .base = entry.base, .first_bus = entry.first_bus, .last_bus = entry.last_bus};
    }
    return 0;
}

/* ---- DSDT: the package that tells how to switch off ---------------------------------------- */

enum aml_code { /* ACPI 20.2 */
                AML_ZERO = 0x00,
                AML_ONE = 0x01,
                AML_NAME = 0x08,
                AML_BYTE = 0x0a,
                AML_WORD = 0x0b,
                AML_DWORD = 0x0c,
                AML_PACKAGE = 0x12,
                AML_ROOT = 0x5c,
};

/* An integer constant at *at, which moves behind it. => 0, -EINVAL */
static int aml_integer(const u8 *aml, size_t size, size_t *at, u32 *value)
{
    static const struct {
        u8 code, bytes;
    } prefixes[] = {{AML_BYTE, 1}, {AML_WORD, 2}, {AML_DWORD, 4}};

    if (*at >= size)
        return -EINVAL;
    u8 code = aml[(*at)++];

    *value = code;
    if (code == AML_ZERO || code == AML_ONE)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
        if (prefixes[i].code != code)
            continue;
        if (size - *at < prefixes[i].bytes)
            return -EINVAL;
        *value = 0;
        memcpy(value, aml + *at, prefixes[i].bytes);
        *at += prefixes[i].bytes;
        return 0;
    }
    return -EINVAL;
}

/* `at` is just behind the name: PackageOp PkgLength NumElements a b. */
static int aml_sleep_package(const u8 *aml, size_t size, size_t at, u32 values[2])
{
    if (at + 2 > size || aml[at] != AML_PACKAGE)
        return -EINVAL;
    size_t length_bytes = 1 + (aml[at + 1] >> 6); /* the top two bits count the bytes that follow */

    at += 1 + length_bytes;
    if (at >= size)
        return -EINVAL;
    u8 elements = aml[at++];

    if (elements < 1 || aml_integer(aml, size, &at, &values[0]))
        return -EINVAL;
    values[1] = values[0];
    if (elements > 1 && aml_integer(aml, size, &at, &values[1]))
        return -EINVAL;
    return 0;
}

int acpi_find_sleep_off(const u8 *aml, size_t size, u8 *type_a, u8 *type_b)
{
    enum { NAME_BYTES = 4, SLEEP_TYPE_MAX = 7 };

    for (size_t at = 1; at + NAME_BYTES < size; at++) {
        u32 values[2];
        bool is_named = aml[at - 1] == AML_NAME ||
                        (at >= 2 && aml[at - 1] == AML_ROOT && aml[at - 2] == AML_NAME);

        if (memcmp(aml + at, "_S5_", NAME_BYTES) != 0 || !is_named)
            continue;
        if (aml_sleep_package(aml, size, at + NAME_BYTES, values))
            continue;
        if (values[0] > SLEEP_TYPE_MAX || values[1] > SLEEP_TYPE_MAX)
            continue;
        *type_a = (u8)values[0];
        *type_b = (u8)values[1];
        return 0;
    }
    return -ENOENT;
}
