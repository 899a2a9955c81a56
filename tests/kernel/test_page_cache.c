/*
 * The page cache: what is found, inserted, read, dropped, truncated, and what is counted meanwhile.
 */
#include "kernel/sched/grace.h"
#include "kernel/sync/counter.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/slab.h"
#include "mm/file_read.h"
#include "mm/reclaim.h"
#include "tests/kernel/fault_rig.h"
#include "tests/kernel/test_mm.h"
#include "tests/kernel/threads.h"

#define PAGES 32

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

static u64 first_word(const struct page *page)
{
    return *(const u64 *)page_virt(page);
}

/* Starts the read of one page, for which nobody waits. */
static void start_read(struct gated_file *file, pgoff_t index)
{
    struct readahead_call call = {
        .file = &file->mapped, .kind = READAHEAD_ADVICE, .index = index, .wanted_pages = 1};

    KEXPECT_EQ(readahead_submit(&call, index, 1, READAHEAD_NO_MARK), 1);
}

struct getter {
    struct gated_file *file;
    pgoff_t index;
    bool killable;
    int error;
    u64 word;
};

static void get_in_thread(void *arg)
{
    struct getter *getter = arg;
    struct page *page;

    getter->error =
        page_cache_get_page(&getter->file->cache, getter->index, getter->killable, &page);
    if (getter->error)
        return;
    getter->word = first_word(page);
    page_put(page);
}

KTEST(page_cache, new_page_is_locked_and_the_second_insert_is_eexist)
{
    struct gated_file *file = gated_file_create(PAGES);
    struct page *page, *other = NULL;
    u64 total = page_cache_total_pages();

    KASSERT(file != NULL);
    KEXPECT_EQ(page_cache_add_new(&file->cache, 7, &page), 0);
    KEXPECT(page_is_locked(page));
    KEXPECT(!page_is_uptodate(page));
    KEXPECT_EQ(page->refs, 2); /* the cache's and ours */
    KEXPECT_EQ(file->cache.n_pages, 1);
    KEXPECT_EQ(page_cache_total_pages(), total + 1);
    KEXPECT_EQ(page_cache_add_new(&file->cache, 7, &other), -EEXIST);
    KEXPECT(other == NULL);
    KEXPECT_EQ(file->cache.n_pages, 1);
    struct page *found = page_cache_find(&file->cache, 7);
    KEXPECT(found == page);
    KEXPECT_EQ(page->refs, 3);
    page_put(found);
    page_read_done(page, 0);
    page_put(page);
    gated_file_destroy(file);
    KEXPECT_EQ(page_cache_total_pages(), total);
}

KTEST(page_cache, removed_page_is_not_found_and_belongs_to_nobody)
{
    struct gated_file *file = gated_file_create(PAGES);
    struct page *page;

    KASSERT(file != NULL);
    KASSERT_EQ(page_cache_get_page(&file->cache, 3, false, &page), 0);
    page_lock(page);
    page_cache_remove(&file->cache, page);
    page_unlock(page);
    KEXPECT(!is_cached(file, 3));
    KEXPECT(!page_cache_owns(&file->cache, page, 3));
    KEXPECT_EQ(page->refs, 1);
    KEXPECT_EQ(first_word(page), gated_file_word(3, 0)); /* who holds it can still read it */
    KEXPECT_EQ(file->cache.n_pages, 0);
    page_put(page);
    gated_file_destroy(file);
}

KTEST(page_cache, ranges_are_found_over_gaps)
{
    struct gated_file *file = gated_file_create(GATED_FILE_MAX_PAGES);
    struct page *pages[64];

    if (!file)
        KTEST_SKIP("no 2 MiB of memory in one piece");
    read_in(file, 2, 4);
    read_in(file, 7, 7);
    read_in(file, 100, 139); /* more than one step of the search */
    KEXPECT_EQ(page_cache_find_range(&file->cache, 3, 120, pages, 64), 2 + 1 + 21);
    KEXPECT_EQ(pages[0]->index, 3);
    KEXPECT_EQ(pages[1]->index, 4);
    KEXPECT_EQ(pages[2]->index, 7);
    KEXPECT_EQ(pages[3]->index, 100);
    KEXPECT_EQ(pages[23]->index, 120);
    for (unsigned i = 0; i < 24; i++) {
        KEXPECT_EQ(pages[i]->refs, 2);
        page_put(pages[i]);
    }
    KEXPECT_EQ(page_cache_find_range(&file->cache, 0, ~0ul - 1, pages, 5), 5);
    for (unsigned i = 0; i < 5; i++)
        page_put(pages[i]);
    KEXPECT_EQ(page_cache_find_range(&file->cache, 8, 99, pages, 64), 0);
    KEXPECT_EQ(page_cache_find_range(&file->cache, 9, 8, pages, 64), 0);
    gated_file_destroy(file);
}

