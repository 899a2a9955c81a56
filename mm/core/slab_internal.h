/*
 * Between slab.c, slab_check.c and kmalloc.c. For no one else.
 */
#ifndef MM_CORE_SLAB_INTERNAL_H
#define MM_CORE_SLAB_INTERNAL_H

#include "kernel/sync/spin.h"
#include "lib/list.h"
#include "mm/core/misuse.h"
#include "mm/core/page.h"
#include "mm/core/slab.h"

struct slab_cache {
    struct spinlock lock;
    const char *name;
    size_t object_bytes; /* as asked for */
    size_t stride;
    size_t trailer; /* debug: offset of the struct trailer */
    size_t link;    /* offset of the link of a free object */
    unsigned order;
    unsigned per_slab; /* objects */
    u64 live;
    u64 n_slabs;
    struct list partial, full;
    struct page *empty; /* one is kept: an object made and freed in turn costs no frames */
    struct list all_link;
};

/* Debug builds: behind each object. The redzone word tells live from free. */
struct trailer {
    u64 redzone;
    struct way made, freed; /* by whom, last */
};

static inline struct page *slab_head_of(const void *object)
{
    struct page *page = virt_page(object);

    return pfn_page(ALIGN_DOWN(page_pfn(page), 1ul << page->order));
}

/* As the public ones; `caller` is the text address named in reports. */
void *slab_alloc_for(struct slab_cache *cache, u64 caller);
void slab_free_for(struct slab_cache *cache, void *object, u64 caller);
size_t slab_object_bytes(const struct slab_cache *cache);

/* The cache whose slab the object lies in; NULL if it lies in no slab. */
struct slab_cache *slab_cache_of(const void *object);

/* Makes the caches of kmalloc; by slab_init. */
void kmalloc_init(void);
u64 kmalloc_large_frames(void);

/* slab_check.c, debug builds. cache->lock held, but for new objects, which nobody else knows. */
void slab_mark_new(struct slab_cache *cache, void *object);
void slab_mark_free(struct slab_cache *cache, void *object, u64 caller);
/* Reports what was written while the object was free. */
void slab_check_and_mark_live(struct slab_cache *cache, void *object, u64 caller);
/* => whether the object may be freed; else it is reported */
bool slab_check_live(struct slab_cache *cache, void *object, u64 caller);

#endif
