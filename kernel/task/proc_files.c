/*
 * The files of /proc/PID: maps, faults, stat, statm, status, cmdline, comm, exe. Formats of
 * proc(5), but for faults, which is Faultline's own.
 *
 * A file holds on to nothing but the pid. Each reading takes a view of the process: its counters
 * copied under the process list's lock, its address space with a use of its own, so that it stays
 * while we look. A process that has ended reads as an empty text.
 */
#include "kernel/task/proc_files.h"

#include "fs/text_out.h"
#include "kernel/task/process.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/account.h"
#include "mm/core/page_table.h"

#define NS_PER_TICK     10000000ul /* of the 100 Hz that times in stat are counted in */
#define KIB_PER_PAGE    (PAGE_SIZE / 1024)
#define MAPS_LINE_BYTES 512

struct view {
    u32 pid;
    bool is_there;
    char name[TASK_NAME_SIZE];
    u32 umask;
    u32 state; /* enum task_state */
    u32 cpu;
    u64 user_ns, system_ns;
    struct task_fault_counters faults;
    struct mm *mm; /* with a use; never NULL where is_there */
};

static void take_view(struct process *process, void *ctx)
{
    struct view *view = ctx;
    const struct task *task = process->task;

    if (process->pid != view->pid || !process->mm)
        return;
    view->is_there = true;
    string_copy(view->name, process->name, sizeof(view->name));
    view->umask = process->fs->umask;
    view->state = READ_ONCE(task->state);
    view->cpu = READ_ONCE(task->cpu);
    view->faults = task->faults;
    task_times(task, &view->user_ns, &view->system_ns);
    view->mm = process->mm;
    mm_get(view->mm);
}

/* => whether the process is alive; then view_close() must follow */
static bool view_open(struct view *view, void *arg)
{
    *view = (struct view){.pid = (u32)(u64)arg};
    process_for_each(take_view, view);
    return view->is_there;
}

static void view_close(struct view *view)
{
    mm_put(view->mm);
}

static u64 rss_pages(const struct mm *mm)
{
    return atomic_load(&mm->rss_anon) + atomic_load(&mm->rss_file);
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
    struct view view;
    size_t len;

    if (!view_open(&view, arg))
        return 0;
    len = account_format(&view.faults, "", buf, size);
    view_close(&view);
    return len;
}

/* ---- stat ---- */

static char state_letter(u32 state)
{
    return state == TASK_SLEEPING ? 'S' : state == TASK_DEAD ? 'Z' : 'R';
}

/* Numbers of the fields in proc(5), from the parent's pid on. All that is not set here is 0. */
enum stat_field {
    STAT_PPID = 4,
    STAT_PGRP = 5,
    STAT_SESSION = 6,
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
#define SIGCHLD          17
#define NO_LIMIT         (~0ul)

static void fill_stat(const struct view *view, s64 *fields)
{
    const struct mm *mm = view->mm;

    fields[STAT_PGRP] = fields[STAT_SESSION] = view->pid;
    fields[STAT_TPGID] = -1;
    fields[STAT_MINFLT] = view->faults.shown_minor;
    fields[STAT_MAJFLT] = view->faults.shown_major;
    fields[STAT_UTIME] = view->user_ns / NS_PER_TICK;
    fields[STAT_STIME] = view->system_ns / NS_PER_TICK;
    fields[STAT_PRIORITY] = DEFAULT_PRIORITY;
    fields[STAT_THREADS] = 1;
    fields[STAT_VSIZE] = READ_ONCE(mm->total_pages) * PAGE_SIZE;
    fields[STAT_RSS] = rss_pages(mm);
    fields[STAT_STARTSTACK] = mm->stack_top;
    fields[STAT_EXIT_SIGNAL] = SIGCHLD;
    fields[STAT_PROCESSOR] = view->cpu;
    fields[STAT_START_BRK] = mm->brk_start;
    fields[STAT_ARG_START] = mm->arg_start;
    fields[STAT_ARG_END] = mm->arg_end;
    fields[STAT_ENV_START] = mm->env_start;
    fields[STAT_ENV_END] = mm->env_end;
}

static size_t show_stat(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    s64 fields[STAT_LAST + 1] = {0};
    struct view view;

    if (!view_open(&view, arg))
        return 0;
    fill_stat(&view, fields);
    text_out_put(&out, "%u (%s) %c", view.pid, view.name, state_letter(view.state));
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

/* Pages: size, resident, resident of files; text and data are not told apart. */
static size_t show_statm(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct view view;

    if (!view_open(&view, arg))
        return 0;
    text_out_put(&out, "%lu %lu %lu 0 0 0 0\n", READ_ONCE(view.mm->total_pages), rss_pages(view.mm),
                 atomic_load(&view.mm->rss_file));
    view_close(&view);
    return out.len;
}

/* ---- status ---- */

static const char *state_name(u32 state)
{
    return state == TASK_SLEEPING ? "S (sleeping)"
           : state == TASK_DEAD   ? "Z (zombie)"
                                  : "R (running)";
}

static void put_kib(struct text_out *out, const char *label, u64 pages)
{
    text_out_put(out, "%s\t%8lu kB\n", label, pages * KIB_PER_PAGE);
}

static void put_memory(struct text_out *out, const struct mm *mm)
{
    u64 anon = atomic_load(&mm->rss_anon), file = atomic_load(&mm->rss_file);

    put_kib(out, "VmSize:", READ_ONCE(mm->total_pages));
    put_kib(out, "VmRSS:", anon + file);
    put_kib(out, "RssAnon:", anon);
    put_kib(out, "RssFile:", file);
    put_kib(out, "RssShmem:", 0);
    put_kib(out, "VmPTE:", READ_ONCE(mm->space.table_pages));
    put_kib(out, "VmSwap:", 0);
}

static size_t show_status(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct view view;

    if (!view_open(&view, arg))
        return 0;
    text_out_put(&out, "Name:\t%s\nUmask:\t0%u%u%u\nState:\t%s\n", view.name, view.umask >> 6 & 7,
                 view.umask >> 3 & 7, view.umask & 7, state_name(view.state));
    text_out_put(&out, "Tgid:\t%u\nPid:\t%u\nPPid:\t0\n", view.pid, view.pid);
    text_out_put(&out, "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n");
    put_memory(&out, view.mm);
    text_out_put(&out, "Threads:\t1\n");
    view_close(&view);
    return out.len;
}

/* ---- cmdline, comm, exe ---- */

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

static size_t show_comm(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct view view;

    if (!view_open(&view, arg))
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
    {.path = "cmdline", .show = show_cmdline}, {.path = "comm", .show = show_comm},
    {.path = "exe", .link = link_exe},         {.path = "faults", .show = show_faults},
    {.path = "maps", .show = show_maps},       {.path = "stat", .show = show_stat},
    {.path = "statm", .show = show_statm},     {.path = "status", .show = show_status},
};
const unsigned proc_pid_files_count = ARRAY_SIZE(proc_pid_files);
