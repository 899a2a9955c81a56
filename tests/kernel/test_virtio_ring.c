/*
 * The split virtqueue against a device in memory, honest and lying.
 */
#include "drivers/virtio/ring.h"
#include "lib/string.h"
#include "tests/kernel/ktest.h"

#define SIZE        8
#define GUARD_BYTES 64
#define GUARD       0xa5
#define FAKE_PHYS   0x10000 /* never translated: the ring only passes it on */

/* The ring's memory between two guards, the driver's slots between two more. */
struct bench {
    u8 guard_a[GUARD_BYTES];
    u8 space[512];
    u8 guard_b[GUARD_BYTES];
    struct virtio_ring_slot slots[SIZE];
    u8 guard_c[GUARD_BYTES];
    u8 *memory; /* in space, aligned */
    struct virtio_ring ring;
    u32 n_notified;
    u16 device_seen; /* available entries the device has taken */
};

static void count_notify(struct virtio_ring *ring)
{
    struct bench *bench = ring->owner;

    bench->n_notified++;
}

static void bench_open(struct bench *bench)
{
    memset(bench, 0, sizeof(*bench));
    memset(bench->guard_a, GUARD, GUARD_BYTES);
    memset(bench->guard_b, GUARD, GUARD_BYTES);
    memset(bench->guard_c, GUARD, GUARD_BYTES);
    bench->memory = (u8 *)ALIGN_UP((u64)bench->space, VIRTIO_RING_ALIGN);
    KEXPECT(virtio_ring_bytes(SIZE) + VIRTIO_RING_ALIGN <= sizeof(bench->space));
    KEXPECT_EQ(virtio_ring_init(&bench->ring, SIZE, bench->memory, FAKE_PHYS, bench->slots,
                                count_notify, bench),
               0);
}

static bool guards_are_whole(const struct bench *bench)
{
    for (u32 i = 0; i < GUARD_BYTES; i++) {
        if (bench->guard_a[i] != GUARD || bench->guard_b[i] != GUARD || bench->guard_c[i] != GUARD)
            return false;
    }
    return true;
}

/* A request as virtio-blk makes it: header, n pages, status. => its token's error */
static int submit(struct bench *bench, u16 n_descriptors, void *token)
{
    struct virtio_chain chain;
    int error = virtio_chain_begin(&bench->ring, n_descriptors, &chain);

    if (error)
        return error;
    for (u16 i = 0; i < n_descriptors; i++)
        virtio_chain_add(&chain, 0x1000 * (i + 1ul), 100, i > 0);
    virtio_chain_submit(&chain, token);
    return 0;
}

/* The device takes the next available chain. => its head */
static u16 device_take(struct bench *bench)
{
    KEXPECT(bench->ring.available->index != bench->device_seen);
    return bench->ring.available->heads[bench->device_seen++ % SIZE];
}

static void device_use(struct bench *bench, u32 id, u32 bytes)
{
    volatile struct virtio_used *used = bench->ring.used;

    used->entries[used->index % SIZE].id = id;
    used->entries[used->index % SIZE].bytes = bytes;
    used->index++;
}

static int take(struct bench *bench, void **token)
{
    u32 bytes;

    *token = NULL;
    return virtio_ring_take(&bench->ring, token, &bytes);
}

/* After a lie: nothing was handed out, nothing beside the ring was touched, and nothing goes on. */
static void expect_broken(struct bench *bench)
{
    struct virtio_ring_slot before[SIZE];
    void *token;

    memcpy(before, bench->slots, sizeof(before));
    KEXPECT_EQ(take(bench, &token), -EIO);
    KEXPECT(token == NULL);
    KEXPECT(bench->ring.is_broken);
    KEXPECT(bench->ring.broken_because != NULL);
    KEXPECT_EQ(memcmp(before, bench->slots, sizeof(before)), 0);
    KEXPECT(guards_are_whole(bench));
    KEXPECT_EQ(submit(bench, 1, bench), -EIO);
    KEXPECT_EQ(take(bench, &token), -EIO);
}

/* ---- Set-up ---- */

KTEST(virtio_ring, its_parts_lie_where_the_standard_says)
{
    static u8 memory[8192] __attribute__((aligned(16)));
    static struct virtio_ring_slot slots[256];
    struct virtio_ring ring;

    KEXPECT_EQ(virtio_ring_bytes(256), 4616 + 4 + 256 * 8 + 2);
    KASSERT_EQ(virtio_ring_init(&ring, 256, memory, FAKE_PHYS, slots, count_notify, NULL), 0);
    KEXPECT_EQ(ring.descriptors_phys, FAKE_PHYS);
    KEXPECT_EQ(ring.available_phys, FAKE_PHYS + 4096);
    KEXPECT_EQ(ring.used_phys, FAKE_PHYS + 4616); /* 4096 + 4 + 512 + 2, to a multiple of 4 */
    KEXPECT_EQ((u64)ring.used, (u64)memory + 4616);
}

