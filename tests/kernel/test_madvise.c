/*
 * madvise, advice by advice: which areas it splits, what it does to pages, who refuses it, what a
 * fork makes of it.
 */
#include "fs/tmpfs.h"
#include "fs/vfs.h"
#include "kernel/sched/task.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/page_table.h"
#include "mm/fork.h"
#include "mm/lazy_free.h"
#include "mm/mmap.h"
#include "mm/reclaim.h"
#include "tests/kernel/ktest.h"
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

static int advise(unsigned first, unsigned pages, int advice)
{
    return mm_madvise(task_current()->mm, PAGE(first), BYTES(pages), advice);
}

static void touch(unsigned first, unsigned pages)
{
    for (unsigned i = first; i < first + pages; i++)
        KEXPECT_EQ(user_poke(PAGE(i), (u8)(i + 1)), 0);
}

static int peek_in(struct mm *mm, u64 addr)
{
    struct mm *mine = task_current()->mm;

    test_mm_attach(mm);
    int byte = user_peek(addr);
    test_mm_attach(mine);
    return byte;
}

static u64 areas(const struct mm *mm)
{
    return mm->n_vmas;
}

/* ---- Areas ---- */

static const struct {
    int on, off;
    u32 flag;
} flag_advices[] = {
    {MADV_RANDOM, MADV_NORMAL, VMA_RANDOM},     {MADV_SEQUENTIAL, MADV_NORMAL, VMA_SEQUENTIAL},
    {MADV_DONTFORK, MADV_DOFORK, VMA_DONTFORK}, {MADV_WIPEONFORK, MADV_KEEPONFORK, VMA_WIPEONFORK},
    {MADV_DONTDUMP, MADV_DODUMP, VMA_DONTDUMP}, {MADV_HUGEPAGE, MADV_NOHUGEPAGE, VMA_HUGEPAGE},
};

KTEST(madvise, advice_about_an_area_splits_it_and_taking_it_back_joins_it)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    for (unsigned i = 0; i < ARRAY_SIZE(flag_advices); i++) {
        map_anon(mm, 0, 6, RW);
        KEXPECT_EQ(advise(2, 2, flag_advices[i].on), 0);
        KEXPECT_EQ(areas(mm), 3);
        KEXPECT(vma_find(mm, PAGE(2))->flags & flag_advices[i].flag);
        KEXPECT(!(vma_find(mm, PAGE(1))->flags & flag_advices[i].flag));
        KEXPECT_EQ(advise(0, 6, flag_advices[i].off), 0);
        KEXPECT_EQ(areas(mm), 1);
        mm_munmap(mm, PAGE(0), BYTES(6));
    }
    test_mm_leave();
}

KTEST(madvise, an_unknown_advice_and_a_bad_range_are_einval)
{
    static const int unknown[] = {-1, 5, 6, 7, MADV_MERGEABLE, MADV_UNMERGEABLE, 25, 26, 1000};
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 2, RW);
    for (unsigned i = 0; i < ARRAY_SIZE(unknown); i++) {
        KEXPECT_EQ(advise(0, 1, unknown[i]), -EINVAL);
        KEXPECT_EQ(mm_madvise(mm, PAGE(0), 0, unknown[i]), -EINVAL);
    }
    KEXPECT_EQ(mm_madvise(mm, PAGE(0) + 1, 0, MADV_NORMAL), -EINVAL);
    KEXPECT_EQ(mm_madvise(mm, PAGE(0), ~0ul, MADV_NORMAL), -EINVAL);
    KEXPECT_EQ(mm_madvise(mm, PAGE(0), 0ul - PAGE(0) + PAGE_SIZE, MADV_NORMAL), -EINVAL);
    KEXPECT_EQ(mm_madvise(mm, PAGE(0), 1, MADV_DONTNEED), 0);
    KEXPECT_EQ(mm_madvise(mm, PAGE(5), 0, MADV_DONTNEED), 0);
    test_mm_leave();
}

