/*
 * Areas: splitting and merging step by step as tests/data/vma.txt has it from Linux, edits that fail, what a reader
 * without a lock sees, growing stacks, maps lines, and a long run of random calls against a flat model.
 */
#include "kernel/sched/grace.h"
#include "kernel/sched/task.h"
#include "lib/format.h"
#include "lib/rng.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/user_memory.h"
#include "mm/vma_internal.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/test_mm.h"
#include "tests/kernel/threads.h"

#define BASE          0x200000000ul
#define WINDOW_PAGES  64
#define PAGE(n)       (BASE + (u64)(n)*PAGE_SIZE)
#define BYTES(n)      ((u64)(n)*PAGE_SIZE)
#define RW            (PROT_READ | PROT_WRITE)
#define PRIVATE_FIXED (MAP_PRIVATE | MAP_FIXED)
#define SHARED_FIXED  (MAP_SHARED | MAP_FIXED)

/* ---- The oracle ---- */

__asm__(".pushsection .rodata\n"
        "vma_oracle: .incbin \"tests/data/vma.txt\"\n"
        ".byte 0\n"
        ".popsection");
extern const char vma_oracle[];

/* The rest of the oracle's line for the step, from "r=" on; NULL if there is none. */
static const char *oracle_find(const char *step)
{
    size_t len = strlen(step);

    for (const char *line = vma_oracle; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "VMA ", 4) != 0 || strncmp(line + 4, step, len) != 0)
            continue;
        const char *rest = line + 4 + len;
        while (*rest == ' ')
            rest++;
        if (strncmp(rest, "r=", 2) == 0 && rest[-1] == ' ')
            return rest;
    }
    return NULL;
}

/* Is what the call returned, and the map after it, what Linux showed? */
static void expect_step(struct mm *mm, const char *step, s64 result)
{
    char got[512], map[448];
    const char *wanted = oracle_find(step);
    size_t len = 0;

    if (!KEXPECT(wanted != NULL)) {
        ktest_note("step \"%s\" is not in the oracle", step);
        return;
    }
    while (wanted[len] && wanted[len] != '\n')
        len++;
    test_mm_render(mm, BASE, WINDOW_PAGES, map, sizeof(map));
    if (result >= (s64)BASE)
        result = (s64)(((u64)result - BASE) / PAGE_SIZE);
    format_to(got, sizeof(got), "r=%ld e=%ld |%s%s", result < 0 ? -1 : result,
              result < 0 ? -result : 0, *map ? " " : "", map);
    if (strlen(got) != len || strncmp(got, wanted, len) != 0)
        ktest_fail(__FILE__, __LINE__, "%s: %s; Linux: %.*s", step, got, (int)len, wanted);
}

static s64 map_anon(struct mm *mm, unsigned first, unsigned pages, u32 prot)
{
    return mm_mmap(mm, PAGE(first), BYTES(pages), prot, PRIVATE_FIXED | MAP_ANONYMOUS, NULL, 0);
}

static s64 map_file(struct mm *mm, struct memory_file *f, unsigned first, unsigned pages, u32 prot,
                    u32 flags, unsigned file_page)
{
    return mm_mmap(mm, PAGE(first), BYTES(pages), prot, flags, &f->file, BYTES(file_page));
}

static void clear_window(struct mm *mm)
{
    KEXPECT_EQ(mm_munmap(mm, BASE, BYTES(WINDOW_PAGES)), 0);
}

static void touch(unsigned first, unsigned pages)
{
    for (unsigned i = first; i < first + pages; i++)
        KEXPECT_EQ(user_poke(PAGE(i), (u8)i), 0);
}

