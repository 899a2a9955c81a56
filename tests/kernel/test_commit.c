/*
 * Committed memory: what is promised by which call, undone by which, and refused in which mode.
 */
#include "fs/tmpfs.h"
#include "fs/vfs.h"
#include "lib/errno.h"
#include "lib/format.h"
#include "lib/string.h"
#include "mm/commit.h"
#include "mm/core/frames.h"
#include "mm/fork.h"
#include "mm/knobs.h"
#include "mm/user_memory.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/test_mm.h"

#define BASE     0x300000000ul
#define PAGE(n)  (BASE + (u64)(n)*PAGE_SIZE)
#define BYTES(n) ((u64)(n)*PAGE_SIZE)
#define RW       (PROT_READ | PROT_WRITE)
#define ANON     (MAP_PRIVATE | MAP_ANONYMOUS)
#define MOVE_TO  (MREMAP_MAYMOVE | MREMAP_FIXED)

static struct mm *mm;
static u64 before; /* promised when the test began, by others */

static bool enter(void)
{
    before = commit_total_pages();
    mm = test_mm_enter();
    return mm != NULL;
}

static void leave(void)
{
    test_mm_leave();
    KEXPECT_EQ(commit_total_pages(), before);
}

static s64 map(unsigned first, unsigned pages, u32 prot, u32 flags)
{
    return mm_mmap(mm, PAGE(first), BYTES(pages), prot, ANON | MAP_FIXED | flags, NULL, 0);
}

/* How many pages more than at the beginning are promised. */
static void expect_promised(u64 pages)
{
    KEXPECT_EQ(commit_total_pages() - before, pages);
    KEXPECT_EQ(mm->commit_pages, pages);
}

static void set_knob(const char *name, const char *value)
{
    KEXPECT_EQ(knob_set(name, value), 0);
}

static void set_knob_number(const char *name, u64 value)
{
    char text[24];
    format_to(text, sizeof(text), "%lu", value);
    set_knob(name, text);
}

/* Mode 2, with room for so many pages more than are promised now. */
static void be_strict(u64 pages)
{
    set_knob("overcommit_memory", "2");
    set_knob_number("overcommit_kbytes", (commit_total_pages() + pages + 1) * (PAGE_SIZE / 1024));
}

static void be_as_usual(void)
{
    set_knob("overcommit_memory", "0");
    set_knob("overcommit_ratio", "50");
}

KTEST(commit, private_memory_that_can_be_written_is_promised)
{
    KASSERT(enter());
    map(0, 4, RW, 0);
    expect_promised(4);
    map(10, 4, PROT_READ, 0);
    map(20, 4, PROT_NONE, 0);
    map(30, 4, RW, MAP_NORESERVE);
    expect_promised(4);
    map(40, 4, PROT_WRITE, MAP_GROWSDOWN);
    expect_promised(8);
    KEXPECT_EQ(mm_munmap(mm, PAGE(1), BYTES(2)), 0);
    expect_promised(6);
    leave();
}

KTEST(commit, a_file_is_promised_where_stores_stay_private)
{
    struct memory_file f;
    KASSERT(enter());
    memory_file_init(&f, 8, true, true);
    mm_mmap(mm, PAGE(0), BYTES(4), RW, MAP_PRIVATE | MAP_FIXED, &f.file, 0);
    expect_promised(4);
    mm_mmap(mm, PAGE(10), BYTES(4), RW, MAP_SHARED | MAP_FIXED, &f.file, 0);
    mm_mmap(mm, PAGE(20), BYTES(4), PROT_READ, MAP_PRIVATE | MAP_FIXED, &f.file, 0);
    expect_promised(4);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(21), BYTES(2), RW), 0);
    expect_promised(6);
    /* No longer writable, but its pages may be there. */
    KEXPECT_EQ(mm_mprotect(mm, PAGE(21), BYTES(2), PROT_READ), 0);
    expect_promised(6);
    leave();
    memory_file_destroy(&f);
}

KTEST(commit, mprotect_promises_and_takes_back_what_has_no_pages)
{
    KASSERT(enter());
    map(0, 8, PROT_READ, 0);
    expect_promised(0);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(2), BYTES(4), RW), 0);
    expect_promised(4);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(2), BYTES(2), PROT_NONE), 0);
    expect_promised(2);
    KEXPECT_EQ(user_poke(PAGE(4), 1), 0);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(4), BYTES(2), PROT_READ), 0);
    expect_promised(2);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(4), BYTES(2), RW), 0);
    expect_promised(2); /* not a second time */
    map(20, 4, PROT_READ, MAP_NORESERVE);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(20), BYTES(4), RW), 0);
    expect_promised(2);
    leave();
}

