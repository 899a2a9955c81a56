/*
 * /proc/sys/vm: one file for each knob of mm/knobs.h, and drop_caches.
 */
#include "drivers/block/block.h"
#include "fs/proc/proc.h"
#include "fs/text_out.h"
#include "kernel/log/log.h"
#include "lib/errno.h"
#include "lib/format.h"
#include "lib/parse.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "mm/knobs.h"
#include "mm/mmap.h"

#define KNOB_VALUE_BYTES 128
#define KNOB_FOLDER      "sys/vm/"

static size_t show_knob(void *arg, char *buf, size_t size)
{
    const struct knob *knob = arg;
    struct text_out out = {buf, size, 0};
    char value[KNOB_VALUE_BYTES];

    knob->get(value, sizeof(value));
    text_out_put(&out, "%s\n", value);
    return out.len;
}

static int store_knob(void *arg, const char *text, size_t len)
{
    const struct knob *knob = arg;

    if (strlen(text) != len)
        return -EINVAL; /* a zero byte in the middle */
    return knob_set(knob->name, text) ? -EINVAL : 0;
}

static void add_knob(struct super_block *proc, const struct knob *knob)
{
    size_t path_bytes = sizeof(KNOB_FOLDER) + strlen(knob->name);
    struct text_file *entry = kzalloc(sizeof(*entry) + path_bytes);

    if (!entry)
        panic("no memory for /proc/" KNOB_FOLDER "%s", knob->name);
    format_to((char *)(entry + 1), path_bytes, KNOB_FOLDER "%s", knob->name);
    entry->path = (const char *)(entry + 1);
    entry->show = show_knob;
    entry->store = store_knob;
    entry->arg = (void *)knob;
    proc_add_table(proc, entry, 1);
}

/* ---- drop_caches: bit 0 file pages, bit 1 what is kept of unused files ---- */

#define DROP_PAGES       1
#define DROP_UNUSED      2
#define DROP_DEVICES_MAX 16

struct device_list {
    struct block_device *devices[DROP_DEVICES_MAX];
    unsigned n;
};

static void collect_device(struct block_device *device, void *ctx)
{
    struct device_list *list = ctx;

    if (device->upper && list->n < DROP_DEVICES_MAX)
        list->devices[list->n++] = device;
}

/* Clean pages that nobody maps, of files and of the disks' own caches. */
static void drop_pages(void)
{
    struct device_list list = {.n = 0};
    struct inode *inode;
    u64 cursor = 0;

    while ((inode = inode_next_in_table(&cursor)) != NULL) {
        page_cache_drop_range(&inode->cache, 0, ~0ul);
        inode_put(inode);
    }
    block_for_each(collect_device, &list);
    for (unsigned i = 0; i < list.n; i++) {
        inode = bdev_inode(list.devices[i]);
        if (inode)
            page_cache_drop_range(&inode->cache, 0, ~0ul);
    }
}

static int store_drop_caches(void *arg, const char *text, size_t len)
{
    u64 what;

    (void)arg;
    if (parse_u64(text, len, 10, &what) || what < DROP_PAGES || what > (DROP_PAGES | DROP_UNUSED))
        return -EINVAL;
    if (what & DROP_UNUSED)
        inode_cache_shrink();
    if (what & DROP_PAGES)
        drop_pages();
    if (what & DROP_UNUSED)
        slab_release_empty();
    return 0;
}

/* ---- What cannot be changed here, as Linux shows it ---- */

static size_t show_min_addr(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};

    (void)arg;
    text_out_put(&out, "%lu\n", USER_ADDRESS_MIN);
    return out.len;
}

static const struct text_file files[] = {
    {.path = KNOB_FOLDER "drop_caches", .store = store_drop_caches},
    {.path = KNOB_FOLDER "mmap_min_addr", .show = show_min_addr},
};

void proc_add_vm_files(struct super_block *proc)
{
    for (unsigned i = 0; i < knobs_count; i++)
        add_knob(proc, &knobs[i]);
    proc_add_table(proc, files, ARRAY_SIZE(files));
}