KTEST(vma, anonymous_areas_split_and_merge_as_on_linux)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    expect_step(mm, "anon 0..3", map_anon(mm, 0, 4, RW));
    expect_step(mm, "anon 4..7 adj merge", map_anon(mm, 4, 4, RW));
    expect_step(mm, "anon 8..9 RO no merge", map_anon(mm, 8, 2, PROT_READ));
    expect_step(mm, "mprotect 8..9 RW merge", mm_mprotect(mm, PAGE(8), BYTES(2), RW));
    expect_step(mm, "mprotect 3..4 RO split3", mm_mprotect(mm, PAGE(3), BYTES(2), PROT_READ));
    expect_step(mm, "mprotect 3..4 RW rejoin", mm_mprotect(mm, PAGE(3), BYTES(2), RW));
    expect_step(mm, "munmap 4 split2", mm_munmap(mm, PAGE(4), BYTES(1)));
    expect_step(mm, "refill 4 joins 3", map_anon(mm, 4, 1, RW));
    expect_step(mm, "munmap hole ok", mm_munmap(mm, PAGE(20), BYTES(4)));
    expect_step(mm, "munmap span", mm_munmap(mm, PAGE(2), BYTES(4)));
    expect_step(mm, "mprotect over hole", mm_mprotect(mm, BASE, BYTES(10), PROT_READ));
    test_mm_leave();
}

KTEST(vma, areas_with_pages_of_their_own_merge_as_on_linux)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 8, RW);
    touch(0, 8);
    expect_step(mm, "touched then adj map", map_anon(mm, 8, 4, RW));
    touch(8, 4);
    KEXPECT_EQ(map_anon(mm, 12, 2, RW), PAGE(12));
    expect_step(mm, "after touch", 0);
    clear_window(mm);

    map_anon(mm, 0, 2, RW);
    map_anon(mm, 4, 2, RW);
    touch(0, 2);
    touch(4, 2);
    expect_step(mm, "bridge 2..3 between 2 faulted", map_anon(mm, 2, 2, RW));
    for (unsigned i = 0; i < 2; i++)
        KEXPECT_EQ(user_peek(PAGE(i)), i);
    test_mm_leave();
}

KTEST(vma, pieces_of_one_area_rejoin_with_their_pages)
{
    struct mm *mm = test_mm_enter();
    char map[256];
    KASSERT(mm != NULL);
    map_anon(mm, 0, 6, RW);
    touch(0, 6);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(2), BYTES(2), PROT_READ), 0);
    test_mm_render(mm, BASE, WINDOW_PAGES, map, sizeof(map));
    KEXPECT_STREQ(map, "[0,2)rw-p0 [2,4)r--p0 [4,6)rw-p0");
    KEXPECT_EQ(user_poke(PAGE(2), 9), -EFAULT);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(2), BYTES(2), RW), 0);
    test_mm_render(mm, BASE, WINDOW_PAGES, map, sizeof(map));
    KEXPECT_STREQ(map, "[0,6)rw-p0");
    for (unsigned i = 0; i < 6; i++)
        KEXPECT_EQ(user_peek(PAGE(i)), i);
    test_mm_leave();
}

KTEST(vma, file_areas_merge_only_where_the_file_goes_on)
{
    struct memory_file f;
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 64, true, true);
    expect_step(mm, "file 0..3 off0 sh", map_file(mm, &f, 0, 4, PROT_READ, SHARED_FIXED, 0));
    expect_step(mm, "file 4..5 off4 merges", map_file(mm, &f, 4, 2, PROT_READ, SHARED_FIXED, 4));
    expect_step(mm, "file 6..7 off0 no merge", map_file(mm, &f, 6, 2, PROT_READ, SHARED_FIXED, 0));
    expect_step(mm, "file 8..9 priv off2 no", map_file(mm, &f, 8, 2, PROT_READ, PRIVATE_FIXED, 2));
    expect_step(mm, "munmap 1", mm_munmap(mm, PAGE(1), BYTES(1)));
    KEXPECT_EQ(user_peek(PAGE(2)), memory_file_byte(2));
    KEXPECT_EQ(user_peek(PAGE(9)), memory_file_byte(3));
    KEXPECT_EQ(f.file.refs, 5); /* four areas and the test */
    clear_window(mm);
    KEXPECT_EQ(f.file.refs, 1);
    test_mm_leave();
    memory_file_destroy(&f);
}

