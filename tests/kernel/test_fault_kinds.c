/*
 * Faults of every kind: which page serves the access, what its entry says afterwards, which reason
 * is counted, and what a file that shrinks under its mappings leaves.
 */
#include "fs/names.h"
#include "fs/tmpfs.h"
#include "fs/vfs.h"
#include "kernel/cpu/cpu.h"
#include "kernel/sched/sync_point.h"
#include "lib/errno.h"
#include "mm/fork.h"
#include "mm/remote_memory.h"
#include "tests/kernel/fault_rig.h"
#include "tests/kernel/test_mm.h"

#define BASE     0x300000000ul
#define PAGE(n)  (BASE + (u64)(n)*PAGE_SIZE)
#define BYTES(n) ((u64)(n)*PAGE_SIZE)
#define RW       (PROT_READ | PROT_WRITE)
#define ANON     (MAP_PRIVATE | MAP_ANONYMOUS)

static s64 map_anon(struct mm *mm, unsigned first, unsigned pages, u32 prot)
{
    return mm_mmap(mm, PAGE(first), BYTES(pages), prot, ANON | MAP_FIXED, NULL, 0);
}

static pte_t entry_at(struct mm *mm, u64 addr)
{
    pt_lock(&mm->space);
    const pte_t *ptep = pt_find(&mm->space, addr);
    pte_t pte = ptep ? *ptep : 0;
    pt_unlock(&mm->space);
    return pte;
}

static int in_space(struct mm *mm, u64 addr, int byte)
{
    struct mm *mine = task_current()->mm;

    test_mm_attach(mm);
    int result = byte < 0 ? user_peek(addr) : user_poke(addr, (u8)byte);
    test_mm_attach(mine);
    return result;
}

/* What the current task's faults were since `before`: one of this reason, minor, or none (reason COUNT). */
static void expect_one(const struct task_fault_counters *before, enum fault_reason reason)
{
    const struct task_fault_counters *now = &task_current()->faults;
    u64 expected = reason != FAULT_REASON_COUNT;

    KEXPECT_EQ(now->started - before->started, expected);
    KEXPECT_EQ(now->minor - before->minor, expected && reason != FAULT_REASON_FAILED);
    if (expected)
        KEXPECT_EQ(now->reason[reason] - before->reason[reason], 1);
}

#define NO_FAULT FAULT_REASON_COUNT
#define EXPECT_FAULT(reason, act)                                    \
    do {                                                             \
        struct task_fault_counters before_ = task_current()->faults; \
        act;                                                         \
        expect_one(&before_, reason);                                \
    } while (0)

/* ---- Anonymous memory ---- */

KTEST(fault_kinds, one_zero_page_serves_every_read_until_it_is_written)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 3, RW);
    EXPECT_FAULT(FAULT_REASON_ZERO, KEXPECT_EQ(user_peek(PAGE(0)), 0));
    EXPECT_FAULT(FAULT_REASON_ZERO, KEXPECT_EQ(user_peek(PAGE(1)), 0));
    KEXPECT(pte_page(entry_at(mm, PAGE(0))) == pte_page(entry_at(mm, PAGE(1))));
    KEXPECT(entry_at(mm, PAGE(0)) & PTE_ZERO_PAGE);
    KEXPECT_EQ(mm->rss_anon, 0);
    EXPECT_FAULT(FAULT_REASON_ZERO, KEXPECT_EQ(user_poke(PAGE(0), 1), 0));
    EXPECT_FAULT(NO_FAULT, KEXPECT_EQ(user_poke(PAGE(0), 2), 0));
    EXPECT_FAULT(FAULT_REASON_ZERO, KEXPECT_EQ(user_poke(PAGE(2), 3), 0));
    KEXPECT_EQ(mm->rss_anon, 2);
    EXPECT_FAULT(NO_FAULT, KEXPECT_EQ(user_peek(PAGE(1)), 0));
    test_mm_leave();
}

