/*
 * Huge pages: the pool's promises, what each call does to areas of 2 MiB pages, exact counts of faults, and that all comes back.
 */
#include "kernel/sched/sync_point.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/fault.h"
#include "mm/fork.h"
#include "mm/huge.h"
#include "mm/user_memory.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/test_mm.h"
#include "tests/kernel/threads.h"

#define BASE     0x300000000ul
#define HUGE(n)  (BASE + (u64)(n)*HUGE_PAGE_BYTES)
#define BYTES(n) ((u64)(n)*HUGE_PAGE_BYTES)
#define RW       (PROT_READ | PROT_WRITE)
#define PRIVATE  (MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB)
#define SHARED   (MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB)
#define SIZE_LOG 26

static u64 frames_before;

/* Without what threads leave behind: stacks kept for the next ones. */
static u64 frames_now(void)
{
    return test_frames_settled() + pt_kernel_tables() +
           kernel_stack_cached_count() * (KERNEL_STACK_BYTES / PAGE_SIZE);
}

/* A pool of `pages`, and a space to map them in. => NULL: the machine has not that many, or not in one piece */
static struct mm *enter(u64 pages)
{
    struct huge_pool_counts n;

    frames_before = frames_now();
    huge_pool_resize(pages);
    huge_pool_count(&n);
    if (n.total < pages) {
        huge_pool_resize(0);
        return NULL;
    }
    return test_mm_enter();
}

/* The space ends, and everything is as it was. */
static void leave(void)
{
    struct huge_pool_counts n;

    test_mm_leave();
    huge_pool_count(&n);
    KEXPECT_EQ(n.reserved, 0);
    KEXPECT_EQ(n.free, n.total);
    KEXPECT_EQ(n.surplus, 0);
    huge_pool_set_max_surplus(0);
    huge_pool_resize(0);
    huge_pool_count(&n);
    KEXPECT_EQ(n.total, 0);
    KEXPECT_EQ(frames_now(), frames_before);
}

static void expect_counts(u64 total, u64 free, u64 reserved, u64 surplus, int line)
{
    struct huge_pool_counts n;

    huge_pool_count(&n);
    if (n.total != total || n.free != free || n.reserved != reserved || n.surplus != surplus)
        ktest_fail(__FILE__, __LINE__,
                   "line %d: pool has %lu total, %lu free, %lu reserved, %lu surplus; expected %lu "
                   "%lu %lu %lu",
                   line, n.total, n.free, n.reserved, n.surplus, total, free, reserved, surplus);
}
#define EXPECT_POOL(total, free, reserved, surplus) \
    expect_counts(total, free, reserved, surplus, __LINE__)

static s64 map(struct mm *mm, unsigned first, unsigned pages, u32 prot, u32 flags)
{
    return mm_mmap(mm, HUGE(first), BYTES(pages), prot, flags | MAP_FIXED, NULL, 0);
}

static pte_t entry_at(struct mm *mm, u64 addr)
{
    pt_lock(&mm->space);
    pte_t pte = pt_look_up(&mm->space, addr);
    pt_unlock(&mm->space);
    return pte;
}

static struct page *head_at(struct mm *mm, u64 addr)
{
    return huge_page_head(pte_page(entry_at(mm, addr)));
}

static struct task_fault_counters counters(void)
{
    return task_current()->faults;
}

static int peek_in(struct mm *mm, u64 addr)
{
    struct mm *mine = task_current()->mm;
    test_mm_attach(mm);
    int byte = user_peek(addr);
    test_mm_attach(mine);
    return byte;
}

static int poke_in(struct mm *mm, u64 addr, u8 byte)
{
    struct mm *mine = task_current()->mm;
    test_mm_attach(mm);
    int error = user_poke(addr, byte);
    test_mm_attach(mine);
    return error;
}

static struct mm *fork_checked(struct mm *parent)
{
    struct mm *child = NULL;
    KEXPECT_EQ(mm_fork(parent, &child), 0);
    KEXPECT(mm_check(parent) == NULL);
    KEXPECT(!child || mm_check(child) == NULL);
    return child;
}

/* ---- The pool ---- */

KTEST(huge, the_pool_grows_and_shrinks_and_gives_its_frames_back)
{
    u64 before = test_frames_settled();
    huge_pool_resize(3);
    EXPECT_POOL(3, 3, 0, 0);
    KEXPECT_EQ(test_frames_settled(), before - 3 * HUGE_PAGE_FRAMES);
    huge_pool_resize(1);
    EXPECT_POOL(1, 1, 0, 0);
    huge_pool_resize(0);
    KEXPECT_EQ(test_frames_settled(), before);
}

KTEST(huge, the_pool_leaves_the_system_its_share)
{
    struct huge_pool_counts n;
    huge_pool_resize(~0ul);
    huge_pool_count(&n);
    KEXPECT(n.total > 0);
    KEXPECT_EQ(n.free, n.total);
    KEXPECT(frames_free_count() >= frames_total() / 32);
    huge_pool_resize(0);
    EXPECT_POOL(0, 0, 0, 0);
}

