/*
 * The calls that change an address space: places, limits, errors, what becomes of pages and counts.
 */
#include "kernel/sched/task.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/page_table.h"
#include "mm/user_memory.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/test_mm.h"
#include "tests/kernel/threads.h"

#define BASE     0x300000000ul
#define PAGE(n)  (BASE + (u64)(n)*PAGE_SIZE)
#define BYTES(n) ((u64)(n)*PAGE_SIZE)
#define RW       (PROT_READ | PROT_WRITE)
#define ANON     (MAP_PRIVATE | MAP_ANONYMOUS)

static s64 map_anon(struct mm *mm, unsigned first, unsigned pages, u32 prot)
{
    return mm_mmap(mm, PAGE(first), BYTES(pages), prot, ANON | MAP_FIXED, NULL, 0);
}

static s64 map_anywhere(struct mm *mm, unsigned pages)
{
    return mm_mmap(mm, 0, BYTES(pages), RW, ANON, NULL, 0);
}

static void touch(unsigned first, unsigned pages)
{
    for (unsigned i = first; i < first + pages; i++)
        KEXPECT_EQ(user_poke(PAGE(i), (u8)(i + 1)), 0);
}

/* ---- Places ---- */

KTEST(mmap, places_go_top_down_back_to_back)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    s64 a = map_anywhere(mm, 1), b = map_anywhere(mm, 1), c = map_anywhere(mm, 4);
    KEXPECT_EQ(a, mm->mmap_top - BYTES(1));
    KEXPECT_EQ((a - b) >> PAGE_SHIFT, 1); /* oracle: "topdown a-b=1 b-c=4" */
    KEXPECT_EQ((b - c) >> PAGE_SHIFT, 4);
    test_mm_leave();
}

KTEST(mmap, the_highest_hole_that_fits_is_used_again)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    s64 a = map_anywhere(mm, 8), b = map_anywhere(mm, 2), c = map_anywhere(mm, 8);
    s64 lower = c - (s64)BYTES(4);
    KEXPECT_EQ(map_anywhere(mm, 4), lower);
    KEXPECT_EQ(mm_munmap(mm, (u64)b, BYTES(2)), 0);
    KEXPECT_EQ(mm_munmap(mm, (u64)a + BYTES(3), BYTES(1)), 0);
    KEXPECT_EQ(map_anywhere(mm, 2), b);
    KEXPECT_EQ(map_anywhere(mm, 1), a + (s64)BYTES(3));
    KEXPECT_EQ(map_anywhere(mm, 3), lower - (s64)BYTES(3));
    test_mm_leave();
}

KTEST(mmap, a_free_hint_is_taken_and_an_occupied_one_is_not)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 4, 1, RW);
    KEXPECT_EQ(mm_mmap(mm, PAGE(8) + 5, BYTES(2), RW, ANON, NULL, 0), PAGE(8));
    s64 other = mm_mmap(mm, PAGE(3), BYTES(2), RW, ANON, NULL, 0);
    KEXPECT_EQ(other, mm->mmap_top - BYTES(2));
    test_mm_leave();
}

KTEST(mmap, map_32bit_stays_in_its_gibibyte)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    s64 addr = mm_mmap(mm, 0, BYTES(2), RW, ANON | MAP_32BIT, NULL, 0);
    KEXPECT(addr >= (s64)MMAP_32BIT_LOW && addr + (s64)BYTES(2) <= (s64)MMAP_32BIT_HIGH);
    KEXPECT_EQ(mm_mmap(mm, 0, (1ul << 30) + 1, RW, ANON | MAP_32BIT, NULL, 0), -ENOMEM);
    test_mm_leave();
}

KTEST(mmap, above_the_top_is_used_when_all_below_is_full)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    u64 all = mm->mmap_top - USER_ADDRESS_MIN;
    KEXPECT_EQ(mm_mmap(mm, 0, all, PROT_NONE, ANON, NULL, 0), USER_ADDRESS_MIN);
    KEXPECT_EQ(map_anywhere(mm, 1), USER_ADDRESS_END - BYTES(1));
    KEXPECT_EQ(mm_mmap(mm, 0, 1ul << 40, PROT_NONE, ANON, NULL, 0), -ENOMEM);
    test_mm_leave();
}

/* ---- Errors ---- */

