/*
 * mm_check(): do tree, areas, counters and page tables of an address space agree? For tests; it
 * looks at everything.
 */
#include "mm/huge.h"
#include "mm/vma_internal.h"

#define HUGE_END (USER_ADDRESS_END + PAGE_SIZE) /* in whole huge pages */

struct check {
    struct mm *mm;
    const struct vma *vma;         /* the area that the entries shown should belong to */
    u64 anon, file, entries, huge; /* found so far */
    const char *wrong;
};

/* ---- Areas ---- */

static bool is_on_file_list(const struct vma *wanted)
{
    struct page_cache *cache = wanted->file->cache;
    const struct vma *vma;
    bool found = false;

    mutex_lock(&cache->map_lock);
    list_for_each (vma, &cache->mappings, mapping_link)
        found |= vma == wanted;
    mutex_unlock(&cache->map_lock);
    return found;
}

static const char *check_vma(const struct mm *mm, const struct vma *vma,
                             const struct range_entry *entry)
{
    if (vma->mm != mm)
        return "a VMA belongs to another address space";
    if (vma->start != entry->start || vma->end != entry->end)
        return "a VMA's bounds are not those of the tree";
    if (!IS_ALIGNED(vma->start | vma->end, PAGE_SIZE) || vma->end > USER_ADDRESS_END)
        return "a VMA is not page-aligned, or lies outside the user half";
    if (vma->flags & (VMA_DETACHED | VMA_FRESH))
        return "a VMA in the tree is marked as being outside";
    if (vma_is_huge(vma) && !IS_ALIGNED(vma->start | vma->end, HUGE_PAGE_BYTES))
        return "a huge area is not aligned";
    if (vma->file && !is_on_file_list(vma))
        return "a VMA is not on its file's list";
    return NULL;
}

static const char *check_areas(struct mm *mm)
{
    const struct vma *below = NULL;
    struct range_entry entry;
    struct vma_sums sums = {0};
    u64 n = 0;

    if (!range_tree_check(&mm->vmas))
        return "the range tree is not in order";
    for (u64 at = 0; range_tree_next(&mm->vmas, at, &entry); at = entry.end) {
        const struct vma *vma = entry.item;
        const char *wrong = check_vma(mm, vma, &entry);
        if (wrong)
            return wrong;
        if (below && below->end == vma->start && !vma_owns_anon(below) && !vma_owns_anon(vma) &&
            vma_is_continued(below, vma))
            return "two areas that could be one are not merged";
        n++;
        vma_sums_add(&sums, vma, 1);
        below = vma;
    }
    if (n != mm->n_vmas || n != range_tree_count(&mm->vmas))
        return "n_vmas is wrong";
    if (sums.total != (s64)mm->total_pages || sums.data != (s64)mm->data_pages)
        return "total_pages or data_pages is wrong";
    return sums.locked != (s64)mm->locked_pages || sums.commit != (s64)mm->commit_pages
               ? "locked_pages or commit_pages is wrong"
               : NULL;
}

/* ---- Entries ---- */

static const char *check_page(const struct vma *vma, u64 addr, const struct page *page)
{
    if (page->mapcount <= 0 || page->refs < page->mapcount)
        return "a mapped page has too few references or map counts";
    if (page_has(page, PAGE_ANON))
        return vma_owns_anon(vma) ? NULL : "an area with pages of its own does not know it";
    if (!vma->file)
        return "a file's page is mapped in anonymous memory";
    return page_cache_owns(vma->file->cache, page, vma_pgoff(vma, addr))
               ? NULL
               : "an entry maps another page than the file's";
}

static const char *check_protection(const struct vma *vma, pte_t pte)
{
    if (vma->prot == PROT_NONE)
        return pte_is_present(pte) || !(pte & PTE_NONE_PROT) ? "PROT_NONE has a usable entry"
                                                             : NULL;
    if (!pte_is_present(pte))
        return "an entry is not present though the area can be accessed";
    pte_t allowed = vma_pte_bits(vma, true);
    if ((pte & PTE_WRITE) && !(allowed & PTE_WRITE))
        return "an entry is writable, its area is not";
    return (pte & PTE_NX) == (allowed & PTE_NX) ? NULL : "an entry's NX bit is not the area's";
}

