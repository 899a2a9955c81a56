/*
 * Tests of the ACPI parsers, fed with tables that lie about their lengths, are cut off or damaged.
 */
#include "drivers/acpi.h"
#include "drivers/apic.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "tests/kernel/ktest.h"

struct table {
    u8 bytes[256];
    u32 length;
};

static void table_start(struct table *table, const char *signature)
{
    memset(table, 0, sizeof(*table));
    memcpy(table->bytes, signature, 4);
    table->length = sizeof(struct acpi_header);
}

static void table_add(struct table *table, const void *bytes, u32 n)
{
    memcpy(table->bytes + table->length, bytes, n);
    table->length += n;
}

/* Length and checksum into the header. */
static void table_seal(struct table *table)
{
    struct acpi_header *header = (struct acpi_header *)table->bytes;
    u8 sum = 0;

    header->length = table->length;
    header->checksum = 0;
    for (u32 i = 0; i < table->length; i++)
        sum = (u8)(sum + table->bytes[i]);
    header->checksum = (u8)-sum;
}

static const u8 madt_fixed[8] = {0, 0, 0xe0, 0xfe, 1};
static const u8 madt_cpu_0[] = {0, 8, 0, 0, 1, 0, 0, 0};
static const u8 madt_cpu_7[] = {0, 8, 1, 7, 1, 0, 0, 0};
static const u8 madt_cpu_off[] = {0, 8, 2, 8, 0, 0, 0, 0};
static const u8 madt_ioapic[] = {1, 12, 3, 0, 0, 0, 0xc0, 0xfe, 16, 0, 0, 0};
static const u8 madt_override[] = {2, 10, 0, 9, 22, 0, 0, 0, 0x0f, 0};
static const u8 madt_unknown[] = {0x7f, 3, 1};

static void madt_build(struct table *table)
{
    table_start(table, "APIC");
    table_add(table, madt_fixed, sizeof(madt_fixed));
    table_add(table, madt_cpu_0, sizeof(madt_cpu_0));
    table_add(table, madt_unknown, sizeof(madt_unknown));
    table_add(table, madt_cpu_off, sizeof(madt_cpu_off));
    table_add(table, madt_cpu_7, sizeof(madt_cpu_7));
    table_add(table, madt_ioapic, sizeof(madt_ioapic));
    table_add(table, madt_override, sizeof(madt_override));
    table_seal(table);
}

KTEST(acpi, table_with_one_wrong_bit_is_refused)
{
    struct table table;

    madt_build(&table);
    KEXPECT_EQ(acpi_table_check(table.bytes, sizeof(table.bytes), "APIC"), 0);
    KEXPECT_EQ(acpi_table_check(table.bytes, sizeof(table.bytes), "FACP"), -EINVAL);
    for (u32 bit = 0; bit < table.length * 8; bit++) {
        table.bytes[bit / 8] ^= (u8)(1u << bit % 8);
        if (acpi_table_check(table.bytes, sizeof(table.bytes), "APIC") == 0)
            ktest_fail(__FILE__, __LINE__, "bit %u wrong, and taken", bit);
        table.bytes[bit / 8] ^= (u8)(1u << bit % 8);
    }
}

KTEST(acpi, table_longer_than_what_is_there_is_refused)
{
    struct table table;
    struct acpi_header *header = (struct acpi_header *)table.bytes;

    madt_build(&table);
    KEXPECT_EQ(acpi_table_check(table.bytes, table.length, "APIC"), 0);
    KEXPECT_EQ(acpi_table_check(table.bytes, table.length - 1, "APIC"), -EINVAL);
    KEXPECT_EQ(acpi_table_check(table.bytes, 10, "APIC"), -EINVAL);
    header->length = 0xffffffff;
    KEXPECT_EQ(acpi_table_check(table.bytes, ~0ul, "APIC"), -EINVAL);
    header->length = 8;
    KEXPECT_EQ(acpi_table_check(table.bytes, table.length, "APIC"), -EINVAL);
}

KTEST(acpi, madt_gives_usable_cpus_and_wiring)
{
    struct table table;
    struct acpi_madt madt;

    madt_build(&table);
    KASSERT_EQ(acpi_parse_madt(table.bytes, &madt), 0);
    KEXPECT_EQ(madt.lapic_address, 0xfee00000);
    KEXPECT_EQ(madt.n_cpus, 2);
    KEXPECT_EQ(madt.apic_ids[0], 0);
    KEXPECT_EQ(madt.apic_ids[1], 7);
    KEXPECT_EQ(madt.n_ioapics, 1);
    KEXPECT_EQ(madt.ioapics[0].address, 0xfec00000);
    KEXPECT_EQ(madt.ioapics[0].gsi_base, 16);
    struct acpi_override wiring = ioapic_isa_wiring(&madt, 9);

    KEXPECT_EQ(wiring.gsi, 22);
    KEXPECT(wiring.is_active_low && wiring.is_level);
    wiring = ioapic_isa_wiring(&madt, 3);
    KEXPECT_EQ(wiring.gsi, 3);
    KEXPECT(!wiring.is_active_low && !wiring.is_level);
}

