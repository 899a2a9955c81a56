/*
 * The readers of boot information, fed with blocks that a loader might write and blocks that none
 * should.
 */
#include "boot/boot_info.h"
#include "boot/parse.h"
#include "lib/string.h"
#include "mm/core/page.h"
#include "tests/kernel/ktest.h"

#define BLOCK_BYTES     16384
#define PVH_MAGIC       0x336ec578
#define FAR_ABOVE_4_GIB 0x123456789000ul

enum {
    TAG_END = 0,
    TAG_CMDLINE = 1,
    TAG_MODULE = 3,
    TAG_MEMORY_MAP = 6,
    TAG_RSDP_V1 = 14,
    TAG_RSDP_V2 = 15
};

static u8 block[BLOCK_BYTES] __attribute__((aligned(64)));
static struct boot_info info;

/* ---- Multiboot2 blocks, built tag by tag ---- */

static u32 block_used;

static void put_bytes(const void *bytes, size_t n)
{
    memcpy(block + block_used, bytes, n);
    block_used += (u32)n;
}

static void put_u32(u32 v)
{
    put_bytes(&v, sizeof v);
}

static void put_u64(u64 v)
{
    put_bytes(&v, sizeof v);
}

static void mb2_begin(void)
{
    memset(block, 0, sizeof block);
    block_used = 8;
}

static void mb2_tag(u32 type, const void *body, u32 bytes)
{
    put_u32(type);
    put_u32(8 + bytes);
    put_bytes(body, bytes);
    block_used = ALIGN_UP(block_used, 8u);
}

static void mb2_map_begin(u32 n_entries)
{
    put_u32(TAG_MEMORY_MAP);
    put_u32(16 + 24 * n_entries);
    put_u32(24);
    put_u32(0);
}

static void mb2_map_entry(u64 start, u64 bytes, u32 type)
{
    put_u64(start);
    put_u64(bytes);
    put_u32(type);
    put_u32(0);
}

static void mb2_good_map(void)
{
    mb2_map_begin(1);
    mb2_map_entry(0, 64ul << 20, 1);
}

static const char *mb2_collect(void)
{
    memcpy(block, &block_used, 4);
    return boot_info_collect(BOOT_MULTIBOOT2, virt_to_phys(block), &info);
}

static const char *mb2_finish(void)
{
    mb2_tag(TAG_END, NULL, 0);
    return mb2_collect();
}

KTEST(boot, multiboot2_block_is_read)
{
    u8 rsdp[36] = "RSD PTR ";
    rsdp[15] = 2;
    mb2_begin();
    mb2_tag(TAG_CMDLINE, "init=/bin/x -- a", 17);
    mb2_tag(TAG_RSDP_V2, rsdp, 36);
    mb2_tag(TAG_RSDP_V1, "RSD PTR old         ", 20);
    mb2_tag(77, "of a later version", 18);
    mb2_good_map();
    u32 module[2] = {0x200000, 0x201234};
    u8 body[8 + 5];
    memcpy(body, module, 8);
    memcpy(body + 8, "ram0", 5);
    mb2_tag(TAG_MODULE, body, sizeof body);
    KASSERT(mb2_finish() == NULL);
    KEXPECT_STREQ(info.cmdline, "init=/bin/x -- a");
    KEXPECT_EQ(info.n_regions, 1);
    KEXPECT_EQ(info.regions[0].end, 64ul << 20);
    KASSERT_EQ(info.n_modules, 1);
    KEXPECT_STREQ(info.modules[0].name, "ram0");
    KEXPECT_EQ(info.modules[0].end, 0x201234);
    KEXPECT(info.has_rsdp);
    KEXPECT_EQ(info.rsdp_copy[15], 2);
    KEXPECT_EQ(info.rsdp, virt_to_phys(info.rsdp_copy));
}

KTEST(boot, tag_beyond_the_block_is_refused)
{
    mb2_begin();
    mb2_good_map();
    put_u32(TAG_CMDLINE);
    put_u32(4000);
    strlcpy((char *)block + block_used, "not of the block", 32);
    KEXPECT(mb2_collect() != NULL);
    KEXPECT_STREQ(info.cmdline, "");
}

KTEST(boot, tag_shorter_than_its_header_is_refused)
{
    mb2_begin();
    mb2_good_map();
    put_u32(99);
    put_u32(0);
    KEXPECT(mb2_finish() != NULL);
}

KTEST(boot, missing_end_tag_is_refused)
{
    mb2_begin();
    mb2_good_map();
    KEXPECT(mb2_collect() != NULL);
}

KTEST(boot, command_line_without_an_end_is_refused)
{
    mb2_begin();
    mb2_good_map();
    mb2_tag(TAG_CMDLINE, "abcdefgh", 8);
    KEXPECT(mb2_finish() != NULL);
}

