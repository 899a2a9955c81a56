/*
 * /proc/PID/task and /proc/PID/task/TID. Directories know ids only; when the thread has gone, its
 * names are gone.
 *
 * Positions in a listing: "." and "..", then THREADS_AT + tid in task, the files in TID.
 */
#include "kernel/task/proc_task.h"

#include "kernel/task/proc_fdinfo.h"
#include "kernel/task/proc_files.h"
#include "kernel/task/process.h"
#include "lib/errno.h"
#include "lib/format.h"
#include "lib/parse.h"
#include "lib/string.h"

#define THREADS_AT 2ul
#define DIGITS     12

/* The files of a process that show one thread where they are asked to. */
static const char *const thread_files[] = {"comm", "stat", "status", "faults"};

static u32 pid_of(const struct inode *dir)
{
    return (u32)(u64)dir->fs_private;
}

static u32 tid_of(const struct inode *dir)
{
    return (u32)((u64)dir->fs_private >> 32);
}

/* => the lowest id of a thread of the process that is not below `at_least`; 0: none */
static u32 next_tid(u32 pid, u32 at_least)
{
    struct process *process = process_find(pid);
    struct thread *thread;
    u32 found = 0;

    if (!process)
        return 0;
    spin_lock(&process->lock);
    list_for_each (thread, &process->threads, link) {
        if (thread->tid >= at_least && (!found || thread->tid < found))
            found = thread->tid;
    }
    spin_unlock(&process->lock);
    process_put(process);
    return found;
}

static bool name_is(const char *name, size_t len, const char *wanted)
{
    return strlen(wanted) == len && memcmp(name, wanted, len) == 0;
}

static struct inode *dir_create(struct super_block *super, void *ids, u64 ino,
                                const struct inode_ops *ops)
{
    struct inode *inode = inode_new_anonymous(super, S_IFDIR | 0555);

    if (!inode)
        return NULL;
    inode->ino = inode->cache.ino = ino;
    inode->nlink = 2;
    inode->fs_private = ids;
    inode->ops = ops;
    inode->file_ops = &file_ops_directory;
    return inode;
}

static int emit_dots(struct inode *dir, u64 *pos, dir_emit emit, void *ctx)
{
    static const char *const dots[] = {".", ".."};

    for (; *pos < ARRAY_SIZE(dots); ++*pos)
        if (emit(ctx, dots[*pos], *pos + 1, dir->ino, DT_OF_MODE(S_IFDIR), *pos + 1))
            return 1;
    return 0;
}

/* ---- TID ---- */

static const struct text_file *file_named(const char *name, size_t len)
{
    for (unsigned i = 0; i < proc_pid_files_count; i++)
        if (name_is(name, len, proc_pid_files[i].path))
            return &proc_pid_files[i];
    return NULL;
}

static int thread_lookup(struct inode *dir, const char *name, size_t len, struct inode **out)
{
    u32 pid = pid_of(dir), tid = tid_of(dir);

    if (name_is(name, len, "..")) {
        *out = proc_task_create(dir->super, pid, dir->ino);
        return *out ? 0 : -ENOMEM;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(thread_files); i++) {
        struct text_file entry;

        if (!name_is(name, len, thread_files[i]) || next_tid(pid, tid) != tid)
            continue;
        entry = *file_named(name, len);
        entry.arg = proc_thread_argument(pid, tid);
        *out = textfs_leaf_create(dir->super, &entry, dir->ino + 1 + i);
        return *out ? 0 : -ENOMEM;
    }
    return -ENOENT;
}

static int thread_iterate(struct inode *dir, u64 *pos, dir_emit emit, void *ctx)
{
    if (emit_dots(dir, pos, emit, ctx))
        return 0;
    for (; *pos < THREADS_AT + ARRAY_SIZE(thread_files); ++*pos) {
        const char *name = thread_files[*pos - THREADS_AT];

        if (emit(ctx, name, strlen(name), dir->ino + *pos - 1, DT_OF_MODE(S_IFREG), *pos + 1))
            break;
    }
    return 0;
}

static const struct inode_ops thread_ops = {.lookup = thread_lookup, .iterate = thread_iterate};

/* ---- task ---- */

static int task_lookup(struct inode *dir, const char *name, size_t len, struct inode **out)
{
    u32 pid = pid_of(dir);
    u64 tid;

    if (name_is(name, len, "..")) {
        *out = proc_pid_dir_create(dir->super, pid);
        return *out ? 0 : -ENOMEM;
    }
    if (name[0] == '0' || parse_u64(name, len, 10, &tid) || tid > (u32)-1 ||
        next_tid(pid, (u32)tid) != tid)
        return -ENOENT;
    *out = dir_create(dir->super, proc_thread_argument(pid, (u32)tid),
                      proc_task_first_inode((u32)tid), &thread_ops);
    return *out ? 0 : -ENOMEM;
}

static int task_iterate(struct inode *dir, u64 *pos, dir_emit emit, void *ctx)
{
    u32 tid;

    if (emit_dots(dir, pos, emit, ctx))
        return 0;
    while ((tid = next_tid(pid_of(dir), MAX((u32)(*pos - THREADS_AT), 1u))) != 0) {
        char name[DIGITS];
        int len = format_to(name, sizeof(name), "%u", tid);

        if (emit(ctx, name, (size_t)len, proc_task_first_inode(tid), DT_OF_MODE(S_IFDIR),
                 THREADS_AT + tid + 1))
            break;
        *pos = THREADS_AT + tid + 1;
    }
    return 0;
}

static const struct inode_ops task_ops = {.lookup = task_lookup, .iterate = task_iterate};

struct inode *proc_task_create(struct super_block *super, u32 pid, u64 ino)
{
    return dir_create(super, proc_thread_argument(pid, 0), ino, &task_ops);
}
