/*
 * TLB shootdown: who is asked to flush, what other CPUs see, and when frames are let go.
 *
 * A second CPU is kept busy by a kernel thread that runs in the space under test and reads one byte
 * of it each time it is asked; it never switches in between, so nothing but a flush takes its
 * translations away.
 */
#include "kernel/cpu/uaccess.h"
#include "kernel/sched/task.h"
#include "lib/format.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/misuse.h"
#include "mm/core/page_table_internal.h"
#include "mm/core/tlb.h"
#include "tests/kernel/ktest.h"

#define ADDR      0x40000000ul
#define USER_PAGE (PTE_PRESENT | PTE_USER | PTE_NX | PTE_ACCESSED)
#define TEST_VIRT (VMAP_END - (128ul << 20)) /* kernel address that nobody else maps */
#define OLD_BYTE  0xaa
#define NEW_BYTE  0xbb

/* Two frames and a space that maps the first of them. */
struct fixture {
    struct pt_space space;
    struct page *old, *new;
    struct tlb_batch batch;
};

static struct fixture fixture; /* tests run one at a time */

static bool setup(void)
{
    struct fixture *f = &fixture;

    f->old = frame_alloc(0);
    f->new = frame_alloc(0);
    if (!KEXPECT(f->old && f->new) || !KEXPECT_EQ(pt_space_init(&f->space), 0))
        return false;
    memset(page_virt(f->old), OLD_BYTE, PAGE_SIZE);
    memset(page_virt(f->new), NEW_BYTE, PAGE_SIZE);
    tlb_batch_init(&f->batch, &f->space);
    pt_lock(&f->space);
    *pt_ensure(&f->space, ADDR) = pte_make(page_phys(f->old), USER_PAGE);
    pt_unlock(&f->space);
    return true;
}

/* Another frame at ADDR; the old one's reference goes into the batch. */
static void replace_page(struct fixture *f)
{
    pt_lock(&f->space);
    WRITE_ONCE(*pt_find(&f->space, ADDR), pte_make(page_phys(f->new), USER_PAGE));
    KEXPECT(!tlb_batch_add_page(&f->batch, ADDR, f->old));
    pt_unlock(&f->space);
}

static void teardown(void)
{
    struct fixture *f = &fixture;

    pt_lock(&f->space);
    *pt_find(&f->space, ADDR) = 0;
    pt_unlock(&f->space);
    pt_space_destroy(&f->space);
    frames_free(f->new, 0);
}

static void switch_here(struct pt_space *space)
{
    bool irqs = irq_save_disable();

    tlb_switch_space(space);
    irq_restore(irqs);
}

/* ---- The reader on another CPU ---- */

struct reader {
    struct task *task;
    u64 addr;
    bool is_kernel_addr;
    u32 asked, answered; /* rounds; asked ~0: end */
    int byte;
};

static void reader_main(void *arg)
{
    struct reader *r = arg;

    for (u32 round = 1;; round++) {
        u32 asked;

        while ((asked = atomic_load(&r->asked)) < round)
            cpu_pause();
        if (asked == ~0u)
            return;

        u8 byte = 0;

        if (r->is_kernel_addr)
            byte = *(volatile u8 *)r->addr;
        r->byte = r->is_kernel_addr || uaccess_copy_in(&byte, r->addr, 1) == 0 ? byte : -1;
        atomic_store(&r->answered, round);
    }
}

static bool reader_start(struct reader *r, struct pt_space *space, u64 addr)
{
    unsigned other = cpu_index() == 0 ? 1 : 0;

    *r = (struct reader){.addr = addr, .is_kernel_addr = !space};
    r->task = task_create_stopped("tlb-reader", reader_main, r, (int)other);
    if (!KEXPECT(r->task != NULL))
        return false;
    r->task->space = space;
    task_start(r->task);
    return true;
}

/* => the byte the other CPU reads now */
static int reader_ask(struct reader *r)
{
    u32 round = atomic_add(&r->asked, 1);

    while (atomic_load(&r->answered) != round)
        cpu_pause();
    return r->byte;
}

static void reader_end(struct reader *r)
{
    atomic_store(&r->asked, ~0u);
    task_join(r->task);
}

/* ---- One CPU ---- */

KTEST(tlb, switching_enters_and_leaves_the_mask)
{
    if (!setup())
        return;

    struct pt_space other;

    KASSERT_EQ(pt_space_init(&other), 0);

    bool irqs = irq_save_disable();
    cpumask_t self = 1ul << cpu_index();

    tlb_switch_space(&fixture.space);
    cpumask_t after_first = fixture.space.cpus;
    struct pt_space *current = tlb_current_space();
    phys_t root = cr3_read();
    tlb_switch_space(&other);
    cpumask_t first_left = fixture.space.cpus, second = other.cpus;
    tlb_switch_space(NULL);
    irq_restore(irqs);
    KEXPECT_EQ(after_first, self);
    KEXPECT(current == &fixture.space);
    KEXPECT_EQ(root, fixture.space.root);
    KEXPECT_EQ(first_left, 0);
    KEXPECT_EQ(second, self);
    pt_space_destroy(&other);
    frames_free(fixture.old, 0);
    teardown();
    KEXPECT_EQ(cr3_read(), kernel_root);
}