KTEST(huge, what_is_promised_cannot_be_had_by_others)
{
    struct mm *mm = enter(3);
    if (!mm)
        KTEST_SKIP("no three huge pages");
    KEXPECT_EQ(map(mm, 0, 2, RW, PRIVATE), (s64)HUGE(0));
    EXPECT_POOL(3, 3, 2, 0);
    KEXPECT_EQ(map(mm, 4, 2, RW, PRIVATE), -ENOMEM);
    KEXPECT_EQ(map(mm, 4, 2, RW, SHARED), -ENOMEM);
    EXPECT_POOL(3, 3, 2, 0);
    KEXPECT_EQ(map(mm, 4, 2, RW, PRIVATE | MAP_NORESERVE), (s64)HUGE(4));
    KEXPECT_EQ(user_poke(HUGE(4), 1), 0);
    EXPECT_POOL(3, 2, 2, 0);
    struct task_fault_counters was = counters();
    KEXPECT_EQ(user_poke(HUGE(5), 1), -EFAULT);
    KEXPECT_EQ(counters().sigbus - was.sigbus, 1);
    KEXPECT_EQ(user_poke(HUGE(0), 1), 0);
    KEXPECT_EQ(user_poke(HUGE(1), 1), 0);
    EXPECT_POOL(3, 0, 0, 0);
    leave();
}

KTEST(huge, a_pool_in_use_shrinks_when_it_can)
{
    struct mm *mm = enter(3);
    if (!mm)
        KTEST_SKIP("no three huge pages");
    map(mm, 0, 2, RW, PRIVATE);
    KEXPECT_EQ(user_poke(HUGE(0), 1), 0);
    huge_pool_resize(0); /* one in use, one promised: both are surplus now */
    EXPECT_POOL(2, 1, 1, 2);
    KEXPECT_EQ(user_poke(HUGE(1), 1), 0);
    EXPECT_POOL(2, 0, 0, 2);
    KEXPECT_EQ(mm_munmap(mm, HUGE(0), BYTES(1)), 0);
    EXPECT_POOL(1, 0, 0, 1);
    huge_pool_resize(1);
    EXPECT_POOL(1, 0, 0, 0);
    leave();
}

KTEST(huge, surplus_pages_come_when_promised_and_go_when_freed)
{
    struct mm *mm = enter(1);
    if (!mm)
        KTEST_SKIP("no huge page");
    huge_pool_set_max_surplus(2);
    KEXPECT_EQ(map(mm, 0, 4, RW, PRIVATE), -ENOMEM);
    EXPECT_POOL(1, 1, 0, 0);
    KEXPECT_EQ(map(mm, 0, 3, RW, PRIVATE), (s64)HUGE(0));
    EXPECT_POOL(3, 3, 3, 2);
    KEXPECT_EQ(user_poke(HUGE(0), 1), 0);
    EXPECT_POOL(3, 2, 2, 2);
    KEXPECT_EQ(mm_munmap(mm, HUGE(1), BYTES(2)), 0);
    EXPECT_POOL(1, 0, 0, 0);
    KEXPECT_EQ(map(mm, 4, 2, RW, PRIVATE | MAP_NORESERVE), (s64)HUGE(4));
    KEXPECT_EQ(user_poke(HUGE(4), 1), 0);
    KEXPECT_EQ(user_poke(HUGE(5), 1), 0);
    EXPECT_POOL(3, 0, 0, 2);
    KEXPECT_EQ(mm_madvise(mm, HUGE(4), BYTES(1), MADV_DONTNEED), 0);
    EXPECT_POOL(2, 0, 0, 1);
    leave();
}

/* ---- mmap ---- */

KTEST(huge, mmap_errors_are_those_of_linux)
{
    struct mm *mm = enter(2);
    if (!mm)
        KTEST_SKIP("no two huge pages");
    struct memory_file f;
    memory_file_init(&f, 4, true, true);
    const struct {
        u64 addr, length;
        u32 flags;
        struct mapped_file *file;
        u64 offset;
        s64 result;
    } cases[] = {
        {0, 0, PRIVATE, NULL, 0, -EINVAL},
        {0, ~0ul, PRIVATE, NULL, 0, -EINVAL},
        {0, BYTES(3), PRIVATE, NULL, 0, -ENOMEM},
        {0, 1ul << 47, PRIVATE, NULL, 0, -ENOMEM},
        {0, 4096, PRIVATE | 30u << SIZE_LOG, NULL, 0, -ENOMEM},
        {0, 4096, PRIVATE | 16u << SIZE_LOG, NULL, 0, -EINVAL},
        {0, 4096, MAP_ANONYMOUS | MAP_HUGETLB, NULL, 0, -EINVAL},
        {0, 4096, PRIVATE | MAP_GROWSDOWN, NULL, 0, -EINVAL},
        {0, 4096, PRIVATE, NULL, PAGE_SIZE, -EINVAL},
        {0, 4096, MAP_PRIVATE | MAP_HUGETLB, &f.file, 0, -EINVAL},
        {HUGE(0) + PAGE_SIZE, 4096, PRIVATE | MAP_FIXED, NULL, 0, -EINVAL},
        {HUGE(0), 4096, PRIVATE | MAP_FIXED, NULL, 0, (s64)HUGE(0)},
        {HUGE(0), 4096, PRIVATE | MAP_FIXED_NOREPLACE, NULL, 0, -EEXIST},
        {HUGE(4) + PAGE_SIZE, 4096, PRIVATE | 21u << SIZE_LOG, NULL, 0, (s64)HUGE(4)},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        s64 result = mm_mmap(mm, cases[i].addr, cases[i].length, RW, cases[i].flags, cases[i].file,
                             cases[i].offset);
        if (result != cases[i].result)
            ktest_fail(__FILE__, __LINE__, "case %u: %ld, expected %ld", i, result,
                       cases[i].result);
    }
    EXPECT_POOL(2, 2, 2, 0);
    memory_file_destroy(&f);
    leave();
}

