/*
 * Spaces and files in memory for tests; see test_mm.h.
 */
#include "tests/kernel/test_mm.h"

#include "kernel/sched/grace.h"
#include "kernel/sched/task.h"
#include "lib/format.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/slab.h"
#include "mm/core/tlb.h"
#include "mm/user_memory.h"
#include "tests/kernel/ktest.h"

void test_mm_attach(struct mm *mm)
{
    struct task *task = task_current();
    bool irqs = irq_save_disable();

    task->mm = mm;
    task->space = mm ? &mm->space : NULL;
    tlb_switch_space(task->space);
    irq_restore(irqs);
}

struct mm *test_mm_enter(void)
{
    struct mm *mm = mm_create();

    if (KEXPECT(mm != NULL))
        test_mm_attach(mm);
    return mm;
}

void test_mm_leave(void)
{
    struct mm *mm = task_current()->mm;
    const char *wrong = mm_check(mm);

    if (wrong)
        ktest_fail(__FILE__, __LINE__, "address space at the end of the test: %s", wrong);
    test_mm_attach(NULL);
    mm_put(mm);
}

/* ---- Files ---- */

static void read_pages(struct page_cache *cache, struct page **pages, unsigned n, bool readahead)
{
    struct memory_file *f = cache->owner;

    (void)readahead;
    for (unsigned i = 0; i < n; i++) {
        bool is_bad = pages[i]->index == f->bad_index;

        if (!is_bad)
            memset(page_virt(pages[i]), memory_file_byte(pages[i]->index), PAGE_SIZE);
        f->pages_read++;
        page_read_done(pages[i], is_bad ? -EIO : 0);
    }
}

static const struct page_cache_ops memory_file_ops = {.read_pages = read_pages};

static void note_release(struct mapped_file *file)
{
    container_of(file, struct memory_file, file)->releases++;
}

static void show_path(struct mapped_file *file, char *buf, size_t size)
{
    (void)file;
    format_to(buf, size, "/data/numbers");
}

void memory_file_init(struct memory_file *f, u64 pages, bool can_read, bool can_write)
{
    *f = (struct memory_file){.bad_index = ~0ul};
    page_cache_init(&f->cache, &memory_file_ops, f, false);
    f->cache.size_bytes = pages * PAGE_SIZE;
    f->cache.dev = 0xfe01;
    f->cache.ino = 12;
    f->file.refs = 1;
    f->file.cache = &f->cache;
    f->file.can_read = can_read;
    f->file.can_map = true;
    f->file.can_write = can_write;
    f->file.release = note_release;
    f->file.path = show_path;
    readahead_init(&f->file.readahead, &f->cache);
}

void memory_file_destroy(struct memory_file *f)
{
    mapped_file_put(&f->file);
    KEXPECT_EQ(f->releases, 1);
    page_cache_destroy(&f->cache);
}

/* ---- Looking ---- */

int user_peek(u64 addr)
{
    u8 byte;

    return copy_from_user(&byte, addr, 1) ? -EFAULT : byte;
}

int user_poke(u64 addr, u8 byte)
{
    return copy_to_user(addr, &byte, 1);
}

static void render_vma(const struct vma *vma, u64 base, char *buf, size_t size, size_t *used)
{
    format_append(buf, size, used, "%s[%lu,%lu)%c%c%c%c", *used ? " " : "",
                  (vma->start - base) / PAGE_SIZE, (vma->end - base) / PAGE_SIZE,
                  vma->prot & PROT_READ ? 'r' : '-', vma->prot & PROT_WRITE ? 'w' : '-',
                  vma->prot & PROT_EXEC ? 'x' : '-', vma->flags & VMA_SHARED ? 's' : 'p');
    if (vma->file)
        format_append(buf, size, used, "+f%lu", vma->pgoff);
    else
        format_append(buf, size, used, "0");
}

void test_mm_render(struct mm *mm, u64 base, u64 pages, char *buf, size_t size)
{
    u64 end = base + pages * PAGE_SIZE;
    size_t used = 0;

    buf[0] = '\0';
    rwsem_read_lock(&mm->mmap_lock);
    for (u64 at = base; at < end;) {
        const struct vma *vma = vma_find_from(mm, at);

        if (!vma || vma->start >= end)
            break;
        render_vma(vma, base, buf, size, &used);
        at = vma->end;
    }
    rwsem_read_unlock(&mm->mmap_lock);
}

u64 test_frames_settled(void)
{
    grace_barrier();
    slab_release_empty();
    frames_drain_cpu_lists();
    return frames_free_count();
}
