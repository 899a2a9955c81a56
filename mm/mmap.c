/*
 * mmap and munmap: checks in Linux's order, a place, one edit of the tree.
 *
 * Places go top-down from mm->mmap_top, back to back; the highest hole that fits is taken. Where
 * there is none, the rest of the user half is searched. The last STACK_GUARD_PAGES below an area
 * that grows down are no place.
 */
#include "mm/mmap.h"

#include "lib/errno.h"
#include "mm/commit.h"
#include "mm/huge.h"
#include "mm/vma_internal.h"

/* An mmap call on its way: what was asked, then what it comes to. */
struct map_request {
    u64 addr, length; /* page-aligned by check_request; then the place */
    u32 prot, map_flags;
    u32 vma_flags;
    u64 page_bytes; /* to which the address is aligned */
    struct mapped_file *file;
    pgoff_t pgoff;
};

/* ---- munmap ---- */

int mm_unmap_locked(struct mm *mm, u64 start, u64 end, struct list *dead)
{
    struct vma_edit edit;

    vma_edit_begin(&edit, mm);
    int error = vma_edit_cut(&edit, start, end);
    bool hits_something = !list_is_empty(&edit.removed);
    if (!error && hits_something)
        error = vma_edit_commit(&edit);
    if (!error && hits_something) {
        mm_zap_range(mm, start, end);
        mm_free_tables(mm, start, end);
    }
    vma_edit_close(&edit, dead);
    return error;
}

int mm_munmap(struct mm *mm, u64 addr, u64 length)
{
    struct list dead = LIST_INIT(dead);

    if (!IS_ALIGNED(addr, PAGE_SIZE) || addr > USER_ADDRESS_END || length > USER_ADDRESS_END - addr)
        return -EINVAL;
    length = ALIGN_UP(length, PAGE_SIZE);
    if (length == 0)
        return -EINVAL;
    if (rwsem_write_lock_killable(&mm->mmap_lock))
        return -EINTR;
    int error = mm_unmap_locked(mm, addr, addr + length, &dead);
    rwsem_write_unlock(&mm->mmap_lock);
    vma_bury(&dead);
    return error;
}

/* ---- A place ---- */

bool mm_range_is_free(struct mm *mm, u64 start, u64 end)
{
    const struct vma *vma = vma_find_from(mm, start);
    return !vma || (start < vma->start && end <= vma_guarded_start(vma));
}

/* The highest free place in [low, high), with room to align it. => address, or -ENOMEM */
static s64 find_place(struct mm *mm, u64 low, u64 high, const struct map_request *request)
{
    u64 length = request->length + request->page_bytes - PAGE_SIZE, start;
    while (low < high && range_tree_gap_down(&mm->vmas, low, high, length, &start) == 0) {
        if (mm_range_is_free(mm, start, start + length))
            return (s64)ALIGN_DOWN(start + length - request->length, request->page_bytes);
        /* The gap ends in the guard of an area that grows down. */
        high = vma_guarded_start(vma_find_from(mm, start));
    }
    return -ENOMEM;
}

/* The lowest; looks at area after area, of which there are few down there. */
static s64 find_place_up(struct mm *mm, u64 low, u64 high, const struct map_request *request)
{
    while (low < high && request->length <= high - low) {
        if (mm_range_is_free(mm, low, low + request->length))
            return (s64)low;
        low = ALIGN_UP(vma_find_from(mm, low)->end, request->page_bytes);
    }
    return -ENOMEM;
}

static bool hint_is_usable(struct mm *mm, u64 addr, u64 length, u64 high)
{
    return addr && addr <= high && length <= high - addr &&
           mm_range_is_free(mm, addr, addr + length);
}

/* Anywhere: at the hint if that is free. */
static s64 choose_place(struct mm *mm, const struct map_request *request)
{
    u64 hint = ALIGN_DOWN(request->addr, PAGE_SIZE);
    if (hint && hint < USER_ADDRESS_MIN)
        hint = USER_ADDRESS_MIN;
    hint = ALIGN_DOWN(hint, request->page_bytes);
    if (request->map_flags & MAP_32BIT) {
        if (hint_is_usable(mm, hint, request->length, MMAP_32BIT_HIGH))
            return (s64)hint;
        return find_place_up(mm, MMAP_32BIT_LOW, MMAP_32BIT_HIGH, request);
    }
    if (hint_is_usable(mm, hint, request->length, USER_ADDRESS_END))
        return (s64)hint;
    s64 place = find_place(mm, USER_ADDRESS_MIN, mm->mmap_top, request);
    return place >= 0 ? place : find_place(mm, USER_ADDRESS_MIN, USER_ADDRESS_END, request);
}

s64 mm_find_place(struct mm *mm, u64 hint, u64 length)
{
    struct map_request request = {.addr = hint, .length = length, .page_bytes = PAGE_SIZE};
    return length > USER_ADDRESS_END ? -ENOMEM : choose_place(mm, &request);
}