KTEST(tlb, lazy_cpu_leaves_at_the_first_flush)
{
    if (!setup())
        return;

    bool irqs = irq_save_disable();

    tlb_switch_space(&fixture.space);
    tlb_switch_space(NULL);
    cpumask_t lazily = fixture.space.cpus;
    struct pt_space *current = tlb_current_space();
    irq_restore(irqs);
    KEXPECT(lazily != 0);
    KEXPECT(current == NULL);
    replace_page(&fixture);
    tlb_batch_flush(&fixture.batch);
    KEXPECT_EQ(fixture.space.cpus, 0);
    KEXPECT(cr3_read() != fixture.space.root);
    teardown();
}

KTEST(tlb, coming_back_from_a_kernel_thread_keeps_the_root_loaded)
{
    if (!setup())
        return;

    bool irqs = irq_save_disable();

    tlb_switch_space(&fixture.space);
    tlb_switch_space(NULL);
    phys_t lazily = cr3_read();
    tlb_switch_space(&fixture.space);
    struct pt_space *current = tlb_current_space();
    tlb_switch_space(NULL);
    irq_restore(irqs);
    KEXPECT_EQ(lazily, fixture.space.root);
    KEXPECT(current == &fixture.space);
    frames_free(fixture.old, 0);
    teardown();
}

KTEST(tlb, page_is_let_go_only_after_the_flush)
{
    if (!setup())
        return;

    u64 before = frames_free_count();

    replace_page(&fixture);
    KEXPECT_EQ(frames_free_count(), before);
    KEXPECT_EQ(fixture.old->refs, 1);
    tlb_batch_flush(&fixture.batch);
    KEXPECT_EQ(frames_free_count(), before + 1);
    KEXPECT_EQ(fixture.batch.n_pages, 0);
    KEXPECT(fixture.batch.start >= fixture.batch.end);
    teardown();
}

KTEST(tlb, batch_says_when_it_is_full)
{
    struct tlb_batch *batch = &fixture.batch;
    struct page *page = frame_alloc(0);

    KASSERT(page != NULL);
    if (!setup())
        return;
    for (unsigned i = 1; i <= TLB_BATCH_PAGES; i++) {
        page_get(page);
        KEXPECT_EQ(tlb_batch_add_page(batch, ADDR + i * PAGE_SIZE, page), i == TLB_BATCH_PAGES);
    }
    KEXPECT_EQ(batch->start, ADDR + PAGE_SIZE);
    KEXPECT_EQ(batch->end, ADDR + (TLB_BATCH_PAGES + 1) * PAGE_SIZE);
    KEXPECT_EQ(page->refs, TLB_BATCH_PAGES + 1);
    tlb_batch_flush(batch);
    KEXPECT_EQ(page->refs, 1);
    frames_free(page, 0);
    frames_free(fixture.old, 0);
    teardown();
}

/* Reads ADDR on this CPU, in the space; interrupts stay off so that nothing else switches. */
static int read_here(void)
{
    u8 byte = 0;

    return uaccess_copy_in(&byte, ADDR, 1) == 0 ? byte : -1;
}

static void check_own_flush(u64 flushed_pages)
{
    if (!setup())
        return;

    struct task *self = task_current();
    struct pt_space *before = self->space;

    self->space = &fixture.space;
    switch_here(&fixture.space);
    KEXPECT_EQ(read_here(), OLD_BYTE);
    replace_page(&fixture);
    tlb_batch_add_range(&fixture.batch, ADDR, ADDR + flushed_pages * PAGE_SIZE);
    tlb_batch_flush(&fixture.batch);
    KEXPECT_EQ(read_here(), NEW_BYTE);
    self->space = before;
    switch_here(before);
    teardown();
}

KTEST(tlb, own_cpu_sees_the_change_after_a_flush_by_page)
{
    check_own_flush(1);
}

KTEST(tlb, own_cpu_sees_the_change_after_a_flush_of_the_space)
{
    check_own_flush(TLB_FLUSH_ALL_ABOVE + 1);
}

/* ---- Two CPUs ---- */

