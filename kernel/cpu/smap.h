/*
 * For assembly only: STAC and CLAC as places that cpu_patch_smap() fills in on CPUs that have SMAP.
 * A file that uses them ends with SMAP_SITES_END(name), and begins its table with
 * SMAP_SITES_BEGIN(name).
 */
/* clang-format off */
#ifndef KERNEL_CPU_SMAP_H
#define KERNEL_CPU_SMAP_H

#define SMAP_SITES_BEGIN(name)                                                                     \
    .pushsection .rodata.smap, "a";                                                                \
    .balign 4;                                                                                     \
    .globl name;                                                                                   \
    name:                                                                                          \
    .popsection

#define SMAP_SITES_END(name)                                                                       \
    .pushsection .rodata.smap, "a";                                                                \
    .globl name;                                                                                   \
    name:                                                                                          \
    .popsection

.macro smap_site is_stac
771:
    .byte 0x0f, 0x1f, 0x00 /* nopl (%rax) */
    .pushsection .rodata.smap, "a"
    .long 771b - .
    .long \is_stac
    .popsection
.endm

.macro smap_open
    smap_site 1
.endm

.macro smap_close
    smap_site 0
.endm

#endif