KTEST(vma, another_file_does_not_merge)
{
    struct memory_file f, g;
    struct mm *mm = test_mm_enter();
    char map[256];
    KASSERT(mm != NULL);
    memory_file_init(&f, 8, true, true);
    memory_file_init(&g, 8, true, true);
    map_file(mm, &f, 0, 2, PROT_READ, SHARED_FIXED, 0);
    map_file(mm, &g, 2, 2, PROT_READ, SHARED_FIXED, 2);
    test_mm_render(mm, BASE, WINDOW_PAGES, map, sizeof(map));
    KEXPECT_STREQ(map, "[0,2)r--s+f0 [2,4)r--s+f2");
    test_mm_leave();
    memory_file_destroy(&f);
    memory_file_destroy(&g);
}

KTEST(vma, madvise_splits_and_rejoins_as_on_linux)
{
    struct memory_file f;
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 64, true, true);
    map_file(mm, &f, 0, 8, RW, SHARED_FIXED, 0);
    expect_step(mm, "madvise RANDOM 2..3", mm_madvise(mm, PAGE(2), BYTES(2), MADV_RANDOM));
    expect_step(mm, "madvise NORMAL 2..3", mm_madvise(mm, PAGE(2), BYTES(2), MADV_NORMAL));
    expect_step(mm, "madvise SEQ all", mm_madvise(mm, PAGE(0), BYTES(8), MADV_SEQUENTIAL));
    KEXPECT(vma_find(mm, PAGE(7))->flags & VMA_SEQUENTIAL);
    expect_step(mm, "madvise over hole",
                mm_madvise(mm, PAGE(6), BYTES(8), MADV_RANDOM) == -ENOMEM
                    ? mm_madvise(mm, PAGE(0), BYTES(12), MADV_NORMAL)
                    : 0);
    expect_step(mm, "madvise bad", mm_madvise(mm, PAGE(0), BYTES(1), 9999));
    expect_step(mm, "madvise unaligned", mm_madvise(mm, PAGE(0) + 1, BYTES(1), MADV_NORMAL));
    test_mm_leave();
    memory_file_destroy(&f);
}

KTEST(vma, mmap_refuses_what_linux_refuses)
{
    struct memory_file rw, ro, wo;
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&rw, 8, true, true);
    memory_file_init(&ro, 8, true, false);
    memory_file_init(&wo, 8, false, true);
    expect_step(mm, "no PRIVATE/SHARED",
                mm_mmap(mm, PAGE(0), BYTES(1), RW, MAP_FIXED | MAP_ANONYMOUS, NULL, 0));
    expect_step(mm, "off unaligned",
                mm_mmap(mm, PAGE(0), BYTES(1), PROT_READ, PRIVATE_FIXED, &rw.file, 100));
    expect_step(mm, "FIXED unaligned",
                mm_mmap(mm, PAGE(0) + 1, BYTES(1), RW, PRIVATE_FIXED | MAP_ANONYMOUS, NULL, 0));
    expect_step(mm, "shared W on RO fd", map_file(mm, &ro, 0, 1, RW, SHARED_FIXED, 0));
    map_file(mm, &ro, 0, 1, RW, PRIVATE_FIXED, 0);
    expect_step(mm, "R on WO fd", map_file(mm, &wo, 2, 1, PROT_READ, SHARED_FIXED, 0));
    map_file(mm, &ro, 2, 1, PROT_READ, SHARED_FIXED, 0);
    expect_step(mm, "sh RO fd then mprotect W", mm_mprotect(mm, PAGE(2), BYTES(1), RW));
    clear_window(mm);
    map_anon(mm, 4, 1, RW);
    const u32 noreplace = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    expect_step(mm, "NOREPLACE overlap", mm_mmap(mm, PAGE(4), BYTES(2), RW, noreplace, NULL, 0));
    expect_step(mm, "NOREPLACE free", mm_mmap(mm, PAGE(8), BYTES(1), RW, noreplace, NULL, 0));
    test_mm_leave();
    memory_file_destroy(&rw);
    memory_file_destroy(&ro);
    memory_file_destroy(&wo);
}

