/*
 * /dev: a tree of device nodes, and the table of character devices by number. Numbers and names are
 * those of Linux's device list.
 */
#include "fs/dev/devices.h"
#include "fs/textfs.h"

#include "drivers/block/block.h"
#include "kernel/log/log.h"
#include "mm/core/slab.h"

#define MEM_MAJOR    1
#define SERIAL_MAJOR 4
#define TTY_MAJOR    5
#define DISKS_MAX    16

struct char_device {
    struct text_file node;
    const struct file_ops *ops;
};

#define CHAR_DEVICE(name_, bits, major, minor, ops_)                                          \
    {                                                                                         \
        .node = {.path = (name_), .mode = S_IFCHR | (bits), .rdev = BLOCK_DEV(major, minor)}, \
        .ops = (ops_)                                                                         \
    }

static const struct char_device char_devices[] = {
    CHAR_DEVICE("null", 0666, MEM_MAJOR, 3, &file_ops_null),
    CHAR_DEVICE("zero", 0666, MEM_MAJOR, 5, &file_ops_zero),
    CHAR_DEVICE("full", 0666, MEM_MAJOR, 7, &file_ops_full),
    CHAR_DEVICE("random", 0666, MEM_MAJOR, 8, &file_ops_random),
    CHAR_DEVICE("urandom", 0666, MEM_MAJOR, 9, &file_ops_random),
    CHAR_DEVICE("tty", 0666, TTY_MAJOR, 0, &file_ops_controlling),
    CHAR_DEVICE("ttyS1", 0600, SERIAL_MAJOR, 65, &file_ops_console),
    CHAR_DEVICE("console", 0600, TTY_MAJOR, 1, &file_ops_console),
};

const struct file_ops *device_file_ops(u32 rdev)
{
    for (size_t i = 0; i < ARRAY_SIZE(char_devices); i++)
        if (char_devices[i].node.rdev == rdev)
            return char_devices[i].ops;
    return NULL;
}

/* The disks, as far as the registry's lock lets us look. */
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

static void add_node(struct super_block *super, const struct text_file *entry)
{
    int error = textfs_add(super, entry);

    if (error)
        log_warn("/dev/%s is left out: error %d", entry->path, -error);
}

static void add_disks(struct super_block *super)
{
    struct disk_list list = {.n = 0};

    block_for_each(collect_disk, &list);
    for (unsigned i = 0; i < list.n; i++) {
        struct text_file *entry = kzalloc(sizeof(*entry));

        if (!entry)
            return;
        entry->path = list.disks[i]->name;
        entry->mode = S_IFBLK | 0600;
        entry->rdev = list.disks[i]->dev;
        add_node(super, entry);
    }
}

struct super_block *devfs_create(void)
{
    struct super_block *super = textfs_create("devfs");

    random_init();
    for (size_t i = 0; i < ARRAY_SIZE(char_devices); i++)
        add_node(super, &char_devices[i].node);
    add_disks(super);
    return super;
}
