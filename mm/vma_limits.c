/*
 * What an address space may have: number of areas, and pages by what they count as.
 *
 * The sums are kept, never walked for: an edit adds up what comes and what goes, and here the
 * difference is compared with the limits.
 */
#include "lib/errno.h"
#include "lib/format.h"
#include "lib/parse.h"
#include "mm/commit.h"
#include "mm/mmap.h"
#include "mm/vma_internal.h"

#define MAP_COUNT_MAX 0x7fffffffu

static u64 max_map_count = MAX_MAP_COUNT_DEFAULT; /* set by the knob at any time */

/* ---- Sums ---- */

/* Private memory that is the program's own data: writable, and not a stack. */
static bool counts_as_data(const struct vma *vma)
{
    return (vma->prot & PROT_WRITE) && !(vma->flags & (VMA_SHARED | VMA_GROWSDOWN));
}

void vma_sums_add(struct vma_sums *sums, const struct vma *vma, s64 sign)
{
    s64 pages = sign * (s64)((vma->end - vma->start) >> PAGE_SHIFT);

    sums->total += pages;
    if (counts_as_data(vma))
        sums->data += pages;
    if (vma->flags & VMA_LOCKED)
        sums->locked += pages;
    if (vma->flags & VMA_ACCOUNT)
        sums->commit += pages;
}

/* ---- Limits ---- */

static bool exceeds(u64 now, s64 change, u64 limit)
{
    return change > 0 && now + (u64)change > limit;
}

bool vma_limits_allow_locking(const struct mm *mm, u64 n_pages)
{
    u64 limit = mm->limit_locked_bytes;
    return limit == ~0ul || mm->locked_pages + n_pages <= limit >> PAGE_SHIFT;
}

int vma_limits_apply(struct mm *mm, const struct vma_sums *change, u64 n_vmas)
{
    if ((n_vmas > vma_max_map_count() && n_vmas > mm->n_vmas) ||
        exceeds(mm->total_pages, change->total, mm->limit_as_pages) ||
        exceeds(mm->data_pages, change->data, mm->limit_data_pages))
        return -ENOMEM;
    if (change->commit > 0 && commit_charge(mm, (u64)change->commit))
        return -ENOMEM;
    if (change->commit < 0)
        commit_uncharge((u64)-change->commit);
    mm->n_vmas = n_vmas;
    WRITE_ONCE(mm->total_pages, mm->total_pages + (u64)change->total);
    mm->total_pages_peak = MAX(mm->total_pages_peak, mm->total_pages);
    mm->data_pages += (u64)change->data;
    mm->locked_pages += (u64)change->locked;
    mm->commit_pages += (u64)change->commit;
    return 0;
}

/* ---- The knob ---- */

u64 vma_max_map_count(void)
{
    return READ_ONCE(max_map_count);
}

int vma_set_max_map_count(const char *value)
{
    u64 n;
    if (parse_u64(value, PARSE_WHOLE_STRING, 10, &n) || n > MAP_COUNT_MAX)
        return -EINVAL;
    WRITE_ONCE(max_map_count, n);
    return 0;
}

void vma_get_max_map_count(char *buf, size_t size)
{
    format_to(buf, size, "%lu", vma_max_map_count());
}
