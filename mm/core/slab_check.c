/*
 * Debug builds: what was done to an object while nobody owned it, and past its end. And whose it was,
 * for reports.
 *
 * A free object is full of poison, and has another redzone word behind it: freeing what is free
 * already, or a write past the end, shows in that. Behind the word stands who made the object and who
 * freed it.
 */
#include "kernel/log/report.h"
#include "lib/string.h"
#include "mm/core/slab_internal.h"

#define REDZONE_LIVE 0x5afe0b1ec75afe0bul
#define REDZONE_FREE 0xdeadf4eedeadf4eeul

static struct trailer *trailer_of(const struct slab_cache *cache, void *object)
{
    return (struct trailer *)((char *)object + cache->trailer);
}

static void report(const struct slab_cache *cache, void *object, u64 caller, const char *what,
                   u64 offset)
{
    const struct trailer *trailer = trailer_of(cache, object);

    memory_misuse_of(caller, &trailer->made, &trailer->freed, "%s: object %p %s at offset %lu",
                     cache->name, object, what, offset);
}

void slab_mark_new(struct slab_cache *cache, void *object)
{
    poison_fill(object, cache->object_bytes);
    *trailer_of(cache, object) = (struct trailer){.redzone = REDZONE_FREE};
}

void slab_mark_free(struct slab_cache *cache, void *object, u64 caller)
{
    struct trailer *trailer = trailer_of(cache, object);

    poison_fill(object, cache->object_bytes);
    trailer->redzone = REDZONE_FREE;
    way_take(&trailer->freed, caller);
}

void slab_check_and_mark_live(struct slab_cache *cache, void *object, u64 caller)
{
    struct trailer *trailer = trailer_of(cache, object);
    size_t at = poison_check(object, cache->object_bytes);

    if (at < cache->object_bytes)
        report(cache, object, caller, "was written after it was freed,", at);
    else if (trailer->redzone != REDZONE_FREE)
        report(cache, object, caller, "was overrun while free,", cache->trailer);
    trailer->redzone = REDZONE_LIVE;
    way_take(&trailer->made, caller);
}

bool slab_check_live(struct slab_cache *cache, void *object, u64 caller)
{
    const struct page *slab = slab_head_of(object);

    if (slab_cache_of(object) != cache ||
        ((u64)object - (u64)page_virt(slab)) % cache->stride != 0) {
        memory_misuse("%s: %p freed, which is no object of this cache", cache->name, object);
        return false;
    }
    u64 redzone = trailer_of(cache, object)->redzone;

    if (redzone == REDZONE_FREE) {
        report(cache, object, caller, "was freed twice,", 0);
        return false;
    }
    if (redzone != REDZONE_LIVE)
        report(cache, object, caller, "was written past its end,", cache->trailer);
    return true;
}

/* ---- For reports ---------------------------------------------------------------------------- */

bool slab_describe_freed(u64 addr, const char *who, report_line line)
{
    if (!MEMORY_CHECKS || addr < DIRECT_MAP_BASE ||
        (addr - DIRECT_MAP_BASE) >> PAGE_SHIFT >= page_array_end)
        return false;

    const struct slab_cache *cache = slab_cache_of((void *)addr);

    if (!cache)
        return false;

    u64 offset = (addr - (u64)page_virt(slab_head_of((void *)addr))) % cache->stride;
    void *object = (void *)(addr - offset);
    const struct trailer *trailer = trailer_of(cache, object);

    if (trailer->redzone != REDZONE_FREE)
        return false;
    line("%s points into a freed object, %p of %s, at offset %lu", who, object, cache->name,
         offset);
    way_print("which was freed on this way:", &trailer->freed, line);
    return true;
}
