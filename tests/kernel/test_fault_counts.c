/*
 * One access, one count: the table of FAULTS.md section 3, and what each fault leaves in the page tables.
 */
#include "kernel/cpu/uaccess.h"
#include "lib/string.h"
#include "mm/knobs.h"
#include "tests/kernel/fault_rig.h"

#define PAGES 64
#define ANON  0x20000000ul

static bool expect_counts(struct task_fault_counters c, u64 major, u64 minor)
{
    return KEXPECT_EQ(c.major, major) & KEXPECT_EQ(c.minor, minor) & KEXPECT(counters_add_up(&c));
}

/* Takes the entry of one page away, as if it had been reclaimed from the page table alone. */
static void forget_entry(struct fault_rig *rig, pgoff_t page)
{
    rwsem_write_lock(&rig->mm->mmap_lock);
    mm_zap_range(rig->mm, rig_addr(page), rig_addr(page + 1));
    rwsem_write_unlock(&rig->mm->mmap_lock);
}

static bool begin(struct fault_rig *rig, u32 prot, u32 share)
{
    return KEXPECT(rig_init(rig, PAGES, prot, share));
}

FAULT_TEST(fault_counts, cold_file_page_is_major_then_cached_is_minor)
{
    struct fault_rig rig;
    u64 value = 0;
    if (begin(&rig, PROT_READ, MAP_SHARED)) {
        expect_counts(rig_touch_slow(&rig, 3, &value), 1, 0);
        KEXPECT_EQ(value, gated_file_word(3, 0));
        forget_entry(&rig, 3);
        struct task_fault_counters c = rig_touch(&rig, 3, &value);
        expect_counts(c, 0, 1);
        KEXPECT_EQ(c.reason[FAULT_REASON_CACHE], 1);
        KEXPECT_EQ(c.retries, 0);
    }
    rig_end(&rig);
}

FAULT_TEST(fault_counts, mapped_page_is_no_fault)
{
    struct fault_rig rig;
    if (begin(&rig, PROT_READ, MAP_SHARED)) {
        rig_touch(&rig, 3, NULL);
        KEXPECT_EQ(rig_touch(&rig, 3, NULL).started, 0);
    }
    rig_end(&rig);
}

FAULT_TEST_OF_EACH_POLICY(fault_counts, page_with_the_mark_is_minor_and_starts_the_next_window)
{
    struct fault_rig rig;
    if (begin(&rig, PROT_READ, MAP_SHARED)) {
        knob_set("readahead", "ondemand");
        expect_counts(rig_touch_slow(&rig, 0, NULL), 1, 0); /* window (0,32), mark on 24 */
        u64 before = gated_file_requests(rig.file);
        struct actor reader = {.addr = rig_addr(24)};
        gated_file_hold(rig.file, 32, 63);
        actor_start(&reader, &rig, act_touch);
        KEXPECT(actor_settle(&reader)); /* does not wait for what it started */
        KEXPECT_EQ(gate_held(rig.file->disk), 1);
        actor_join(&reader);
        expect_counts(reader.faults, 0, 1);
        KEXPECT_EQ(reader.faults.retries, rig_lets_go_before_asking() && !rig_takes_back());
        gate_open(rig.file->disk);
        KEXPECT_EQ(before, 1);
    }
    rig_end(&rig);
}

FAULT_TEST(fault_counts, hole_is_minor_and_asks_no_disk)
{
    struct fault_rig rig;
    u64 value = 1;
    if (begin(&rig, PROT_READ, MAP_SHARED)) {
        gated_file_punch(rig.file, 7, 7);
        expect_counts(rig_touch(&rig, 7, &value), 0, 1);
        KEXPECT_EQ(value, 0);
        KEXPECT_EQ(gated_file_requests(rig.file), 0);
    }
    rig_end(&rig);
}

FAULT_TEST(fault_counts, past_the_end_is_sigbus_without_disk_or_count)
{
    struct fault_rig rig;
    if (begin(&rig, PROT_READ, MAP_SHARED)) {
        gated_file_truncate(rig.file, 10 * PAGE_SIZE + 1);
        expect_counts(rig_touch_slow(&rig, 10, NULL), 1, 0); /* the last, partial page */
        u64 requests = gated_file_requests(rig.file);
        struct task_fault_counters c = rig_touch(&rig, 11, NULL);
        expect_counts(c, 0, 0);
        KEXPECT_EQ(c.sigbus, 1);
        KEXPECT_EQ(c.reason[FAULT_REASON_FAILED], 1);
        KEXPECT_EQ(gated_file_requests(rig.file), requests);
    }
    rig_end(&rig);
}

