/*
 * kmalloc: objects of any size. Up to 2 KiB they come from a row of slab caches, above that
 * straight from the frame allocator, as the next power of two of frames.
 *
 * A large object is known by the mark in its head's struct page; its size is the order there.
 */
#include "kernel/log/log.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/misuse.h"
#include "mm/core/slab_internal.h"

#define KMALLOC_ALIGN 16
#define LARGE_MARK    0x6b6d616c6c6f6321ul

/* Two sizes for each doubling from 64 on: at most a third is wasted. Guarded by nothing: written at
 * boot. */
static struct {
    size_t bytes;
    const char *name;
    struct slab_cache *cache;
} classes[] = {
    {16, "kmalloc-16", NULL},     {32, "kmalloc-32", NULL},     {48, "kmalloc-48", NULL},
    {64, "kmalloc-64", NULL},     {96, "kmalloc-96", NULL},     {128, "kmalloc-128", NULL},
    {192, "kmalloc-192", NULL},   {256, "kmalloc-256", NULL},   {384, "kmalloc-384", NULL},
    {512, "kmalloc-512", NULL},   {768, "kmalloc-768", NULL},   {1024, "kmalloc-1024", NULL},
    {1536, "kmalloc-1536", NULL}, {2048, "kmalloc-2048", NULL},
};

static u64 large_frames; /* atomic */

void kmalloc_init(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
        classes[i].cache = slab_cache_create(classes[i].name, classes[i].bytes, KMALLOC_ALIGN);
}

u64 kmalloc_large_frames(void)
{
    return atomic_load(&large_frames);
}

static void *alloc_large(size_t bytes)
{
    unsigned order = 0;

    if (bytes > KMALLOC_MAX_BYTES)
        return NULL;
    while (PAGE_SIZE << order < bytes)
        order++;

    struct page *page = frames_alloc(order, FRAME_ATOMIC);

    if (!page)
        return NULL;
    page->private_[0] = LARGE_MARK;
    atomic_add(&large_frames, 1ul << order);
    return page_virt(page);
}

static void *alloc_for(size_t bytes, u64 caller)
{
    for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
        if (bytes <= classes[i].bytes)
            return slab_alloc_for(classes[i].cache, caller);
    return alloc_large(bytes);
}

void *kmalloc(size_t bytes)
{
    return alloc_for(bytes, (u64)__builtin_return_address(0));
}

void *kzalloc(size_t bytes)
{
    void *object = alloc_for(bytes, (u64)__builtin_return_address(0));

    if (object)
        memset(object, 0, bytes);
    return object;
}

static void free_large(void *object)
{
    struct page *page = virt_page(object);

    if (page->private_[0] != LARGE_MARK || !IS_ALIGNED((u64)object, PAGE_SIZE)) {
        memory_misuse("kfree of %p, which kmalloc never gave or which is free already", object);
        return;
    }
    page->private_[0] = 0;
    atomic_sub(&large_frames, 1ul << page->order);
    frames_free(page, page->order);
}

void kfree(void *object)
{
    if (!object)
        return;

    struct slab_cache *cache = slab_cache_of(object);

    if (cache)
        slab_free_for(cache, object, (u64)__builtin_return_address(0));
    else
        free_large(object);
}
