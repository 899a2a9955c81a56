/*
 * The rings of the trace: how records lie in memory. Between the writer (trace.c), the readers (trace_read.c), and whoever
 * makes rings larger (fs/trace/buffer.c); gdb reads them too (tools/gdb/fl/trace.py).
 *
 *     slot number    0 ... 41  | 42 ... 83  |  ...  |          the ring has n_pages; number n lies in
 *                    page 0      page 1        page n_pages-1  page n / 42 % n_pages
 *
 * `next` counts slots for ever. A slot says by its `seq` which number it holds now, so a reader knows whether it has what it
 * looked for: written, being written, or overwritten already.
 */
#ifndef KERNEL_LOG_TRACE_RING_H
#define KERNEL_LOG_TRACE_RING_H

#include "kernel/cpu/cpu.h"
#include "kernel/log/trace.h"

/* From `type` on it is what the format files of tracefs describe. */
struct trace_record {
    u64 time_ns;
    char task[TRACE_NAME_BYTES];
    u16 type;         /* enum trace_id */
    u8 flags;         /* TRACE_FLAG_* */
    u8 preempt_count; /* 0: the kernel is not preempted anyway */
    s32 pid;
    u8 fields[TRACE_FIELD_BYTES] __attribute__((aligned(8)));
};
#define TRACE_COMMON_BYTES 8 /* type ... pid */

/* Linux's numbers */
#define TRACE_FLAG_IRQS_OFF     0x01
#define TRACE_FLAG_NEED_RESCHED 0x04
#define TRACE_FLAG_HARDIRQ      0x08

struct trace_slot {
    u64 seq; /* TRACE_SEQ(its number), with TRACE_SEQ_MORE where a text goes on; 0 while it is written */
    union {
        struct trace_record record;
        char more[sizeof(struct trace_record)];
    };
};
#define TRACE_SEQ(n)   (((n) + 1) << 1)
#define TRACE_SEQ_MORE 1ul

#define TRACE_PAGE_SLOTS (PAGE_SIZE / sizeof(struct trace_slot))
struct trace_page {
    struct trace_slot slots[TRACE_PAGE_SLOTS];
};
_Static_assert(sizeof(struct trace_page) <= PAGE_SIZE, "a page of a ring is a frame");

struct trace_ring {
    u64 next;   /* slots ever claimed; its CPU alone changes it */
    u64 first;  /* the number that it began with: what is before was in the ring it replaced */
    u64 n_more; /* of them, where a text goes on: next - n_more is the number of events */
    /* Of readers, under their lock: */
    u64 read_from;      /* what is before has been taken out, or cleared away */
    u64 n_taken;        /* events taken out since it was cleared */
    u64 events_cleared; /* next - n_more, when it was cleared */
    unsigned n_pages;
    struct trace_page *pages[];
};

/* => what `cpu` records into; NULL before trace_init_cpu() there */
struct trace_ring *trace_ring_of(unsigned cpu);
/*
 * `fresh` (its pages and n_pages are set) takes the place of the ring, empty, its numbers going on. Readers' lock held.
 * => the old one, which that CPU may write to until a grace period is over; NULL: it was the one of the boot, which stays.
 */
struct trace_ring *trace_ring_replace(unsigned cpu, struct trace_ring *fresh);

static inline u64 trace_ring_slots(const struct trace_ring *ring)
{
    return ring->n_pages * TRACE_PAGE_SLOTS;
}

static inline struct trace_slot *trace_ring_slot(struct trace_ring *ring, u64 n)
{
    return &ring->pages[n / TRACE_PAGE_SLOTS % ring->n_pages]->slots[n % TRACE_PAGE_SLOTS];
}

#endif
