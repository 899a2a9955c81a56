/*
 * The virtio block device: vda, vdb, …
 *
 * One queue for each CPU where the device offers so many, each with its MSI-X interrupt on that
 * CPU. A request becomes one chain: header, data, status byte. Header and status lie in a frame of
 * commands, one for each request slot of the block layer.
 *
 * The interrupt takes what is finished off the ring under the queue's lock, and ends the requests
 * without it. An error of the device is the error of that request alone. A device whose ring lies
 * is reset, so that it writes no more, and from then on every request of it fails.
 */
#include "drivers/virtio/blk.h"
#include "drivers/block/block.h"
#include "drivers/devices.h"
#include "kernel/cpu/trap.h"
#include "kernel/log/log.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/slab.h"

#define VIRTIO_BLK_MAJOR     254 /* the first that Linux hands out to it, usually */
#define VIRTIO_BLK_MINORS    16  /* a disk's partitions */
#define VIRTIO_BLK_MAX_RING  1024
#define VIRTIO_BLK_EXTRA     2 /* descriptors of a chain besides the data's */
#define VIRTIO_BLK_MAX_DISKS 16

struct virtio_blk;

struct virtio_blk_queue {
    struct virtio_blk *blk;
    u16 index;
    struct spinlock lock; /* ring, in_flight */
    struct virtio_ring ring;
    struct list in_flight; /* requests */
    volatile u16 *notify;
    int vector;
    struct page *memory;
    unsigned memory_order;
    struct virtio_ring_slot *slots;
};

struct virtio_blk {
    struct block_device device;
    struct virtio_device virtio;
    volatile struct virtio_blk_command *commands; /* BLOCK_REQUESTS, by request->slot */
    struct page *commands_page;
    bool is_dead; /* it lied, and was reset */
    unsigned n_queues;
    struct virtio_blk_queue queues[];
};
_Static_assert(BLOCK_REQUESTS * sizeof(struct virtio_blk_command) <= PAGE_SIZE, "one frame");

LOCK_CLASS(virtio_blk_queue_class, "virtio_blk_queue->lock");

static struct virtio_blk *blk_of(struct block_device *device)
{
    return container_of(device, struct virtio_blk, device);
}

/* ---- Completion ---- */

/* What the device did with the request. A read is good only if all of it was written, and the
 * status. */
static int request_result(struct virtio_blk *blk, const struct block_request *request, u32 written)
{
    u32 expected = 1 + (request->flags & (BIO_WRITE | BIO_FLUSH) ? 0 : request->bytes);

    if (written < expected || blk->commands[request->slot].status != VIRTIO_BLK_S_OK)
        return -EIO;
    return 0;
}

static void end_requests(struct list *requests)
{
    while (!list_is_empty(requests)) {
        struct block_request *request = list_first(requests, struct block_request, link);

        list_del(&request->link);
        block_request_done(request, request->error);
    }
}

/* The device broke the rules: it is stopped, and all it had is given back with an error. */
static void blk_kill(struct virtio_blk *blk, const struct virtio_blk_queue *liar)
{
    struct list lost = LIST_INIT(lost);
    struct block_request *request;

    if (atomic_exchange(&blk->is_dead, true))
        return;
    log_error("%s: queue %u: %s; the device is stopped, its requests fail", blk->device.name,
              liar->index, liar->ring.broken_because);
    if (virtio_reset(&blk->virtio))
        log_error("%s: does not answer to the reset", blk->device.name);
    for (unsigned i = 0; i < blk->n_queues; i++) {
        struct virtio_blk_queue *queue = &blk->queues[i];
        bool irqs_on = spin_lock_irq(&queue->lock);

        queue->ring.is_broken = true;
        list_splice_tail(&lost, &queue->in_flight);
        spin_unlock_irq(&queue->lock, irqs_on);
    }
    list_for_each (request, &lost, link)
        request->error = -EIO;
    end_requests(&lost);
}

