/*
 * The trace: what is recorded, in which order, what is lost, and its text. The event of these tests is fault_retry, which
 * nobody else records while only kernel threads run.
 */
#include "kernel/cpu/clock.h"
#include "kernel/log/trace_read.h"
#include "kernel/sched/grace.h"
#include "kernel/sched/timer.h"
#include "kernel/sched/wait.h"
#include "kernel/sync/atomic.h"
#include "lib/format.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/slab.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/threads.h"

static u8 enabled_before[TRACE_IDS];
static struct trace_found found;
static char line[TRACE_LINE_BYTES];

/* Only this event is recorded from now on, and nothing is there. */
static void begin(enum trace_id id)
{
    memcpy(enabled_before, trace_enabled, sizeof(enabled_before));
    trace_enable_all(false);
    trace_clear();
    trace_enable(id, true);
}

static void end(void)
{
    memcpy(trace_enabled, enabled_before, sizeof(enabled_before));
    trace_clear();
}

static struct trace_ring *own_ring(void)
{
    return trace_ring_of(cpu_index());
}

static struct trace_stats own_stats(void)
{
    struct trace_stats stats;

    trace_stats_get(cpu_index(), &stats);
    return stats;
}

static const struct trace_fault_retry *found_fields(void)
{
    return (const struct trace_fault_retry *)found.record.fields;
}

KTEST(trace, an_event_has_its_fields_its_task_and_its_time)
{
    u64 before_ns = clock_ns();

    begin(TRACE_ID_fault_retry);
    TRACE(fault_retry, .addr = 0x1234567, .attempt = 3);
    u64 after_ns = clock_ns();
    bool irqs = irq_save_disable();
    TRACE(fault_retry, .addr = 0x89, .attempt = 4);
    irq_restore(irqs);

    KASSERT(trace_take(&found));
    KEXPECT_EQ(found.record.type, TRACE_ID_fault_retry);
    KEXPECT_EQ(found_fields()->addr, 0x1234567);
    KEXPECT_EQ(found_fields()->attempt, 3);
    KEXPECT_EQ(found.record.pid, task_current()->pid);
    KEXPECT_STREQ(found.record.task, task_current()->name);
    KEXPECT_EQ(found.record.flags, 0);
    KEXPECT(found.record.time_ns >= before_ns && found.record.time_ns <= after_ns);
    KEXPECT_EQ(found.cpu, cpu_index());
    KASSERT(trace_take(&found));
    KEXPECT_EQ(found.record.flags, TRACE_FLAG_IRQS_OFF);
    KEXPECT(!trace_take(&found));
    end();
}

static unsigned n_evaluated;

static u64 evaluated(void)
{
    return ++n_evaluated;
}

KTEST(trace, what_is_off_is_neither_recorded_nor_evaluated)
{
    begin(TRACE_ID_fault_wait);
    n_evaluated = 0;
    TRACE(fault_retry, .addr = evaluated());
    KEXPECT_EQ(n_evaluated, 0);
    KEXPECT(trace_is_empty());

    trace_enable(TRACE_ID_fault_retry, true);
    WRITE_ONCE(trace_on, false);
    TRACE(fault_retry, .addr = evaluated());
    KEXPECT(!trace_write_mark("unheard", 7, 0));
    WRITE_ONCE(trace_on, true);
    KEXPECT_EQ(n_evaluated, 1);
    KEXPECT(trace_is_empty());
    end();
}

KTEST(trace, a_full_ring_loses_its_oldest_and_counts_them)
{
    begin(TRACE_ID_fault_retry);
    bool irqs = irq_save_disable();
    u64 slots = trace_ring_slots(own_ring());

    for (u64 i = 0; i < slots + 44; i++)
        TRACE(fault_retry, .addr = i);
    KEXPECT_EQ(own_stats().entries, slots);
    KEXPECT_EQ(own_stats().overrun, 44);
    KEXPECT_EQ(own_stats().taken, 0);
    for (u64 i = 44; i < slots + 44; i++) {
        if (!trace_take(&found) || found_fields()->addr != i || found.lost != (i == 44 ? 44 : 0))
            KEXPECT_EQ(found_fields()->addr, i);
    }
    KEXPECT(!trace_take(&found));
    KEXPECT_EQ(own_stats().entries, 0);
    KEXPECT_EQ(own_stats().overrun, 44);
    KEXPECT_EQ(own_stats().taken, slots);
    trace_clear();
    KEXPECT_EQ(own_stats().overrun, 0);
    irq_restore(irqs);
    end();
}

