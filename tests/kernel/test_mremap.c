/*
 * mremap, msync and the mlock family: results, areas and contents as on Linux, counts exact, nothing lost on an error.
 */
#include "kernel/sched/sync_point.h"
#include "kernel/sched/task.h"
#include "lib/string.h"
#include "mm/fork.h"
#include "mm/reclaim.h"
#include "mm/user_memory.h"
#include "tests/kernel/fault_rig.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/test_mm.h"

#define BASE        0x300000000ul
#define PAGE(n)     (BASE + (u64)(n)*PAGE_SIZE)
#define BYTES(n)    ((u64)(n)*PAGE_SIZE)
#define RW          (PROT_READ | PROT_WRITE)
#define ANON        (MAP_PRIVATE | MAP_ANONYMOUS)
#define MOVE_TO     (MREMAP_MAYMOVE | MREMAP_FIXED)
#define SHOWN_PAGES 4096

static struct mm *mm;

static bool enter(void)
{
    mm = test_mm_enter();
    return mm != NULL;
}

static void map_anon(unsigned first, unsigned pages, u32 prot)
{
    KEXPECT_EQ(mm_mmap(mm, PAGE(first), BYTES(pages), prot, ANON | MAP_FIXED, NULL, 0),
               PAGE(first));
}

static void touch(unsigned first, unsigned pages)
{
    for (unsigned i = first; i < first + pages; i++)
        KEXPECT_EQ(user_poke(PAGE(i), (u8)(i + 1)), 0);
}

static s64 remap(unsigned from, unsigned old_pages, unsigned new_pages, u32 flags, u64 to)
{
    return mm_mremap(mm, PAGE(from), BYTES(old_pages), BYTES(new_pages), flags, to);
}

static void expect_areas(const char *wanted)
{
    char areas[256];
    test_mm_render(mm, BASE, SHOWN_PAGES, areas, sizeof(areas));
    KEXPECT_STREQ(areas, wanted);
}

/* The steps and answers of Linux: tests/data/vma.txt, "mremap". */
KTEST(mremap, areas_are_those_of_linux)
{
    KASSERT(enter());
    map_anon(0, 4, RW);
    KEXPECT_EQ(remap(0, 4, 6, 0, 0), PAGE(0));
    expect_areas("[0,6)rw-p0");
    map_anon(6, 1, PROT_READ);
    KEXPECT_EQ(remap(0, 6, 8, 0, 0), -ENOMEM);
    expect_areas("[0,6)rw-p0 [6,7)r--p0");
    KEXPECT_EQ(remap(0, 6, 2, 0, 0), PAGE(0));
    expect_areas("[0,2)rw-p0 [6,7)r--p0");
    KEXPECT_EQ(remap(0, 2, 4, MOVE_TO, PAGE(20)), PAGE(20));
    expect_areas("[6,7)r--p0 [20,24)rw-p0");
    KEXPECT_EQ(remap(20, 4, 4, MOVE_TO, PAGE(22)), -EINVAL);
    KEXPECT_EQ(remap(100, 1, 2, MREMAP_MAYMOVE, 0), -EFAULT);
    KEXPECT_EQ(remap(20, 0, 1, MREMAP_MAYMOVE, 0), -EINVAL);
    map_anon(30, 2, RW);
    map_anon(32, 2, PROT_READ);
    KEXPECT_EQ(remap(30, 4, 6, MREMAP_MAYMOVE, 0), -EFAULT);
    expect_areas("[6,7)r--p0 [20,24)rw-p0 [30,32)rw-p0 [32,34)r--p0");
    test_mm_leave();
}

