/*
 * Programs with an interpreter (PT_INTERP): both are mapped, the interpreter starts and is told where things are, and
 * what is wrong with either has an error of its own.
 *
 * Two files in /tmp, made anew for each case: a program at fixed addresses, and a position-independent interpreter.
 */
#include "fs/names.h"
#include "fs/vfs.h"
#include "kernel/cpu/trap.h"
#include "kernel/task/elf.h"
#include "kernel/task/process.h"
#include "lib/string.h"
#include "mm/user_memory.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/test_mm.h"

#define PROGRAM_PATH      "/tmp/exec-program"
#define INTERPRETER_PATH  "/tmp/exec-interpreter"
#define PATH_OFFSET       0x200ul /* of the interpreter's path in the program */
#define ENTRY_OFFSET      0x100ul
#define FILE_BYTES        (PAGE_SIZE + 0x200)
#define DATA_BYTES        0x100ul
#define DATA_MEMORY_BYTES 0x1800ul
#define PROGRAM_AT        0x400000ul
#define DATA_DISTANCE     0x3000ul /* from the first segment to the second */
#define BUFFER            0x10000000ul
#define FILLING           0x5a
#define AUX_MAX           32

struct test_file {
    u8 bytes[FILE_BYTES];
    struct elf_header *header;
    struct elf_segment *segments; /* path, text, data */
};

static struct test_file program, interpreter;
static struct trap_frame frame;

static void fill_file(struct test_file *file, u16 type, u64 at)
{
    const u64 size = sizeof(struct elf_header);
    memset(file->bytes, FILLING, sizeof(file->bytes));
    file->header = (struct elf_header *)file->bytes;
    file->segments = (struct elf_segment *)(file->header + 1);
    *file->header = (struct elf_header){.magic = {0x7f, 'E', 'L', 'F'},
                                        .class = ELF_CLASS_64,
                                        .data = ELF_DATA_LITTLE,
                                        .version = ELF_VERSION_CURRENT,
                                        .type = type,
                                        .machine = ELF_MACHINE_X86_64,
                                        .version2 = ELF_VERSION_CURRENT,
                                        .entry = at + ENTRY_OFFSET,
                                        .phoff = size,
                                        .ehsize = size,
                                        .phentsize = sizeof(struct elf_segment),
                                        .phnum = 3};
    file->segments[0] = (struct elf_segment){.type = 0};
    file->segments[1] = (struct elf_segment){.type = ELF_SEGMENT_LOAD,
                                             .flags = ELF_FLAG_READ | ELF_FLAG_EXEC,
                                             .vaddr = at,
                                             .filesz = PAGE_SIZE,
                                             .memsz = PAGE_SIZE,
                                             .align = PAGE_SIZE};
    file->segments[2] = (struct elf_segment){.type = ELF_SEGMENT_LOAD,
                                             .flags = ELF_FLAG_READ | ELF_FLAG_WRITE,
                                             .offset = PAGE_SIZE,
                                             .vaddr = at + DATA_DISTANCE,
                                             .filesz = DATA_BYTES,
                                             .memsz = DATA_MEMORY_BYTES,
                                             .align = PAGE_SIZE};
}

static void name_interpreter(struct test_file *file, const char *path)
{
    size_t bytes = strlen(path) + 1;
    memcpy(file->bytes + PATH_OFFSET, path, bytes);
    file->segments[0] = (struct elf_segment){.type = ELF_SEGMENT_INTERP,
                                             .flags = ELF_FLAG_READ,
                                             .offset = PATH_OFFSET,
                                             .filesz = bytes,
                                             .memsz = bytes};
}

static void fill_good_files(void)
{
    fill_file(&program, ELF_TYPE_EXEC, PROGRAM_AT);
    name_interpreter(&program, INTERPRETER_PATH);
    fill_file(&interpreter, ELF_TYPE_DYN, 0);
}

/* Writes the file, in a space that is attached. => whether that went well */
static bool write_file(const char *path, const struct test_file *content, u32 mode)
{
    int error;
    u64 pos = 0;
    (void)vfs_unlink(NULL, "/", path, false);
    struct file *file = file_open(NULL, "/", path, O_WRONLY | O_CREAT, mode, &error);
    if (!KEXPECT(file != NULL))
        return false;
    KEXPECT_EQ(copy_to_user(BUFFER, content->bytes, FILE_BYTES), 0);
    KEXPECT_EQ(file_write(file, BUFFER, FILE_BYTES, &pos), FILE_BYTES);
    file_put(file);
    return true;
}