KTEST(mmap, bad_arguments_have_linux_error_numbers)
{
    struct memory_file f;
    struct mapped_file not_mappable = {.refs = 1, .can_read = true};
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 4, true, true);
    const struct {
        u64 addr, length;
        u32 flags;
        struct mapped_file *file;
        u64 offset;
        s64 wanted;
    } cases[] = {
        {0, 0, ANON, NULL, 0, -EINVAL},
        {0, 1ul << 47, ANON, NULL, 0, -ENOMEM},
        {0, ~0xffful, ANON, NULL, 0, -ENOMEM},
        {0, ~0ul, ANON, NULL, 0, -ENOMEM},
        {0, 4096, MAP_ANONYMOUS, NULL, 0, -EINVAL},
        {0, 4096, MAP_SHARED_VALIDATE | MAP_ANONYMOUS, NULL, 0, -EINVAL},
        {0, 4096, MAP_SHARED | MAP_ANONYMOUS | MAP_GROWSDOWN, NULL, 0, -EINVAL},
        {0, 4096, ANON | MAP_HUGETLB, NULL, 0, -ENOMEM}, /* the pool is empty */
        {USER_ADDRESS_END, 4096, ANON | MAP_FIXED, NULL, 0, -ENOMEM},
        {USER_ADDRESS_END - 4095, 4096, ANON | MAP_FIXED, NULL, 0, -ENOMEM},
        {0, 4096, ANON | MAP_FIXED, NULL, 0, -EPERM},
        {PAGE(0), 4096, MAP_PRIVATE | MAP_GROWSDOWN, &f.file, 0, -EINVAL},
        {0, 4096, MAP_PRIVATE, &f.file, 1, -EINVAL},
        {0, 4096, MAP_PRIVATE, &f.file, 1ul << 63, -EOVERFLOW},
        {0, 8192, MAP_PRIVATE, &f.file, (1ul << 63) - 4096, -EOVERFLOW},
        {0, 4096, MAP_SHARED_VALIDATE | MAP_SYNC, &f.file, 0, -EOPNOTSUPP},
        {PAGE(0), 4096, MAP_SHARED_VALIDATE | MAP_FIXED_NOREPLACE, &f.file, 0, -EOPNOTSUPP},
        {0, 4096, MAP_PRIVATE, &not_mappable, 0, -ENODEV},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        s64 result = mm_mmap(mm, cases[i].addr, cases[i].length, PROT_READ, cases[i].flags,
                             cases[i].file, cases[i].offset);
        if (!KEXPECT_EQ(result, cases[i].wanted))
            ktest_note("case %u", i);
    }
    KEXPECT_EQ(mm->n_vmas, 0);
    KEXPECT_EQ(f.file.refs, 1);
    KEXPECT_EQ(not_mappable.refs, 1);
    test_mm_leave();
    memory_file_destroy(&f);
}

KTEST(mmap, munmap_and_mprotect_check_their_range)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 2, RW);
    KEXPECT_EQ(mm_munmap(mm, PAGE(0) + 1, BYTES(1)), -EINVAL);
    KEXPECT_EQ(mm_munmap(mm, PAGE(0), 0), -EINVAL);
    KEXPECT_EQ(mm_munmap(mm, 0xffff800000000000ul, BYTES(1)), -EINVAL);
    KEXPECT_EQ(mm_munmap(mm, PAGE(0), ~0ul), -EINVAL);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(0) + 1, BYTES(1), RW), -EINVAL);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(0), 0, RW), 0);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(0), ~0ul, RW), -ENOMEM);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(0), BYTES(1), 0x100), -EINVAL);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(9), BYTES(1), RW), -ENOMEM);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(0), BYTES(1), PROT_READ | PROT_GROWSDOWN), -EINVAL);
    KEXPECT_EQ(mm->total_pages, 2);
    test_mm_leave();
}

static void call_as_killed(void *arg)
{
    struct mm *mm = arg;
    task_kill(task_current());
    task_exit(mm_munmap(mm, PAGE(0), BYTES(1)) == -EINTR ? 0 : 1);
}

KTEST(mmap, a_killed_program_does_not_wait_for_the_lock)
{
    struct test_threads threads = {0};
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 1, RW);
    rwsem_read_lock(&mm->mmap_lock);
    threads_add(&threads, call_as_killed, mm);
    KEXPECT_EQ(threads_join(&threads), 0);
    rwsem_read_unlock(&mm->mmap_lock);
    KEXPECT_EQ(mm->n_vmas, 1);
    test_mm_leave();
}