KTEST(huge, places_are_aligned_and_lengths_rounded)
{
    struct mm *mm = enter(2);
    if (!mm)
        KTEST_SKIP("no two huge pages");
    s64 small = mm_mmap(mm, 0, PAGE_SIZE, RW, MAP_PRIVATE | MAP_ANONYMOUS, NULL, 0);
    s64 a = mm_mmap(mm, 0, 1, RW, PRIVATE, NULL, 0);
    KEXPECT_EQ(a % (s64)HUGE_PAGE_BYTES, 0);
    KEXPECT_EQ(a, (s64)ALIGN_DOWN((u64)small - HUGE_PAGE_BYTES, HUGE_PAGE_BYTES));
    const struct vma *vma = vma_find(mm, (u64)a);
    KEXPECT_EQ(vma->end - vma->start, HUGE_PAGE_BYTES);
    KEXPECT_EQ(mm->total_pages, HUGE_PAGE_FRAMES + 1);
    s64 b = mm_mmap(mm, 0, BYTES(1), RW, PRIVATE, NULL, 0);
    KEXPECT_EQ(b, a - (s64)HUGE_PAGE_BYTES);
    KEXPECT_EQ(mm->n_vmas, 3); /* huge areas do not merge */
    leave();
}

KTEST(huge, replacing_an_area_passes_its_promises_on)
{
    struct mm *mm = enter(2);
    if (!mm)
        KTEST_SKIP("no two huge pages");
    map(mm, 0, 2, RW, PRIVATE);
    KEXPECT_EQ(user_poke(HUGE(0), 7), 0);
    KEXPECT_EQ(map(mm, 0, 2, RW, PRIVATE), (s64)HUGE(0));
    EXPECT_POOL(2, 2, 2, 0);
    KEXPECT_EQ(user_peek(HUGE(0)), 0);
    KEXPECT_EQ(
        mm_mmap(mm, HUGE(1), PAGE_SIZE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL, 0),
        -EINVAL); /* would cut a page */
    KEXPECT_EQ(mm_mmap(mm, HUGE(1), BYTES(1), RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL, 0),
               (s64)HUGE(1));
    EXPECT_POOL(2, 1, 0, 0);
    KEXPECT_EQ(user_poke(HUGE(1), 1), 0); /* small pages, where a huge one was */
    KEXPECT_EQ(map(mm, 1, 1, RW, PRIVATE), (s64)HUGE(1));
    KEXPECT_EQ(user_peek(HUGE(1)), 0);
    EXPECT_POOL(2, 0, 0, 0);
    leave();
}

KTEST(huge, a_failed_allocation_leaves_nothing_behind)
{
    struct mm *mm = enter(2);
    if (!mm)
        KTEST_SKIP("no two huge pages");
    map(mm, 2, 1, RW, PRIVATE);
    for (u64 after = 0; after < 8; after++) {
        frames_fail_inject(after, 100);
        s64 result = map(mm, 0, 1, RW, PRIVATE);
        frames_fail_inject(0, 0);
        if (result >= 0)
            break;
        KEXPECT_EQ(result, -ENOMEM);
        KEXPECT(mm_check(mm) == NULL);
        EXPECT_POOL(2, 2, 1, 0);
    }
    leave();
}

/* ---- Faults ---- */

KTEST(huge, first_touches_count_once_and_read_zeros)
{
    struct mm *mm = enter(3);
    if (!mm)
        KTEST_SKIP("no three huge pages");
    map(mm, 0, 3, RW, PRIVATE);
    struct task_fault_counters was = counters();
    KEXPECT_EQ(user_poke(HUGE(0) + 5000, 9), 0);
    KEXPECT_EQ(user_peek(HUGE(0) + 5000), 9);
    KEXPECT_EQ(user_peek(HUGE(1) - 1), 0);
    KEXPECT_EQ(counters().minor - was.minor, 1);
    KEXPECT_EQ(counters().reason[FAULT_REASON_ZERO] - was.reason[FAULT_REASON_ZERO], 1);
    KEXPECT_EQ(user_peek(HUGE(1) + 1), 0); /* read, then store: in place */
    KEXPECT_EQ(counters().minor - was.minor, 2);
    KEXPECT_EQ(user_poke(HUGE(1) + 2, 1), 0);
    KEXPECT_EQ(counters().minor - was.minor, 3);
    KEXPECT_EQ(counters().reason[FAULT_REASON_COW] - was.reason[FAULT_REASON_COW], 1);
    KEXPECT_EQ(counters().major - was.major, 0);
    KEXPECT_EQ(mm->huge_pages, 2);
    KEXPECT_EQ(mm->rss_anon + mm->rss_file, 0);
    EXPECT_POOL(3, 1, 1, 0);
    KEXPECT(entry_at(mm, HUGE(0)) & PTE_LARGE);
    KEXPECT_EQ(pte_phys(entry_at(mm, HUGE(0) + 5 * PAGE_SIZE)) - pte_phys(entry_at(mm, HUGE(0))),
               5 * PAGE_SIZE);
    KEXPECT(mm_check(mm) == NULL);
    leave();
}