KTEST(vma, write_only_memory_can_be_read)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 2, RW);
    KEXPECT_EQ(user_poke(PAGE(0), 3), 0);
    expect_step(mm, "mprotect W only", mm_mprotect(mm, PAGE(0), BYTES(1), PROT_WRITE));
    KEXPECT_EQ(user_peek(PAGE(0)), 3);
    test_mm_leave();
}

/* ---- Edits that fail, and readers ---- */

KTEST(vma, a_failing_call_changes_nothing)
{
    struct mm *mm = test_mm_enter();
    char before[256], after[256];
    s64 result = 0;
    KASSERT(mm != NULL);
    map_anon(mm, 0, 8, RW);
    map_anon(mm, 8, 8, PROT_READ);
    touch(2, 1);
    /* No more frames: sooner or later the slabs are empty in the middle of an edit. */
    frames_fail_inject(0, ~0ul);
    for (unsigned round = 0; round < 100000 && result >= 0; round++) {
        test_mm_render(mm, BASE, WINDOW_PAGES, before, sizeof(before));
        u64 count = mm->change_count;
        result = map_anon(mm, 6 + 2 * (round % 2), 4, round % 3 ? PROT_READ : PROT_EXEC);
        if (result < 0)
            KEXPECT_EQ(mm->change_count, count);
    }
    test_mm_render(mm, BASE, WINDOW_PAGES, after, sizeof(after));
    frames_fail_inject(0, 0);
    KEXPECT_EQ(result, -ENOMEM);
    KEXPECT_STREQ(after, before);
    KEXPECT_EQ(user_peek(PAGE(2)), 2);
    test_mm_leave();
}

KTEST(vma, an_edit_that_is_not_committed_leaves_no_trace)
{
    struct memory_file f;
    struct vma_edit edit;
    struct list dead = LIST_INIT(dead);
    char map[256];
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 8, true, true);
    map_file(mm, &f, 0, 8, RW, PRIVATE_FIXED, 0);
    map_anon(mm, 8, 4, RW);
    touch(3, 6);
    u64 count = mm->change_count;

    rwsem_write_lock(&mm->mmap_lock);
    vma_edit_begin(&edit, mm);
    KEXPECT_EQ(vma_edit_cut(&edit, PAGE(4), PAGE(9)), 0);
    struct vma *vma = vma_edit_new(&edit, PAGE(4), PAGE(9), RW, 0, NULL, 0);
    KEXPECT(vma && vma_edit_place(&edit, vma) == 0);
    vma_edit_close(&edit, &dead);
    rwsem_write_unlock(&mm->mmap_lock);
    vma_bury(&dead);

    test_mm_render(mm, BASE, WINDOW_PAGES, map, sizeof(map));
    KEXPECT_STREQ(map, "[0,8)rw-p+f0 [8,12)rw-p0");
    KEXPECT_EQ(mm->change_count, count);
    KEXPECT_EQ(f.file.refs, 2);
    KEXPECT_EQ(mm->rss_anon, 6);
    KEXPECT_EQ(user_peek(PAGE(8)), 8);
    test_mm_leave();
    memory_file_destroy(&f);
}

struct reader {
    struct mm *mm;
    u32 stop;
    u64 looks, holes;
};

static void look_for_holes(void *arg)
{
    struct reader *r = arg;
    while (!atomic_load(&r->stop)) {
        for (unsigned i = 0; i < 8; i++)
            r->holes += vma_find(r->mm, PAGE(i)) == NULL;
        atomic_add(&r->looks, 1);
        sched_yield(); /* a quiet point: old areas may be freed now */
    }
}

