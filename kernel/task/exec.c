/*
 * Loading a static ELF64 program into the empty address space of the current task.
 *
 * Nothing in the file is trusted: every offset, size and address is checked before it is used, and what the checks
 * let through goes through mm_mmap like a program's own call. A file that does not pass gives -ENOEXEC and a line in
 * the log that says what is wrong with it; the half-filled address space goes away with the process.
 */
#include "kernel/cpu/trap.h"
#include "kernel/log/log.h"
#include "kernel/task/elf.h"
#include "kernel/task/exec_stack.h"
#include "kernel/task/process.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "mm/file_read.h"
#include "mm/mmap.h"
#include "mm/user_memory.h"

#define MAX_SEGMENTS 64
#define PIE_BASE 0x555555554000ul

struct image {
    struct file *file;
    struct elf_header header;
    struct elf_segment segments[MAX_SEGMENTS];
    u64 bias;     /* added to every address in the file */
    u64 end;      /* behind the highest segment */
    u64 phdr;     /* address of the program headers in memory, 0 if they are in no segment */
};

static int refuse(const struct image *image, const char *why)
{
    log_warn("%s cannot be run: %s", image->file->path, why);
    return -ENOEXEC;
}

static int read_exactly(struct image *image, u64 offset, void *buf, size_t len)
{
    ssize_t n = file_read_all_kernel(image->file, offset, buf, len);
    if (n < 0)
        return n;
    return (size_t)n == len ? 0 : refuse(image, "it ends too early");
}

static int read_header(struct image *image)
{
    struct elf_header *h = &image->header;
    ssize_t n = file_read_all_kernel(image->file, 0, h, sizeof(*h));
    if (n < 0)
        return n;
    if ((size_t)n < sizeof(*h) || memcmp(h->magic, "\177ELF", 4) != 0)
        return refuse(image, "it is not an ELF file");
    if (h->class != ELF_CLASS_64 || h->data != ELF_DATA_LITTLE || h->machine != ELF_MACHINE_X86_64)
        return refuse(image, "it is for another kind of machine");
    if (h->version != ELF_VERSION_CURRENT)
        return refuse(image, "its ELF version is unknown");
    if (h->type != ELF_TYPE_EXEC && h->type != ELF_TYPE_DYN)
        return refuse(image, "it is not an executable (object file or core?)");
    if (h->phentsize != sizeof(struct elf_segment) || h->phnum == 0 || h->phnum > MAX_SEGMENTS)
        return refuse(image, "its program headers have a wrong size or number");
    size_t bytes = h->phnum * sizeof(struct elf_segment);
    if (h->phoff > ~0ul - bytes)
        return refuse(image, "its program headers lie outside the file");
    return read_exactly(image, h->phoff, image->segments, bytes);
}

/* => NULL, or what is wrong with the segment */
static const char *check_segment(const struct image *image, const struct elf_segment *s)
{
    u64 start = s->vaddr + image->bias, end = start + s->memsz;
    if (s->filesz > s->memsz)
        return "a segment is larger in the file than in memory";
    if (s->memsz > USER_ADDRESS_END || start < s->vaddr || start < USER_ADDRESS_MIN ||
        end < start || end > USER_ADDRESS_END)
        return "a segment lies outside user memory";
    if (s->vaddr % PAGE_SIZE != s->offset % PAGE_SIZE)
        return "a segment is not aligned as in the file";
    if (s->offset > ~0ul - s->filesz || s->offset + s->filesz > READ_ONCE(image->file->inode->cache.size_bytes))
        return "a segment lies outside the file";
    return NULL;
}

static u32 protection_of(const struct elf_segment *s)
{
    return (s->flags & ELF_FLAG_READ ? PROT_READ : 0) | (s->flags & ELF_FLAG_WRITE ? PROT_WRITE : 0) |
           (s->flags & ELF_FLAG_EXEC ? PROT_EXEC : 0);
}

/* mm_mmap at exactly [start, end), where nothing may be yet. */
static int map_at(u64 start, u64 end, u32 prot, struct mapped_file *file, u64 offset)
{
    u32 flags = MAP_PRIVATE | MAP_FIXED_NOREPLACE | (file ? 0 : MAP_ANONYMOUS);
    if (start >= end)
        return 0;
    s64 result = mm_mmap(task_current()->mm, start, end - start, prot, flags, file, offset);
    return result < 0 ? result : 0;
}