KTEST(page_cache, absent_pages_and_history_are_counted_exactly)
{
    struct gated_file *file = gated_file_create(PAGES);

    KASSERT(file != NULL);
    read_in(file, 0, 2);
    read_in(file, 5, 9);
    KEXPECT_EQ(page_cache_next_absent(&file->cache, 0, 31), 3);
    KEXPECT_EQ(page_cache_next_absent(&file->cache, 4, 31), 4);
    KEXPECT_EQ(page_cache_next_absent(&file->cache, 5, 31), 10);
    KEXPECT_EQ(page_cache_next_absent(&file->cache, 6, 8), 9); /* none: behind the last */
    KEXPECT_EQ(page_cache_count_before(&file->cache, 10, 32), 5);
    KEXPECT_EQ(page_cache_count_before(&file->cache, 10, 3), 3);
    KEXPECT_EQ(page_cache_count_before(&file->cache, 5, 32), 0);
    KEXPECT_EQ(page_cache_count_before(&file->cache, 3, 32), 3);
    KEXPECT_EQ(page_cache_count_before(&file->cache, 0, 32), 0);
    gated_file_destroy(file);
}

KTEST(page_cache, insert_without_memory_leaves_nothing)
{
    struct gated_file *file = gated_file_create(PAGES);
    struct page *page = NULL;
    u64 total;
    int error = 0;

    KASSERT(file != NULL);
    reclaim_pages(~0ul); /* or an insert would help itself from other files */
    total = page_cache_total_pages();
    slab_release_empty();
    for (u64 after = 0; after < 16; after++) {
        frames_fail_inject(after, ~0ul);
        error = page_cache_add_new(&file->cache, 1ul << 40, &page); /* a deep tree: nodes to make */
        frames_fail_inject(0, 0);
        KEXPECT(after > 0 || error == -ENOMEM);
        if (!error)
            break;
        KEXPECT_EQ(error, -ENOMEM);
        KEXPECT_EQ(file->cache.n_pages, 0);
        KEXPECT_EQ(page_cache_total_pages(), total);
        KEXPECT(!is_cached(file, 1ul << 40));
    }
    KASSERT_EQ(error, 0);
    page_read_done(page, 0);
    page_put(page);
    gated_file_destroy(file);
}

KTEST(page_cache, everything_comes_back)
{
    u64 before = test_frames_settled();
    struct gated_file *file = gated_file_create(PAGES);

    KASSERT(file != NULL);
    read_in(file, 0, PAGES - 1);
    KEXPECT_EQ(file->cache.n_pages, PAGES);
    gated_file_truncate(file, 5 * PAGE_SIZE);
    KEXPECT_EQ(file->cache.n_pages, 5);
    KEXPECT_EQ(page_cache_drop_range(&file->cache, 0, 0), 1);
    gated_file_destroy(file);
    KEXPECT_EQ(test_frames_settled(), before);
}

KTEST(page_cache, dropping_skips_what_is_in_use)
{
    struct fault_rig rig;

    KASSERT(rig_init(&rig, PAGES, PROT_READ, MAP_SHARED));
    read_in(rig.file, 0, 7);
    struct page *dirty = page_cache_find(&rig.file->cache, 1);
    struct page *locked = page_cache_find(&rig.file->cache, 2);
    struct page *pinned = page_cache_find(&rig.file->cache, 3);
    struct page *written = page_cache_find(&rig.file->cache, 4);
    rig_touch(&rig, 0, NULL);
    page_set(dirty, PAGE_DIRTY);
    page_put(dirty);
    page_lock(locked);
    page_put(locked);
    page_set(written, PAGE_WRITEBACK);
    page_put(written);
    KEXPECT_EQ(page_cache_drop_range(&rig.file->cache, 0, 6), 2);
    for (pgoff_t i = 0; i <= 4; i++)
        KEXPECT(is_cached(rig.file, i));
    KEXPECT(!is_cached(rig.file, 5));
    KEXPECT(!is_cached(rig.file, 6));
    KEXPECT(is_cached(rig.file, 7)); /* outside the range */
    KEXPECT(rig_is_mapped(&rig, 0));
    page_unset(written, PAGE_WRITEBACK);
    page_unset(dirty, PAGE_DIRTY);
    page_unlock(locked);
    page_put(pinned);
    KEXPECT_EQ(page_cache_drop_range(&rig.file->cache, 0, ~0ul - 1), 5);
    KEXPECT_EQ(rig.file->cache.n_pages, 1);
    rig_end(&rig);
}

