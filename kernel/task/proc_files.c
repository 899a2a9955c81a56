/*
 * The files of /proc/PID: maps, faults, stat, statm, status, limits, cmdline, environ, auxv, comm,
 * exe. Formats of proc(5), but for faults, which is Faultline's own. Those that show memory page by
 * page are in proc_smaps.c and proc_mem.c.
 *
 * A file holds on to nothing but the pid. Each reading takes a view of the process: its counters
 * copied under the process list's lock, its address space with a use of its own, so that it stays
 * while we look. A process that has ended reads as an empty text.
 */
#include "kernel/task/proc_files.h"

#include "fs/text_out.h"
#include "fs/tty/tty.h"
#include "kernel/task/proc_memory.h"
#include "kernel/task/process.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/account.h"
#include "mm/core/page_table.h"

#define NS_PER_TICK     10000000ul /* of the 100 Hz that times in stat are counted in */
#define MAPS_LINE_BYTES 512

/* One letter of proc(5) and its words. */
struct state_text {
    char letter;
    const char *words;
};

static const struct state_text running = {'R', "R (running)"}, sleeping = {'S', "S (sleeping)"},
                               stopped = {'T', "T (stopped)"}, zombie = {'Z', "Z (zombie)"};

struct view {
    u32 pid;
    u32 tid; /* of the one thread that is asked for; 0: the whole process */
    bool is_there;
    char name[TASK_NAME_SIZE];
    u32 umask;
    u32 parent, group, session;
    u32 threads;
    const struct state_text *state;
    u32 cpu;
    u64 user_ns, system_ns;
    u64 minor_faults, major_faults;
    struct task_fault_counters faults; /* of the thread that is asked for, or of its first */
    struct mm *mm;                     /* with a use; NULL: a zombie has none */
};

static bool wants_cpu(const struct task *task)
{
    u32 state = READ_ONCE(task->state);

    return state == TASK_RUNNABLE || state == TASK_RUNNING;
}

/* Adds up the threads that live and those that have gone, or takes the one that is asked for.
 * => whether that is there. The tree's lock is held. */
static bool add_threads(struct view *view, struct process *process)
{
    const struct process_usage of_one = {0}, *gone = view->tid ? &of_one : &process->usage;
    bool is_there = !view->tid;
    struct thread *thread;

    view->user_ns = gone->user_ns;
    view->system_ns = gone->system_ns;
    view->minor_faults = gone->minor_faults;
    view->major_faults = gone->major_faults;
    view->state = process->stop_signal ? &stopped : &sleeping;
    spin_lock(&process->lock);
    view->threads = process->n_threads;
    list_for_each (thread, &process->threads, link) {
        u64 user_ns, system_ns;

        if (view->tid && thread->tid != view->tid)
            continue;
        is_there = true;
        if (view->tid) {
            string_copy(view->name, thread->task->name, sizeof(view->name));
            view->faults = thread->task->faults;
        }
        task_times(thread->task, &user_ns, &system_ns);
        view->user_ns += user_ns;
        view->system_ns += system_ns;
        view->minor_faults += thread->task->faults.shown_minor;
        view->major_faults += thread->task->faults.shown_major;
        if (wants_cpu(thread->task))
            view->state = &running;
    }
    spin_unlock(&process->lock);
    return is_there;
}

static void take_view(struct process *process, void *ctx)
{
    struct view *view = ctx;

    if (process->pid != view->pid || process->state == PROCESS_REAPED)
        return;
    string_copy(view->name, process->name, sizeof(view->name));
    view->parent = process->parent ? process->parent->pid : 0;
    view->group = process->pgid;
    view->session = process->sid;
    view->is_there = add_threads(view, process);
    if (!view->is_there)
        return;
    view->mm = process->mm;
    if (!view->mm) {
        view->state = &zombie;
        return;
    }
    mm_get(view->mm);
    view->umask = process->fs ? process->fs->umask : 0;
    view->cpu = READ_ONCE(process->task->cpu);
    if (!view->tid)
        view->faults = process->task->faults;
}