KTEST(mremap, bad_arguments_are_refused_and_change_nothing)
{
    KASSERT(enter());
    map_anon(0, 4, RW);
    const struct {
        u64 addr, old_length, new_length;
        u32 flags;
        u64 to;
        s64 wanted;
    } cases[] = {
        {PAGE(0), BYTES(4), BYTES(8), 8, 0, -EINVAL},
        {PAGE(0), BYTES(4), BYTES(8), MREMAP_FIXED, PAGE(20), -EINVAL},
        {PAGE(0), BYTES(4), BYTES(4), MREMAP_DONTUNMAP, 0, -EINVAL},
        {PAGE(0), BYTES(4), BYTES(8), MREMAP_DONTUNMAP | MREMAP_MAYMOVE, 0, -EINVAL},
        {PAGE(0) + 1, BYTES(4), BYTES(8), MREMAP_MAYMOVE, 0, -EINVAL},
        {PAGE(0), BYTES(4), 0, MREMAP_MAYMOVE, 0, -EINVAL},
        {PAGE(0), BYTES(4), ~0ul, MREMAP_MAYMOVE, 0, -EINVAL},
        {PAGE(0), BYTES(4), 1ul << 47, MREMAP_MAYMOVE, 0, -ENOMEM},
        {PAGE(0), BYTES(4), ~0ul - 2 * PAGE_SIZE, MREMAP_MAYMOVE, 0, -ENOMEM},
        {PAGE(0), BYTES(4), BYTES(4), MOVE_TO, PAGE(20) + 1, -EINVAL},
        {PAGE(0), BYTES(4), BYTES(4), MOVE_TO, USER_ADDRESS_END - PAGE_SIZE, -EINVAL},
        {PAGE(0), BYTES(4), BYTES(4), MOVE_TO, ~0xffful, -EINVAL},
        {PAGE(0), BYTES(4), BYTES(4), MOVE_TO, 0, -EPERM},
        {0xffff800000000000ul, BYTES(4), BYTES(4), MREMAP_MAYMOVE, 0, -EFAULT},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++)
        if (!KEXPECT_EQ(mm_mremap(mm, cases[i].addr, cases[i].old_length, cases[i].new_length,
                                  cases[i].flags, cases[i].to),
                        cases[i].wanted))
            ktest_note("case %u", i);
    expect_areas("[0,4)rw-p0");
    test_mm_leave();
}

/* From the end of one table into the middle of two others. */
KTEST(mremap, anonymous_pages_move_with_their_contents)
{
    const unsigned from = 508, to = 1530;
    KASSERT(enter());
    map_anon(from, 8, RW);
    touch(from, 8);
    KEXPECT_EQ(user_peek(PAGE(from) + 1), 0);
    u64 rss = mm->rss_anon, started = task_current()->faults.started;
    KEXPECT_EQ(remap(from, 8, 12, MOVE_TO, PAGE(to)), PAGE(to));
    for (unsigned i = 0; i < 8; i++)
        KEXPECT_EQ(user_peek(PAGE(to + i)), (u8)(from + i + 1));
    KEXPECT_EQ(task_current()->faults.started, started);
    KEXPECT_EQ(user_peek(PAGE(to + 8)), 0);
    KEXPECT_EQ(user_peek(PAGE(from)), -EFAULT);
    KEXPECT_EQ(mm->rss_anon, rss);
    test_mm_leave();
}

KTEST(mremap, what_lay_at_the_target_is_gone)
{
    KASSERT(enter());
    map_anon(0, 2, RW);
    touch(0, 2);
    map_anon(20, 6, RW);
    touch(20, 6);
    KEXPECT_EQ(remap(0, 2, 2, MOVE_TO, PAGE(22)), PAGE(22));
    KEXPECT_EQ(user_peek(PAGE(21)), 22);
    KEXPECT_EQ(user_peek(PAGE(22)), 1);
    KEXPECT_EQ(user_peek(PAGE(23)), 2);
    KEXPECT_EQ(user_peek(PAGE(24)), 25);
    KEXPECT_EQ(mm->rss_anon, 6);
    test_mm_leave();
}