KTEST(commit, replaced_and_moved_memory_is_counted_once)
{
    KASSERT(enter());
    map(0, 6, RW, 0);
    map(2, 2, RW, 0);
    expect_promised(6);
    map(2, 2, PROT_READ, 0);
    expect_promised(4);
    KEXPECT_EQ(mm_mremap(mm, PAGE(0), BYTES(2), BYTES(5), MOVE_TO, PAGE(20)), PAGE(20));
    expect_promised(7);
    KEXPECT_EQ(mm_mremap(mm, PAGE(20), BYTES(5), BYTES(6), 0, 0), PAGE(20));
    expect_promised(8);
    KEXPECT_EQ(mm_mremap(mm, PAGE(20), BYTES(6), BYTES(1), 0, 0), PAGE(20));
    expect_promised(3);
    KEXPECT_EQ(mm_mremap(mm, PAGE(20), BYTES(1), BYTES(1), MOVE_TO | MREMAP_DONTUNMAP, PAGE(30)),
               PAGE(30));
    expect_promised(4);
    leave();
}

KTEST(commit, heap_and_stack_are_promised_as_they_grow)
{
    KASSERT(enter());
    mm->brk_start = mm->brk_end = PAGE(1000);
    KEXPECT_EQ(mm_brk(mm, PAGE(1003)), PAGE(1003));
    expect_promised(3);
    KEXPECT_EQ(mm_brk(mm, PAGE(1001)), PAGE(1001));
    expect_promised(1);
    map(600, 1, RW, MAP_GROWSDOWN);
    KEXPECT_EQ(user_poke(PAGE(590), 1), 0);
    expect_promised(12);
    leave();
}

KTEST(commit, fork_promises_the_same_again_until_the_child_ends)
{
    struct mm *child;
    KASSERT(enter());
    map(0, 8, RW, 0);
    map(10, 8, PROT_READ, 0);
    KASSERT_EQ(mm_fork(mm, &child), 0);
    KEXPECT_EQ(child->commit_pages, 8);
    KEXPECT_EQ(commit_total_pages() - before, 16);
    mm_put(child);
    expect_promised(8);
    leave();
}

KTEST(commit, files_in_memory_are_promised_page_by_page_and_shared_memory_whole)
{
    static const struct {
        enum tmpfs_file_kind kind;
        u64 empty, after_one;
    } cases[] = {
        {TMPFS_MEMFD, 0, 1}, {TMPFS_SHARED_ANON, 8, 8}, {TMPFS_SHARED_ANON_NORESERVE, 0, 1}};
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        int error;
        KASSERT(enter());
        struct file *file = tmpfs_open_unnamed("commit", BYTES(8), cases[i].kind, &error);
        KASSERT(file != NULL);
        mm_mmap(mm, PAGE(0), BYTES(8), RW, MAP_SHARED | MAP_FIXED, &file->mapped, 0);
        file_put(file);
        KEXPECT_EQ(commit_total_pages() - before, cases[i].empty);
        KEXPECT_EQ(user_poke(PAGE(3), 1), 0);
        if (!KEXPECT_EQ(commit_total_pages() - before, cases[i].after_one))
            ktest_note("case %u", i);
        KEXPECT_EQ(mm->commit_pages, 0);
        leave();
    }
}

/* ---- Modes ---- */

KTEST(commit, the_usual_mode_refuses_only_what_can_never_be_there)
{
    const u64 all = frames_total();
    KASSERT(enter());
    KEXPECT_EQ(mm_mmap(mm, 0, BYTES(all + 1), RW, ANON, NULL, 0), -ENOMEM);
    KEXPECT_EQ(mm->n_vmas, 0);
    for (unsigned i = 0; i < 3; i++)
        KEXPECT(mm_mmap(mm, 0, BYTES(all), RW, ANON, NULL, 0) > 0);
    expect_promised(3 * all);
    KEXPECT(mm_mmap(mm, 0, BYTES(4 * all), RW, ANON | MAP_NORESERVE, NULL, 0) > 0);
    KEXPECT(mm_mmap(mm, 0, BYTES(4 * all), PROT_READ, ANON, NULL, 0) > 0);
    expect_promised(3 * all);
    leave();
}

