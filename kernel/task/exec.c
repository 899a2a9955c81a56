/*
 * Loading a program into the empty address space of the current task: the program, the interpreter that it names
 * (PT_INTERP, the dynamic linker), the first stack, the first registers.
 *
 *     static program     the program's entry is where it starts
 *     with interpreter   both are mapped; the interpreter starts, and learns from the auxiliary vector where the
 *                        program's headers and entry are and where it lies itself (AT_PHDR, AT_ENTRY, AT_BASE). Libraries
 *                        are its business: it maps them by system calls
 *
 * What is wrong with the program gives -ENOEXEC, with its interpreter -ELIBBAD; the half-filled address space goes away
 * with the process, or with the exec that failed.
 */
#include "kernel/cpu/trap.h"
#include "kernel/log/log.h"
#include "kernel/task/exec_elf.h"
#include "kernel/task/exec_stack.h"
#include "kernel/task/process.h"
#include "lib/errno.h"
#include "lib/error_text.h"
#include "mm/core/slab.h"
#include "mm/file_read.h"

#define MODE_EXECUTE_ANY 0111u

struct load {
    struct elf_image program, interpreter;
    char path[PATH_MAX_BYTES]; /* of the interpreter */
};

/* ---- The interpreter ------------------------------------------------------------------------- */

/* Copies the path that the segment holds, its NUL included. */
static int read_path(struct load *load, const struct elf_segment *s)
{
    const struct elf_image *program = &load->program;
    if (s->filesz < 2 || s->filesz > sizeof(load->path))
        return exec_elf_refuse(program, "the path of its interpreter has an impossible length");
    ssize_t n = file_read_all_kernel(program->file, s->offset, load->path, s->filesz);
    if (n < 0)
        return n;
    if ((u64)n != s->filesz || load->path[n - 1] != '\0')
        return exec_elf_refuse(program, "the path of its interpreter has no end");
    return 0;
}

static int open_interpreter(struct load *load)
{
    int error;
    struct file *file = file_open(NULL, "/", load->path, O_RDONLY, 0, &error);
    if (!file) {
        log_warn("%s cannot be run: its interpreter %s cannot be opened: %s",
                 load->program.file->path, load->path, error_text(error));
        return error;
    }
    load->interpreter.file = file; /* put by exec_load */
    u32 mode = file->inode->mode;
    return (mode & S_IFMT) == S_IFREG && (mode & MODE_EXECUTE_ANY) ? 0 : -EACCES;
}

/* => 0; interpreter.file stays NULL if the program names none */
static int find_interpreter(struct load *load)
{
    struct elf_image *interpreter = &load->interpreter;
    const struct elf_segment *s = exec_elf_find(&load->program, ELF_SEGMENT_INTERP);
    if (!s)
        return 0;
    int error = read_path(load, s);
    if (!error)
        error = open_interpreter(load);
    if (!error)
        error = exec_elf_read(interpreter);
    if (error)
        return error;
    if (interpreter->header.type != ELF_TYPE_DYN)
        return exec_elf_refuse(interpreter, "an interpreter must be position-independent");
    if (exec_elf_find(interpreter, ELF_SEGMENT_INTERP))
        return exec_elf_refuse(interpreter, "an interpreter cannot have an interpreter");
    return 0;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static int map_images(struct load *load)
{
    int error = exec_elf_map(&load->program, EXEC_ELF_PROGRAM);
    if (!error && load->interpreter.file)
        error = exec_elf_map(&load->interpreter, EXEC_ELF_FREE);
    return error;
}

static void set_break(struct mm *mm, const struct elf_image *image)
{
    mm->brk_start = mm->brk_end = ALIGN_UP(image->end, PAGE_SIZE);
}

static const char *name_for(const struct load *load, const struct exec_arguments *arguments)
{
    if (arguments->exec_path)
        return arguments->exec_path;
    return arguments->argc ? arguments->argv[0] : load->program.file->path;
}

static int fill(struct load *load, const struct exec_arguments *arguments, struct trap_frame *frame)
{
    struct mm *mm = task_current()->mm;
    const struct elf_image *program = &load->program, *interpreter = &load->interpreter;
    int error = exec_elf_read(&load->program);
    if (!error)
        error = find_interpreter(load);
    if (!error)
        error = map_images(load);
    if (error)
        return error;
    set_break(mm, program);
    struct exec_auxiliary aux = {.phdr = program->phdr,
                                 .phnum = program->header.phnum,
                                 .base = interpreter->bias,
                                 .entry = program->entry,
                                 .exec_path = name_for(load, arguments)};
    u64 rsp;
    error = exec_build_stack(mm, arguments, &aux, &rsp);
    if (error == -EEXIST)
        return exec_elf_refuse(program, "a segment lies where the stack must be");
    if (error)
        return error;
    *frame = (struct trap_frame){.rip = interpreter->file ? interpreter->entry : program->entry,
                                 .cs = USER_CS,
                                 .rflags = RFLAGS_IF | RFLAGS_ALWAYS_ONE,
                                 .rsp = rsp,
                                 .ss = USER_SS};
    return 0;
}

int exec_load(struct file *file, const struct exec_arguments *arguments, struct trap_frame *frame)
{
    if ((file->inode->mode & S_IFMT) != S_IFREG)
        return -EACCES;
    struct load *load = kzalloc(sizeof(*load));
    if (!load)
        return -ENOMEM;
    load->program.file = file;
    load->program.bad_format = -ENOEXEC;
    load->interpreter.bad_format = -ELIBBAD;
    int error = fill(load, arguments, frame);
    if (load->interpreter.file)
        file_put(load->interpreter.file);
    kfree(load);
    return error;
}