#define LIMIT_TEST_FRAMES 24000

KTEST(mmap, no_more_than_65530_areas)
{
    if (frames_free_count() < LIMIT_TEST_FRAMES)
        KTEST_SKIP("needs more memory");
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    s64 result = 0;
    unsigned n = 0;
    while (n < 70000 && (result = map_anon(mm, 2 * n, 1, RW)) >= 0)
        n++;
    KEXPECT_EQ(n, MAX_MAP_COUNT_DEFAULT);
    KEXPECT_EQ(result, -ENOMEM);
    KEXPECT_EQ(mm->n_vmas, MAX_MAP_COUNT_DEFAULT);
    /* What needs no further area works; a split does not. */
    KEXPECT_EQ(map_anon(mm, 1, 1, RW), PAGE(1));
    KEXPECT_EQ(mm->n_vmas, MAX_MAP_COUNT_DEFAULT - 1);
    KEXPECT_EQ(mm_munmap(mm, PAGE(1), BYTES(1)), 0);
    KEXPECT_EQ(mm_munmap(mm, PAGE(8), BYTES(1)), 0);
    map_anon(mm, 200000, 3, RW);
    KEXPECT_EQ(mm->n_vmas, MAX_MAP_COUNT_DEFAULT);
    KEXPECT_EQ(mm_munmap(mm, PAGE(200001), BYTES(1)), -ENOMEM);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(200001), BYTES(1), PROT_READ), -ENOMEM);
    KEXPECT_EQ(mm_madvise(mm, PAGE(200001), BYTES(1), MADV_RANDOM), -EAGAIN);
    KEXPECT(vma_find(mm, PAGE(200001)) && vma_find(mm, PAGE(200001))->end == PAGE(200003));
    KEXPECT_EQ(mm_munmap(mm, PAGE(200000), BYTES(3)), 0);
    test_mm_leave();
}

/* ---- Pages and counts ---- */

KTEST(mmap, unmapping_takes_pages_off_every_count)
{
    struct memory_file f;
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 8, true, true);
    map_anon(mm, 0, 4, RW);
    mm_mmap(mm, PAGE(4), BYTES(4), RW, MAP_SHARED | MAP_FIXED, &f.file, 0);
    touch(0, 2);
    KEXPECT_EQ(user_peek(PAGE(2)), 0); /* the zero page: counted nowhere */
    KEXPECT_EQ(user_poke(PAGE(5), 77), 0);
    struct page *page = page_cache_find(&f.cache, 1);
    KASSERT(page != NULL);
    KEXPECT_EQ(page->mapcount, 1);
    KEXPECT_EQ(mm->rss_anon, 2);
    u64 file_pages = mm->rss_file;
    KEXPECT(file_pages >= 1);
    page_unset(page, PAGE_DIRTY | PAGE_REFERENCED);

    KEXPECT_EQ(mm_munmap(mm, PAGE(1), BYTES(5)), 0);
    KEXPECT_EQ(mm->rss_anon, 1);
    KEXPECT_EQ(page->mapcount, 0);
    KEXPECT_EQ(page->refs, 2); /* the cache's and this test's */
    KEXPECT(page_has(page, PAGE_DIRTY) && page_has(page, PAGE_REFERENCED));
    KEXPECT_EQ(user_peek(PAGE(1)), -EFAULT);
    KEXPECT_EQ(mm_munmap(mm, PAGE(0), BYTES(8)), 0);
    KEXPECT_EQ(mm->rss_anon + mm->rss_file, 0);
    KEXPECT_EQ(mm->total_pages, 0);
    page_put(page);
    test_mm_leave();
    memory_file_destroy(&f);
}

KTEST(mmap, more_pages_than_a_flush_batch_are_zapped)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    u64 before = test_frames_settled();
    map_anon(mm, 0, 1200, RW);
    touch(0, 1200);
    KEXPECT_EQ(mm->rss_anon, 1200);
    KEXPECT(frames_free_count() + 1200 <= before);
    KEXPECT_EQ(mm_munmap(mm, PAGE(0), BYTES(1200)), 0);
    KEXPECT_EQ(mm->rss_anon, 0);
    KEXPECT_EQ(mm->space.table_pages, 1); /* page tables went as well */
    KEXPECT_EQ(test_frames_settled(), before);
    test_mm_leave();
}