KTEST(fault_kinds, the_first_of_two_owners_copies_and_the_last_writes_in_place)
{
    struct mm *child = NULL, *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 1, RW);
    user_poke(PAGE(0), 7);
    const struct page *page = pte_page(entry_at(mm, PAGE(0)));
    KEXPECT_EQ(mm_fork(mm, &child), 0);
    KASSERT(child != NULL);
    EXPECT_FAULT(NO_FAULT, KEXPECT_EQ(user_peek(PAGE(0)), 7));
    EXPECT_FAULT(FAULT_REASON_COW, KEXPECT_EQ(in_space(child, PAGE(0), 8), 0));
    KEXPECT(pte_page(entry_at(child, PAGE(0))) != page);
    EXPECT_FAULT(FAULT_REASON_COW, KEXPECT_EQ(user_poke(PAGE(0), 9), 0));
    KEXPECT(pte_page(entry_at(mm, PAGE(0))) == page);
    EXPECT_FAULT(NO_FAULT, KEXPECT_EQ(user_poke(PAGE(0), 10), 0));
    KEXPECT_EQ(in_space(child, PAGE(0), -1), 8);
    mm_put(child);
    test_mm_leave();
}

KTEST(fault_kinds, a_touch_below_a_growing_area_is_one_fault)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    u64 top = PAGE(600);
    mm_mmap(mm, top, BYTES(1), RW, ANON | MAP_FIXED | MAP_GROWSDOWN, NULL, 0);
    map_anon(mm, 300, 1, RW); /* page 556 is as far as the guard lets it grow */
    u64 retries = task_current()->faults.retries;
    EXPECT_FAULT(FAULT_REASON_ZERO, KEXPECT_EQ(user_poke(PAGE(590), 1), 0));
    KEXPECT_EQ(task_current()->faults.retries, retries);
    KEXPECT_EQ(vma_find(mm, top)->start, PAGE(590));
    EXPECT_FAULT(FAULT_REASON_FAILED, KEXPECT_EQ(user_peek(PAGE(556)), -EFAULT));
    EXPECT_FAULT(FAULT_REASON_ZERO, KEXPECT_EQ(user_peek(PAGE(557)), 0));
    KEXPECT_EQ(vma_find(mm, top)->start, PAGE(557));
    test_mm_leave();
}

/* ---- Protections ---- */

/* What an access comes to: read, write, execute; on x86 with or without protection keys. */
static const struct {
    u32 prot;
    bool reads, reads_without_keys, writes, executes;
} protections[] = {
    {PROT_NONE, false, false, false, false},
    {PROT_READ, true, true, false, false},
    {PROT_WRITE, true, true, true, false},
    {PROT_EXEC, false, true, false, true},
    {PROT_READ | PROT_WRITE, true, true, true, false},
    {PROT_READ | PROT_EXEC, true, true, false, true},
    {PROT_WRITE | PROT_EXEC, true, true, true, true},
    {PROT_READ | PROT_WRITE | PROT_EXEC, true, true, true, true},
};

static bool serves(struct mm *mm, u64 addr, enum fault_access access)
{
    enum fault_result result = fault_user(mm, addr, access, 0);

    KEXPECT(result == FAULT_DONE || result == FAULT_SIGSEGV_ACCERR);
    return result == FAULT_DONE;
}

KTEST(fault_kinds, each_protection_allows_what_it_allows_on_this_processor)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    for (unsigned i = 0; i < ARRAY_SIZE(protections); i++) {
        bool reads = cpu_features.pku ? protections[i].reads : protections[i].reads_without_keys;
        map_anon(mm, 0, 3, protections[i].prot);
        KEXPECT_EQ(serves(mm, PAGE(0), FAULT_READ), reads);
        KEXPECT_EQ(serves(mm, PAGE(1), FAULT_WRITE), protections[i].writes);
        KEXPECT_EQ(serves(mm, PAGE(2), FAULT_EXEC), protections[i].executes);
        KEXPECT_EQ(user_peek(PAGE(0)), reads ? 0 : -EFAULT);
    }
    test_mm_leave();
}