KTEST(madvise, a_hole_is_enomem_after_the_rest_is_done)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 2, RW);
    map_anon(mm, 4, 2, RW);
    KEXPECT_EQ(advise(0, 6, MADV_DONTFORK), -ENOMEM);
    KEXPECT(vma_find(mm, PAGE(0))->flags & VMA_DONTFORK);
    KEXPECT(vma_find(mm, PAGE(4))->flags & VMA_DONTFORK);
    KEXPECT_EQ(advise(2, 2, MADV_WILLNEED), -ENOMEM);
    KEXPECT_EQ(advise(10, 2, MADV_COLD), -ENOMEM);
    /* Populating ends at the hole. */
    KEXPECT_EQ(advise(1, 4, MADV_POPULATE_WRITE), -ENOMEM);
    KEXPECT_EQ(mm->rss_anon, 1);
    test_mm_leave();
}

/* ---- Who refuses ---- */

struct zoo {
    struct memory_file disk, readonly;
    struct file *memory; /* on tmpfs */
};

enum animal { PRIVATE_ANON, LOCKED_ANON, PRIVATE_FILE, SHARED_FILE, SHARED_READONLY, SHARED_TMPFS };
#define ANIMALS     6
#define CAGE(which) ((unsigned)(which)*4)

static struct mm *zoo_enter(struct zoo *zoo)
{
    int error;
    struct mm *mm = test_mm_enter();

    memory_file_init(&zoo->disk, 8, true, true);
    memory_file_init(&zoo->readonly, 8, true, false);
    zoo->memory = tmpfs_open_unnamed("test", BYTES(8), TMPFS_MEMFD, &error);
    if (!KEXPECT(mm && zoo->memory))
        return NULL;
    map_anon(mm, CAGE(PRIVATE_ANON), 2, RW);
    map_anon(mm, CAGE(LOCKED_ANON), 2, RW);
    mm_mmap(mm, PAGE(CAGE(PRIVATE_FILE)), BYTES(2), RW, MAP_PRIVATE | MAP_FIXED, &zoo->disk.file,
            0);
    mm_mmap(mm, PAGE(CAGE(SHARED_FILE)), BYTES(2), RW, MAP_SHARED | MAP_FIXED, &zoo->disk.file, 0);
    mm_mmap(mm, PAGE(CAGE(SHARED_READONLY)), BYTES(2), PROT_READ, MAP_SHARED | MAP_FIXED,
            &zoo->readonly.file, 0);
    mm_mmap(mm, PAGE(CAGE(SHARED_TMPFS)), BYTES(2), RW, MAP_SHARED | MAP_FIXED,
            &zoo->memory->mapped, 0);
    KEXPECT_EQ(mm_mlock(mm, PAGE(CAGE(LOCKED_ANON)), BYTES(2), true), 0);
    return mm;
}

static void zoo_leave(struct zoo *zoo)
{
    test_mm_leave();
    memory_file_destroy(&zoo->disk);
    memory_file_destroy(&zoo->readonly);
    file_put(zoo->memory);
}

/* What each area says: man-pages madvise(2), ERRORS. */
static const struct {
    int advice;
    int expected[ANIMALS];
} refusals[] = {
    {MADV_DONTNEED, {0, -EINVAL, 0, 0, 0, 0}},
    {MADV_DONTNEED_LOCKED, {0, 0, 0, 0, 0, 0}},
    {MADV_FREE, {0, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL}},
    {MADV_COLD, {0, -EINVAL, 0, 0, 0, 0}},
    {MADV_PAGEOUT, {0, -EINVAL, 0, 0, 0, 0}},
    {MADV_REMOVE, {-EINVAL, -EINVAL, -EACCES, -EOPNOTSUPP, -EACCES, 0}},
    {MADV_WIPEONFORK, {0, 0, -EINVAL, -EINVAL, -EINVAL, -EINVAL}},
    {MADV_KEEPONFORK, {0, 0, 0, 0, 0, 0}},
    {MADV_DONTFORK, {0, 0, 0, 0, 0, 0}},
    {MADV_WILLNEED, {0, 0, 0, 0, 0, 0}},
    {MADV_POPULATE_READ, {0, 0, 0, 0, 0, 0}},
    {MADV_POPULATE_WRITE, {0, 0, 0, 0, -EINVAL, 0}},
};

