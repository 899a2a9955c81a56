/*
 * Processes: starting one, waiting for one, ending the current one.
 */
#include "kernel/task/process.h"

#include "kernel/cpu/context.h"
#include "kernel/cpu/trap.h"
#include "kernel/log/log.h"
#include "kernel/sched/sync_point.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "mm/core/tlb.h"
#include "mm/fault.h"

#define XSAVE_ALIGN 64
#define DEFAULT_UMASK 022

static LOCK_CLASS(list_lock_class, "process list");
static struct spinlock list_lock = SPINLOCK_INIT(&list_lock_class); /* guards all_processes */
static struct list all_processes = LIST_INIT(all_processes);

/* What the new task needs of its starter, on the starter's stack until `answered`. */
struct spawn_request {
    struct process *process;
    struct file *file;
    struct exec_arguments arguments;
    int error;
    bool answered; /* the last word: the starter may be gone with the request as soon as it reads this */
};

static struct wait_queue answer_queue = WAIT_QUEUE_INIT(answer_queue); /* starters, by their request */

void process_for_each(void (*fn)(struct process *process, void *ctx), void *ctx)
{
    struct process *process;
    spin_lock(&list_lock);
    list_for_each(process, &all_processes, link)
        fn(process, ctx);
    spin_unlock(&list_lock);
}

void process_put(struct process *process)
{
    if (atomic_sub(&process->refs, 1) > 0)
        return;
    if (process->working_dir)
        inode_put(process->working_dir);
    kfree(process);
}

static void answer(struct spawn_request *request, int error)
{
    request->error = error;
    atomic_store(&request->answered, true);
    wait_wake_key(&answer_queue, request);
}

/* The current task runs in the process's address space from here on. */
static void enter_mm(struct mm *mm)
{
    struct task *task = task_current();
    bool irqs = irq_save_disable();
    task->mm = mm;
    task->space = &mm->space;
    tlb_switch_space(&mm->space);
    irq_restore(irqs);
}

static void leave_mm(void)
{
    struct task *task = task_current();
    bool irqs = irq_save_disable();
    task->mm = NULL;
    task->space = NULL;
    tlb_switch_space(NULL);
    irq_restore(irqs);
}

/* Everything that the process holds goes back; who waits for it is told last. In the dying task. */
static void give_everything_back(struct process *process, u32 status, u32 signal)
{
    spin_lock(&list_lock);
    list_del(&process->link);
    struct mm *mm = process->mm;
    process->mm = NULL;
    spin_unlock(&list_lock);

    fd_table_close_all(&process->files);
    SYNC_POINT(process_memory_goes);
    if (mm) {
        leave_mm();
        mm_put(mm);
    }
    oom_note_gone(process);
    process->final_faults = task_current()->faults;
    process->exit_status = status;
    process->exit_signal = signal;
    WRITE_ONCE(process->has_ended, true);
    wait_wake_all(&process->ended);
    process_put(process);
}

NORETURN static void end(u32 status, u32 signal)
{
    struct task *task = task_current();
    void *fpu_area = task->fpu_area;
    give_everything_back(task->process, status, signal);
    bool irqs = irq_save_disable();
    task->process = NULL;
    task->fpu_area = NULL;
    irq_restore(irqs);
    kfree(fpu_area);
    task_exit(signal ? 128 + signal : status);
}

void process_exit(u32 status)
{
    end(status & 0xff, 0);
}

void process_exit_signal(u32 signal)
{
    end(0, signal);
}

/* First code of a new process's task, in the kernel. */
static void process_main(void *arg)
{
    struct spawn_request *request = arg;
    struct process *process = request->process;
    struct trap_frame frame = {0};
    enter_mm(process->mm);
    int error = exec_load(request->file, &request->arguments, &frame);
    answer(request, error); /* the request is gone from here on */
    if (error)
        process_exit(127);
    irq_disable();
    fpu_restore(task_current()->fpu_area);
    trap_enter_user(&frame);
}

