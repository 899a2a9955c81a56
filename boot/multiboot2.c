/*
 * The Multiboot2 information block: a list of tags, each 8-byte aligned, closed by one of type 0.
 *
 * Rules: a tag's size is checked against the block before its body is looked at, and against the
 * smallest size of its type. Tags that we do not know are passed over.
 *
 * Source: Multiboot2 specification 3.6.
 */
#include "boot/parse.h"
#include "lib/string.h"

#define MULTIBOOT2_ALIGN     8
#define MULTIBOOT2_MAX_BYTES (1u << 20) /* far more than any loader writes */

enum tag_type {
    TAG_END = 0,
    TAG_CMDLINE = 1,
    TAG_LOADER_NAME = 2,
    TAG_MODULE = 3,
    TAG_MEMORY_MAP = 6,
    TAG_RSDP_V1 = 14,
    TAG_RSDP_V2 = 15,
};

struct block_header {
    u32 total_bytes;
    u32 reserved;
};

struct tag {
    u32 type;
    u32 bytes; /* with this header, without the padding behind it */
};

struct module_tag {
    struct tag tag;
    u32 start, end;
    char name[];
};

struct memory_map_tag {
    struct tag tag;
    u32 entry_bytes;
    u32 entry_version;
};

struct memory_map_entry {
    u64 start, bytes;
    u32 type;
    u32 reserved;
};
_Static_assert(sizeof(struct memory_map_entry) == 24, "Multiboot2 3.6.8");

static const char *read_cmdline(const struct tag *tag, struct boot_info *info)
{
    return boot_set_cmdline(info, (const char *)(tag + 1), tag->bytes - sizeof *tag);
}

static const char *read_loader_name(const struct tag *tag, struct boot_info *info)
{
    const char *text = (const char *)(tag + 1);
    size_t len = strnlen(text, MIN(tag->bytes - sizeof *tag, sizeof info->loader - 1));

    memcpy(info->loader, text, len);
    info->loader[len] = '\0';
    return NULL;
}

static const char *read_module(const struct tag *tag, struct boot_info *info)
{
    const struct module_tag *m = (const struct module_tag *)tag;

    if (m->end < m->start)
        return "a boot module ends before it starts";
    return boot_add_module(info, m->start, m->end - m->start, m->name, tag->bytes - sizeof *m);
}

static const char *read_memory_map(const struct tag *tag, struct boot_info *info)
{
    const struct memory_map_tag *map = (const struct memory_map_tag *)tag;
    u32 room = tag->bytes - sizeof *map;

    if (map->entry_bytes < sizeof(struct memory_map_entry) || map->entry_bytes % MULTIBOOT2_ALIGN)
        return "the memory map's entries have an impossible size";
    if (room % map->entry_bytes)
        return "the memory map ends in the middle of an entry";
    for (u32 at = 0; at < room; at += map->entry_bytes) {
        const struct memory_map_entry *e = (const void *)((const char *)(map + 1) + at);
        const char *wrong = boot_add_region(info, e->start, e->bytes, boot_region_type_of(e->type));
        if (wrong)
            return wrong;
    }
    return NULL;
}

static const char *read_rsdp_v1(const struct tag *tag, struct boot_info *info)
{
    if (!info->has_rsdp) /* the newer one is better */
        boot_set_rsdp(info, tag + 1, tag->bytes - sizeof *tag);
    return NULL;
}

static const char *read_rsdp_v2(const struct tag *tag, struct boot_info *info)
{
    boot_set_rsdp(info, tag + 1, tag->bytes - sizeof *tag);
    return NULL;
}

static const struct tag_reader {
    u32 type;
    u32 min_bytes;
    const char *(*read)(const struct tag *tag, struct boot_info *info);
    const char *too_short;
} readers[] = {
    {TAG_CMDLINE, sizeof(struct tag) + 1, read_cmdline, "the command line tag is too short"},
    {TAG_LOADER_NAME, sizeof(struct tag) + 1, read_loader_name, "the loader name tag is too short"},
    {TAG_MODULE, sizeof(struct module_tag), read_module, "a module tag is too short"},
    {TAG_MEMORY_MAP, sizeof(struct memory_map_tag), read_memory_map,
     "the memory map tag is too short"},
    {TAG_RSDP_V1, sizeof(struct tag) + 20, read_rsdp_v1,
     "the ACPI 1.0 root pointer tag is too short"},
    {TAG_RSDP_V2, sizeof(struct tag) + 36, read_rsdp_v2,
     "the ACPI 2.0 root pointer tag is too short"},
};

static const char *read_tag(const struct tag *tag, struct boot_info *info)
{
    for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
        if (readers[i].type != tag->type)
            continue;
        return tag->bytes < readers[i].min_bytes ? readers[i].too_short
                                                 : readers[i].read(tag, info);
    }
    return NULL;
}

const char *multiboot2_read(phys_t block, struct boot_info *info)
{
    const struct block_header *header = boot_at(block, sizeof *header);
    if (!header || block % MULTIBOOT2_ALIGN)
        return "the Multiboot2 block lies at an impossible address";
    u32 total = header->total_bytes;
    if (total < sizeof *header + sizeof(struct tag) || total > MULTIBOOT2_MAX_BYTES ||
        !boot_at(block, total))
        return "the Multiboot2 block has an impossible size";

    for (u32 at = sizeof *header; total - at >= sizeof(struct tag);) {
        const struct tag *tag = (const void *)((const char *)header + at);
        if (tag->bytes < sizeof *tag || tag->bytes > total - at)
            return "a Multiboot2 tag is longer than its block, or shorter than its header";
        if (tag->type == TAG_END)
            return NULL;
        const char *wrong = read_tag(tag, info);
        if (wrong)
            return wrong;
        at = MIN(total, ALIGN_UP(at + tag->bytes, MULTIBOOT2_ALIGN));
    }
    return "the Multiboot2 block has no end tag";
}
