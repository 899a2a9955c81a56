/*
 * /sys/kernel/debug/faultline/gate: the I/O gates of all disks, in words. See drivers/block/gate.h.
 *
 *     hold DISK SECTOR COUNT [TIMES]    requests that touch these sectors stop here: the next TIMES, or all
 *     fail DISK SECTOR COUNT [TIMES]    ... end with EIO
 *     wait DISK N                       until N requests are held
 *     release DISK [INDEX]              the oldest that is held goes on, or number INDEX from 0
 *     open DISK                         no rule any more, and all that is held goes on
 */
#include "drivers/block/gate.h"
#include "fs/sys/debug_file.h"
#include "kernel/sync/spin.h"
#include "lib/errno.h"

#define DISKS_MAX 32

/* The disks that commands were about. */
static LOCK_CLASS(used_lock_class, "gate file");
static struct spinlock used_lock = SPINLOCK_INIT(&used_lock_class); /* the two below */
static struct block_device *used[DISKS_MAX];
static unsigned n_used;

static void note_used(struct block_device *device)
{
    unsigned i = 0;

    spin_lock(&used_lock);
    while (i < n_used && used[i] != device)
        i++;
    if (i == n_used && n_used < DISKS_MAX)
        used[n_used++] = device;
    spin_unlock(&used_lock);
}

static struct block_device *take_used(void)
{
    struct block_device *device;

    spin_lock(&used_lock);
    device = n_used ? used[--n_used] : NULL;
    spin_unlock(&used_lock);
    return device;
}

static struct block_device *find_disk(const char *name)
{
    struct block_device *device = block_device_find(name);

    if (device)
        note_used(device);
    return device;
}

/* SECTOR COUNT [TIMES] */
static int set_rule(const struct debug_words *words, int error)
{
    struct block_device *device = find_disk(words->word[1]);
    u64 first, count, times = 0;

    if (!device || !debug_number(words->word[2], &first) || !debug_number(words->word[3], &count))
        return -EINVAL;
    if (words->n > 4 && (!debug_number(words->word[4], &times) || !times || times > ~0u))
        return -EINVAL;
    if (!count || first >= device->sectors || count > device->sectors - first)
        return -EINVAL;
    return error ? gate_fail(device, first, first + count - 1, error, times)
                 : gate_hold(device, first, first + count - 1, times);
}

static int run_hold(const struct debug_words *words)
{
    return set_rule(words, 0);
}

static int run_fail(const struct debug_words *words)
{
    return set_rule(words, -EIO);
}

static int run_wait(const struct debug_words *words)
{
    struct block_device *device = find_disk(words->word[1]);
    u64 n;

    if (!device || !debug_number(words->word[2], &n) || n > ~0u)
        return -EINVAL;
    return gate_wait_held_killable(device, n);
}

static int run_release(const struct debug_words *words)
{
    struct block_device *device = find_disk(words->word[1]);
    u64 index = 0;

    if (!device || (words->n > 2 && !debug_number(words->word[2], &index)) || index > ~0u)
        return -EINVAL;
    return gate_release(device, index);
}

static int run_open(const struct debug_words *words)
{
    struct block_device *device = find_disk(words->word[1]);

    if (!device)
        return -EINVAL;
    gate_open(device);
    return 0;
}

/* ---- Reading ---- */

static void show_rule(struct text_out *out, const char *disk, const struct gate_rule *rule)
{
    text_out_put(out, "%s rule %s %lu %lu", disk, rule->error ? "fail" : "hold", rule->first,
                 rule->last - rule->first + 1);
    if (rule->left)
        text_out_put(out, " %u", rule->left);
    text_out_put(out, "\n");
}

static void show_disk(struct block_device *device, void *ctx)
{
    struct gate_rule rule;
    struct gate_log_entry held;

    for (unsigned i = 0; gate_rule_get(device, i, &rule); i++)
        show_rule(ctx, device->name, &rule);
    for (unsigned i = 0; gate_held_get(device, i, &held); i++)
        text_out_put(ctx, "%s held %s %lu %lu\n", device->name,
                     held.flags & BIO_WRITE ? "write" : "read", held.sector,
                     (u64)held.bytes / SECTOR_SIZE);
}

static void show(struct text_out *out)
{
    block_for_each(show_disk, out);
}

static void undo(void)
{
    struct block_device *device;

    while ((device = take_used()) != NULL)
        gate_open(device);
}

static const struct debug_command commands[] = {
    {"hold DISK SECTOR COUNT [TIMES]", 4, 5, run_hold},
    {"fail DISK SECTOR COUNT [TIMES]", 4, 5, run_fail},
    {"wait DISK N", 3, 3, run_wait},
    {"release DISK [INDEX]", 2, 3, run_release},
    {"open DISK", 2, 2, run_open},
};

struct debug_file debug_gate_file = {
    .name = "gate",
    .commands = commands,
    .n_commands = ARRAY_SIZE(commands),
    .show = show,
    .undo = undo,
};
