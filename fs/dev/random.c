/*
 * /dev/random, /dev/urandom and random_bytes(): one generator for the system, seeded from the time
 * that booting took. Good for hash seeds and stack canaries of programs, not for secrets; under
 * icount time is counted in instructions, so every run draws the same bytes.
 */
#include "fs/dev/devices.h"

#include "kernel/cpu/clock.h"
#include "lib/errno.h"
#include "lib/rng.h"
#include "lib/string.h"
#include "mm/user_memory.h"

#define CHUNK_BYTES 256

static LOCK_CLASS(random_lock_class, "random");
static struct spinlock random_lock = SPINLOCK_INIT(&random_lock_class);
static struct rng generator; /* random_lock */

void random_init(void)
{
    bool irqs = spin_lock_irq(&random_lock);

    rng_seed(&generator, mix64(tsc_read()) ^ clock_wall_ns());
    spin_unlock_irq(&random_lock, irqs);
}

void random_bytes(void *buf, size_t len)
{
    u8 *to = buf;

    while (len > 0) {
        size_t n = MIN(len, sizeof(u64));
        bool irqs = spin_lock_irq(&random_lock);
        u64 word = rng_next(&generator);

        spin_unlock_irq(&random_lock, irqs);
        memcpy(to, &word, n);
        to += n;
        len -= n;
    }
}

static ssize_t random_read(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    u8 chunk[CHUNK_BYTES];
    size_t done = 0;

    (void)file, (void)pos;
    while (done < len) {
        size_t n = MIN(len - done, sizeof(chunk)), copied;

        random_bytes(chunk, n);
        copied = copy_to_user_partial(user_buf + done, chunk, n);
        done += copied;
        if (copied < n)
            return done ? (ssize_t)done : -EFAULT;
        if (task_kill_is_pending(task_current()))
            break;
    }
    return done;
}

static ssize_t random_write(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    (void)file, (void)user_buf, (void)pos;
    return len;
}

static s64 random_end(struct file *file)
{
    (void)file;
    return 0;
}

const struct file_ops file_ops_random = {
    .read = random_read,
    .write = random_write,
    .seek_end = random_end,
    .is_seekable = true,
};