static void queue_reap(struct virtio_blk_queue *queue)
{
    struct virtio_blk *blk = queue->blk;
    struct list finished = LIST_INIT(finished);
    bool irqs_on = spin_lock_irq(&queue->lock);
    void *token;
    u32 written;
    int taken;

    while ((taken = virtio_ring_take(&queue->ring, &token, &written)) > 0) {
        struct block_request *request = token;

        request->error = request_result(blk, request, written);
        list_del(&request->link);
        list_add_tail(&finished, &request->link);
    }
    spin_unlock_irq(&queue->lock, irqs_on);

    end_requests(&finished);
    if (taken < 0)
        blk_kill(blk, queue);
}

static void queue_interrupt(void *context)
{
    queue_reap(context);
}

static void blk_poll(struct block_device *device)
{
    struct virtio_blk *blk = blk_of(device);

    for (unsigned i = 0; i < blk->n_queues; i++)
        queue_reap(&blk->queues[i]);
}

/* ---- Submission ---- */

static u32 command_type(const struct block_request *request)
{
    if (request->flags & BIO_FLUSH)
        return VIRTIO_BLK_T_FLUSH;
    return request->flags & BIO_WRITE ? VIRTIO_BLK_T_OUT : VIRTIO_BLK_T_IN;
}

static void chain_fill(struct virtio_blk *blk, struct virtio_chain *chain,
                       struct block_request *request)
{
    volatile struct virtio_blk_command *command = &blk->commands[request->slot];
    phys_t command_phys =
        page_phys(blk->commands_page) + request->slot * sizeof(struct virtio_blk_command);
    bool is_read = !(request->flags & BIO_WRITE);
    struct block_segments it;
    struct bio_segment *segment;

    command->type = command_type(request);
    command->reserved = 0;
    command->sector = request->flags & BIO_FLUSH ? 0 : request->sector;
    command->status = VIRTIO_BLK_S_NONE;
    virtio_chain_add(chain, command_phys, VIRTIO_BLK_HEADER_BYTES, false);
    for (block_segments_start(&it, request); (segment = block_segments_next(&it));)
        virtio_chain_add(chain, page_phys(segment->page) + segment->offset, segment->bytes,
                         is_read);
    virtio_chain_add(chain, command_phys + VIRTIO_BLK_HEADER_BYTES, 1, true);
}

static int queue_start(struct virtio_blk_queue *queue, struct block_request *request)
{
    struct virtio_chain chain;
    bool irqs_on = spin_lock_irq(&queue->lock);
    int error =
        virtio_chain_begin(&queue->ring, (u16)(request->n_segments + VIRTIO_BLK_EXTRA), &chain);

    if (!error) {
        chain_fill(queue->blk, &chain, request);
        list_add_tail(&queue->in_flight, &request->link);
        virtio_chain_submit(&chain, request);
        virtio_ring_notify(&queue->ring);
    }
    spin_unlock_irq(&queue->lock, irqs_on);
    return error;
}

/* This CPU's queue, or, where that is full, the next one that has room. */
static int blk_start(struct block_device *device, struct block_request *request)
{
    struct virtio_blk *blk = blk_of(device);
    unsigned own = cpu_index() % blk->n_queues;
    int error = -EBUSY;

    if (request->flags & BIO_FLUSH && !(blk->virtio.features & VIRTIO_BLK_F_FLUSH)) {
        block_request_done(request, 0); /* it writes through: all is safe already */
        return 0;
    }
    for (unsigned i = 0; i < blk->n_queues && error == -EBUSY; i++)
        error = queue_start(&blk->queues[(own + i) % blk->n_queues], request);
    return error;
}

static const struct block_driver_ops blk_ops = {.start = blk_start, .poll = blk_poll};

/* ---- Set-up ---- */

#define CONFIG_FIELD(blk, field)                                                  \
    virtio_config_read(&(blk)->virtio, offsetof(struct virtio_blk_config, field), \
                       sizeof(((struct virtio_blk_config *)0)->field))

static bool blk_has(const struct virtio_blk *blk, u64 feature)
{
    return blk->virtio.features & feature;
}

static unsigned order_for(size_t bytes)
{
    unsigned order = 0;

    while ((PAGE_SIZE << order) < bytes)
        order++;
    return order;
}

