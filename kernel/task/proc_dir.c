/*
 * /proc/PID and /proc/self: the directories of processes.
 *
 * /proc's root is a tree of generated files; its lookup and listing are wrapped here, so that the
 * numbers of living processes stand beside its entries. A directory is made anew for each lookup
 * and knows its pid only: when the process has ended, its names are gone.
 *
 * Inode numbers: pid and place, above all those of the tree. Places are the directory itself, the
 * files in the order of their table, and then fdinfo and fd with all that is in them, task, and what
 * stands in task for the thread of that id.
 *
 * Listing /proc: positions below PID_POSITIONS are the tree's, PID_POSITIONS + pid those of
 * processes.
 */
#include "fs/proc/proc.h"
#include "kernel/task/proc_fdinfo.h"
#include "kernel/task/proc_files.h"
#include "kernel/task/proc_task.h"
#include "kernel/task/process.h"
#include "lib/errno.h"
#include "lib/format.h"
#include "lib/parse.h"
#include "lib/string.h"

#define PID_POSITIONS (1ul << 32)
#define PID_DIGITS    12
#define DOT_ENTRIES   2 /* "." and ".." come first */
#define INODE_BASE    (1ul << 40)
#define FDINFO_PLACE  64ul
#define FD_PLACE      (FDINFO_PLACE + PROC_FDINFO_INODES)
#define TASK_PLACE    (FD_PLACE + PROC_FDINFO_INODES)
#define THREAD_PLACE  (TASK_PLACE + 1)
#define INODES_A_PID  (TASK_PLACE + PROC_TASK_INODES)

/* Directories in that of a process, in the order in which they are listed behind its files. */
static const struct folder {
    const char *name;
    u64 place;
    struct inode *(*create)(struct super_block *super, u32 pid, u64 ino);
} folders[] = {{"fdinfo", FDINFO_PLACE, proc_fdinfo_create},
               {"fd", FD_PLACE, proc_fd_create},
               {"task", TASK_PLACE, proc_task_create}};

static const struct inode_ops *tree_ops; /* the root's own; set at boot */

static u64 inode_number(u32 pid, unsigned place)
{
    return INODE_BASE + pid * INODES_A_PID + place;
}

u64 proc_task_first_inode(u32 tid)
{
    return inode_number(tid, THREAD_PLACE);
}

/* ---- Which processes there are ---- */

struct search {
    u32 at_least;
    u32 found; /* the lowest pid from at_least on; 0: none */
};

static void look_at(struct process *process, void *ctx)
{
    struct search *search = ctx;

    if (process->state != PROCESS_REAPED && process->pid >= search->at_least &&
        (!search->found || process->pid < search->found))
        search->found = process->pid;
}

/* => the lowest pid of a process, zombies included, that is not below `at_least`; 0: none */
static u32 next_pid(u32 at_least)
{
    struct search search = {MAX(at_least, 1u), 0};

    process_for_each(look_at, &search);
    return search.found;
}

/* ---- /proc/PID ---- */

static u32 pid_of(const struct inode *dir)
{
    return (u32)(u64)dir->fs_private;
}

static bool name_is(const char *name, size_t len, const char *wanted)
{
    return strlen(wanted) == len && memcmp(name, wanted, len) == 0;
}

static int pid_lookup(struct inode *dir, const char *name, size_t len, struct inode **out)
{
    u32 pid = pid_of(dir);

    if (name_is(name, len, "..")) {
        inode_hold(dir->super->root);
        *out = dir->super->root;
        return 0;
    }
    if (next_pid(pid) != pid)
        return -ENOENT;
    for (unsigned i = 0; i < proc_pid_files_count; i++) {
        struct text_file entry = proc_pid_files[i];

        if (!name_is(name, len, entry.path))
            continue;
        entry.arg = (void *)(u64)pid;
        *out = textfs_leaf_create(dir->super, &entry, inode_number(pid, DOT_ENTRIES + i));
        return *out ? 0 : -ENOMEM;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(folders); i++) {
        if (!name_is(name, len, folders[i].name))
            continue;
        *out = folders[i].create(dir->super, pid, inode_number(pid, folders[i].place));
        return *out ? 0 : -ENOMEM;
    }
    return -ENOENT;
}

static int emit_name(const char *name, u64 ino, u32 mode, u64 next, dir_emit emit, void *ctx)
{
    return emit(ctx, name, strlen(name), ino, DT_OF_MODE(mode), next);
}

