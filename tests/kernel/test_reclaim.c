/*
 * Reclaim: which page goes, which stays, and what an allocation gets when there is nothing left to
 * take.
 *
 * Every test first takes everything back that other files have cached, so that what goes next is
 * its own.
 */
#include "kernel/cpu/uaccess.h"
#include "kernel/sched/grace.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/file_read.h"
#include "mm/knobs.h"
#include "mm/reclaim.h"
#include "tests/kernel/fault_rig.h"
#include "tests/kernel/test_mm.h"

#define PAGES        16
#define LARGE_PAGES  GATED_FILE_MAX_PAGES
#define SHORT_FRAMES 128 /* what the tests of shortage leave over */

static bool read_in(struct gated_file *file, pgoff_t first, pgoff_t last)
{
    struct page *page;

    for (pgoff_t i = first; i <= last; i++) {
        if (!KEXPECT_EQ(page_cache_get_page(&file->cache, i, false, &page), 0))
            return false;
        page_put(page);
    }
    return true;
}

static bool is_cached(struct gated_file *file, pgoff_t index)
{
    struct page *page = page_cache_find(&file->cache, index);

    if (page)
        page_put(page);
    return page != NULL;
}

static void set_flags(struct gated_file *file, pgoff_t index, u32 flags)
{
    struct page *page = page_cache_find(&file->cache, index);

    if (KEXPECT(page != NULL)) {
        page_set(page, flags);
        page_put(page);
    }
}

static void clear_flags(struct gated_file *file, pgoff_t index, u32 flags)
{
    struct page *page = page_cache_find(&file->cache, index);

    if (KEXPECT(page != NULL)) {
        page_unset(page, flags);
        page_put(page);
    }
}

/* As if reclaim had looked at all of them already, and none was touched since. */
static void forget_touches(struct gated_file *file, u64 n)
{
    for (pgoff_t i = 0; i < n; i++)
        clear_flags(file, i, PAGE_REFERENCED);
}

/* A file whose first n pages are cached, oldest first, and nothing else that could be taken. */
static struct gated_file *begin(u64 n)
{
    struct gated_file *file = gated_file_create(PAGES);

    if (KEXPECT(file != NULL)) {
        reclaim_pages(~0ul);
        read_in(file, 0, n - 1);
        forget_touches(file, n);
    }
    return file;
}

/* The same with the file mapped. */
static bool begin_mapped(struct fault_rig *rig, u64 n)
{
    if (!KEXPECT(rig_init(rig, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED)))
        return false;
    reclaim_pages(~0ul);
    if (!read_in(rig->file, 0, n - 1))
        return false;
    forget_touches(rig->file, n);
    return true;
}

KTEST(reclaim, oldest_page_goes_first)
{
    struct gated_file *file = begin(8);
    u64 total = reclaim_total();

    KASSERT(file != NULL);
    KEXPECT_EQ(reclaim_pages(1), 1);
    KEXPECT(!is_cached(file, 0));
    KEXPECT_EQ(reclaim_pages(3), 3);
    for (pgoff_t i = 0; i < 8; i++)
        KEXPECT_EQ(is_cached(file, i), i >= 4);
    KEXPECT_EQ(file->cache.n_pages, 4);
    KEXPECT_EQ(reclaim_total(), total + 4);
    KEXPECT_EQ(reclaim_pages(100), 4); /* no more than there is */
    gated_file_destroy(file);
}

KTEST(reclaim, referenced_page_gets_a_second_chance_and_no_third)
{
    struct gated_file *file = begin(4);

    KASSERT(file != NULL);
    set_flags(file, 0, PAGE_REFERENCED);
    KEXPECT_EQ(reclaim_pages(3), 3);
    KEXPECT(is_cached(file, 0));
    KEXPECT_EQ(file->cache.n_pages, 1);
    KEXPECT_EQ(reclaim_pages(1), 1);
    KEXPECT(!is_cached(file, 0));
    gated_file_destroy(file);
}

KTEST(reclaim, page_read_ahead_counts_as_touched)
{
    struct gated_file *file = begin(2);
    struct readahead_call call = {.kind = READAHEAD_ADVICE, .index = 2, .wanted_pages = 2};

    KASSERT(file != NULL);
    call.file = &file->mapped;
    KEXPECT_EQ(readahead_submit(&call, 2, 2, READAHEAD_NO_MARK), 2);
    set_flags(file, 0, PAGE_REFERENCED);
    set_flags(file, 1, PAGE_REFERENCED);
    KEXPECT_EQ(reclaim_pages(2), 2); /* all four equal: the oldest, not the ones still to be used */
    KEXPECT(!is_cached(file, 0));
    KEXPECT(!is_cached(file, 1));
    gated_file_destroy(file);
}

