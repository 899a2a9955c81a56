/*
 * /proc/PID/mem: a process's memory as a file, its addresses the positions; and /proc/PID/pagemap:
 * eight bytes for each page. Formats of proc(5).
 *
 * A page that is not there is faulted in as by the process itself, but for one thing: the lock of
 * its address space is kept while the disk is waited for, so that what is read is what was asked
 * for, however the process changes its map meanwhile. Protection does not count, as for a debugger:
 * mm/remote_memory.c has the rules.
 */
#include "kernel/task/proc_memory.h"
#include "kernel/task/process.h"
#include "lib/errno.h"
#include "mm/huge_pool.h"
#include "mm/remote_memory.h"
#include "mm/soft_dirty.h"
#include "mm/user_memory.h"

struct mm *proc_mm_of(u32 pid)
{
    struct process *process;
    struct mm *mm = NULL;

    spin_lock(&process_tree_lock);
    process = process_find_locked(pid);
    if (process && process->mm) {
        mm = process->mm;
        mm_get(mm);
    }
    spin_unlock(&process_tree_lock);
    return mm;
}

static struct mm *mm_of_file(const struct file *file)
{
    return proc_mm_of((u32)(u64)text_file_of(file->inode)->arg);
}

/* ---- mem ---- */

static ssize_t transfer(struct file *file, u64 user_buf, size_t len, u64 *pos, u32 flags)
{
    struct mm *mm = mm_of_file(file);
    ssize_t done = 0;

    if (mm) {
        done = remote_memory_transfer(mm, *pos, user_buf, len,
                                      flags | REMOTE_FORCE | REMOTE_KEEP_LOCK);
        mm_put(mm);
    }
    *pos += (u64)MAX(done, 0);
    return done;
}

static ssize_t mem_read(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    return transfer(file, user_buf, len, pos, 0);
}

static ssize_t mem_write(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    return transfer(file, user_buf, len, pos, REMOTE_WRITE);
}

const struct file_ops proc_mem_ops = {.read = mem_read, .write = mem_write, .is_seekable = true};

/* ---- pagemap ---- */

#define PAGEMAP_SOFT_DIRTY (1ul << 55)
#define PAGEMAP_EXCLUSIVE  (1ul << 56)
#define PAGEMAP_OF_FILE    (1ul << 61) /* or shared anonymous */
#define PAGEMAP_PRESENT    (1ul << 63)
#define ENTRY_BYTES        sizeof(u64)
#define ENTRIES_AT_ONCE    64

static u64 page_entry(pte_t pte)
{
    const struct page *page;
    u64 entry;

    if (!pte_is_present(pte) && !(pte & PTE_NONE_PROT))
        return 0;
    page = pte_page(pte);
    entry = PAGEMAP_PRESENT | page_pfn(page);
    if (pte & PTE_ZERO_PAGE)
        return entry;
    if (pte & PTE_LARGE)
        page = huge_page_head(pte_page(pte));
    if (!page_has(page, PAGE_ANON))
        entry |= PAGEMAP_OF_FILE;
    if (atomic_load(&page->mapcount) == 1)
        entry |= PAGEMAP_EXCLUSIVE;
    return entry;
}

/* vma: the area of the entry; NULL: none. */
static u64 pagemap_entry(const struct vma *vma, pte_t pte)
{
    bool is_written = (pte & PTE_SOFT_DIRTY) || (vma && soft_dirty_area(vma));

    return page_entry(pte) | (is_written ? PAGEMAP_SOFT_DIRTY : 0);
}

static void fill_entries(struct mm *mm, u64 addr, u64 *entries, size_t n)
{
    const struct vma *vma = NULL;

    rwsem_read_lock(&mm->mmap_lock);
    pt_lock(&mm->space);
    for (size_t i = 0; i < n; i++) {
        u64 at = addr + i * PAGE_SIZE;

        if (!vma || vma->end <= at)
            vma = vma_find_from(mm, at);
        entries[i] =
            pagemap_entry(vma && vma->start <= at ? vma : NULL, pt_look_up(&mm->space, at));
    }
    pt_unlock(&mm->space);
    rwsem_read_unlock(&mm->mmap_lock);
}

static ssize_t pagemap_read(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    const u64 behind = USER_ADDRESS_END / PAGE_SIZE;
    u64 entries[ENTRIES_AT_ONCE], index = *pos / ENTRY_BYTES;
    size_t left = len / ENTRY_BYTES, done = 0;
    struct mm *mm;
    int error = 0;

    if (*pos % ENTRY_BYTES || len % ENTRY_BYTES)
        return -EINVAL;
    mm = index < behind ? mm_of_file(file) : NULL;
    if (!mm)
        return 0;
    left = MIN(left, behind - index);
    while (left > 0 && !error && !task_kill_is_pending(task_current())) {
        size_t n = MIN(left, (size_t)ENTRIES_AT_ONCE);

        fill_entries(mm, (index + done) * PAGE_SIZE, entries, n);
        error = copy_to_user(user_buf + done * ENTRY_BYTES, entries, n * ENTRY_BYTES);
        if (!error) {
            done += n;
            left -= n;
        }
    }
    mm_put(mm);
    *pos += done * ENTRY_BYTES;
    return done ? (ssize_t)(done * ENTRY_BYTES) : error;
}

const struct file_ops proc_pagemap_ops = {.read = pagemap_read, .is_seekable = true};