KTEST(madvise, each_area_refuses_what_linux_refuses)
{
    struct zoo zoo;
    struct mm *mm = zoo_enter(&zoo);
    KASSERT(mm != NULL);
    for (unsigned i = 0; i < ARRAY_SIZE(refusals); i++) {
        for (unsigned animal = 0; animal < ANIMALS; animal++) {
            int got = advise(CAGE(animal), 2, refusals[i].advice);
            if (got != refusals[i].expected[animal])
                ktest_fail(__FILE__, __LINE__, "advice %d on area %u: %d, not %d",
                           refusals[i].advice, animal, got, refusals[i].expected[animal]);
        }
    }
    zoo_leave(&zoo);
}

KTEST(madvise, a_refusal_ends_the_call_where_it_is)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 6, RW);
    touch(0, 6);
    KEXPECT_EQ(mm_mlock(mm, PAGE(2), BYTES(2), true), 0);
    KEXPECT_EQ(advise(0, 6, MADV_DONTNEED), -EINVAL);
    KEXPECT_EQ(user_peek(PAGE(0)), 0);
    KEXPECT_EQ(user_peek(PAGE(2)), 3);
    KEXPECT_EQ(user_peek(PAGE(4)), 5);
    KEXPECT_EQ(advise(2, 2, MADV_DONTNEED_LOCKED), 0);
    KEXPECT_EQ(user_peek(PAGE(2)), 0);
    test_mm_leave();
}

KTEST(madvise, populating_asks_for_the_permission_by_name)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 2, PROT_WRITE);
    map_anon(mm, 2, 2, PROT_READ);
    map_anon(mm, 4, 2, PROT_NONE);
    u64 started = task_current()->faults.started;
    KEXPECT_EQ(advise(0, 1, MADV_POPULATE_READ), -EINVAL);
    KEXPECT_EQ(advise(2, 1, MADV_POPULATE_WRITE), -EINVAL);
    KEXPECT_EQ(advise(4, 1, MADV_POPULATE_READ), -EINVAL);
    KEXPECT_EQ(task_current()->faults.started, started);
    KEXPECT_EQ(advise(0, 2, MADV_POPULATE_WRITE), 0);
    KEXPECT_EQ(advise(2, 2, MADV_POPULATE_READ), 0);
    KEXPECT_EQ(task_current()->faults.started, started + 4);
    KEXPECT_EQ(mm->rss_anon, 2);
    test_mm_leave();
}

/* ---- MADV_FREE ---- */

KTEST(madvise, freed_memory_keeps_its_bytes_until_frames_run_short)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    lazy_free_reclaim(~0ul); /* what others left */
    map_anon(mm, 0, 4, RW);
    touch(0, 4);
    u64 marked = lazy_free_marked_total(), taken = lazy_free_taken_total();
    KEXPECT_EQ(advise(0, 4, MADV_FREE), 0);
    KEXPECT_EQ(lazy_free_marked_total(), marked + 4);
    KEXPECT_EQ(mm->rss_anon, 4);
    KEXPECT_EQ(user_peek(PAGE(0)), 1); /* reading changes nothing */
    KEXPECT_EQ(user_poke(PAGE(1) + 8, 99), 0);
    KEXPECT_EQ(lazy_free_reclaim(~0ul), 3);
    KEXPECT_EQ(lazy_free_taken_total(), taken + 3);
    KEXPECT_EQ(mm->rss_anon, 1);
    KEXPECT_EQ(user_peek(PAGE(0)), 0);
    KEXPECT_EQ(user_peek(PAGE(1)), 2);
    KEXPECT_EQ(user_peek(PAGE(1) + 8), 99);
    KEXPECT_EQ(user_peek(PAGE(3)), 0);
    test_mm_leave();
}

KTEST(madvise, reclaim_takes_freed_memory_before_the_cache_and_no_more_than_it_needs)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    lazy_free_reclaim(~0ul);
    map_anon(mm, 0, 8, RW);
    touch(0, 8);
    KEXPECT_EQ(advise(0, 8, MADV_FREE), 0);
    u64 steals = reclaim_total();
    KEXPECT_EQ(reclaim_pages(3), 3);
    KEXPECT_EQ(reclaim_total(), steals + 3);
    KEXPECT_EQ(mm->rss_anon, 5);
    KEXPECT_EQ(user_peek(PAGE(2)), 0);
    KEXPECT_EQ(user_peek(PAGE(3)), 4);
    KEXPECT_EQ(lazy_free_reclaim(~0ul), 5);
    test_mm_leave();
}