KTEST(boot, command_line_of_4096_bytes_is_refused_and_4095_is_not)
{
    static char line[BOOT_CMDLINE_SIZE + 1];

    memset(line, 'x', BOOT_CMDLINE_SIZE);
    mb2_begin();
    mb2_good_map();
    mb2_tag(TAG_CMDLINE, line, sizeof line);
    KEXPECT(mb2_finish() != NULL);

    line[BOOT_CMDLINE_SIZE - 1] = '\0';
    mb2_begin();
    mb2_good_map();
    mb2_tag(TAG_CMDLINE, line, BOOT_CMDLINE_SIZE);
    KEXPECT(mb2_finish() == NULL);
    KEXPECT_EQ(strlen(info.cmdline), BOOT_CMDLINE_SIZE - 1);
}

KTEST(boot, memory_map_with_small_entries_is_refused)
{
    mb2_begin();
    put_u32(TAG_MEMORY_MAP);
    put_u32(16 + 16);
    put_u32(16);
    put_u32(0);
    put_u64(0);
    put_u64(1 << 20);
    KEXPECT(mb2_finish() != NULL);
}

KTEST(boot, memory_map_with_entries_of_size_zero_is_refused)
{
    mb2_begin();
    put_u32(TAG_MEMORY_MAP);
    put_u32(16 + 24);
    put_u32(0);
    put_u32(0);
    mb2_map_entry(0, 1 << 20, 1);
    KEXPECT(mb2_finish() != NULL);
}

KTEST(boot, memory_map_that_ends_inside_an_entry_is_refused)
{
    mb2_begin();
    put_u32(TAG_MEMORY_MAP);
    put_u32(16 + 32);
    put_u32(24);
    put_u32(0);
    mb2_map_entry(0, 1 << 20, 1);
    put_u64(0);
    KEXPECT(mb2_finish() != NULL);
}

KTEST(boot, absent_memory_map_is_refused)
{
    mb2_begin();
    mb2_tag(TAG_CMDLINE, "x", 2);
    KEXPECT(mb2_finish() != NULL);
}

KTEST(boot, memory_that_wraps_around_is_refused)
{
    mb2_begin();
    mb2_map_begin(1);
    mb2_map_entry(~0ul - 4095, 8192, 1);
    KEXPECT(mb2_finish() != NULL);
}

KTEST(boot, module_that_ends_before_it_starts_is_refused)
{
    u32 module[2] = {0x300000, 0x200000};

    mb2_begin();
    mb2_good_map();
    mb2_tag(TAG_MODULE, module, sizeof module);
    KEXPECT(mb2_finish() != NULL);
}

KTEST(boot, module_outside_memory_is_refused)
{
    u32 module[2] = {0x80000000, 0x80001000};

    mb2_begin();
    mb2_good_map();
    mb2_tag(TAG_MODULE, module, sizeof module);
    KEXPECT(mb2_finish() != NULL);
}

KTEST(boot, fifth_module_is_refused)
{
    u32 module[2] = {0x200000, 0x201000};

    mb2_begin();
    mb2_good_map();
    for (int i = 0; i < BOOT_MAX_MODULES + 1; i++)
        mb2_tag(TAG_MODULE, module, sizeof module);
    KEXPECT(mb2_finish() != NULL);
}

KTEST(boot, root_pointer_that_is_cut_is_refused)
{
    mb2_begin();
    mb2_good_map();
    mb2_tag(TAG_RSDP_V2, "RSD PTR             ", 20);
    KEXPECT(mb2_finish() != NULL);
}

KTEST(boot, block_of_impossible_size_or_place_is_refused)
{
    mb2_begin();
    block_used = 8;
    KEXPECT(mb2_collect() != NULL);
    block_used = 0xfffffff0;
    KEXPECT(mb2_collect() != NULL);
    KEXPECT(boot_info_collect(BOOT_MULTIBOOT2, FAR_ABOVE_4_GIB, &info) != NULL);
    KEXPECT(boot_info_collect(BOOT_MULTIBOOT2, (4ul << 30) - 4, &info) != NULL);
    KEXPECT(boot_info_collect(BOOT_MULTIBOOT2, virt_to_phys(block) + 4, &info) != NULL);
}