KTEST(page_cache, a_pinned_page_cannot_be_frozen)
{
    struct gated_file *file = gated_file_create(PAGES);
    struct page *page;

    KASSERT(file != NULL);
    KASSERT_EQ(page_cache_get_page(&file->cache, 3, false, &page), 0);
    page_get(page); /* somebody else found it */
    page_lock(page);
    KEXPECT(!page_cache_remove_frozen(&file->cache, page));
    KEXPECT(page_is_locked(page));
    KEXPECT_EQ(page->refs, 3);
    KEXPECT(is_cached(file, 3));
    page_put(page);
    KEXPECT(page_cache_remove_frozen(&file->cache, page)); /* the lock and our reference went too */
    KEXPECT(!is_cached(file, 3));
    KEXPECT_EQ(file->cache.n_pages, 0);
    gated_file_destroy(file);
}

KTEST(page_cache, who_gets_a_page_waits_for_the_read_of_another)
{
    struct fault_rig rig;
    struct actor reader = {0};
    struct test_threads threads = {0};
    char reason[64];

    KASSERT(rig_init(&rig, PAGES, PROT_READ, MAP_SHARED));
    struct getter getter = {.file = rig.file, .index = 5};
    rig_touch_held(&rig, &reader, 5);
    struct task *task = threads_add_and_wait_asleep(&threads, get_in_thread, &getter);
    threads_wait_reason(task, reason, sizeof(reason));
    KEXPECT_STREQ(reason, "page 5 of inode 4242");
    gate_open(rig.file->disk);
    KEXPECT_EQ(threads_join(&threads), 0);
    actor_join(&reader);
    KEXPECT_EQ(getter.error, 0);
    KEXPECT_EQ(getter.word, gated_file_word(5, 0));
    KEXPECT_EQ(gated_file_requests(rig.file), 1);
    rig_end(&rig);
}

KTEST(page_cache, kill_ends_the_wait_for_a_page_and_leaves_its_read_alone)
{
    struct gated_file *file = gated_file_create(PAGES);
    struct test_threads threads = {0};
    struct getter getter = {.file = file, .index = 5, .killable = true};

    KASSERT(file != NULL);
    gated_file_hold(file, 5, 5);
    struct task *task = threads_add_and_wait_asleep(&threads, get_in_thread, &getter);
    task_kill(task);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(getter.error, -EINTR);
    KEXPECT_EQ(gate_held(file->disk), 1);
    gate_open(file->disk);
    KEXPECT(read_in(file, 5, 5));
    KEXPECT_EQ(gated_file_requests(file), 1);
    gated_file_destroy(file);
}

KTEST(page_cache, page_that_failed_is_read_again_once)
{
    struct gated_file *file = gated_file_create(PAGES);
    struct page *page = NULL;

    KASSERT(file != NULL);
    gate_fail(file->disk, gated_file_sector(3), gated_file_sector(4) - 1, -EIO, 1);
    gate_log_reset(file->disk);
    KEXPECT_EQ(page_cache_get_page(&file->cache, 3, false, &page), 0);
    KASSERT(page != NULL);
    KEXPECT_EQ(first_word(page), gated_file_word(3, 0));
    KEXPECT(!page_has(page, PAGE_ERROR | PAGE_LOCKED));
    page_put(page);
    KEXPECT_EQ(gate_log(file->disk, NULL, 0), 2);

    gated_file_fail(file, 9, 9);
    gate_log_reset(file->disk);
    KEXPECT_EQ(page_cache_get_page(&file->cache, 9, false, &page), -EIO);
    KEXPECT_EQ(gate_log(file->disk, NULL, 0), 2);
    KEXPECT_EQ(page_cache_get_page(&file->cache, 9, false, &page), -EIO);
    KEXPECT_EQ(gate_log(file->disk, NULL, 0), 3); /* its failure is known: one more try */
    gate_open(file->disk);
    KEXPECT(read_in(file, 9, 9));
    gated_file_destroy(file);
}

KTEST(page_cache, past_the_end_is_enxio_without_a_request)
{
    struct gated_file *file = gated_file_create(PAGES);
    struct page *page;

    KASSERT(file != NULL);
    gated_file_truncate(file, 3 * PAGE_SIZE + 1);
    KEXPECT_EQ(page_cache_get_page(&file->cache, 3, false, &page), 0);
    page_put(page);
    KEXPECT_EQ(page_cache_get_page(&file->cache, 4, false, &page), -ENXIO);
    KEXPECT_EQ(gated_file_requests(file), 1);
    KEXPECT_EQ(file->cache.n_pages, 1);
    gated_file_destroy(file);
}