KTEST(trace, taking_leaves_the_rest_and_looking_takes_nothing)
{
    static struct trace_cursor cursor;

    begin(TRACE_ID_fault_retry);
    for (u64 i = 0; i < 3; i++)
        TRACE(fault_retry, .addr = i);
    for (unsigned round = 0; round < 2; round++) {
        trace_cursor_begin(&cursor, false);
        for (u64 i = 0; i < 3; i++) {
            KASSERT(trace_cursor_next(&cursor, &found));
            KEXPECT_EQ(found_fields()->addr, i);
        }
        TRACE(fault_retry, .addr = 3 + round); /* after the cursor began: not for it */
        KEXPECT(!trace_cursor_next(&cursor, &found));
        KASSERT(trace_take(&found));
        trace_cursor_begin(&cursor, true);
        trace_clear();
        TRACE(fault_retry, .addr = 0);
        TRACE(fault_retry, .addr = 1);
        TRACE(fault_retry, .addr = 2);
    }
    end();
}

/* ---- Interrupts ---- */

#define TICKS   400
#define TICK_NS 20000

static struct timer ticker;
static u32 n_ticks;

static void tick(struct timer *timer)
{
    TRACE(fault_retry, .addr = n_ticks, .attempt = 1);
    if (atomic_add(&n_ticks, 1) < TICKS)
        timer_arm(timer, clock_ns() + TICK_NS);
}

/* A task and an interrupt fill one ring: each record is there once, whole, and the ring is in the order of time. */
KTEST(trace, an_interrupt_takes_the_slots_behind_the_one_being_written)
{
    u64 expected[2] = {0, 0}, last_ns = 0;

    begin(TRACE_ID_fault_retry);
    n_ticks = 0;
    timer_init(&ticker, tick);
    timer_arm(&ticker, clock_ns() + TICK_NS);
    for (u64 i = 0; atomic_load(&n_ticks) < TICKS;) {
        TRACE(fault_retry, .addr = i, .attempt = 0);
        i++;
        while (trace_take(&found)) {
            u32 who = found_fields()->attempt;
            if (who > 1 || found_fields()->addr != expected[who] ||
                found.record.time_ns < last_ns ||
                !(found.record.flags & TRACE_FLAG_HARDIRQ) != !who ||
                found.record.pid != (s32)task_current()->pid) {
                KEXPECT_EQ(found_fields()->addr, expected[who & 1]);
                KEXPECT(found.record.time_ns >= last_ns);
                KEXPECT_EQ(found.record.flags, who ? 9 : 0);
                KEXPECT_EQ(found.record.pid, task_current()->pid);
                atomic_store(&n_ticks, TICKS);
                break;
            }
            last_ns = found.record.time_ns;
            expected[who]++;
        }
    }
    timer_cancel_sync(&ticker);
    end();
}

static void record_some(void *arg)
{
    u64 *number = arg;

    for (unsigned i = 0; i < 20; i++) {
        TRACE(fault_retry, .addr = atomic_add(number, 1) - 1, .attempt = task_current()->pid);
        sched_yield();
    }
}

KTEST(trace, the_rings_of_all_cpus_are_one_sequence_in_time)
{
    struct test_threads threads = {0};
    u64 number = 0, last_ns = 0;
    unsigned n = 0;

    begin(TRACE_ID_fault_retry);
    threads_start_on_each_cpu(&threads, record_some, &number);
    KEXPECT_EQ(threads_join(&threads), 0);
    while (trace_take(&found)) {
        KEXPECT(found.record.time_ns >= last_ns);
        KEXPECT_EQ(found.record.pid, found_fields()->attempt);
        last_ns = found.record.time_ns;
        n++;
    }
    KEXPECT_EQ(n, 20 * cpu_count());
    end();
}

/* ---- Texts ---- */