KTEST(madvise, a_freed_page_stays_while_a_fork_shares_it_or_mlock_holds_it)
{
    struct mm *child = NULL, *mm = test_mm_enter();
    KASSERT(mm != NULL);
    lazy_free_reclaim(~0ul);
    map_anon(mm, 0, 4, RW);
    touch(0, 4);
    KEXPECT_EQ(advise(0, 4, MADV_FREE), 0);
    KEXPECT_EQ(mm_mlock(mm, PAGE(3), BYTES(1), true), 0);
    KEXPECT_EQ(mm_fork(mm, &child), 0);
    KASSERT(child != NULL);
    KEXPECT_EQ(user_poke(PAGE(0), 50), 0);  /* the copy is the parent's alone, and written */
    KEXPECT_EQ(lazy_free_reclaim(~0ul), 1); /* the child's page 0 */
    KEXPECT_EQ(user_peek(PAGE(0)), 50);
    KEXPECT_EQ(user_peek(PAGE(1)), 2);
    KEXPECT_EQ(peek_in(child, PAGE(0)), 0);
    KEXPECT_EQ(peek_in(child, PAGE(1)), 2);
    mm_put(child);
    KEXPECT_EQ(advise(0, 3, MADV_FREE), 0);
    KEXPECT_EQ(lazy_free_reclaim(~0ul), 3);
    KEXPECT_EQ(user_peek(PAGE(3)), 4);
    test_mm_leave();
}

KTEST(madvise, a_space_that_ends_with_freed_memory_is_off_the_list)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    lazy_free_reclaim(~0ul);
    map_anon(mm, 0, 4, RW);
    touch(0, 4);
    KEXPECT_EQ(advise(0, 4, MADV_FREE), 0);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(0), BYTES(2), PROT_READ), 0);
    test_mm_leave();
    KEXPECT_EQ(lazy_free_reclaim(~0ul), 0);
}

/* ---- COLD, PAGEOUT, REMOVE ---- */

KTEST(madvise, pageout_takes_clean_file_pages_of_ours_alone)
{
    struct memory_file f;
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 8, true, true);
    mm_mmap(mm, PAGE(0), BYTES(8), RW, MAP_SHARED | MAP_FIXED, &f.file, 0);
    mm_mmap(mm, PAGE(10), BYTES(1), PROT_READ, MAP_SHARED | MAP_FIXED, &f.file, BYTES(3));
    KEXPECT_EQ(advise(0, 8, MADV_POPULATE_READ), 0);
    user_peek(PAGE(10));
    KEXPECT_EQ(user_poke(PAGE(5), 9), 0);
    KEXPECT_EQ(mm->rss_file, 9);
    KEXPECT_EQ(advise(0, 8, MADV_PAGEOUT), 0);
    /* Page 3 is mapped twice; page 5 is dirty: unmapped, but kept. */
    KEXPECT_EQ(f.cache.n_pages, 2);
    KEXPECT_EQ(mm->rss_file, 3);
    KEXPECT_EQ(user_peek(PAGE(5)), 9);
    KEXPECT_EQ(f.pages_read, 8);
    KEXPECT_EQ(user_peek(PAGE(0)), memory_file_byte(0));
    KEXPECT(f.pages_read > 8);
    mm_munmap(mm, PAGE(0), BYTES(12));
    test_mm_leave();
    memory_file_destroy(&f);
}

KTEST(madvise, pageout_leaves_anonymous_memory_but_for_what_was_freed)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 4, RW);
    touch(0, 4);
    KEXPECT_EQ(advise(0, 2, MADV_FREE), 0);
    KEXPECT_EQ(advise(0, 4, MADV_PAGEOUT), 0);
    KEXPECT_EQ(mm->rss_anon, 2);
    KEXPECT_EQ(user_peek(PAGE(0)), 0);
    KEXPECT_EQ(user_peek(PAGE(2)), 3);
    test_mm_leave();
}