static bool check_entry(void *ctx, u64 addr, pte_t *ptep)
{
    struct check *check = ctx;
    pte_t pte = *ptep;

    check->entries++;
    check->wrong = check_protection(check->vma, pte);
    if (!check->wrong && !(pte & PTE_ZERO_PAGE)) {
        const struct page *page = pte_page(pte);
        check->wrong = check_page(check->vma, addr, page);
        if (page_has(page, PAGE_ANON))
            check->anon++;
        else
            check->file++;
    }
    return check->wrong != NULL;
}

static void check_huge_entry(void *ctx, u64 addr, pte_t pte)
{
    struct check *check = ctx;
    const struct page *page = pte_page(pte);

    (void)addr;
    check->huge++;
    if (page->mapcount <= 0 || page->refs < page->mapcount || page->order != HUGE_PAGE_ORDER)
        check->wrong = "a huge page has too few references or map counts, or is none";
    else if (!check->wrong)
        check->wrong = check_protection(check->vma, pte);
}

/* Those of huge areas, and all: a difference lies outside them. */
static const char *check_huge_entries(struct mm *mm)
{
    struct check check = {.mm = mm};
    struct range_entry entry;
    u64 all = 0;

    for (u64 at = 0; range_tree_next(&mm->vmas, at, &entry); at = entry.end) {
        check.vma = entry.item;
        if (vma_is_huge(check.vma))
            huge_for_each(check.vma, check_huge_entry, &check);
    }
    pt_lock(&mm->space);
    for (u64 addr = pt_next_huge(&mm->space, 0, HUGE_END); addr < HUGE_END;
         addr = pt_next_huge(&mm->space, addr + HUGE_PAGE_BYTES, HUGE_END))
        all++;
    pt_unlock(&mm->space);
    if (check.wrong)
        return check.wrong;
    if (all != check.huge)
        return "a huge entry lies outside the huge areas";
    return all == mm->huge_pages ? NULL : "huge_pages is wrong";
}

static bool count_entry(void *ctx, u64 addr, pte_t *ptep)
{
    (void)addr, (void)ptep;
    ++*(u64 *)ctx;
    return false;
}

static void walk(struct mm *mm, u64 start, u64 end, entry_visit visit, void *ctx)
{
    for (u64 addr = start; addr < end;) {
        pt_lock(&mm->space);
        addr = pt_next_table(&mm->space, addr, end);
        if (addr < end)
            addr = mm_walk_table(&mm->space, addr, end, visit, ctx);
        pt_unlock(&mm->space);
    }
}

/* Entries seen area by area, and all entries: a difference lies outside every area. */
static const char *check_entries(struct mm *mm)
{
    struct check check = {.mm = mm};
    struct range_entry entry;
    u64 all = 0;

    for (u64 at = 0; range_tree_next(&mm->vmas, at, &entry) && !check.wrong; at = entry.end) {
        check.vma = entry.item;
        walk(mm, entry.start, entry.end, check_entry, &check);
    }
    if (check.wrong)
        return check.wrong;
    check.wrong = check_huge_entries(mm);
    if (check.wrong)
        return check.wrong;
    walk(mm, 0, USER_ADDRESS_END, count_entry, &all);
    if (all != check.entries)
        return "an entry lies outside every area";
    if (check.anon != mm->rss_anon)
        return "rss_anon is wrong";
    return check.file == mm->rss_file ? NULL : "rss_file is wrong";
}

const char *mm_check(struct mm *mm)
{
    rwsem_read_lock(&mm->mmap_lock);
    const char *wrong = check_areas(mm);
    if (!wrong)
        wrong = check_entries(mm);
    if (!wrong)
        wrong = page_table_check_user(&mm->space);
    rwsem_read_unlock(&mm->mmap_lock);
    return wrong;
}
