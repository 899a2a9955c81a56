/*
 * ELF64 as far as loading needs it (System V ABI, chapters 4 and 5; AMD64 supplement, chapter 3).
 */
#ifndef KERNEL_TASK_ELF_H
#define KERNEL_TASK_ELF_H

#include "lib/types.h"

#define ELF_CLASS_64        2
#define ELF_DATA_LITTLE     1
#define ELF_VERSION_CURRENT 1
#define ELF_TYPE_EXEC       2
#define ELF_TYPE_DYN        3
#define ELF_MACHINE_X86_64  62
#define ELF_SEGMENT_LOAD    1
#define ELF_SEGMENT_INTERP  3
#define ELF_SEGMENT_PHDR    6
#define ELF_FLAG_EXEC       1
#define ELF_FLAG_WRITE      2
#define ELF_FLAG_READ       4

struct elf_header {
    u8 magic[4]; /* 0x7f E L F */
    u8 class, data, version, os_abi, abi_version, pad[7];
    u16 type, machine;
    u32 version2;
    u64 entry, phoff, shoff;
    u32 flags;
    u16 ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
};
_Static_assert(sizeof(struct elf_header) == 64, "ELF64 header");

struct elf_segment {
    u32 type, flags;
    u64 offset, vaddr, paddr, filesz, memsz, align;
};
_Static_assert(sizeof(struct elf_segment) == 56, "ELF64 program header");

enum auxv_type {
    AT_NULL = 0,
    AT_PHDR = 3,
    AT_PHENT = 4,
    AT_PHNUM = 5,
    AT_PAGESZ = 6,
    AT_BASE = 7,
    AT_FLAGS = 8,
    AT_ENTRY = 9,
    AT_UID = 11,
    AT_EUID = 12,
    AT_GID = 13,
    AT_EGID = 14,
    AT_PLATFORM = 15,
    AT_HWCAP = 16,
    AT_CLKTCK = 17,
    AT_SECURE = 23,
    AT_RANDOM = 25,
    AT_HWCAP2 = 26,
    AT_EXECFN = 31,
    AT_MINSIGSTKSZ = 51,
};

#endif
