/*
 * What the boot loader told us, normalised: the same structure from GRUB (multiboot2, BIOS or
 * UEFI) and from QEMU's -kernel (PVH). Everything in it is a copy; nothing points into loader
 * memory.
 */
#ifndef BOOT_BOOT_INFO_H
#define BOOT_BOOT_INFO_H

#include "lib/types.h"

#define BOOT_MAX_REGIONS  256
#define BOOT_MAX_MODULES  4
#define BOOT_CMDLINE_SIZE 4096

enum boot_protocol { BOOT_MULTIBOOT2, BOOT_PVH };

enum boot_region_type { BOOT_REGION_USABLE, BOOT_REGION_RESERVED, BOOT_REGION_ACPI };

struct boot_region {
    phys_t start, end; /* bytes, [start, end) */
    enum boot_region_type type;
};

struct boot_module {
    phys_t start, end; /* bytes, [start, end); page-aligned start is not guaranteed */
    char name[64];     /* the module's command line, cut; "" if none */
};

struct boot_info {
    enum boot_protocol protocol;
    char loader[32];
    char cmdline[BOOT_CMDLINE_SIZE];
    u32 n_regions; /* sorted by start, not overlapping (reserved wins over usable) */
    struct boot_region regions[BOOT_MAX_REGIONS];
    phys_t rsdp; /* physical address of the ACPI root pointer copy, 0 if none */
    u8 rsdp_copy[36];
    bool has_rsdp;
    u32 n_modules;
    struct boot_module modules[BOOT_MAX_MODULES];
};

/*
 * Fills *info from the loader's block.
 *   protocol  who started us;   block  physical address of its structure (below 4 GiB)
 * => NULL on success, else a sentence saying what is malformed (the caller panics with it).
 * => Runs on the boot CPU with the boot page tables (first 4 GiB in the direct map).
 * Sources: Multiboot2 specification 3.6; Xen/x86 PVH direct boot ABI (hvm_start_info).
 */
const char *boot_info_collect(enum boot_protocol protocol, phys_t block, struct boot_info *info);

#endif
