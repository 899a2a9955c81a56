/*
 * The files behind huge areas. See huge_file.h.
 */
#include "mm/huge_file.h"

#include "kernel/log/log.h"
#include "lib/errno.h"
#include "lib/format.h"
#include "mm/core/slab.h"

#define SETTLE_BATCH 16

static LOCK_CLASS(slots_lock_class, "huge file slots");

u64 huge_file_dev;

static u8 promise;
#define PROMISED ((void *)&promise)

static u64 last_ino; /* atomic */

/* ---- Slots ---- */

static void *node_alloc(void *ctx)
{
    (void)ctx;
    return kmalloc(sizeof(struct radix_node));
}

/* Slots are never read without their lock. */
static void node_free(void *ctx, struct radix_node *node)
{
    (void)ctx;
    kfree(node);
}

static const struct radix_ops slot_ops = {node_alloc, node_free};

/* ---- The file ---- */

static void let_slot_go(void *n_promised, u64 index, void *item)
{
    (void)index;
    if (item == PROMISED)
        ++*(u64 *)n_promised;
    else
        huge_page_put(item);
}

/* Nobody maps it any more. */
static void release(struct mapped_file *mapped)
{
    struct huge_file *file = container_of(mapped, struct huge_file, mapped);
    u64 n_promised = 0;

    radix_destroy(&file->slots, let_slot_go, &n_promised);
    huge_pool_unreserve(n_promised);
    page_cache_destroy(&file->cache);
    kfree(file);
}

static void show_path(struct mapped_file *file, char *buf, size_t size)
{
    (void)file;
    format_to(buf, size, "/anon_hugepage (deleted)");
}

struct huge_file *huge_file_create(u64 length_bytes)
{
    struct huge_file *file = kzalloc(sizeof(*file));

    if (!file)
        return NULL;
    file->mapped = (struct mapped_file){.refs = 1,
                                        .cache = &file->cache,
                                        .can_read = true,
                                        .can_map = true,
                                        .can_write = true,
                                        .release = release,
                                        .punch = huge_file_punch,
                                        .path = show_path};
    page_cache_init(&file->cache, NULL, file, false);
    file->cache.dev = huge_file_dev;
    file->cache.ino = atomic_add(&last_ino, 1);
    file->size_pages = length_bytes / HUGE_PAGE_BYTES;
    spin_init(&file->lock, &slots_lock_class);
    radix_init(&file->slots, &slot_ops, file);
    return file;
}

/* ---- Promises ---- */

static u64 remove_promises_locked(struct huge_file *file, u64 first, u64 end)
{
    u64 n = 0;

    for (u64 index = first; index < end; index++)
        n += radix_remove(&file->slots, index) == PROMISED;
    return n;
}

bool huge_file_is(const struct mapped_file *file)
{
    return file->release == release;
}

int huge_file_promise(struct huge_file *file, pgoff_t pgoff, u64 length_bytes, u32 vma_flags)
{
    u64 first = pgoff / HUGE_PAGE_FRAMES, end = first + length_bytes / HUGE_PAGE_BYTES;

    if (vma_flags & VMA_NORESERVE)
        return 0;
    int error = huge_pool_reserve(end - first);
    if (error)
        return error;
    spin_lock(&file->lock);
    for (u64 index = first; index < end && !error; index++)
        error = radix_insert(&file->slots, index, PROMISED);
    if (error)
        (void)remove_promises_locked(file, first, end);
    spin_unlock(&file->lock);
    if (error)
        huge_pool_unreserve(end - first);
    return error;
}

/* ---- Pages ---- */

struct page *huge_file_find(struct huge_file *file, u64 index)
{
    spin_lock(&file->lock);
    struct page *page = radix_lookup(&file->slots, index);
    if (page == PROMISED)
        page = NULL;
    if (page)
        page_get(page);
    spin_unlock(&file->lock);
    return page;
}

struct page *huge_file_remove(struct huge_file *file, u64 index)
{
    spin_lock(&file->lock);
    struct page *page = radix_lookup(&file->slots, index);
    if (page == PROMISED)
        page = NULL;
    if (page)
        (void)radix_remove(&file->slots, index);
    spin_unlock(&file->lock);
    return page;
}

static bool may_use_promise(const struct vma *vma)
{
    return vma->flags & (VMA_SHARED | VMA_HUGE_OWNER);
}

/* The slot becomes what it is with the page taken; in a shared mapping the page, with a reference. => 0, -ENOMEM */
static int fill_slot_locked(const struct vma *vma, u64 index, struct page *page, bool promised)
{
    struct radix *slots = &huge_file_of(vma)->slots;
    int error = 0;

    if (!(vma->flags & VMA_SHARED)) {
        if (promised)
            (void)radix_remove(slots, index);
        return 0;
    }
    if (promised)
        (void)radix_replace(slots, index, page);
    else
        error = radix_insert(slots, index, page);
    if (!error)
        page_get(page);
    return error;
}

struct page *huge_file_take(const struct vma *vma, u64 index, int *error)
{
    struct huge_file *file = huge_file_of(vma);

    spin_lock(&file->lock);
    bool promised = may_use_promise(vma) && radix_lookup(&file->slots, index) == PROMISED;
    spin_unlock(&file->lock);

    struct page *page = huge_pool_take(promised);
    if (!page) {
        *error = -ENOSPC;
        return NULL;
    }
    spin_lock(&file->lock);
    *error = fill_slot_locked(vma, index, page, promised);
    spin_unlock(&file->lock);
    if (*error) {
        huge_page_put(page);
        return NULL;
    }
    page->flags = vma->flags & VMA_SHARED ? PAGE_UPTODATE : PAGE_UPTODATE | PAGE_ANON;
    return page;
}

void huge_file_untake(const struct vma *vma, u64 index, struct page *page)
{
    struct huge_file *file = huge_file_of(vma);

    if (!(vma->flags & VMA_HUGE_OWNER)) {
        huge_page_put(page);
        return;
    }
    spin_lock(&file->lock);
    int error = radix_insert(&file->slots, index, PROMISED); /* first: it can fail */
    if (error)
        huge_page_put(page);
    else if (!huge_page_put_promised(page))
        (void)radix_remove(&file->slots, index);
    spin_unlock(&file->lock);
}

/* ---- Areas that go ---- */

/* map_lock held */
static bool is_owned(struct huge_file *file, u64 index)
{
    const struct vma *vma;

    list_for_each (vma, &file->cache.mappings, mapping_link) {
        u64 first = huge_index(vma, vma->start);

        if ((vma->flags & VMA_HUGE_OWNER) && index >= first &&
            index - first < (vma->end - vma->start) / HUGE_PAGE_BYTES)
            return true;
    }
    return false;
}

void huge_file_settle(const struct vma *vma)
{
    struct huge_file *file = huge_file_of(vma);
    u64 first = huge_index(vma, vma->start), last = huge_index(vma, vma->end - HUGE_PAGE_BYTES);
    u64 indices[SETTLE_BATCH], n_dropped = 0;
    void *items[SETTLE_BATCH];
    size_t n;

    spin_lock(&file->lock);
    while (first <= last &&
           (n = radix_gang_lookup(&file->slots, first, last, items, indices, SETTLE_BATCH)) > 0) {
        for (size_t i = 0; i < n; i++)
            if (!is_owned(file, indices[i]))
                n_dropped += remove_promises_locked(file, indices[i], indices[i] + 1);
        first = indices[n - 1] + 1;
    }
    spin_unlock(&file->lock);
    huge_pool_unreserve(n_dropped);
}
