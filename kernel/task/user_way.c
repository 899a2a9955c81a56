/*
 * The way of a program to where it is. See user_way.h.
 *
 * Programs keep no frame pointers, and C libraries have no unwind tables, so the way is read off the
 * stack itself. From the stack pointer upwards, a word can be the return address of function F if it
 * points behind a call instruction:
 *
 *     e8 rel32        a call of one function: of F itself, or the word belongs to another one
 *     ff /2           a call by pointer: may be of F
 *
 * The first call of F itself is taken. Where there is none (F was called by pointer, or jumped to by
 * who was called) it is the first word behind any call, and its line ends in a question mark, as in
 * the kernel's backtraces.
 */
#include "kernel/task/user_way.h"

#include "kernel/cpu/trap.h"
#include "kernel/task/elf_symbol.h"
#include "kernel/task/process.h"
#include "lib/format.h"
#include "lib/string.h"
#include "mm/user_memory.h"

#define FUNCTIONS_MAX      1000 /* one that calls itself takes two lines however deep it is */
#define WORDS_SEARCHED     4096 /* of the stack, for each function */
#define WORDS_AT_ONCE      64
#define CALL_BYTES_MAX     7
#define CALL_RELATIVE      0xe8
#define CALL_RELATIVE_SIZE 5
#define CALL_INDIRECT      0xff
#define MODRM_CALL_MASK    0x38
#define MODRM_CALL         0x10

struct place {
    bool is_code;  /* of a file, and may be executed */
    bool has_name; /* symbol is filled in */
    u64 offset;    /* in the file */
    u64 function;  /* address of its first byte; 0: not known */
    struct elf_symbol symbol;
    char path[USER_PLACE_BYTES - ELF_SYMBOL_NAME_BYTES - 24]; /* "" where there is no file */
};

/* => whether addr is code of a file, whose name and offset are then filled in; the file with a reference, if wanted */
static bool find_code(u64 addr, struct place *place, struct mapped_file **file)
{
    struct mm *mm = process_current()->mm;
    rwsem_read_lock(&mm->mmap_lock);
    struct vma *vma = vma_find(mm, addr);
    bool is_code = vma && vma->file && vma->prot & PROT_EXEC;
    if (is_code && file) {
        *file = vma->file;
        mapped_file_get(*file);
        place->offset = addr - vma->start + (vma->pgoff << PAGE_SHIFT);
        if (vma->file->path)
            vma->file->path(vma->file, place->path, sizeof(place->path));
        place->path[sizeof(place->path) - 1] = '\0';
    }
    rwsem_read_unlock(&mm->mmap_lock);
    return is_code;
}

static void look_up(u64 addr, struct place *place)
{
    struct mapped_file *file;
    *place = (struct place){0};
    place->is_code = find_code(addr, place, &file);
    if (!place->is_code)
        return;
    place->has_name = elf_symbol_find(file, place->offset, &place->symbol) == 0;
    if (place->has_name)
        place->function = addr - (place->offset - place->symbol.start_in_file);
    mapped_file_put(file);
}

static void format_place(const struct place *place, u64 addr, char buf[USER_PLACE_BYTES])
{
    if (place->has_name)
        format_to(buf, USER_PLACE_BYTES, "%s+%#lx in %s", place->symbol.name,
                  addr - place->function, place->path);
    else if (place->is_code)
        format_to(buf, USER_PLACE_BYTES, "%s at %#lx, no symbols", place->path, place->offset);
    else
        format_to(buf, USER_PLACE_BYTES, "no code of a file");
}

const char *user_place_format(u64 addr, char buf[USER_PLACE_BYTES])
{
    struct place place;
    look_up(addr, &place);
    format_place(&place, addr, buf);
    return buf;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

enum call { NO_CALL, SOME_CALL, CALL_OF_IT };

static bool is_call_by_pointer(const u8 *end)
{
    /* By register; with an offset of 1 byte; with one of 4 bytes, perhaps relative to rip; the latter two with an index, too. */
    static const u8 lengths[] = {2, 3, 4, 6, 7};
    for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++)
        if (end[-lengths[i]] == CALL_INDIRECT &&
            (end[1 - lengths[i]] & MODRM_CALL_MASK) == MODRM_CALL)
            return true;
    return false;
}