KTEST(mmap, every_frame_is_back_when_the_space_ends)
{
    u64 before = test_frames_settled();
    struct memory_file f;
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 8, true, true);
    map_anon(mm, 0, 300, RW);
    touch(0, 300);
    mm_mprotect(mm, PAGE(10), BYTES(10), PROT_NONE);
    mm_mmap(mm, PAGE(5000), BYTES(8), RW, MAP_PRIVATE | MAP_FIXED, &f.file, 0);
    touch(5000, 4);
    KEXPECT_EQ(user_peek(PAGE(5006)), memory_file_byte(6));
    mm->brk_start = mm->brk_end = 0x10000000;
    KEXPECT_EQ(mm_brk(mm, 0x10003000), 0x10003000);
    KEXPECT_EQ(user_poke(0x10002000, 1), 0);
    KEXPECT_EQ(f.file.refs, 2);
    test_mm_leave();
    KEXPECT_EQ(f.file.refs, 1);
    memory_file_destroy(&f);
    KEXPECT_EQ(test_frames_settled(), before);
}

KTEST(mmap, the_last_user_ends_the_space_and_no_one_before)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 1, RW);
    touch(0, 1);
    mm_get(mm);
    mm_put(mm);
    KEXPECT_EQ(user_peek(PAGE(0)), 1);
    test_mm_leave();
}

KTEST(mmap, a_file_is_closed_after_the_lock_is_let_go)
{
    struct memory_file f;
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 4, true, true);
    mm_mmap(mm, PAGE(0), BYTES(4), PROT_READ, MAP_PRIVATE | MAP_FIXED, &f.file, 0);
    mapped_file_put(&f.file); /* the descriptor is closed; the map holds it */
    KEXPECT_EQ(f.releases, 0);
    KEXPECT_EQ(mm_munmap(mm, PAGE(1), BYTES(2)), 0);
    KEXPECT_EQ(f.releases, 0);
    KEXPECT_EQ(map_anon(mm, 0, 4, RW), PAGE(0));
    KEXPECT_EQ(f.releases, 1);
    test_mm_leave();
    page_cache_destroy(&f.cache);
}

KTEST(mmap, fixed_replaces_what_was_there)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 6, RW);
    touch(0, 6);
    KEXPECT_EQ(map_anon(mm, 2, 2, RW), PAGE(2));
    KEXPECT_EQ(mm->n_vmas, 1);
    KEXPECT_EQ(mm->rss_anon, 4);
    for (unsigned i = 0; i < 6; i++)
        KEXPECT_EQ(user_peek(PAGE(i)), i == 2 || i == 3 ? 0 : i + 1);
    test_mm_leave();
}

KTEST(mmap, a_private_store_is_not_in_the_file)
{
    struct memory_file f;
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 4, true, false);
    mm_mmap(mm, PAGE(0), BYTES(4), RW, MAP_PRIVATE | MAP_FIXED, &f.file, 0);
    mm_mmap(mm, PAGE(8), BYTES(4), PROT_READ, MAP_SHARED | MAP_FIXED, &f.file, 0);
    KEXPECT_EQ(user_poke(PAGE(1), 200), 0);
    KEXPECT_EQ(user_peek(PAGE(1)), 200);
    KEXPECT_EQ(user_peek(PAGE(9)), memory_file_byte(1));
    KEXPECT_EQ(mm_madvise(mm, PAGE(0), BYTES(4), MADV_DONTNEED), 0);
    KEXPECT_EQ(user_peek(PAGE(1)), memory_file_byte(1));
    test_mm_leave();
    memory_file_destroy(&f);
}

/* ---- mprotect ---- */