/* => whether there is such a process, also as a zombie; then view_close() must follow */
static bool view_open_any(struct view *view, void *arg)
{
    *view = (struct view){.pid = (u32)(u64)arg, .tid = (u32)((u64)arg >> 32)};
    process_for_each(take_view, view);
    return view->is_there;
}

static void view_close(struct view *view)
{
    if (view->mm)
        mm_put(view->mm);
}

/* => whether the process is alive, with its memory; then view_close() must follow */
static bool view_open(struct view *view, void *arg)
{
    return view_open_any(view, arg) && view->mm;
}

/* ---- maps ---- */

static size_t show_maps(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    char line[MAPS_LINE_BYTES];
    struct view view;
    struct vma *vma;

    if (!view_open(&view, arg))
        return 0;
    rwsem_read_lock(&view.mm->mmap_lock);
    for (u64 at = 0; (vma = vma_find_from(view.mm, at)) != NULL; at = vma->end)
        text_out_bytes(&out, line, vma_format_maps_line(vma, line, sizeof(line)));
    rwsem_read_unlock(&view.mm->mmap_lock);
    view_close(&view);
    return out.len;
}

/* ---- faults ---- */

static size_t show_faults(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct view view;

    if (!view_open(&view, arg))
        return 0;
    out.len += account_format(&view.faults, "", buf, size);
    text_out_put(&out, "read_waits %lu\n", view.faults.read_waits);
    text_out_put(&out, "read_wait_ns %lu\n", view.faults.read_wait_ns);
    view_close(&view);
    return out.len;
}

/* ---- stat ---- */

/* Numbers of the fields in proc(5), from the parent's pid on. All that is not set here is 0. */
enum stat_field {
    STAT_PPID = 4,
    STAT_PGRP = 5,
    STAT_SESSION = 6,
    STAT_TTY = 7,
    STAT_TPGID = 8,
    STAT_MINFLT = 10,
    STAT_MAJFLT = 12,
    STAT_UTIME = 14,
    STAT_STIME = 15,
    STAT_PRIORITY = 18,
    STAT_THREADS = 20,
    STAT_VSIZE = 23,
    STAT_RSS = 24,
    STAT_RSSLIM = 25,
    STAT_STARTSTACK = 28,
    STAT_EXIT_SIGNAL = 38,
    STAT_PROCESSOR = 39,
    STAT_START_BRK = 47,
    STAT_ARG_START = 48,
    STAT_ARG_END = 49,
    STAT_ENV_START = 50,
    STAT_ENV_END = 51,
    STAT_LAST = 52,
};

#define DEFAULT_PRIORITY 20
#define NO_LIMIT         (~0ul)

static void fill_stat_of_memory(const struct mm *mm, s64 *fields)
{
    fields[STAT_VSIZE] = READ_ONCE(mm->total_pages) * PAGE_SIZE;
    fields[STAT_RSS] = mm_rss_pages(mm);
    fields[STAT_STARTSTACK] = mm->stack_top;
    fields[STAT_START_BRK] = mm->brk_start;
    fields[STAT_ARG_START] = mm->arg_start;
    fields[STAT_ARG_END] = mm->arg_end;
    fields[STAT_ENV_START] = mm->env_start;
    fields[STAT_ENV_END] = mm->env_end;
}

static void fill_stat(const struct view *view, s64 *fields)
{
    s32 foreground;

    fields[STAT_PPID] = view->parent;
    fields[STAT_PGRP] = view->group;
    fields[STAT_SESSION] = view->session;
    fields[STAT_TTY] = tty_device_of_session(view->session, &foreground);
    fields[STAT_TPGID] = foreground;
    fields[STAT_MINFLT] = view->minor_faults;
    fields[STAT_MAJFLT] = view->major_faults;
    fields[STAT_UTIME] = view->user_ns / NS_PER_TICK;
    fields[STAT_STIME] = view->system_ns / NS_PER_TICK;
    fields[STAT_PRIORITY] = DEFAULT_PRIORITY;
    fields[STAT_THREADS] = view->threads;
    fields[STAT_EXIT_SIGNAL] = SIGCHLD;
    fields[STAT_PROCESSOR] = view->cpu;
    if (view->mm)
        fill_stat_of_memory(view->mm, fields);
}

