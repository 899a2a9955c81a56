/*
 * ELF64 files and their segments: the checks, and the maps.
 *
 * Nothing in the file is trusted: every offset, size and address is checked before it is used, and what the checks
 * let through goes through mm_mmap like a program's own call. A file that does not pass gives image->bad_format and a
 * line in the log that says what is wrong with it.
 */
#include "kernel/task/exec_elf.h"

#include "kernel/log/log.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/file_read.h"
#include "mm/mmap.h"
#include "mm/user_memory.h"

#define PIE_BASE      0x555555554000ul
#define PIE_ALIGN_MAX (1ul << 30)

int exec_elf_refuse(const struct elf_image *image, const char *why)
{
    log_warn("%s cannot be run: %s", image->file->path, why);
    return image->bad_format;
}

static int read_exactly(struct elf_image *image, u64 offset, void *buf, size_t len)
{
    ssize_t n = file_read_all_kernel(image->file, offset, buf, len);
    if (n < 0)
        return n;
    return (size_t)n == len ? 0 : exec_elf_refuse(image, "it ends too early");
}

int exec_elf_read(struct elf_image *image)
{
    struct elf_header *h = &image->header;
    ssize_t n = file_read_all_kernel(image->file, 0, h, sizeof(*h));
    if (n < 0)
        return n;
    if ((size_t)n < sizeof(*h) || memcmp(h->magic, "\177ELF", 4) != 0)
        return exec_elf_refuse(image, "it is not an ELF file");
    if (h->class != ELF_CLASS_64 || h->data != ELF_DATA_LITTLE || h->machine != ELF_MACHINE_X86_64)
        return exec_elf_refuse(image, "it is for another kind of machine");
    if (h->version != ELF_VERSION_CURRENT)
        return exec_elf_refuse(image, "its ELF version is unknown");
    if (h->type != ELF_TYPE_EXEC && h->type != ELF_TYPE_DYN)
        return exec_elf_refuse(image, "it is not an executable (object file or core?)");
    if (h->phentsize != sizeof(struct elf_segment) || h->phnum == 0 || h->phnum > ELF_SEGMENTS_MAX)
        return exec_elf_refuse(image, "its program headers have a wrong size or number");
    size_t bytes = h->phnum * sizeof(struct elf_segment);
    if (h->phoff > ~0ul - bytes)
        return exec_elf_refuse(image, "its program headers lie outside the file");
    return read_exactly(image, h->phoff, image->segments, bytes);
}

/* => NULL, or what is wrong with the segment */
static const char *check_segment(const struct elf_image *image, const struct elf_segment *s)
{
    u64 start = s->vaddr + image->bias, end = start + s->memsz;
    if (s->filesz > s->memsz)
        return "a segment is larger in the file than in memory";
    if (s->memsz > USER_ADDRESS_END || start < s->vaddr || start < USER_ADDRESS_MIN ||
        end < start || end > USER_ADDRESS_END)
        return "a segment lies outside user memory";
    if (s->vaddr % PAGE_SIZE != s->offset % PAGE_SIZE)
        return "a segment is not aligned as in the file";
    if (s->offset > ~0ul - s->filesz ||
        s->offset + s->filesz > READ_ONCE(image->file->inode->cache.size_bytes))
        return "a segment lies outside the file";
    return NULL;
}