static bool write_files(u32 interpreter_mode)
{
    struct mm *mm = test_mm_enter();
    if (!mm)
        return false;
    KEXPECT_EQ(mm_mmap(mm, BUFFER, ALIGN_UP(FILE_BYTES, PAGE_SIZE), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL, 0),
               BUFFER);
    bool ok = write_file(PROGRAM_PATH, &program, 0755) &&
              write_file(INTERPRETER_PATH, &interpreter, interpreter_mode);
    test_mm_leave();
    return ok;
}

static void remove_files(void)
{
    KEXPECT_EQ(vfs_unlink(NULL, "/", PROGRAM_PATH, false), 0);
    KEXPECT_EQ(vfs_unlink(NULL, "/", INTERPRETER_PATH, false), 0);
}

/* Into the attached space. => as exec_load() */
static int load(void)
{
    static const char *const none[] = {NULL};
    int error;
    struct file *file = file_open(NULL, "/", PROGRAM_PATH, O_RDONLY, 0, &error);
    if (!KEXPECT(file != NULL))
        return 1;
    error = exec_load(file, &(struct exec_arguments){.argv = none, .envp = none}, &frame);
    file_put(file);
    return error;
}

/* The files as they are now, loaded into a space that is then forgotten. */
static int write_and_load(u32 interpreter_mode)
{
    if (!write_files(interpreter_mode) || !test_mm_enter())
        return 1;
    int error = load();
    test_mm_leave();
    remove_files();
    return error;
}

/* From the new stack; no arguments, no environment: 0, NULL, NULL, pairs. => ~0 if it is not there */
static u64 auxiliary(u64 type)
{
    u64 pair[2];
    for (unsigned i = 0; i < AUX_MAX; i++) {
        if (copy_from_user(pair, frame.rsp + 3 * sizeof(u64) + i * sizeof(pair), sizeof(pair)) ||
            pair[0] == AT_NULL)
            break;
        if (pair[0] == type)
            return pair[1];
    }
    return ~0ul;
}

KTEST(exec, interpreter_is_loaded_beside_the_program_and_starts)
{
    char areas[160];
    fill_good_files();
    KASSERT(write_files(0755));
    KASSERT(test_mm_enter() != NULL);
    KEXPECT_EQ(load(), 0);
    u64 base = auxiliary(AT_BASE);
    KEXPECT(base != 0 && base != ~0ul && base % PAGE_SIZE == 0);
    KEXPECT_EQ(frame.rip, base + ENTRY_OFFSET);
    KEXPECT_EQ(auxiliary(AT_ENTRY), PROGRAM_AT + ENTRY_OFFSET);
    KEXPECT_EQ(auxiliary(AT_PHDR), PROGRAM_AT + sizeof(struct elf_header));
    KEXPECT_EQ(auxiliary(AT_PHNUM), 3);
    test_mm_render(task_current()->mm, base, 5, areas, sizeof(areas));
    KEXPECT_STREQ(areas, "[0,1)r-xp+f0 [3,4)rw-p+f1 [4,5)rw-p0");
    KEXPECT_EQ(base + 5 * PAGE_SIZE, task_current()->mm->mmap_top);
    KEXPECT_EQ(task_current()->mm->brk_start, PROGRAM_AT + DATA_DISTANCE + 2 * PAGE_SIZE);
    test_mm_leave();
    remove_files();
}

KTEST(exec, program_without_interpreter_has_no_base)
{
    fill_good_files();
    program.segments[0].type = 0;
    KASSERT(write_files(0755));
    KASSERT(test_mm_enter() != NULL);
    KEXPECT_EQ(load(), 0);
    KEXPECT_EQ(auxiliary(AT_BASE), 0);
    KEXPECT_EQ(frame.rip, PROGRAM_AT + ENTRY_OFFSET);
    test_mm_leave();
    remove_files();
}

/* Dynamic linkers allocate there and expect zeroes. */
KTEST(exec, last_page_of_a_segment_is_cleared_to_its_end)
{
    fill_good_files();
    program.segments[2].memsz = DATA_BYTES + 8;
    KASSERT(write_files(0755));
    KASSERT(test_mm_enter() != NULL);
    KEXPECT_EQ(load(), 0);
    KEXPECT_EQ(user_peek(PROGRAM_AT + DATA_DISTANCE + DATA_BYTES - 1), FILLING);
    KEXPECT_EQ(user_peek(PROGRAM_AT + DATA_DISTANCE + DATA_BYTES), 0);
    KEXPECT_EQ(user_peek(PROGRAM_AT + DATA_DISTANCE + DATA_BYTES + 0x80), 0);
    test_mm_leave();
    remove_files();
}

