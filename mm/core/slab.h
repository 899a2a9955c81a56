/*
 * Kernel objects: one slab cache for each type, and kmalloc for odd sizes. Never sleeps; NULL when out of frames.
 * Debug builds poison freed objects, check redzones, and name the cache and last freer on misuse.
 */
#ifndef MM_CORE_SLAB_H
#define MM_CORE_SLAB_H

#include "lib/types.h"

struct slab_cache;

void slab_init(void);
/* name must outlive the cache; align 0 = 8. Panics only when called before slab_init or out of memory at boot. */
struct slab_cache *slab_cache_create(const char *name, size_t object_bytes, size_t align);
void *slab_alloc(struct slab_cache *cache);        /* contents undefined */
void *slab_alloc_zeroed(struct slab_cache *cache);
void slab_free(struct slab_cache *cache, void *object);
void slab_cache_destroy(struct slab_cache *cache); /* must be empty */
u64 slab_cache_live(const struct slab_cache *cache); /* objects handed out now */

void *kmalloc(size_t bytes);        /* up to 1 MiB; 16-byte aligned */
void *kzalloc(size_t bytes);
void kfree(void *object);           /* NULL is allowed */

/* For /proc and leak tests: calls fn(name, live objects, object size, slab frames) for each cache. */
void slab_for_each(void (*fn)(void *ctx, const char *name, u64 live, size_t object_bytes, u64 frames), void *ctx);
u64 slab_frames_total(void);

#endif