KTEST(tlb, other_cpu_sees_the_change_after_the_flush)
{
    struct reader r;

    if (cpu_count() < 2)
        KTEST_SKIP("one CPU");
    if (!setup() || !reader_start(&r, &fixture.space, ADDR))
        return;
    KEXPECT_EQ(reader_ask(&r), OLD_BYTE);

    u64 shootdowns = counter_sum(tlb_remote_flushes);

    replace_page(&fixture);
    tlb_batch_add_range(&fixture.batch, ADDR + PAGE_SIZE, ADDR + 3 * PAGE_SIZE);
    tlb_batch_flush(&fixture.batch);
    KEXPECT_EQ(counter_sum(tlb_remote_flushes), shootdowns + 1);
    KEXPECT_EQ(reader_ask(&r), NEW_BYTE);
    reader_end(&r);
    teardown();
}

/* ---- A CPU that makes a shootdown wait ---- */

struct blocker {
    struct task *task;
    u64 shootdowns; /* counted before the flush */
    u32 is_deaf;    /* interrupts are off, the translation is in use */
    u32 is_over;    /* the flush has returned */
    s32 refs_seen;  /* of the old page, while the flush waits for this CPU */
};

static void blocker_main(void *arg)
{
    struct blocker *b = arg;
    u8 byte = 0;
    bool irqs = irq_save_disable();

    if (uaccess_copy_in(&byte, ADDR, 1) != 0)
        byte = 0;
    atomic_store(&b->is_deaf, 1);
    while (counter_sum(tlb_remote_flushes) == b->shootdowns && !atomic_load(&b->is_over))
        cpu_pause();
    b->refs_seen = atomic_load(&fixture.old->refs);
    irq_restore(irqs);
}

KTEST(tlb, page_is_kept_while_another_cpu_has_not_flushed)
{
    struct blocker b = {.shootdowns = counter_sum(tlb_remote_flushes)};

    if (cpu_count() < 2)
        KTEST_SKIP("one CPU");
    if (!setup())
        return;
    b.task = task_create_stopped("tlb-blocker", blocker_main, &b, cpu_index() == 0 ? 1 : 0);
    KASSERT(b.task != NULL);
    b.task->space = &fixture.space;
    task_start(b.task);
    while (!atomic_load(&b.is_deaf))
        cpu_pause();
    replace_page(&fixture);
    tlb_batch_flush(&fixture.batch);
    atomic_store(&b.is_over, 1);
    KEXPECT_EQ(fixture.old->refs, 0);
    task_join(b.task);
    KEXPECT_EQ(b.refs_seen, 1);
    teardown();
}

KTEST(tlb, without_shootdown_the_other_cpu_keeps_the_old_page)
{
    struct reader r;

    if (cpu_count() < 2)
        KTEST_SKIP("one CPU");
    if (!setup() || !reader_start(&r, &fixture.space, ADDR))
        return;
    KEXPECT_EQ(reader_ask(&r), OLD_BYTE);
    page_get(fixture.old); /* else the mutant would free what is still read */
    replace_page(&fixture);
    bool before = tlb_mutant_no_shootdown;
    tlb_mutant_no_shootdown = true;
    tlb_batch_flush(&fixture.batch);
    tlb_mutant_no_shootdown = before;
    KEXPECT_EQ(reader_ask(&r), OLD_BYTE);
    reader_end(&r);
    page_put(fixture.old);
    teardown();
}

KTEST(tlb, cpu_that_does_not_run_the_space_is_not_interrupted)
{
    if (cpu_count() < 2)
        KTEST_SKIP("one CPU");
    if (!setup())
        return;

    u64 shootdowns = counter_sum(tlb_remote_flushes);

    switch_here(&fixture.space);
    replace_page(&fixture);
    tlb_batch_flush(&fixture.batch);
    switch_here(NULL);
    KEXPECT_EQ(counter_sum(tlb_remote_flushes), shootdowns);
    teardown();
}

KTEST(tlb, ending_a_space_sends_lazy_cpus_away)
{
    struct reader r;

    if (cpu_count() < 2)
        KTEST_SKIP("one CPU");
    if (!setup() || !reader_start(&r, &fixture.space, ADDR))
        return;
    KEXPECT_EQ(reader_ask(&r), OLD_BYTE);
    reader_end(&r);
    KEXPECT(fixture.space.cpus != 0); /* the idle loop over there keeps it loaded */
    frames_free(fixture.old, 0);
    teardown();
    KEXPECT_EQ(fixture.space.cpus, 0);
}

