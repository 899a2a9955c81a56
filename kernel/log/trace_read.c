/*
 * The readers' side of the rings. See trace_read.h.
 */
#include "kernel/log/trace_read.h"

#include "kernel/cpu/smp.h"
#include "kernel/sync/atomic.h"
#include "lib/string.h"

enum slot_state { SLOT_READY, SLOT_BEING_WRITTEN, SLOT_OVERWRITTEN };

static u64 oldest_slot(const struct trace_ring *ring)
{
    u64 next = READ_ONCE(ring->next), size = trace_ring_slots(ring);

    return MAX(ring->first, next > size ? next - size : 0);
}

/* Copies slot number n, if it is that, before and after. */
static enum slot_state copy_slot(struct trace_ring *ring, u64 n, struct trace_slot *out)
{
    struct trace_slot *slot = trace_ring_slot(ring, n);
    u64 seq = atomic_load(&slot->seq);

    if ((seq | TRACE_SEQ_MORE) == (TRACE_SEQ(n) | TRACE_SEQ_MORE)) {
        memcpy(out, slot, sizeof(*out));
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (READ_ONCE(slot->seq) == seq) {
            out->seq = seq;
            return SLOT_READY;
        }
    }
    return n < oldest_slot(ring) ? SLOT_OVERWRITTEN : SLOT_BEING_WRITTEN;
}

/*
 * Moves *at to the next slot before `end` where a record begins, and copies it.
 * => whether there is one; *at is `end` otherwise, or a record that is being written
 */
static bool find_record(struct trace_ring *ring, u64 *at, u64 end, struct trace_slot *out)
{
    while (*at < end) {
        enum slot_state state = copy_slot(ring, *at, out);

        if (state == SLOT_BEING_WRITTEN)
            return false;
        if (state == SLOT_READY && !(out->seq & TRACE_SEQ_MORE))
            return true;
        *at = state == SLOT_READY ? *at + 1 : MAX(*at + 1, oldest_slot(ring));
    }
    *at = end;
    return false;
}

/* The text of the record in slot *at - 1; *at passes its slots. => whether it is all there still */
static bool copy_text(struct trace_ring *ring, u64 *at, struct trace_found *out)
{
    struct trace_print *print = (struct trace_print *)out->record.fields;
    size_t bytes = MIN(print->bytes, (u32)TRACE_MARK_BYTES);
    size_t done = MIN(bytes, (size_t)TRACE_PRINT_FIRST_BYTES);
    struct trace_slot slot;

    memcpy(out->text, print->buf, done);
    for (; done < bytes; ++*at) {
        size_t part = MIN(bytes - done, sizeof(slot.more));

        if (copy_slot(ring, *at, &slot) != SLOT_READY)
            return false;
        memcpy(out->text + done, slot.more, part);
        done += part;
    }
    out->text_bytes = bytes;
    return true;
}

void trace_cursor_begin(struct trace_cursor *cursor, bool all)
{
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        struct trace_ring *ring = trace_ring_of(cpu);

        cursor->at[cpu] = cursor->end[cpu] = ring ? READ_ONCE(ring->next) : 0;
        if (ring)
            cursor->at[cpu] = all ? oldest_slot(ring) : MAX(oldest_slot(ring), ring->read_from);
    }
}

/* => the CPU whose next record is the oldest, and that record; MAX_CPUS: none is left */
static unsigned find_oldest(struct trace_cursor *cursor, struct trace_record *record)
{
    unsigned best = MAX_CPUS;
    struct trace_slot slot;

    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        struct trace_ring *ring = trace_ring_of(cpu);

        if (!ring || !find_record(ring, &cursor->at[cpu], cursor->end[cpu], &slot))
            continue;
        if (best == MAX_CPUS || slot.record.time_ns < record->time_ns) {
            best = cpu;
            *record = slot.record;
        }
    }
    return best;
}

bool trace_cursor_next(struct trace_cursor *cursor, struct trace_found *out)
{
    for (;;) {
        unsigned cpu = find_oldest(cursor, &out->record);

        if (cpu == MAX_CPUS)
            return false;
        out->cpu = cpu;
        out->lost = 0;
        out->text_bytes = 0;
        cursor->at[cpu]++;
        if (out->record.type != TRACE_ID_print ||
            copy_text(trace_ring_of(cpu), &cursor->at[cpu], out))
            return true;
    }
}

bool trace_take(struct trace_found *out)
{
    static struct trace_cursor cursor; /* readers' lock */
    struct trace_ring *ring;
    u64 oldest;

    trace_cursor_begin(&cursor, false);
    if (!trace_cursor_next(&cursor, out))
        return false;
    ring = trace_ring_of(out->cpu);
    oldest = oldest_slot(ring);
    if (ring->read_from < oldest && ring->read_from < cursor.at[out->cpu])
        out->lost = MIN(oldest, cursor.at[out->cpu]) - ring->read_from;
    ring->read_from = cursor.at[out->cpu];
    ring->n_taken++;
    return true;
}

bool trace_is_empty(void)
{
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        const struct trace_ring *ring = trace_ring_of(cpu);

        if (ring && READ_ONCE(ring->next) > READ_ONCE(ring->read_from))
            return false;
    }
    return true;
}

void trace_clear(void)
{
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        struct trace_ring *ring = trace_ring_of(cpu);

        if (!ring)
            continue;
        WRITE_ONCE(ring->read_from, READ_ONCE(ring->next));
        ring->events_cleared = ring->read_from - READ_ONCE(ring->n_more);
        ring->n_taken = 0;
    }
}

void trace_stats_get(unsigned cpu, struct trace_stats *out)
{
    struct trace_ring *ring = trace_ring_of(cpu);
    struct trace_slot slot;
    u64 at, end;
    s64 overrun; /* marks that are just being written make it too small for a moment */

    *out = (struct trace_stats){0};
    if (!ring)
        return;
    end = READ_ONCE(ring->next);
    for (at = MAX(oldest_slot(ring), ring->read_from); find_record(ring, &at, end, &slot); at++) {
        if (out->entries++ == 0)
            out->oldest_ns = slot.record.time_ns;
    }
    out->taken = ring->n_taken;
    out->bytes = out->entries * sizeof(struct trace_record);
    overrun = end - READ_ONCE(ring->n_more) - ring->events_cleared - out->entries - out->taken;
    out->overrun = MAX(overrun, 0l);
}