static u32 protection_of(const struct elf_segment *s)
{
    return (s->flags & ELF_FLAG_READ ? PROT_READ : 0) |
           (s->flags & ELF_FLAG_WRITE ? PROT_WRITE : 0) |
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
 * The rest of the last file page is cleared in the program's own copy, also where the segment ends within it: dynamic
 * linkers allocate there.
 */
static int map_segment(struct elf_image *image, const struct elf_segment *s)
{
    u64 start = s->vaddr + image->bias, file_end = start + s->filesz, end = start + s->memsz;
    u64 first_page = ALIGN_DOWN(start, PAGE_SIZE), anon = ALIGN_UP(file_end, PAGE_SIZE);
    u32 prot = protection_of(s);
    if (s->filesz == 0)
        anon = first_page;
    int error =
        map_at(first_page, anon, prot, &image->file->mapped, ALIGN_DOWN(s->offset, PAGE_SIZE));
    if (!error)
        error = map_at(anon, ALIGN_UP(end, PAGE_SIZE), prot, NULL, 0);
    if (error == -EEXIST)
        return exec_elf_refuse(image, "its segments overlap");
    if (error || s->filesz == 0 || s->memsz == s->filesz || file_end == anon)
        return error;
    if (!(prot & PROT_WRITE))
        return exec_elf_refuse(image, "a read-only segment is larger in memory than in the file");
    return clear_user(file_end, anon - file_end) ? -EIO : 0;
}

/* ---- The place ------------------------------------------------------------------------------- */

static bool is_loaded(const struct elf_segment *s)
{
    return s->type == ELF_SEGMENT_LOAD && s->memsz != 0;
}

/* [*low, *high) as the file says it, in whole pages; empty if there is nothing. => whether it can be in user memory */
static bool find_span(const struct elf_image *image, u64 *low, u64 *high)
{
    *low = USER_ADDRESS_END;
    *high = 0;
    for (unsigned i = 0; i < image->header.phnum; i++) {
        const struct elf_segment *s = &image->segments[i];
        if (!is_loaded(s))
            continue;
        if (s->vaddr > USER_ADDRESS_END || s->memsz > USER_ADDRESS_END - s->vaddr)
            return false;
        *low = MIN(*low, ALIGN_DOWN(s->vaddr, PAGE_SIZE));
        *high = MAX(*high, ALIGN_UP(s->vaddr + s->memsz, PAGE_SIZE));
    }
    return true;
}

/* The largest alignment that a segment asks for; what is no power of two, or absurd, is not heard. */
static u64 wanted_align(const struct elf_image *image)
{
    u64 align = PAGE_SIZE;
    for (unsigned i = 0; i < image->header.phnum; i++) {
        const struct elf_segment *s = &image->segments[i];
        if (is_loaded(s) && (s->align & (s->align - 1)) == 0 && s->align <= PIE_ALIGN_MAX)
            align = MAX(align, s->align);
    }
    return align;
}

/* A free place for all segments together, where mmap puts things. Nobody else is in this space: it stays free. */
static int find_free_bias(struct elf_image *image)
{
    u64 low, high;
    if (!find_span(image, &low, &high))
        return exec_elf_refuse(image, "a segment lies outside user memory");
    if (low >= high)
        return exec_elf_refuse(image, "it has nothing to load");
    struct mm *mm = task_current()->mm;
    s64 place =
        mm_mmap(mm, 0, high - low, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, NULL, 0);
    if (place < 0)
        return place;
    image->bias = (u64)place - low;
    return mm_munmap(mm, place, high - low);
}

static int choose_bias(struct elf_image *image, enum exec_elf_place place)
{
    image->bias = 0;
    if (place == EXEC_ELF_FREE)
        return find_free_bias(image);
    if (image->header.type == ELF_TYPE_DYN)
        image->bias = ALIGN_DOWN(PIE_BASE, wanted_align(image));
    return 0;
}

int exec_elf_map(struct elf_image *image, enum exec_elf_place place)
{
    const struct elf_header *h = &image->header;
    unsigned n_loaded = 0;
    int error = choose_bias(image, place);
    for (unsigned i = 0; !error && i < h->phnum; i++) {
        const struct elf_segment *s = &image->segments[i];
        if (!is_loaded(s))
            continue;
        const char *wrong = check_segment(image, s);
        if (wrong)
            return exec_elf_refuse(image, wrong);
        error = map_segment(image, s);
        n_loaded++;
        image->end = MAX(image->end, s->vaddr + image->bias + s->memsz);
        if (h->phoff >= s->offset && h->phoff - s->offset < s->filesz)
            image->phdr = s->vaddr + image->bias + (h->phoff - s->offset);
    }
    if (error)
        return error;
    if (n_loaded == 0)
        return exec_elf_refuse(image, "it has nothing to load");
    image->entry = h->entry + image->bias;
    bool is_inside =
        h->entry < USER_ADDRESS_END && image->entry < USER_ADDRESS_END; /* the sum may wrap */
    return is_inside ? 0 : exec_elf_refuse(image, "its entry point is not in user memory");
}

const struct elf_segment *exec_elf_find(const struct elf_image *image, u32 type)
{
    for (unsigned i = 0; i < image->header.phnum; i++)
        if (image->segments[i].type == type)
            return &image->segments[i];
    return NULL;
}
