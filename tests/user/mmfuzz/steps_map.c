/*
 * The calls that shape the address space.
 */
#include "tests/user/mmfuzz/fuzz.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

struct flag {
    int bit;
    unsigned percent;
    const char *name;
};

static const struct flag map_flags[] = {
    {MAP_POPULATE, 12, "POPULATE"},  {MAP_LOCKED, 5, "LOCKED"}, {MAP_NORESERVE, 8, "NORESERVE"},
    {MAP_GROWSDOWN, 4, "GROWSDOWN"}, {MAP_STACK, 4, "STACK"},   {MAP_NONBLOCK, 3, "NONBLOCK"},
    {MAP_DENYWRITE, 2, "DENYWRITE"},
};

static void log_protection(int protection)
{
    log_add(", %c%c%c", protection & PROT_READ ? 'r' : '-', protection & PROT_WRITE ? 'w' : '-',
            protection & PROT_EXEC ? 'x' : '-');
    if (protection & ~7)
        log_add("+%#x", protection & ~7);
}

/* Private, shared, or rarely something that is no kind at all. */
static int choose_sharing(void)
{
    unsigned long n = below(100);

    return n < 60 ? MAP_PRIVATE : n < 94 ? MAP_SHARED : n < 98 ? MAP_SHARED_VALIDATE : 0;
}

static int choose_place(void)
{
    unsigned long n = below(100);

    return n < 62 ? MAP_FIXED : n < 72 ? MAP_FIXED_NOREPLACE : 0;
}

static const char *sharing_name(int flags)
{
    static const char *const names[] = {"none", "shared", "private", "validate"};

    return names[flags & 3];
}

static unsigned long choose_offset(void)
{
    if (chance(97))
        return below(chance(70) ? 8 : 20) * PAGE;
    return choose_number() & (chance(50) ? ~(PAGE - 1) : ~0UL);
}

/* Further flags, each with its chance. */
static int choose_map_flags(void)
{
    int flags = 0;

    for (size_t i = 0; i < sizeof map_flags / sizeof *map_flags; i++)
        if (chance(map_flags[i].percent)) {
            flags |= map_flags[i].bit;
            log_add(" %s", map_flags[i].name);
        }
    return flags;
}

static void map(struct range range, int protection, int flags)
{
    bool anonymous = chance(55);
    enum file file = choose_file();
    unsigned long offset = choose_offset();

    log_add("mmap(");
    log_range(range);
    log_protection(protection);
    log_add(", %s", sharing_name(flags));
    log_add("%s%s", flags & MAP_FIXED ? " FIXED" : "",
            flags & MAP_FIXED_NOREPLACE ? " NOREPLACE" : "");
    flags |= choose_map_flags();
    if (anonymous)
        log_add(", anonymous)");
    else
        log_add(", %s, %#lx)", file_name(file), offset);
    log_result(syscall(SYS_mmap, range.start, range.length, (long)protection,
                       (long)flags | (anonymous ? MAP_ANONYMOUS : 0),
                       anonymous ? -1L : (long)file_fd[file], anonymous ? 0 : offset),
               true);
    state_log_maps(false);
}

void step_mmap_first(void)
{
    struct range range = choose_first();
    int protection = choose_protection();

    map(range, protection, MAP_FIXED | (chance(60) ? MAP_PRIVATE : MAP_SHARED));
}

void step_mmap(void)
{
    struct range range = choose_range();
    int protection = choose_protection();
    int flags = choose_sharing() | choose_place();

    if (!(flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) && chance(50))
        range.start = NULL;
    map(range, protection, flags);
}

void step_munmap(void)
{
    struct range range = choose_range();

    log_add("munmap(");
    log_range(range);
    log_add(")");
    log_result(syscall(SYS_munmap, range.start, range.length), false);
    state_log_maps(false);
}

void step_mprotect(void)
{
    struct range range = choose_range();
    int protection = choose_protection();

    if (chance(3))
        protection |= chance(60) ? PROT_GROWSDOWN : chance(50) ? PROT_GROWSUP : 0x10;
    log_add("mprotect(");
    log_range(range);
    log_protection(protection);
    log_add(")");
    log_result(syscall(SYS_mprotect, range.start, range.length, (long)protection), false);
    state_log_maps(false);
}

static unsigned long choose_new_length(unsigned long old)
{
    unsigned long n = below(100);

    if (n < 35)
        return old;
    if (n < 65)
        return old + (1 + below(12)) * PAGE;
    if (n < 95)
        return old > PAGE ? PAGE * (1 + below(old / PAGE)) : PAGE;
    return n < 97 ? 0 : n < 99 ? old + 1 + below(PAGE - 1) : 1UL << 47;
}

void step_mremap(void)
{
    struct range range = choose_range();
    char *target = choose_address();
    unsigned long length;
    int flags = chance(85) ? MREMAP_MAYMOVE : 0;

    flags |= chance(45) ? MREMAP_FIXED : 0;
    flags |= chance(20) ? MREMAP_DONTUNMAP : 0;
    flags |= chance(1) ? 8 : 0;
    if (chance(4)) /* shared: a second map of the same pages */
        range.length = 0;
    length = choose_new_length(range.length);
    if (range.length == 0 && chance(80))
        length = PAGE * (1 + below(8));
    log_add("mremap(");
    log_range(range);
    log_add(" -> ");
    log_range((struct range){target, length});
    log_add(", %s%s%s%s)", flags & MREMAP_MAYMOVE ? " MAYMOVE" : "",
            flags & MREMAP_FIXED ? " FIXED" : "", flags & MREMAP_DONTUNMAP ? " DONTUNMAP" : "",
            flags & 8 ? " 8" : "");
    /* Where the new end would lie above the chosen area, it would replace what the program needs. */
    if (flags & MREMAP_FIXED && target >= area_start[AREA_CHOSEN] &&
        target + length > area_start[AREA_CHOSEN] + AREA_PAGES * PAGE && length < 1UL << 40) {
        log_add(" left out\n");
        return;
    }
    log_result(syscall(SYS_mremap, range.start, range.length, length, (long)flags, target), true);
    state_log_maps(false);
}

void step_brk(void)
{
    char *start = area_start[AREA_HEAP];
    char *wanted = start + below(chance(80) ? 16 : AREA_PAGES) * PAGE;

    if (chance(30))
        wanted += below(PAGE);
    if (chance(4))
        wanted = chance(50) ? NULL : start - PAGE;
    log_add("brk(");
    log_address(wanted);
    log_add(")");
    log_result(syscall(SYS_brk, wanted), true);
    state_log_maps(false);
}