FAULT_TEST(fault_counts, no_mapping_and_no_permission_are_sigsegv_without_count)
{
    struct fault_rig rig;
    if (begin(&rig, PROT_READ, MAP_SHARED)) {
        struct task_fault_counters c = rig_touch(&rig, PAGES + 100, NULL);
        expect_counts(c, 0, 0);
        KEXPECT_EQ(c.sigsegv, 1);
        c = rig_store(&rig, 3, 1);
        expect_counts(c, 0, 0);
        KEXPECT_EQ(c.sigsegv, 1);
        KEXPECT_EQ(gated_file_requests(rig.file), 0);
    }
    rig_end(&rig);
}

FAULT_TEST(fault_counts, private_store_to_a_cold_page_is_one_major_and_one_copy)
{
    struct fault_rig rig;
    u64 value = 0;
    if (begin(&rig, PROT_READ | PROT_WRITE, MAP_PRIVATE)) {
        struct task_fault_counters c = rig_store_slow(&rig, 4, 77);
        expect_counts(c, 1, 0);
        KEXPECT_EQ(rig.mm->rss_anon, 1);
        KEXPECT_EQ(rig.mm->rss_file, 0);
        KEXPECT_EQ(rig_touch(&rig, 4, &value).started, 0);
        KEXPECT_EQ(value, 77);
        KEXPECT_EQ(*(u64 *)((char *)rig.file->data + 4 * PAGE_SIZE), gated_file_word(4, 0));
        struct page *cached = page_cache_find(&rig.file->cache, 4);
        KEXPECT(cached && *(u64 *)page_virt(cached) == gated_file_word(4, 0));
        if (cached)
            page_put(cached);
    }
    rig_end(&rig);
}

FAULT_TEST(fault_counts, private_store_to_a_cached_page_is_one_minor)
{
    struct fault_rig rig;
    if (begin(&rig, PROT_READ | PROT_WRITE, MAP_PRIVATE)) {
        rig_touch(&rig, 4, NULL);
        struct task_fault_counters c = rig_store(&rig, 4, 77); /* mapped read-only by the read */
        expect_counts(c, 0, 1);
        KEXPECT_EQ(c.reason[FAULT_REASON_COW], 1);
        KEXPECT_EQ(rig.mm->rss_file, 0);
        KEXPECT_EQ(rig.mm->rss_anon, 1);
    }
    rig_end(&rig);
}

FAULT_TEST(fault_counts, anonymous_read_then_write_are_one_minor_each)
{
    struct fault_rig rig;
    u64 value = 1;
    if (begin(&rig, PROT_READ, MAP_SHARED)) {
        KEXPECT_EQ(mm_mmap(rig.mm, ANON, 4 * PAGE_SIZE, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL, 0),
                   ANON);
        pgoff_t page = (ANON - RIG_BASE) / PAGE_SIZE;
        struct task_fault_counters c = rig_touch(&rig, page, &value);
        expect_counts(c, 0, 1);
        KEXPECT_EQ(c.reason[FAULT_REASON_ZERO], 1);
        KEXPECT_EQ(value, 0);
        KEXPECT_EQ(rig.mm->rss_anon, 0); /* the zero page is nobody's */
        expect_counts(rig_store(&rig, page, 5), 0, 1);
        KEXPECT_EQ(rig.mm->rss_anon, 1);
        rig_touch(&rig, page, &value);
        KEXPECT_EQ(value, 5);
        expect_counts(rig_store(&rig, page + 1, 6), 0, 1); /* first touch is a store */
        KEXPECT_EQ(rig_store(&rig, page + 1, 7).started, 0);
    }
    rig_end(&rig);
}

FAULT_TEST(fault_counts, mprotect_to_read_only_and_back_then_a_store_is_no_fault)
{
    struct fault_rig rig;
    if (begin(&rig, PROT_READ, MAP_SHARED)) {
        mm_mmap(rig.mm, ANON, PAGE_SIZE, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL, 0);
        pgoff_t page = (ANON - RIG_BASE) / PAGE_SIZE;
        rig_store(&rig, page, 5);
        KEXPECT_EQ(mm_mprotect(rig.mm, ANON, PAGE_SIZE, PROT_READ), 0);
        KEXPECT_EQ(rig_store(&rig, page, 6).sigsegv, 1);
        KEXPECT_EQ(mm_mprotect(rig.mm, ANON, PAGE_SIZE, PROT_READ | PROT_WRITE), 0);
        KEXPECT_EQ(rig_store(&rig, page, 7).started, 0);
    }
    rig_end(&rig);
}