KTEST(mremap, moving_a_part_leaves_the_rest)
{
    KASSERT(enter());
    map_anon(0, 6, RW);
    touch(0, 6);
    KEXPECT_EQ(remap(2, 2, 2, MOVE_TO, PAGE(20)), PAGE(20));
    expect_areas("[0,2)rw-p0 [4,6)rw-p0 [20,22)rw-p0");
    KEXPECT_EQ(user_peek(PAGE(21)), 4);
    KEXPECT_EQ(user_peek(PAGE(5)), 6);
    test_mm_leave();
}

KTEST(mremap, shorter_at_a_target_drops_the_tail)
{
    KASSERT(enter());
    map_anon(0, 6, RW);
    touch(0, 6);
    KEXPECT_EQ(remap(0, 6, 2, MOVE_TO, PAGE(20)), PAGE(20));
    expect_areas("[20,22)rw-p0");
    KEXPECT_EQ(mm->rss_anon, 2);
    test_mm_leave();
}

KTEST(mremap, blocked_growth_moves_if_it_may)
{
    KASSERT(enter());
    map_anon(0, 2, RW);
    map_anon(2, 1, PROT_READ);
    touch(0, 2);
    s64 place = remap(0, 2, 4, MREMAP_MAYMOVE, 0);
    KEXPECT_EQ(place, mm->mmap_top - BYTES(4));
    KEXPECT_EQ(user_peek((u64)place + BYTES(1)), 2);
    KEXPECT_EQ(user_peek((u64)place + BYTES(3)), 0);
    test_mm_leave();
}

KTEST(mremap, dontunmap_leaves_an_empty_area)
{
    KASSERT(enter());
    map_anon(0, 2, RW);
    touch(0, 2);
    KEXPECT_EQ(remap(0, 2, 2, MOVE_TO | MREMAP_DONTUNMAP, PAGE(20)), PAGE(20));
    expect_areas("[0,2)rw-p0 [20,22)rw-p0");
    KEXPECT_EQ(user_peek(PAGE(21)), 2);
    KEXPECT_EQ(user_peek(PAGE(1)), 0);
    test_mm_leave();
}

KTEST(mremap, dontunmap_leaves_an_area_of_its_own)
{
    KASSERT(enter());
    /* Both could be one area: they are as new, and one goes on with the other. */
    map_anon(0, 4, RW);
    KEXPECT_EQ(remap(2, 2, 2, MOVE_TO | MREMAP_DONTUNMAP, PAGE(4)), PAGE(4));
    expect_areas("[0,4)rw-p0 [4,6)rw-p0");
    KEXPECT_EQ(mm_munmap(mm, PAGE(0), BYTES(8)), 0);
    /* What was locked is so at its new place alone. */
    map_anon(0, 4, RW);
    KEXPECT_EQ(mm_mlock(mm, PAGE(0), BYTES(4), false), 0);
    KEXPECT_EQ(remap(1, 2, 2, MOVE_TO | MREMAP_DONTUNMAP, PAGE(20)), PAGE(20));
    expect_areas("[0,1)rw-p0 [1,3)rw-p0 [3,4)rw-p0 [20,22)rw-p0");
    KEXPECT_EQ(mm->locked_pages, 4);
    KEXPECT(!(vma_find(mm, PAGE(1))->flags & VMA_LOCKED));
    KEXPECT(vma_find(mm, PAGE(20))->flags & VMA_LOCKED);
    test_mm_leave();
}

KTEST(mremap, a_call_that_fails_at_its_source_has_unmapped_its_target)
{
    KASSERT(enter());
    map_anon(0, 2, RW);
    map_anon(2, 2, PROT_READ);
    map_anon(20, 8, RW);
    KEXPECT_EQ(remap(0, 4, 4, MOVE_TO, PAGE(21)), -EFAULT); /* two areas */
    expect_areas("[0,2)rw-p0 [2,4)r--p0 [20,21)rw-p0 [25,28)rw-p0");
    KEXPECT_EQ(remap(0, 0, 1, MOVE_TO, PAGE(27)), -EINVAL);
    expect_areas("[0,2)rw-p0 [2,4)r--p0 [20,21)rw-p0 [25,27)rw-p0");
    KEXPECT_EQ(remap(0, 0, 1, MOVE_TO, PAGE(0)), -EFAULT);
    expect_areas("[1,2)rw-p0 [2,4)r--p0 [20,21)rw-p0 [25,27)rw-p0");
    KEXPECT_EQ(remap(100, 1, 1, MOVE_TO, PAGE(25)), -EFAULT); /* nothing there: not even begun */
    expect_areas("[1,2)rw-p0 [2,4)r--p0 [20,21)rw-p0 [25,27)rw-p0");
    test_mm_leave();
}

