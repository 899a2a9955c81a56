/*
 * The rings' memory: buffer_size_kb of each CPU, in whole frames. A new size means new rings, which begin empty.
 */
#include "fs/trace/tracefs.h"
#include "kernel/cpu/clock.h"
#include "kernel/cpu/smp.h"
#include "kernel/log/log.h"
#include "kernel/sched/grace.h"
#include "lib/errno.h"
#include "lib/format.h"
#include "lib/parse.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/slab.h"

#define DEFAULT_KB  1408ul
#define KB_PER_PAGE (PAGE_SIZE / 1024)
#define NS_PER_S    1000000000ul
#define NS_PER_US   1000ul
#define PAGES_MIN   2ul /* the longest mark is shorter than any ring */
#define PAGES_MAX   ((KMALLOC_MAX_BYTES - sizeof(struct trace_ring)) / sizeof(void *))

static bool was_sized; /* trace_read_lock: by anybody, or by trace_buffer_expand() */

static void ring_free(struct trace_ring *ring)
{
    if (!ring)
        return;
    for (unsigned i = 0; i < ring->n_pages; i++)
        page_put(virt_page(ring->pages[i]));
    kfree(ring);
}

/* => NULL when out of memory */
static struct trace_ring *ring_create(unsigned n_pages)
{
    struct trace_ring *ring = kzalloc(sizeof(*ring) + n_pages * sizeof(ring->pages[0]));
    struct page *page;

    if (!ring)
        return NULL;
    for (; ring->n_pages < n_pages; ring->n_pages++) {
        page = frame_alloc(FRAME_ZERO);
        if (!page) {
            ring_free(ring);
            return NULL;
        }
        ring->pages[ring->n_pages] = page_virt(page);
    }
    return ring;
}

static void rings_free(struct trace_ring **rings)
{
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        ring_free(rings[cpu]);
}

/* All CPUs' new rings, or none. => 0 or -ENOMEM */
static int rings_create(struct trace_ring **rings, u64 n_pages)
{
    if (n_pages > PAGES_MAX || n_pages * cpu_count() > frames_free_count())
        return -ENOMEM;
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        rings[cpu] = ring_create(n_pages);
        if (!rings[cpu]) {
            rings_free(rings);
            return -ENOMEM;
        }
    }
    return 0;
}

_Static_assert(PAGES_MIN *TRACE_PAGE_SLOTS >
                   1 + DIV_ROUND_UP(TRACE_MARK_BYTES, sizeof(struct trace_record)),
               "a mark would overwrite its beginning, and readers would wait for it for ever");

static void do_nothing(void *unused)
{
    (void)unused;
}

/*
 * Whoever has looked up his ring already is through: tasks after a grace period; interrupts, which that does not wait for where
 * they come upon an idle CPU, once their CPU takes a call.
 */
static void wait_for_writers(void)
{
    grace_wait();
    smp_call(cpu_online_mask(), do_nothing, NULL);
}

/* trace_read_lock held. */
static int resize_locked(u64 kb)
{
    struct trace_ring **rings = kzalloc(MAX_CPUS * sizeof(*rings));
    u64 n_pages = kb / KB_PER_PAGE + (kb % KB_PER_PAGE != 0);
    int error = rings ? rings_create(rings, MAX(n_pages, PAGES_MIN)) : -ENOMEM;

    if (!error) {
        for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
            rings[cpu] = trace_ring_replace(cpu, rings[cpu]);
        wait_for_writers();
        rings_free(rings);
        was_sized = true;
    }
    kfree(rings);
    return error;
}

void trace_buffer_expand(void)
{
    mutex_lock(&trace_read_lock);
    if (!was_sized && resize_locked(DEFAULT_KB))
        log_warn("trace: no memory for rings of %lu KiB; the small ones stay", DEFAULT_KB);
    was_sized = true;
    mutex_unlock(&trace_read_lock);
}

static int store_size(void *arg, const char *text, size_t len)
{
    u64 kb;
    int error;

    (void)arg;
    if (parse_u64(text, len, 10, &kb) || kb == 0)
        return -EINVAL;
    mutex_lock(&trace_read_lock);
    error = resize_locked(kb);
    mutex_unlock(&trace_read_lock);
    return error;
}

/* arg: NULL for one CPU's */
static size_t show_size(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    unsigned n = arg ? cpu_count() : 1;

    mutex_lock(&trace_read_lock);
    text_out_put(&out, "%lu", trace_ring_of(0)->n_pages * KB_PER_PAGE * n);
    if (!was_sized)
        text_out_put(&out, " (expanded: %lu)", DEFAULT_KB * n);
    mutex_unlock(&trace_read_lock);
    text_out_bytes(&out, "\n", 1);
    return out.len;
}

/* arg: the CPU */
static size_t show_stats(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct trace_stats stats;
    u64 now = clock_ns();

    mutex_lock(&trace_read_lock);
    trace_stats_get((u64)arg, &stats);
    mutex_unlock(&trace_read_lock);
    text_out_put(&out, "entries: %lu\noverrun: %lu\ncommit overrun: 0\nbytes: %lu\n", stats.entries,
                 stats.overrun, stats.bytes);
    text_out_put(&out, "oldest event ts: %5lu.%06lu\n", stats.oldest_ns / NS_PER_S,
                 stats.oldest_ns % NS_PER_S / NS_PER_US);
    text_out_put(&out, "now ts: %5lu.%06lu\ndropped events: 0\nread events: %lu\n", now / NS_PER_S,
                 now % NS_PER_S / NS_PER_US, stats.taken);
    return out.len;
}

static const struct text_file files[] = {
    {.path = "buffer_size_kb", .show = show_size, .store = store_size},
    {.path = "buffer_total_size_kb", .show = show_size, .arg = (void *)1},
};

void tracefs_add_buffers(struct super_block *super)
{
    tracefs_add(super, files, ARRAY_SIZE(files));
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        const struct text_file stats = {.show = show_stats, .arg = (void *)(u64)cpu};
        char path[32];

        format_to(path, sizeof(path), "per_cpu/cpu%u/stats", cpu);
        tracefs_add_one(super, path, &stats);
    }
}