static int emit_pid_entry(const struct inode *dir, u64 pos, dir_emit emit, void *ctx)
{
    const struct text_file *file;
    u64 first_folder = DOT_ENTRIES + proc_pid_files_count;

    if (pos == 0)
        return emit_name(".", dir->ino, S_IFDIR, pos + 1, emit, ctx);
    if (pos == 1)
        return emit_name("..", dir->super->root->ino, S_IFDIR, pos + 1, emit, ctx);
    if (pos >= first_folder) {
        const struct folder *folder = &folders[pos - first_folder];

        return emit_name(folder->name, inode_number(pid_of(dir), folder->place), S_IFDIR, pos + 1,
                         emit, ctx);
    }
    file = &proc_pid_files[pos - DOT_ENTRIES];
    return emit_name(file->path, inode_number(pid_of(dir), pos), file->link ? S_IFLNK : S_IFREG,
                     pos + 1, emit, ctx);
}

static int pid_iterate(struct inode *dir, u64 *pos, dir_emit emit, void *ctx)
{
    if (next_pid(pid_of(dir)) != pid_of(dir))
        return -ENOENT;
    while (*pos < DOT_ENTRIES + proc_pid_files_count + ARRAY_SIZE(folders) &&
           !emit_pid_entry(dir, *pos, emit, ctx))
        ++*pos;
    return 0;
}

static const struct inode_ops pid_dir_ops = {.lookup = pid_lookup, .iterate = pid_iterate};

struct inode *proc_pid_dir_create(struct super_block *super, u32 pid)
{
    struct inode *inode = inode_new_anonymous(super, S_IFDIR | 0555);

    if (!inode)
        return NULL;
    inode->ino = inode->cache.ino = inode_number(pid, 0);
    inode->nlink = 2;
    inode->fs_private = (void *)(u64)pid;
    inode->ops = &pid_dir_ops;
    inode->file_ops = &file_ops_directory;
    return inode;
}

/* ---- The root of /proc ---- */

/* => whether the name is a pid as we write them: no sign, no leading zero */
static bool parse_pid(const char *name, size_t len, u32 *pid)
{
    u64 number;

    if (len == 0 || name[0] < '1' || name[0] > '9' || parse_u64(name, len, 10, &number) ||
        number > (u32)-1)
        return false;
    *pid = (u32)number;
    return true;
}

static int root_lookup(struct inode *dir, const char *name, size_t len, struct inode **out)
{
    u32 pid;

    if (!parse_pid(name, len, &pid))
        return tree_ops->lookup(dir, name, len, out);
    if (next_pid(pid) != pid)
        return -ENOENT;
    *out = proc_pid_dir_create(dir->super, pid);
    return *out ? 0 : -ENOMEM;
}

/* Passes entries on, and remembers whether the buffer was full: then the tree is not through. */
struct watched_emit {
    dir_emit emit;
    void *ctx;
    bool is_full;
};

static int watch_emit(void *ctx, const char *name, size_t len, u64 ino, unsigned type, u64 next)
{
    struct watched_emit *watched = ctx;
    int full = watched->emit(watched->ctx, name, len, ino, type, next);

    watched->is_full |= full != 0;
    return full;
}

static int root_iterate(struct inode *dir, u64 *pos, dir_emit emit, void *ctx)
{
    struct watched_emit watched = {emit, ctx, false};
    u32 pid;

    if (*pos < PID_POSITIONS) {
        int error = tree_ops->iterate(dir, pos, watch_emit, &watched);

        if (error || watched.is_full)
            return error;
        *pos = PID_POSITIONS;
    }
    while ((pid = next_pid(*pos - PID_POSITIONS)) != 0) {
        char name[PID_DIGITS];
        u64 next = PID_POSITIONS + pid + 1;

        format_to(name, sizeof(name), "%u", pid);
        if (emit_name(name, inode_number(pid, 0), S_IFDIR, next, emit, ctx))
            break;
        *pos = next;
    }
    return 0;
}

static struct inode_ops root_ops; /* the tree's, but for two; filled in at boot */

static ssize_t link_self(void *arg, char *buf, size_t size)
{
    const struct process *process = process_current();

    (void)arg;
    return process ? format_to(buf, size, "%u", process->pid) : -ENOENT;
}

static const struct text_file root_files[] = {
    {.path = "self", .link = link_self},
};

static void add_sums(struct process *process, void *ctx)
{
    struct process_sums *sums = ctx;
    const struct mm *mm = process->mm;

    if (!mm)
        return;
    sums->anon_pages += atomic_load(&mm->rss_anon);
    sums->table_pages += READ_ONCE(mm->space.table_pages);
}

static void sum_processes(struct process_sums *sums)
{
    *sums = (struct process_sums){0};
    process_for_each(add_sums, sums);
}

void process_add_proc_files(struct super_block *proc)
{
    proc_add_table(proc, root_files, ARRAY_SIZE(root_files));
    tree_ops = proc->root->ops;
    root_ops = *tree_ops;
    root_ops.lookup = root_lookup;
    root_ops.iterate = root_iterate;
    proc->root->ops = &root_ops;
    proc_sum_processes = sum_processes;
}
