/*
 * Requests as trace events, in Linux's words. rwbs says what kind a request is: R read, W write, F flush; then A for
 * readahead, M for metadata.
 */
#include "kernel/log/trace.h"
#include "drivers/block/queue.h"

static struct trace_text8 rwbs_of(u32 flags)
{
    struct trace_text8 rwbs = {0};
    unsigned n = 0;

    rwbs.text[n++] = flags & BIO_FLUSH ? 'F' : flags & BIO_WRITE ? 'W' : 'R';
    if (flags & BIO_READAHEAD)
        rwbs.text[n++] = 'A';
    if (flags & BIO_META)
        rwbs.text[n++] = 'M';
    return rwbs;
}

/* Whoever asks; of an interrupt, the task that it came upon. */
static struct trace_text16 comm(void)
{
    return trace_text16(task_current()->name);
}

void block_trace_queue(const struct bio *bio)
{
    TRACE(block_bio_queue, .dev = trace_dev(bio->device->dev), .sector = bio->sector,
          .nr_sector = bio->bytes / SECTOR_SIZE, .rwbs = rwbs_of(bio->flags), .comm = comm());
}

void block_trace_issue(const struct block_request *request)
{
    TRACE(block_rq_issue, .dev = trace_dev(request->device->dev), .sector = request->sector,
          .nr_sector = request->bytes / SECTOR_SIZE, .bytes = request->bytes,
          .rwbs = rwbs_of(request->flags), .comm = comm());
}

void block_trace_complete(const struct block_request *request)
{
    TRACE(block_rq_complete, .dev = trace_dev(request->device->dev), .sector = request->sector,
          .nr_sector = request->bytes / SECTOR_SIZE, .error = request->error,
          .rwbs = rwbs_of(request->flags));
}