static void queue_notify(struct virtio_ring *ring)
{
    struct virtio_blk_queue *queue = ring->owner;

    *queue->notify = queue->index;
}

static void queue_teardown(struct virtio_blk_queue *queue)
{
    if (queue->vector > 0)
        irq_vector_free(queue->vector);
    if (queue->memory)
        frames_free(queue->memory, queue->memory_order);
    kfree(queue->slots);
    queue->vector = 0;
    queue->memory = NULL;
    queue->slots = NULL;
}

static u16 queue_size(struct virtio_blk *blk, u16 index)
{
    u16 offered = virtio_queue_max_size(&blk->virtio, index);
    u16 size = VIRTIO_BLK_MAX_RING;

    while (size > offered)
        size /= 2;
    return size;
}

static int queue_setup(struct virtio_blk *blk, u16 index)
{
    struct virtio_blk_queue *queue = &blk->queues[index];
    u16 size = queue_size(blk, index);
    int error;

    if (size <= VIRTIO_BLK_EXTRA)
        return -ENODEV;
    queue->blk = blk;
    queue->index = index;
    spin_init(&queue->lock, &virtio_blk_queue_class);
    list_init(&queue->in_flight);
    queue->memory_order = order_for(virtio_ring_bytes(size));
    queue->memory = frames_alloc(queue->memory_order, FRAME_ZERO);
    queue->slots = kmalloc(size * sizeof(*queue->slots));
    if (!queue->memory || !queue->slots)
        return -ENOMEM;
    error = virtio_ring_init(&queue->ring, size, page_virt(queue->memory), page_phys(queue->memory),
                             queue->slots, queue_notify, queue);
    if (error)
        return error;
    queue->vector = irq_vector_alloc(blk->device.name, queue_interrupt, queue);
    if (queue->vector < 0)
        return queue->vector;
    error = pci_msix_set(blk->virtio.pci, index, (u8)queue->vector, index % cpu_count());
    if (error)
        return error;
    return virtio_queue_setup(&blk->virtio, index, &queue->ring, index, &queue->notify);
}

/* One queue must be; of further ones as many as there is memory and interrupts for. */
static int queues_setup(struct virtio_blk *blk, unsigned n_wanted)
{
    for (unsigned i = 0; i < n_wanted; i++) {
        int error = queue_setup(blk, (u16)i);

        if (error) {
            queue_teardown(&blk->queues[i]);
            return i ? 0 : error;
        }
        blk->n_queues = i + 1;
    }
    return 0;
}

#define SECTORS_MAX ((u64)INT64_MAX / SECTOR_SIZE) /* its size in bytes is a file's */

static unsigned queues_wanted(struct virtio_blk *blk)
{
    unsigned n = blk_has(blk, VIRTIO_BLK_F_MQ) ? (unsigned)CONFIG_FIELD(blk, num_queues) : 1;

    n = MIN(n, cpu_count());
    n = MIN(n, blk->virtio.n_msix);
    return MAX(n, 1u);
}

/* What the device says about itself, and what we make of it. => 0, -ENODEV with a log line */
static int blk_read_config(struct virtio_blk *blk)
{
    struct block_device *device = &blk->device;
    u32 ring_segments = blk->queues[0].ring.size - VIRTIO_BLK_EXTRA;
    u32 seg_max = blk_has(blk, VIRTIO_BLK_F_SEG_MAX) ? (u32)CONFIG_FIELD(blk, seg_max) : 0;
    u32 size_max = blk_has(blk, VIRTIO_BLK_F_SIZE_MAX) ? (u32)CONFIG_FIELD(blk, size_max) : 0;

    for (unsigned i = 1; i < blk->n_queues; i++)
        ring_segments = MIN(ring_segments, blk->queues[i].ring.size - (u32)VIRTIO_BLK_EXTRA);
    device->sectors = CONFIG_FIELD(blk, capacity);
    device->max_segments = seg_max ? MIN(seg_max, ring_segments) : ring_segments;
    device->block_bytes =
        blk_has(blk, VIRTIO_BLK_F_BLK_SIZE) ? (u32)CONFIG_FIELD(blk, blk_size) : (u32)SECTOR_SIZE;
    device->is_read_only = blk_has(blk, VIRTIO_BLK_F_RO);
    if (size_max && size_max < PAGE_SIZE) {
        log_error("%s: takes only %u bytes in a piece, a page is needed", device->name, size_max);
        return -ENODEV;
    }
    if (device->block_bytes < SECTOR_SIZE || device->block_bytes > PAGE_SIZE ||
        device->block_bytes & (device->block_bytes - 1)) {
        log_error("%s: blocks of %u bytes are not supported", device->name, device->block_bytes);
        return -ENODEV;
    }
    if (!device->sectors || device->sectors > SECTORS_MAX) {
        log_error("%s: a disk of %lu sectors is not supported", device->name, device->sectors);
        return -ENODEV;
    }
    return 0;
}

