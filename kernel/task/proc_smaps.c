/*
 * /proc/PID/smaps and smaps_rollup: what of each area is in memory, and who else has it. Names and
 * columns of proc(5). A page's share (Pss) is its size divided by the number of entries that map it.
 *
 * Pages are counted with the page tables locked for one table at a time; what changes meanwhile is
 * counted before or after.
 */
#include "fs/text_out.h"
#include "kernel/task/proc_memory.h"
#include "lib/string.h"
#include "mm/huge.h"
#include "mm/soft_dirty.h"

#define MAPS_LINE_BYTES 512
#define PSS_SHIFT       12 /* fractions of a byte, so that small shares add up */
#define KIB             1024

/* Bytes. */
struct sums {
    u64 rss, referenced, anonymous, lazy_free, locked;
    u64 shared_clean, shared_dirty, private_clean, private_dirty;
    u64 shared_huge, private_huge;                     /* in no other sum */
    u64 pss, pss_dirty, pss_anon, pss_file, pss_shmem; /* << PSS_SHIFT */
};

static void add_page(struct sums *sums, pte_t pte, bool is_locked)
{
    struct page *page = pte_page(pte);
    s32 shares = MAX(atomic_load(&page->mapcount), 1);
    bool is_dirty = (pte & PTE_DIRTY) || page_has(page, PAGE_DIRTY);
    u64 share = (PAGE_SIZE << PSS_SHIFT) / (u64)shares;

    sums->rss += PAGE_SIZE;
    sums->pss += share;
    if (is_dirty)
        sums->pss_dirty += share;
    if ((pte & PTE_ACCESSED) || page_has(page, PAGE_REFERENCED))
        sums->referenced += PAGE_SIZE;
    if (page_has(page, PAGE_ANON)) {
        sums->anonymous += PAGE_SIZE;
        sums->pss_anon += share;
        if ((pte & PTE_LAZY_FREE) && !is_dirty)
            sums->lazy_free += PAGE_SIZE;
    } else {
        bool is_shmem = page->cache && page_cache_is_memory(page->cache);
        *(is_shmem ? &sums->pss_shmem : &sums->pss_file) += share;
    }
    if (is_locked)
        sums->locked += share >> PSS_SHIFT;
    *(shares > 1 ? is_dirty ? &sums->shared_dirty : &sums->shared_clean
      : is_dirty ? &sums->private_dirty
                 : &sums->private_clean) += PAGE_SIZE;
}

static bool is_counted(pte_t pte)
{
    return !(pte & PTE_ZERO_PAGE) && (pte_is_present(pte) || (pte & PTE_NONE_PROT));
}

/* One lowest-level table, or the part of it in [addr, end). pt_lock held. */
static void add_table(struct sums *sums, struct pt_space *space, u64 addr, u64 end, bool is_locked)
{
    pte_t *pte = pt_find(space, addr);

    for (; pte && addr < end; addr += PAGE_SIZE, pte++)
        if (is_counted(*pte))
            add_page(sums, *pte, is_locked);
}

static void add_huge_page(void *ctx, u64 addr, pte_t pte)
{
    struct sums *sums = ctx;
    bool is_shared = atomic_load(&pte_page(pte)->mapcount) > 1;

    (void)addr;
    *(is_shared ? &sums->shared_huge : &sums->private_huge) += HUGE_PAGE_BYTES;
}

/* mmap_lock held */
static void add_area(struct sums *sums, struct vma *vma)
{
    struct pt_space *space = &vma->mm->space;
    u64 addr = vma->start;

    if (vma_is_huge(vma)) {
        huge_for_each(vma, add_huge_page, sums);
        return;
    }
    while (addr < vma->end) {
        u64 end;

        pt_lock(space);
        addr = pt_next_table(space, addr, vma->end);
        end = MIN(ALIGN_DOWN(addr, PT_TABLE_SPAN) + PT_TABLE_SPAN, vma->end);
        if (addr < vma->end)
            add_table(sums, space, addr, end, vma->flags & VMA_LOCKED);
        pt_unlock(space);
        addr = end;
    }
}

static void put_bytes(struct text_out *out, const char *label, u64 bytes)
{
    text_out_put(out, "%s%8lu kB\n", label, bytes / KIB);
}

static void put_shares(struct text_out *out, const struct sums *sums, bool is_rollup)
{
    put_bytes(out, "Rss:            ", sums->rss);
    put_bytes(out, "Pss:            ", sums->pss >> PSS_SHIFT);
    put_bytes(out, "Pss_Dirty:      ", sums->pss_dirty >> PSS_SHIFT);
    if (is_rollup) {
        put_bytes(out, "Pss_Anon:       ", sums->pss_anon >> PSS_SHIFT);
        put_bytes(out, "Pss_File:       ", sums->pss_file >> PSS_SHIFT);
        put_bytes(out, "Pss_Shmem:      ", sums->pss_shmem >> PSS_SHIFT);
    }
    put_bytes(out, "Shared_Clean:   ", sums->shared_clean);
    put_bytes(out, "Shared_Dirty:   ", sums->shared_dirty);
    put_bytes(out, "Private_Clean:  ", sums->private_clean);
    put_bytes(out, "Private_Dirty:  ", sums->private_dirty);
    put_bytes(out, "Referenced:     ", sums->referenced);
    put_bytes(out, "Anonymous:      ", sums->anonymous);
}