KTEST(virtio_ring, a_bad_size_or_place_is_refused)
{
    struct bench bench;

    bench_open(&bench);
    KEXPECT_EQ(
        virtio_ring_init(&bench.ring, 0, bench.memory, FAKE_PHYS, bench.slots, count_notify, NULL),
        -EINVAL);
    KEXPECT_EQ(
        virtio_ring_init(&bench.ring, 6, bench.memory, FAKE_PHYS, bench.slots, count_notify, NULL),
        -EINVAL);
    KEXPECT_EQ(virtio_ring_init(&bench.ring, SIZE, bench.memory + 8, FAKE_PHYS, bench.slots,
                                count_notify, NULL),
               -EINVAL);
}

/* ---- An honest device ---- */

KTEST(virtio_ring, the_device_sees_the_chain_as_it_was_made)
{
    struct bench bench;
    u16 at;

    bench_open(&bench);
    KASSERT_EQ(submit(&bench, 3, &bench), 0);
    KEXPECT_EQ(bench.ring.available->index, 1);
    at = device_take(&bench);
    for (u32 i = 0; i < 3; i++) {
        volatile struct virtio_descriptor *d = &bench.ring.descriptors[at];

        KEXPECT_EQ(d->address, 0x1000 * (i + 1));
        KEXPECT_EQ(d->bytes, 100);
        KEXPECT_EQ(d->flags,
                   (i < 2 ? VIRTIO_DESCRIPTOR_NEXT : 0) | (i > 0 ? VIRTIO_DESCRIPTOR_WRITE : 0));
        at = d->next;
    }
}

KTEST(virtio_ring, token_and_length_come_back)
{
    struct bench bench;
    void *token;
    u32 bytes = 0;

    bench_open(&bench);
    KEXPECT_EQ(virtio_ring_take(&bench.ring, &token, &bytes), 0);
    KASSERT_EQ(submit(&bench, 3, &bench.n_notified), 0);
    KEXPECT_EQ(virtio_ring_take(&bench.ring, &token, &bytes), 0);
    device_use(&bench, device_take(&bench), 200);
    KASSERT_EQ(virtio_ring_take(&bench.ring, &token, &bytes), 1);
    KEXPECT(token == &bench.n_notified);
    KEXPECT_EQ(bytes, 200); /* all that it might write: no lie */
    KEXPECT_EQ(virtio_ring_take(&bench.ring, &token, &bytes), 0);
}

KTEST(virtio_ring, notifies_unless_the_device_says_it_looks_itself)
{
    struct bench bench;

    bench_open(&bench);
    KASSERT_EQ(submit(&bench, 1, &bench), 0);
    KEXPECT_EQ(bench.n_notified, 0);
    virtio_ring_notify(&bench.ring);
    KEXPECT_EQ(bench.n_notified, 1);
    bench.ring.used->flags = VIRTIO_USED_NO_NOTIFY;
    virtio_ring_notify(&bench.ring);
    KEXPECT_EQ(bench.n_notified, 1);
}

KTEST(virtio_ring, indices_wrap_at_16_bits)
{
    struct bench bench;
    void *token;

    bench_open(&bench);
    for (u64 i = 1; i <= 70000; i++) {
        KASSERT_EQ(submit(&bench, 3, (void *)i), 0);
        device_use(&bench, device_take(&bench), 1);
        KASSERT_EQ(take(&bench, &token), 1);
        KASSERT_EQ((u64)token, i);
    }
    KEXPECT_EQ(bench.ring.available->index, 70000 - 65536);
    KEXPECT_EQ(bench.ring.n_free, SIZE);
    KEXPECT(guards_are_whole(&bench));
}

KTEST(virtio_ring, chains_may_come_back_in_any_order)
{
    struct bench bench;
    u16 heads[3];
    void *token;

    bench_open(&bench);
    for (u64 i = 0; i < 3; i++) {
        KASSERT_EQ(submit(&bench, 2, (void *)(i + 1)), 0);
        heads[i] = device_take(&bench);
    }
    device_use(&bench, heads[2], 0);
    device_use(&bench, heads[0], 0);
    device_use(&bench, heads[1], 0);
    KEXPECT_EQ(take(&bench, &token), 1);
    KEXPECT_EQ((u64)token, 3);
    KEXPECT_EQ(take(&bench, &token), 1);
    KEXPECT_EQ((u64)token, 1);
    KEXPECT_EQ(take(&bench, &token), 1);
    KEXPECT_EQ((u64)token, 2);
    KEXPECT_EQ(bench.ring.n_free, SIZE);
    /* and every descriptor is in the free list once: one chain can have them all */
    KEXPECT_EQ(submit(&bench, SIZE, &bench), 0);
    KEXPECT_EQ(bench.ring.n_free, 0);
}

