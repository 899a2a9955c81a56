/*
 * The tree of tracefs, put together.
 */
#include "fs/trace/tracefs.h"

#include "fs/textfs.h"
#include "kernel/log/log.h"
#include "lib/string.h"
#include "mm/core/slab.h"

static SLEEP_LOCK_CLASS(trace_read_lock_class, "trace readers");
struct mutex trace_read_lock = MUTEX_INIT(trace_read_lock, &trace_read_lock_class);

static void add(struct super_block *super, const struct text_file *file)
{
    if (textfs_add(super, file))
        panic("tracefs: %s cannot be made", file->path);
}

void tracefs_add(struct super_block *super, const struct text_file *files, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        add(super, &files[i]);
}

void tracefs_add_one(struct super_block *super, const char *path, const struct text_file *file)
{
    size_t bytes = strlen(path) + 1;
    struct text_file *copy = kmalloc(sizeof(*copy) + bytes);

    if (!copy)
        panic("tracefs: no memory for %s", path);
    *copy = *file;
    copy->path = memcpy(copy + 1, path, bytes);
    add(super, copy);
}

struct super_block *tracefs_create(void)
{
    struct super_block *super = textfs_create("tracefs");

    super->is_no_exec = true;
    tracefs_add_readers(super);
    tracefs_add_pipes(super);
    tracefs_add_buffers(super);
    tracefs_add_switches(super);
    return super;
}
