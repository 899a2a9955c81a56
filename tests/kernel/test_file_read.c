/*
 * read() on cached files: what it returns, what it copies, and what ends it early.
 */
#include "kernel/cpu/clock.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/file_read.h"
#include "mm/knobs.h"
#include "mm/reclaim.h"
#include "mm/user_memory.h"
#include "tests/kernel/fault_rig.h"
#include "tests/kernel/test_mm.h"
#include "tests/kernel/threads.h"

#define PAGES  128
#define BUFFER 0x40000000ul /* user memory that is read into */

/* A mapped file, whose space the test's thread works in, and an anonymous buffer of as many pages.
 */
static bool begin(struct fault_rig *rig)
{
    if (!KEXPECT(rig_init(rig, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED)))
        return false;
    test_mm_attach(rig->mm);
    return KEXPECT_EQ(mm_mmap(rig->mm, BUFFER, PAGES * PAGE_SIZE, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL, 0),
                      BUFFER);
}

static void end(struct fault_rig *rig)
{
    test_mm_attach(NULL);
    rig_end(rig);
}

static u64 word_at(u64 addr)
{
    u64 word = 0;

    KEXPECT_EQ(copy_from_user(&word, addr, sizeof(word)), 0);
    return word;
}

/* => words of [addr, addr + pages) that are not the file's from page `first` on */
static u64 wrong_words(u64 addr, pgoff_t first, u64 pages)
{
    static u64 words[PAGE_SIZE / sizeof(u64)];
    u64 wrong = 0;

    for (u64 i = 0; i < pages; i++) {
        wrong += copy_from_user(words, addr + i * PAGE_SIZE, PAGE_SIZE) != 0;
        for (unsigned w = 0; w < ARRAY_SIZE(words); w++)
            wrong += words[w] != gated_file_word(first + i, 0);
    }
    return wrong;
}

static ssize_t read_file(struct fault_rig *rig, u64 pos, u64 to, size_t len)
{
    return file_read_user(&rig->file->mapped, pos, to, len);
}

KTEST(file_read, one_read_goes_over_several_batches)
{
    struct fault_rig rig;

    if (begin(&rig)) {
        knob_set("readahead", "ondemand");
        KEXPECT_EQ(read_file(&rig, 3 * PAGE_SIZE, BUFFER, 100 * PAGE_SIZE), 100 * PAGE_SIZE);
        KEXPECT_EQ(wrong_words(BUFFER, 3, 100), 0);
        KEXPECT_EQ(rig.file->mapped.readahead.prev_bytes, 103 * PAGE_SIZE);
    }
    end(&rig);
}

KTEST(file_read, any_start_and_length_give_the_bytes_between)
{
    static u8 got[3 * PAGE_SIZE];
    const u8 *disk;
    struct fault_rig rig;

    if (begin(&rig)) {
        disk = rig.file->data;
        for (u64 pos = 4090; pos < 4101; pos++) {
            for (size_t len = 1; len < 9000; len = len * 3 + 1) {
                memset(got, 0xee, sizeof(got));
                KEXPECT_EQ(file_read_kernel(&rig.file->mapped, pos, got, len), len);
                KEXPECT_EQ(memcmp(got, disk + pos, len), 0);
                KEXPECT_EQ(got[len], 0xee);
            }
        }
    }
    end(&rig);
}

KTEST(file_read, short_at_the_end_and_0_behind_it)
{
    struct fault_rig rig;

    if (begin(&rig)) {
        gated_file_truncate(rig.file, 5 * PAGE_SIZE + 10);
        KEXPECT_EQ(read_file(&rig, 4 * PAGE_SIZE, BUFFER, 10 * PAGE_SIZE), PAGE_SIZE + 10);
        KEXPECT_EQ(word_at(BUFFER + PAGE_SIZE), gated_file_word(5, 0));
        KEXPECT_EQ(user_peek(BUFFER + PAGE_SIZE + 10), 0); /* not a byte more */
        KEXPECT_EQ(read_file(&rig, 5 * PAGE_SIZE + 9, BUFFER, 100), 1);
        KEXPECT_EQ(read_file(&rig, 5 * PAGE_SIZE + 10, BUFFER, 100), 0);
        KEXPECT_EQ(read_file(&rig, 77 * PAGE_SIZE, BUFFER, 100), 0);
        KEXPECT_EQ(read_file(&rig, ~0ul - 5, BUFFER, 100), 0);
        KEXPECT_EQ(read_file(&rig, 0, BUFFER, 0), 0);
        KEXPECT_EQ(rig.file->cache.n_pages, 2);
    }
    end(&rig);
}