KTEST(mmap, prot_none_and_back_keeps_the_bytes)
{
    struct memory_file f;
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 4, true, true);
    map_anon(mm, 0, 3, RW);
    mm_mmap(mm, PAGE(3), BYTES(3), RW, MAP_PRIVATE | MAP_FIXED, &f.file, 0);
    touch(0, 2);
    KEXPECT_EQ(user_peek(PAGE(2)), 0);
    touch(3, 1); /* a private copy */
    KEXPECT_EQ(user_peek(PAGE(4)), memory_file_byte(1));
    u64 segv = task_current()->faults.sigsegv;
    KEXPECT_EQ(mm_mprotect(mm, PAGE(0), BYTES(6), PROT_NONE), 0);
    for (unsigned i = 0; i < 6; i++)
        KEXPECT_EQ(user_peek(PAGE(i)), -EFAULT);
    KEXPECT_EQ(task_current()->faults.sigsegv - segv, 6);
    KEXPECT_EQ(mm->rss_anon, 3);
    KEXPECT_EQ(mm->rss_file, 0);
    KEXPECT(mm_check(mm) == NULL);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(0), BYTES(6), RW), 0);
    u64 faults = task_current()->faults.started;
    KEXPECT_EQ(user_peek(PAGE(0)), 1);
    KEXPECT_EQ(user_poke(PAGE(1), 50), 0);
    KEXPECT_EQ(user_peek(PAGE(3)), 4);
    KEXPECT_EQ(task_current()->faults.started, faults); /* they were there all the time */
    KEXPECT_EQ(user_peek(PAGE(2)), 0);
    KEXPECT_EQ(user_peek(PAGE(4)), memory_file_byte(1));
    test_mm_leave();
    memory_file_destroy(&f);
}

KTEST(mmap, pages_kept_through_prot_none_can_be_unmapped)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 8, RW);
    touch(0, 8);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(2), BYTES(4), PROT_NONE), 0);
    KEXPECT_EQ(mm_munmap(mm, PAGE(3), BYTES(1)), 0);
    KEXPECT_EQ(mm_madvise(mm, PAGE(4), BYTES(1), MADV_DONTNEED), 0);
    KEXPECT_EQ(mm->rss_anon, 6);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(4), BYTES(2), PROT_READ), 0);
    KEXPECT_EQ(user_peek(PAGE(4)), 0);
    KEXPECT_EQ(user_peek(PAGE(5)), 6);
    test_mm_leave();
}

KTEST(mmap, read_only_and_back_then_a_store_is_no_fault)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 2, RW);
    touch(0, 2);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(0), BYTES(2), PROT_READ), 0);
    KEXPECT_EQ(user_peek(PAGE(1)), 2);
    KEXPECT_EQ(user_poke(PAGE(1), 5), -EFAULT);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(0), BYTES(2), RW), 0);
    u64 faults = task_current()->faults.started;
    KEXPECT_EQ(user_poke(PAGE(1), 9), 0);
    KEXPECT_EQ(task_current()->faults.started, faults);
    KEXPECT_EQ(user_peek(PAGE(1)), 9);
    test_mm_leave();
}

KTEST(mmap, a_clean_shared_page_made_writable_still_reports_its_first_store)
{
    struct memory_file f;
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 4, true, true);
    mm_mmap(mm, PAGE(0), BYTES(1), PROT_READ, MAP_SHARED | MAP_FIXED, &f.file, 0);
    KEXPECT_EQ(user_peek(PAGE(0)), memory_file_byte(0));
    KEXPECT_EQ(mm_mprotect(mm, PAGE(0), BYTES(1), RW), 0);
    u64 faults = task_current()->faults.started;
    KEXPECT_EQ(user_poke(PAGE(0), 9), 0);
    KEXPECT_EQ(task_current()->faults.started - faults, 1);
    struct page *page = page_cache_find(&f.cache, 0);
    KASSERT(page != NULL);
    KEXPECT(page_has(page, PAGE_DIRTY));
    page_put(page);
    test_mm_leave();
    memory_file_destroy(&f);
}

KTEST(mmap, execute_only_memory_has_the_protection_key)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 1, PROT_EXEC);
    const struct vma *vma = vma_find(mm, PAGE(0));
    u64 key = cpu_features.pku ? (u64)PKEY_EXECUTE_ONLY << PTE_PKEY_SHIFT : 0;
    KEXPECT_EQ(vma_pte_bits(vma, true), PTE_PRESENT | PTE_USER | key);
    map_anon(mm, 2, 1, PROT_READ);
    u64 nx = cpu_features.nx ? PTE_NX : 0;
    KEXPECT_EQ(vma_pte_bits(vma_find(mm, PAGE(2)), true), PTE_PRESENT | PTE_USER | nx);
    map_anon(mm, 4, 1, RW | PROT_EXEC);
    KEXPECT_EQ(vma_pte_bits(vma_find(mm, PAGE(4)), true),
               PTE_PRESENT | PTE_USER | PTE_WRITE | PTE_SOFT_DIRTY);
    KEXPECT_EQ(vma_pte_bits(vma_find(mm, PAGE(4)), false), PTE_PRESENT | PTE_USER);
    test_mm_leave();
}