struct cutter {
    struct gated_file *file;
    u64 size;
};

static void truncate_in_thread(void *arg)
{
    struct cutter *cutter = arg;

    gated_file_truncate(cutter->file, cutter->size);
}

KTEST(page_cache, truncation_waits_for_a_read_and_who_waits_too_finds_the_end)
{
    struct gated_file *file = gated_file_create(PAGES);
    struct test_threads cutting = {0}, getting = {0};
    struct cutter cutter = {file, 5 * PAGE_SIZE};
    struct getter getter = {.file = file, .index = 5};
    char reason[64];

    KASSERT(file != NULL);
    gated_file_hold(file, 5, 5);
    start_read(file, 5);
    struct task *task = threads_add_and_wait_asleep(&cutting, truncate_in_thread, &cutter);
    threads_wait_reason(task, reason, sizeof(reason));
    KEXPECT_STREQ(reason, "page 5 of inode 4242");
    KEXPECT_EQ(page_cache_size_pages(&file->cache), 5); /* the size first */
    KEXPECT(is_cached(file, 5));
    threads_add_and_wait_asleep(&getting, get_in_thread, &getter);
    gate_open(file->disk);
    KEXPECT_EQ(threads_join(&cutting), 0);
    KEXPECT_EQ(threads_join(&getting), 0);
    KEXPECT_EQ(getter.error, -ENXIO);
    KEXPECT(!is_cached(file, 5));
    KEXPECT_EQ(file->cache.n_pages, 0);
    gated_file_destroy(file);
}

KTEST(page_cache, truncation_takes_dirty_and_mapped_pages_and_keeps_the_rest)
{
    struct fault_rig rig;

    KASSERT(rig_init(&rig, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED));
    rig_store(&rig, 4, 1);
    rig_store(&rig, 5, 1);
    rig_touch(&rig, 6, NULL);
    gated_file_truncate(rig.file, 5 * PAGE_SIZE);
    KEXPECT(rig_is_mapped(&rig, 4));
    KEXPECT(!rig_is_mapped(&rig, 5));
    KEXPECT(!rig_is_mapped(&rig, 6));
    KEXPECT_EQ(rig.file->cache.n_pages, 1);
    KEXPECT_EQ(rig.mm->rss_file, 1);
    KEXPECT_EQ(rig_touch(&rig, 5, NULL).sigbus, 1);
    rig_end(&rig);
}

KTEST(page_cache, growing_a_file_keeps_its_pages_and_opens_new_ones)
{
    struct gated_file *file = gated_file_create(PAGES);

    KASSERT(file != NULL);
    gated_file_truncate(file, 4 * PAGE_SIZE);
    read_in(file, 0, 3);
    gated_file_truncate(file, 6 * PAGE_SIZE);
    KEXPECT_EQ(file->cache.n_pages, 4);
    KEXPECT_EQ(gated_file_requests(file), 4);
    read_in(file, 0, 5);
    KEXPECT_EQ(gated_file_requests(file), 6);
    gated_file_destroy(file);
}

KTEST(page_cache, tail_of_the_last_page_reads_as_zero_also_after_growing)
{
    struct gated_file *file = gated_file_create(PAGES);
    struct page *page;
    char bytes[PAGE_SIZE / 8];
    const u64 kept = 104;

    KASSERT(file != NULL);
    KASSERT_EQ(page_cache_get_page(&file->cache, 2, false, &page), 0);
    gated_file_truncate(file, 2 * PAGE_SIZE + kept);
    gated_file_truncate(file, PAGES * PAGE_SIZE);
    const u64 *words = page_virt(page);
    KEXPECT(page_cache_owns(&file->cache, page, 2)); /* the same page, never read again */
    KEXPECT_EQ(words[kept / 8 - 1], gated_file_word(2, 0));
    for (unsigned i = kept / 8; i < PAGE_SIZE / 8; i++)
        KEXPECT_EQ(words[i], 0);
    page_put(page);
    KEXPECT_EQ(file_read_kernel(&file->mapped, 2 * PAGE_SIZE + kept, bytes, sizeof(bytes)),
               sizeof(bytes));
    KEXPECT_EQ(bytes[0] | bytes[sizeof(bytes) - 1], 0);
    gated_file_destroy(file);
}

static void destroy_in_thread(void *arg)
{
    page_cache_destroy(arg);
}