KTEST(file_read, hole_in_user_memory_gives_a_short_count_then_efault)
{
    struct fault_rig rig;

    if (begin(&rig)) {
        KEXPECT_EQ(mm_munmap(rig.mm, BUFFER + 2 * PAGE_SIZE, PAGE_SIZE), 0);
        KEXPECT_EQ(read_file(&rig, 0, BUFFER, 4 * PAGE_SIZE), 2 * PAGE_SIZE);
        KEXPECT_EQ(wrong_words(BUFFER, 0, 2), 0);
        KEXPECT_EQ(read_file(&rig, 0, BUFFER + PAGE_SIZE + 100, 4 * PAGE_SIZE), PAGE_SIZE - 100);
        KEXPECT_EQ(read_file(&rig, 0, BUFFER + 2 * PAGE_SIZE, PAGE_SIZE), -EFAULT);
        KEXPECT_EQ(read_file(&rig, 0, 0xffff800000000000ul, 8),
                   -EFAULT); /* the kernel's own memory */
        KEXPECT_EQ(mm_mprotect(rig.mm, BUFFER, PAGE_SIZE, PROT_READ), 0);
        KEXPECT_EQ(read_file(&rig, 0, BUFFER, 8), -EFAULT);
    }
    end(&rig);
}

KTEST(file_read, bad_page_gives_what_lies_before_it_then_eio)
{
    struct fault_rig rig;

    if (begin(&rig)) {
        knob_set("readahead", "ondemand");
        gated_file_fail(rig.file, 6, 6);
        KEXPECT_EQ(read_file(&rig, 100, BUFFER, 20 * PAGE_SIZE), 6 * PAGE_SIZE - 100);
        KEXPECT_EQ(word_at(BUFFER + 4), gated_file_word(0, 0));
        KEXPECT_EQ(user_peek(BUFFER + 6 * PAGE_SIZE - 100), 0);
        KEXPECT_EQ(read_file(&rig, 6 * PAGE_SIZE, BUFFER, PAGE_SIZE), -EIO);
        KEXPECT_EQ(read_file(&rig, 6 * PAGE_SIZE + 5, BUFFER, 20 * PAGE_SIZE), -EIO);
        KEXPECT_EQ(read_file(&rig, 7 * PAGE_SIZE, BUFFER, 4 * PAGE_SIZE), 4 * PAGE_SIZE);
        KEXPECT_EQ(wrong_words(BUFFER, 7, 4), 0);
        gate_open(rig.file->disk);
        KEXPECT_EQ(read_file(&rig, 6 * PAGE_SIZE, BUFFER, PAGE_SIZE),
                   PAGE_SIZE); /* it has recovered */
        KEXPECT_EQ(wrong_words(BUFFER, 6, 1), 0);
    }
    end(&rig);
}

KTEST(file_read, bad_cached_page_in_the_middle_of_a_batch_ends_it_there)
{
    struct fault_rig rig;
    struct page *page;

    if (begin(&rig)) {
        KEXPECT_EQ(read_file(&rig, 0, BUFFER, 10 * PAGE_SIZE), 10 * PAGE_SIZE);
        page = page_cache_find(&rig.file->cache, 4);
        page_unset(page, PAGE_UPTODATE); /* as a failed read would have left it */
        page_set(page, PAGE_ERROR);
        page_put(page);
        gated_file_fail(rig.file, 4, 4);
        KEXPECT_EQ(read_file(&rig, 0, BUFFER, 10 * PAGE_SIZE), 4 * PAGE_SIZE);
        KEXPECT_EQ(read_file(&rig, 4 * PAGE_SIZE, BUFFER, PAGE_SIZE), -EIO);
    }
    end(&rig);
}

static struct {
    struct fault_rig *rig;
    u64 pos, to;
    size_t len;
    ssize_t result;
} job;