static struct process *process_create(const char *path, bool is_protected)
{
    struct process *process = kzalloc(sizeof(*process));
    if (!process)
        return NULL;
    process->refs = 2; /* the starter's and its own */
    process->is_protected = is_protected;
    process->umask = DEFAULT_UMASK;
    fd_table_init(&process->files);
    wait_queue_init(&process->ended);
    list_init(&process->link);
    strlcpy(process->exe_path, path, sizeof(process->exe_path));
    strlcpy(process->working_path, "/", sizeof(process->working_path));
    const char *slash = strrchr(path, '/');
    strlcpy(process->name, slash ? slash + 1 : path, sizeof(process->name));
    process->working_dir = vfs_root()->root;
    inode_hold(process->working_dir);
    return process;
}

/* Console on 0, 1 and 2. */
static int open_console(struct process *process)
{
    int error;
    for (int fd = 0; fd < 3; fd++) {
        struct file *file = file_open(NULL, "/", "/dev/console", O_RDWR, 0, &error);
        if (!file)
            return error;
        error = fd_install(&process->files, file, fd, false);
        if (error < 0) {
            file_put(file);
            return error;
        }
    }
    return 0;
}

static struct task *create_task(struct process *process, struct spawn_request *request)
{
    struct task *task = task_create_stopped(process->name, process_main, request, -1);
    if (!task)
        return NULL;
    task->fpu_area = kzalloc(ALIGN_UP(cpu_features.xsave_size, XSAVE_ALIGN));
    if (!task->fpu_area) {
        task_put(task);
        return NULL;
    }
    fpu_state_init(task->fpu_area);
    task->process = process;
    process->pid = task->pid;
    process->task = task;
    return task;
}

/* Undoes process_create() for a process that never ran. */
static void discard(struct process *process)
{
    fd_table_close_all(&process->files);
    if (process->mm)
        mm_put(process->mm);
    process_put(process);
    process_put(process);
}

static void wait_for_answer(struct spawn_request *request)
{
    struct waiter w;
    wait_begin_key(&answer_queue, &w, request, false, "program to be loaded", 0, 0);
    while (!atomic_load(&request->answered))
        wait_sleep(&w);
    wait_end(&answer_queue, &w);
}

/* Runs the task up to user mode. => 0 or why the program could not be loaded (the process ends by itself then) */
static int run_and_wait_for_answer(struct process *process, struct spawn_request *request)
{
    struct task *task = create_task(process, request);
    if (!task)
        return -ENOMEM;
    spin_lock(&list_lock);
    list_add_tail(&all_processes, &process->link);
    spin_unlock(&list_lock);
    task_start(task);
    wait_for_answer(request);
    task_put(task);
    return 0;
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
    struct process *process = request.process = process_create(request.file->path, is_protected);
    *error = -ENOMEM;
    if (process && (process->mm = mm_create()) && (*error = open_console(process)) == 0)
        *error = run_and_wait_for_answer(process, &request);
    file_put(request.file);
    if (*error) {
        if (process)
            discard(process);
        return NULL;
    }
    if (request.error) {
        *error = request.error;
        process_wait(process);
        return NULL;
    }
    return process;
}

int process_wait(struct process *process)
{
    WAIT_FOR(&process->ended, READ_ONCE(process->has_ended), "process %lu to end", process->pid, 0);
    int status = process->exit_signal ? 128 + process->exit_signal : process->exit_status;
    process_put(process);
    return status;
}

/* Before each return to user mode. => whether it did something */
static bool user_return(struct trap_frame *frame)
{
    (void)frame;
    if (task_kill_is_pending(task_current())) {
        irq_enable();
        process_exit_signal(SIGKILL);
    }
    return sched_user_return_hook();
}

void process_init(void)
{
    trap_set_user_return(user_return);
    trap_set_user_exception(fatal_exception);
    fault_init(fatal_bad_access, oom_kill_largest);
}