KTEST(mremap, pages_shared_by_fork_move_in_one_space_only)
{
    struct mm *child;
    KASSERT(enter());
    map_anon(0, 2, RW);
    touch(0, 2);
    KASSERT_EQ(mm_fork(mm, &child), 0);
    KEXPECT_EQ(remap(0, 2, 2, MOVE_TO, PAGE(20)), PAGE(20));
    KEXPECT_EQ(user_poke(PAGE(20), 99), 0);
    test_mm_attach(child);
    KEXPECT_EQ(user_peek(PAGE(0)), 1);
    KEXPECT_EQ(user_peek(PAGE(20)), -EFAULT);
    test_mm_attach(mm);
    mm_put(child);
    KEXPECT_EQ(user_peek(PAGE(20)), 99);
    KEXPECT_EQ(user_peek(PAGE(21)), 2);
    test_mm_leave();
}

KTEST(mremap, protected_pages_move_too)
{
    KASSERT(enter());
    map_anon(0, 2, RW);
    touch(0, 2);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(0), BYTES(2), PROT_NONE), 0);
    KEXPECT_EQ(remap(0, 2, 2, MOVE_TO, PAGE(20)), PAGE(20));
    KEXPECT_EQ(user_peek(PAGE(20)), -EFAULT);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(20), BYTES(2), RW), 0);
    KEXPECT_EQ(user_peek(PAGE(21)), 2);
    test_mm_leave();
}

KTEST(mremap, file_areas_keep_their_offset_and_their_own_pages)
{
    struct memory_file f;
    KASSERT(enter());
    memory_file_init(&f, 8, true, true);
    KEXPECT_EQ(mm_mmap(mm, PAGE(0), BYTES(4), RW, MAP_PRIVATE | MAP_FIXED, &f.file, BYTES(2)),
               PAGE(0));
    KEXPECT_EQ(user_poke(PAGE(1), 200), 0);
    KEXPECT_EQ(user_peek(PAGE(2)), memory_file_byte(4));
    KEXPECT_EQ(remap(1, 3, 4, MOVE_TO, PAGE(20)), PAGE(20));
    expect_areas("[0,1)rw-p+f2 [20,24)rw-p+f3");
    KEXPECT_EQ(user_peek(PAGE(20)), 200);
    KEXPECT_EQ(user_peek(PAGE(21)), memory_file_byte(4));
    KEXPECT_EQ(user_peek(PAGE(23)), memory_file_byte(6));
    KEXPECT_EQ(remap(0, 1, 2, 0, 0), PAGE(0));
    expect_areas("[0,2)rw-p+f2 [20,24)rw-p+f3");
    KEXPECT_EQ(user_peek(PAGE(1)), memory_file_byte(3));
    test_mm_leave();
    memory_file_destroy(&f);
}

KTEST(mremap, old_length_zero_maps_shared_memory_a_second_time)
{
    struct memory_file f;
    KASSERT(enter());
    memory_file_init(&f, 4, true, true);
    KEXPECT_EQ(mm_mmap(mm, PAGE(0), BYTES(4), RW, MAP_SHARED | MAP_FIXED, &f.file, 0), PAGE(0));
    KEXPECT_EQ(remap(1, 0, 2, MOVE_TO, PAGE(20)), PAGE(20));
    expect_areas("[0,4)rw-s+f0 [20,22)rw-s+f1");
    KEXPECT_EQ(user_poke(PAGE(1), 77), 0);
    KEXPECT_EQ(user_peek(PAGE(20)), 77);
    test_mm_leave();
    memory_file_destroy(&f);
}