static void read_in_thread(void *arg)
{
    (void)arg;
    test_mm_attach(job.rig->mm);
    job.result = file_read_user(&job.rig->file->mapped, job.pos, job.to, job.len);
    test_mm_attach(NULL);
}

/* Starts the read in a thread and waits until it sleeps. */
static struct task *start_read(struct test_threads *threads, struct fault_rig *rig, u64 pos, u64 to,
                               size_t len)
{
    *threads = (struct test_threads){0};
    job.rig = rig;
    job.pos = pos;
    job.to = to;
    job.len = len;
    job.result = -1000;
    return threads_add_and_wait_asleep(threads, read_in_thread, NULL);
}

KTEST(file_read, kill_ends_it_with_what_it_has_got)
{
    struct fault_rig rig;
    struct test_threads threads;

    if (begin(&rig)) {
        gated_file_hold(rig.file, 5, 5);
        struct task *task = start_read(&threads, &rig, 5 * PAGE_SIZE, BUFFER, PAGE_SIZE);
        task_kill(task);
        KEXPECT_EQ(threads_join(&threads), 0);
        KEXPECT_EQ(job.result, -EINTR);
        KEXPECT_EQ(gate_held(rig.file->disk), 1);
        task = start_read(&threads, &rig, 2 * PAGE_SIZE, BUFFER, 10 * PAGE_SIZE);
        task_kill(task);
        KEXPECT_EQ(threads_join(&threads), 0);
        KEXPECT_EQ(job.result, 3 * PAGE_SIZE);
        KEXPECT_EQ(gate_held(rig.file->disk), 1);
    }
    end(&rig);
}

KTEST(file_read, mark_starts_the_next_window_before_the_batch_is_copied)
{
    struct fault_rig rig;
    struct test_threads threads;

    if (begin(&rig)) {
        knob_set("readahead", "ondemand");
        KEXPECT_EQ(read_file(&rig, 0, BUFFER, PAGE_SIZE), PAGE_SIZE); /* (0,4), mark on 1 */
        gated_file_hold(rig.file, 4, 11);
        KEXPECT_EQ(read_file(&rig, PAGE_SIZE, BUFFER, PAGE_SIZE),
                   PAGE_SIZE); /* does not wait for it */
        KEXPECT_EQ(gate_held(rig.file->disk), 1);
        start_read(&threads, &rig, 2 * PAGE_SIZE, BUFFER, 3 * PAGE_SIZE);
        KEXPECT_EQ(gate_held(rig.file->disk),
                   1); /* waits for page 4, the next mark: (12,16) is asked for */
        KEXPECT_EQ(gated_file_requests(rig.file), 2);
        gate_open(rig.file->disk);
        KEXPECT_EQ(threads_join(&threads), 0);
        KEXPECT_EQ(job.result, 3 * PAGE_SIZE);
        KEXPECT_EQ(wrong_words(BUFFER, 2, 3), 0);
    }
    end(&rig);
}

KTEST(file_read, into_a_cold_mapping_of_the_very_page)
{
    struct fault_rig rig;

    if (begin(&rig)) {
        KEXPECT_EQ(read_file(&rig, 3 * PAGE_SIZE, rig_addr(3), PAGE_SIZE), PAGE_SIZE);
        KEXPECT_EQ(wrong_words(rig_addr(3), 3, 1), 0);
        KEXPECT_EQ(gated_file_requests(rig.file), 1);
        struct page *page = page_cache_find(&rig.file->cache, 3);
        KEXPECT_EQ(page->mapcount, 1);
        KEXPECT_EQ(page->refs, 3); /* the cache's, the entry's, ours */
        page_put(page);
    }
    end(&rig);
}

KTEST(file_read, into_a_warm_mapping_of_the_very_page_and_of_its_neighbour)
{
    struct fault_rig rig;

    if (begin(&rig)) {
        rig_touch(&rig, 3, NULL);
        KEXPECT_EQ(read_file(&rig, 3 * PAGE_SIZE + 8, rig_addr(3), 64), 64);
        KEXPECT_EQ(word_at(rig_addr(3)), gated_file_word(3, 0));
        KEXPECT_EQ(read_file(&rig, 3 * PAGE_SIZE, rig_addr(4), 2 * PAGE_SIZE), 2 * PAGE_SIZE);
        KEXPECT_EQ(word_at(rig_addr(4)), gated_file_word(3, 0));
        /* Page 4 was read from after it had been written to, as with a memcpy upwards. */
        KEXPECT_EQ(word_at(rig_addr(5)), gated_file_word(3, 0));
    }
    end(&rig);
}

