/*
 * Faults on huge areas (MAP_HUGETLB). Nothing is ever waited for: a page is in the pool or it is not.
 *
 *   first touch      a page of zeros: writable at once if the area is shared or the access a store
 *   touch, shared    the page that the file has already
 *   store, private   a page of ours alone: in place; one that others map too: a copy. Where the pool has no page for it, the process that
 *                    mapped the area takes the page away from its children (they get SIGBUS when they come back for it); any other
 *                    process gets SIGBUS
 *   no page          SIGBUS
 *
 * Two threads (or a parent and its child) that want the page of one index at once would need two pages for a moment, and there may
 * be just the promised one. So whoever serves an index holds that index's mutex, from the look at the entry to its store.
 */
#include "kernel/log/log.h"
#include "kernel/sched/sync_point.h"
#include "lib/errno.h"
#include "lib/hash.h"
#include "lib/string.h"
#include "mm/core/tlb.h"
#include "mm/fault_internal.h"
#include "mm/huge.h"

#define INDEX_LOCK_BITS 6

static SLEEP_LOCK_CLASS(index_lock_class, "huge page index");

static struct mutex index_locks[1u << INDEX_LOCK_BITS];

void fault_huge_init(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(index_locks); i++)
        mutex_init(&index_locks[i], &index_lock_class);
}

struct mutex *huge_index_lock(const struct huge_file *file, u64 index)
{
    return &index_locks[hash_slot((u64)file ^ index, INDEX_LOCK_BITS)];
}

/* A table there is an empty one, of what was mapped here before. */
static pte_t look_at_entry(struct fault *f)
{
    pt_lock(&f->mm->space);
    const pte_t *ptep = pt_find_huge(&f->mm->space, f->addr);
    pte_t pte = ptep && (*ptep & PTE_LARGE) ? *ptep : 0;
    pt_unlock(&f->mm->space);
    return pte;
}

static bool is_same(pte_t a, pte_t b)
{
    return ((a ^ b) & ~(PTE_ACCESSED | PTE_DIRTY)) == 0;
}

/*
 * Puts the page (one reference, which becomes the entry's) in the place of `expected`, whose page is let go.
 * => DONE, OOM, or RETRY: another entry is there now; with the last two the reference stays the caller's
 */
static enum fault_result install(struct fault *f, struct page *page, pte_t expected, bool writable)
{
    u64 start = ALIGN_DOWN(f->addr, HUGE_PAGE_BYTES);
    enum fault_result result = FAULT_RETRY;
    struct tlb_batch batch;

    tlb_batch_init(&batch, &f->mm->space);
    pt_lock(&f->mm->space);
    pte_t *ptep = pt_ensure_huge(&f->mm->space, f->addr, &batch);
    if (!ptep) {
        result = FAULT_OOM;
    } else if (is_same(*ptep, expected)) {
        atomic_add(&page->mapcount, 1);
        atomic_exchange(ptep, page_phys(page) | vma_pte_bits(f->vma, writable) | PTE_LARGE);
        result = FAULT_DONE;
    }
    if (result == FAULT_DONE && expected) {
        atomic_sub(&pte_page(expected)->mapcount, 1);
        tlb_batch_add_range(&batch, start, start + HUGE_PAGE_BYTES);
    } else if (result == FAULT_DONE) {
        atomic_add(&f->mm->huge_pages, 1);
        WRITE_ONCE(f->mm->has_huge_tables, true);
    }
    pt_unlock(&f->mm->space);
    tlb_batch_flush(&batch);
    if (result == FAULT_DONE && expected)
        huge_page_put(pte_page(expected));
    return result;
}

static void clear(struct page *page)
{
    for (u64 i = 0; i < HUGE_PAGE_FRAMES; i++)
        page_clear(page_virt(page + i));
}

static void copy(struct page *to, struct page *from)
{
    for (u64 i = 0; i < HUGE_PAGE_FRAMES; i++)
        page_copy(page_virt(to + i), page_virt(from + i));
}

/* ---- Nothing there --------------------------------------------------------------------------- */

static enum fault_result install_private(struct fault *f, u64 index, struct page *page,
                                         pte_t expected, bool writable)
{
    enum fault_result result = install(f, page, expected, writable);

    if (result == FAULT_DONE)
        vma_name_anon(f->vma);
    else
        huge_file_untake(f->vma, index, page);
    return result;
}

