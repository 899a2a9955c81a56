/*
 * Calls on an address space in which each allocation fails in turn: the call is ENOMEM, or does
 * without, and where it is an error nothing has changed: the areas, the bytes, the counters.
 *
 * The first round lets one allocation fail, which a call may get over by reclaiming; the second lets
 * all fail from there on.
 */
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/misuse.h"
#include "mm/core/slab.h"
#include "mm/fork.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/test_mm.h"

#define BASE      0x300000000ul
#define PAGE(n)   (BASE + (u64)(n)*PAGE_SIZE)
#define BYTES(n)  ((u64)(n)*PAGE_SIZE)
#define RW        (PROT_READ | PROT_WRITE)
#define ANON      (MAP_PRIVATE | MAP_ANONYMOUS)
#define PAGES     64
#define FAIL_MAX  100 /* no call here needs so many */
#define MAP_BYTES 512

typedef s64 (*call_fn)(struct mm *mm);

/* [0,8) rw and written, [8,16) r, a hole, [24,32) rw. */
static struct mm *enter(void)
{
    struct mm *mm = test_mm_enter();

    if (!mm)
        return NULL;
    KEXPECT_EQ(mm_mmap(mm, PAGE(0), BYTES(8), RW, ANON | MAP_FIXED, NULL, 0), PAGE(0));
    KEXPECT_EQ(mm_mmap(mm, PAGE(8), BYTES(8), PROT_READ, ANON | MAP_FIXED, NULL, 0), PAGE(8));
    KEXPECT_EQ(mm_mmap(mm, PAGE(24), BYTES(8), RW, ANON | MAP_FIXED, NULL, 0), PAGE(24));
    for (unsigned i = 0; i < 8; i++)
        KEXPECT_EQ(user_poke(PAGE(i), (u8)(i + 1)), 0);
    mm->brk_start = mm->brk_end = PAGE(40);
    return mm;
}

static void expect_as_before(struct mm *mm, const char *before, u64 n_vmas, u64 total_pages)
{
    char after[MAP_BYTES];

    test_mm_render(mm, BASE, PAGES, after, sizeof(after));
    KEXPECT_STREQ(after, before);
    KEXPECT_EQ(mm->n_vmas, n_vmas);
    KEXPECT_EQ(mm->total_pages, total_pages);
    for (unsigned i = 0; i < 8; i++)
        KEXPECT_EQ(user_peek(PAGE(i)), i + 1);
}

/* The call with allocation number fail_at failing. => whether there was such an allocation */
static bool fails_at(call_fn call, u64 fail_at, u64 count, unsigned *n_errors)
{
    char before[MAP_BYTES];
    struct mm *mm = enter();

    if (!mm)
        return false;
    test_mm_render(mm, BASE, PAGES, before, sizeof(before));
    u64 n_vmas = mm->n_vmas, total_pages = mm->total_pages;

    slab_fail_inject(fail_at, count);
    s64 result = call(mm);
    u64 failed = slab_fail_inject(0, 0);

    if (result < 0) {
        KEXPECT_EQ(result, -ENOMEM);
        KEXPECT(failed > 0);
        expect_as_before(mm, before, n_vmas, total_pages);
        ++*n_errors;
    }
    test_mm_leave();
    return failed > 0;
}

static void check_call(call_fn call)
{
    unsigned n_errors = 0;

    if (!MEMORY_CHECKS)
        KTEST_SKIP("only in debug builds can an allocation be made to fail");
    for (unsigned round = 0; round < 2; round++) {
        u64 fail_at = 0;

        while (fails_at(call, fail_at, round ? ~0ul : 1, &n_errors) && !ktest_has_failed())
            KASSERT(++fail_at < FAIL_MAX);
        KEXPECT(fail_at > 0); /* else nothing was tested */
    }
    KEXPECT(n_errors > 0);
}

#define CALL_OOM(name, expression)        \
    static s64 call_##name(struct mm *mm) \
    {                                     \
        return (expression);              \
    }                                     \
    KTEST(call_oom, name)                 \
    {                                     \
        check_call(call_##name);          \
    }

CALL_OOM(mmap_into_the_hole, mm_mmap(mm, PAGE(18), BYTES(2), RW, ANON | MAP_FIXED, NULL, 0))
CALL_OOM(mmap_without_an_address, mm_mmap(mm, 0, BYTES(2), PROT_READ, ANON, NULL, 0))
CALL_OOM(mmap_over_three_areas,
         mm_mmap(mm, PAGE(4), BYTES(24), PROT_READ, ANON | MAP_FIXED, NULL, 0))
CALL_OOM(munmap_of_the_middle, mm_munmap(mm, PAGE(2), BYTES(2)))
CALL_OOM(munmap_across_areas, mm_munmap(mm, PAGE(6), BYTES(20)))
CALL_OOM(mprotect_of_the_middle, mm_mprotect(mm, PAGE(2), BYTES(2), PROT_READ))
CALL_OOM(mprotect_that_merges, mm_mprotect(mm, PAGE(0), BYTES(8), PROT_READ))
CALL_OOM(mremap_that_grows, mm_mremap(mm, PAGE(24), BYTES(8), BYTES(12), 0, 0))
CALL_OOM(mremap_that_shrinks, mm_mremap(mm, PAGE(0), BYTES(8), BYTES(4), 0, 0))
CALL_OOM(mremap_that_moves,
         mm_mremap(mm, PAGE(0), BYTES(8), BYTES(8), MREMAP_MAYMOVE | MREMAP_FIXED, PAGE(50)))
CALL_OOM(mremap_of_a_part, mm_mremap(mm, PAGE(2), BYTES(2), BYTES(4), MREMAP_MAYMOVE, 0))
CALL_OOM(mlock_of_the_middle, mm_mlock(mm, PAGE(2), BYTES(2), false))

/* What lies before the area that cannot be changed is, on Linux too; so one area only. */
static s64 advise(struct mm *mm)
{
    int error = mm_madvise(mm, PAGE(2), BYTES(2), MADV_RANDOM);

    return error == -EAGAIN ? -ENOMEM : error; /* madvise(2) says so for a resource that lacks */
}
CALL_OOM(madvise_of_the_middle, advise(mm))

/* The break is where it was. */
static s64 move_break(struct mm *mm)
{
    u64 was = mm->brk_end, is = mm_brk(mm, PAGE(44));

    return is == was ? -ENOMEM : (s64)is;
}
CALL_OOM(brk_that_grows, move_break(mm))

static s64 fork(struct mm *mm)
{
    struct mm *child = NULL;
    int error = mm_fork(mm, &child);

    KEXPECT(error ? child == NULL : child != NULL);
    if (child)
        mm_put(child);
    return error;
}
CALL_OOM(fork_of_the_space, fork(mm))