static size_t show_stat(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    s64 fields[STAT_LAST + 1] = {0};
    struct view view;

    if (!view_open_any(&view, arg))
        return 0;
    fill_stat(&view, fields);
    text_out_put(&out, "%u (%s) %c", view.tid ? view.tid : view.pid, view.name, view.state->letter);
    for (unsigned i = STAT_PPID; i <= STAT_LAST; i++) {
        if (i == STAT_RSSLIM)
            text_out_put(&out, " %lu", NO_LIMIT);
        else
            text_out_put(&out, " %ld", fields[i]);
    }
    text_out_put(&out, "\n");
    view_close(&view);
    return out.len;
}

/* ---- status ---- */

static size_t show_status(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct view view;

    if (!view_open_any(&view, arg))
        return 0;
    text_out_put(&out, "Name:\t%s\nUmask:\t0%u%u%u\nState:\t%s\n", view.name, view.umask >> 6 & 7,
                 view.umask >> 3 & 7, view.umask & 7, view.state->words);
    text_out_put(&out, "Tgid:\t%u\nPid:\t%u\nPPid:\t%u\n", view.pid, view.tid ? view.tid : view.pid,
                 view.parent);
    text_out_put(&out, "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n");
    if (view.mm)
        proc_put_status_sizes(&out, view.mm);
    text_out_put(&out, "Threads:\t%u\n", view.threads);
    view_close(&view);
    return out.len;
}

/* ---- limits ---- */

static const struct {
    const char *name, *unit;
} limit_names[LIMIT_COUNT] = {
    [LIMIT_CPU] = {"Max cpu time", "seconds"},
    [LIMIT_FSIZE] = {"Max file size", "bytes"},
    [LIMIT_DATA] = {"Max data size", "bytes"},
    [LIMIT_STACK] = {"Max stack size", "bytes"},
    [LIMIT_CORE] = {"Max core file size", "bytes"},
    [LIMIT_RSS] = {"Max resident set", "bytes"},
    [LIMIT_NPROC] = {"Max processes", "processes"},
    [LIMIT_NOFILE] = {"Max open files", "files"},
    [LIMIT_MEMLOCK] = {"Max locked memory", "bytes"},
    [LIMIT_AS] = {"Max address space", "bytes"},
    [LIMIT_LOCKS] = {"Max file locks", "locks"},
    [LIMIT_SIGPENDING] = {"Max pending signals", "signals"},
    [LIMIT_MSGQUEUE] = {"Max msgqueue size", "bytes"},
    [LIMIT_NICE] = {"Max nice priority", ""},
    [LIMIT_RTPRIO] = {"Max realtime priority", ""},
    [LIMIT_RTTIME] = {"Max realtime timeout", "us"},
};

static void put_limit(struct text_out *out, u64 value)
{
    if (value == LIMIT_INFINITY)
        text_out_put(out, "%-20s ", "unlimited");
    else
        text_out_put(out, "%-20lu ", value);
}

static size_t show_limits(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct process *process = process_find((u32)(u64)arg);
    struct limit limits[LIMIT_COUNT];

    if (!process)
        return 0;
    spin_lock(&process->lock);
    memcpy(limits, process->limits, sizeof(limits));
    spin_unlock(&process->lock);
    process_put(process);
    text_out_put(&out, "%-25s %-20s %-20s %-10s\n", "Limit", "Soft Limit", "Hard Limit", "Units");
    for (unsigned i = 0; i < LIMIT_COUNT; i++) {
        text_out_put(&out, "%-25s ", limit_names[i].name);
        put_limit(&out, limits[i].soft);
        put_limit(&out, limits[i].hard);
        if (limit_names[i].unit[0])
            text_out_put(&out, "%-10s", limit_names[i].unit);
        text_out_put(&out, "\n");
    }
    return out.len;
}

