/*
 * How large a process is: the lines Vm and Rss of /proc/PID/status, and /proc/PID/statm, as proc(5)
 * has them; and /proc/PID/clear_refs.
 *
 *     VmData   private, writable, no stack       VmExe   executable areas of the program's own file
 *     VmStk    areas that grow down              VmLib   all other executable areas
 *     VmLck    mlocked                           RssShmem   of RssFile, what has no disk behind it
 *
 * VmPeak and VmHWM are the most there ever was of VmSize and VmRSS.
 */
#include "fs/text_out.h"
#include "kernel/task/proc_memory.h"
#include "lib/errno.h"
#include "lib/parse.h"
#include "mm/huge_pool.h"
#include "mm/page_cache.h"
#include "mm/soft_dirty.h"
#include "mm/vma.h"

#define KIB_PER_PAGE (PAGE_SIZE / 1024)

/* Pages. */
struct sizes {
    u64 total, peak, locked, data, stack, text, library, tables;
    u64 rss_peak, rss_anon, rss_file, rss_shmem;
    const struct mapped_file *program; /* whose code lies lowest */
};

/* A file without a disk: of a tmpfs, or shared anonymous memory. */
static bool shows_shmem(const struct vma *vma)
{
    return vma->file && !(vma->flags & VMA_HUGETLB) && page_cache_is_memory(vma->file->cache);
}

/* Pages of the area's file that are mapped in it: not its private copies. */
static u64 count_mapped(struct vma *vma)
{
    struct pt_space *space = &vma->mm->space;
    u64 addr = vma->start, pages = 0;

    while (addr < vma->end) {
        pt_lock(space);
        addr = pt_next_table(space, addr, vma->end);
        u64 end = MIN(ALIGN_DOWN(addr, PT_TABLE_SPAN) + PT_TABLE_SPAN, vma->end);
        for (; addr < end; addr += PAGE_SIZE) {
            pte_t pte = pt_look_up(space, addr);
            pages += pte_is_present(pte) && !page_has(pte_page(pte), PAGE_ANON);
        }
        pt_unlock(space);
    }
    return pages;
}

static void add_area(struct sizes *sizes, struct vma *vma)
{
    u64 pages = (vma->end - vma->start) / PAGE_SIZE;
    bool is_stack = vma->flags & VMA_GROWSDOWN, is_writable = vma->prot & PROT_WRITE;

    if (vma->flags & VMA_LOCKED)
        sizes->locked += pages;
    if (is_stack)
        sizes->stack += pages;
    else if (is_writable && !(vma->flags & VMA_SHARED))
        sizes->data += pages;
    else if ((vma->prot & PROT_EXEC) && !is_writable) {
        if (!sizes->program && vma->file)
            sizes->program = vma->file;
        *(vma->file && vma->file == sizes->program ? &sizes->text : &sizes->library) += pages;
    }
    if (shows_shmem(vma))
        sizes->rss_shmem += count_mapped(vma);
}

static void measure(struct mm *mm, struct sizes *sizes)
{
    struct vma *vma;

    *sizes = (struct sizes){0};
    rwsem_read_lock(&mm->mmap_lock);
    for (u64 at = 0; (vma = vma_find_from(mm, at)) != NULL; at = vma->end)
        add_area(sizes, vma);
    sizes->total = mm->total_pages;
    sizes->peak = mm->total_pages_peak;
    rwsem_read_unlock(&mm->mmap_lock);
    sizes->tables = READ_ONCE(mm->space.table_pages);
    sizes->rss_anon = atomic_load(&mm->rss_anon);
    sizes->rss_peak = mm_rss_peak(mm);
    u64 file = atomic_load(&mm->rss_file);
    sizes->rss_shmem = MIN(sizes->rss_shmem, file); /* a page may have gone in between */
    sizes->rss_file = file - sizes->rss_shmem;
}

static void put_kib(struct text_out *out, const char *label, u64 pages)
{
    text_out_put(out, "%s\t%8lu kB\n", label, pages * KIB_PER_PAGE);
}

void proc_put_status_sizes(struct text_out *out, struct mm *mm)
{
    struct sizes sizes;

    measure(mm, &sizes);
    put_kib(out, "VmPeak:", sizes.peak);
    put_kib(out, "VmSize:", sizes.total);
    put_kib(out, "VmLck:", sizes.locked);
    put_kib(out, "VmPin:", 0);
    put_kib(out, "VmHWM:", sizes.rss_peak);
    put_kib(out, "VmRSS:", sizes.rss_anon + sizes.rss_file + sizes.rss_shmem);
    put_kib(out, "RssAnon:", sizes.rss_anon);
    put_kib(out, "RssFile:", sizes.rss_file);
    put_kib(out, "RssShmem:", sizes.rss_shmem);
    put_kib(out, "VmData:", sizes.data);
    put_kib(out, "VmStk:", sizes.stack);
    put_kib(out, "VmExe:", sizes.text);
    put_kib(out, "VmLib:", sizes.library);
    put_kib(out, "VmPTE:", sizes.tables);
    put_kib(out, "VmSwap:", 0);
    put_kib(out, "HugetlbPages:", atomic_load(&mm->huge_pages) * HUGE_PAGE_FRAMES);
}

/* size resident shared text lib data dt, in pages; shared is what has a file or is shared memory,
 * data includes the stack, lib and dt are always 0. */
size_t proc_show_statm(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct mm *mm = proc_mm_of((u32)(u64)arg);
    struct sizes sizes;

    if (!mm)
        return 0;
    measure(mm, &sizes);
    mm_put(mm);
    u64 shared = sizes.rss_file + sizes.rss_shmem;
    text_out_put(&out, "%lu %lu %lu %lu 0 %lu 0\n", sizes.total, sizes.rss_anon + shared, shared,
                 sizes.text, sizes.data + sizes.stack);
    return out.len;
}

/* ---- clear_refs ---- */

enum { CLEAR_ALL = 1, CLEAR_ANON = 2, CLEAR_FILE = 3, CLEAR_SOFT_DIRTY = 4, RESET_PEAK = 5 };

int proc_store_clear_refs(void *arg, const char *text, size_t len)
{
    struct mm *mm;
    u64 what;
    int error = 0;

    if (parse_u64(text, len, 10, &what) || what < CLEAR_ALL || what > RESET_PEAK)
        return -EINVAL;
    mm = proc_mm_of((u32)(u64)arg);
    if (!mm)
        return -ESRCH;
    if (what == RESET_PEAK)
        atomic_store(&mm->rss_peak, 0ul);
    else if (what == CLEAR_SOFT_DIRTY)
        error = soft_dirty_clear(mm);
    else
        mm_clear_referenced(mm, what != CLEAR_FILE, what != CLEAR_ANON);
    mm_put(mm);
    return error;
}