KTEST(commit, mode_1_refuses_nothing_and_counts)
{
    const u64 all = frames_total();
    KASSERT(enter());
    set_knob("overcommit_memory", "1");
    KEXPECT(mm_mmap(mm, 0, BYTES(2 * all), RW, ANON, NULL, 0) > 0);
    KEXPECT(mm_mmap(mm, 0, BYTES(2 * all), RW, ANON | MAP_NORESERVE, NULL, 0) > 0);
    expect_promised(2 * all);
    be_as_usual();
    leave();
}

KTEST(commit, mode_2_promises_up_to_the_limit_and_hears_no_noreserve)
{
    KASSERT(enter());
    map(0, 4, PROT_READ, 0);
    be_strict(20);
    KEXPECT_EQ(map(100, 10, RW, 0), PAGE(100));
    KEXPECT_EQ(map(200, 8, RW, MAP_NORESERVE), PAGE(200));
    expect_promised(18);
    KEXPECT_EQ(map(300, 3, RW, 0), -ENOMEM);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(0), BYTES(4), RW), -ENOMEM);
    KEXPECT_EQ(mm_mremap(mm, PAGE(100), BYTES(10), BYTES(13), 0, 0), -ENOMEM);
    KEXPECT_EQ(mm_mremap(mm, PAGE(100), BYTES(10), BYTES(13), MREMAP_MAYMOVE, 0), -ENOMEM);
    expect_promised(18);
    KEXPECT_EQ(vma_find(mm, PAGE(0))->prot, PROT_READ);
    KEXPECT_EQ(mm_mremap(mm, PAGE(100), BYTES(10), BYTES(12), MOVE_TO, PAGE(400)), PAGE(400));
    expect_promised(20);
    KEXPECT_EQ(map(300, 1, RW, 0), -ENOMEM);
    KEXPECT_EQ(map(300, 1, PROT_READ, 0), PAGE(300));
    KEXPECT_EQ(map(400, 12, RW, 0), PAGE(400)); /* in place of as much */
    be_as_usual();
    leave();
}

KTEST(commit, mode_2_refuses_fork_heap_and_stack)
{
    struct mm *child = NULL;
    KASSERT(enter());
    mm->brk_start = mm->brk_end = PAGE(1000);
    map(0, 6, RW, 0);
    map(600, 1, RW, MAP_GROWSDOWN);
    be_strict(5);
    KEXPECT_EQ(mm_fork(mm, &child), -ENOMEM);
    KEXPECT_EQ(mm_brk(mm, PAGE(1006)), PAGE(1000));
    KEXPECT_EQ(user_poke(PAGE(590), 1), -EFAULT);
    expect_promised(7);
    KEXPECT_EQ(mm_brk(mm, PAGE(1005)), PAGE(1005));
    expect_promised(12);
    be_as_usual();
    leave();
}

KTEST(commit, a_large_program_leaves_a_reserve_in_mode_2)
{
    KASSERT(enter());
    mm_mmap(mm, 0, BYTES(3200), PROT_READ, ANON, NULL, 0);
    be_strict(110);
    set_knob("user_reserve_kbytes", "80"); /* 20 pages, less than 3200 / 32 */
    KEXPECT_EQ(map(0, 91, RW, 0), -ENOMEM);
    KEXPECT_EQ(map(0, 90, RW, 0), PAGE(0));
    KEXPECT_EQ(mm_munmap(mm, PAGE(0), BYTES(90)), 0);
    set_knob("user_reserve_kbytes", "4000"); /* more than 100 pages: those count */
    KEXPECT_EQ(map(0, 11, RW, 0), -ENOMEM);
    KEXPECT_EQ(map(0, 10, RW, 0), PAGE(0));
    set_knob_number("user_reserve_kbytes", MIN(frames_total() * 4 / 32, 131072ul));
    be_as_usual();
    leave();
}

KTEST(commit, a_call_that_fails_promises_nothing)
{
    KASSERT(enter());
    map(0, 4, RW, 0);
    struct mm_limits limits = MM_NO_LIMITS;
    limits.as_bytes = BYTES(6);
    mm_set_limits(mm, &limits);
    KEXPECT_EQ(map(10, 3, RW, 0), -ENOMEM);
    expect_promised(4);
    limits = MM_NO_LIMITS;
    limits.data_bytes = BYTES(6);
    mm_set_limits(mm, &limits);
    KEXPECT_EQ(map(10, 3, RW, 0), -ENOMEM);
    KEXPECT_EQ(map(10, 3, PROT_READ, 0), PAGE(10));
    KEXPECT_EQ(mm_mprotect(mm, PAGE(10), BYTES(3), RW), -ENOMEM);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(10), BYTES(2), RW), 0);
    expect_promised(6);
    leave();
}