KTEST(vma, replacing_several_areas_shows_no_hole_to_a_reader_without_lock)
{
    struct reader r = {0};
    struct test_threads threads = {0};
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    if (cpu_count() < 2) {
        test_mm_leave();
        KTEST_SKIP("needs two CPUs");
    }
    map_anon(mm, 0, 8, RW);
    r.mm = mm;
    threads_add_on(&threads, cpu_index() == 0 ? 1 : 0, look_for_holes, &r);
    for (unsigned i = 0; i < 500 || atomic_load(&r.looks) < 500; i++) {
        mm_mprotect(mm, PAGE(2), BYTES(3), PROT_READ);
        if (!KEXPECT_EQ(map_anon(mm, 1, 6, i % 2 ? RW : PROT_READ), PAGE(1)))
            break;
        sched_yield(); /* a quiet point, as a program's return from a call is: else nothing is ever freed */
    }
    atomic_store(&r.stop, 1);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(r.holes, 0);
    test_mm_leave();
}

static void unmap_first_page(void *arg)
{
    (void)mm_munmap(arg, PAGE(0), BYTES(1));
}

KTEST(vma, unmapping_waits_for_the_holder_of_a_vma_lock_before_it_zaps)
{
    struct test_threads threads = {0};
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 4, RW);
    touch(0, 1);
    struct vma *vma = vma_find(mm, PAGE(0));
    rwsem_read_lock(&vma->lock);
    const struct task *unmapper = threads_add(&threads, unmap_first_page, mm);
    KASSERT(unmapper != NULL);
    while (atomic_load(&unmapper->state) != TASK_SLEEPING && !atomic_load(&unmapper->has_exited))
        sched_yield();
    KEXPECT(!unmapper->has_exited);
    KEXPECT(vma_find(mm, PAGE(0)) == NULL); /* others find the new areas already */
    KEXPECT(!(vma->flags & VMA_DETACHED));
    KEXPECT_EQ(mm->rss_anon, 1);
    rwsem_read_unlock(&vma->lock);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(mm->rss_anon, 0);
    test_mm_leave();
}

KTEST(vma, truncation_finds_pages_mapped_through_split_areas)
{
    struct memory_file f;
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 8, true, true);
    map_file(mm, &f, 0, 8, PROT_READ, SHARED_FIXED, 0);
    KEXPECT_EQ(mm_mprotect(mm, PAGE(3), BYTES(2), RW), 0);
    KEXPECT_EQ(mm_munmap(mm, PAGE(6), BYTES(1)), 0);
    for (unsigned i = 0; i < 8; i++)
        KEXPECT_EQ(user_peek(PAGE(i)), i == 6 ? -EFAULT : memory_file_byte(i));
    KEXPECT(mm->rss_file >= 7);
    u64 sigbus = task_current()->faults.sigbus;
    page_cache_truncate(&f.cache, BYTES(4));
    KEXPECT_EQ(mm->rss_file, 4);
    KEXPECT_EQ(user_peek(PAGE(3)), memory_file_byte(3));
    KEXPECT_EQ(user_peek(PAGE(4)), -EFAULT);
    KEXPECT_EQ(user_peek(PAGE(7)), -EFAULT);
    KEXPECT_EQ(task_current()->faults.sigbus - sigbus, 2);
    test_mm_leave();
    memory_file_destroy(&f);
}

/* A report holds on to an area of a space that it is no user of (mm/report.c). */
static void end_space(void *mm)
{
    mm_put(mm);
    task_exit(1);
}

