/*
 * Names of the kernel's functions, from the table that the link put into the image
 * (tools/mksyms.py).
 */
#include "kernel/log/internal.h"
#include "lib/format.h"

#define IMAGE_BASE 0xffffffff80000000ul

struct ksym {
    u32 offset; /* from IMAGE_BASE */
    u32 name;   /* index into ksym_names */
};

extern const u32 ksym_count;
extern const struct ksym ksym_table[]; /* rising */
extern const char ksym_names[];
extern const char __text_start[], __text_end[];

const char *symbol_find(u64 addr, u64 *offset)
{
    if (addr < (u64)__text_start || addr >= (u64)__text_end)
        return NULL;
    u32 low = 0, high = *(const volatile u32 *)&ksym_count; /* 0 in the first link */
    u32 target = (u32)(addr - IMAGE_BASE);

    while (low < high) { /* all before low are <= target, all from high on are > target */
        u32 middle = low + (high - low) / 2;
        if (ksym_table[middle].offset <= target)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    *offset = target - ksym_table[low - 1].offset;
    return ksym_names + ksym_table[low - 1].name;
}

const char *symbol_format(u64 addr, char buf[SYMBOL_TEXT_BYTES])
{
    u64 offset;
    const char *name = symbol_find(addr, &offset);

    if (name)
        format_to(buf, SYMBOL_TEXT_BYTES, "%s+%#lx", name, offset);
    else
        format_to(buf, SYMBOL_TEXT_BYTES, "%s",
                  addr >> 47 ? "not in the kernel's text" : "user code");
    return buf;
}
