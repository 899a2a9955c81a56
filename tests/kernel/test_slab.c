/*
 * Slab caches and kmalloc: reuse, alignment, counts, and the checks of debug builds.
 */
#include "kernel/sched/grace.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/misuse.h"
#include "mm/core/slab.h"
#include "tests/kernel/ktest.h"

#define OBJECT_BYTES 200ul
#define MANY         500

/* A cache for one test, with one object in hand. */
struct fixture {
    struct slab_cache *cache;
    u8 *object;
};

static struct fixture setup(void)
{
    struct fixture f = {.cache = slab_cache_create("test", OBJECT_BYTES, 0)};

    f.object = slab_alloc(f.cache);
    return f;
}

KTEST(slab, freed_object_is_given_out_again)
{
    struct fixture f = setup();

    KASSERT(f.object != NULL);
    slab_free(f.cache, f.object);

    u8 *again = slab_alloc(f.cache);

    KEXPECT(again == f.object);
    slab_free(f.cache, again);
    slab_cache_destroy(f.cache);
}

KTEST(slab, objects_are_aligned_and_apart)
{
    static const size_t aligns[] = {8, 64, 256, 4096};

    for (size_t a = 0; a < ARRAY_SIZE(aligns); a++) {
        struct slab_cache *cache = slab_cache_create("test", OBJECT_BYTES, aligns[a]);
        u8 *objects[32];

        for (unsigned i = 0; i < ARRAY_SIZE(objects); i++) {
            objects[i] = slab_alloc(cache);
            KASSERT(objects[i] != NULL);
            KEXPECT(IS_ALIGNED((u64)objects[i], aligns[a]));
            memset(objects[i], (int)i + 1, OBJECT_BYTES);
        }
        for (unsigned i = 0; i < ARRAY_SIZE(objects); i++) {
            KEXPECT_EQ(objects[i][0], i + 1);
            KEXPECT_EQ(objects[i][OBJECT_BYTES - 1], i + 1);
            slab_free(cache, objects[i]);
        }
        slab_cache_destroy(cache);
    }
}

KTEST(slab, live_objects_are_counted_and_frames_come_back)
{
    grace_barrier(); /* what earlier tests left to be freed */

    static void *objects[MANY]; /* tests run one at a time */

    slab_release_empty();

    u64 free_before = frames_free_count(), slab_before = slab_frames_total();
    struct slab_cache *cache = slab_cache_create("test", OBJECT_BYTES, 0);

    for (unsigned i = 0; i < MANY; i++) {
        objects[i] = slab_alloc(cache);
        KASSERT(objects[i] != NULL);
    }
    KEXPECT_EQ(slab_cache_live(cache), MANY);
    KEXPECT(slab_frames_total() >= slab_before + MANY * OBJECT_BYTES / PAGE_SIZE);
    KEXPECT_EQ(free_before - frames_free_count(), slab_frames_total() - slab_before);
    for (unsigned i = 0; i < MANY; i += 2)
        slab_free(cache, objects[i]);
    KEXPECT_EQ(slab_cache_live(cache), MANY / 2);
    for (unsigned i = 1; i < MANY; i += 2)
        slab_free(cache, objects[i]);
    KEXPECT_EQ(slab_cache_live(cache), 0);
    slab_cache_destroy(cache);
    slab_release_empty();
    KEXPECT_EQ(frames_free_count(), free_before);
    KEXPECT_EQ(slab_frames_total(), slab_before);
}

static void find_test_cache(void *ctx, const char *name, u64 live, size_t object_bytes, u64 frames)
{
    if (strcmp(name, "test") == 0 && live == 1 && object_bytes == OBJECT_BYTES && frames >= 1)
        ++*(unsigned *)ctx;
}

KTEST(slab, caches_are_listed)
{
    struct fixture f = setup();
    unsigned found = 0;

    KASSERT(f.object != NULL);
    slab_for_each(find_test_cache, &found);
    KEXPECT_EQ(found, 1);
    slab_free(f.cache, f.object);
    slab_cache_destroy(f.cache);
}

KTEST(slab, zeroed_object_is_zero)
{
    struct fixture f = setup();
    unsigned n_set = 0;

    KASSERT(f.object != NULL);
    memset(f.object, 0xff, OBJECT_BYTES);
    slab_free(f.cache, f.object);
    f.object = slab_alloc_zeroed(f.cache);
    KASSERT(f.object != NULL);
    for (size_t i = 0; i < OBJECT_BYTES; i++)
        n_set += f.object[i] != 0;
    KEXPECT_EQ(n_set, 0);
    slab_free(f.cache, f.object);
    slab_cache_destroy(f.cache);
}