/* Exactly there. */
static s64 check_fixed_place(const struct map_request *request)
{
    if (request->addr > USER_ADDRESS_END - request->length)
        return -ENOMEM;
    if (!IS_ALIGNED(request->addr, request->page_bytes))
        return -EINVAL;
    return request->addr < USER_ADDRESS_MIN ? -EPERM : (s64)request->addr;
}

static bool is_fixed(const struct map_request *request)
{
    return request->map_flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
}

/* => the address, or a negative errno. mmap_lock held */
static s64 place_request(struct mm *mm, const struct map_request *request)
{
    if (request->length > USER_ADDRESS_END)
        return -ENOMEM;
    s64 place = is_fixed(request) ? check_fixed_place(request) : choose_place(mm, request);
    if (place < 0 || !(request->map_flags & MAP_FIXED_NOREPLACE))
        return place;
    const struct vma *vma = vma_find_from(mm, (u64)place);
    return vma && vma->start < (u64)place + request->length ? -EEXIST : place;
}

/* ---- Checks ---- */

#define FILE_BYTES_MAX ((u64)INT64_MAX) /* file positions are signed */

/*
 * Flags that MAP_SHARED_VALIDATE knows for a file; with plain MAP_SHARED the others are ignored.
 * MAP_FIXED_NOREPLACE is not among them.
 */
#define MAP_KNOWN                                                                                 \
    (MAP_SHARED | MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_32BIT | MAP_ABOVE4G |             \
     MAP_GROWSDOWN | MAP_DENYWRITE | MAP_EXECUTABLE | MAP_LOCKED | MAP_NORESERVE | MAP_POPULATE | \
     MAP_NONBLOCK | MAP_STACK | MAP_HUGETLB | MAP_UNINITIALIZED | MAP_HUGE_2MB | MAP_HUGE_1GB)

/* Before the place is chosen; rounds the length. */
static int check_request(struct map_request *request, u64 offset)
{
    if (!IS_ALIGNED(offset, PAGE_SIZE))
        return -EINVAL;
    if ((request->map_flags & MAP_HUGETLB) && !huge_file_is(request->file))
        return -EINVAL;
    if (request->length == 0)
        return -EINVAL;
    request->length = ALIGN_UP(request->length, PAGE_SIZE);
    if (request->length == 0)
        return -ENOMEM;
    request->pgoff = offset >> PAGE_SHIFT;
    return 0;
}

/* RLIMIT_MEMLOCK. */
static int check_locking(const struct mm *mm, const struct map_request *request)
{
    if ((request->map_flags & MAP_LOCKED) && mm->limit_locked_bytes == 0)
        return -EPERM;
    bool is_locked = (request->map_flags & MAP_LOCKED) || mm->future_lock;
    return is_locked && !vma_limits_allow_locking(mm, request->length >> PAGE_SHIFT) ? -EAGAIN : 0;
}

static int check_file(const struct map_request *request)
{
    const struct mapped_file *file = request->file;
    u32 type = request->map_flags & MAP_TYPE;
    bool is_shared = type == MAP_SHARED || type == MAP_SHARED_VALIDATE;

    if (file->can_map && request->pgoff > (FILE_BYTES_MAX - request->length) >> PAGE_SHIFT)
        return -EOVERFLOW;
    if (!is_shared && type != MAP_PRIVATE)
        return -EINVAL;
    if (type == MAP_SHARED_VALIDATE && (request->map_flags & ~MAP_KNOWN))
        return -EOPNOTSUPP;
    if (is_shared && (request->prot & PROT_WRITE) && !file->can_write)
        return -EACCES;
    if (!file->can_read)
        return -EACCES;
    if ((request->prot & PROT_EXEC) && file->no_exec)
        return -EPERM;
    if (!file->can_map)
        return -ENODEV;
    return request->map_flags & MAP_GROWSDOWN ? -EINVAL : 0;
}

static int check_anonymous(const struct map_request *request)
{
    u32 type = request->map_flags & MAP_TYPE;
    if (type == MAP_PRIVATE)
        return 0;
    return type != MAP_SHARED || (request->map_flags & MAP_GROWSDOWN) ? -EINVAL : 0;
}

static u32 vma_flags_for(u32 map_flags)
{
    static const struct {
        u32 map_flag, vma_flag;
    } table[] = {
        {MAP_SHARED, VMA_SHARED}, /* the lowest bit, also of MAP_SHARED_VALIDATE */
        {MAP_GROWSDOWN, VMA_GROWSDOWN}, {MAP_LOCKED, VMA_LOCKED}, {MAP_NORESERVE, VMA_NORESERVE},
        {MAP_STACK, VMA_NOHUGEPAGE}, /* all that a stack has of its own */
    };
    u32 flags = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(table); i++)
        if (map_flags & table[i].map_flag)
            flags |= table[i].vma_flag;
    return commit_honours_noreserve() ? flags : flags & ~VMA_NORESERVE;
}