KTEST(huge, pages_of_a_shared_area_are_everybodys)
{
    struct mm *parent = enter(2);
    if (!parent)
        KTEST_SKIP("no two huge pages");
    map(parent, 0, 2, RW, SHARED);
    EXPECT_POOL(2, 2, 2, 0);
    KEXPECT_EQ(user_peek(HUGE(0)), 0); /* writable at once */
    struct task_fault_counters was = counters();
    KEXPECT_EQ(user_poke(HUGE(0), 3), 0);
    KEXPECT_EQ(counters().started - was.started, 0);
    struct mm *child = fork_checked(parent);
    KASSERT(child != NULL);
    KEXPECT_EQ(child->huge_pages, 0);
    KEXPECT_EQ(peek_in(child, HUGE(0)), 3);
    KEXPECT_EQ(counters().reason[FAULT_REASON_CACHE] - was.reason[FAULT_REASON_CACHE], 1);
    KEXPECT_EQ(poke_in(child, HUGE(1), 4), 0);
    KEXPECT_EQ(user_peek(HUGE(1)), 4);
    EXPECT_POOL(2, 0, 0, 0);
    KEXPECT_EQ(mm_munmap(parent, HUGE(0), BYTES(2)), 0);
    EXPECT_POOL(2, 0, 0, 0); /* the child has them */
    KEXPECT(mm_check(child) == NULL);
    mm_put(child);
    EXPECT_POOL(2, 2, 0, 0);
    leave();
}

KTEST(huge, a_part_of_a_shared_area_keeps_its_promises)
{
    struct mm *mm = enter(2);
    if (!mm)
        KTEST_SKIP("no two huge pages");
    map(mm, 0, 2, RW, SHARED);
    KEXPECT_EQ(user_poke(HUGE(0), 3), 0);
    KEXPECT_EQ(mm_munmap(mm, HUGE(0), BYTES(1)), 0);
    EXPECT_POOL(2, 1, 1, 0); /* the file lives on, with its page */
    KEXPECT_EQ(mm_munmap(mm, HUGE(1), BYTES(1)), 0);
    EXPECT_POOL(2, 2, 0, 0);
    leave();
}

KTEST(huge, a_hole_in_a_shared_area_is_one_for_everybody)
{
    struct mm *parent = enter(2);
    if (!parent)
        KTEST_SKIP("no two huge pages");
    map(parent, 0, 2, RW, SHARED);
    KEXPECT_EQ(user_poke(HUGE(0), 3), 0);
    KEXPECT_EQ(user_poke(HUGE(1), 4), 0);
    KEXPECT_EQ(user_poke(HUGE(2) - 1, 5), 0);
    struct mm *child = fork_checked(parent);
    KASSERT(child != NULL);
    KEXPECT_EQ(peek_in(child, HUGE(0)), 3);
    KEXPECT_EQ(mm_madvise(parent, HUGE(0), BYTES(1) + PAGE_SIZE, MADV_REMOVE), 0);
    EXPECT_POOL(2, 1, 0, 0); /* nothing is promised for a hole */
    KEXPECT_EQ(parent->huge_pages, 1);
    KEXPECT_EQ(child->huge_pages, 0);
    KEXPECT_EQ(peek_in(child, HUGE(0)), 0);
    KEXPECT_EQ(user_peek(HUGE(1)), 0); /* a part is cleared */
    KEXPECT_EQ(user_peek(HUGE(2) - 1), 5);
    EXPECT_POOL(2, 0, 0, 0);
    KEXPECT(mm_check(child) == NULL);
    mm_put(child);
    leave();
}

/* ---- Fork ---- */

