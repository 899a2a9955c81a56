/*
 * mincore: which pages of a range are in memory. A page is if its entry maps it; a file's page also
 * if the cache has it (mincore(2)), but for room that fallocate made in a file in memory and that
 * nobody has touched.
 *
 * The answer is put together in pieces: the lock is free while user memory is written.
 */
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/huge.h"
#include "mm/mmap.h"
#include "mm/user_memory.h"
#include "mm/vma_internal.h"

#define CHUNK_PAGES 256
#define FIND_BATCH  16

struct residency {
    u64 start; /* of the chunk */
    u8 *vec;
};

static bool note_entry(void *ctx, u64 addr, pte_t *ptep)
{
    (void)ptep; /* present, or an anonymous page kept through PROT_NONE: in memory */
    const struct residency *r = ctx;
    r->vec[(addr - r->start) >> PAGE_SHIFT] = 1;
    return false;
}

static void note_entries(struct mm *mm, u64 start, u64 end, struct residency *r)
{
    for (u64 addr = start; addr < end;) {
        pt_lock(&mm->space);
        addr = pt_next_table(&mm->space, addr, end);
        if (addr < end)
            addr = mm_walk_table(&mm->space, addr, end, note_entry, r);
        pt_unlock(&mm->space);
    }
}

static void note_cached(const struct vma *vma, u64 start, u64 end, const struct residency *r)
{
    pgoff_t first = vma_pgoff(vma, start), last = vma_pgoff(vma, end - PAGE_SIZE);
    struct page *pages[FIND_BATCH];
    unsigned n;

    while (first <= last &&
           (n = page_cache_find_range(vma->file->cache, first, last, pages, FIND_BATCH)) > 0) {
        for (unsigned i = 0; i < n; i++) {
            pgoff_t index = pages[i]->index;
            /* It may have left the cache meanwhile, for another place. */
            if (index >= first && index <= last && page_is_uptodate(pages[i]) &&
                !page_has(pages[i], PAGE_UNTOUCHED))
                r->vec[(vma_address(vma, index) - r->start) >> PAGE_SHIFT] = 1;
            first = MAX(first, index + (i + 1 == n));
            page_put(pages[i]);
        }
    }
}

/* => 0, -ENOMEM over a hole, -EINTR */
static int look_at_chunk(struct mm *mm, u64 start, u64 end, u8 *vec)
{
    struct residency r = {.start = start, .vec = vec};
    int error = 0;

    memset(vec, 0, (end - start) >> PAGE_SHIFT);
    if (rwsem_read_lock_killable(&mm->mmap_lock))
        return -EINTR;
    while (start < end && !error) {
        const struct vma *vma = vma_find(mm, start);
        if (!vma) {
            error = -ENOMEM;
            break;
        }
        u64 part_end = MIN(vma->end, end);
        if (vma_is_huge(vma))
            huge_note_resident(vma, start, part_end, vec + ((start - r.start) >> PAGE_SHIFT));
        else
            note_entries(mm, start, part_end, &r);
        if (vma->file && !vma_is_huge(vma))
            note_cached(vma, start, part_end, &r);
        start = part_end;
    }
    rwsem_read_unlock(&mm->mmap_lock);
    return error;
}

int mm_mincore(struct mm *mm, u64 addr, u64 length, u64 vec)
{
    u8 chunk[CHUNK_PAGES];

    if (!IS_ALIGNED(addr, PAGE_SIZE))
        return -EINVAL;
    if (addr > USER_ADDRESS_END || length > USER_ADDRESS_END - addr)
        return -ENOMEM;
    u64 end = addr + ALIGN_UP(length, PAGE_SIZE);
    if (!user_range_is_ok(vec, (end - addr) >> PAGE_SHIFT))
        return -EFAULT;
    while (addr < end) {
        u64 chunk_end = MIN(end, addr + CHUNK_PAGES * PAGE_SIZE);
        size_t pages = (chunk_end - addr) >> PAGE_SHIFT;
        int error = look_at_chunk(mm, addr, chunk_end, chunk);
        if (error)
            return error;
        if (copy_to_user(vec, chunk, pages))
            return -EFAULT;
        vec += pages;
        addr = chunk_end;
    }
    return 0;
}
