/*
 * Plugging: a caller that knows it has more to ask collects its bios, and neighbours become one
 * request.
 *
 * The list is kept in order of device and sector as bios come in; a reader's come in rising order,
 * so each finds its place at the tail at once. At the end a bio joins the request before it if it
 * begins where that ends, has the same flags, and the device takes that many segments.
 */
#include "drivers/block/queue.h"
#include "kernel/cpu/clock.h"

void block_plug_start(struct block_plug *plug)
{
    list_init(&plug->bios);
    plug->n = 0;
}

static bool bio_is_before(const struct bio *a, const struct bio *b)
{
    if (a->device != b->device)
        return a->device->dev < b->device->dev;
    return a->sector < b->sector;
}

void block_plug_add(struct block_plug *plug, struct bio *bio)
{
    struct list *behind = plug->bios.prev;

    if (bio->flags & BIO_FLUSH) {
        block_plug_finish(plug);
        bio_submit(bio);
        return;
    }
    while (behind != &plug->bios && bio_is_before(bio, list_entry(behind, struct bio, link)))
        behind = behind->prev;
    block_trace_queue(bio);
    list_add_head(behind, &bio->link);
    bio->submit_ns = clock_ns();
    plug->n++;
}

/* Takes the first bio off the plug. */
static struct bio *plug_take(struct block_plug *plug)
{
    struct bio *bio = list_first(&plug->bios, struct bio, link);

    list_del(&bio->link);
    plug->n--;
    return bio;
}

/* May the plug's first bio go on at the end of the request? */
static bool plug_first_fits(const struct block_plug *plug, const struct block_request *request)
{
    const struct bio *bio;

    if (list_is_empty(&plug->bios))
        return false;
    bio = list_first(&plug->bios, struct bio, link);
    return bio->device == request->device && bio->flags == request->flags &&
           bio->sector == request->sector + request->bytes / SECTOR_SIZE &&
           request->n_segments + bio->n_segments <= block_segment_limit(request->device) &&
           bio_check(bio) == 0;
}

static void request_append(struct block_request *request, struct bio *bio)
{
    bio->error = 0;
    bio->parts_left = 1;
    list_add_tail(&request->bios, &bio->link);
    request->bytes += bio->bytes;
    request->n_segments += bio->n_segments;
}

void block_plug_finish(struct block_plug *plug)
{
    while (!list_is_empty(&plug->bios)) {
        struct bio *bio = plug_take(plug);
        struct block_request *request;
        u32 n_merged = 0;

        if (bio_check(bio) || bio->n_segments > block_segment_limit(bio->device)) {
            bio_send(bio);
            continue;
        }
        request = block_request_get(bio->device);
        request->flags = bio->flags;
        request->sector = bio->sector;
        request_append(request, bio);
        while (plug_first_fits(plug, request)) {
            request_append(request, plug_take(plug));
            n_merged++;
        }
        block_request_submit(request, n_merged);
    }
}
