/*
 * Names of functions in program files. See elf_symbol.h.
 *
 * The symbol table is passed through once for each question, in pieces that fit on the stack: whoever
 * asks is a program that dies, and memory may be why.
 */
#include "kernel/task/elf_symbol.h"

#include "kernel/task/elf.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/file_read.h"

#define SECTION_SYMTAB  2
#define SECTION_DYNSYM  11
#define SYMBOL_FUNCTION 2 /* the low four bits of info */
#define SYMBOLS_AT_ONCE 16
#define SYMBOLS_MAX     1000000ul
#define SECTION_NONE    0
#define HEADERS_MAX     128

struct elf_section {
    u32 name, type;
    u64 flags, addr, offset, size;
    u32 link, info;
    u64 addralign, entsize;
};
_Static_assert(sizeof(struct elf_section) == 64, "ELF64 section header");

struct elf_symbol_entry {
    u32 name;
    u8 info, other;
    u16 section;
    u64 value, size;
};
_Static_assert(sizeof(struct elf_symbol_entry) == 24, "ELF64 symbol");

/* => 0, -ENOENT where the file ends before, or why it could not be read */
static int read_exactly(struct mapped_file *file, u64 offset, void *buf, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = file_read_kernel(file, offset + done, (char *)buf + done, len - done);
        if (n <= 0)
            return n < 0 ? (int)n : -ENOENT;
        done += (size_t)n;
    }
    return 0;
}

static int read_header(struct mapped_file *file, struct elf_header *h)
{
    int error = read_exactly(file, 0, h, sizeof(*h));
    if (error)
        return error;
    bool is_ours = memcmp(h->magic, "\177ELF", 4) == 0 && h->class == ELF_CLASS_64 &&
                   h->phentsize == sizeof(struct elf_segment) &&
                   h->shentsize == sizeof(struct elf_section) && h->phnum <= HEADERS_MAX &&
                   h->shnum <= HEADERS_MAX;
    return is_ours ? 0 : -ENOENT;
}

/* Symbols are told by address as linked: the segment that has the byte says which. => 0 or an error */
static int find_segment(struct mapped_file *file, const struct elf_header *h, u64 file_offset,
                        struct elf_segment *s)
{
    for (unsigned i = 0; i < h->phnum; i++) {
        int error = read_exactly(file, h->phoff + i * sizeof(*s), s, sizeof(*s));
        if (error)
            return error;
        if (s->type == ELF_SEGMENT_LOAD && file_offset - s->offset < s->filesz)
            return 0;
    }
    return -ENOENT;
}

static int read_section(struct mapped_file *file, const struct elf_header *h, unsigned i,
                        struct elf_section *s)
{
    return i < h->shnum ? read_exactly(file, h->shoff + i * sizeof(*s), s, sizeof(*s)) : -ENOENT;
}

static int find_table(struct mapped_file *file, const struct elf_header *h,
                      struct elf_section *table)
{
    static const u32 wanted[] = {SECTION_SYMTAB, SECTION_DYNSYM};
    int error;

    for (unsigned kind = 0; kind < ARRAY_SIZE(wanted); kind++) {
        for (unsigned i = 0; i < h->shnum; i++) {
            error = read_section(file, h, i, table);
            if (error)
                return error;
            if (table->type == wanted[kind])
                return 0;
        }
    }
    return -ENOENT;
}

static bool is_better(const struct elf_symbol_entry *s, u64 addr,
                      const struct elf_symbol_entry *best)
{
    return (s->info & 0xf) == SYMBOL_FUNCTION && s->section != SECTION_NONE && s->value <= addr &&
           (s->size == 0 || addr - s->value < s->size) &&
           (best->section == SECTION_NONE || s->value > best->value);
}

/* The last function that begins at or before addr and does not end before. */
static int search(struct mapped_file *file, const struct elf_section *table, u64 addr,
                  struct elf_symbol_entry *best)
{
    struct elf_symbol_entry some[SYMBOLS_AT_ONCE];
    u64 n = MIN(table->size / sizeof(some[0]), SYMBOLS_MAX);

    *best = (struct elf_symbol_entry){.section = SECTION_NONE};
    for (u64 at = 0; at < n; at += SYMBOLS_AT_ONCE) {
        u64 count = MIN(n - at, (u64)SYMBOLS_AT_ONCE);
        int error =
            read_exactly(file, table->offset + at * sizeof(some[0]), some, count * sizeof(some[0]));
        if (error)
            return error;
        for (u64 i = 0; i < count; i++)
            if (is_better(&some[i], addr, best))
                *best = some[i];
    }
    return best->section == SECTION_NONE ? -ENOENT : 0;
}

static int read_name(struct mapped_file *file, const struct elf_section *strings, u32 at,
                     char name[ELF_SYMBOL_NAME_BYTES])
{
    if (at >= strings->size)
        return -ENOENT;
    size_t len = MIN((u64)ELF_SYMBOL_NAME_BYTES - 1, strings->size - at);
    name[len] = '\0';
    return read_exactly(file, strings->offset + at, name, len);
}

int elf_symbol_find(struct mapped_file *file, u64 file_offset, struct elf_symbol *out)
{
    struct elf_header header;
    struct elf_segment segment;
    struct elf_section table, strings;
    struct elf_symbol_entry best;
    int error = read_header(file, &header);

    if (!error)
        error = find_segment(file, &header, file_offset, &segment);
    if (!error)
        error = find_table(file, &header, &table);
    if (!error)
        error = read_section(file, &header, table.link, &strings);
    if (!error)
        error = search(file, &table, file_offset - segment.offset + segment.vaddr, &best);
    if (!error)
        error = read_name(file, &strings, best.name, out->name);
    if (!error)
        out->start_in_file = best.value - segment.vaddr + segment.offset;
    return error;
}
