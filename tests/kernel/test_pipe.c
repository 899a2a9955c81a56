/*
 * Pipes: what is written is read, whole and in order; ends that go; frames that come back.
 */
#include "fs/pipe.h"
#include "kernel/cpu/clock.h"
#include "kernel/sched/sync_point.h"
#include "lib/errno.h"
#include "mm/user_memory.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/test_mm.h"
#include "tests/kernel/threads.h"

#define BASE       0x10000000ul
#define BASE_PAGES 32
#define OUT_BASE   (BASE + 16 * PAGE_SIZE)
#define PIPE_BYTES 65536ul

struct bench {
    struct mm *mm;
    struct file *ends[2];
};

static bool enter(struct bench *bench, u32 flags)
{
    bench->mm = test_mm_enter();
    if (!bench->mm || !KEXPECT_EQ(pipe_create(flags, bench->ends), 0))
        return false;
    return KEXPECT_EQ(mm_mmap(bench->mm, BASE, BASE_PAGES * PAGE_SIZE, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL, 0),
                      BASE);
}

static void leave(struct bench *bench)
{
    for (unsigned i = 0; i < 2; i++)
        if (bench->ends[i])
            file_put(bench->ends[i]);
    test_mm_leave();
}

static ssize_t put(struct bench *bench, u64 addr, size_t len)
{
    return file_write(bench->ends[1], addr, len, NULL);
}

static ssize_t take(struct bench *bench, u64 addr, size_t len)
{
    return file_read(bench->ends[0], addr, len, NULL);
}

KTEST(pipe, bytes_come_out_in_order_at_every_offset)
{
    struct bench bench;
    u8 next_in = 0, next_out = 0;
    u64 wrong = 0;

    KASSERT(enter(&bench, O_NONBLOCK));
    for (unsigned turn = 0; turn < 40; turn++) {
        unsigned n = 1 + turn * 997 % 5000;

        for (unsigned i = 0; i < n; i += 61)
            user_poke(BASE + i, next_in + i);
        KEXPECT_EQ(put(&bench, BASE, n), n);
        next_in += 1;
        KEXPECT_EQ(take(&bench, OUT_BASE, n), n);
        for (unsigned i = 0; i < n; i += 61)
            wrong += user_peek(OUT_BASE + i) != (u8)(next_out + i);
        next_out += 1;
    }
    KEXPECT_EQ(wrong, 0);
    leave(&bench);
}

KTEST(pipe, a_small_write_is_whole_or_not_at_all)
{
    struct bench bench;

    KASSERT(enter(&bench, O_NONBLOCK));
    KEXPECT_EQ(put(&bench, BASE, PIPE_BYTES - 100), PIPE_BYTES - 100);
    KEXPECT_EQ(put(&bench, BASE, 101), -EAGAIN);
    KEXPECT_EQ(put(&bench, BASE, PIPE_BUF_BYTES + 1), 100);
    KEXPECT_EQ(put(&bench, BASE, 1), -EAGAIN);
    KEXPECT_EQ(pipe_capacity(bench.ends[0]), PIPE_BYTES);
    leave(&bench);
}

KTEST(pipe, ends_that_go_are_seen)
{
    struct bench bench;

    KASSERT(enter(&bench, 0));
    KEXPECT_EQ(put(&bench, BASE, 10), 10);
    file_put(bench.ends[1]);
    KEXPECT_EQ(take(&bench, OUT_BASE, 100), 10);
    KEXPECT_EQ(take(&bench, OUT_BASE, 100), 0);
    bench.ends[1] = NULL;
    leave(&bench);
    KASSERT(enter(&bench, 0));
    file_put(bench.ends[0]);
    bench.ends[0] = NULL;
    KEXPECT_EQ(put(&bench, BASE, 10), -EPIPE);
    leave(&bench);
}

static void read_slowly(void *arg)
{
    struct bench *bench = arg;
    u64 total = 0;

    test_mm_attach(bench->mm);
    for (;;) {
        ssize_t n = take(bench, OUT_BASE, 3000);

        if (n <= 0)
            break;
        total += n;
    }
    test_mm_attach(NULL);
    task_exit(total == 40 * 10000 ? 0 : 1);
}