KTEST(mremap, limit_of_address_space_holds)
{
    KASSERT(enter());
    map_anon(0, 4, RW);
    touch(0, 4);
    struct mm_limits limits = MM_NO_LIMITS;
    limits.as_bytes = BYTES(6);
    mm_set_limits(mm, &limits);
    KEXPECT_EQ(remap(0, 4, 7, 0, 0), -ENOMEM);
    KEXPECT_EQ(remap(0, 4, 7, MOVE_TO, PAGE(20)), -ENOMEM);
    KEXPECT_EQ(remap(0, 4, 4, MOVE_TO | MREMAP_DONTUNMAP, PAGE(20)), -ENOMEM);
    KEXPECT_EQ(remap(0, 4, 6, MOVE_TO, PAGE(20)), PAGE(20));
    KEXPECT_EQ(user_peek(PAGE(23)), 4);
    test_mm_leave();
}

/* ---- msync ---- */

KTEST(msync, mapped_memory_is_synchronous_and_holes_are_enomem)
{
    KASSERT(enter());
    map_anon(0, 2, RW);
    map_anon(4, 2, RW);
    KEXPECT_EQ(mm_msync(mm, PAGE(0), BYTES(2), MS_SYNC), 0);
    KEXPECT_EQ(mm_msync(mm, PAGE(0), BYTES(2), MS_ASYNC | MS_INVALIDATE), 0);
    KEXPECT_EQ(mm_msync(mm, PAGE(0), 0, MS_SYNC), 0);
    KEXPECT_EQ(mm_msync(mm, PAGE(0), BYTES(6), MS_SYNC), -ENOMEM);
    KEXPECT_EQ(mm_msync(mm, PAGE(2), BYTES(2), MS_SYNC), -ENOMEM);
    KEXPECT_EQ(mm_msync(mm, PAGE(5), BYTES(2), MS_SYNC), -ENOMEM);
    KEXPECT_EQ(mm_msync(mm, PAGE(0), ~0ul, MS_SYNC), 0); /* rounding wraps, to nothing */
    KEXPECT_EQ(mm_msync(mm, PAGE(0), ~0xffful, MS_SYNC), -ENOMEM);
    KEXPECT_EQ(mm_msync(mm, PAGE(0) + 1, BYTES(1), MS_SYNC), -EINVAL);
    KEXPECT_EQ(mm_msync(mm, PAGE(0), BYTES(1), MS_SYNC | MS_ASYNC), -EINVAL);
    KEXPECT_EQ(mm_msync(mm, PAGE(0), BYTES(1), 8), -EINVAL);
    KEXPECT_EQ(mm_mlock(mm, PAGE(0), BYTES(1), true), 0);
    KEXPECT_EQ(mm_msync(mm, PAGE(0), BYTES(1), MS_SYNC | MS_INVALIDATE), -EBUSY);
    test_mm_leave();
}

/* ---- mlock ---- */

KTEST(mlock, locked_pages_are_there_and_writing_them_is_no_fault)
{
    KASSERT(enter());
    map_anon(0, 4, RW);
    KEXPECT_EQ(mm_mlock(mm, PAGE(1) + 100, BYTES(1), true), 0); /* parts of two pages */
    KEXPECT_EQ(mm->rss_anon, 2);
    expect_areas("[0,1)rw-p0 [1,3)rw-p0 [3,4)rw-p0");
    u64 started = task_current()->faults.started;
    KEXPECT_EQ(user_poke(PAGE(1), 1), 0);
    KEXPECT_EQ(user_poke(PAGE(2), 1), 0);
    KEXPECT_EQ(task_current()->faults.started, started);
    KEXPECT_EQ(mm_madvise(mm, PAGE(1), BYTES(1), MADV_DONTNEED), -EINVAL);
    KEXPECT_EQ(mm_munlock(mm, PAGE(0), BYTES(4)), 0);
    KEXPECT_EQ(mm_madvise(mm, PAGE(1), BYTES(1), MADV_DONTNEED), 0);
    test_mm_leave();
}

