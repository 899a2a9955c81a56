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

struct name_search {
    const char *name;
    bool found;
};

static void compare_name(struct task *task, void *ctx)
{
    struct name_search *search = ctx;

    search->found |= strncmp(task->name, search->name, TASK_NAME_SIZE - 1) == 0;
}

/* The task of a program that could not be loaded ends by itself, after process_spawn() has
 * returned. */
static void wait_until_no_task_is_named(const char *name)
{
    struct name_search search = {.name = name};

    do {
        search.found = false;
        task_for_each(compare_name, &search);
        sched_yield();
    } while (search.found);
}

struct process *program_start(const char *path, const char *a, const char *b, const char *c,
                              bool is_protected, int *error)
{
    const char *argv[] = {path, a, b, c, NULL};
    static const char *const environment[] = {"PATH=/bin", NULL};
    struct process *process = process_spawn(path, argv, environment, is_protected, error);

    if (process)
        atomic_add(&process->refs, 1);
    else
        wait_until_no_task_is_named(strrchr(path, '/') + 1);
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

/* Reads ahead have come back, and what was given up is free. */
static void settle(void)
{
    struct block_device *disk = program_disk();
    struct block_stats stats = {0};

    do {
        if (disk)
            block_stats_get(disk, &stats);
        sched_yield();
    } while (stats.in_flight > 0);
    grace_barrier(); /* also: the interrupt that brought the last one is over */
    grace_barrier(); /* what the first one freed may have deferred frees of its own */
}

u64 program_frames(void)
{
    settle();
    return frames_free_count() + slab_frames_total() +
           FRAMES_PER_STACK * kernel_stack_cached_count() + pt_kernel_tables() +
           page_cache_total_pages();
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

    settle();
    slab_for_each(add_live, &live);
    return live;
}