KTEST(tlb, kernel_mapping_is_flushed_everywhere)
{
    struct reader r;

    if (cpu_count() < 2)
        KTEST_SKIP("one CPU");
    if (!setup())
        return;
    KASSERT_EQ(pt_map_kernel(TEST_VIRT, page_phys(fixture.old), PAGE_SIZE, PTE_NX), 0);
    if (!reader_start(&r, NULL, TEST_VIRT))
        return;
    KEXPECT_EQ(reader_ask(&r), OLD_BYTE);
    pt_unmap_kernel(TEST_VIRT, PAGE_SIZE);
    KASSERT_EQ(pt_map_kernel(TEST_VIRT, page_phys(fixture.new), PAGE_SIZE, PTE_NX), 0);
    KEXPECT_EQ(reader_ask(&r), OLD_BYTE); /* so the flush is needed */
    tlb_flush_kernel_all();
    KEXPECT_EQ(reader_ask(&r), NEW_BYTE);
    reader_end(&r);
    pt_unmap_kernel(TEST_VIRT, PAGE_SIZE);
    tlb_flush_kernel_all();
    frames_free(fixture.old, 0);
    teardown();
}

/* ---- The check of debug builds ---- */

/* Takes ADDR's entry away while the other CPU remembers it, with or without asking that CPU to forget.
 * => what the check has said, NULL: nothing */
static const char *check_finds(pte_t weaker, bool is_mutant)
{
    bool mutant_before = tlb_mutant_no_shootdown, off_before = tlb_check_is_off;
    const char *found;

    pt_lock(&fixture.space);
    WRITE_ONCE(*pt_find(&fixture.space, ADDR), weaker);
    tlb_batch_add_range(&fixture.batch, ADDR, ADDR + PAGE_SIZE);
    pt_unlock(&fixture.space);
    memory_misuse_expect();
    tlb_mutant_no_shootdown = is_mutant;
    tlb_check_is_off = false;
    tlb_batch_flush(&fixture.batch);
    found = memory_misuse_take();
    tlb_mutant_no_shootdown = mutant_before;
    tlb_check_is_off = off_before;
    return found;
}

/* The other CPU uses the page with `strong` flags, which become `weaker` ones, 0: none. */
static void check_the_check(u64 strong, u64 weaker, const char *wanted)
{
    struct reader r;
    char text[128];

    if (!MEMORY_CHECKS)
        KTEST_SKIP("only debug builds check");
    if (cpu_count() < 2)
        KTEST_SKIP("one CPU");
    if (!setup() || !reader_start(&r, &fixture.space, ADDR))
        return;
    for (unsigned mutant = 0; mutant < 2; mutant++) {
        pte_t entry = weaker ? pte_make(page_phys(fixture.old), weaker) : 0;

        pt_lock(&fixture.space);
        WRITE_ONCE(*pt_find(&fixture.space, ADDR), pte_make(page_phys(fixture.old), strong));
        pt_unlock(&fixture.space);
        KEXPECT_EQ(reader_ask(&r), OLD_BYTE);
        const char *found = check_finds(entry, mutant);

        format_to(text, sizeof(text), wanted, cpu_index() == 0 ? 1 : 0, ADDR, entry);
        if (!mutant)
            KEXPECT(found == NULL);
        else if (KEXPECT(found != NULL))
            KEXPECT_STREQ(found, text);
    }
    reader_end(&r);
    frames_free(fixture.old, 0);
    teardown();
}

KTEST(tlb, check_finds_a_translation_whose_entry_is_gone)
{
    check_the_check(USER_PAGE, 0, "CPU %u reads 0x%lx, whose page-table entry is gone (0x%lx)");
}

KTEST(tlb, check_finds_a_translation_that_is_still_writable)
{
    check_the_check(USER_PAGE | PTE_WRITE | PTE_DIRTY, USER_PAGE,
                    "CPU %u writes 0x%lx, whose page-table entry is read-only (0x%lx)");
}

KTEST(tlb, check_leaves_alone_what_waits_for_a_flush)
{
    struct tlb_batch other;
    struct reader r;

    if (cpu_count() < 2 || !MEMORY_CHECKS)
        KTEST_SKIP("two CPUs, and a debug build");
    if (!setup() || !reader_start(&r, &fixture.space, ADDR))
        return;
    KEXPECT_EQ(reader_ask(&r), OLD_BYTE);
    tlb_batch_init(&other, &fixture.space);
    pt_lock(&fixture.space);
    WRITE_ONCE(*pt_find(&fixture.space, ADDR), 0);
    tlb_batch_add_range(&other, ADDR, ADDR + PAGE_SIZE);
    tlb_batch_add_range(&fixture.batch, ADDR - PAGE_SIZE, ADDR);
    pt_unlock(&fixture.space);
    KEXPECT_EQ(fixture.space.unflushed, 2);
    tlb_batch_flush(&fixture.batch); /* ADDR may still be used: no complaint */
    KEXPECT_EQ(fixture.space.unflushed, 1);
    tlb_batch_flush(&other);
    KEXPECT_EQ(fixture.space.unflushed, 0);
    reader_end(&r);
    frames_free(fixture.old, 0);
    teardown();
}