/*
 *      vaddr           vaddr+filesz      vaddr+memsz
 *   |....|=================|0000|00000000000|.....|
 *   ^ page     from the file    ^ page boundary: anonymous from here on
 * The rest of the last file page is cleared in the program's own copy.
 */
static int map_segment(struct image *image, const struct elf_segment *s)
{
    u64 start = s->vaddr + image->bias, file_end = start + s->filesz, end = start + s->memsz;
    u64 first_page = ALIGN_DOWN(start, PAGE_SIZE), anon = ALIGN_UP(file_end, PAGE_SIZE);
    u32 prot = protection_of(s);
    if (s->filesz == 0)
        anon = first_page;
    int error = map_at(first_page, anon, prot, &image->file->mapped, ALIGN_DOWN(s->offset, PAGE_SIZE));
    if (!error)
        error = map_at(anon, ALIGN_UP(end, PAGE_SIZE), prot, NULL, 0);
    if (error == -EEXIST)
        return refuse(image, "its segments overlap");
    if (error || s->filesz == 0 || s->memsz == s->filesz || file_end == anon)
        return error;
    if (!(prot & PROT_WRITE))
        return refuse(image, "a read-only segment is larger in memory than in the file");
    return clear_user(file_end, MIN(anon, end) - file_end) ? -EIO : 0;
}

static int map_segments(struct image *image)
{
    const struct elf_header *h = &image->header;
    unsigned n_loaded = 0;
    image->bias = h->type == ELF_TYPE_DYN ? PIE_BASE : 0;
    for (unsigned i = 0; i < h->phnum; i++) {
        const struct elf_segment *s = &image->segments[i];
        if (s->type == ELF_SEGMENT_INTERP)
            return refuse(image, "it is dynamically linked; only static programs run here yet");
        if (s->type != ELF_SEGMENT_LOAD || s->memsz == 0)
            continue;
        const char *wrong = check_segment(image, s);
        if (wrong)
            return refuse(image, wrong);
        int error = map_segment(image, s);
        if (error)
            return error;
        n_loaded++;
        image->end = MAX(image->end, s->vaddr + image->bias + s->memsz);
        if (h->phoff >= s->offset && h->phoff - s->offset < s->filesz)
            image->phdr = s->vaddr + image->bias + (h->phoff - s->offset);
    }
    if (n_loaded == 0)
        return refuse(image, "it has nothing to load");
    if (h->entry + image->bias >= USER_ADDRESS_END)
        return refuse(image, "its entry point is not in user memory");
    return 0;
}

static void set_break(struct mm *mm, const struct image *image)
{
    mm->brk_start = mm->brk_end = ALIGN_UP(image->end, PAGE_SIZE);
}

static int load(struct image *image, const struct exec_arguments *arguments, struct trap_frame *frame)
{
    struct mm *mm = task_current()->mm;
    int error = read_header(image);
    if (!error)
        error = map_segments(image);
    if (error)
        return error;
    set_break(mm, image);
    struct exec_auxiliary aux = {.phdr = image->phdr,
                                 .phnum = image->header.phnum,
                                 .entry = image->header.entry + image->bias,
                                 .exec_path = arguments->exec_path ? arguments->exec_path
                                              : arguments->argc    ? arguments->argv[0]
                                                                   : image->file->path};
    u64 rsp;
    error = exec_build_stack(mm, arguments, &aux, &rsp);
    if (error == -EEXIST)
        return refuse(image, "a segment lies where the stack must be");
    if (error)
        return error;
    *frame = (struct trap_frame){
        .rip = aux.entry, .cs = USER_CS, .rflags = RFLAGS_IF | RFLAGS_ALWAYS_ONE, .rsp = rsp, .ss = USER_SS};
    return 0;
}

int exec_load(struct file *file, const struct exec_arguments *arguments, struct trap_frame *frame)
{
    if ((file->inode->mode & S_IFMT) != S_IFREG)
        return -EACCES;
    struct image *image = kzalloc(sizeof(*image));
    if (!image)
        return -ENOMEM;
    image->file = file;
    int error = load(image, arguments, frame);
    kfree(image);
    return error;
}