KTEST(huge, copy_on_write_and_the_last_owner_in_place)
{
    struct mm *parent = enter(2);
    if (!parent)
        KTEST_SKIP("no two huge pages");
    map(parent, 0, 1, RW, PRIVATE);
    KEXPECT_EQ(user_poke(HUGE(0), 1), 0);
    KEXPECT_EQ(user_poke(HUGE(1) - 1, 2), 0);
    struct mm *child = fork_checked(parent);
    KASSERT(child != NULL);
    struct page *page = head_at(parent, HUGE(0));
    KEXPECT(head_at(child, HUGE(0)) == page);
    KEXPECT_EQ(page->refs, 2);
    KEXPECT_EQ(page->mapcount, 2);
    struct task_fault_counters was = counters();
    KEXPECT_EQ(poke_in(child, HUGE(0), 50), 0);
    KEXPECT_EQ(counters().minor - was.minor, 1);
    KEXPECT_EQ(counters().reason[FAULT_REASON_COW] - was.reason[FAULT_REASON_COW], 1);
    EXPECT_POOL(2, 0, 0, 0);
    KEXPECT(head_at(child, HUGE(0)) != page);
    KEXPECT_EQ(peek_in(child, HUGE(1) - 1), 2);
    KEXPECT_EQ(user_peek(HUGE(0)), 1);
    KEXPECT_EQ(page->refs, 1);
    KEXPECT_EQ(user_poke(HUGE(0), 2), 0);
    KEXPECT(head_at(parent, HUGE(0)) == page);
    KEXPECT_EQ(peek_in(child, HUGE(0)), 50);
    KEXPECT(mm_check(parent) == NULL);
    mm_put(child);
    leave();
}

KTEST(huge, a_store_of_the_parent_is_not_the_childs)
{
    struct mm *parent = enter(2);
    if (!parent)
        KTEST_SKIP("no two huge pages");
    map(parent, 0, 1, RW, PRIVATE);
    KEXPECT_EQ(user_poke(HUGE(0), 1), 0);
    struct mm *child = fork_checked(parent);
    KASSERT(child != NULL);
    KEXPECT_EQ(user_poke(HUGE(0), 2), 0);
    KEXPECT_EQ(peek_in(child, HUGE(0)), 1);
    KEXPECT_EQ(poke_in(child, HUGE(0), 3), 0); /* alone by now */
    KEXPECT_EQ(user_peek(HUGE(0)), 2);
    EXPECT_POOL(2, 0, 0, 0);
    mm_put(child);
    leave();
}

KTEST(huge, a_child_without_a_page_gets_sigbus)
{
    struct mm *parent = enter(2);
    if (!parent)
        KTEST_SKIP("no two huge pages");
    map(parent, 0, 2, RW, PRIVATE);
    KEXPECT_EQ(user_poke(HUGE(0), 1), 0);
    struct mm *child = fork_checked(parent);
    KASSERT(child != NULL);
    struct task_fault_counters was = counters();
    KEXPECT_EQ(poke_in(child, HUGE(0), 2),
               -EFAULT); /* the one free page is promised to the parent */
    KEXPECT_EQ(poke_in(child, HUGE(1), 2), -EFAULT);
    KEXPECT_EQ(counters().sigbus - was.sigbus, 2);
    KEXPECT_EQ(peek_in(child, HUGE(0)), 1);
    KEXPECT_EQ(user_poke(HUGE(1), 1), 0);
    EXPECT_POOL(2, 0, 0, 0);
    mm_put(child);
    leave();
}

KTEST(huge, the_parent_takes_the_page_from_its_children)
{
    struct mm *parent = enter(2);
    if (!parent)
        KTEST_SKIP("no two huge pages");
    map(parent, 0, 2, RW, PRIVATE);
    KEXPECT_EQ(user_poke(HUGE(0), 1), 0);
    KEXPECT_EQ(user_poke(HUGE(1), 1), 0);
    struct mm *child = fork_checked(parent), *second = fork_checked(parent);
    KASSERT(child != NULL && second != NULL);
    struct page *page = head_at(parent, HUGE(0));
    KEXPECT_EQ(user_poke(HUGE(0), 2), 0);
    KEXPECT(head_at(parent, HUGE(0)) == page);
    KEXPECT_EQ(page->refs, 1);
    KEXPECT_EQ(page->mapcount, 1);
    KEXPECT_EQ(child->huge_pages, 1);
    KEXPECT_EQ(mm_munmap(parent, HUGE(0), BYTES(1)), 0);
    EXPECT_POOL(2, 1, 0, 0);
    KEXPECT_EQ(peek_in(child, HUGE(0)), -EFAULT); /* though a page is free: its contents are gone */
    KEXPECT_EQ(peek_in(second, HUGE(0)), -EFAULT);
    KEXPECT_EQ(peek_in(child, HUGE(1)), 1);
    KEXPECT(mm_check(child) == NULL && mm_check(second) == NULL);
    mm_put(child);
    mm_put(second);
    leave();
}

KTEST(huge, promises_stay_with_the_parent_when_a_child_outlives_it)
{
    struct mm *parent = enter(3);
    if (!parent)
        KTEST_SKIP("no three huge pages");
    map(parent, 0, 3, RW, PRIVATE);
    KEXPECT_EQ(user_poke(HUGE(0), 1), 0);
    struct mm *child = fork_checked(parent);
    KASSERT(child != NULL);
    EXPECT_POOL(3, 2, 2, 0);
    KEXPECT_EQ(mm_munmap(parent, HUGE(0), BYTES(3)), 0);
    EXPECT_POOL(3, 2, 0, 0);
    KEXPECT_EQ(poke_in(child, HUGE(0), 2), 0); /* in place */
    KEXPECT_EQ(poke_in(child, HUGE(1), 2), 0);
    EXPECT_POOL(3, 1, 0, 0);
    mm_put(child);
    leave();
}