KTEST(mlock, a_page_that_cannot_be_read_is_efault_and_one_behind_the_end_enomem)
{
    struct memory_file f;
    KASSERT(enter());
    memory_file_init(&f, 4, true, true);
    f.bad_index = 2;
    KEXPECT_EQ(mm_mmap(mm, PAGE(0), BYTES(6), PROT_READ, MAP_SHARED | MAP_FIXED, &f.file, 0),
               PAGE(0));
    KEXPECT_EQ(mm_mlock(mm, PAGE(0), BYTES(2), true), 0);
    u64 reads = f.pages_read;
    KEXPECT_EQ(mm_mlock(mm, PAGE(2), BYTES(1), true), -EFAULT);
    KEXPECT(f.pages_read - reads <= 2 * 4); /* a window, and the page by itself */
    KEXPECT_EQ(mm_mlock(mm, PAGE(4), BYTES(1), true), -ENOMEM);
    KEXPECT_EQ(mm_mlock(mm, PAGE(2), BYTES(4), false), 0);
    test_mm_leave();
    memory_file_destroy(&f);
}

KTEST(mlock, on_fault_reads_nothing_in)
{
    KASSERT(enter());
    map_anon(0, 4, RW);
    KEXPECT_EQ(mm_mlock(mm, PAGE(0), BYTES(4), false), 0);
    KEXPECT_EQ(mm->rss_anon, 0);
    test_mm_leave();
}

KTEST(mlock, a_hole_is_enomem_and_so_is_what_nobody_may_touch)
{
    KASSERT(enter());
    map_anon(0, 2, RW);
    map_anon(4, 2, PROT_NONE);
    KEXPECT_EQ(mm_mlock(mm, PAGE(0), BYTES(4), true), -ENOMEM);
    KEXPECT_EQ(mm_mlock(mm, PAGE(2), BYTES(1), true), -ENOMEM);
    KEXPECT_EQ(mm_mlock(mm, PAGE(4), BYTES(2), true), -ENOMEM);
    KEXPECT_EQ(mm_munlock(mm, PAGE(0), BYTES(4)), -ENOMEM);
    KEXPECT_EQ(mm_mlock(mm, PAGE(0), ~0ul - 1, true), 0); /* rounding wraps, to nothing */
    KEXPECT_EQ(mm_mlock(mm, PAGE(0), ~0xffful, true), -EINVAL);
    KEXPECT_EQ(mm_mlock(mm, PAGE(0), 0, true), 0);
    test_mm_leave();
}

/* The first area's failure ended the populating before the second; mprotect brings in the first alone. */
KTEST(mlock, mprotect_brings_in_only_what_becomes_writable)
{
    struct memory_file f;
    KASSERT(enter());
    memory_file_init(&f, 4, true, true);
    map_anon(0, 2, PROT_NONE);
    KEXPECT_EQ(mm_mmap(mm, PAGE(2), BYTES(6), RW, MAP_PRIVATE | MAP_FIXED, &f.file, 0), PAGE(2));
    KEXPECT_EQ(mm_mlock(mm, PAGE(0), BYTES(5), true), -ENOMEM);
    expect_areas("[0,2)---p0 [2,5)rw-p+f0 [5,8)rw-p+f3");
    KEXPECT_EQ(mm_mprotect(mm, PAGE(0), BYTES(5), RW), 0);
    KEXPECT_EQ(mm->rss_anon, 2);
    KEXPECT_EQ(f.pages_read, 0);
    KEXPECT_EQ(mm_munlock_all(mm), 0);
    expect_areas("[0,2)rw-p0 [2,8)rw-p+f0");
    test_mm_leave();
    memory_file_destroy(&f);
}