/* Entry lengths of zero (an endless loop), beyond the table, and below what the type needs. */
KTEST(acpi, madt_entry_with_an_impossible_length_is_refused)
{
    static const u8 bad[][2] = {{0, 0},  {0, 1},  {0, 7},   {1, 11},   {2, 9},
                                {5, 11}, {9, 15}, {0, 200}, {0x7f, 0}, {0x7f, 1}};
    struct acpi_madt madt;
    struct table table;

    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        u8 entry[16] = {bad[i][0], bad[i][1]};

        table_start(&table, "APIC");
        table_add(&table, madt_fixed, sizeof(madt_fixed));
        table_add(&table, entry, bad[i][1] >= 2 && bad[i][1] < 16 ? bad[i][1] : 16);
        table_seal(&table);
        if (acpi_parse_madt(table.bytes, &madt) != -EINVAL)
            ktest_fail(__FILE__, __LINE__, "type %u of length %u was taken", bad[i][0], bad[i][1]);
    }
    table_start(&table, "APIC");
    table_seal(&table);
    KEXPECT_EQ(acpi_parse_madt(table.bytes, &madt), -EINVAL);
}

/* CPUs beyond MAX_CPUS, twice the same, and ids that an xAPIC cannot address are left out. */
KTEST(acpi, madt_cpu_listed_twice_counts_once)
{
    static const u8 x2apic_wide[] = {9, 16, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
    static const u8 x2apic_7[] = {9, 16, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
    struct table table;
    struct acpi_madt madt;

    madt_build(&table);
    table_add(&table, x2apic_wide, sizeof(x2apic_wide));
    table_add(&table, x2apic_7, sizeof(x2apic_7));
    table_seal(&table);
    KASSERT_EQ(acpi_parse_madt(table.bytes, &madt), 0);
    KEXPECT_EQ(madt.n_cpus, 2);
}

KTEST(acpi, fadt_shorter_than_its_fields_is_refused)
{
    struct table table;
    struct acpi_fadt fadt;
    u32 dsdt = 0x1234560, port = 0x604, too_wide = 0x12345;

    table_start(&table, "FACP");
    table.length = 115;
    table_seal(&table);
    KEXPECT_EQ(acpi_parse_fadt(table.bytes, &fadt), -EINVAL);
    table.length = 116;
    memcpy(table.bytes + 40, &dsdt, 4);
    memcpy(table.bytes + 64, &port, 4);
    memcpy(table.bytes + 68, &too_wide, 4);
    table_seal(&table);
    KASSERT_EQ(acpi_parse_fadt(table.bytes, &fadt), 0);
    KEXPECT_EQ(fadt.dsdt, dsdt);
    KEXPECT_EQ(fadt.pm1a_control, port);
    KEXPECT_EQ(fadt.pm1b_control, 0); /* is no port number */
}

KTEST(acpi, mcfg_with_half_an_entry_is_refused)
{
    static const u8 entry[16] = {0, 0, 0, 0xb0, 0, 0, 0, 0, 0, 0, 0, 0xff};
    static const u8 backwards[16] = {0, 0, 0, 0xb0, 0, 0, 0, 0, 0, 0, 9, 8};
    static const u8 reserved[8];
    struct acpi_ecam ecam[2];
    struct table table;
    u32 n = 99;

    table_start(&table, "MCFG");
    table_add(&table, reserved, sizeof(reserved));
    table_add(&table, entry, sizeof(entry));
    table_add(&table, backwards, sizeof(backwards));
    table_seal(&table);
    KASSERT_EQ(acpi_parse_mcfg(table.bytes, ecam, 2, &n), 0);
    KEXPECT_EQ(n, 1);
    KEXPECT_EQ(ecam[0].base, 0xb0000000);
    KEXPECT_EQ(ecam[0].last_bus, 255);
    table.length -= 8;
    table_seal(&table);
    KEXPECT_EQ(acpi_parse_mcfg(table.bytes, ecam, 2, &n), -EINVAL);
    KEXPECT_EQ(n, 0);
}

KTEST(acpi, root_pointer_needs_both_checksums)
{
    u8 rsdp[36] = "RSD PTR ";

    rsdp[15] = 2;
    rsdp[20] = 36;
    for (unsigned i = 0; i < 20; i++)
        rsdp[8] = (u8)(rsdp[8] - (i == 8 ? 0 : rsdp[i]));
    KEXPECT(acpi_checksum_is_ok(rsdp, 20));
    KEXPECT_EQ(acpi_rsdp_check(rsdp, 36), 0);
    rsdp[32] = (u8)-rsdp[20];
    KEXPECT_EQ(acpi_rsdp_check(rsdp, 36), 36);
    KEXPECT_EQ(acpi_rsdp_check(rsdp, 35), 0);
    rsdp[9]++;
    KEXPECT_EQ(acpi_rsdp_check(rsdp, 36), 0);
}

/* The package is found; cut off anywhere it is not, and nothing behind the cut is looked at. */
KTEST(acpi, sleep_package_cut_off_anywhere_is_not_found)
{
    static const u8 aml[] = {'_', 'S',  '5',  '_',  0x11, 0x08, '_',  'S',  '5',
                             '_', 0x12, 0x07, 0x04, 0x0a, 0x05, 0x01, 0x00, 0x00};
    enum { ENOUGH = 16 };
    u8 copy[sizeof(aml)];
    u8 a = 99, b = 99;

    KASSERT_EQ(acpi_find_sleep_off(aml, sizeof(aml), &a, &b), 0);
    KEXPECT_EQ(a, 5);
    KEXPECT_EQ(b, 1);
    for (size_t size = 0; size < ENOUGH; size++) {
        memset(copy, 1, sizeof(copy)); /* would be a number */
        memcpy(copy, aml, size);
        KEXPECT_EQ(acpi_find_sleep_off(copy, size, &a, &b), -ENOENT);
    }
    memcpy(copy, aml, sizeof(copy));
    copy[14] = 8; /* a sleep type has 3 bits */
    KEXPECT_EQ(acpi_find_sleep_off(copy, sizeof(copy), &a, &b), -ENOENT);
}