static int blk_bring_up(struct virtio_blk *blk, struct pci_device *pci)
{
    const u64 wanted = VIRTIO_BLK_F_SIZE_MAX | VIRTIO_BLK_F_SEG_MAX | VIRTIO_BLK_F_RO |
                       VIRTIO_BLK_F_BLK_SIZE | VIRTIO_BLK_F_FLUSH | VIRTIO_BLK_F_MQ;
    int error = virtio_attach(&blk->virtio, pci);

    if (error)
        return error;
    error = virtio_negotiate(&blk->virtio, wanted);
    if (!error)
        error = queues_setup(blk, queues_wanted(blk));
    if (!error)
        error = blk_read_config(blk);
    if (!error) {
        virtio_start(&blk->virtio);
        error = block_device_register(&blk->device);
    }
    if (error)
        virtio_fail(&blk->virtio); /* before its memory is given back */
    return error;
}

static struct virtio_blk *blk_create(unsigned number)
{
    struct virtio_blk *blk = kzalloc(sizeof(*blk) + cpu_count() * sizeof(struct virtio_blk_queue));

    if (!blk)
        return NULL;
    blk->commands_page = frame_alloc(FRAME_ZERO);
    if (!blk->commands_page) {
        kfree(blk);
        return NULL;
    }
    blk->commands = page_virt(blk->commands_page);
    string_copy(blk->device.name, "vda", sizeof(blk->device.name));
    blk->device.name[2] = (char)('a' + number);
    blk->device.dev = BLOCK_DEV(VIRTIO_BLK_MAJOR, number * VIRTIO_BLK_MINORS);
    blk->device.ops = &blk_ops;
    return blk;
}

static void blk_destroy(struct virtio_blk *blk)
{
    for (unsigned i = 0; i < blk->n_queues; i++)
        queue_teardown(&blk->queues[i]);
    frames_free(blk->commands_page, 0);
    kfree(blk);
}

/* Called for each device of virtio's vendor. => 0: go on */
static int blk_probe(struct pci_device *pci, void *ctx)
{
    unsigned *n_disks = ctx;
    struct virtio_blk *blk;
    int error = -ENOMEM;

    if (pci->device != VIRTIO_PCI_DEVICE_MODERN + VIRTIO_TYPE_BLK &&
        pci->device != VIRTIO_PCI_BLK_TRANSITIONAL)
        return 0;
    if (*n_disks == VIRTIO_BLK_MAX_DISKS)
        return 1;
    blk = blk_create(*n_disks);
    if (blk)
        error = blk_bring_up(blk, pci);
    if (error) {
        log_error("virtio-blk %02x:%02x.%x: not usable: error %d", pci->bus, pci->slot,
                  pci->function, error);
        if (blk)
            blk_destroy(blk);
        return 0;
    }
    pci->driver = blk;
    log_info("%s: virtio-blk at %02x:%02x.%x, queues: %u of %u descriptors", blk->device.name,
             pci->bus, pci->slot, pci->function, blk->n_queues, blk->queues[0].ring.size);
    (*n_disks)++;
    return 0;
}

void virtio_blk_init(void)
{
    unsigned n_disks = 0;

    pci_for_each(VIRTIO_PCI_VENDOR, PCI_ANY_DEVICE, blk_probe, &n_disks);
    if (!n_disks)
        log_info("virtio-blk: no disk found");
}