static void fill(char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        text[i] = (char)('a' + i % 23);
}

KTEST(trace, a_text_takes_as_many_slots_as_it_needs)
{
    static const size_t sizes[] = {0, 1, 44, 45, 132, 133, 4095, TRACE_MARK_BYTES};
    static char text[TRACE_MARK_BYTES];

    fill(text, sizeof(text));
    begin(TRACE_ID_fault_retry);
    for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
        bool irqs = irq_save_disable();
        KEXPECT(trace_write_mark(text, sizes[i], 0x1000));
        TRACE(fault_retry, .addr = i);
        KEXPECT_EQ(own_stats().entries, 2);
        irq_restore(irqs);
        KASSERT(trace_take(&found));
        KEXPECT_EQ(found.record.type, TRACE_ID_print);
        KEXPECT_EQ(found.text_bytes, sizes[i]);
        KEXPECT(memcmp(found.text, text, sizes[i]) == 0);
        KASSERT(trace_take(&found));
        KEXPECT_EQ(found_fields()->addr, i);
        KEXPECT(!trace_take(&found));
    }
    end();
}

KTEST(trace, a_text_that_is_partly_overwritten_is_gone)
{
    static char text[TRACE_MARK_BYTES];

    fill(text, sizeof(text));
    begin(TRACE_ID_fault_retry);
    bool irqs = irq_save_disable();
    u64 slots = trace_ring_slots(own_ring());
    trace_write_mark(text, sizeof(text), 0);
    for (u64 i = 0; i < slots - 10; i++) /* only the last slots of the text are left */
        TRACE(fault_retry, .addr = i);
    KEXPECT_EQ(own_stats().entries, slots - 10);
    KEXPECT_EQ(own_stats().overrun, 1);
    KASSERT(trace_take(&found));
    KEXPECT_EQ(found.record.type, TRACE_ID_fault_retry);
    KEXPECT_EQ(found_fields()->addr, 0);
    irq_restore(irqs);
    end();
}

/* A reader comes upon a record that another CPU has claimed and not written yet. */
KTEST(trace, a_record_being_written_is_waited_for)
{
    begin(TRACE_ID_fault_retry);
    bool irqs = irq_save_disable();
    struct trace_ring *ring = own_ring();
    u64 n = ring->next;

    TRACE(fault_retry, .addr = 1);
    TRACE(fault_retry, .addr = 2);
    u64 seq = trace_ring_slot(ring, n)->seq;
    trace_ring_slot(ring, n)->seq = 0;
    KEXPECT(!trace_take(&found));
    KEXPECT(!trace_is_empty());
    trace_ring_slot(ring, n)->seq = seq;
    KEXPECT(trace_take(&found));
    KEXPECT_EQ(found_fields()->addr, 1);
    irq_restore(irqs);
    end();
}

/* ---- The scheduler's events ---- */

static struct wait_queue never = WAIT_QUEUE_INIT(never);
static bool may_end;

static void sleeper(void *arg)
{
    (void)arg;
    WAIT_FOR(&never, atomic_load(&may_end), "the end of a test", 0, 0);
}

KTEST(trace, a_switch_is_recorded_by_the_task_that_leaves)
{
    struct test_threads threads = {0};
    u32 away = 0, woken = 0;

    may_end = false;
    struct task *task = threads_add_and_wait_asleep(&threads, sleeper, NULL);
    KASSERT(task);
    begin(TRACE_ID_sched_switch);
    trace_enable(TRACE_ID_sched_waking, true);
    u32 pid = task->pid, own_pid = task_current()->pid;
    atomic_store(&may_end, true);
    wait_wake_all(&never);
    threads_join(&threads);
    trace_enable_all(false);
    while (trace_take(&found)) {
        if (found.record.type == TRACE_ID_sched_waking) {
            const struct trace_sched_waking *waking = (const void *)found.record.fields;
            woken += waking->pid == (s32)pid && found.record.pid == (s32)own_pid;
            continue;
        }
        const struct trace_sched_switch *sw = (const void *)found.record.fields;
        KEXPECT_EQ(found.record.pid, sw->prev_pid);
        KEXPECT(found.record.flags & TRACE_FLAG_IRQS_OFF);
        if (sw->prev_pid == (s32)pid) {
            KEXPECT_EQ(sw->prev_state, 16);
            away++;
        }
    }
    KEXPECT_EQ(woken, 1);
    KEXPECT_EQ(away, 1);
    end();
}