KTEST(mlock, reclaim_passes_over_locked_pages_of_files)
{
    struct memory_file f;
    KASSERT(enter());
    memory_file_init(&f, 4, true, true);
    KEXPECT_EQ(mm_mmap(mm, PAGE(0), BYTES(4), PROT_READ, MAP_PRIVATE | MAP_FIXED, &f.file, 0),
               PAGE(0));
    KEXPECT_EQ(mm_mlock(mm, PAGE(0), BYTES(4), true), 0);
    KEXPECT_EQ(mm->rss_file, 4);
    for (unsigned i = 0; i < 3; i++)
        reclaim_pages(1ul << 20);
    KEXPECT_EQ(mm->rss_file, 4);
    KEXPECT_EQ(mm_munlock(mm, PAGE(0), BYTES(4)), 0);
    for (unsigned i = 0; i < 3; i++)
        reclaim_pages(1ul << 20);
    KEXPECT_EQ(mm->rss_file, 0);
    test_mm_leave();
    memory_file_destroy(&f);
}

KTEST(mlock, all_covers_what_is_there_and_what_will_be)
{
    KASSERT(enter());
    map_anon(0, 2, RW);
    KEXPECT_EQ(mm_mlock_all(mm, 0), -EINVAL);
    KEXPECT_EQ(mm_mlock_all(mm, MCL_ONFAULT), -EINVAL);
    KEXPECT_EQ(mm_mlock_all(mm, 8), -EINVAL);
    KEXPECT_EQ(mm_mlock_all(mm, MCL_CURRENT), 0);
    KEXPECT_EQ(mm->rss_anon, 2);
    map_anon(4, 2, RW);
    KEXPECT_EQ(mm->rss_anon, 2);
    KEXPECT_EQ(mm_mlock_all(mm, MCL_FUTURE), 0);
    map_anon(8, 2, RW);
    KEXPECT_EQ(mm->rss_anon, 4);
    KEXPECT_EQ(mm_mlock_all(mm, MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT), 0);
    map_anon(12, 2, RW);
    KEXPECT_EQ(mm->rss_anon, 4);
    KEXPECT_EQ(mm_munlock_all(mm), 0);
    map_anon(16, 2, RW);
    KEXPECT_EQ(mm->rss_anon, 4);
    KEXPECT_EQ(mm_madvise(mm, PAGE(0), BYTES(2), MADV_DONTNEED), 0);
    test_mm_leave();
}

/* ---- A move that another thread comes between ---- */

static int peek_in(struct mm *space, u64 addr)
{
    test_mm_attach(space);
    int byte = user_peek(addr);
    test_mm_attach(NULL);
    return byte;
}

static void poke_in(struct mm *space, u64 addr, u8 byte)
{
    test_mm_attach(space);
    KEXPECT_EQ(user_poke(addr, byte), 0);
    test_mm_attach(NULL);
}

/* The two pages at addr to page `argument` of the rig; `write`: the old area stays. */
static void act_move(struct actor *actor)
{
    actor->result =
        mm_mremap(actor->rig->mm, actor->addr, BYTES(2), BYTES(2),
                  MOVE_TO | (actor->write ? MREMAP_DONTUNMAP : 0), rig_addr(actor->argument));
}

static void truncate_while_moved(struct fault_rig *rig, struct actor *mover, u64 file_bytes)
{
    struct actor truncater = {.argument = file_bytes};
    sync_point_arm("mremap_pages_moved", NULL);
    actor_start(mover, rig, act_move);
    sync_point_wait_parked("mremap_pages_moved");
    actor_start(&truncater, rig, act_truncate);
    KEXPECT(actor_settle(&truncater));
    sync_point_release("mremap_pages_moved");
    actor_join(mover);
    actor_join(&truncater);
    KEXPECT_EQ(mover->result, (s64)rig_addr(mover->argument));
}

/*
 * mremap                                truncation of the file
 * anonymous pages come to where a
 * private mapping of the file lay
 *                                       finds that area on the file's list
 * takes it off
 */