/* ---- mmap ---- */

static int map_at(struct mm *mm, const struct map_request *request, struct list *dead)
{
    u64 start = request->addr, end = start + request->length;
    struct vma_edit edit;

    vma_edit_begin(&edit, mm);
    int error = vma_edit_cut(&edit, start, end);
    bool replaces = !list_is_empty(&edit.removed);
    if (!error) {
        struct vma *vma = vma_edit_new(&edit, start, end, request->prot, request->vma_flags,
                                       request->file, request->pgoff);
        error = vma ? vma_edit_place(&edit, vma) : -ENOMEM;
    }
    if (!error)
        error = vma_edit_commit(&edit);
    if (!error && replaces)
        mm_zap_range(mm, start, end);
    vma_edit_close(&edit, dead);
    return error;
}

/* The huge page pool promises the pages. What the new area replaces may hold the promises it needs: then that goes first, and stays gone if they are not enough. */
static int promise_huge_pages(struct mm *mm, const struct map_request *request, struct list *dead)
{
    struct huge_file *file = container_of(request->file, struct huge_file, mapped);
    u64 start = request->addr, end = start + request->length;

    if (!IS_ALIGNED(request->pgoff, HUGE_PAGE_FRAMES))
        return -EINVAL;
    int error = huge_file_promise(file, request->pgoff, request->length, request->vma_flags);
    if (error && is_fixed(request)) {
        error = mm_unmap_locked(mm, start, end, dead);
        if (!error)
            error = huge_file_promise(file, request->pgoff, request->length, request->vma_flags);
    }
    if (!error && (request->prot & PROT_WRITE)) /* a reader's touch there is SIGBUS, as on Linux */
        file->size_pages = MAX(file->size_pages, request->pgoff / HUGE_PAGE_FRAMES +
                                                     request->length / HUGE_PAGE_BYTES);
    return error;
}

static u32 vma_flags_of(const struct mm *mm, const struct map_request *request)
{
    u32 flags = vma_flags_for(request->map_flags) | mm_future_lock_flags(mm);

    if (!(request->map_flags & MAP_HUGETLB))
        return commit_is_due(request->prot, flags) ? flags | VMA_ACCOUNT : flags;
    if (request->map_flags & MAP_NORESERVE) /* heard in every mode */
        flags |= VMA_NORESERVE;
    if (!(flags & (VMA_SHARED | VMA_NORESERVE)))
        flags |= VMA_HUGE_OWNER;
    return (flags & ~(VMA_LOCKED | VMA_LOCKONFAULT)) | VMA_HUGETLB; /* never leaves memory anyway */
}

/* With the lock: place, then the checks that Linux makes after it, then the edit. */
static int map_locked(struct mm *mm, struct map_request *request, struct list *dead)
{
    if (mm->n_vmas > vma_max_map_count())
        return -ENOMEM;
    s64 place = place_request(mm, request);
    if (place < 0)
        return (int)place;
    request->addr = (u64)place;
    int error = check_locking(mm, request);
    if (error)
        return error;
    error = request->file ? check_file(request) : check_anonymous(request);
    if (error)
        return error;
    request->vma_flags = vma_flags_of(mm, request);
    if (request->vma_flags & VMA_HUGETLB)
        error = promise_huge_pages(mm, request, dead);
    return error ? error : map_at(mm, request, dead);
}

s64 mm_mmap(struct mm *mm, u64 addr, u64 length, u32 prot, u32 flags, struct mapped_file *file,
            u64 offset)
{
    struct map_request request = {.addr = addr,
                                  .length = length,
                                  .map_flags = flags,
                                  .page_bytes = flags & MAP_HUGETLB ? HUGE_PAGE_BYTES : PAGE_SIZE,
                                  .file = file,
                                  .prot = prot & (PROT_READ | PROT_WRITE | PROT_EXEC)};
    struct list dead = LIST_INIT(dead);

    if ((flags & MAP_HUGETLB) && !file)
        return mm_mmap_huge(mm, addr, length, prot, flags, offset);
    int error = check_request(&request, offset);
    if (error)
        return error;
    if (rwsem_write_lock_killable(&mm->mmap_lock))
        return -EINTR;
    error = map_locked(mm, &request, &dead);
    rwsem_write_unlock(&mm->mmap_lock);
    vma_bury(&dead);
    if (error)
        return error;

    bool populates = (flags & MAP_LOCKED) || READ_ONCE(mm->future_lock) ||
                     (flags & (MAP_POPULATE | MAP_NONBLOCK)) == MAP_POPULATE;
    if (populates && !(request.vma_flags & VMA_LOCKONFAULT)) {
        /* What cannot be read in now is no error of mmap: the touch will tell. */
        bool write = (request.prot & PROT_WRITE) && !(request.vma_flags & VMA_SHARED);
        (void)mm_populate(mm, request.addr, request.length, write);
    }
    return (s64)request.addr;
}