FAULT_TEST(fault_counts, good_neighbour_of_a_failed_window_is_read_by_itself)
{
    struct fault_rig rig;
    u64 value = 0;
    if (begin(&rig, PROT_READ, MAP_SHARED)) {
        knob_set("readahead", "ondemand");
        gated_file_fail(rig.file, 20, 20);
        struct task_fault_counters c =
            rig_touch_slow(&rig, 5, &value); /* window (0,32) holds page 20 */
        expect_counts(c, 1, 0);
        KEXPECT_EQ(value, gated_file_word(5, 0));
        KEXPECT_EQ(gated_file_requests(rig.file), 2);
        expect_counts(rig_touch_slow(&rig, 6, &value), 1, 0);
        KEXPECT_EQ(value, gated_file_word(6, 0));
    }
    rig_end(&rig);
}

FAULT_TEST(fault_counts, bad_sector_is_sigbus_and_is_not_remembered)
{
    struct fault_rig rig;
    u64 value = 0;
    if (begin(&rig, PROT_READ, MAP_SHARED)) {
        gated_file_fail(rig.file, 20, 20);
        struct task_fault_counters c = rig_touch(&rig, 20, NULL);
        expect_counts(c, 0, 0);
        KEXPECT_EQ(c.sigbus, 1);
        KEXPECT_EQ(gated_file_requests(rig.file), 2); /* read again by itself, once */
        gate_open(rig.file->disk);
        c = rig_touch(&rig, 20, &value);
        KEXPECT_EQ(c.major + c.minor, 1);
        KEXPECT_EQ(value, gated_file_word(20, 0));
    }
    rig_end(&rig);
}

/* Whether one of the first n requests of the gate's log reads the page. */
static bool was_asked_for(const struct gate_log_entry *log, unsigned n, pgoff_t page)
{
    for (unsigned i = 0; i < n; i++) {
        u64 first = log[i].sector / SECTORS_PER_PAGE, pages = log[i].bytes / PAGE_SIZE;
        if (page >= first && page - first < pages)
            return true;
    }
    return false;
}

#define SCAN_PAGES 512
#define WINDOW     32

FAULT_TEST(fault_counts, scan_costs_its_bytes_and_pages_are_asked_for_before_they_are_touched)
{
    static struct gate_log_entry log[SCAN_PAGES];
    struct fault_rig rig;
    if (!KEXPECT(rig_init(&rig, SCAN_PAGES, PROT_READ, MAP_SHARED)))
        return;
    knob_set("readahead", "ondemand");
    gate_log_reset(rig.file->disk);
    unsigned late = 0;
    for (pgoff_t page = 0; page < SCAN_PAGES; page++) {
        unsigned n = gate_log(rig.file->disk, log, SCAN_PAGES);
        late += !was_asked_for(log, n, page);
        rig_touch(&rig, page, NULL);
    }
    unsigned n = gate_log(rig.file->disk, log, SCAN_PAGES);
    KEXPECT_EQ(late, 1); /* the very first */
    KEXPECT_EQ(n, SCAN_PAGES / WINDOW);
    for (unsigned i = 0; i < n; i++) {
        KEXPECT_EQ(log[i].sector, i * WINDOW * SECTORS_PER_PAGE);
        KEXPECT_EQ(log[i].bytes, WINDOW * PAGE_SIZE);
    }
    rig_end(&rig);
}

FAULT_TEST(fault_counts, map_around_maps_cached_neighbours_but_not_the_mark)
{
    struct fault_rig rig;
    if (begin(&rig, PROT_READ, MAP_SHARED)) {
        knob_set("readahead", "ondemand");
        rig_touch(&rig, 0, NULL); /* all of (0,32) is cached after this; mark on 24 */
        knob_set("map_around_bytes", "65536");
        struct task_fault_counters c = rig_touch(&rig, 20, NULL);
        expect_counts(c, 0, 1);
        KEXPECT_EQ(c.reason[FAULT_REASON_AROUND], 14); /* 16…31 without 20 and 24 */
        KEXPECT(rig_is_mapped(&rig, 16) && rig_is_mapped(&rig, 31));
        KEXPECT(!rig_is_mapped(&rig, 24));
        KEXPECT(!rig_is_mapped(&rig, 15) && !rig_is_mapped(&rig, 32));
    }
    rig_end(&rig);
}