KTEST(vma, a_space_ends_after_whoever_has_the_lock_of_an_area)
{
    struct memory_file f;
    struct test_threads threads = {0};
    struct mm *mm = mm_create();
    char reason[64];

    if (!KEXPECT(mm != NULL))
        return;
    memory_file_init(&f, 8, true, true);
    map_file(mm, &f, 0, 2, PROT_READ, PRIVATE_FIXED, 0);
    struct vma *vma = vma_find(mm, PAGE(1));
    if (KEXPECT(vma != NULL) && KEXPECT(rwsem_read_trylock(&vma->lock))) {
        struct task *ender = threads_add_and_wait_asleep(&threads, end_space, mm);
        threads_wait_reason(ender, reason, sizeof(reason));
        KEXPECT(strstr(reason, "writer") != NULL);
        KEXPECT(!(vma->flags & VMA_DETACHED));
        KEXPECT_EQ(f.file.refs, 2);
        KEXPECT(vma_find(mm, PAGE(1)) == NULL);
        rwsem_read_unlock(&vma->lock);
        KEXPECT_EQ(threads_join(&threads), 1);
    } else {
        mm_put(mm);
    }
    memory_file_destroy(&f);
}

/* ---- Stacks ---- */

static s64 map_stack(struct mm *mm, u64 addr, u64 pages)
{
    return mm_mmap(mm, addr, BYTES(pages), RW, PRIVATE_FIXED | MAP_ANONYMOUS | MAP_GROWSDOWN, NULL,
                   0);
}

KTEST(vma, growing_area_grows_by_as_many_pages_as_a_touch_needs)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    expect_step(mm, "growsdown at 40", map_stack(mm, PAGE(40), 1));
    u64 faults = task_current()->faults.started;
    KEXPECT_EQ(user_poke(PAGE(30), 7), 0);
    KEXPECT_EQ(task_current()->faults.started - faults, 1);
    KEXPECT_EQ(vma_find(mm, PAGE(40))->start, PAGE(30));
    KEXPECT_EQ(mm->n_vmas, 1);
    KEXPECT_EQ(mm->total_pages, 11);
    KEXPECT_EQ(user_peek(PAGE(35)), 0);
    test_mm_leave();
}

KTEST(vma, growing_area_keeps_256_pages_free_below)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    map_anon(mm, 0, 1, RW);
    map_stack(mm, PAGE(300), 1);
    KEXPECT_EQ(user_poke(PAGE(257), 1), 0);
    KEXPECT_EQ(user_poke(PAGE(256), 1), -EFAULT);
    KEXPECT_EQ(vma_find(mm, PAGE(300))->start, PAGE(257));
    /* Inaccessible memory may be nearer: it is a guard itself. */
    KEXPECT_EQ(mm_mprotect(mm, PAGE(0), BYTES(1), PROT_NONE), 0);
    KEXPECT_EQ(user_poke(PAGE(2), 1), 0);
    test_mm_leave();
}

KTEST(vma, growing_area_stops_at_the_stack_limit)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    mm->stack_limit_bytes = BYTES(20);
    map_stack(mm, PAGE(600), 2);
    KEXPECT_EQ(user_poke(PAGE(582), 1), 0);
    KEXPECT_EQ(user_poke(PAGE(581), 1), -EFAULT);
    test_mm_leave();
}

KTEST(vma, a_new_map_stays_out_of_a_stack_guard)
{
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    u64 stack = mm->mmap_top - BYTES(8);
    map_stack(mm, stack, 8);
    s64 map = mm_mmap(mm, 0, BYTES(4), RW, MAP_PRIVATE | MAP_ANONYMOUS, NULL, 0);
    KEXPECT_EQ(map, stack - BYTES(STACK_GUARD_PAGES + 4));
    test_mm_leave();
}

/* ---- Maps lines ---- */

static void expect_line(struct mm *mm, u64 addr, const char *wanted)
{
    char line[256];
    rwsem_read_lock(&mm->mmap_lock);
    int len = vma_format_maps_line(vma_find(mm, addr), line, sizeof(line));
    rwsem_read_unlock(&mm->mmap_lock);
    KEXPECT_EQ(len, strlen(wanted));
    KEXPECT_STREQ(line, wanted);
}