/* Huge pages, freed memory in its place, and what this kernel does not have: 0. */
static void put_rest(struct text_out *out, const struct sums *sums)
{
    const struct {
        const char *label;
        u64 bytes;
    } lines[] = {
        {"KSM:            ", 0},
        {"LazyFree:       ", sums->lazy_free},
        {"AnonHugePages:  ", 0},
        {"ShmemPmdMapped: ", 0},
        {"FilePmdMapped:  ", 0},
        {"Shared_Hugetlb: ", sums->shared_huge},
        {"Private_Hugetlb:", sums->private_huge},
        {"Swap:           ", 0},
        {"SwapPss:        ", 0},
    };

    for (unsigned i = 0; i < ARRAY_SIZE(lines); i++)
        put_bytes(out, lines[i].label, lines[i].bytes);
}

static void put_flags(struct text_out *out, const struct vma *vma)
{
    const struct {
        bool is_set;
        const char *name;
    } flags[] = {
        {vma->prot & PROT_READ, "rd"},
        {vma->prot & PROT_WRITE, "wr"},
        {vma->prot & PROT_EXEC, "ex"},
        {vma->flags & VMA_SHARED && (!vma->file || vma->file->can_write), "sh"},
        {!vma->file || vma->file->can_read, "mr"},
        {!vma->file || !(vma->flags & VMA_SHARED) || vma->file->can_write, "mw"},
        {true, "me"},
        {vma->flags & VMA_SHARED, "ms"},
        {vma->flags & VMA_GROWSDOWN, "gd"},
        {vma->flags & VMA_LOCKED, "lo"},
        {vma->flags & VMA_SEQUENTIAL, "sr"},
        {vma->flags & VMA_RANDOM, "rr"},
        {vma->flags & VMA_DONTFORK, "dc"},
        {vma_is_huge(vma), "de"},
        {vma->prot & PROT_WRITE && !(vma->flags & (VMA_SHARED | VMA_NORESERVE | VMA_HUGETLB)),
         "ac"},
        {vma->flags & VMA_NORESERVE, "nr"},
        {vma_is_huge(vma), "ht"},
        {vma->flags & VMA_WIPEONFORK, "wf"},
        {vma->flags & VMA_DONTDUMP, "dd"},
        {soft_dirty_area(vma), "sd"},
        {vma->flags & VMA_HUGEPAGE, "hg"},
        {vma->flags & VMA_NOHUGEPAGE, "nh"},
    };

    text_out_put(out, "VmFlags: ");
    for (unsigned i = 0; i < ARRAY_SIZE(flags); i++)
        if (flags[i].is_set)
            text_out_put(out, "%s ", flags[i].name);
    text_out_put(out, "\n");
}

static void put_area(struct text_out *out, struct vma *vma)
{
    char line[MAPS_LINE_BYTES];
    struct sums sums = {0};

    add_area(&sums, vma);
    text_out_bytes(out, line, vma_format_maps_line(vma, line, sizeof(line)));
    put_bytes(out, "Size:           ", vma->end - vma->start);
    put_bytes(out, "KernelPageSize: ", vma_page_bytes(vma));
    put_bytes(out, "MMUPageSize:    ", vma_page_bytes(vma));
    put_shares(out, &sums, false);
    put_rest(out, &sums);
    put_bytes(out, "Locked:         ", sums.locked);
    text_out_put(out, "THPeligible:           0\n");
    put_flags(out, vma);
}

size_t proc_show_smaps(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct mm *mm = proc_mm_of((u32)(u64)arg);
    struct vma *vma;

    if (!mm)
        return 0;
    rwsem_read_lock(&mm->mmap_lock);
    for (u64 at = 0; (vma = vma_find_from(mm, at)) != NULL; at = vma->end)
        put_area(&out, vma);
    rwsem_read_unlock(&mm->mmap_lock);
    mm_put(mm);
    return out.len;
}

size_t proc_show_smaps_rollup(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct mm *mm = proc_mm_of((u32)(u64)arg);
    struct sums sums = {0};
    u64 first = 0, last = 0;
    struct vma *vma;

    if (!mm)
        return 0;
    rwsem_read_lock(&mm->mmap_lock);
    for (u64 at = 0; (vma = vma_find_from(mm, at)) != NULL; at = last = vma->end) {
        if (last == 0)
            first = vma->start;
        add_area(&sums, vma);
    }
    rwsem_read_unlock(&mm->mmap_lock);
    mm_put(mm);
    text_out_put(&out, "%08lx-%08lx ---p 00000000 00:00 0 %32s[rollup]\n", first, last, "");
    put_shares(&out, &sums, true);
    put_rest(&out, &sums);
    put_bytes(&out, "Locked:         ", sums.locked);
    return out.len;
}