KTEST(exec, alignment_that_a_segment_asks_for_moves_the_program)
{
    const u64 align = 1ul << 21;
    fill_good_files();
    program.header->type = ELF_TYPE_DYN;
    program.segments[1].align = align;
    KASSERT(write_files(0755));
    KASSERT(test_mm_enter() != NULL);
    KEXPECT_EQ(load(), 0);
    KEXPECT_EQ((auxiliary(AT_ENTRY) - ENTRY_OFFSET) % align, 0);
    KEXPECT_EQ(user_peek(auxiliary(AT_ENTRY)), FILLING);
    test_mm_leave();
    remove_files();
}

/* ---- What is wrong with the path ---- */

KTEST(exec, interpreter_that_cannot_be_opened_gives_the_error_of_opening)
{
    fill_good_files();
    name_interpreter(&program, "/tmp/exec-missing");
    KEXPECT_EQ(write_and_load(0755), -ENOENT);
    fill_good_files();
    name_interpreter(&program, PROGRAM_PATH "/more");
    KEXPECT_EQ(write_and_load(0755), -ENOTDIR);
    fill_good_files();
    name_interpreter(&program, "/tmp");
    KEXPECT_EQ(write_and_load(0755), -EACCES);
    fill_good_files();
    KEXPECT_EQ(write_and_load(0644), -EACCES);
}

KTEST(exec, impossible_path_of_an_interpreter_is_enoexec)
{
    const u64 lengths[] = {0, 1, sizeof(INTERPRETER_PATH) - 1, PATH_MAX_BYTES + 1, ~0ul};
    for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
        fill_good_files();
        program.segments[0].filesz = lengths[i];
        if (!KEXPECT_EQ(write_and_load(0755), -ENOEXEC))
            ktest_note("length %lu", lengths[i]);
    }
    const u64 offsets[] = {FILE_BYTES, FILE_BYTES - 2, 1ul << 62};
    for (unsigned i = 0; i < ARRAY_SIZE(offsets); i++) {
        fill_good_files();
        program.segments[0].offset = offsets[i];
        if (!KEXPECT_EQ(write_and_load(0755), -ENOEXEC))
            ktest_note("offset %lx", offsets[i]);
    }
}

/* ---- What is wrong with the interpreter ---- */

struct change {
    const char *what;
    u32 offset, bytes;
    u64 value;
};

#define HEADER(field, value_) \
    offsetof(struct elf_header, field), sizeof(((struct elf_header *)0)->field), value_
#define SEGMENT(n, field, value_)                                  \
    sizeof(struct elf_header) + (n) * sizeof(struct elf_segment) + \
        offsetof(struct elf_segment, field),                       \
        sizeof(((struct elf_segment *)0)->field), value_

static const struct change hostile[] = {
    {"a script", HEADER(magic, 0x2f2f2123)},
    {"a 32-bit library", HEADER(class, 1)},
    {"for i386", HEADER(machine, 3)},
    {"an object file", HEADER(type, 1)},
    {"at fixed addresses", HEADER(type, ELF_TYPE_EXEC)},
    {"no program headers", HEADER(phnum, 0)},
    {"too many program headers", HEADER(phnum, 0xffff)},
    {"program headers whose end wraps", HEADER(phoff, ~0ul - 20)},
    {"an interpreter of its own", SEGMENT(0, type, ELF_SEGMENT_INTERP)},
    {"entry in the kernel", HEADER(entry, 0xffffffff80100000ul)},
    {"larger in the file than in memory", SEGMENT(2, memsz, DATA_BYTES - 1)},
    {"memory whose end wraps", SEGMENT(2, memsz, 0ul - DATA_DISTANCE)},
    {"memory larger than user memory", SEGMENT(2, memsz, USER_ADDRESS_END + 1)},
    {"address in the kernel", SEGMENT(2, vaddr, 0xffff800000000000ul)},
    {"address not aligned as in the file", SEGMENT(2, vaddr, DATA_DISTANCE + 8)},
    {"offset behind the end", SEGMENT(2, offset, 16 * PAGE_SIZE)},
    {"overlapping segments", SEGMENT(2, vaddr, 0)},
    {"read-only, and larger in memory", SEGMENT(2, flags, ELF_FLAG_READ)},
};

KTEST(exec, damaged_interpreters_are_refused_with_elibbad)
{
    for (unsigned i = 0; i < ARRAY_SIZE(hostile); i++) {
        fill_good_files();
        memcpy(interpreter.bytes + hostile[i].offset, &hostile[i].value, hostile[i].bytes);
        if (!KEXPECT_EQ(write_and_load(0755), -ELIBBAD))
            ktest_note("%s", hostile[i].what);
    }
}

KTEST(exec, interpreter_with_nothing_to_load_is_refused)
{
    fill_good_files();
    interpreter.segments[1].type = interpreter.segments[2].type = 0;
    KEXPECT_EQ(write_and_load(0755), -ELIBBAD);
}