KTEST(file_read, while_another_reads_the_same_page_waits_and_shares)
{
    struct fault_rig rig;
    struct actor reader = {0};
    struct test_threads threads;

    if (begin(&rig)) {
        rig_touch_held(&rig, &reader, 5);
        start_read(&threads, &rig, 5 * PAGE_SIZE, BUFFER, PAGE_SIZE);
        gate_open(rig.file->disk);
        KEXPECT_EQ(threads_join(&threads), 0);
        actor_join(&reader);
        KEXPECT_EQ(job.result, PAGE_SIZE);
        KEXPECT_EQ(wrong_words(BUFFER, 5, 1), 0);
        KEXPECT_EQ(gated_file_requests(rig.file), 1);
    }
    end(&rig);
}

KTEST(file_read, truncation_while_it_waits_makes_it_short)
{
    struct fault_rig rig;
    struct test_threads threads;
    struct actor cutter = {.argument = 3 * PAGE_SIZE};

    if (begin(&rig)) {
        KEXPECT_EQ(read_file(&rig, 0, BUFFER, 5 * PAGE_SIZE), 5 * PAGE_SIZE);
        gated_file_hold(rig.file, 5, 5);
        start_read(&threads, &rig, 2 * PAGE_SIZE, BUFFER,
                   4 * PAGE_SIZE); /* 2, 3, 4 and the held 5 */
        actor_start(&cutter, &rig, act_truncate);
        KEXPECT(!actor_settle(&cutter));
        gate_open(rig.file->disk);
        actor_join(&cutter);
        KEXPECT_EQ(threads_join(&threads), 0);
        KEXPECT(job.result == PAGE_SIZE ||
                job.result == 3 * PAGE_SIZE); /* before or after the size */
        KEXPECT_EQ(read_file(&rig, 2 * PAGE_SIZE, BUFFER, 4 * PAGE_SIZE), PAGE_SIZE);
    }
    end(&rig);
}

KTEST(file_read, without_memory_is_enomem)
{
    struct fault_rig rig;
    char byte;

    if (begin(&rig)) {
        reclaim_pages(~0ul);
        frames_fail_inject(0, ~0ul);
        ssize_t n = file_read_kernel(&rig.file->mapped, 0, &byte, 1);
        frames_fail_inject(0, 0);
        KEXPECT_EQ(n, -ENOMEM);
        KEXPECT_EQ(rig.file->cache.n_pages, 0);
        KEXPECT_EQ(file_read_kernel(&rig.file->mapped, 0, &byte, 1), 1);
    }
    end(&rig);
}

KTEST(file_read, user_buffer_without_memory_is_efault_and_counted_oom)
{
    struct fault_rig rig;
    struct task_fault_counters *mine = &task_current()->faults;

    if (begin(&rig)) {
        KEXPECT_EQ(read_file(&rig, 0, BUFFER, PAGE_SIZE), PAGE_SIZE); /* cached from here on */
        u64 oom = mine->oom, ended = mine->major + mine->minor;
        struct page *kept = page_cache_find(&rig.file->cache, 0); /* reclaim must not have it */
        frames_fail_inject(0, ~0ul);
        ssize_t n = read_file(&rig, 0, BUFFER + 8 * PAGE_SIZE, PAGE_SIZE);
        s64 addr = mm_mmap(rig.mm, 0, PAGE_SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, NULL, 0);
        for (unsigned i = 0; i < 4096 && addr > 0; i++) /* until the kept objects are used up */
            addr = mm_mmap(rig.mm, 0, PAGE_SIZE, i % 2 ? PROT_READ : PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS, NULL, 0);
        frames_fail_inject(0, 0);
        page_put(kept);
        KEXPECT_EQ(n, -EFAULT);
        KEXPECT(mine->oom > oom);
        KEXPECT_EQ(mine->major + mine->minor, ended);
        KEXPECT_EQ(addr, -ENOMEM); /* a call says it so */
    }
    end(&rig);
}