KTEST(mremap, a_truncation_leaves_alone_what_came_in_the_place_of_the_file)
{
    struct fault_rig rig;
    struct actor mover = {.addr = BASE, .argument = 2};
    if (KEXPECT(rig_init(&rig, 16, RW, MAP_PRIVATE))) {
        KEXPECT_EQ(mm_mmap(rig.mm, BASE, BYTES(2), RW, ANON | MAP_FIXED, NULL, 0), BASE);
        poke_in(rig.mm, PAGE(0), 1);
        poke_in(rig.mm, PAGE(1), 2);
        poke_in(rig.mm, rig_addr(3), 3);
        truncate_while_moved(&rig, &mover, 0);
        KEXPECT_EQ(peek_in(rig.mm, rig_addr(2)), 1);
        KEXPECT_EQ(peek_in(rig.mm, rig_addr(3)), 2);
    }
    rig_end(&rig);
}

/* Page 0's copy lies where page 6 lay, in what was the same area. Pages from 4 on go; page 0 does not. */
KTEST(mremap, a_truncation_finds_copies_by_the_page_they_are_of)
{
    struct fault_rig rig;
    struct actor mover = {.addr = rig_addr(0), .argument = 6};
    if (KEXPECT(rig_init(&rig, 16, RW, MAP_PRIVATE))) {
        poke_in(rig.mm, rig_addr(0), 1);
        poke_in(rig.mm, rig_addr(5), 5);
        truncate_while_moved(&rig, &mover, BYTES(4));
        KEXPECT_EQ(peek_in(rig.mm, rig_addr(6)), 1);
        KEXPECT_EQ(peek_in(rig.mm, rig_addr(5)), -EFAULT);
    }
    rig_end(&rig);
}

/* A copy that was moved beyond the new end is found at its new place. */
KTEST(mremap, a_truncation_finds_copies_where_they_were_moved)
{
    struct fault_rig rig;
    struct actor mover = {.addr = rig_addr(10), .argument = 20};
    if (KEXPECT(rig_init(&rig, 16, RW, MAP_PRIVATE))) {
        poke_in(rig.mm, rig_addr(10), 1);
        truncate_while_moved(&rig, &mover, BYTES(4));
        KEXPECT_EQ(peek_in(rig.mm, rig_addr(20)), -EFAULT);
        KEXPECT_EQ(rig.mm->rss_anon, 0);
    }
    rig_end(&rig);
}

/*
 * The old area stays, and the target is a part of it: what stays is a piece, new in the tree, and
 * not locked yet when a thread stores into it for the first time. Its page may move; then the area
 * at the target owns it, or a fork would forget it.
 */
FAULT_TEST(mremap, a_store_into_the_piece_that_stays_is_not_lost_in_a_fork)
{
    struct fault_rig rig;
    struct actor mover = {.addr = rig_addr(0), .argument = 6, .write = true};
    struct actor store = {.addr = rig_addr(0), .argument = 1, .write = true};
    struct mm *child;
    if (KEXPECT(rig_init(&rig, 16, RW, MAP_PRIVATE))) {
        sync_point_arm("vma_edit_committed", NULL);
        actor_start(&mover, &rig, act_move);
        sync_point_wait_parked("vma_edit_committed");
        actor_start(&store, &rig, act_touch);
        bool is_through = actor_settle(&store);
        KEXPECT_EQ(is_through, strcmp(rig_fault_lock(), "vma") == 0);
        sync_point_release("vma_edit_committed");
        actor_join(&mover);
        actor_join(&store);
        KEXPECT_EQ(peek_in(rig.mm, rig_addr(is_through ? 6 : 0)), 1);
        if (KEXPECT_EQ(mm_fork(rig.mm, &child), 0)) {
            KEXPECT_EQ(peek_in(child, rig_addr(is_through ? 6 : 0)), 1);
            mm_put(child);
        }
    }
    rig_end(&rig);
}