/* ---- Calls ---- */

KTEST(huge, only_whole_pages_are_unmapped_and_protected)
{
    struct mm *mm = enter(3);
    if (!mm)
        KTEST_SKIP("no three huge pages");
    map(mm, 0, 3, RW, PRIVATE);
    KEXPECT_EQ(user_poke(HUGE(0), 1), 0);
    KEXPECT_EQ(mm_munmap(mm, HUGE(0), PAGE_SIZE), -EINVAL);
    KEXPECT_EQ(mm_munmap(mm, HUGE(1) + PAGE_SIZE, BYTES(1)), -EINVAL);
    KEXPECT_EQ(mm_mprotect(mm, HUGE(0), PAGE_SIZE, PROT_READ), -EINVAL);
    KEXPECT_EQ(mm_madvise(mm, HUGE(0), PAGE_SIZE, MADV_RANDOM), -EINVAL);
    KEXPECT_EQ(mm->n_vmas, 1);
    KEXPECT_EQ(mm_munmap(mm, HUGE(1), BYTES(1)), 0);
    KEXPECT_EQ(mm->n_vmas, 2);
    EXPECT_POOL(3, 2, 1, 0);
    KEXPECT(mm_check(mm) == NULL);
    leave();
}

KTEST(huge, protection_is_changed_in_the_entries)
{
    struct mm *mm = enter(2);
    if (!mm)
        KTEST_SKIP("no two huge pages");
    map(mm, 0, 2, RW, PRIVATE);
    KEXPECT_EQ(user_poke(HUGE(0), 1), 0);
    KEXPECT_EQ(user_poke(HUGE(1), 2), 0);
    KEXPECT_EQ(mm_mprotect(mm, HUGE(0), BYTES(1), PROT_READ), 0);
    KEXPECT_EQ(user_poke(HUGE(0), 3), -EFAULT);
    KEXPECT_EQ(user_peek(HUGE(0)), 1);
    KEXPECT_EQ(mm_mprotect(mm, HUGE(0), BYTES(1), PROT_NONE), 0);
    KEXPECT_EQ(user_peek(HUGE(0)), -EFAULT);
    KEXPECT_EQ(mm->huge_pages, 2);
    KEXPECT(mm_check(mm) == NULL);
    KEXPECT_EQ(mm_mprotect(mm, HUGE(0), BYTES(1), RW), 0);
    struct task_fault_counters was = counters();
    KEXPECT_EQ(user_peek(HUGE(0)), 1);
    KEXPECT_EQ(counters().started - was.started, 0);
    KEXPECT_EQ(user_poke(HUGE(0), 3), 0); /* one fault, in place */
    KEXPECT_EQ(counters().minor - was.minor, 1);
    KEXPECT_EQ(mm->n_vmas, 2);
    EXPECT_POOL(2, 0, 0, 0);
    leave();
}

KTEST(huge, dontneed_gives_whole_pages_back_and_promises_them_again)
{
    struct mm *mm = enter(2);
    if (!mm)
        KTEST_SKIP("no two huge pages");
    map(mm, 0, 2, RW, PRIVATE);
    KEXPECT_EQ(user_poke(HUGE(0), 1), 0);
    KEXPECT_EQ(user_poke(HUGE(1), 2), 0);
    KEXPECT_EQ(mm_madvise(mm, HUGE(0) + PAGE_SIZE, PAGE_SIZE, MADV_DONTNEED), -EINVAL);
    KEXPECT_EQ(mm_madvise(mm, HUGE(0), BYTES(1) - 1 - PAGE_SIZE, MADV_DONTNEED), 0);
    KEXPECT_EQ(user_peek(HUGE(0)), 1);
    KEXPECT_EQ(mm_madvise(mm, HUGE(0), BYTES(1) + PAGE_SIZE, MADV_DONTNEED), 0);
    EXPECT_POOL(2, 1, 1, 0);
    KEXPECT_EQ(mm->huge_pages, 1);
    KEXPECT_EQ(user_peek(HUGE(0)), 0);
    KEXPECT_EQ(user_peek(HUGE(1)), 2);
    EXPECT_POOL(2, 0, 0, 0);
    KEXPECT_EQ(mm_madvise(mm, HUGE(0), BYTES(1), MADV_FREE), -EINVAL);
    KEXPECT_EQ(mm_madvise(mm, HUGE(0), BYTES(1), MADV_COLD), -EINVAL);
    KEXPECT_EQ(mm_madvise(mm, HUGE(0), BYTES(1), MADV_WILLNEED), 0);
    leave();
}

