#include "tests/user/mmfuzz/fuzz.h"

#include <sys/mman.h>

/* Most steps happen at the start of the fixed area. */
#define BUSY_PAGES 30

static uint64_t state;

uint64_t choose_number(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15UL;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9UL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebUL;
    return z ^ z >> 31;
}

void choose_start(uint64_t seed, unsigned step)
{
    state = seed * 0xd1342543de82ef95UL + step;
    state = choose_number();
}

unsigned long below(unsigned long n)
{
    return choose_number() % n;
}

bool chance(unsigned percent)
{
    return below(100) < percent;
}

static enum area choose_area(void)
{
    unsigned long n = below(100);

    return n < 72 ? AREA_FIXED : n < 92 ? AREA_CHOSEN : AREA_HEAP;
}

static unsigned long choose_length_pages(void)
{
    unsigned long n = below(100);

    return n < 75 ? 1 + below(8) : n < 95 ? 1 + below(24) : 1 + below(AREA_PAGES);
}

/* The kernel's own places fill from the top, the heap from the bottom. */
static struct range choose_pages_of(enum area area)
{
    unsigned long pages = choose_length_pages();
    unsigned long page = below(AREA_PAGES);

    if (area == AREA_CHOSEN)
        page = AREA_PAGES - 1 - below(chance(75) ? 10 : AREA_PAGES);
    else if (area == AREA_HEAP)
        page = below(chance(75) ? 10 : AREA_PAGES);
    else if (chance(80))
        page = below(BUSY_PAGES);
    if (page + pages > AREA_PAGES && !(area == AREA_FIXED && chance(10)))
        pages = AREA_PAGES - page;
    return (struct range){area_start[area] + page * PAGE, pages * PAGE};
}

struct range choose_first(void)
{
    return (struct range){area_start[AREA_FIXED] + below(BUSY_PAGES) * PAGE,
                          (3 + below(14)) * PAGE};
}

struct range choose_pages(void)
{
    return choose_pages_of(choose_area());
}

struct range choose_range(void)
{
    enum area area = choose_area();
    struct range range = choose_pages_of(area);

    if (chance(3))
        range.start += 1 + below(PAGE - 1);
    if (chance(10) && range.length > PAGE)
        range.length -= 1 + below(PAGE - 1);
    if (chance(2))
        range.length = 0;
    if (area == AREA_FIXED && chance(1))
        range.length = chance(50) ? HUGE_LENGTH : HUGE_LENGTH - PAGE + 1;
    if ((unsigned long)range.start % PAGE != 0 && area != AREA_FIXED)
        range.length = range.length > PAGE ? range.length - PAGE : range.length;
    return range;
}

char *choose_address(void)
{
    char *start = choose_pages().start;

    return chance(3) ? start + 1 + below(PAGE - 1) : start;
}

int choose_protection(void)
{
    static const int often[] = {
        PROT_READ | PROT_WRITE,
        PROT_READ | PROT_WRITE,
        PROT_READ | PROT_WRITE,
        PROT_READ | PROT_WRITE,
        PROT_READ,
        PROT_READ,
        PROT_NONE,
        PROT_READ | PROT_EXEC,
        PROT_READ | PROT_WRITE | PROT_EXEC,
        PROT_WRITE,
    };

    return chance(97) ? often[below(sizeof often / sizeof *often)] : (int)below(8);
}

enum file choose_file(void)
{
    unsigned long n = below(100);

    if (n < 45)
        return FILE_MEMFD;
    if (n < 70)
        return FILE_TMPFS;
    return n < 88 ? FILE_DISK : (enum file)below(FILES);
}

enum file choose_memory_file(void)
{
    unsigned long n = below(100);

    if (n < 60)
        return FILE_MEMFD;
    return n < 92 ? FILE_TMPFS : (enum file)below(FILES);
}
