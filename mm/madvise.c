/*
 * madvise: one table of what each advice does to each area of the range. A hole does not stop it,
 * but makes the call end in ENOMEM (madvise(2)).
 */
#include "lib/errno.h"
#include "mm/mmap.h"
#include "mm/vma_internal.h"

struct advice {
    int number;
    /* The part [start, end) of vma; mmap_lock exclusive. NULL: nothing to do, and no harm in it. */
    int (*apply)(struct vma *vma, u64 start, u64 end, const struct advice *advice,
                 struct list *dead);
    u32 flags; /* apply_flags: of VMA_RANDOM | VMA_SEQUENTIAL */
    /* Instead of apply: the whole range, no lock held. */
    int (*whole_range)(struct mm *mm, u64 start, u64 end);
};

static int apply_flags(struct vma *vma, u64 start, u64 end, const struct advice *advice,
                       struct list *dead)
{
    u32 flags = (vma->flags & ~(VMA_RANDOM | VMA_SEQUENTIAL)) | advice->flags;
    struct vma_edit edit;

    if (flags == vma->flags)
        return 0;
    vma_edit_begin(&edit, vma->mm);
    int error = vma_edit_change(&edit, vma, start, end, vma->prot, flags);
    if (!error)
        error = vma_edit_commit(&edit);
    vma_edit_close(&edit, dead);
    return error;
}

static int apply_dontneed(struct vma *vma, u64 start, u64 end, const struct advice *advice,
                          struct list *dead)
{
    (void)advice, (void)dead;
    if (vma->flags & VMA_LOCKED)
        return -EINVAL;
    mm_zap_range(vma->mm, start, end);
    return 0;
}

/* The pages may be taken at any time from now on: now is such a time. */
static int apply_free(struct vma *vma, u64 start, u64 end, const struct advice *advice,
                      struct list *dead)
{
    if (vma->file || (vma->flags & VMA_SHARED))
        return -EINVAL;
    return apply_dontneed(vma, start, end, advice, dead);
}

/* Reads ahead for one area after the other, each without the lock, its file pinned. */
static int read_ahead(struct mm *mm, u64 start, u64 end)
{
    bool has_hole = false;

    while (start < end) {
        if (rwsem_read_lock_killable(&mm->mmap_lock))
            return -EINTR;
        const struct vma *vma = vma_find_from(mm, start);
        struct mapped_file *file = NULL;
        pgoff_t first = 0;
        u64 part_start = vma ? MIN(MAX(vma->start, start), end) : end;
        u64 part_end = vma ? MIN(vma->end, end) : end;
        has_hole |= part_start > start;
        if (vma && vma->file && part_start < part_end) {
            file = vma->file;
            first = vma_pgoff(vma, part_start);
            mapped_file_get(file);
        }
        rwsem_read_unlock(&mm->mmap_lock);
        if (file) {
            readahead_advise_willneed(file, first, (part_end - part_start) >> PAGE_SHIFT);
            mapped_file_put(file);
        }
        start = MAX(part_start, part_end);
    }
    return has_hole ? -ENOMEM : 0;
}

static int populate_read(struct mm *mm, u64 start, u64 end)
{
    return mm_populate(mm, start, end - start, false);
}

static int populate_write(struct mm *mm, u64 start, u64 end)
{
    return mm_populate(mm, start, end - start, true);
}

static const struct advice advices[] = {
    {.number = MADV_NORMAL, .apply = apply_flags},
    {.number = MADV_RANDOM, .apply = apply_flags, .flags = VMA_RANDOM},
    {.number = MADV_SEQUENTIAL, .apply = apply_flags, .flags = VMA_SEQUENTIAL},
    {.number = MADV_DONTNEED, .apply = apply_dontneed},
    {.number = MADV_FREE, .apply = apply_free},
    {.number = MADV_WILLNEED, .whole_range = read_ahead},
    {.number = MADV_POPULATE_READ, .whole_range = populate_read},
    {.number = MADV_POPULATE_WRITE, .whole_range = populate_write},
    /* Hints about what this kernel does not do: taking them is doing nothing. */
    {.number = MADV_MERGEABLE},
    {.number = MADV_UNMERGEABLE},
    {.number = MADV_HUGEPAGE},
    {.number = MADV_NOHUGEPAGE},
    {.number = MADV_DONTDUMP},
    {.number = MADV_DODUMP},
    {.number = MADV_COLD},
    {.number = MADV_PAGEOUT},
};

static const struct advice *find_advice(int number)
{
    for (unsigned i = 0; i < ARRAY_SIZE(advices); i++)
        if (advices[i].number == number)
            return &advices[i];
    return NULL;
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
        int error = advice->apply ? advice->apply(vma, start, part_end, advice, dead) : 0;
        if (error)
            return error;
        start = part_end;
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
    if (advice->whole_range)
        return advice->whole_range(mm, addr, end);
    if (rwsem_write_lock_killable(&mm->mmap_lock))
        return -EINTR;
    int error = advise_locked(mm, addr, end, advice, &dead);
    rwsem_write_unlock(&mm->mmap_lock);
    vma_bury(&dead);
    return error;
}
