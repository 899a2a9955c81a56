/*
 * Processes: the list of all, references, and the first program, which the kernel starts by itself.
 */
#include "kernel/task/process_internal.h"

#include "kernel/cpu/context.h"
#include "kernel/cpu/trap.h"
#include "kernel/log/log.h"
#include "kernel/sched/affinity.h"
#include "kernel/sync/atomic.h"
#include "kernel/task/fatal_report.h"
#include "kernel/task/futex.h"
#include "kernel/task/signal.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "mm/core/tlb.h"
#include "mm/fault.h"

#define INIT_PID          1
#define STATUS_NOT_LOADED 127

static LOCK_CLASS(tree_lock_class, "process tree");
static LOCK_CLASS(process_lock_class, "process");
struct spinlock process_tree_lock = SPINLOCK_INIT(&tree_lock_class);
static struct list all_processes = LIST_INIT(all_processes); /* process_tree_lock */
struct process *process_init_one;
void (*process_session_ended)(struct process *leader);

/* ---- The list, and references ---------------------------------------------------------------- */

void process_for_each(void (*fn)(struct process *process, void *ctx), void *ctx)
{
    struct process *process;
    spin_lock(&process_tree_lock);
    list_for_each (process, &all_processes, link)
        fn(process, ctx);
    spin_unlock(&process_tree_lock);
}

struct process *process_find_locked(u32 pid)
{
    struct process *process;
    list_for_each (process, &all_processes, link) {
        if (process->pid == pid)
            return process;
    }
    return NULL;
}

struct process *process_find(u32 pid)
{
    spin_lock(&process_tree_lock);
    struct process *process = process_find_locked(pid);
    if (process)
        process_get(process);
    spin_unlock(&process_tree_lock);
    return process;
}

unsigned process_for_each_in_group_locked(u32 pgid, void (*fn)(struct process *process, void *ctx),
                                          void *ctx)
{
    struct process *process;
    unsigned n = 0;
    list_for_each (process, &all_processes, link) {
        if (process->pgid != pgid)
            continue;
        fn(process, ctx);
        n++;
    }
    return n;
}

/* Numbers that a new task must not get although no task has them: of zombies, groups and sessions. */
static bool pid_is_used(u32 pid)
{
    struct process *process;
    bool is_used = false;
    spin_lock(&process_tree_lock);
    list_for_each (process, &all_processes, link)
        is_used |= process->pid == pid || process->pgid == pid || process->sid == pid;
    spin_unlock(&process_tree_lock);
    return is_used;
}

struct process *process_alloc(const char *name)
{
    struct process *process = kzalloc(sizeof(*process));
    if (!process)
        return NULL;
    process->refs = 1;
    spin_init(&process->lock, &process_lock_class);
    list_init(&process->threads);
    list_init(&process->children);
    list_init(&process->sibling);
    list_init(&process->link);
    wait_queue_init(&process->thread_gone);
    wait_queue_init(&process->children_changed);
    wait_queue_init(&process->ended);
    wait_queue_init(&process->vfork_done);
    process->exit_signal = SIGCHLD;
    strlcpy(process->name, name, sizeof(process->name));
    return process;
}

/* Of a process that ran, only the structure is left; one that never did may still have its parts. */
void process_put(struct process *process)
{
    if (atomic_sub(&process->refs, 1) > 0)
        return;
    if (process->signals)
        signal_process_destroy(process);
    if (process->files)
        fd_table_put(process->files);
    if (process->fs)
        fs_context_put(process->fs);
    if (process->mm)
        mm_put(process->mm);
    if (process->task)
        task_put(process->task);
    kfree(process);
}

void process_link_locked(struct process *process, struct process *parent)
{
    process->parent = parent;
    list_add_tail(&all_processes, &process->link);
    if (parent)
        list_add_tail(&parent->children, &process->sibling);
}

void process_unlink_locked(struct process *process)
{
    process->state = PROCESS_REAPED;
    process->parent = NULL;
    list_del(&process->sibling);
    list_del(&process->link);
}

void process_switch_mm(struct mm *mm)
{
    struct task *task = task_current();
    bool irqs = irq_save_disable();
    task->mm = mm;
    task->space = mm ? &mm->space : NULL;
    tlb_switch_space(task->space);
    irq_restore(irqs);
}

/* ---- The first program ----------------------------------------------------------------------- */

/* What the new task needs of its starter, on the starter's stack until `answered`. */
struct spawn_request {
    struct process *process;
    struct thread *thread;
    struct file *file;
    struct exec_arguments arguments;
    int error;
    bool
        answered; /* the last word: the starter may be gone with the request as soon as it reads this */
};

static struct wait_queue answer_queue =
    WAIT_QUEUE_INIT(answer_queue); /* starters, by their request */

static void answer(struct spawn_request *request, int error)
{
    request->error = error;
    atomic_store(&request->answered, true);
    wait_wake_key(&answer_queue, request);
}

/* First code of a new process's task, in the kernel. */
static void spawned_main(void *arg)
{
    struct spawn_request *request = arg;
    struct trap_frame frame = {0};
    int error = exec_load(request->file, &request->arguments, &frame);
    answer(request, error); /* the request is gone from here on */
    if (error)
        process_exit(STATUS_NOT_LOADED);
    irq_disable();
    trap_enter_user(&frame);
}

