/*
 * madvise: one table of what each advice does to each area of the range. A hole does not stop it,
 * but makes the call end in ENOMEM (madvise(2)); an area that refuses the advice ends it.
 *
 * Three kinds of advice:
 *
 *   about the area    other flags, so the area is split or merged     mmap_lock exclusive
 *   about its pages   mm/madvise_pages.c                              mmap_lock exclusive
 *   that may wait     reading, populating, punching: part by part,    no lock, the file pinned
 *                     each part as it was found
 */
#include "lib/errno.h"
#include "mm/huge.h"
#include "mm/lazy_free.h"
#include "mm/madvise_pages.h"
#include "mm/mmap.h"
#include "mm/vma_internal.h"

/* What an advice that may wait knows of one area of the range: it may be another one by now. */
struct part {
    u64 start, end;
    u32 prot, flags;
    struct mapped_file *file; /* pinned, or NULL */
    pgoff_t first;            /* of the file */
};

struct advice {
    int number;
    u32 refused_flags;                 /* an area that has one of them: EINVAL */
    bool refuses_files, stops_at_hole; /* only private memory; ENOMEM at once */
    u32 set_flags, clear_flags;        /* about the area, or … */
    void (*on_pages)(struct vma *vma, u64 start, u64 end);   /* … about its pages, or … */
    int (*unlocked)(struct mm *mm, const struct part *part); /* … may wait */
};

/* ---- Advice that may wait ---- */

static int read_ahead(struct mm *mm, const struct part *part)
{
    (void)mm;
    if (part->file && !(part->flags & VMA_HUGETLB))
        readahead_advise_willneed(part->file, part->first, (part->end - part->start) >> PAGE_SHIFT);
    return 0;
}

/* The file's own pages go, for everybody who maps it. */
static int punch_hole(struct mm *mm, const struct part *part)
{
    struct mapped_file *file = part->file;
    (void)mm;
    if (!file)
        return -EINVAL;
    if (!(part->flags & VMA_SHARED) || !file->can_write)
        return -EACCES;
    if (!file->punch)
        return -EOPNOTSUPP;
    return file->punch(file, part->first << PAGE_SHIFT, part->end - part->start);
}

/* Unlike a touch, which reads whatever is mapped, this asks for the permission by its name. */
static int populate_read(struct mm *mm, const struct part *part)
{
    return part->prot & PROT_READ ? mm_populate(mm, part->start, part->end - part->start, false)
                                  : -EINVAL;
}

static int populate_write(struct mm *mm, const struct part *part)
{
    return part->prot & PROT_WRITE ? mm_populate(mm, part->start, part->end - part->start, true)
                                   : -EINVAL;
}

/* ---- The table ---- */

#define VMA_PATTERN (VMA_RANDOM | VMA_SEQUENTIAL)
#define VMA_HUGE    (VMA_HUGEPAGE | VMA_NOHUGEPAGE)

static const struct advice advices[] = {
    {.number = MADV_NORMAL, .clear_flags = VMA_PATTERN},
    {.number = MADV_RANDOM, .clear_flags = VMA_PATTERN, .set_flags = VMA_RANDOM},
    {.number = MADV_SEQUENTIAL, .clear_flags = VMA_PATTERN, .set_flags = VMA_SEQUENTIAL},
    {.number = MADV_DONTFORK, .set_flags = VMA_DONTFORK},
    {.number = MADV_DOFORK, .clear_flags = VMA_DONTFORK},
    {.number = MADV_WIPEONFORK,
     .refused_flags = VMA_SHARED,
     .refuses_files = true,
     .set_flags = VMA_WIPEONFORK},
    {.number = MADV_KEEPONFORK, .clear_flags = VMA_WIPEONFORK},
    {.number = MADV_DONTDUMP, .set_flags = VMA_DONTDUMP},
    {.number = MADV_DODUMP, .clear_flags = VMA_DONTDUMP},
    /* Remembered and shown, but there are no transparent huge pages. */
    {.number = MADV_HUGEPAGE, .clear_flags = VMA_HUGE, .set_flags = VMA_HUGEPAGE},
    {.number = MADV_NOHUGEPAGE, .clear_flags = VMA_HUGE, .set_flags = VMA_NOHUGEPAGE},

    {.number = MADV_DONTNEED, .refused_flags = VMA_LOCKED, .on_pages = madvise_zap},
    {.number = MADV_DONTNEED_LOCKED, .on_pages = madvise_zap},
    {.number = MADV_FREE,
     .refused_flags = VMA_LOCKED | VMA_SHARED,
     .refuses_files = true,
     .on_pages = lazy_free_mark},
    {.number = MADV_COLD, .refused_flags = VMA_LOCKED | VMA_HUGETLB, .on_pages = madvise_make_cold},
    {.number = MADV_PAGEOUT,
     .refused_flags = VMA_LOCKED | VMA_HUGETLB,
     .on_pages = madvise_page_out},

    {.number = MADV_WILLNEED, .unlocked = read_ahead},
    {.number = MADV_REMOVE, .refused_flags = VMA_LOCKED, .unlocked = punch_hole},
    {.number = MADV_POPULATE_READ, .stops_at_hole = true, .unlocked = populate_read},
    {.number = MADV_POPULATE_WRITE, .stops_at_hole = true, .unlocked = populate_write},
};