KTEST(huge, an_area_moves_with_pages_and_promises)
{
    struct mm *mm = enter(3);
    if (!mm)
        KTEST_SKIP("no three huge pages");
    map(mm, 0, 3, RW, PRIVATE);
    KEXPECT_EQ(user_poke(HUGE(0), 1), 0);
    KEXPECT_EQ(user_poke(HUGE(1), 2), 0);
    const u32 move = MREMAP_MAYMOVE | MREMAP_FIXED;
    KEXPECT_EQ(mm_mremap(mm, HUGE(0), BYTES(3), BYTES(4), MREMAP_MAYMOVE, 0), -EINVAL);
    KEXPECT_EQ(mm_mremap(mm, HUGE(0) + PAGE_SIZE, BYTES(1), BYTES(1), move, HUGE(8)), -EINVAL);
    KEXPECT_EQ(mm_mremap(mm, HUGE(0), BYTES(1), BYTES(1), move, HUGE(8) + PAGE_SIZE), -EINVAL);
    KEXPECT_EQ(mm_mremap(mm, HUGE(0), BYTES(1), BYTES(1), move | MREMAP_DONTUNMAP, HUGE(8)),
               -EINVAL);
    /* Over small pages, whose table has to go. */
    mm_mmap(mm, HUGE(8), BYTES(2), RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL, 0);
    KEXPECT_EQ(user_poke(HUGE(8) + PAGE_SIZE, 99), 0);
    KEXPECT_EQ(mm_mremap(mm, HUGE(0), BYTES(2), BYTES(2), move, HUGE(8)), (s64)HUGE(8));
    KEXPECT(mm_check(mm) == NULL);
    KEXPECT_EQ(user_peek(HUGE(8)), 1);
    KEXPECT_EQ(user_peek(HUGE(9)), 2);
    KEXPECT_EQ(user_peek(HUGE(8) + PAGE_SIZE), 0);
    KEXPECT_EQ(user_peek(HUGE(0)), -EFAULT);
    EXPECT_POOL(3, 1, 1, 0);
    KEXPECT_EQ(mm_mremap(mm, HUGE(8), BYTES(2), PAGE_SIZE, 0, 0), (s64)HUGE(8));
    EXPECT_POOL(3, 2, 1, 0);
    /* To a directory of its own, over another huge page. */
    KEXPECT_EQ(map(mm, 600, 1, RW, PRIVATE), (s64)HUGE(600));
    KEXPECT_EQ(user_poke(HUGE(600), 5), 0);
    KEXPECT_EQ(mm_mremap(mm, HUGE(8), BYTES(1), BYTES(1), move, HUGE(600)), (s64)HUGE(600));
    KEXPECT_EQ(user_peek(HUGE(600)), 1);
    EXPECT_POOL(3, 2, 1, 0);
    KEXPECT_EQ(user_poke(HUGE(2), 3), 0); /* what stayed behind has its promise still */
    EXPECT_POOL(3, 1, 0, 0);
    KEXPECT(mm_check(mm) == NULL);
    leave();
}

KTEST(huge, page_tables_come_back_with_the_area)
{
    struct mm *mm = enter(1);
    if (!mm)
        KTEST_SKIP("no huge page");
    u64 tables = mm->space.table_pages;
    map(mm, 0, 1, RW, PRIVATE);
    KEXPECT_EQ(user_poke(HUGE(0), 1), 0);
    KEXPECT_EQ(mm->space.table_pages,
               tables + 2); /* a directory and its own table, but no lowest one */
    KEXPECT_EQ(mm_munmap(mm, HUGE(0), BYTES(1)), 0);
    KEXPECT_EQ(mm->space.table_pages, tables);
    leave();
}

KTEST(huge, populating_and_locking_bring_pages_in)
{
    struct mm *mm = enter(3);
    if (!mm)
        KTEST_SKIP("no three huge pages");
    struct task_fault_counters was = counters();
    KEXPECT_EQ(map(mm, 0, 2, RW, PRIVATE | MAP_POPULATE), (s64)HUGE(0));
    KEXPECT_EQ(counters().minor - was.minor, 2);
    EXPECT_POOL(3, 1, 0, 0);
    map(mm, 2, 2, RW, PRIVATE | MAP_NORESERVE);
    KEXPECT_EQ(mm_mlock(mm, HUGE(2), PAGE_SIZE, true), 0);
    KEXPECT_EQ(counters().minor - was.minor, 3);
    EXPECT_POOL(3, 0, 0, 0);
    KEXPECT_EQ(mm->n_vmas, 2); /* locking cuts nothing */
    KEXPECT_EQ(mm_populate(mm, HUGE(3), BYTES(1), false), -EFAULT);
    leave();
}

/* ---- Threads ---- */

#define TOUCHERS 4

static void touch_all(void *arg)
{
    struct mm *mm = arg;
    test_mm_attach(mm);
    for (unsigned i = 0; i < 4; i++)
        if (user_poke(HUGE(i) + PAGE_SIZE * cpu_index(), 1))
            task_exit(1);
    test_mm_attach(NULL);
}

struct toucher {
    struct mm *mm;
    u8 byte;
    int error;
    bool has_ended;
};

static void touch_one(void *arg)
{
    struct toucher *toucher = arg;
    test_mm_attach(toucher->mm);
    toucher->error = user_poke(HUGE(0) + toucher->byte, toucher->byte);
    test_mm_attach(NULL);
    atomic_store(&toucher->has_ended, true);
}