KTEST(commit, the_limit_is_a_ratio_or_a_number)
{
    char text[24];
    set_knob("overcommit_ratio", "30");
    KEXPECT_EQ(commit_limit_pages(), frames_total() * 30 / 100);
    set_knob("overcommit_kbytes", "4000");
    KEXPECT_EQ(commit_limit_pages(), 1000);
    commit_get_ratio(text, sizeof(text));
    KEXPECT_STREQ(text, "0");
    set_knob("overcommit_ratio", "50");
    commit_get_kbytes(text, sizeof(text));
    KEXPECT_STREQ(text, "0");
    KEXPECT_EQ(knob_set("overcommit_memory", "3"), -EINVAL);
    KEXPECT_EQ(knob_set("overcommit_memory", "-1"), -EINVAL);
    KEXPECT_EQ(knob_set("overcommit_memory", ""), -EINVAL);
    KEXPECT_EQ(knob_set("max_map_count", "2147483648"), -EINVAL);
}

/* ---- Number of areas ---- */

KTEST(commit, max_map_count_can_be_changed)
{
    KASSERT(enter());
    set_knob("max_map_count", "10");
    for (unsigned i = 0; i < 10; i++)
        KEXPECT_EQ(map(2 * i, 1, RW, 0), PAGE(2 * i));
    KEXPECT_EQ(map(100, 1, RW, 0), -ENOMEM);
    KEXPECT_EQ(mm->n_vmas, 10);
    set_knob("max_map_count", "5"); /* what is there stays, and may go */
    KEXPECT_EQ(mm_munmap(mm, PAGE(0), BYTES(1)), 0);
    KEXPECT_EQ(map(100, 1, RW, 0), -ENOMEM);
    set_knob_number("max_map_count", MAX_MAP_COUNT_DEFAULT);
    KEXPECT_EQ(map(100, 1, RW, 0), PAGE(100));
    leave();
}

/* ---- RLIMIT_MEMLOCK ---- */

KTEST(commit, locked_memory_has_a_limit_of_its_own)
{
    struct mm_limits limits = MM_NO_LIMITS;
    KASSERT(enter());
    map(0, 8, RW, 0);
    mm->brk_start = mm->brk_end = PAGE(1000);
    limits.locked_bytes = BYTES(6) + 100;
    mm_set_limits(mm, &limits);
    KEXPECT_EQ(mm_mlock(mm, PAGE(0), BYTES(7), true), -ENOMEM);
    KEXPECT_EQ(mm->locked_pages, 0);
    KEXPECT_EQ(mm_mlock(mm, PAGE(0), BYTES(4), true), 0);
    KEXPECT_EQ(mm_mlock(mm, PAGE(2), BYTES(4), true), 0); /* two of them are locked already */
    KEXPECT_EQ(mm->locked_pages, 6);
    KEXPECT_EQ(mm_mlock(mm, PAGE(6), BYTES(1), true), -ENOMEM);
    KEXPECT_EQ(map(20, 1, RW, MAP_LOCKED), -EAGAIN);
    KEXPECT_EQ(mm_mlock_all(mm, MCL_CURRENT), -ENOMEM);
    KEXPECT_EQ(mm_mlock_all(mm, MCL_FUTURE), 0);
    KEXPECT_EQ(map(20, 1, RW, 0), -EAGAIN);
    KEXPECT_EQ(mm_brk(mm, PAGE(1001)), PAGE(1000));
    KEXPECT_EQ(mm_munlock(mm, PAGE(0), BYTES(2)), 0);
    KEXPECT_EQ(map(20, 1, RW, 0), PAGE(20));
    KEXPECT_EQ(mm_brk(mm, PAGE(1001)), PAGE(1001));
    KEXPECT_EQ(mm->locked_pages, 6);
    KEXPECT_EQ(mm_mremap(mm, PAGE(20), BYTES(1), BYTES(2), 0, 0), -EAGAIN);
    KEXPECT_EQ(mm_munlock_all(mm), 0);
    KEXPECT_EQ(mm->locked_pages, 0);
    limits.locked_bytes = 0;
    mm_set_limits(mm, &limits);
    KEXPECT_EQ(mm_mlock(mm, PAGE(0), BYTES(1), true), -EPERM);
    KEXPECT_EQ(mm_mlock_all(mm, MCL_CURRENT), -EPERM);
    KEXPECT_EQ(map(40, 1, RW, MAP_LOCKED), -EPERM);
    KEXPECT_EQ(mm_munlock(mm, PAGE(0), BYTES(1)), 0);
    leave();
}