KTEST(page_cache, destroying_waits_for_reads_in_flight)
{
    struct gated_file *file = gated_file_create(PAGES);
    struct test_threads threads = {0};

    KASSERT(file != NULL);
    read_in(file, 0, 3);
    gated_file_hold(file, 5, 5);
    start_read(file, 5);
    threads_add_and_wait_asleep(&threads, destroy_in_thread, &file->cache);
    KEXPECT_EQ(file->cache.n_pages, 1); /* the others are gone already */
    KEXPECT(is_cached(file, 5));
    gate_open(file->disk);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(file->cache.n_pages, 0);
    gated_file_destroy(file);
}

/* A second address space with the rig's file mapped at the same place. */
static bool second_space(struct fault_rig *rig, struct fault_rig *second, u32 prot)
{
    *second = *rig;
    second->mm = mm_create();
    return KEXPECT(second->mm != NULL) &&
           KEXPECT_EQ(mm_mmap(second->mm, RIG_BASE, rig->n_pages * PAGE_SIZE, prot,
                              MAP_SHARED | MAP_FIXED, &rig->file->mapped, 0),
                      RIG_BASE);
}

KTEST(page_cache, unmapping_everywhere_reaches_every_address_space)
{
    struct fault_rig rig, other;
    u64 value = 0;

    KASSERT(rig_init(&rig, PAGES, PROT_READ, MAP_SHARED));
    if (second_space(&rig, &other, PROT_READ)) {
        rig_touch(&rig, 3, NULL);
        rig_touch(&rig, 4, NULL);
        rig_touch(&other, 3, NULL);
        struct page *page = page_cache_find(&rig.file->cache, 3);
        KEXPECT_EQ(page->mapcount, 2);
        KEXPECT_EQ(page->refs, 4);
        page_lock(page);
        page_unmap_everywhere(&rig.file->cache, page);
        page_unlock(page);
        KEXPECT_EQ(page->mapcount, 0);
        KEXPECT_EQ(page->refs, 2);
        KEXPECT(!rig_is_mapped(&rig, 3));
        KEXPECT(!rig_is_mapped(&other, 3));
        KEXPECT(rig_is_mapped(&rig, 4)); /* its neighbour stays */
        KEXPECT_EQ(rig.mm->rss_file, 1);
        KEXPECT_EQ(other.mm->rss_file, 0);
        page_put(page);
        KEXPECT_EQ(rig_touch(&other, 3, &value).minor, 1);
        KEXPECT_EQ(value, gated_file_word(3, 0));
        KEXPECT_EQ(gated_file_requests(rig.file), 2);
    }
    mm_put(other.mm);
    rig_end(&rig);
}

KTEST(page_cache, unmapping_keeps_what_the_entries_knew)
{
    struct fault_rig rig;

    KASSERT(rig_init(&rig, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED));
    rig_store(&rig, 3, 99);
    struct page *page = page_cache_find(&rig.file->cache, 3);
    page_unset(page, PAGE_DIRTY | PAGE_REFERENCED); /* only the processor's bits know */
    page_lock(page);
    page_unmap_everywhere(&rig.file->cache, page);
    KEXPECT(page_has(page, PAGE_DIRTY));
    KEXPECT(page_has(page, PAGE_REFERENCED));
    page_unset(page, PAGE_DIRTY);
    page_unlock(page);
    page_put(page);
    rig_end(&rig);
}

KTEST(page_cache, accessed_bits_are_taken_once)
{
    struct fault_rig rig;

    KASSERT(rig_init(&rig, PAGES, PROT_READ, MAP_SHARED));
    rig_touch(&rig, 3, NULL);
    struct page *page = page_cache_find(&rig.file->cache, 3);
    page_lock(page);
    KEXPECT(page_test_clear_accessed(&rig.file->cache, page));
    KEXPECT(!page_test_clear_accessed(&rig.file->cache, page));
    page_unlock(page);
    KEXPECT_EQ(rig_touch(&rig, 3, NULL).started, 0); /* still mapped: no fault, but seen */
    page_lock(page);
    KEXPECT(page_test_clear_accessed(&rig.file->cache, page));
    page_unlock(page);
    page_put(page);
    rig_end(&rig);
}

KTEST(page_cache, page_of_a_device_is_metadata)
{
    struct gated_file *file = gated_file_create(PAGES);
    struct page_cache *cache;
    struct page *page;

    KASSERT(file != NULL);
    cache = &file->cache;
    page_cache_init(cache, cache->ops, file, true);
    cache->size_bytes = PAGES * PAGE_SIZE;
    KASSERT_EQ(page_cache_get_page(cache, 3, false, &page), 0);
    KEXPECT(page_has(page, PAGE_META));
    page_put(page);
    gated_file_destroy(file);
}
