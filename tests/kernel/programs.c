/*
 * Programs in tests; see programs.h.
 */
#include "tests/kernel/programs.h"

#include "drivers/block/block.h"
#include "kernel/sched/grace.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/page_table.h"
#include "mm/core/slab.h"
#include "mm/page_cache.h"

#define FRAMES_PER_STACK 4

bool program_exists(const char *path)
{
    struct inode *inode;

    if (!vfs_root() || vfs_lookup(NULL, "/", path, true, &inode, NULL) != 0)
        return false;
    inode_put(inode);
    return true;
}

struct process *program_start(const char *path, const char *a, const char *b, const char *c,
                              bool is_protected, int *error)
{
    const char *argv[] = {path, a, b, c, NULL};
    static const char *const environment[] = {"PATH=/bin", NULL};
    struct process *process = process_spawn(path, argv, environment, is_protected, error);

    if (process)
        atomic_add(&process->refs, 1);
    return process;
}

int program_end(struct process *process)
{
    u32 pid = process->pid;
    int status = process_wait(process);
    struct task *task;

    while ((task = task_find(pid)) != NULL) {
        task_put(task);
        sched_yield();
    }
    grace_barrier();
    return status;
}

struct block_device *program_disk(void)
{
    struct block_device *device = block_device_find("ram0");

    return device ? device : block_device_find("vda");
}

u64 program_frames(void)
{
    grace_barrier();
    grace_barrier(); /* what the first one freed may have deferred frees of its own */
    return frames_free_count() + slab_frames_total() +
           FRAMES_PER_STACK * kernel_stack_cached_count() + page_cache_total_pages();
}

static void add_live(void *ctx, const char *name, u64 live, size_t object_bytes, u64 frames)
{
    static const char *const of_files[] = {"radix_node", "inode"};

    (void)object_bytes, (void)frames;
    for (unsigned i = 0; i < ARRAY_SIZE(of_files); i++)
        if (strcmp(name, of_files[i]) == 0)
            return;
    *(u64 *)ctx += live;
}

u64 program_objects(void)
{
    u64 live = 0;

    grace_barrier();
    grace_barrier();
    slab_for_each(add_live, &live);
    return live;
}