KTEST(boot, overlaps_go_to_the_stronger_claim_and_neighbours_merge)
{
    mb2_begin();
    mb2_map_begin(6);
    mb2_map_entry(0x500000, 0x100000, 1); /* out of order */
    mb2_map_entry(0x100000, 0x400000, 1); /* touches the one before */
    mb2_map_entry(0x200000, 0x100000, 2); /* cuts into it */
    mb2_map_entry(0x280000, 0x100000, 3); /* reserved wins over ACPI, ACPI over usable */
    mb2_map_entry(0x900000, 0, 1);        /* nothing */
    mb2_map_entry(0x700000, 0x1000, 20);  /* a kind that nobody knows */
    KASSERT(mb2_finish() == NULL);
    static const struct boot_region expected[] = {
        {0x100000, 0x200000, BOOT_REGION_USABLE},   {0x200000, 0x300000, BOOT_REGION_RESERVED},
        {0x300000, 0x380000, BOOT_REGION_ACPI},     {0x380000, 0x600000, BOOT_REGION_USABLE},
        {0x700000, 0x701000, BOOT_REGION_RESERVED},
    };
    KASSERT_EQ(info.n_regions, ARRAY_SIZE(expected));
    for (u32 i = 0; i < info.n_regions; i++) {
        KEXPECT_EQ(info.regions[i].start, expected[i].start);
        KEXPECT_EQ(info.regions[i].end, expected[i].end);
        KEXPECT_EQ(info.regions[i].type, expected[i].type);
    }
    KEXPECT(boot_memory_is_usable(&info, 0x380000, 0x600000));
    KEXPECT(!boot_memory_is_usable(&info, 0x37f000, 0x381000));
}

KTEST(boot, memory_map_with_too_many_pieces_is_refused)
{
    mb2_begin();
    mb2_map_begin(BOOT_MAX_REGIONS + 1);
    for (u64 i = 0; i < BOOT_MAX_REGIONS + 1; i++)
        mb2_map_entry(i * 0x2000, 0x1000, 1);
    KEXPECT(mb2_finish() != NULL);
}

/* ---- PVH ---- */

static struct {
    u32 magic, version, flags, n_modules;
    u64 modules, cmdline, rsdp, memory_map;
    u32 n_memory_map, reserved;
} start;
static struct {
    u64 start, bytes;
    u32 type, reserved;
} pvh_map[2];
static struct {
    u64 start, bytes, cmdline, reserved;
} pvh_module;
static const char pvh_cmdline[] = "ktest=boot";

static void pvh_begin(void)
{
    memset(&start, 0, sizeof start);
    pvh_map[0].start = 0;
    pvh_map[0].bytes = 64ul << 20;
    pvh_map[0].type = 1;
    start.magic = PVH_MAGIC;
    start.version = 1;
    start.memory_map = virt_to_phys(pvh_map);
    start.n_memory_map = 1;
    start.cmdline = virt_to_phys(pvh_cmdline);
}

static const char *pvh_collect(void)
{
    return boot_info_collect(BOOT_PVH, virt_to_phys(&start), &info);
}

KTEST(boot, pvh_start_information_is_read)
{
    pvh_begin();
    pvh_module.start = 0x400000;
    pvh_module.bytes = 0x10000;
    start.n_modules = 1;
    start.modules = virt_to_phys(&pvh_module);
    KASSERT(pvh_collect() == NULL);
    KEXPECT_STREQ(info.cmdline, "ktest=boot");
    KEXPECT_EQ(info.n_regions, 1);
    KEXPECT_EQ(info.n_modules, 1);
    KEXPECT_EQ(info.modules[0].end, 0x410000);
    KEXPECT(!info.has_rsdp);
}

KTEST(boot, pvh_without_magic_or_memory_map_is_refused)
{
    pvh_begin();
    start.magic++;
    KEXPECT(pvh_collect() != NULL);
    pvh_begin();
    start.version = 0;
    KEXPECT(pvh_collect() != NULL);
    pvh_begin();
    start.n_memory_map = 0;
    KEXPECT(pvh_collect() != NULL);
}

KTEST(boot, pvh_pointers_above_4_gib_are_refused)
{
    pvh_begin();
    start.cmdline = FAR_ABOVE_4_GIB;
    KEXPECT(pvh_collect() != NULL);
    pvh_begin();
    start.rsdp = FAR_ABOVE_4_GIB;
    KEXPECT(pvh_collect() != NULL);
    pvh_begin();
    start.memory_map = FAR_ABOVE_4_GIB;
    KEXPECT(pvh_collect() != NULL);
    pvh_begin();
    start.n_modules = 1;
    start.modules = FAR_ABOVE_4_GIB;
    KEXPECT(pvh_collect() != NULL);
}

KTEST(boot, pvh_counts_that_overflow_are_refused)
{
    pvh_begin();
    start.n_memory_map = 0xffffffff;
    KEXPECT(pvh_collect() != NULL);
    pvh_begin();
    start.n_modules = 0xffffffff;
    start.modules = virt_to_phys(&pvh_module);
    KEXPECT(pvh_collect() != NULL);
}
