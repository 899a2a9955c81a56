/*
 * The RAM disk, and the virtio disk where the machine has one: that bytes are where they belong.
 */
#include "drivers/block/gate.h"
#include "drivers/block/ramdisk.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/slab.h"
#include "tests/kernel/block_fake.h"
#include "tests/kernel/ktest.h"

#define DISK_PAGES 8
#define DISK_BYTES (DISK_PAGES * PAGE_SIZE)

/* A disk "ramtest" in which each 8 bytes hold their own offset. */
static struct block_device *disk_open(u64 bytes)
{
    u64 *data = kmalloc(bytes);
    struct block_device *device;

    if (!KEXPECT(data != NULL))
        return NULL;
    for (u64 i = 0; i < bytes / sizeof(u64); i++)
        data[i] = i * sizeof(u64);
    device = ramdisk_create("ramtest", data, bytes);
    if (!KEXPECT(device != NULL))
        kfree(data);
    return device;
}

static void disk_close(struct block_device *device)
{
    void *data = ramdisk_data(device);

    ramdisk_destroy(device);
    kfree(data);
}

static u64 first_word(struct page *page)
{
    return *(u64 *)page_virt(page);
}

KTEST(ramdisk, a_read_of_several_segments_gets_each_pages_bytes)
{
    struct block_device *device = disk_open(DISK_BYTES);
    struct page *pages[4];

    KASSERT(device != NULL);
    if (pages_get(pages, 4)) {
        KEXPECT_EQ(block_transfer(device, 2 * SECTORS_PER_PAGE, pages, 4, BIO_READ), 0);
        for (u32 i = 0; i < 4; i++) {
            u8 *expected = (u8 *)ramdisk_data(device) + (2 + i) * PAGE_SIZE;

            KEXPECT_EQ(first_word(pages[i]), (2 + i) * PAGE_SIZE);
            KEXPECT_EQ(memcmp(page_virt(pages[i]), expected, PAGE_SIZE), 0);
        }
        pages_put(pages, 4);
    }
    disk_close(device);
}

KTEST(ramdisk, a_piece_of_a_page_touches_nothing_beside_it)
{
    struct block_device *device = disk_open(DISK_BYTES);
    struct page *page;

    KASSERT(device != NULL);
    if (pages_get(&page, 1)) {
        struct bio *bio = bio_alloc(device, 1);
        u64 *words = page_virt(page);

        memset(words, 0xee, PAGE_SIZE);
        bio->sector = 3;
        KEXPECT(bio_add(bio, page, 1024, 512));
        KEXPECT_EQ(bio_submit_wait(bio), 0);
        KEXPECT_EQ(words[1024 / 8 - 1], 0xeeeeeeeeeeeeeeeeul);
        KEXPECT_EQ(words[1024 / 8], 3 * SECTOR_SIZE);
        KEXPECT_EQ(words[1536 / 8 - 1], 4 * SECTOR_SIZE - 8);
        KEXPECT_EQ(words[1536 / 8], 0xeeeeeeeeeeeeeeeeul);
        pages_put(&page, 1);
    }
    disk_close(device);
}

KTEST(ramdisk, what_is_written_is_there_and_nothing_else_changed)
{
    struct block_device *device = disk_open(DISK_BYTES);
    struct page *page;

    KASSERT(device != NULL);
    if (pages_get(&page, 1)) {
        u64 *data = ramdisk_data(device);

        memset(page_virt(page), 0x5a, PAGE_SIZE);
        KEXPECT_EQ(block_transfer(device, SECTORS_PER_PAGE, &page, 1, BIO_WRITE), 0);
        KEXPECT_EQ(data[PAGE_SIZE / 8 - 1], PAGE_SIZE - 8);
        KEXPECT_EQ(data[PAGE_SIZE / 8], 0x5a5a5a5a5a5a5a5aul);
        KEXPECT_EQ(data[2 * PAGE_SIZE / 8 - 1], 0x5a5a5a5a5a5a5a5aul);
        KEXPECT_EQ(data[2 * PAGE_SIZE / 8], 2 * PAGE_SIZE);
        pages_put(&page, 1);
    }
    disk_close(device);
}