KTEST(fault_kinds, an_access_that_is_served_already_is_spurious_and_minor)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 1, RW);
    user_poke(PAGE(0), 1);
    pte_t before = entry_at(mm, PAGE(0));
    EXPECT_FAULT(FAULT_REASON_SPURIOUS,
                 KEXPECT_EQ(fault_user(mm, PAGE(0), FAULT_WRITE, 0), FAULT_DONE));
    KEXPECT_EQ(entry_at(mm, PAGE(0)), before);
    test_mm_leave();
}

/* ---- Shared files: write-notify ---- */

static bool is_dirty(struct file *file, pgoff_t index)
{
    struct page *page = page_cache_find(&file->inode->cache, index);
    bool dirty = page && page_has(page, PAGE_DIRTY);

    if (page)
        page_put(page);
    return dirty;
}

/* A file in memory, mapped shared at PAGE(0) and private at PAGE(100). */
static struct file *map_memory_file(struct mm *mm, unsigned pages)
{
    int error;
    struct file *file = tmpfs_open_unnamed("test", BYTES(pages), TMPFS_MEMFD, &error);

    if (KEXPECT(file != NULL)) {
        KEXPECT_EQ(mm_mmap(mm, PAGE(0), BYTES(pages), RW, MAP_SHARED | MAP_FIXED, &file->mapped, 0),
                   PAGE(0));
        KEXPECT_EQ(
            mm_mmap(mm, PAGE(100), BYTES(pages), RW, MAP_PRIVATE | MAP_FIXED, &file->mapped, 0),
            PAGE(100));
    }
    return file;
}

KTEST(fault_kinds, a_clean_shared_page_is_read_only_until_the_first_store_makes_it_dirty)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    struct file *file = map_memory_file(mm, 4);
    KASSERT(file != NULL);
    EXPECT_FAULT(FAULT_REASON_CACHE, KEXPECT_EQ(user_peek(PAGE(0)), 0));
    KEXPECT(!(entry_at(mm, PAGE(0)) & PTE_WRITE));
    KEXPECT(!is_dirty(file, 0));
    EXPECT_FAULT(FAULT_REASON_COW, KEXPECT_EQ(user_poke(PAGE(0), 5), 0));
    KEXPECT(entry_at(mm, PAGE(0)) & PTE_WRITE);
    KEXPECT(is_dirty(file, 0));
    EXPECT_FAULT(NO_FAULT, KEXPECT_EQ(user_poke(PAGE(0), 6), 0));
    EXPECT_FAULT(FAULT_REASON_CACHE, KEXPECT_EQ(user_poke(PAGE(1), 7), 0)); /* at once */
    KEXPECT(is_dirty(file, 1));
    EXPECT_FAULT(FAULT_REASON_COW,
                 KEXPECT_EQ(user_poke(PAGE(102), 8), 0)); /* a copy: not the file's */
    KEXPECT(!is_dirty(file, 2));
    KEXPECT_EQ(user_peek(PAGE(2)), 0);
    /* What was stored is only there, and stays; the clean page is nothing but zeros. */
    KEXPECT_EQ(page_cache_drop_range(&file->inode->cache, 0, 100), 0);
    KEXPECT_EQ(file->inode->cache.n_pages, 3);
    KEXPECT_EQ(mm_madvise(mm, PAGE(0), BYTES(4), MADV_PAGEOUT), 0);
    KEXPECT_EQ(file->inode->cache.n_pages, 2);
    KEXPECT_EQ(user_peek(PAGE(0)), 6);
    KEXPECT_EQ(user_peek(PAGE(1)), 7);
    test_mm_leave();
    file_put(file);
}

/* ---- Files that shrink ---- */

