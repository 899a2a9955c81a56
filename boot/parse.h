/*
 * What the readers of the two boot protocols share. A reader fills in a struct boot_info from a
 * block that it does not trust: every size is checked against the block's end before anything is
 * read.
 */
#ifndef BOOT_PARSE_H
#define BOOT_PARSE_H

#include "boot/boot_info.h"

/*
 * Kernel address of [phys, phys + bytes), or NULL where it is empty or leaves the first 4 GiB (all
 * that is mapped).
 */
const void *boot_at(phys_t phys, u64 bytes);

/* The readers. => NULL, or a sentence saying what is malformed */
const char *multiboot2_read(phys_t block, struct boot_info *info);
const char *pvh_read(phys_t block, struct boot_info *info);

/*
 * Adds a piece of memory as the loader named it. Pieces come in any order and may overlap;
 * boot_regions_normalise() sorts, merges and cuts them afterwards.
 */
const char *boot_add_region(struct boot_info *info, phys_t start, u64 bytes,
                            enum boot_region_type type);
/* The type of a memory map entry, in the numbers of E820, Multiboot2 and PVH alike. */
enum boot_region_type boot_region_type_of(u32 e820_type);
const char *boot_regions_normalise(struct boot_info *info);

/* Adds a module. name: not terminated within max bytes at most; may be NULL */
const char *boot_add_module(struct boot_info *info, phys_t start, u64 bytes, const char *name,
                            size_t max);
/* Copies a string that must end within max bytes and fit into BOOT_CMDLINE_SIZE. */
const char *boot_set_cmdline(struct boot_info *info, const char *text, size_t max);
/* Copies an ACPI root pointer of 20 (revision 0) or 36 bytes. */
void boot_set_rsdp(struct boot_info *info, const void *rsdp, size_t bytes);

/* Is all of [start, end) usable memory? (the kernel's own image must be) */
bool boot_memory_is_usable(const struct boot_info *info, phys_t start, phys_t end);

#endif