/* ---- cmdline, environ, auxv, comm, exe ---- */

/* => the frame behind a user address, with a reference; NULL: none is there now. mmap_lock held. */
static struct page *page_at(struct mm *mm, u64 addr)
{
    struct page *page = NULL;
    pte_t *pte;

    pt_lock(&mm->space);
    pte = pt_find(&mm->space, addr);
    if (pte && pte_is_present(*pte)) {
        page = pte_page(*pte);
        page_get(page);
    }
    pt_unlock(&mm->space);
    return page;
}

/* Reads a program's memory without faulting anything in: up to the first page that is absent. */
static void put_user_bytes(struct text_out *out, struct mm *mm, u64 addr, u64 end)
{
    rwsem_read_lock(&mm->mmap_lock);
    while (addr < end) {
        size_t offset = addr % PAGE_SIZE, n = MIN(PAGE_SIZE - offset, end - addr);
        struct page *page = page_at(mm, addr);

        if (!page)
            break;
        text_out_bytes(out, (char *)page_virt(page) + offset, n);
        page_put(page);
        addr += n;
    }
    rwsem_read_unlock(&mm->mmap_lock);
}

static size_t show_cmdline(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct view view;

    if (!view_open(&view, arg))
        return 0;
    put_user_bytes(&out, view.mm, view.mm->arg_start, view.mm->arg_end);
    view_close(&view);
    return out.len;
}

static size_t show_environ(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct view view;

    if (!view_open(&view, arg))
        return 0;
    put_user_bytes(&out, view.mm, view.mm->env_start, view.mm->env_end);
    view_close(&view);
    return out.len;
}

/* As the program's stack has it. */
static size_t show_auxv(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct view view;

    if (!view_open(&view, arg))
        return 0;
    put_user_bytes(&out, view.mm, view.mm->auxv_start, view.mm->auxv_end);
    view_close(&view);
    return out.len;
}

static size_t show_comm(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct view view;

    if (!view_open_any(&view, arg))
        return 0;
    text_out_put(&out, "%s\n", view.name);
    view_close(&view);
    return out.len;
}

struct exe_request {
    u32 pid;
    char *buf;
    size_t size;
    ssize_t len;
};

/* exe_path is set before the process can be found, and stays. */
static void copy_exe_path(struct process *process, void *ctx)
{
    struct exe_request *request = ctx;
    size_t len;

    if (process->pid != request->pid)
        return;
    len = string_copy(request->buf, process->exe_path, request->size);
    request->len = MIN(len, request->size - 1);
}

static ssize_t link_exe(void *arg, char *buf, size_t size)
{
    struct exe_request request = {(u32)(u64)arg, buf, size, -ENOENT};

    process_for_each(copy_exe_path, &request);
    return request.len;
}

const struct text_file proc_pid_files[] = {
    {.path = "auxv", .show = show_auxv},
    {.path = "clear_refs", .store = proc_store_clear_refs},
    {.path = "cmdline", .show = show_cmdline},
    {.path = "comm", .show = show_comm},
    {.path = "environ", .show = show_environ},
    {.path = "exe", .link = link_exe},
    {.path = "faults", .show = show_faults},
    {.path = "limits", .show = show_limits},
    {.path = "maps", .show = show_maps},
    {.path = "mem", .ops = &proc_mem_ops, .mode = 0600},
    {.path = "pagemap", .ops = &proc_pagemap_ops, .mode = 0400},
    {.path = "smaps", .show = proc_show_smaps},
    {.path = "smaps_rollup", .show = proc_show_smaps_rollup},
    {.path = "stat", .show = show_stat},
    {.path = "statm", .show = proc_show_statm},
    {.path = "status", .show = show_status},
};
const unsigned proc_pid_files_count = ARRAY_SIZE(proc_pid_files);
