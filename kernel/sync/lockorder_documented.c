/*
 * The order that docs/locking.md documents, for the report of an inversion: which of the two ways is
 * wrong. tests/host/test_docs.py compares this table with the chapter.
 */
#include "kernel/sync/lockorder.h"

#ifdef CONFIG_DEBUG

#include "lib/string.h"

/* Outer to inner; of two with the same depth nobody holds both. By class, and by name in the chapter. */
static const struct {
    const char *class, *documented;
    unsigned depth;
} documented_order[] = {
    {"inode->rwlock", "inode->rwlock", 0},
    {"mmap_lock", "mmap_lock", 1},
    {"vma->lock", "vma->lock", 2},
    {"invalidate_lock", "cache->invalidate_lock", 3},
    {"page lock (file)", "page lock (file)", 4},
    {"lazy_lock", "lazy_lock", 5},
    {"map_lock", "cache->map_lock", 5},
    {"page table", "pt_lock", 6},
    {"tree_lock", "cache->tree_lock", 7},
};

/* => its line in documented_order, or -1 */
static int documented(const struct lock_class *class)
{
    for (unsigned i = 0; i < ARRAY_SIZE(documented_order); i++)
        if (strcmp(documented_order[i].class, class->name) == 0)
            return (int)i;
    return -1;
}

void lockorder_print_documented(const struct lock_class *outer, const struct lock_class *inner,
                                void (*line)(const char *fmt, ...))
{
    int a = documented(outer), b = documented(inner);

    if (a < 0 || b < 0 || documented_order[a].depth == documented_order[b].depth) {
        line("%s and %s have no order there: give them one, and write it down.", inner->name,
             outer->name);
        return;
    }
    bool is_right = documented_order[a].depth < documented_order[b].depth;

    line("There, %s comes before %s: the %s way is wrong.",
         documented_order[is_right ? a : b].documented,
         documented_order[is_right ? b : a].documented, is_right ? "earlier" : "new");
}

#endif
