/*
 * /sys/block/NAME: what a disk is, its statistics, its readahead window, and the delay model of its
 * I/O gate:
 *
 *     dev, size, ro, stat                              as sysfs has them
 *     queue/read_ahead_kb                              0 … 4096, for files opened from then on
 *     queue/max_sectors_kb, queue/logical_block_size
 *     gate/latency_ns, gate/per_request_ns, gate/bandwidth    see drivers/block/gate.h
 *     gate/fail                                        bad sectors: see store_fail
 *
 * One table of files; each disk gets a copy of it with the disk as argument.
 */
#include "drivers/block/gate.h"
#include "fs/disk_stats.h"
#include "fs/sys/sys.h"
#include "kernel/log/log.h"
#include "lib/errno.h"
#include "lib/format.h"
#include "lib/parse.h"
#include "lib/string.h"
#include "mm/core/slab.h"

#define KIB_PER_PAGE (PAGE_SIZE / 1024)
#define DISKS_MAX    32
#define PATH_BYTES   64

static size_t show_number(char *buf, size_t size, u64 value)
{
    struct text_out out = {buf, size, 0};

    text_out_put(&out, "%lu\n", value);
    return out.len;
}

static size_t show_dev(void *arg, char *buf, size_t size)
{
    const struct block_device *device = arg;
    struct text_out out = {buf, size, 0};

    text_out_put(&out, "%u:%u\n", device->dev >> 8, device->dev & 0xff);
    return out.len;
}

static size_t show_size(void *arg, char *buf, size_t size)
{
    return show_number(buf, size, ((struct block_device *)arg)->sectors);
}

static size_t show_ro(void *arg, char *buf, size_t size)
{
    return show_number(buf, size, ((struct block_device *)arg)->is_read_only);
}

static size_t show_stat(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};

    disk_stats_put(&out, arg);
    return out.len;
}

static size_t show_read_ahead_kb(void *arg, char *buf, size_t size)
{
    return show_number(buf, size, READ_ONCE(((struct block_device *)arg)->read_ahead_kb));
}

static int store_read_ahead_kb(void *arg, const char *text, size_t len)
{
    struct block_device *device = arg;
    u64 kb;

    if (parse_u64(text, len, 10, &kb) || kb > READ_AHEAD_MAX_KB)
        return -EINVAL;
    WRITE_ONCE(device->read_ahead_kb, kb);
    return 0;
}

static size_t show_max_sectors_kb(void *arg, char *buf, size_t size)
{
    return show_number(buf, size, ((struct block_device *)arg)->max_request_pages * KIB_PER_PAGE);
}

static size_t show_block_bytes(void *arg, char *buf, size_t size)
{
    return show_number(buf, size, ((struct block_device *)arg)->block_bytes);
}

/* ---- The delay model: three numbers of one structure ---- */

static SLEEP_LOCK_CLASS(delay_lock_class, "gate delay files");
static struct mutex delay_lock = MUTEX_INIT(delay_lock, &delay_lock_class); /* read, change, set */

static u64 get_delay(struct block_device *device, size_t field)
{
    struct gate_delay delay;

    gate_get_delay(device, &delay);
    return *(u64 *)((char *)&delay + field);
}

static int set_delay(struct block_device *device, size_t field, const char *text, size_t len)
{
    struct gate_delay delay;
    u64 value;
    int error;

    if (parse_u64(text, len, 10, &value))
        return -EINVAL;
    mutex_lock(&delay_lock);
    gate_get_delay(device, &delay);
    *(u64 *)((char *)&delay + field) = value;
    error = gate_set_delay(device, &delay);
    mutex_unlock(&delay_lock);
    return error;
}

#define DELAY_FILE(field)                                                                  \
    static size_t show_##field(void *arg, char *buf, size_t size)                          \
    {                                                                                      \
        return show_number(buf, size, get_delay(arg, offsetof(struct gate_delay, field))); \
    }                                                                                      \
    static int store_##field(void *arg, const char *text, size_t len)                      \
    {                                                                                      \
        return set_delay(arg, offsetof(struct gate_delay, field), text, len);              \
    }

DELAY_FILE(latency_ns)
DELAY_FILE(per_request_ns)
DELAY_FILE(bandwidth)

/* ---- Bad sectors ---- */

