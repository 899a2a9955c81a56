/*
 * Between slab.c and kmalloc.c. For no one else.
 */
#ifndef MM_CORE_SLAB_INTERNAL_H
#define MM_CORE_SLAB_INTERNAL_H

#include "lib/list.h"
#include "mm/core/page.h"
#include "mm/core/slab.h"

/* As the public ones; `caller` is the text address named in reports. */
void *slab_alloc_for(struct slab_cache *cache, u64 caller);
void slab_free_for(struct slab_cache *cache, void *object, u64 caller);
size_t slab_object_bytes(const struct slab_cache *cache);

/* The cache whose slab the object lies in; NULL if it lies in no slab. */
struct slab_cache *slab_cache_of(const void *object);

/* Makes the caches of kmalloc; by slab_init. */
void kmalloc_init(void);
u64 kmalloc_large_frames(void);

#endif