KTEST(vma, maps_lines_have_the_format_of_linux)
{
    struct memory_file f;
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 64, true, true);
    map_file(mm, &f, 0, 2, PROT_READ | PROT_EXEC, PRIVATE_FIXED, 3);
    map_anon(mm, 8, 1, RW);
    mm_mmap(mm, 0x10000, BYTES(1), PROT_NONE, SHARED_FIXED | MAP_ANONYMOUS, NULL, 0);
    mm->brk_start = mm->brk_end = PAGE(20);
    mm_brk(mm, PAGE(22));
    expect_line(mm, PAGE(0),
                "200000000-200002000 r-xp 00003000 fe:01 12 "
                "                              /data/numbers\n");
    expect_line(mm, PAGE(8), "200008000-200009000 rw-p 00000000 00:00 0 \n");
    expect_line(mm, 0x10000, "00010000-00011000 ---s 00000000 00:00 0 \n");
    expect_line(mm, PAGE(20),
                "200014000-200016000 rw-p 00000000 00:00 0 "
                "                               [heap]\n");
    test_mm_leave();
    memory_file_destroy(&f);
}

KTEST(vma, a_maps_line_fits_the_buffer_it_is_given)
{
    struct memory_file f;
    char line[VMA_MAPS_LINE_MIN + 1];
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    memory_file_init(&f, 4, true, true);
    map_file(mm, &f, 0, 2, PROT_READ, PRIVATE_FIXED, 0);
    for (size_t size = 72; size <= VMA_MAPS_LINE_MIN; size++) {
        line[size] = 0x55;
        int len = vma_format_maps_line(vma_find(mm, PAGE(0)), line, size);
        KEXPECT(len > 0 && (size_t)len < size && line[len - 1] == '\n' && line[len] == '\0');
        KEXPECT_EQ(line[size], 0x55);
    }
    test_mm_leave();
    memory_file_destroy(&f);
}

/* ---- Random calls against a flat model ---- */

struct model_page {
    bool mapped, is_file;
    u8 prot, byte;
    u32 advice; /* VMA_RANDOM, VMA_SEQUENTIAL or 0 */
};

struct model {
    struct mm *mm;
    struct memory_file file;
    struct model_page pages[WINDOW_PAGES];
    struct rng rng;
};

static void model_map(struct model *m, unsigned first, unsigned n, u8 prot, bool is_file)
{
    s64 result = is_file ? map_file(m->mm, &m->file, first, n, prot, PRIVATE_FIXED, first)
                         : map_anon(m->mm, first, n, prot);
    KEXPECT_EQ(result, PAGE(first));
    for (unsigned i = first; i < first + n; i++)
        m->pages[i] = (struct model_page){.mapped = true,
                                          .is_file = is_file,
                                          .prot = prot,
                                          .byte = is_file ? memory_file_byte(i) : 0};
}

static void model_unmap(struct model *m, unsigned first, unsigned n)
{
    KEXPECT_EQ(mm_munmap(m->mm, PAGE(first), BYTES(n)), 0);
    for (unsigned i = first; i < first + n; i++)
        m->pages[i] = (struct model_page){0};
}

static void model_protect(struct model *m, unsigned first, unsigned n, u8 prot)
{
    int wanted = 0;
    for (unsigned i = first; i < first + n && !wanted; i++) {
        if (m->pages[i].mapped)
            m->pages[i].prot = prot;
        else
            wanted = -ENOMEM;
    }
    KEXPECT_EQ(mm_mprotect(m->mm, PAGE(first), BYTES(n), prot), wanted);
}