/* ---- The line ---- */

static void format_found(enum trace_id id, const void *fields, size_t bytes, u8 flags)
{
    found = (struct trace_found){
        .cpu = 3,
        .record = {.time_ns = 12345678901, .type = id, .flags = flags, .pid = 77},
    };
    string_copy(found.record.task, "mplay", sizeof(found.record.task));
    memcpy(found.record.fields, fields, bytes);
    KEXPECT_EQ(trace_format(&found, line, sizeof(line)), strlen(line));
}
#define FORMAT(event, flags, ...)                                        \
    format_found(TRACE_ID_##event, &(struct trace_##event){__VA_ARGS__}, \
                 sizeof(struct trace_##event), flags)

KTEST(trace, lines_are_those_of_linux)
{
    FORMAT(page_fault_user, 0, .address = 0x7fff12340000, .ip = 0x401000, .error_code = 6);
    KEXPECT_STREQ(line, "           mplay-77      [003] .....    12.345678: page_fault_user: "
                        "address=0x7fff12340000 ip=0x401000 error_code=0x6\n");
    FORMAT(block_bio_queue, 0, .dev = trace_dev(254 << 8), .sector = 800, .nr_sector = 8,
           .rwbs = trace_text8("RA"), .comm = trace_text16("dd"));
    KEXPECT_STREQ(line, "           mplay-77      [003] .....    12.345678: block_bio_queue: "
                        "254,0 RA 800 + 8 [dd]\n");
    FORMAT(block_rq_issue, TRACE_FLAG_IRQS_OFF, .dev = trace_dev(254 << 8), .sector = 800,
           .nr_sector = 8, .bytes = 4096, .rwbs = trace_text8("RA"), .comm = trace_text16("dd"));
    KEXPECT_STREQ(line, "           mplay-77      [003] d....    12.345678: block_rq_issue: "
                        "254,0 RA 4096 () 800 + 8 none,0,0 [dd]\n");
    FORMAT(block_rq_complete, 9, .dev = trace_dev(254 << 8), .sector = 808, .nr_sector = 32,
           .error = -5, .rwbs = trace_text8("RA"));
    KEXPECT_STREQ(line, "           mplay-77      [003] d.h..    12.345678: block_rq_complete: "
                        "254,0 RA () 808 + 32 none,0,0 [-5]\n");
    FORMAT(mm_filemap_add_to_page_cache, 0, .pfn = 0x1234, .i_ino = 0x2c, .index = 7,
           .s_dev = trace_dev(254 << 8));
    KEXPECT_STREQ(line,
                  "           mplay-77      [003] .....    12.345678: "
                  "mm_filemap_add_to_page_cache: dev 254:0 ino 2c pfn=0x1234 ofs=28672 order=0\n");
    FORMAT(sched_switch, 1, .prev_comm = trace_text16("a"), .prev_pid = 5, .prev_prio = 120,
           .prev_state = 1, .next_comm = trace_text16("b"), .next_pid = 0, .next_prio = 120);
    KEXPECT_STREQ(line, "           mplay-77      [003] d....    12.345678: sched_switch: "
                        "prev_comm=a prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=b "
                        "next_pid=0 next_prio=120\n");
    FORMAT(sched_waking, 5, .comm = trace_text16("b"), .pid = 9, .prio = 120, .target_cpu = 1);
    KEXPECT_STREQ(line, "           mplay-77      [003] dN...    12.345678: sched_waking: "
                        "comm=b pid=9 prio=120 target_cpu=001\n");
}

KTEST(trace, a_field_lies_where_the_table_says)
{
    unsigned n;

    KEXPECT_STREQ(trace_events[TRACE_ID_block_bio_queue].system, "block");
    KEXPECT_STREQ(trace_events[TRACE_ID_block_bio_queue].name, "block_bio_queue");
    const struct trace_field *fields = trace_events[TRACE_ID_block_bio_queue].fields(&n);
    KASSERT_EQ(n, 5);
    KEXPECT_STREQ(fields[1].declaration, "sector_t sector");
    KEXPECT_EQ(fields[1].offset, 16);
    KEXPECT_EQ(fields[1].bytes, 8);
    KEXPECT_STREQ(fields[4].declaration, "char comm[16]");
    KEXPECT_EQ(fields[4].offset, 36);
    KEXPECT_EQ(fields[4].bytes, 16);
    fields = trace_events[TRACE_ID_block_rq_complete].fields(&n);
    KEXPECT(fields[3].is_signed && !fields[2].is_signed);
}

/* ---- The last words ---- */

static char last_lines[4][160];
static unsigned n_last;

static PRINTF_LIKE(1, 2) void keep_last(const char *fmt, ...)
{
    va_list args;

    if (n_last == ARRAY_SIZE(last_lines))
        return;
    va_start(args, fmt);
    format_v(last_lines[n_last++], sizeof(last_lines[0]), fmt, args);
    va_end(args);
}

KTEST(trace, a_panic_prints_the_last_events_also_those_taken_out)
{
    begin(TRACE_ID_fault_retry);
    for (u64 i = 0; i < 9; i++)
        TRACE(fault_retry, .addr = i);
    while (trace_take(&found))
        ;
    n_last = 0;
    trace_print_last(3, keep_last);
    KASSERT_EQ(n_last, 4);
    KEXPECT_STREQ(last_lines[0], "last 3 trace events:");
    KEXPECT(strstr(last_lines[1], ": fault_retry: addr=0x6 attempt=0") != NULL);
    KEXPECT(strstr(last_lines[3], ": fault_retry: addr=0x8 attempt=0") != NULL);
    end();
}

/* With one page of memory, which is larger than nothing and smaller than all numbers so far. */
static struct trace_ring *ring_create(struct page *page)
{
    struct trace_ring *ring = kzalloc(sizeof(*ring) + sizeof(ring->pages[0]));

    if (!ring)
        return NULL;
    ring->n_pages = 1;
    ring->pages[0] = page_virt(page);
    return ring;
}

KTEST(trace, a_ring_that_replaces_another_begins_empty_and_shows_what_it_gets)
{
    struct trace_cursor *cursor = kmalloc(sizeof(*cursor));
    struct page *page = frame_alloc(FRAME_ZERO);
    struct trace_ring *fresh = page ? ring_create(page) : NULL, *before;

    KASSERT(cursor && fresh);
    begin(TRACE_ID_fault_retry);
    bool irqs = irq_save_disable(); /* also: this thread stays on its CPU */
    before = own_ring();
    for (u64 i = 0; i < 3; i++)
        TRACE(fault_retry, .addr = i);
    unsigned cpu = cpu_index();
    trace_ring_replace(cpu, fresh);
    KEXPECT_EQ(own_stats().entries, 0);
    trace_cursor_begin(cursor, true);
    KEXPECT_EQ(cursor->at[cpu], cursor->end[cpu]);
    TRACE(fault_retry, .addr = 7);
    trace_cursor_begin(cursor, true);
    bool has_one = trace_cursor_next(cursor, &found);
    while (has_one && found.cpu != cpu)
        has_one = trace_cursor_next(cursor, &found);
    KEXPECT(has_one);
    KEXPECT_EQ(found_fields()->addr, 7);
    KEXPECT(!trace_cursor_next(cursor, &found) || found.cpu != cpu);
    trace_ring_replace(cpu, before);
    KEXPECT_EQ(own_stats().entries, 0);
    irq_restore(irqs);
    grace_wait();
    page_put(page);
    kfree(fresh);
    kfree(cursor);
    end();
}

KTEST(trace, a_mark_that_is_counted_late_makes_no_overrun)
{
    begin(TRACE_ID_fault_retry);
    TRACE(fault_retry, .addr = 1, .attempt = 1);
    own_ring()->n_more +=
        40; /* by a mark that claimed its slots after the reader had looked how many there are */
    KEXPECT_EQ(own_stats().entries, 1);
    KEXPECT_EQ(own_stats().overrun, 0);
    own_ring()->n_more -= 40;
    end();
}