/* ---- brk ---- */

KTEST(brk, heap_grows_and_shrinks)
{
    char line[128];
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    mm->brk_start = mm->brk_end = PAGE(0);
    KEXPECT_EQ(mm_brk(mm, 0), PAGE(0));
    KEXPECT_EQ(mm_brk(mm, PAGE(2) + 10), PAGE(2) + 10);
    KEXPECT_EQ(user_poke(PAGE(2) + 4000, 1), 0); /* up to the end of the page */
    KEXPECT_EQ(user_poke(PAGE(3), 1), -EFAULT);
    KEXPECT_EQ(mm_brk(mm, PAGE(8)), PAGE(8));
    KEXPECT_EQ(mm->n_vmas, 1);
    KASSERT(vma_format_maps_line(vma_find(mm, PAGE(0)), line, sizeof(line)) > 0);
    KEXPECT(strstr(line, "[heap]") != NULL);
    KEXPECT_EQ(mm_brk(mm, PAGE(1)), PAGE(1));
    KEXPECT_EQ(mm->total_pages, 1);
    KEXPECT_EQ(mm->rss_anon, 0);
    KEXPECT_EQ(mm_brk(mm, PAGE(0) - 1), PAGE(1));
    KEXPECT_EQ(mm_brk(mm, PAGE(0)), PAGE(0));
    KEXPECT_EQ(mm->n_vmas, 0);
    test_mm_leave();
}

KTEST(brk, heap_stops_one_page_below_the_next_area)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    mm->brk_start = mm->brk_end = PAGE(0);
    map_anon(mm, 10, 1, RW);
    KEXPECT_EQ(mm_brk(mm, PAGE(9)), PAGE(9));
    KEXPECT_EQ(mm_brk(mm, PAGE(9) + 1), PAGE(9));
    KEXPECT_EQ(mm_brk(mm, PAGE(20)), PAGE(9));
    KEXPECT_EQ(mm_brk(mm, ~0ul), PAGE(9));
    KEXPECT_EQ(mm->total_pages, 10);
    test_mm_leave();
}

/* ---- madvise, mincore, populate ---- */

KTEST(madvise, dontneed_drops_pages_and_a_hole_is_reported)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 2, RW);
    map_anon(mm, 4, 2, RW);
    touch(0, 2);
    touch(4, 2);
    KEXPECT_EQ(mm_madvise(mm, PAGE(1), BYTES(4), MADV_DONTNEED), -ENOMEM);
    KEXPECT_EQ(mm->rss_anon, 2);
    KEXPECT_EQ(user_peek(PAGE(0)), 1);
    KEXPECT_EQ(user_peek(PAGE(1)), 0);
    KEXPECT_EQ(user_peek(PAGE(4)), 0);
    KEXPECT_EQ(user_peek(PAGE(5)), 6);
    KEXPECT_EQ(mm_madvise(mm, PAGE(0), BYTES(2), MADV_HUGEPAGE), 0);
    KEXPECT_EQ(mm_madvise(mm, PAGE(0), ~0ul, MADV_DONTNEED), -EINVAL);
    KEXPECT_EQ(mm_madvise(mm, PAGE(0), 0, MADV_DONTNEED), 0);
    test_mm_leave();
}

KTEST(madvise, willneed_reads_the_files_pages_without_a_fault)
{
    struct memory_file f;
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 16, true, true);
    mm_mmap(mm, PAGE(0), BYTES(8), PROT_READ, MAP_SHARED | MAP_FIXED, &f.file, BYTES(4));
    u64 faults = task_current()->faults.started;
    KEXPECT_EQ(mm_madvise(mm, PAGE(2), BYTES(3), MADV_WILLNEED), 0);
    KEXPECT_EQ(f.pages_read, 3);
    KEXPECT_EQ(page_cache_next_absent(&f.cache, 6, 15), 9);
    KEXPECT_EQ(mm_madvise(mm, PAGE(6), BYTES(4), MADV_WILLNEED), -ENOMEM);
    KEXPECT_EQ(f.pages_read, 5);
    KEXPECT_EQ(task_current()->faults.started, faults);
    test_mm_leave();
    memory_file_destroy(&f);
}

