/*
 * Pretouch: see pretouch.h. The segments are taken from the program headers that the kernel hands
 * over in the auxiliary vector, since the holes between them must not be touched.
 */
#define _GNU_SOURCE
#include "user/lib/pretouch.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define PAGE_BYTES  4096UL
#define STACK_BYTES (64 * 1024)

static void touch_range(uintptr_t start, uintptr_t end, bool may_store)
{
    for (uintptr_t page = start & ~(PAGE_BYTES - 1); page < end; page += PAGE_BYTES) {
        volatile unsigned char *byte = (volatile unsigned char *)(page < start ? start : page);
        unsigned char value = *byte;

        if (may_store)
            *byte = value;
    }
}

void pretouch_buffer(void *buffer, size_t bytes)
{
    touch_range((uintptr_t)buffer, (uintptr_t)buffer + bytes, true);
}

/* Noinline: the array must lie below the caller's frame and be gone again afterwards. */
static __attribute__((noinline)) void touch_stack(void)
{
    unsigned char stretch[STACK_BYTES];

    stretch[0] = 0;
    touch_range((uintptr_t)stretch, (uintptr_t)stretch + sizeof(stretch), true);
}

/* Is this the part of the data that the loader may have made read-only? */
static bool is_relro(const Elf64_Phdr *headers, size_t count, uintptr_t page)
{
    for (size_t i = 0; i < count; i++)
        if (headers[i].p_type == PT_GNU_RELRO && page + PAGE_BYTES > headers[i].p_vaddr &&
            page < headers[i].p_vaddr + headers[i].p_memsz)
            return true;
    return false;
}

/* The C library of a static program leaves that part writable, but its pages need no store. */
static void touch_segment(const Elf64_Phdr *headers, size_t count, const Elf64_Phdr *segment)
{
    uintptr_t start = segment->p_vaddr, end = start + segment->p_memsz;

    for (uintptr_t page = start & ~(PAGE_BYTES - 1); page < end; page += PAGE_BYTES) {
        uintptr_t from = page < start ? start : page;
        uintptr_t to = page + PAGE_BYTES < end ? page + PAGE_BYTES : end;

        touch_range(from, to, (segment->p_flags & PF_W) && !is_relro(headers, count, page));
    }
    /* Where memory is short they would be taken away again. Who may not lock memory goes without. */
    (void)mlock((const void *)start, segment->p_memsz);
}

void pretouch_program(void)
{
    const Elf64_Phdr *headers = (const Elf64_Phdr *)getauxval(AT_PHDR);
    size_t count = getauxval(AT_PHNUM);

    for (size_t i = 0; headers && i < count; i++)
        if (headers[i].p_type == PT_LOAD)
            touch_segment(headers, count, &headers[i]);
    touch_stack();
}