KTEST(fault_kinds, truncation_takes_private_copies_past_the_end_and_a_punch_leaves_them)
{
    struct mm *child = NULL, *mm = test_mm_enter();
    KASSERT(mm != NULL);
    struct file *file = map_memory_file(mm, 8);
    KASSERT(file != NULL);
    for (unsigned i = 0; i < 8; i++) {
        KEXPECT_EQ(user_poke(PAGE(i), (u8)(i + 1)), 0);
        KEXPECT_EQ(user_poke(PAGE(100 + i), (u8)(i + 101)), 0);
    }
    KEXPECT_EQ(mm_mprotect(mm, PAGE(106), BYTES(1), PROT_NONE), 0);
    KEXPECT_EQ(mm_fork(mm, &child), 0);
    KASSERT(child != NULL);
    KEXPECT_EQ(vfs_allocate(file->inode, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, BYTES(1), BYTES(1)),
               0);
    KEXPECT_EQ(user_peek(PAGE(1)), 0);
    KEXPECT_EQ(user_peek(PAGE(101)), 102);
    KEXPECT_EQ(mm->rss_anon, 8);
    KEXPECT_EQ(vfs_set_size(file->inode, BYTES(4) + 100), 0);
    KEXPECT_EQ(mm->rss_anon, 5);
    KEXPECT_EQ(child->rss_anon, 5);
    KEXPECT(mm_check(child) == NULL);
    KEXPECT_EQ(user_peek(PAGE(104)), 105); /* the last page keeps its copy, whole */
    EXPECT_FAULT(FAULT_REASON_FAILED, KEXPECT_EQ(user_peek(PAGE(105)), -EFAULT));
    KEXPECT_EQ(in_space(child, PAGE(105), -1), -EFAULT);
    KEXPECT_EQ(in_space(child, PAGE(101), -1), 102);
    /* The file grows again: what was there is not. */
    KEXPECT_EQ(vfs_set_size(file->inode, BYTES(8)), 0);
    KEXPECT_EQ(user_peek(PAGE(105)), 0);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(106), BYTES(1), RW), 0);
    KEXPECT_EQ(user_peek(PAGE(106)), 0);
    mm_put(child);
    test_mm_leave();
    file_put(file);
}

/* A private store waits for the page's read while the file shrinks below it. */
KTEST(fault_kinds, a_private_store_into_a_file_being_truncated_is_sigbus_and_leaves_no_copy)
{
    struct fault_rig rig;
    struct actor writer = {.addr = rig_addr(5), .write = true, .argument = 1};
    struct actor cutter = {.argument = BYTES(3)};
    KASSERT(rig_init(&rig, 16, RW, MAP_PRIVATE));
    gated_file_hold(rig.file, 5, 5);
    actor_start(&writer, &rig, act_touch);
    gate_wait_held(rig.file->disk, 1);
    actor_settle(&writer);
    actor_start(&cutter, &rig, act_truncate);
    KEXPECT(!actor_settle(&cutter)); /* for the page's lock */
    gate_open(rig.file->disk);
    actor_join(&cutter);
    actor_join(&writer);
    KEXPECT(!writer.succeeded);
    KEXPECT_EQ(writer.faults.sigbus, 1);
    KEXPECT(counters_add_up(&writer.faults));
    KEXPECT_EQ(rig.mm->rss_anon, 0);
    KEXPECT(!rig_is_mapped(&rig, 5));
    rig_end(&rig);
}

/* ---- A debugger's writes ---- */

static int poke_remote(struct mm *mm, u64 addr, u8 byte, u32 flags)
{
    return remote_memory_copy(mm, addr, &byte, 1, flags | REMOTE_WRITE);
}

static int peek_remote(struct mm *mm, u64 addr, u32 flags)
{
    u8 byte = 0;
    int error = remote_memory_copy(mm, addr, &byte, 1, flags);

    return error ? error : byte;
}