FAULT_TEST(fault_counts, map_around_stays_inside_the_area_and_the_file)
{
    struct fault_rig rig;
    if (begin(&rig, PROT_READ, MAP_SHARED)) {
        knob_set("readahead", "ondemand");
        rig_touch(&rig, 0, NULL);
        KEXPECT_EQ(mm_munmap(rig.mm, rig_addr(0), 3 * PAGE_SIZE), 0);
        gated_file_truncate(rig.file, 9 * PAGE_SIZE);
        knob_set("map_around_bytes", "65536");
        struct task_fault_counters c = rig_touch(&rig, 5, NULL);
        KEXPECT_EQ(c.reason[FAULT_REASON_AROUND], 5); /* 3…8 without 5 */
        KEXPECT(!rig_is_mapped(&rig, 2) && rig_is_mapped(&rig, 3));
        KEXPECT(rig_is_mapped(&rig, 8) && !rig_is_mapped(&rig, 9));
    }
    rig_end(&rig);
}

FAULT_TEST(fault_counts, kernel_access_with_faults_disabled_is_not_started)
{
    struct fault_rig rig;
    if (begin(&rig, PROT_READ, MAP_SHARED)) {
        struct task *task = task_current();
        u64 started = task->faults.started, value;
        task->pagefault_disabled++;
        KEXPECT_EQ(uaccess_copy_in(&value, rig_addr(1), sizeof(value)), sizeof(value));
        task->pagefault_disabled--;
        KEXPECT_EQ(task->faults.started, started);
    }
    rig_end(&rig);
}

FAULT_TEST(fault_counts, truncation_unmaps_and_a_grown_file_reads_zeros_behind_the_old_end)
{
    struct fault_rig rig;
    u64 value = 1;
    if (begin(&rig, PROT_READ, MAP_SHARED)) {
        rig_touch(&rig, 9, NULL);
        rig_touch(&rig, 12, NULL);
        gated_file_truncate(rig.file, 9 * PAGE_SIZE + 8);
        KEXPECT(rig_is_mapped(&rig, 9));
        KEXPECT(!rig_is_mapped(&rig, 12));
        struct page *page = page_cache_find(&rig.file->cache, 9);
        KASSERT(page);
        KEXPECT_EQ(((u64 *)page_virt(page))[0], gated_file_word(9, 0));
        KEXPECT_EQ(((u64 *)page_virt(page))[1], 0);
        page_put(page);
        KEXPECT_EQ(rig_touch(&rig, 12, &value).sigbus, 1);
    }
    rig_end(&rig);
}

/* Touches every page, each thread from another place, while the first one keeps unmapping and mapping a part. */
static void act_scan(struct actor *actor)
{
    for (u64 i = 0; i < 3 * PAGES; i++) {
        u64 page = (actor->argument * 11 + i * 7) % PAGES, value = 0;
        if (uaccess_copy_in(&value, rig_addr(page), sizeof(value)) == 0 &&
            value != gated_file_word(page, 0))
            actor->result++;
    }
}

static void act_remap(struct actor *actor)
{
    struct fault_rig *rig = actor->rig;
    for (u64 i = 0; i < 40; i++) {
        u64 addr = rig_addr(i % 48);
        actor->result |= mm_munmap(rig->mm, addr, 16 * PAGE_SIZE);
        page_cache_drop_range(&rig->file->cache, 0, PAGES);
        mm_mmap(rig->mm, addr, 16 * PAGE_SIZE, PROT_READ, MAP_SHARED | MAP_FIXED,
                &rig->file->mapped, addr - RIG_BASE);
    }
}

FAULT_TEST(fault_counts, identities_hold_and_bytes_are_right_while_others_unmap)
{
    struct fault_rig rig;
    struct actor actors[6] = {0};
    struct task_fault_counters before, after;
    if (begin(&rig, PROT_READ, MAP_SHARED)) {
        knob_set("readahead", "ondemand");
        account_system(&before);
        u64 started = 0, counted = 0;
        for (unsigned i = 0; i < 6; i++) {
            actors[i].argument = i;
            actor_start(&actors[i], &rig, i == 0 ? act_remap : act_scan);
        }
        for (unsigned i = 0; i < 6; i++) {
            actor_join(&actors[i]);
            KEXPECT_EQ(actors[i].result, 0);
            KEXPECT(counters_add_up(&actors[i].faults));
            KEXPECT_EQ(actors[i].faults.lock_across_io, 0);
            started += actors[i].faults.started;
        }
        account_system(&after);
        counted = after.started - before.started;
        KEXPECT_EQ(counted, started);
        KEXPECT(counters_add_up(&after));
        KEXPECT(mm_check(rig.mm) == NULL);
    }
    rig_end(&rig);
}