static void wait_until_it_sleeps_or_has_ended(const struct task *task,
                                              const struct toucher *toucher)
{
    while (!atomic_load(&toucher->has_ended) &&
           (atomic_load(&task->state) != TASK_SLEEPING || atomic_load(&task->on_cpu)))
        sched_yield();
}

KTEST(huge, who_wants_a_page_that_another_brings_waits_for_it)
{
    struct mm *mm = enter(1);
    if (!mm)
        KTEST_SKIP("no huge page");
    struct test_threads threads = {.n = 0};
    struct toucher first = {mm, 1, 1, false}, second = {mm, 2, 1, false};
    map(mm, 0, 1, RW, PRIVATE);
    sync_point_arm("huge_page_taken", NULL);
    threads_add(&threads, touch_one, &first);
    sync_point_wait_parked("huge_page_taken");
    EXPECT_POOL(1, 0, 0, 0);
    const struct task *task = threads_add(&threads, touch_one, &second);
    KASSERT(task != NULL);
    wait_until_it_sleeps_or_has_ended(task, &second);
    KEXPECT(!second.has_ended);
    sync_point_release("huge_page_taken");
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(first.error, 0);
    KEXPECT_EQ(second.error, 0);
    KEXPECT_EQ(user_peek(HUGE(0) + 1), 1);
    KEXPECT_EQ(user_peek(HUGE(0) + 2), 2);
    leave();
}

KTEST(huge, threads_that_want_one_page_do_not_take_two)
{
    struct mm *mm = enter(4);
    if (!mm)
        KTEST_SKIP("no four huge pages");
    struct test_threads threads = {.n = 0};
    map(mm, 0, 4, RW, PRIVATE); /* as many as promised, none to spare */
    for (unsigned i = 0; i < TOUCHERS; i++)
        threads_add(&threads, touch_all, mm);
    KEXPECT_EQ(threads_join(&threads), 0);
    EXPECT_POOL(4, 0, 0, 0);
    KEXPECT_EQ(mm->huge_pages, 4);
    leave();
}

/* ---- All at once ---- */

#define STORM_PAGES  6
#define STORM_ROUNDS 60

struct storm {
    struct mm *mm;
    u32 seed;
};

static u32 draw(struct storm *storm, u32 n)
{
    storm->seed = storm->seed * 1664525 + 1013904223;
    return (storm->seed >> 16) % n;
}

/* Stores and loads; what is protected or taken away at that moment is refused. */
static void storm_touch(void *arg)
{
    struct storm *storm = arg;
    test_mm_attach(storm->mm);
    for (unsigned i = 0; i < 4 * STORM_ROUNDS; i++) {
        u64 addr = HUGE(draw(storm, STORM_PAGES)) + draw(storm, HUGE_PAGE_FRAMES) * PAGE_SIZE;
        if (draw(storm, 2))
            (void)user_poke(addr, 1);
        else
            (void)user_peek(addr);
    }
    test_mm_attach(NULL);
}

static void storm_change(void *arg)
{
    struct storm *storm = arg;
    for (unsigned i = 0; i < STORM_ROUNDS; i++) {
        u64 addr = HUGE(draw(storm, STORM_PAGES));
        switch (draw(storm, 4)) {
        case 0: (void)mm_madvise(storm->mm, addr, BYTES(1), MADV_DONTNEED); break;
        case 1:
            (void)mm_mprotect(storm->mm, addr, BYTES(1), draw(storm, 2) ? RW : PROT_READ);
            break;
        case 2:
            (void)mm_mremap(storm->mm, addr, BYTES(1), BYTES(1), MREMAP_MAYMOVE | MREMAP_FIXED,
                            HUGE(draw(storm, STORM_PAGES)));
            break;
        case 3: (void)mm_mmap(storm->mm, addr, BYTES(1), RW, PRIVATE | MAP_FIXED, NULL, 0); break;
        }
    }
}

static void storm_fork(void *arg)
{
    struct storm *storm = arg;
    for (unsigned i = 0; i < STORM_ROUNDS / 4; i++) {
        struct mm *child;
        if (mm_fork(storm->mm, &child))
            continue;
        test_mm_attach(child);
        for (unsigned n = 0; n < STORM_PAGES; n++) {
            (void)user_poke(HUGE(n), 2);
            sched_yield();
        }
        test_mm_attach(NULL);
        mm_put(child);
    }
}

KTEST(huge, a_storm_leaves_every_count_right)
{
    struct mm *mm = enter(STORM_PAGES); /* none to spare: the parent takes from its children */
    if (!mm)
        KTEST_SKIP("no six huge pages");
    static void (*const acts[])(void *) = {storm_touch, storm_touch, storm_change, storm_fork};
    struct storm storms[ARRAY_SIZE(acts)];
    struct test_threads threads = {.n = 0};
    map(mm, 0, STORM_PAGES, RW, PRIVATE);
    for (unsigned i = 0; i < ARRAY_SIZE(acts); i++) {
        storms[i] = (struct storm){mm, i + 1};
        threads_add(&threads, acts[i], &storms[i]);
    }
    KEXPECT_EQ(threads_join(&threads), 0);
    leave();
}