KTEST(ramdisk, past_its_end_is_eio_and_the_last_sector_is_not)
{
    struct block_device *device = disk_open(DISK_BYTES + 512 + 100);
    struct page *page;

    KASSERT(device != NULL);
    KEXPECT_EQ(device->sectors, DISK_BYTES / SECTOR_SIZE + 1);
    if (pages_get(&page, 1)) {
        struct bio *bio = bio_alloc(device, 1);

        bio->sector = device->sectors - 1;
        KEXPECT(bio_add(bio, page, 0, 512));
        KEXPECT_EQ(bio_submit_wait(bio), 0);
        KEXPECT_EQ(first_word(page), DISK_BYTES);
        KEXPECT_EQ(block_transfer(device, device->sectors - 1, &page, 1, BIO_READ), -EIO);
        KEXPECT_EQ(block_transfer(device, device->sectors, &page, 1, BIO_READ), -EIO);
        pages_put(&page, 1);
    }
    disk_close(device);
}

KTEST(ramdisk, neither_too_little_memory_nor_a_name_twice_makes_a_disk)
{
    struct block_device *device = disk_open(DISK_BYTES);
    u8 little[100];

    KASSERT(device != NULL);
    KEXPECT(ramdisk_create("ramtest2", little, sizeof(little)) == NULL);
    KEXPECT(ramdisk_create("ramtest", ramdisk_data(device), DISK_BYTES) == NULL);
    disk_close(device);
}

KTEST(ramdisk, a_held_read_sees_the_bytes_of_its_release)
{
    struct block_device *device = disk_open(DISK_BYTES);
    struct probe *probe = kmalloc(sizeof(*probe));

    KASSERT(device != NULL && probe != NULL);
    if (probe_init(probe)) {
        KEXPECT_EQ(gate_hold(device, 0, 0, 1), 0);
        probe_submit(probe, device, 0, 1, BIO_READ);
        KEXPECT_EQ(probe->n_done, 0);
        *(u64 *)ramdisk_data(device) = 0x1234;
        KEXPECT_EQ(gate_release(device, 0), 0);
        KEXPECT_EQ(probe->n_done, 1); /* without a delay: done before the call returns */
        KEXPECT_EQ(first_word(probe->page), 0x1234);
        probe_destroy(probe);
    }
    kfree(probe);
    disk_close(device);
}

KTEST(ramdisk, without_delay_it_is_done_when_submit_returns)
{
    struct block_device *device = disk_open(DISK_BYTES);
    struct probe *probe = kmalloc(sizeof(*probe));

    KASSERT(device != NULL && probe != NULL);
    if (probe_init(probe)) {
        probe_submit(probe, device, 8, 1, BIO_READ);
        KEXPECT_EQ(probe->n_done, 1);
        KEXPECT(!probe->done[0].in_interrupt);
        probe_destroy(probe);
    }
    kfree(probe);
    disk_close(device);
}

/* ---- The virtio disk ---- */

#define VDA_PAGES  48
#define VDA_ROUNDS 16

static bool same_bytes(struct page **a, struct page **b, u32 n)
{
    for (u32 i = 0; i < n; i++) {
        if (memcmp(page_virt(a[i]), page_virt(b[i]), PAGE_SIZE) != 0)
            return false;
    }
    return true;
}

static struct block_device *vda_of_pages(u32 n)
{
    struct block_device *device = block_device_find("vda");

    return device && device->sectors >= n * SECTORS_PER_PAGE ? device : NULL;
}

KTEST(virtio_blk, one_large_read_equals_small_ones)
{
    struct block_device *device = vda_of_pages(VDA_PAGES);
    struct page *large[VDA_PAGES], *small[VDA_PAGES];

    if (!device)
        KTEST_SKIP("there is no vda");
    if (!pages_get(large, VDA_PAGES))
        return;
    if (pages_get(small, VDA_PAGES)) {
        for (u32 i = 0; i < VDA_PAGES; i++) {
            memset(page_virt(large[i]), 0xaa, PAGE_SIZE);
            memset(page_virt(small[i]), 0xbb, PAGE_SIZE);
        }
        KEXPECT_EQ(block_transfer(device, 0, large, VDA_PAGES, BIO_READ), 0);
        for (u32 i = 0; i < VDA_PAGES; i++)
            KEXPECT_EQ(block_transfer(device, i * SECTORS_PER_PAGE, &small[i], 1, BIO_READ), 0);
        KEXPECT(same_bytes(large, small, VDA_PAGES));
        pages_put(small, VDA_PAGES);
    }
    pages_put(large, VDA_PAGES);
}