static void model_advise(struct model *m, unsigned first, unsigned n, int advice)
{
    int wanted = 0;
    for (unsigned i = first; i < first + n; i++) {
        struct model_page *page = &m->pages[i];
        if (!page->mapped)
            wanted = -ENOMEM;
        else if (advice == MADV_DONTNEED)
            page->byte = page->is_file ? memory_file_byte(i) : 0;
        else
            page->advice = advice == MADV_RANDOM       ? VMA_RANDOM
                           : advice == MADV_SEQUENTIAL ? VMA_SEQUENTIAL
                                                       : 0;
    }
    KEXPECT_EQ(mm_madvise(m->mm, PAGE(first), BYTES(n), advice), wanted);
}

static void model_store(struct model *m, unsigned at)
{
    u8 byte = (u8)rng_next(&m->rng);
    bool allowed = m->pages[at].mapped && (m->pages[at].prot & PROT_WRITE);
    KEXPECT_EQ(user_poke(PAGE(at) + rng_below(&m->rng, 2) * 100, byte), allowed ? 0 : -EFAULT);
    if (allowed)
        KEXPECT_EQ(user_poke(PAGE(at), byte), 0);
    if (allowed)
        m->pages[at].byte = byte;
}

static void model_load(struct model *m, unsigned at)
{
    const struct model_page *page = &m->pages[at];
    bool allowed = page->mapped && page->prot != PROT_NONE;
    KEXPECT_EQ(user_peek(PAGE(at)), allowed ? page->byte : -EFAULT);
}

static void model_step(struct model *m)
{
    static const u8 prots[] = {PROT_NONE, PROT_READ, RW, RW, RW, PROT_READ | PROT_EXEC};
    static const int advices[] = {MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_DONTNEED};
    unsigned first = (unsigned)rng_below(&m->rng, WINDOW_PAGES);
    unsigned n = 1 + (unsigned)rng_below(&m->rng, MIN(16u, WINDOW_PAGES - first));
    u8 prot = prots[rng_below(&m->rng, ARRAY_SIZE(prots))];

    switch (rng_below(&m->rng, 10)) {
    case 0: model_map(m, first, n, prot, false); break;
    case 1: model_map(m, first, n, prot, true); break;
    case 2: model_unmap(m, first, MIN(n, 6u)); break;
    case 3: model_protect(m, first, n, prot); break;
    case 4: model_advise(m, first, n, advices[rng_below(&m->rng, ARRAY_SIZE(advices))]); break;
    case 5:
    case 6:
    case 7: model_store(m, first); break;
    default: model_load(m, first); break;
    }
}

static void model_compare(struct model *m)
{
    const char *wrong = mm_check(m->mm);
    if (wrong)
        ktest_fail(__FILE__, __LINE__, "%s", wrong);
    for (unsigned i = 0; i < WINDOW_PAGES; i++) {
        const struct model_page *page = &m->pages[i];
        const struct vma *vma = vma_find(m->mm, PAGE(i));
        if (!KEXPECT_EQ(vma != NULL, page->mapped) || !vma)
            continue;
        KEXPECT_EQ(vma->prot, page->prot);
        KEXPECT_EQ(vma->flags & ~VMA_ACCOUNT, page->advice);
        KEXPECT_EQ(vma->file != NULL, page->is_file);
        if (vma->file)
            KEXPECT_EQ(vma_pgoff(vma, PAGE(i)), i);
    }
}

static struct model model; /* too large for a kernel stack */

KTEST(vma, two_thousand_random_calls_agree_with_a_flat_model)
{
    struct model *m = &model;
    memset(m, 0, sizeof(*m));
    m->mm = test_mm_enter();
    KASSERT(m->mm != NULL);
    memory_file_init(&m->file, WINDOW_PAGES, true, true);
    rng_seed(&m->rng, 2010);
    for (unsigned step = 0; step < 2000 && !ktest_has_failed(); step++) {
        model_step(m);
        model_compare(m);
        if (ktest_has_failed())
            ktest_note("after step %u", step);
    }
    for (unsigned i = 0; i < WINDOW_PAGES; i++)
        model_load(m, i);
    test_mm_leave();
    memory_file_destroy(&m->file);
}