KTEST(slab, out_of_frames_is_null)
{
    struct slab_cache *cache = slab_cache_create("test", OBJECT_BYTES, 0);

    frames_fail_inject(0, 1);
    KEXPECT(slab_alloc(cache) == NULL);
    frames_fail_inject(0, 0);

    void *object = slab_alloc(cache);

    KEXPECT(object != NULL);
    KEXPECT_EQ(slab_cache_live(cache), 1);
    slab_free(cache, object);
    slab_cache_destroy(cache);
}

KTEST(slab, double_free_is_caught)
{
    if (!MEMORY_CHECKS)
        KTEST_SKIP("debug builds only");

    struct fixture f = setup();

    KASSERT(f.object != NULL);
    slab_free(f.cache, f.object);
    memory_misuse_expect();
    slab_free(f.cache, f.object);

    const char *report = memory_misuse_take();

    KEXPECT(report && strstr(report, "test: ") && strstr(report, "freed twice"));
    KEXPECT_EQ(slab_cache_live(f.cache), 0);
    slab_cache_destroy(f.cache);
}

KTEST(slab, use_after_free_is_caught_and_names_the_freer)
{
    if (!MEMORY_CHECKS)
        KTEST_SKIP("debug builds only");

    struct fixture f = setup();

    KASSERT(f.object != NULL);
    slab_free(f.cache, f.object);
    f.object[17] = 0;
    memory_misuse_expect();

    u8 *again = slab_alloc(f.cache);
    const char *report = memory_misuse_take();

    KEXPECT(report && strstr(report, "offset 17"));
    KEXPECT(report && strstr(report, "use_after_free_is_caught_and_names_the_freer"));
    slab_free(f.cache, again);
    slab_cache_destroy(f.cache);
}

KTEST(slab, overrun_is_caught)
{
    if (!MEMORY_CHECKS)
        KTEST_SKIP("debug builds only");

    struct fixture f = setup();

    KASSERT(f.object != NULL);
    f.object[OBJECT_BYTES] ^= 1;
    memory_misuse_expect();
    slab_free(f.cache, f.object);

    const char *report = memory_misuse_take();

    KEXPECT(report && strstr(report, "past its end"));
    slab_cache_destroy(f.cache);
}

KTEST(slab, object_of_another_cache_is_caught)
{
    if (!MEMORY_CHECKS)
        KTEST_SKIP("debug builds only");

    struct fixture f = setup();
    void *foreign = kmalloc(OBJECT_BYTES);

    KASSERT(f.object && foreign);
    memory_misuse_expect();
    slab_free(f.cache, foreign);
    KEXPECT(memory_misuse_take() != NULL);
    memory_misuse_expect();
    slab_free(f.cache, f.object + 8);
    KEXPECT(memory_misuse_take() != NULL);
    kfree(foreign);
    slab_free(f.cache, f.object);
    slab_cache_destroy(f.cache);
}

KTEST(kmalloc, every_size_is_usable_to_its_last_byte)
{
    grace_barrier(); /* what earlier tests left to be freed */

    static const size_t sizes[] = {1,     16,    17,     64,     65,     100,
                                   192,   1000,  2048,   2049,   4096,   4097,
                                   10000, 65536, 131072, 131073, 262144, 1ul << 20};

    slab_release_empty();

    u64 before = frames_free_count();

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        u8 *object = kmalloc(sizes[i]);
        u8 *other = kmalloc(sizes[i]);

        KASSERT(object && other);
        KEXPECT(IS_ALIGNED((u64)object, sizes[i] > 2048 ? PAGE_SIZE : 16));
        memset(object, 0x11, sizes[i]);
        memset(other, 0x22, sizes[i]);
        KEXPECT_EQ(object[0], 0x11);
        KEXPECT_EQ(object[sizes[i] - 1], 0x11);
        kfree(object);
        kfree(other);
    }
    slab_release_empty();
    KEXPECT_EQ(frames_free_count(), before);
}

KTEST(kmalloc, too_large_is_null_and_null_can_be_freed)
{
    KEXPECT(kmalloc(KMALLOC_MAX_BYTES + 1) == NULL);
    kfree(NULL);
}

KTEST(kmalloc, zeroed_large_object_is_zero)
{
    u8 *object = kmalloc(20000);
    unsigned n_set = 0;

    KASSERT(object != NULL);
    memset(object, 0xff, 20000);
    kfree(object);
    object = kzalloc(20000);
    KASSERT(object != NULL);
    for (size_t i = 0; i < 20000; i++)
        n_set += object[i] != 0;
    KEXPECT_EQ(n_set, 0);
    kfree(object);
}

KTEST(kmalloc, double_free_of_a_large_object_is_caught)
{
    u8 *object = kmalloc(20000);

    KASSERT(object != NULL);
    kfree(object);
    memory_misuse_expect();
    kfree(object);
    KEXPECT(memory_misuse_take() != NULL);
}