KTEST(reclaim, read_counts_as_touched)
{
    struct gated_file *file = begin(2);
    char byte;

    KASSERT(file != NULL);
    KEXPECT_EQ(file_read_kernel(&file->mapped, 0, &byte, 1), 1);
    KEXPECT_EQ(reclaim_pages(1), 1);
    KEXPECT(is_cached(file, 0));
    KEXPECT(!is_cached(file, 1));
    gated_file_destroy(file);
}

KTEST(reclaim, accessed_bit_counts_as_touched)
{
    struct fault_rig rig;

    KASSERT(begin_mapped(&rig, 2));
    rig_touch(&rig, 0, NULL);
    clear_flags(rig.file, 0, PAGE_REFERENCED);
    KEXPECT_EQ(reclaim_pages(1), 1);
    KEXPECT(!is_cached(rig.file, 1));
    KEXPECT(rig_is_mapped(&rig, 0)); /* looked at, not unmapped */
    KEXPECT_EQ(reclaim_pages(1), 1); /* not touched since */
    KEXPECT(!is_cached(rig.file, 0));
    rig_end(&rig);
}

KTEST(reclaim, mapped_page_goes_from_every_space_and_the_next_touch_is_a_fault)
{
    struct fault_rig rig, other;
    u64 value = 0;

    KASSERT(begin_mapped(&rig, 1));
    other = rig;
    other.mm = mm_create();
    KASSERT(other.mm != NULL);
    KEXPECT_EQ(mm_mmap(other.mm, RIG_BASE, PAGES * PAGE_SIZE, PROT_READ, MAP_PRIVATE | MAP_FIXED,
                       &rig.file->mapped, 0),
               RIG_BASE);
    rig_touch(&rig, 0, NULL);
    rig_touch(&other, 0, NULL);
    KEXPECT_EQ(reclaim_pages(1), 1);
    KEXPECT(!is_cached(rig.file, 0));
    KEXPECT(!rig_is_mapped(&rig, 0));
    KEXPECT(!rig_is_mapped(&other, 0));
    KEXPECT_EQ(rig.mm->rss_file + other.mm->rss_file, 0);
    KEXPECT_EQ(rig_touch_slow(&other, 0, &value).major, 1);
    KEXPECT_EQ(value, gated_file_word(0, 0));
    mm_put(other.mm);
    rig_end(&rig);
}

KTEST(reclaim, locked_pinned_and_dirty_pages_are_passed_over)
{
    struct gated_file *file = begin(6);

    KASSERT(file != NULL);
    struct page *locked = page_cache_find(&file->cache, 0);
    struct page *pinned = page_cache_find(&file->cache, 1);
    page_lock(locked);
    page_put(locked); /* the lock keeps it, not a reference */
    set_flags(file, 2, PAGE_DIRTY);
    set_flags(file, 3, PAGE_WRITEBACK);
    KEXPECT_EQ(reclaim_pages(~0ul), 2);
    for (pgoff_t i = 0; i < 6; i++)
        KEXPECT_EQ(is_cached(file, i), i < 4);
    KEXPECT_EQ(pinned->refs, 2);
    page_unlock(locked);
    page_put(pinned);
    clear_flags(file, 2, PAGE_DIRTY);
    clear_flags(file, 3, PAGE_WRITEBACK);
    KEXPECT_EQ(reclaim_pages(~0ul), 4);
    gated_file_destroy(file);
}

KTEST(reclaim, page_written_through_a_mapping_is_kept)
{
    struct fault_rig rig;

    KASSERT(begin_mapped(&rig, 1));
    rig_store(&rig, 0, 12345);
    clear_flags(rig.file, 0, PAGE_DIRTY); /* only the page-table entry knows */
    KEXPECT_EQ(reclaim_pages(1), 0);
    struct page *page = page_cache_find(&rig.file->cache, 0);
    KASSERT(page != NULL);
    KEXPECT_EQ(*(u64 *)page_virt(page), 12345);
    KEXPECT(page_has(page, PAGE_DIRTY));
    page_unset(page, PAGE_DIRTY);
    page_put(page);
    rig_end(&rig);
}

KTEST(reclaim, page_being_read_is_passed_over)
{
    struct fault_rig rig;
    struct actor reader = {0};

    KASSERT(begin_mapped(&rig, 1));
    rig_touch_held(&rig, &reader, 5);
    KEXPECT_EQ(reclaim_pages(~0ul), 1);
    KEXPECT(is_cached(rig.file, 5));
    gate_open(rig.file->disk);
    actor_join(&reader);
    KEXPECT_EQ(reader.value, gated_file_word(5, 0));
    rig_end(&rig);
}

KTEST(reclaim, allocation_gets_nothing_where_nothing_can_be_taken)
{
    struct gated_file *file = begin(4);
    struct page *pinned[4];

    KASSERT(file != NULL);
    for (pgoff_t i = 0; i < 4; i++)
        pinned[i] = page_cache_find(&file->cache, i);
    frames_fail_inject(0, ~0ul);
    KEXPECT(frame_alloc_reclaim(0) == NULL);
    frames_fail_inject(0, 0);
    for (pgoff_t i = 0; i < 4; i++)
        page_put(pinned[i]);
    KEXPECT_EQ(file->cache.n_pages, 4);
    gated_file_destroy(file);
}

