/*
 * The log of readahead windows: a ring of the last decisions, read as a growing file of lines of fixed width, so
 * that a position says which record it is and a reader that comes too late is told so.
 */
#include "mm/readahead_log.h"

#include "kernel/log/trace.h"
#include "lib/format.h"
#include "lib/string.h"
#include "mm/mapped_file.h"

#define LOG_RECORDS 2048

struct log_record {
    u64 dev, ino;
    pgoff_t access, start, mark;
    u32 n_pages;
    u8 kind;
};

static const char *const kinds[] = {"fault", "read", "advice"};

static LOCK_CLASS(log_lock_class, "readahead log");
static struct spinlock log_lock = SPINLOCK_INIT(&log_lock_class); /* guards all below */
static struct log_record records[LOG_RECORDS];
static u64 next_record;
static u64 total_pages;

void readahead_counts(u64 *windows, u64 *pages)
{
    spin_lock(&log_lock);
    *windows = next_record;
    *pages = total_pages;
    spin_unlock(&log_lock);
}

void readahead_log_add(const struct readahead_call *call, pgoff_t start, u64 n_pages, pgoff_t mark)
{
    const struct page_cache *cache = call->file->cache;
    struct readahead *ra = &call->file->readahead;
    bool has_mark = mark >= start && mark - start < n_pages;
    spin_lock(&ra->lock);
    ra->windows++;
    ra->window_pages += n_pages;
    spin_unlock(&ra->lock);
    spin_lock(&log_lock);
    records[next_record % LOG_RECORDS] = (struct log_record){
        .dev = cache->dev,
        .ino = cache->ino,
        .access = call->access,
        .start = start,
        .mark = has_mark ? mark : READAHEAD_NO_MARK,
        .n_pages = n_pages,
        .kind = call->kind,
    };
    next_record++;
    total_pages += n_pages;
    spin_unlock(&log_lock);
    TRACE(readahead, .pattern = call->pattern ? call->pattern : "none", .kind = kinds[call->kind],
          .dev = trace_dev(cache->dev), .ino = cache->ino, .start = start, .size = (u32)n_pages,
          .async = has_mark ? (u32)(start + n_pages - mark) : 0, .hit = call->access);
}

u64 readahead_log_end(void)
{
    u64 windows, pages;
    readahead_counts(&windows, &pages);
    return windows * READAHEAD_LOG_LINE;
}

/* Formats record `seq` into a line of exactly READAHEAD_LOG_LINE bytes. log_lock held. */
static void format_line(u64 seq, char *line)
{
    const struct log_record *r = &records[seq % LOG_RECORDS];
    char text[READAHEAD_LOG_LINE];
    int len;

    if (next_record - seq > LOG_RECORDS)
        len = format_to(text, sizeof(text), "lost %lu", seq);
    else if (r->mark == READAHEAD_NO_MARK)
        len = format_to(text, sizeof(text), "%lu %lu:%lu %s %lu %lu %u -", seq, r->dev, r->ino,
                        kinds[r->kind], r->access, r->start, r->n_pages);
    else
        len = format_to(text, sizeof(text), "%lu %lu:%lu %s %lu %lu %u %lu", seq, r->dev, r->ino,
                        kinds[r->kind], r->access, r->start, r->n_pages, r->mark);
    size_t used = MIN((size_t)len, (size_t)READAHEAD_LOG_LINE - 1);
    memset(line, ' ', READAHEAD_LOG_LINE);
    memcpy(line, text, used);
    line[READAHEAD_LOG_LINE - 1] = '\n';
}

size_t readahead_log_read(u64 pos, char *buf, size_t len)
{
    size_t copied = 0;
    spin_lock(&log_lock);
    while (copied < len && pos / READAHEAD_LOG_LINE < next_record) {
        char line[READAHEAD_LOG_LINE];
        size_t offset = pos % READAHEAD_LOG_LINE;
        size_t n = MIN(len - copied, READAHEAD_LOG_LINE - offset);
        format_line(pos / READAHEAD_LOG_LINE, line);
        memcpy(buf + copied, line + offset, n);
        copied += n;
        pos += n;
    }
    spin_unlock(&log_lock);
    return copied;
}
