/*
 * Kernel objects: one slab cache for each type, and kmalloc for odd sizes. Never sleeps; NULL when
 * out of frames (the reserve included: objects are also made where nobody can reclaim). Any
 * context, also interrupts. Debug builds poison freed objects, check redzones, and name the cache
 * and last freer on misuse.
 */
#ifndef MM_CORE_SLAB_H
#define MM_CORE_SLAB_H

#include "lib/types.h"

struct slab_cache;

#define SLAB_MAX_OBJECT_BYTES 8192ul
#define KMALLOC_MAX_BYTES     (1ul << 20)

void slab_init(void);
/*
 * name must outlive the cache; align a power of two up to PAGE_SIZE, 0 = 8; at most
 * SLAB_MAX_OBJECT_BYTES. Panics only when called before slab_init or out of memory at boot.
 */
struct slab_cache *slab_cache_create(const char *name, size_t object_bytes, size_t align);
void *slab_alloc(struct slab_cache *cache); /* contents undefined */
void *slab_alloc_zeroed(struct slab_cache *cache);
void slab_free(struct slab_cache *cache, void *object);
void slab_cache_destroy(struct slab_cache *cache);   /* must be empty */
u64 slab_cache_live(const struct slab_cache *cache); /* objects handed out now */

/* Up to KMALLOC_MAX_BYTES; 16-byte aligned, page-aligned from 4 KiB on. */
void *kmalloc(size_t bytes);
void *kzalloc(size_t bytes);
void kfree(void *object); /* NULL is allowed */

/*
 * For /proc and leak tests: calls fn(name, live objects, object size, slab frames) for each cache.
 * fn must not create or destroy caches.
 */
void slab_for_each(void (*fn)(void *ctx, const char *name, u64 live, size_t object_bytes,
                              u64 frames),
                   void *ctx);
/*
 * Test hook of debug builds: the next `after` objects are handed out, then `count` requests get NULL,
 * whoever makes them. (0, 0) switches it off. => how many have failed since the last call
 */
u64 slab_fail_inject(u64 after, u64 count);
/*
 * For reports of debug builds: if addr lies in a freed object, says so of `who` and who freed it.
 * => whether it does
 */
bool slab_describe_freed(u64 addr, const char *who, void (*line)(const char *fmt, ...));
u64 slab_frames_total(void); /* frames in slabs, and behind large kmalloc objects */
/* Gives back the slabs that are kept although empty. => frames freed */
u64 slab_release_empty(void);

#endif
