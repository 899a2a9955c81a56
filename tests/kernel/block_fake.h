/*
 * What the tests of the block layer share: a disk that does only what the test says, and bios that
 * note how they end.
 */
#ifndef TESTS_KERNEL_BLOCK_FAKE_H
#define TESTS_KERNEL_BLOCK_FAKE_H

#include "drivers/block/block.h"

#define FAKE_MAX_STARTS 160

/* A disk without data. Requests stay with it until the test completes them. */
struct fake_disk {
    struct block_device device;
    struct spinlock lock; /* everything below */
    struct list started;  /* in its hands, oldest first */
    u32 n_started;
    u32 capacity;        /* more requests at once: -EBUSY. 0: any number */
    int refuse;          /* start() returns this, if not 0 */
    bool poll_completes; /* poll() completes everything */
    u32 n_polls;
    u32 n_starts; /* successful ones since the beginning, and what they were: */
    struct {
        u64 sector;
        u32 bytes, flags, n_segments;
    } starts[FAKE_MAX_STARTS];
};

/* Registers a disk of `sectors`. => NULL when out of memory (fails the test) */
struct fake_disk *fake_disk_create(u64 sectors, u32 max_segments);
void fake_disk_destroy(struct fake_disk *disk);
/* Completes the index-th request in its hands. => whether there was one */
bool fake_disk_complete(struct fake_disk *disk, u32 index, int error);
void fake_disk_complete_all(struct fake_disk *disk);

#define PROBE_MAX 160

/* Notes the ends of bios, in order. */
struct probe {
    struct spinlock lock;
    struct wait_queue queue; /* woken at each */
    struct page *page;       /* all segments of its bios are this page */
    u32 n_done;
    struct {
        u64 sector;
        int error;
        u64 time_ns;
        bool irqs_were_on, in_interrupt;
    } done[PROBE_MAX];
};

bool probe_init(struct probe *probe); /* false (and a failed test): out of memory */
void probe_destroy(struct probe *probe);
/* A bio of n whole pages. Its end is noted and frees it. */
struct bio *probe_bio(struct probe *probe, struct block_device *device, u64 sector, u32 n_pages,
                      u32 flags);
void probe_submit(struct probe *probe, struct block_device *device, u64 sector, u32 n_pages,
                  u32 flags);
void probe_wait(struct probe *probe, u32 n_done); /* sleeps until so many ended */

/* One read or write of n_pages frames, all side by side on the disk. => its error */
int block_transfer(struct block_device *device, u64 sector, struct page **pages, u32 n_pages,
                   u32 flags);
/* n frames, zeroed. => false (and a failed test): out of memory */
bool pages_get(struct page **pages, u32 n);
void pages_put(struct page **pages, u32 n);

#endif