static enum fault_result install_shared(struct fault *f, struct page *page)
{
    enum fault_result result = install(f, page, 0, true);

    if (result != FAULT_DONE)
        huge_page_put(page); /* the file keeps it */
    return result;
}

static enum fault_result no_page(struct fault *f, u64 index)
{
    struct huge_file *file = huge_file_of(f->vma);
    bool is_shared = f->vma->flags & VMA_SHARED;
    int error;

    if (index >= file->size_pages || READ_ONCE(f->vma->was_robbed))
        return FAULT_SIGBUS_ADRERR;
    struct page *page = is_shared ? huge_file_find(file, index) : NULL;
    f->reason = page ? FAULT_REASON_CACHE : FAULT_REASON_ZERO;
    if (!page) {
        page = huge_file_take(f->vma, index, &error);
        if (!page)
            return error == -ENOMEM ? FAULT_OOM : FAULT_SIGBUS_ADRERR;
        SYNC_POINT(huge_page_taken);
        clear(page);
    }
    return is_shared ? install_shared(f, page)
                     : install_private(f, index, page, 0, f->access == FAULT_WRITE);
}

/* ---- A store to a write-protected page ------------------------------------------------------- */

/*
 * => DONE: the entry is writable now. RETRY: the page has to be copied (*source, with a reference), or another entry is there now (*source NULL)
 */
static enum fault_result write_in_place(struct fault *f, pte_t pte, struct page **source)
{
    struct page *page = pte_page(pte);
    enum fault_result result = FAULT_RETRY;

    *source = NULL;
    pt_lock(&f->mm->space);
    pte_t *ptep = pt_find_huge(&f->mm->space, f->addr);
    bool is_there = ptep && is_same(*ptep, pte);
    if (is_there && ((f->vma->flags & VMA_SHARED) || atomic_load(&page->refs) == 1)) {
        atomic_or(ptep, PTE_WRITE);
        result = FAULT_DONE;
    } else if (is_there) {
        page_get(page);
        *source = page;
    }
    pt_unlock(&f->mm->space);
    if (result == FAULT_DONE)
        tlb_flush_local_page(f->addr);
    return result;
}

/* The pool has no page for a copy. The process that mapped the area has a right to this one. */
static enum fault_result claim(struct fault *f, u64 index, pte_t pte, struct page *source)
{
    huge_page_put(source); /* others have it too: it does not go */
    if (!(f->vma->flags & VMA_HUGE_OWNER))
        return FAULT_SIGBUS_ADRERR;
    huge_take_from_others(f->vma, index, source);
    if (write_in_place(f, pte, &source) == FAULT_DONE)
        return FAULT_DONE;
    if (!source)
        return FAULT_RETRY;
    huge_page_put(source);
    return FAULT_SIGBUS_ADRERR;
}

static enum fault_result write_protected(struct fault *f, u64 index, pte_t pte)
{
    struct page *source;
    int error;

    f->reason = FAULT_REASON_COW;
    enum fault_result result = write_in_place(f, pte, &source);
    if (!source)
        return result;
    struct page *page = huge_file_take(f->vma, index, &error);
    if (!page)
        return claim(f, index, pte, source);
    copy(page, source);
    result = install_private(f, index, page, pte, true);
    huge_page_put(source);
    return result;
}

/* ---- The handler ----------------------------------------------------------------------------- */

static bool entry_serves(const struct fault *f, pte_t pte)
{
    return pte_is_present(pte) && (f->access != FAULT_WRITE || (pte & PTE_WRITE));
}

static enum fault_result serve(struct fault *f, u64 index)
{
    for (;;) {
        pte_t pte = look_at_entry(f);

        if (entry_serves(f, pte)) {
            tlb_flush_local_page(f->addr);
            f->reason = FAULT_REASON_SPURIOUS;
            return FAULT_DONE;
        }
        enum fault_result result = pte ? write_protected(f, index, pte) : no_page(f, index);
        if (result != FAULT_RETRY)
            return result;
    }
}

enum fault_result fault_huge(struct fault *f)
{
    u64 index = huge_index(f->vma, f->addr);
    struct mutex *lock = huge_index_lock(huge_file_of(f->vma), index);

    mutex_lock(lock);
    enum fault_result result = serve(f, index);
    mutex_unlock(lock);
    return result;
}