static int take_sector(const char **cursor, u64 *sector)
{
    char word[32];

    if (cmdline_next_word(cursor, word, sizeof(word)) != 1)
        return -EINVAL;
    return parse_u64(word, PARSE_WHOLE_STRING, 10, sector) ? -EINVAL : 0;
}

/*
 * "FIRST LAST": requests that touch one of these sectors fail with EIO from now on; several writes
 * add up, to GATE_MAX_RULES ranges. "none": all sectors are good again.
 */
static int store_fail(void *arg, const char *text, size_t len)
{
    struct block_device *device = arg;
    char line[64];
    const char *cursor = line;
    u64 first, last;

    if (len >= sizeof(line))
        return -EINVAL;
    memcpy(line, text, len);
    line[len] = '\0';
    if (len && line[len - 1] == '\n')
        line[len - 1] = '\0';
    if (strcmp(line, "none") == 0) {
        gate_open(device);
        return 0;
    }
    if (take_sector(&cursor, &first) || take_sector(&cursor, &last) || *cursor || first > last ||
        last >= device->sectors)
        return -EINVAL;
    return gate_fail(device, first, last, -EIO, 0);
}

static size_t show_fail(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct gate_rule rule;

    for (unsigned i = 0; gate_rule_get(arg, i, &rule); i++)
        if (rule.error)
            text_out_put(&out, "%lu %lu\n", rule.first, rule.last);
    return out.len;
}

/* ---- The tables, and their copies for each disk ---- */

/* Paths are completed by what comes in front of them. */
static const struct text_file disk_files[] = {
    {.path = "dev", .show = show_dev},
    {.path = "size", .show = show_size},
    {.path = "ro", .show = show_ro},
    {.path = "stat", .show = show_stat},
    {.path = "queue/read_ahead_kb", .show = show_read_ahead_kb, .store = store_read_ahead_kb},
    {.path = "queue/max_sectors_kb", .show = show_max_sectors_kb},
    {.path = "queue/logical_block_size", .show = show_block_bytes},
    {.path = "gate/latency_ns", .show = show_latency_ns, .store = store_latency_ns},
    {.path = "gate/per_request_ns", .show = show_per_request_ns, .store = store_per_request_ns},
    {.path = "gate/bandwidth", .show = show_bandwidth, .store = store_bandwidth},
    {.path = "gate/fail", .show = show_fail, .store = store_fail},
};
static const struct text_file bdi_files[] = {
    {.path = "read_ahead_kb", .show = show_read_ahead_kb, .store = store_read_ahead_kb},
};

static void add_copy(struct super_block *sys, const char *folder, const struct text_file *file,
                     struct block_device *device)
{
    struct text_file *entry = kmalloc(sizeof(*entry) + PATH_BYTES);
    char *path = (char *)(entry + 1);

    if (!entry)
        panic("no memory for /sys/%s", folder);
    format_to(path, PATH_BYTES, "%s/%s", folder, file->path);
    *entry = *file;
    entry->path = path;
    entry->arg = device;
    if (textfs_add(sys, entry)) /* a second disk of that number (tests): the first one keeps it */
        kfree(entry);
}

static void add_device(struct super_block *sys, struct block_device *device)
{
    char folder[PATH_BYTES / 2];

    format_to(folder, sizeof(folder), "block/%s", device->name);
    for (unsigned i = 0; i < ARRAY_SIZE(disk_files); i++)
        add_copy(sys, folder, &disk_files[i], device);
    format_to(folder, sizeof(folder), "class/bdi/%u:%u", device->dev >> 8, device->dev & 0xff);
    for (unsigned i = 0; i < ARRAY_SIZE(bdi_files); i++)
        add_copy(sys, folder, &bdi_files[i], device);
}

struct disk_list {
    struct block_device *disks[DISKS_MAX];
    unsigned n;
};

static void collect_disk(struct block_device *device, void *ctx)
{
    struct disk_list *list = ctx;

    if (list->n < DISKS_MAX)
        list->disks[list->n++] = device;
}

void sysfs_add_block_devices(struct super_block *sys)
{
    struct disk_list list = {.n = 0};

    block_for_each(collect_disk, &list);
    for (unsigned i = 0; i < list.n; i++)
        add_device(sys, list.disks[i]);
}
