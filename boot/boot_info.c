/*
 * struct boot_info: collecting it, and putting the memory map into order.
 *
 * Rules: a loader's block is input like any other. Nothing in it is believed before it is checked,
 * nothing of it is used after boot_info_collect() has returned.
 */
#include "boot/boot_info.h"

#include "boot/parse.h"
#include "lib/string.h"
#include "mm/core/page.h"

#define BOOT_MAPPED_BYTES (4ul << 30) /* what the boot page tables map */

#define RSDP_BYTES_V1 20
#define RSDP_BYTES_V2 36

enum { E820_USABLE = 1, E820_RESERVED = 2, E820_ACPI_TABLES = 3, E820_ACPI_NVS = 4 };

const void *boot_at(phys_t phys, u64 bytes)
{
    if (bytes == 0 || phys >= BOOT_MAPPED_BYTES || bytes > BOOT_MAPPED_BYTES - phys)
        return NULL;
    return phys_to_virt(phys);
}

enum boot_region_type boot_region_type_of(u32 e820_type)
{
    switch (e820_type) {
    case E820_USABLE: return BOOT_REGION_USABLE;
    case E820_ACPI_TABLES: return BOOT_REGION_ACPI;
    default: /* firmware's own, unusable, persistent, or a kind invented later */
        return BOOT_REGION_RESERVED;
    }
}

const char *boot_add_region(struct boot_info *info, phys_t start, u64 bytes,
                            enum boot_region_type type)
{
    if (bytes == 0)
        return NULL;
    if (start + bytes < start)
        return "a piece of the memory map wraps around the end of the address space";
    if (info->n_regions == BOOT_MAX_REGIONS)
        return "the memory map has more pieces than the kernel can note";
    info->regions[info->n_regions++] =
        (struct boot_region){.start = start, .end = start + bytes, .type = type};
    return NULL;
}

const char *boot_add_module(struct boot_info *info, phys_t start, u64 bytes, const char *name,
                            size_t max)
{
    if (start + bytes < start)
        return "a boot module wraps around the end of the address space";
    if (info->n_modules == BOOT_MAX_MODULES)
        return "there are more boot modules than the kernel can note";
    struct boot_module *module = &info->modules[info->n_modules++];
    module->start = start;
    module->end = start + bytes;
    size_t len = name ? strnlen(name, MIN(max, sizeof module->name - 1)) : 0;
    memcpy(module->name, name, len);
    module->name[len] = '\0';
    return NULL;
}

const char *boot_set_cmdline(struct boot_info *info, const char *text, size_t max)
{
    size_t len = strnlen(text, MIN(max, sizeof info->cmdline));
    if (len == sizeof info->cmdline)
        return "the command line is longer than 4095 bytes";
    if (len == max)
        return "the command line does not end within its block";
    memcpy(info->cmdline, text, len);
    info->cmdline[len] = '\0';
    return NULL;
}

void boot_set_rsdp(struct boot_info *info, const void *rsdp, size_t bytes)
{
    memset(info->rsdp_copy, 0, sizeof info->rsdp_copy);
    memcpy(info->rsdp_copy, rsdp, bytes >= RSDP_BYTES_V2 ? RSDP_BYTES_V2 : RSDP_BYTES_V1);
    info->rsdp = virt_to_phys(info->rsdp_copy);
    info->has_rsdp = true;
}

/* Which type has a stretch that several pieces claim? The one that forbids most. */
static bool type_wins(enum boot_region_type a, enum boot_region_type b)
{
    static const u8 strength[] = {
        [BOOT_REGION_USABLE] = 0, [BOOT_REGION_ACPI] = 1, [BOOT_REGION_RESERVED] = 2};
    return strength[a] > strength[b];
}

static void sort_addresses(phys_t *a, u32 n)
{
    for (u32 i = 1; i < n; i++) {
        phys_t v = a[i];
        u32 j = i;
        for (; j > 0 && a[j - 1] > v; j--)
            a[j] = a[j - 1];
        a[j] = v;
    }
}

/* Appends [start, end) to the sorted list, lengthening the last piece where it goes on. */
static bool append_region(struct boot_region *list, u32 *n, struct boot_region piece)
{
    if (*n > 0 && list[*n - 1].end == piece.start && list[*n - 1].type == piece.type) {
        list[*n - 1].end = piece.end;
        return true;
    }
    if (*n == BOOT_MAX_REGIONS)
        return false;
    list[(*n)++] = piece;
    return true;
}

/* The pieces' ends cut memory into stretches that each have one type (or none). */
const char *boot_regions_normalise(struct boot_info *info)
{
    static struct boot_region raw[BOOT_MAX_REGIONS];
    static phys_t cuts[2 * BOOT_MAX_REGIONS];
    u32 n_raw = info->n_regions, n_cuts = 0;

    memcpy(raw, info->regions, n_raw * sizeof raw[0]);
    for (u32 i = 0; i < n_raw; i++) {
        cuts[n_cuts++] = raw[i].start;
        cuts[n_cuts++] = raw[i].end;
    }
    sort_addresses(cuts, n_cuts);

    info->n_regions = 0;
    for (u32 c = 0; c + 1 < n_cuts; c++) {
        struct boot_region piece = {.start = cuts[c], .end = cuts[c + 1]};
        bool is_claimed = false;
        for (u32 i = 0; i < n_raw && piece.start < piece.end; i++) {
            if (raw[i].start > piece.start || raw[i].end < piece.end)
                continue;
            if (!is_claimed || type_wins(raw[i].type, piece.type))
                piece.type = raw[i].type;
            is_claimed = true;
        }
        if (is_claimed && !append_region(info->regions, &info->n_regions, piece))
            return "the memory map has more pieces than the kernel can note";
    }
    return NULL;
}

bool boot_memory_is_usable(const struct boot_info *info, phys_t start, phys_t end)
{
    for (u32 i = 0; i < info->n_regions; i++) {
        const struct boot_region *r = &info->regions[i];
        if (r->type == BOOT_REGION_USABLE && r->start <= start && end <= r->end)
            return true;
    }
    return false;
}

static const char *check_modules(const struct boot_info *info)
{
    for (u32 i = 0; i < info->n_modules; i++) {
        const struct boot_module *m = &info->modules[i];
        if (m->start < m->end && !boot_memory_is_usable(info, m->start, m->end))
            return "a boot module does not lie in usable memory";
    }
    return NULL;
}

const char *boot_info_collect(enum boot_protocol protocol, phys_t block, struct boot_info *info)
{
    memset(info, 0, sizeof *info);
    info->protocol = protocol;

    const char *wrong = protocol == BOOT_PVH ? pvh_read(block, info) : multiboot2_read(block, info);
    if (!wrong && info->n_regions == 0)
        wrong = "the boot loader gave no memory map";
    if (!wrong)
        wrong = boot_regions_normalise(info);
    if (!wrong)
        wrong = check_modules(info);
    return wrong;
}
