/*
 * One ELF64 file on its way into the address space of the current task.
 */
#ifndef KERNEL_TASK_EXEC_ELF_H
#define KERNEL_TASK_EXEC_ELF_H

#include "fs/vfs.h"
#include "kernel/task/elf.h"

#define ELF_SEGMENTS_MAX 64

struct elf_image {
    struct file *file;
    int bad_format; /* the error for a file that is no ELF file, or a hostile one */
    struct elf_header header;
    struct elf_segment segments[ELF_SEGMENTS_MAX];
    u64 bias;  /* added to every address in the file */
    u64 end;   /* behind the highest segment */
    u64 phdr;  /* address of the program headers in memory, 0 if they are in no segment */
    u64 entry; /* address to start at */
};

enum exec_elf_place {
    EXEC_ELF_PROGRAM, /* where the file says; a position-independent one where programs lie */
    EXEC_ELF_FREE,    /* where there is room; the file is position-independent */
};

/* Reads and checks the header; program headers are read, not yet checked. => 0, bad_format, an error of reading. Sleeps. */
int exec_elf_read(struct elf_image *image);
/* The first segment of a type, or NULL. */
const struct elf_segment *exec_elf_find(const struct elf_image *image, u32 type);
/*
 * Checks and maps what is to be loaded, over nothing. On an error some of it may be mapped: the space goes.
 * => 0 with bias, end, phdr and entry; bad_format, -ENOMEM, -EIO. Sleeps.
 */
int exec_elf_map(struct elf_image *image, enum exec_elf_place place);
/* Logs why the file cannot be run. => bad_format */
int exec_elf_refuse(const struct elf_image *image, const char *why);

#endif
