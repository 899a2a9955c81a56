/*
 * /proc/PID/mem: a process's memory as a file, its addresses the positions; and /proc/PID/pagemap:
 * eight bytes for each page. Formats of proc(5).
 *
 * A page that is not there is faulted in as by the process itself, but for one thing: the lock of
 * its address space is kept while the disk is waited for, so that what is read is what was asked
 * for, however the process changes its map meanwhile. Private memory that the process may only read
 * can be written here, as a debugger does for its breakpoints: it gets a page of its own then. What
 * the process may not access otherwise cannot be accessed here either.
 */
#include "kernel/task/proc_memory.h"
#include "kernel/task/process.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "mm/huge_pool.h"
#include "mm/user_memory.h"

#define FAULTS_MAX \
    8 /* for one page, before it counts as not there: somebody takes it away each time */

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

static void copy(char *page, char *buf, size_t n, bool is_write)
{
    if (is_write)
        memcpy(page, buf, n);
    else
        memcpy(buf, page, n);
}

/* By the entry; or a page of the process's own, which nobody else can see. pt_lock held. */
static bool may_write(pte_t pte)
{
    const struct page *page = pte_page(pte);

    return (pte & PTE_WRITE) ||
           (!(pte & PTE_ZERO_PAGE) && page_has(page, PAGE_ANON) && atomic_load(&page->refs) == 1);
}

/* Copies within one page, if its entry allows it now. => whether it did */
static bool copy_if_present(struct mm *mm, u64 addr, char *buf, size_t n, bool is_write)
{
    bool done = false;
    pte_t pte, *small;

    rwsem_read_lock(&mm->mmap_lock);
    pt_lock(&mm->space);
    pte = pt_look_up(&mm->space, addr);
    if (pte_is_present(pte) && (!is_write || may_write(pte))) {
        small = is_write ? pt_find(&mm->space, addr) : NULL;
        if (small) /* a huge page is never written back */
            *small |= PTE_DIRTY | PTE_ACCESSED;
        copy((char *)page_virt(pte_page(pte)) + addr % PAGE_SIZE, buf, n, is_write);
        done = true;
    }
    pt_unlock(&mm->space);
    rwsem_read_unlock(&mm->mmap_lock);
    return done;
}

/* => 0, -EIO: the process could not do it, -EINTR */
static int access_page(struct mm *mm, u64 addr, char *buf, size_t n, bool is_write)
{
    enum fault_access access = is_write ? FAULT_WRITE : FAULT_READ;

    for (unsigned i = 0; i < FAULTS_MAX; i++) {
        enum fault_result result;

        if (copy_if_present(mm, addr, buf, n, is_write))
            return 0;
        result = fault_user(mm, addr, access,
                            FAULT_FLAG_POPULATE | FAULT_FLAG_KEEP_LOCK | FAULT_FLAG_FORCE);
        if (result != FAULT_DONE)
            return result == FAULT_KILLED ? -EINTR : -EIO;
    }
    return -EIO;
}

/* Between the process and the caller's memory, through `bounce`. => bytes, or an error */
static ssize_t transfer_page(struct mm *mm, u64 addr, u64 user_buf, size_t n, char *bounce,
                             bool is_write)
{
    int error = 0;

    if (is_write)
        error = copy_from_user(bounce, user_buf, n);
    if (!error)
        error = access_page(mm, addr, bounce, n, is_write);
    if (!error && !is_write)
        error = copy_to_user(user_buf, bounce, n);
    return error ? error : (ssize_t)n;
}

static ssize_t transfer(struct file *file, u64 user_buf, size_t len, u64 *pos, bool is_write)
{
    struct mm *mm = mm_of_file(file);
    char *bounce = mm ? kmalloc(PAGE_SIZE) : NULL;
    ssize_t done = 0, n = 0;

    if (mm && !bounce)
        n = -ENOMEM;
    while (bounce && (size_t)done < len) {
        u64 addr = *pos + (u64)done;
        size_t part = MIN(PAGE_SIZE - addr % PAGE_SIZE, len - (size_t)done);

        n = addr < USER_ADDRESS_END
                ? transfer_page(mm, addr, user_buf + (u64)done, part, bounce, is_write)
                : -EIO;
        if (n < 0)
            break;
        done += n;
    }
    kfree(bounce);
    if (mm)
        mm_put(mm);
    *pos += (u64)done;
    return done ? done : MIN(n, 0);
}

static ssize_t mem_read(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    return transfer(file, user_buf, len, pos, false);
}

static ssize_t mem_write(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    return transfer(file, user_buf, len, pos, true);
}

const struct file_ops proc_mem_ops = {.read = mem_read, .write = mem_write, .is_seekable = true};

/* ---- pagemap ---- */

#define PAGEMAP_EXCLUSIVE (1ul << 56)
#define PAGEMAP_OF_FILE   (1ul << 61) /* or shared anonymous */
#define PAGEMAP_PRESENT   (1ul << 63)
#define ENTRY_BYTES       sizeof(u64)
#define ENTRIES_AT_ONCE   64

static u64 pagemap_entry(pte_t pte)
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

static void fill_entries(struct mm *mm, u64 addr, u64 *entries, size_t n)
{
    rwsem_read_lock(&mm->mmap_lock);
    pt_lock(&mm->space);
    for (size_t i = 0; i < n; i++) {
        entries[i] = pagemap_entry(pt_look_up(&mm->space, addr + i * PAGE_SIZE));
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
