/*
 * Recording: the writer's side of the rings. See trace.h for the rules and trace_ring.h for the layout.
 *
 * Two actors on one CPU:
 *     a record being written                  an interrupt that records, too
 *     reads `next`, then the clock
 *                                             claims that slot, writes it, leaves
 *     claims: `next` is not what it was:
 *     reads both again, claims the next slot
 *                                             claims the slot behind it
 *     writes its own
 * Nothing is locked with the bus: the other CPUs only read.
 */
#include "kernel/cpu/clock.h"
#include "kernel/cpu/smp.h"
#include "kernel/log/trace_ring.h"
#include "kernel/sync/atomic.h"
#include "lib/string.h"

#define BOOT_PAGES 6

/* What a CPU has from the start; larger ones come out of memory that is not there yet. */
struct boot_ring {
    struct trace_ring ring;
    struct trace_page *pages[BOOT_PAGES]; /* ring.pages */
    struct trace_page memory[BOOT_PAGES];
};

bool trace_on = true;
u8 trace_enabled[TRACE_IDS] __attribute__((aligned(64)));

static PERCPU(struct boot_ring, boot_ring);
PERCPU(struct trace_ring *, trace_ring);
static struct trace_task (*task_source)(void);

void trace_set_task_source(struct trace_task (*current_task)(void))
{
    task_source = current_task;
}

void trace_init_cpu(void)
{
    struct boot_ring *boot = percpu_this(boot_ring);

    for (unsigned i = 0; i < BOOT_PAGES; i++)
        boot->ring.pages[i] = &boot->memory[i];
    boot->ring.n_pages = BOOT_PAGES;
    atomic_store(percpu_this(trace_ring), &boot->ring);
}

struct trace_ring *trace_ring_of(unsigned cpu)
{
    return atomic_load(percpu_of(trace_ring, cpu));
}

struct trace_ring *trace_ring_replace(unsigned cpu, struct trace_ring *fresh)
{
    struct trace_ring *old = trace_ring_of(cpu);

    fresh->next = fresh->first = fresh->read_from = READ_ONCE(old->next);
    fresh->n_more = READ_ONCE(old->n_more);
    fresh->events_cleared = fresh->next - fresh->n_more;
    fresh->n_taken = 0;
    atomic_store(percpu_of(trace_ring, cpu), fresh);
    return old == &percpu_of(boot_ring, cpu)->ring ? NULL : old;
}

/* If *counter, of this CPU alone, is `old`, it becomes `new_`; in one instruction, so that no interrupt comes in between.
 * => whether it was */
static bool change_own(u64 *counter, u64 old, u64 new_)
{
    bool changed;

    __asm__ volatile("cmpxchgq %3, %1"
                     : "+a"(old), "+m"(*counter), "=@ccz"(changed)
                     : "r"(new_)
                     : "memory");
    return changed;
}

static void add_own(u64 *counter, u64 n)
{
    __asm__ volatile("addq %1, %0" : "+m"(*counter) : "r"(n) : "memory", "cc");
}

/* n slots in a row that are this record's alone. => the number of the first */
static u64 claim(struct trace_ring *ring, u64 n, u64 *time_ns)
{
    u64 first;

    do {
        first = READ_ONCE(ring->next);
        *time_ns = clock_ns();
    } while (!change_own(&ring->next, first, first + n));
    return first;
}

static struct trace_slot *slot_begin(struct trace_ring *ring, u64 n)
{
    struct trace_slot *slot = trace_ring_slot(ring, n);

    WRITE_ONCE(slot->seq, 0);
    __atomic_thread_fence(__ATOMIC_ACQ_REL); /* before any word of what it held is overwritten */
    return slot;
}

static void slot_end(struct trace_slot *slot, u64 seq)
{
    atomic_store(&slot->seq, seq);
}

static void fill_in(struct trace_record *record, enum trace_id id, u64 time_ns)
{
    struct trace_task task = task_source ? task_source() : (struct trace_task){.name = "<boot>"};

    record->time_ns = time_ns;
    memset(record->task, 0, sizeof(record->task));
    string_copy(record->task, task.name, sizeof(record->task));
    record->type = id;
    record->flags = (irqs_are_on() ? 0 : TRACE_FLAG_IRQS_OFF) |
                    (task.needs_resched ? TRACE_FLAG_NEED_RESCHED : 0) |
                    (this_cpu()->irq_depth ? TRACE_FLAG_HARDIRQ : 0);
    record->preempt_count = 0;
    record->pid = task.pid;
}

/* => NULL: nothing is recorded now */
static struct trace_ring *ring_to_write(void)
{
    return READ_ONCE(trace_on) ? READ_ONCE(*percpu_this(trace_ring)) : NULL;
}

void trace_write(enum trace_id id, const void *fields, size_t bytes)
{
    struct trace_ring *ring = ring_to_write();
    u64 time_ns, n;

    if (!ring)
        return;
    n = claim(ring, 1, &time_ns);
    struct trace_slot *slot = slot_begin(ring, n);
    fill_in(&slot->record, id, time_ns);
    memcpy(slot->record.fields, fields, bytes);
    slot_end(slot, TRACE_SEQ(n));
}

/* The rest of a text, in the slots from n on. */
static void write_more(struct trace_ring *ring, u64 n, const char *text, size_t bytes)
{
    while (bytes > 0) {
        struct trace_slot *slot = slot_begin(ring, n);
        size_t part = MIN(bytes, sizeof(slot->more));

        memcpy(slot->more, text, part);
        slot_end(slot, TRACE_SEQ(n) | TRACE_SEQ_MORE);
        text += part;
        bytes -= part;
        n++;
    }
}

bool trace_write_mark(const char *text, size_t bytes, u64 ip)
{
    struct trace_ring *ring = ring_to_write();
    size_t here = MIN(bytes, (size_t)TRACE_PRINT_FIRST_BYTES);
    u64 n_more = DIV_ROUND_UP(bytes - here, sizeof(struct trace_record));
    u64 time_ns, n;

    if (!ring)
        return false;
    n = claim(ring, 1 + n_more, &time_ns);
    add_own(&ring->n_more, n_more);
    write_more(ring, n + 1, text + here, bytes - here);

    struct trace_slot *slot = slot_begin(ring, n);
    struct trace_print *print = (struct trace_print *)slot->record.fields;
    fill_in(&slot->record, TRACE_ID_print, time_ns);
    print->ip = ip;
    print->bytes = (u32)bytes;
    memcpy(print->buf, text, here);
    slot_end(slot, TRACE_SEQ(n)); /* last: the whole text is there */
    return true;
}

struct trace_text8 trace_text8(const char *text)
{
    struct trace_text8 out = {0};

    string_copy(out.text, text, sizeof(out.text));
    return out;
}

struct trace_text16 trace_text16(const char *text)
{
    struct trace_text16 out = {0};

    string_copy(out.text, text, sizeof(out.text));
    return out;
}

void trace_enable(enum trace_id id, bool on)
{
    WRITE_ONCE(trace_enabled[id], on);
}

void trace_enable_all(bool on)
{
    for (unsigned id = TRACE_ID_print + 1; id < TRACE_IDS; id++)
        trace_enable(id, on);
}

bool trace_is_any_enabled(void)
{
    for (unsigned id = TRACE_ID_print + 1; id < TRACE_IDS; id++)
        if (READ_ONCE(trace_enabled[id]))
            return true;
    return false;
}