KTEST(mincore, shows_mapped_and_cached_pages)
{
    struct memory_file f;
    u8 vec[8];
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 16, true, true);
    map_anon(mm, 0, 2, RW);
    mm_mmap(mm, PAGE(2), BYTES(6), PROT_READ, MAP_SHARED | MAP_FIXED, &f.file, BYTES(4));
    map_anon(mm, 100, 1, RW); /* for the answer */
    touch(0, 1);              /* oracle: "mincore vec 1 0" */
    mm_madvise(mm, PAGE(4), BYTES(2), MADV_WILLNEED);
    KEXPECT_EQ(mm_mincore(mm, PAGE(0), BYTES(8), PAGE(100)), 0);
    KEXPECT_EQ(copy_from_user(vec, PAGE(100), sizeof(vec)), 0);
    static const u8 wanted[8] = {1, 0, 0, 0, 1, 1, 0, 0};
    for (unsigned i = 0; i < 8; i++)
        if (!KEXPECT_EQ(vec[i], wanted[i]))
            ktest_note("page %u", i);
    KEXPECT_EQ(mm_mincore(mm, PAGE(6), BYTES(4), PAGE(100)), -ENOMEM);
    KEXPECT_EQ(mm_mincore(mm, PAGE(0) + 1, BYTES(1), PAGE(100)), -EINVAL);
    KEXPECT_EQ(mm_mincore(mm, PAGE(0), BYTES(1), PAGE(200)), -EFAULT);
    KEXPECT_EQ(mm_mincore(mm, PAGE(0), ~0ul, PAGE(100)), -ENOMEM);
    test_mm_leave();
    memory_file_destroy(&f);
}

KTEST(mincore, ranges_longer_than_a_chunk)
{
    u8 byte;
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 700, RW);
    map_anon(mm, 1000, 1, RW);
    touch(0, 1);
    touch(256, 1);
    touch(699, 1);
    KEXPECT_EQ(mm_mincore(mm, PAGE(0), BYTES(700), PAGE(1000)), 0);
    for (unsigned i = 0; i < 700; i++) {
        KEXPECT_EQ(copy_from_user(&byte, PAGE(1000) + i, 1), 0);
        if (byte != (i == 0 || i == 256 || i == 699))
            ktest_fail(__FILE__, __LINE__, "page %u: %u", i, byte);
    }
    test_mm_leave();
}

KTEST(populate, map_populate_leaves_nothing_to_fault)
{
    struct memory_file f;
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 8, true, true);
    mm_mmap(mm, PAGE(0), BYTES(4), RW, ANON | MAP_FIXED | MAP_POPULATE, NULL, 0);
    mm_mmap(mm, PAGE(4), BYTES(4), PROT_READ, MAP_SHARED | MAP_FIXED | MAP_POPULATE, &f.file, 0);
    KEXPECT_EQ(mm->rss_anon, 4);
    KEXPECT_EQ(mm->rss_file, 4);
    u64 faults = task_current()->faults.started;
    touch(0, 4);
    for (unsigned i = 0; i < 4; i++)
        KEXPECT_EQ(user_peek(PAGE(4 + i)), memory_file_byte(i));
    KEXPECT_EQ(task_current()->faults.started, faults);
    test_mm_leave();
    memory_file_destroy(&f);
}

KTEST(populate, a_page_that_cannot_be_read_ends_it)
{
    struct memory_file f;
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 8, true, true);
    f.bad_index = 2;
    mm_mmap(mm, PAGE(0), BYTES(12), PROT_READ, MAP_SHARED | MAP_FIXED, &f.file, 0);
    KEXPECT_EQ(mm_populate(mm, PAGE(0), BYTES(4), false), -EFAULT);
    KEXPECT_EQ(mm_madvise(mm, PAGE(2), BYTES(1), MADV_POPULATE_READ), -EFAULT);
    KEXPECT_EQ(mm_populate(mm, PAGE(3), BYTES(5), false), 0);
    KEXPECT_EQ(mm_populate(mm, PAGE(7), BYTES(2), false), -EFAULT); /* past the end */
    KEXPECT_EQ(mm_populate(mm, PAGE(0), BYTES(1), true), -EINVAL);
    KEXPECT_EQ(mm_populate(mm, PAGE(20), BYTES(1), false), -ENOMEM);
    test_mm_leave();
    memory_file_destroy(&f);
}