KTEST(pipe, a_writer_waits_for_room_and_a_reader_for_bytes)
{
    struct bench bench;
    struct test_threads threads = {.n = 0};
    u64 pages = pipe_pages_used();

    KASSERT(enter(&bench, 0));
    threads_add_and_wait_asleep(&threads, read_slowly, &bench);
    for (unsigned i = 0; i < 40; i++)
        KEXPECT_EQ(put(&bench, BASE, 10000), 10000);
    file_put(bench.ends[1]);
    bench.ends[1] = NULL;
    KEXPECT_EQ(threads_join(&threads), 0);
    leave(&bench);
    KEXPECT_EQ(pipe_pages_used(), pages);
}

KTEST(pipe, an_empty_pipe_holds_no_page)
{
    struct bench bench;
    u64 pages = pipe_pages_used();

    KASSERT(enter(&bench, 0));
    KEXPECT_EQ(pipe_pages_used(), pages);
    KEXPECT_EQ(put(&bench, BASE, 3 * PAGE_SIZE), 3 * PAGE_SIZE);
    KEXPECT_EQ(pipe_pages_used(), pages + 3);
    KEXPECT_EQ(take(&bench, OUT_BASE, PAGE_SIZE + 1), PAGE_SIZE + 1);
    KEXPECT_EQ(pipe_pages_used(), pages + 2);
    KEXPECT_EQ(take(&bench, OUT_BASE, PIPE_BYTES), 2 * PAGE_SIZE - 1);
    KEXPECT_EQ(pipe_pages_used(), pages);
    KEXPECT_EQ(put(&bench, BASE, 5), 5);
    leave(&bench);
    KEXPECT_EQ(pipe_pages_used(), pages);
}

/* ---- FIFOs ---- */

#define PATIENCE_NS 2000000000ul

struct opening {
    struct inode *inode;
    u32 flags;
    int error;
    bool is_over;
};

static void open_and_close(void *arg)
{
    struct opening *opening = arg;
    struct file *file = file_open_inode(opening->inode, opening->flags, "fifo", &opening->error);

    if (file) {
        opening->error = 0;
        file_put(file);
    }
    WRITE_ONCE(opening->is_over, true);
}

/* => an inode whose pipe has gone: as a name that nobody has opened */
static struct inode *fifo_inode(void)
{
    struct file *ends[2];
    struct inode *inode;

    if (pipe_create(0, ends))
        return NULL;
    inode = ends[0]->inode;
    inode_hold(inode);
    file_put(ends[0]);
    file_put(ends[1]);
    return inode;
}

KTEST(pipe, a_reader_of_a_fifo_meets_the_writer_that_is_gone_before_it_looks)
{
    struct inode *inode = fifo_inode();
    struct test_threads writers = {.n = 0}, readers = {.n = 0};
    struct opening writing = {.inode = inode, .flags = O_WRONLY};
    struct opening reading = {.inode = inode, .flags = O_RDONLY};
    struct task *reader;
    u64 end;

    KASSERT(inode != NULL);
    threads_add_and_wait_asleep(&writers, open_and_close, &writing);
    sync_point_arm("fifo_counted_in", NULL);
    reader = threads_add(&readers, open_and_close, &reading);
    sync_point_wait_parked("fifo_counted_in");
    KEXPECT_EQ(threads_join(&writers), 0); /* it has met the reader, and closes */
    KEXPECT_EQ(writing.error, 0);
    sync_point_reset();
    end = clock_ns() + PATIENCE_NS;
    while (!READ_ONCE(reading.is_over) && clock_ns() < end)
        sched_yield();
    if (!KEXPECT(READ_ONCE(reading.is_over)) && reader)
        task_kill(reader);
    KEXPECT_EQ(threads_join(&readers), 0);
    KEXPECT_EQ(reading.error, 0);
    inode_put(inode);
}

KTEST(pipe, a_writer_that_must_not_wait_is_refused_without_being_seen)
{
    struct inode *inode = fifo_inode();
    struct opening writing = {.inode = inode, .flags = O_WRONLY | O_NONBLOCK};

    KASSERT(inode != NULL);
    open_and_close(&writing);
    KEXPECT_EQ(writing.error, -ENXIO);
    KEXPECT(inode->pipe == NULL);
    inode_put(inode);
}
