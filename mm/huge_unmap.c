/*
 * A huge page out of page tables that are not the caller's: found by the file's list of mappings.
 *
 *   huge_take_from_others   the parent of a fork needs it: out of its children's tables
 *   huge_file_punch         the file gives it up (MADV_REMOVE): out of all
 *
 * Both hold the mutex of the page's index, so no fault maps it again meanwhile. map_lock keeps the areas and their spaces
 * alive. A copy of an area (by fork, by mremap) stands behind it on the list from before its entries are filled, so an entry that moves or
 * multiplies meanwhile is met at its new place.
 */
#include "lib/string.h"
#include "mm/core/tlb.h"
#include "mm/huge.h"

/* Takes the page out of the area's table. => whether it was there */
static bool take_from(const struct vma *vma, u64 index, struct page *page)
{
    struct pt_space *space = &vma->mm->space;
    u64 first = huge_index(vma, vma->start);
    struct tlb_batch batch;

    if (index < first || index - first >= (vma->end - vma->start) / HUGE_PAGE_BYTES)
        return false;
    u64 addr = vma->start + (index - first) * HUGE_PAGE_BYTES;
    tlb_batch_init(&batch, space);
    pt_lock(space);
    pte_t *ptep = pt_find_huge(space, addr);
    bool is_it = ptep && (*ptep & PTE_LARGE) && pte_page(*ptep) == page;
    if (is_it) {
        WRITE_ONCE(*ptep, 0);
        atomic_sub(&vma->mm->huge_pages, 1);
        atomic_sub(&page->mapcount, 1);
        tlb_batch_add_range(&batch, addr, addr + HUGE_PAGE_BYTES);
    }
    pt_unlock(space);
    tlb_batch_flush(&batch);
    if (is_it)
        huge_page_put(page);
    return is_it;
}

/* ---- From a fork's children ---- */

/* One of mm's areas of the file has lost a page: all of them count as robbed, wherever edits put their pieces meanwhile. map_lock held. */
static void mark_robbed(struct page_cache *cache, const struct mm *mm)
{
    struct vma *vma;

    list_for_each (vma, &cache->mappings, mapping_link)
        if (vma->mm == mm)
            WRITE_ONCE(vma->was_robbed, true);
}

void huge_take_from_others(const struct vma *vma, u64 index, struct page *page)
{
    struct page_cache *cache = vma->file->cache;
    struct vma *other;

    mutex_lock(&cache->map_lock);
    list_for_each (other, &cache->mappings, mapping_link)
        if (other != vma && !(other->flags & VMA_HUGE_OWNER) && take_from(other, index, page))
            mark_robbed(cache, other->mm);
    mutex_unlock(&cache->map_lock);
}

/* ---- From a shared file ---- */

static void unmap_everywhere(struct huge_file *file, u64 index, struct page *page)
{
    const struct vma *vma;

    mutex_lock(&file->cache.map_lock);
    list_for_each (vma, &file->cache.mappings, mapping_link)
        (void)take_from(vma, index, page);
    mutex_unlock(&file->cache.map_lock);
}

static void punch_page(struct huge_file *file, u64 index)
{
    struct mutex *lock = huge_index_lock(file, index);

    mutex_lock(lock);
    struct page *page = huge_file_remove(file, index);
    if (page) {
        unmap_everywhere(file, index, page);
        huge_page_put(page);
    }
    mutex_unlock(lock);
}

/* Bytes [start, end) of one page that stays. */
static void clear_part(struct huge_file *file, u64 start, u64 end)
{
    u64 index = start / HUGE_PAGE_BYTES;
    struct mutex *lock = huge_index_lock(file, index);

    mutex_lock(lock);
    struct page *page = huge_file_find(file, index);
    if (page) {
        memset((char *)page_virt(page) + start % HUGE_PAGE_BYTES, 0, end - start);
        huge_page_put(page);
    }
    mutex_unlock(lock);
}

int huge_file_punch(struct mapped_file *mapped, u64 offset, u64 bytes)
{
    struct huge_file *file = container_of(mapped, struct huge_file, mapped);
    u64 end = offset + bytes;

    for (u64 next; offset < end; offset = next) {
        next = MIN(ALIGN_DOWN(offset, HUGE_PAGE_BYTES) + HUGE_PAGE_BYTES, end);
        if (next - offset == HUGE_PAGE_BYTES)
            punch_page(file, offset / HUGE_PAGE_BYTES);
        else
            clear_part(file, offset, next);
    }
    return 0;
}