KTEST(virtio_ring, without_free_descriptors_it_is_busy_until_one_chain_is_back)
{
    struct bench bench;
    void *token;

    bench_open(&bench);
    KEXPECT_EQ(submit(&bench, 0, &bench), -EINVAL);
    KEXPECT_EQ(submit(&bench, SIZE + 1, &bench), -EINVAL);
    KASSERT_EQ(submit(&bench, 5, &bench), 0);
    KEXPECT_EQ(submit(&bench, 4, &bench), -EBUSY);
    KEXPECT_EQ(bench.ring.available->index, 1); /* nothing half done */
    KEXPECT_EQ(submit(&bench, 3, &bench), 0);
    KEXPECT_EQ(submit(&bench, 1, &bench), -EBUSY);
    device_use(&bench, device_take(&bench), 1);
    KEXPECT_EQ(take(&bench, &token), 1);
    KEXPECT_EQ(submit(&bench, 5, &bench), 0);
}

KTEST(virtio_ring, a_device_that_scribbles_on_the_descriptors_confuses_only_itself)
{
    struct bench bench;
    void *token;
    u16 head;

    bench_open(&bench);
    for (u32 round = 0; round < 20; round++) {
        KASSERT_EQ(submit(&bench, 3, &bench), 0);
        head = device_take(&bench);
        memset((void *)bench.ring.descriptors, 0xff, SIZE * sizeof(struct virtio_descriptor));
        device_use(&bench, head, 0);
        KASSERT_EQ(take(&bench, &token), 1);
        KASSERT(token == &bench);
    }
    KEXPECT_EQ(bench.ring.n_free, SIZE);
    KEXPECT(guards_are_whole(&bench));
}

/* ---- A device that lies ---- */

KTEST(virtio_ring, an_id_beyond_the_ring_is_refused)
{
    static const u32 ids[] = {SIZE, SIZE + 1, 0xffff, 0x10000, 0xffffffff};

    for (u32 i = 0; i < ARRAY_SIZE(ids); i++) {
        struct bench bench;

        bench_open(&bench);
        KASSERT_EQ(submit(&bench, 3, &bench), 0);
        device_use(&bench, ids[i], 0);
        expect_broken(&bench);
    }
}

KTEST(virtio_ring, an_id_that_is_not_in_flight_is_refused)
{
    struct bench bench;
    u16 head;

    bench_open(&bench);
    KASSERT_EQ(submit(&bench, 3, &bench), 0);
    head = device_take(&bench);
    device_use(&bench, (head + SIZE - 1u) % SIZE, 0);
    expect_broken(&bench);
}

KTEST(virtio_ring, the_middle_of_a_chain_is_no_id)
{
    struct bench bench;
    u16 head;

    bench_open(&bench);
    KASSERT_EQ(submit(&bench, 3, &bench), 0);
    head = device_take(&bench);
    device_use(&bench, bench.ring.descriptors[head].next, 0);
    expect_broken(&bench);
}

KTEST(virtio_ring, a_length_beyond_what_the_device_may_write_is_refused)
{
    struct bench bench;

    bench_open(&bench);
    KASSERT_EQ(submit(&bench, 3, &bench), 0); /* 100 to read, 200 to write */
    device_use(&bench, device_take(&bench), 201);
    expect_broken(&bench);
}

KTEST(virtio_ring, a_used_index_that_runs_ahead_is_refused)
{
    static const u16 ahead[] = {2, SIZE, SIZE + 1, 0x8000, 0xffff};

    for (u32 i = 0; i < ARRAY_SIZE(ahead); i++) {
        struct bench bench;

        bench_open(&bench);
        KASSERT_EQ(submit(&bench, 3, &bench), 0);
        device_use(&bench, device_take(&bench), 0);
        bench.ring.used->index = ahead[i];
        expect_broken(&bench);
    }
}

KTEST(virtio_ring, a_completion_out_of_nothing_is_refused)
{
    struct bench bench;

    bench_open(&bench);
    device_use(&bench, 0, 0);
    expect_broken(&bench);
}

KTEST(virtio_ring, completing_twice_is_refused)
{
    struct bench bench;
    void *token;
    u16 head;

    bench_open(&bench);
    KASSERT_EQ(submit(&bench, 2, &bench), 0);
    KASSERT_EQ(submit(&bench, 2, &bench), 0); /* so that the count of entries alone is right */
    head = device_take(&bench);
    device_use(&bench, head, 0);
    device_use(&bench, head, 0);
    KEXPECT_EQ(take(&bench, &token), 1);
    expect_broken(&bench);
}

KTEST(virtio_ring, a_broken_ring_does_not_notify)
{
    struct bench bench;

    bench_open(&bench);
    KASSERT_EQ(submit(&bench, 1, &bench), 0);
    device_use(&bench, SIZE, 0);
    expect_broken(&bench);
    virtio_ring_notify(&bench.ring);
    KEXPECT_EQ(bench.n_notified, 0);
}
