/*
 * The PVH start information that QEMU hands over with -kernel: one structure of physical addresses.
 *
 * Source: Xen "x86/HVM direct boot ABI", struct hvm_start_info (version 1).
 */
#include "boot/parse.h"
#include "lib/string.h"

#define PVH_MAGIC            0x336ec578
#define RSDP_REVISION_OFFSET 15
#define RSDP_BYTES_V1        20
#define RSDP_BYTES_V2        36

struct pvh_start_info {
    u32 magic;
    u32 version;
    u32 flags;
    u32 n_modules;
    u64 modules;
    u64 cmdline;
    u64 rsdp;
    u64 memory_map; /* version 1 on */
    u32 n_memory_map;
    u32 reserved;
};
_Static_assert(sizeof(struct pvh_start_info) == 56, "PVH ABI");

struct pvh_module {
    u64 start, bytes;
    u64 cmdline;
    u64 reserved;
};
_Static_assert(sizeof(struct pvh_module) == 32, "PVH ABI");

struct pvh_memory_map_entry {
    u64 start, bytes;
    u32 type;
    u32 reserved;
};
_Static_assert(sizeof(struct pvh_memory_map_entry) == 24, "PVH ABI");

/* Bytes that can be read at phys, at most max. */
static size_t room_at(phys_t phys, size_t max)
{
    while (max > 0 && !boot_at(phys, max))
        max /= 2;
    return max;
}

static const char *read_memory_map(const struct pvh_start_info *start, struct boot_info *info)
{
    if (start->n_memory_map > BOOT_MAX_REGIONS)
        return "the PVH memory map has more pieces than the kernel can note";
    const struct pvh_memory_map_entry *map =
        boot_at(start->memory_map, (u64)start->n_memory_map * sizeof *map);
    if (!map)
        return "the PVH memory map is empty or lies above 4 GiB";
    for (u32 i = 0; i < start->n_memory_map; i++) {
        const char *wrong =
            boot_add_region(info, map[i].start, map[i].bytes, boot_region_type_of(map[i].type));
        if (wrong)
            return wrong;
    }
    return NULL;
}

static const char *read_modules(const struct pvh_start_info *start, struct boot_info *info)
{
    if (start->n_modules == 0)
        return NULL;
    if (start->n_modules > BOOT_MAX_MODULES)
        return "there are more boot modules than the kernel can note";
    const struct pvh_module *list = boot_at(start->modules, (u64)start->n_modules * sizeof *list);
    if (!list)
        return "the PVH module list lies above 4 GiB";
    for (u32 i = 0; i < start->n_modules; i++) {
        size_t room = list[i].cmdline ? room_at(list[i].cmdline, sizeof info->modules[0].name) : 0;
        const char *wrong = boot_add_module(info, list[i].start, list[i].bytes,
                                            room ? boot_at(list[i].cmdline, room) : NULL, room);
        if (wrong)
            return wrong;
    }
    return NULL;
}

static const char *read_cmdline(const struct pvh_start_info *start, struct boot_info *info)
{
    if (start->cmdline == 0)
        return NULL;
    size_t room = room_at(start->cmdline, BOOT_CMDLINE_SIZE + 1);
    if (room == 0)
        return "the PVH command line lies above 4 GiB";
    return boot_set_cmdline(info, boot_at(start->cmdline, room), room);
}

static const char *read_rsdp(const struct pvh_start_info *start, struct boot_info *info)
{
    if (start->rsdp == 0)
        return NULL;
    const u8 *rsdp = boot_at(start->rsdp, RSDP_BYTES_V2);
    if (!rsdp)
        return "the ACPI root pointer lies above 4 GiB";
    boot_set_rsdp(info, rsdp, rsdp[RSDP_REVISION_OFFSET] >= 2 ? RSDP_BYTES_V2 : RSDP_BYTES_V1);
    return NULL;
}

const char *pvh_read(phys_t block, struct boot_info *info)
{
    const struct pvh_start_info *start = boot_at(block, sizeof *start);

    if (!start || start->magic != PVH_MAGIC)
        return "the PVH start information lacks its magic number";
    if (start->version < 1)
        return "the PVH start information is of version 0, which has no memory map";
    strlcpy(info->loader, "PVH", sizeof info->loader);

    const char *wrong = read_memory_map(start, info);
    if (!wrong)
        wrong = read_modules(start, info);
    if (!wrong)
        wrong = read_cmdline(start, info);
    if (!wrong)
        wrong = read_rsdp(start, info);
    return wrong;
}