/* Console on 0, 1 and 2. */
static int open_console(struct process *process)
{
    int error;
    for (int fd = 0; fd < 3; fd++) {
        struct file *file = file_open(NULL, "/", "/dev/console", O_RDWR, 0, &error);
        if (!file)
            return error;
        error = fd_install(process->files, file, fd, false);
        if (error < 0) {
            file_put(file);
            return error;
        }
    }
    return 0;
}

static int give_parts(struct process *process, const char *exe_path)
{
    strlcpy(process->exe_path, exe_path, sizeof(process->exe_path));
    limits_init(process->limits);
    process->capabilities = CAPABILITIES_OF_ROOT;
    process->files = fd_table_create();
    process->fs = fs_context_create();
    process->mm = mm_create();
    if (!process->files || !process->fs || !process->mm)
        return -ENOMEM;
    process->mm->owner = process;
    int error = open_console(process);
    return error ? error : signal_process_create(process, NULL, false);
}

/* Its own session and group; the first of them all is pid 1. process_tree_lock held. */
static void settle_identity_locked(struct process *process, struct thread *thread)
{
    if (!process_init_one && !process_find_locked(INIT_PID)) {
        thread->tid = thread->task->pid = INIT_PID;
        process_init_one = process;
    }
    process->pid = process->pgid = process->sid = thread->tid;
    process->is_session_leader = true;
    process->has_execed = true;
    process->task = thread->task;
    task_get(process->task);
}

static void wait_for_answer(struct spawn_request *request)
{
    struct waiter w;
    wait_begin_key(&answer_queue, &w, request, false, "program to be loaded", 0, 0);
    while (!atomic_load(&request->answered))
        wait_sleep(&w);
    wait_end(&answer_queue, &w);
}

static int start_spawned(struct spawn_request *request)
{
    struct process *process = request->process;
    struct thread *thread = thread_create(process, NULL, spawned_main, request);
    if (!thread)
        return -ENOMEM;
    spin_lock(&process_tree_lock);
    settle_identity_locked(process, thread);
    process_link_locked(process, NULL);
    spin_unlock(&process_tree_lock);
    process_get(process); /* the tree's */
    (void)thread_link(thread);
    task_start(thread->task);
    wait_for_answer(request);
    return 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* => 0: the program runs; else why not, and the process has ended or never was */
static int spawn(struct spawn_request *request, const char *path)
{
    struct process *process = request->process = process_alloc(base_name(path));
    if (!process)
        return -ENOMEM;
    int error = give_parts(process, request->file->path);
    if (!error && (error = thread_count_one()) == 0) {
        error = start_spawned(request);
        if (error)
            thread_uncount();
        else
            error = request->error;
    }
    if (error)
        process_put(process);
    return error;
}

struct process *process_spawn(const char *path, const char *const *argv, const char *const *envp,
                              bool is_protected, int *error)
{
    struct spawn_request request = {.arguments = {.argv = argv, .envp = envp}};
    while (argv[request.arguments.argc])
        request.arguments.argc++;
    while (envp[request.arguments.envc])
        request.arguments.envc++;
    request.file = file_open(NULL, "/", path, O_RDONLY, 0, error);
    if (!request.file)
        return NULL;
    *error = spawn(&request, path);
    file_put(request.file);
    if (*error)
        return NULL;
    request.process->is_protected = is_protected;
    return request.process;
}

int process_wait(struct process *process)
{
    WAIT_HOWEVER_LONG_FOR(&process->ended, READ_ONCE(process->state) != PROCESS_RUNNING,
                          "process %lu to end", process->pid, 0);
    u32 signal = process_status_signal(process->wait_status);
    int status = signal ? 128 + (int)signal : (int)(process->wait_status >> 8 & 0xff);
    process_put(process);
    return status;
}

/* ---- On the way to user mode ----------------------------------------------------------------- */

/* A few loads that tell nearly always that there is nothing to do but to go. */
static bool may_have_work(const struct task *task, const struct trap_frame *frame)
{
    return task_signal_is_pending(task) || signal_may_restart_call(frame) ||
           task->thread->signals->has_saved_mask || READ_ONCE(task->allowed_cpus);
}

/* Before each return to user mode, interrupts off. => whether it did something */
static bool user_return(struct trap_frame *frame)
{
    const struct task *task = task_current();

    if (likely(!may_have_work(task, frame)))
        return sched_user_return_hook();
    if (task_kill_is_pending(task)) {
        irq_enable();
        thread_exit_killed();
    }
    if (signal_user_return(frame))
        return true;
    if (unlikely(sched_is_on_forbidden_cpu())) {
        irq_enable();
        sched_leave_forbidden_cpu();
        irq_disable();
        return true;
    }
    return sched_user_return_hook();
}

void process_init(void)
{
    threads_init();
    futex_init();
    task_set_pid_filter(pid_is_used);
    limits_register();
    trap_set_user_return(user_return);
    fatal_report_init();
    trap_set_user_exception(fatal_exception);
    fault_init(fatal_bad_access, oom_kill_largest);
}