KTEST(virtio_blk, many_requests_in_flight_each_get_their_own_bytes)
{
    struct block_device *device = vda_of_pages(VDA_PAGES);
    struct page *first[VDA_PAGES], *again[VDA_PAGES];
    struct probe *probe = kmalloc(sizeof(*probe));

    if (!device) {
        kfree(probe);
        KTEST_SKIP("there is no vda");
    }
    KASSERT(probe != NULL && probe_init(probe));
    if (!pages_get(first, VDA_PAGES))
        goto out;
    if (pages_get(again, VDA_PAGES)) {
        KEXPECT_EQ(block_transfer(device, 0, first, VDA_PAGES, BIO_READ), 0);
        for (u32 round = 0; round < VDA_ROUNDS; round++) {
            probe->n_done = 0;
            for (u32 i = 0; i < VDA_PAGES; i++) {
                u32 page = (i * 7 + round) % VDA_PAGES; /* 7 and 48 have no common factor */
                struct bio *bio = probe_bio(probe, device, page * SECTORS_PER_PAGE, 1, BIO_READ);

                bio->segments[0].page = again[page];
                memset(page_virt(again[page]), 0xcc, PAGE_SIZE);
                bio_submit(bio);
            }
            probe_wait(probe, VDA_PAGES);
            if (!KEXPECT(same_bytes(first, again, VDA_PAGES)))
                break;
        }
        pages_put(again, VDA_PAGES);
    }
    pages_put(first, VDA_PAGES);
out:
    probe_destroy(probe);
    kfree(probe);
}

/* More than the device takes in one request (126 or 254 segments in QEMU): split below. */
KTEST(virtio_blk, the_largest_bio_is_read_whole)
{
    struct block_device *device = vda_of_pages(BIO_MAX_SEGMENTS);
    struct page **pages = kzalloc(BIO_MAX_SEGMENTS * sizeof(*pages));
    struct page *one;

    if (!device) {
        kfree(pages);
        KTEST_SKIP("there is no vda, or it is small");
    }
    KASSERT(pages != NULL && pages_get(pages, BIO_MAX_SEGMENTS));
    if (pages_get(&one, 1)) {
        KEXPECT_EQ(block_transfer(device, 0, pages, BIO_MAX_SEGMENTS, BIO_READ), 0);
        for (u32 i = 0; i < BIO_MAX_SEGMENTS; i++) {
            KEXPECT_EQ(block_transfer(device, i * SECTORS_PER_PAGE, &one, 1, BIO_READ), 0);
            if (!KEXPECT(same_bytes(&pages[i], &one, 1)))
                break;
        }
        pages_put(&one, 1);
    }
    pages_put(pages, BIO_MAX_SEGMENTS);
    kfree(pages);
}

KTEST(virtio_blk, completions_come_by_interrupt)
{
    struct block_device *device = vda_of_pages(1);
    struct probe *probe = kmalloc(sizeof(*probe));

    if (!device) {
        kfree(probe);
        KTEST_SKIP("there is no vda");
    }
    KASSERT(probe != NULL && probe_init(probe));
    probe_submit(probe, device, 0, 1, BIO_READ);
    probe_wait(probe, 1);
    KEXPECT(probe->done[0].in_interrupt);
    KEXPECT_EQ(probe->done[0].error, 0);
    probe_destroy(probe);
    kfree(probe);
}

KTEST(virtio_blk, the_last_block_can_be_read_and_the_next_cannot)
{
    struct block_device *device = vda_of_pages(1);
    struct page *page;
    struct bio *bio;

    if (!device)
        KTEST_SKIP("there is no vda");
    if (!pages_get(&page, 1))
        return;
    for (u32 i = 0; i < 2; i++) {
        u64 n_blocks = device->sectors / (device->block_bytes / SECTOR_SIZE);

        bio = bio_alloc(device, 1);
        bio->sector = (n_blocks - 1 + i) * (device->block_bytes / SECTOR_SIZE);
        KEXPECT(bio_add(bio, page, 0, device->block_bytes));
        KEXPECT_EQ(bio_submit_wait(bio), i == 0 ? 0 : -EIO);
    }
    pages_put(&page, 1);
}