KTEST(reclaim, allocation_takes_from_the_cache_what_it_needs)
{
    struct gated_file *file = begin(8);
    u64 total = reclaim_total();

    KASSERT(file != NULL);
    frames_fail_inject(0, 1);
    struct page *page = frame_alloc_reclaim(0);
    frames_fail_inject(0, 0);
    KEXPECT(page != NULL);
    if (page)
        page_put(page);
    KEXPECT(reclaim_total() > total);
    KEXPECT(!is_cached(file, 0));
    gated_file_destroy(file);
}

/* A mapped file of LARGE_PAGES with readahead, and memory for SHORT_FRAMES. => false: skipped or
 * failed */
static bool begin_short(struct fault_rig *rig, u64 *old_reserve)
{
    if (frames_free_count() < 4 * LARGE_PAGES) {
        ktest_skip("less than 8 MiB free");
        return false;
    }
    if (!KEXPECT(rig_init(rig, LARGE_PAGES, PROT_READ, MAP_SHARED)))
        return false;
    knob_set("readahead", "ondemand");
    knob_set("map_around_bytes", "65536");
    reclaim_pages(~0ul);
    grace_barrier(); /* what earlier tests have deferred would come back in the middle of this one */
    frames_drain_cpu_lists();
    *old_reserve = frames_set_reserve(frames_free_count() - SHORT_FRAMES);
    return true;
}

static void end_short(struct fault_rig *rig, u64 old_reserve)
{
    frames_set_reserve(old_reserve);
    rig_end(rig);
}

KTEST(reclaim, mapped_file_larger_than_memory_can_be_scanned)
{
    struct fault_rig rig;
    u64 old_reserve, total = reclaim_total(), wrong = 0;

    if (!begin_short(&rig, &old_reserve))
        return;
    test_mm_attach(rig.mm);
    for (unsigned round = 0; round < 2; round++) {
        for (pgoff_t i = 0; i < LARGE_PAGES; i++) {
            u64 word = 0;
            wrong += uaccess_copy_in(&word, rig_addr(i), sizeof(word)) != 0 ||
                     word != gated_file_word(i, 0);
        }
    }
    test_mm_attach(NULL);
    KEXPECT_EQ(wrong, 0);
    KEXPECT(rig.file->cache.n_pages <= SHORT_FRAMES + 32);
    KEXPECT(reclaim_total() - total >= 2 * LARGE_PAGES - SHORT_FRAMES - 32);
    end_short(&rig, old_reserve);
}

KTEST(reclaim, file_larger_than_memory_can_be_read)
{
    struct fault_rig rig;
    u64 old_reserve, wrong = 0, word;

    if (!begin_short(&rig, &old_reserve))
        return;
    for (pgoff_t i = 0; i < LARGE_PAGES; i++) {
        ssize_t n = file_read_kernel(&rig.file->mapped, i * PAGE_SIZE, &word, sizeof(word));
        wrong += n != sizeof(word) || word != gated_file_word(i, 0);
    }
    KEXPECT_EQ(wrong, 0);
    KEXPECT(rig.file->cache.n_pages <= SHORT_FRAMES + 32);
    end_short(&rig, old_reserve);
}

KTEST(reclaim, window_without_memory_still_reads_the_wanted_page)
{
    struct fault_rig rig;
    u64 old_reserve, value = 0;

    if (!begin_short(&rig, &old_reserve))
        return;
    /* Less than a window, once stacks, tree nodes, page tables and the lists of the CPUs have
     * theirs. */
    frames_set_reserve(frames_free_count() - 40);
    struct task_fault_counters c = rig_touch(&rig, 200, &value);
    KEXPECT_EQ(c.major + c.minor, 1);
    KEXPECT_EQ(c.oom, 0);
    KEXPECT_EQ(value, gated_file_word(200, 0));
    KEXPECT(rig_is_mapped(&rig, 200));
    end_short(&rig, old_reserve);
}

KTEST(reclaim, nothing_left_at_all_is_oom_and_leaves_the_cache_empty)
{
    struct fault_rig rig;
    u64 old_reserve;

    if (!begin_short(&rig, &old_reserve))
        return;
    frames_set_reserve(~0ul >> 1);
    frames_drain_cpu_lists();
    struct task_fault_counters c = rig_touch(&rig, 200, NULL);
    KEXPECT_EQ(c.oom, 1);
    KEXPECT_EQ(c.major + c.minor, 0);
    KEXPECT(counters_add_up(&c));
    KEXPECT_EQ(rig.file->cache.n_pages, 0);
    end_short(&rig, old_reserve);
}