static const struct advice *find_advice(int number)
{
    for (unsigned i = 0; i < ARRAY_SIZE(advices); i++)
        if (advices[i].number == number)
            return &advices[i];
    return NULL;
}

static bool is_refused(const struct advice *advice, u32 flags, const struct mapped_file *file)
{
    return (flags & advice->refused_flags) || (advice->refuses_files && file);
}

/* ---- Area by area ---- */

/* => 0, -EAGAIN: no memory, or too many areas; the part is as it was */
static int change_flags(struct vma *vma, u64 start, u64 end, const struct advice *advice,
                        struct list *dead)
{
    u32 flags = (vma->flags & ~advice->clear_flags) | advice->set_flags;
    struct vma_edit edit;

    if (flags == vma->flags)
        return 0;
    vma_edit_begin(&edit, vma->mm);
    int error = vma_edit_change(&edit, vma, start, end, vma->prot, flags);
    if (!error)
        error = vma_edit_commit(&edit);
    vma_edit_close(&edit, dead);
    return error == -ENOMEM ? -EAGAIN : error;
}

static int advise_area(struct vma *vma, u64 start, u64 end, const struct advice *advice,
                       struct list *dead)
{
    if (is_refused(advice, vma->flags, vma->file))
        return -EINVAL;
    if (!advice->on_pages)
        return change_flags(vma, start, end, advice, dead);
    if (vma_is_huge(vma)) /* MADV_DONTNEED: the others are refused */
        return huge_dontneed(vma, start, end);
    advice->on_pages(vma, start, end);
    return 0;
}

static int advise_locked(struct mm *mm, u64 start, u64 end, const struct advice *advice,
                         struct list *dead)
{
    bool has_hole = false;

    while (start < end) {
        struct vma *vma = vma_find_from(mm, start);
        if (!vma || vma->start >= end)
            return -ENOMEM;
        has_hole |= vma->start > start;
        start = MAX(start, vma->start);
        u64 part_end = MIN(vma->end, end);
        int error = advise_area(vma, start, part_end, advice, dead);
        if (error)
            return error;
        start = part_end;
    }
    return has_hole ? -ENOMEM : 0;
}

/* The first area's part of [start, end). => 0 with the file pinned; -ENOMEM: nothing there; -EINTR */
static int find_part(struct mm *mm, u64 start, u64 end, struct part *part)
{
    int error = -ENOMEM;

    if (rwsem_read_lock_killable(&mm->mmap_lock))
        return -EINTR;
    const struct vma *vma = vma_find_from(mm, start);
    if (vma && vma->start < end) {
        *part = (struct part){.start = MAX(vma->start, start),
                              .end = MIN(vma->end, end),
                              .prot = vma->prot,
                              .flags = vma->flags,
                              .file = vma->file};
        part->first = vma_pgoff(vma, part->start);
        if (part->file)
            mapped_file_get(part->file);
        error = 0;
    }
    rwsem_read_unlock(&mm->mmap_lock);
    return error;
}

static int advise_unlocked(struct mm *mm, u64 start, u64 end, const struct advice *advice)
{
    bool has_hole = false;

    while (start < end) {
        struct part part;
        int error = find_part(mm, start, end, &part);
        if (error)
            return error;
        has_hole |= part.start > start;
        if (has_hole && advice->stops_at_hole)
            error = -ENOMEM;
        else if (is_refused(advice, part.flags, part.file))
            error = -EINVAL;
        else
            error = advice->unlocked(mm, &part);
        if (part.file)
            mapped_file_put(part.file);
        if (error)
            return error;
        start = part.end;
    }
    return has_hole ? -ENOMEM : 0;
}

int mm_madvise(struct mm *mm, u64 addr, u64 length, int number)
{
    const struct advice *advice = find_advice(number);
    struct list dead = LIST_INIT(dead);

    if (!advice || !IS_ALIGNED(addr, PAGE_SIZE))
        return -EINVAL;
    u64 end = addr + ALIGN_UP(length, PAGE_SIZE);
    if (end < addr || (length && end == addr))
        return -EINVAL;
    if (length == 0)
        return 0;
    if (advice->unlocked)
        return advise_unlocked(mm, addr, end, advice);
    if (rwsem_write_lock_killable(&mm->mmap_lock))
        return -EINTR;
    int error = advise_locked(mm, addr, end, advice, &dead);
    rwsem_write_unlock(&mm->mmap_lock);
    vma_bury(&dead);
    return error;
}
