/* host-test-sources: lib/ring.c */
/*
 * The byte ring against a counter, across the wrap of its indices, and between two threads.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "lib/ring.h"
#include "lib/rng.h"
#include "tests/host/tap.h"

#define SIZE         64
#define THREAD_BYTES 3000000ul

static u8 storage[SIZE];
static struct ring ring;

/* The byte at position n of the stream that all tests send. */
static u8 stream(u64 n)
{
    return (u8)mix64(n);
}

static void test_random(void)
{
    u64 written = 0, taken = 0;
    struct rng rng;

    rng_seed(&rng, 1);
    ring_init(&ring, storage, SIZE);
    ring.head = ring.tail = UINT32_MAX - 1000; /* soon to wrap */
    for (int i = 0; i < 200000; i++) {
        size_t n = rng_below(&rng, SIZE + 10);
        u8 buf[SIZE + 10];

        if (rng_below(&rng, 2)) {
            for (size_t k = 0; k < n; k++)
                buf[k] = stream(written + k);
            n = MIN(n, SIZE - (written - taken));
            CHECK(ring_write(&ring, buf, n) == n);
            written += n;
        } else {
            n = MIN(n, written - taken);
            CHECK(ring_read(&ring, buf, n) == n);
            for (size_t k = 0; k < n; k++)
                CHECK(buf[k] == stream(taken + k));
            taken += n;
        }
        CHECK(ring_used(&ring) == written - taken);
        CHECK(ring_space(&ring) == SIZE - (written - taken));
    }
}

static void test_full_and_empty(void)
{
    u8 buf[SIZE + 1] = {0}, byte = 0;

    ring_init(&ring, storage, SIZE);
    CHECK(!ring_get(&ring, &byte));
    CHECK(ring_read(&ring, buf, 1) == 0);
    CHECK(ring_write(&ring, buf, SIZE + 1) == SIZE);
    CHECK(!ring_put(&ring, 1));
    CHECK(ring_read(&ring, buf, SIZE + 1) == SIZE);
    CHECK(ring_put(&ring, 7) && ring_get(&ring, &byte) && byte == 7);
    CHECK(ring_put(&ring, 8));
    ring_discard(&ring);
    CHECK(ring_used(&ring) == 0 && ring_space(&ring) == SIZE);
}

static void *producer(void *arg)
{
    u64 sent = 0;

    (void)arg;
    while (sent < THREAD_BYTES) {
        u8 buf[50];
        size_t n = MIN(sizeof(buf), THREAD_BYTES - sent), done;

        for (size_t k = 0; k < n; k++)
            buf[k] = stream(sent + k);
        done = ring_write(&ring, buf, n);
        if (done == 0)
            sched_yield();
        sent += done;
    }
    return NULL;
}

static void test_two_threads(void)
{
    u64 received = 0, wrong = 0;
    pthread_t thread;

    ring_init(&ring, storage, SIZE);
    CHECK(pthread_create(&thread, NULL, producer, NULL) == 0);
    while (received < THREAD_BYTES) {
        u8 buf[40];
        size_t n = ring_read(&ring, buf, sizeof(buf));

        for (size_t k = 0; k < n; k++)
            wrong += buf[k] != stream(received + k);
        if (n == 0)
            sched_yield();
        received += n;
    }
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(wrong == 0 && received == THREAD_BYTES && ring_used(&ring) == 0);
}

static const struct tap_test tests[] = {
    {"ring/equals_counter_across_wrap", test_random},
    {"ring/full_and_empty", test_full_and_empty},
    {"ring/two_threads_lose_nothing", test_two_threads},
};

int main(void)
{
    return tap_main(tests, ARRAY_SIZE(tests));
}