static bool is_cached(struct memory_file *f, pgoff_t index)
{
    return page_cache_next_absent(&f->cache, index, index) != index;
}

KTEST(madvise, cold_pages_are_reclaimed_first)
{
    struct memory_file f;
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    reclaim_pages(~0ul);
    memory_file_init(&f, 8, true, true);
    mm_mmap(mm, PAGE(0), BYTES(8), RW, MAP_SHARED | MAP_FIXED, &f.file, 0);
    KEXPECT_EQ(advise(0, 8, MADV_POPULATE_READ), 0);
    KEXPECT_EQ(advise(0, 8, MADV_COLD), 0); /* none counts as touched */
    KEXPECT_EQ(advise(4, 2, MADV_COLD), 0);
    KEXPECT_EQ(f.cache.n_pages, 8);
    KEXPECT_EQ(mm->rss_file, 8);
    KEXPECT_EQ(reclaim_pages(2), 2);
    for (unsigned i = 0; i < 8; i++)
        KEXPECT_EQ(is_cached(&f, i), i != 4 && i != 5);
    test_mm_leave();
    memory_file_destroy(&f);
}

KTEST(madvise, remove_punches_the_file_for_everybody)
{
    struct zoo zoo;
    struct mm *mm = zoo_enter(&zoo);
    KASSERT(mm != NULL);
    unsigned cage = CAGE(SHARED_TMPFS);
    touch(cage, 2);
    mm_mmap(mm, PAGE(40), BYTES(2), PROT_READ, MAP_SHARED | MAP_FIXED, &zoo.memory->mapped, 0);
    KEXPECT_EQ(user_peek(PAGE(40)), (int)cage + 1);
    KEXPECT_EQ(advise(cage, 1, MADV_REMOVE), 0);
    KEXPECT_EQ(user_peek(PAGE(40)), 0);
    KEXPECT_EQ(user_peek(PAGE(41)), (int)cage + 2);
    KEXPECT_EQ(zoo.memory->inode->cache.size_bytes, BYTES(8));
    KEXPECT_EQ(advise(cage, 4, MADV_REMOVE), -ENOMEM); /* the rest of it is a hole */
    KEXPECT_EQ(user_peek(PAGE(41)), 0);
    zoo_leave(&zoo);
}

/* ---- Fork ---- */

KTEST(madvise, a_fork_leaves_out_wipes_and_inherits)
{
    struct mm *child = NULL, *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 2, RW);
    map_anon(mm, 4, 2, RW);
    map_anon(mm, 8, 2, RW);
    touch(0, 2);
    touch(4, 2);
    touch(8, 2);
    KEXPECT_EQ(advise(0, 2, MADV_DONTFORK), 0);
    KEXPECT_EQ(advise(4, 2, MADV_WIPEONFORK), 0);
    KEXPECT_EQ(advise(8, 2, MADV_RANDOM), 0);
    KEXPECT_EQ(mm_mlock(mm, PAGE(8), BYTES(2), true), 0);
    KEXPECT_EQ(mm_fork(mm, &child), 0);
    KASSERT(child != NULL);
    KEXPECT(mm_check(child) == NULL);
    KEXPECT_EQ(areas(child), 2);
    KEXPECT_EQ(child->total_pages, 4);
    KEXPECT_EQ(child->rss_anon, 2);
    KEXPECT_EQ(peek_in(child, PAGE(0)), -EFAULT);
    KEXPECT_EQ(peek_in(child, PAGE(4)), 0);
    KEXPECT_EQ(peek_in(child, PAGE(9)), 10);
    KEXPECT_EQ(vma_find(child, PAGE(4))->flags & ~VMA_ACCOUNT, VMA_WIPEONFORK);
    KEXPECT_EQ(vma_find(child, PAGE(8))->flags & ~VMA_ACCOUNT,
               VMA_RANDOM); /* locks are not inherited */
    KEXPECT_EQ(user_peek(PAGE(1)), 2);
    KEXPECT_EQ(user_peek(PAGE(5)), 6);
    mm_put(child);
    test_mm_leave();
}
