/*
 * Names of functions in program files, for reports.
 */
#ifndef KERNEL_TASK_ELF_SYMBOL_H
#define KERNEL_TASK_ELF_SYMBOL_H

#include "lib/types.h"

struct mapped_file;

#define ELF_SYMBOL_NAME_BYTES 64

struct elf_symbol {
    char name[ELF_SYMBOL_NAME_BYTES]; /* cut where it is longer */
    u64 start_in_file;                /* file offset of the function's first byte */
};

/*
 * The function whose code holds the byte at `file_offset`, by the file's .symtab, or .dynsym where
 * that was stripped (System V ABI, chapter 4). Reads the file, whose contents are not trusted; sleeps,
 * without any lock held on entry. => 0, -ENOENT, or why the file could not be read
 */
int elf_symbol_find(struct mapped_file *file, u64 file_offset, struct elf_symbol *out);

#endif