KTEST(fault_kinds, a_forced_write_to_read_only_private_memory_is_one_copy_and_stays_read_only)
{
    struct memory_file f;
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 4, true, true);
    mm_mmap(mm, PAGE(0), BYTES(4), PROT_READ, MAP_PRIVATE | MAP_FIXED, &f.file, 0);
    mm_mmap(mm, PAGE(10), BYTES(4), PROT_READ, MAP_SHARED | MAP_FIXED, &f.file, 0);
    KEXPECT_EQ(poke_remote(mm, PAGE(0), 99, 0), -EIO);
    KEXPECT_EQ(user_peek(PAGE(0)), memory_file_byte(0));
    EXPECT_FAULT(FAULT_REASON_COW, KEXPECT_EQ(poke_remote(mm, PAGE(0), 99, REMOTE_FORCE), 0));
    EXPECT_FAULT(NO_FAULT, KEXPECT_EQ(poke_remote(mm, PAGE(0) + 1, 98, REMOTE_FORCE), 0));
    EXPECT_FAULT(NO_FAULT, KEXPECT_EQ(user_peek(PAGE(0)), 99));
    KEXPECT_EQ(user_peek(PAGE(0) + 1), 98);
    KEXPECT(!(entry_at(mm, PAGE(0)) & PTE_WRITE));
    KEXPECT_EQ(user_poke(PAGE(0), 1), -EFAULT);
    KEXPECT_EQ(mm->rss_anon, 1);
    KEXPECT_EQ(user_peek(PAGE(10)), memory_file_byte(0));
    KEXPECT_EQ(poke_remote(mm, PAGE(10), 99, REMOTE_FORCE), -EIO);
    test_mm_leave();
    memory_file_destroy(&f);
}

KTEST(fault_kinds, forced_access_to_memory_without_any_permission)
{
    struct memory_file f;
    struct mm *child = NULL, *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 4, true, true);
    mm_mmap(mm, PAGE(10), BYTES(4), PROT_NONE, MAP_PRIVATE | MAP_FIXED, &f.file, 0);
    map_anon(mm, 0, 2, PROT_NONE);
    EXPECT_FAULT(NO_FAULT, KEXPECT_EQ(peek_remote(mm, PAGE(0), REMOTE_FORCE), 0));
    EXPECT_FAULT(NO_FAULT,
                 KEXPECT_EQ(peek_remote(mm, PAGE(11), REMOTE_FORCE), memory_file_byte(1)));
    KEXPECT_EQ(peek_remote(mm, PAGE(0), 0), -EIO);
    EXPECT_FAULT(FAULT_REASON_ZERO, KEXPECT_EQ(poke_remote(mm, PAGE(0), 5, REMOTE_FORCE), 0));
    EXPECT_FAULT(FAULT_REASON_COW, KEXPECT_EQ(poke_remote(mm, PAGE(11), 6, REMOTE_FORCE), 0));
    KEXPECT(mm_check(mm) == NULL);
    KEXPECT_EQ(mm_fork(mm, &child), 0);
    KASSERT(child != NULL);
    EXPECT_FAULT(FAULT_REASON_COW, KEXPECT_EQ(poke_remote(child, PAGE(0), 7, REMOTE_FORCE), 0));
    KEXPECT(mm_check(child) == NULL);
    KEXPECT_EQ(peek_remote(mm, PAGE(0), REMOTE_FORCE), 5);
    KEXPECT_EQ(peek_remote(child, PAGE(0), REMOTE_FORCE), 7);
    KEXPECT_EQ(user_peek(PAGE(0)), -EFAULT);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(0), BYTES(1), RW), 0);
    KEXPECT_EQ(user_peek(PAGE(0)), 5);
    KEXPECT_EQ(user_poke(PAGE(0), 8), 0);
    KEXPECT_EQ(peek_remote(child, PAGE(0), REMOTE_FORCE), 7);
    KEXPECT_EQ(peek_remote(child, PAGE(11), REMOTE_FORCE), 6);
    mm_put(child);
    test_mm_leave();
    memory_file_destroy(&f);
}