/* What lies before `word` in the program's code; function: where the callee begins, 0: not known. */
static enum call call_before(u64 word, u64 function)
{
    u8 code[CALL_BYTES_MAX];
    s32 distance;
    if (word < PAGE_SIZE || word >= USER_ADDRESS_END || !find_code(word - 1, NULL, NULL) ||
        copy_from_user_nofault(code, word - sizeof(code), sizeof(code)) != sizeof(code))
        return NO_CALL;
    if (code[sizeof(code) - CALL_RELATIVE_SIZE] == CALL_RELATIVE) {
        memcpy(&distance, code + sizeof(code) - sizeof(distance), sizeof(distance));
        if (word + (u64)(s64)distance == function)
            return CALL_OF_IT;
        return SOME_CALL;
    }
    return is_call_by_pointer(code + sizeof(code)) ? SOME_CALL : NO_CALL;
}

struct search {
    u64 sp, function;
    u64 found, found_at; /* the return address, and where on the stack; 0: none yet */
    bool is_certain;
};

/* => whether the search goes on */
static bool try_word(struct search *s, u64 word, u64 at)
{
    enum call call = call_before(word, s->function);
    if (call == NO_CALL || (call == SOME_CALL && s->found))
        return true;
    s->found = word;
    s->found_at = at;
    s->is_certain = call == CALL_OF_IT;
    return !s->is_certain;
}

static void search_stack(struct search *s)
{
    u64 words[WORDS_AT_ONCE];
    u64 at = ALIGN_UP(s->sp, sizeof(u64)), end = at + WORDS_SEARCHED * sizeof(u64);
    while (at < end) {
        size_t got = copy_from_user_nofault(words, at, sizeof(words)) / sizeof(u64);
        for (size_t i = 0; i < got; i++)
            if (!try_word(s, words[i], at + i * sizeof(u64)))
                return;
        at += got * sizeof(u64);
        if (got < WORDS_AT_ONCE) /* a page that is not there: the stack has run into it, perhaps */
            at = ALIGN_UP(at + 1, PAGE_SIZE);
    }
}

/* ---- The way --------------------------------------------------------------------------------- */

struct way_to {
    u64 ip, in_call;    /* where it is, and the same or a byte of the call that it returns to */
    struct place place; /* of ip */
    bool is_certain;
    u32 n_same; /* functions that are like the last one printed */
};

static void print_repetition(struct way_to *w, report_line line)
{
    if (w->n_same)
        line("… %u times more", w->n_same);
    w->n_same = 0;
}

static void print_function(struct way_to *w, report_line line)
{
    char text[USER_PLACE_BYTES];
    print_repetition(w, line);
    look_up(w->in_call, &w->place);
    format_place(&w->place, w->ip, text);
    line("%#018lx  %s%s", w->ip, text, w->is_certain ? "" : " ?");
}

/* What called main, or is only a guess in code without names, tells nothing. */
static bool is_the_last(const struct way_to *w)
{
    return w->place.has_name ? strcmp(w->place.symbol.name, "main") == 0 : !w->is_certain;
}

void user_way_print(const struct report *r, report_line line)
{
    struct way_to w = {.ip = r->frame->rip, .in_call = r->frame->rip, .is_certain = true};
    struct search s = {.sp = r->frame->rsp};

    print_function(&w, line);
    unsigned n = 0;
    for (; n < FUNCTIONS_MAX && !is_the_last(&w); n++) {
        s.function = w.place.function;
        s.found = 0;
        search_stack(&s);
        if (!s.found)
            break;
        s.sp = s.found_at + sizeof(u64);
        if (s.found == w.ip) {
            w.n_same++;
            continue;
        }
        w.ip = s.found;
        w.in_call = w.ip - 1;
        w.is_certain = s.is_certain;
        print_function(&w, line);
    }
    print_repetition(&w, line);
    if (n == FUNCTIONS_MAX)
        line("… and more");
}
