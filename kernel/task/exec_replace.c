/*
 * execve: the current process goes on with another program.
 *
 *     the old program can still see an error                    past the point of no return
 *     ------------------------------------------------------    -----------------------------------------
 *     arguments copied; file found; script: its interpreter     other threads have ended
 *     the new image loaded into an address space of its own     what this thread owed them is settled
 *     the other threads told to end, and waited for             the address space is swapped, the old one goes
 *     a table of open files of its own, if it was shared        close-on-exec, registers, name
 *
 * Loading copies to user memory, so it works in the new address space already, with the old one kept; on an error
 * the task goes back.
 */
#include "kernel/cpu/context.h"
#include "kernel/cpu/trap.h"
#include "kernel/log/log.h"
#include "kernel/task/exec_strings.h"
#include "kernel/task/process_internal.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "mm/file_read.h"
#include "mm/mmap.h"

#define SCRIPT_LINE_BYTES 256 /* Linux's BINPRM_BUF_SIZE */
#define MODE_EXECUTE_ANY  0111u

struct exec {
    const char *path;  /* as the program gave it */
    struct file *file; /* what is loaded: the program, or the interpreter of the script */
    struct exec_strings strings;
    char line[SCRIPT_LINE_BYTES + 1];
    char script_path[PATH_MAX_BYTES]; /* of the script that `file` is asked to run */
    struct mm *old_mm, *new_mm;
    struct fd_table *own_files; /* to take the place of a shared table; NULL: keep */
    struct trap_frame frame;
};

/* ---- The file -------------------------------------------------------------------------------- */

static struct file *open_program(struct inode *base, const char *base_path, const char *path,
                                 int *error)
{
    struct file *file = file_open(base, base_path, path, O_RDONLY, 0, error);
    if (!file)
        return NULL;
    u32 mode = file->inode->mode;
    if ((mode & S_IFMT) == S_IFREG && (mode & MODE_EXECUTE_ANY))
        return file;
    file_put(file);
    *error = -EACCES;
    return NULL;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* "#! interpreter [argument]": cuts the line to pieces. => 0, -ENOEXEC */
static int parse_script_line(char *line, char **interpreter, char **argument)
{
    char *end = strchr(line, '\n'), *at = line + 2;
    if (!end)
        end = line + strlen(line);
    while (end > at && is_blank(end[-1]))
        end--;
    *end = '\0';
    while (is_blank(*at))
        at++;
    if (!*at)
        return -ENOEXEC;
    *interpreter = at;
    while (*at && !is_blank(*at))
        at++;
    *argument = NULL;
    if (!*at)
        return 0;
    *at++ = '\0';
    while (is_blank(*at))
        at++;
    if (*at)
        *argument = at;
    return 0;
}

/* The file is a script: its interpreter takes its place. => 1, 0: it is no script, or an error */
static int follow_script(struct exec *exec)
{
    char *interpreter, *argument;
    ssize_t n = file_read_all_kernel(exec->file, 0, exec->line, SCRIPT_LINE_BYTES);
    if (n < 0)
        return n;
    exec->line[n] = '\0';
    if (n < 2 || exec->line[0] != '#' || exec->line[1] != '!')
        return 0;
    int error = parse_script_line(exec->line, &interpreter, &argument);
    if (!error)
        error = exec_strings_put_script(&exec->strings, interpreter, argument, exec->script_path);
    if (error)
        return error;
    struct file *file = open_program(NULL, "/", interpreter, &error);
    if (!file)
        return error;
    file_put(exec->file);
    exec->file = file;
    strlcpy(exec->script_path, interpreter, sizeof(exec->script_path));
    return 1;
}

static int find_program(struct exec *exec, struct inode *base, const char *base_path)
{
    int result;
    exec->file = open_program(base, base_path, exec->path, &result);
    if (!exec->file)
        return result;
    strlcpy(exec->script_path, exec->path, sizeof(exec->script_path));
    for (unsigned depth = 0; (result = follow_script(exec)) > 0; depth++)
        if (depth == EXEC_SCRIPT_DEPTH)
            return -ELOOP;
    return result;
}

/* ---- The new image --------------------------------------------------------------------------- */

static int load_image(struct exec *exec)
{
    struct exec_arguments arguments = exec_strings_arguments(&exec->strings, exec->path);
    exec->old_mm = task_current()->mm;
    exec->new_mm = mm_create();
    if (!exec->new_mm)
        return -ENOMEM;
    exec->new_mm->owner = process_current();
    process_switch_mm(exec->new_mm);
    limits_tell_memory(exec->new_mm);
    int error = exec_load(exec->file, &arguments, &exec->frame);
    process_switch_mm(exec->old_mm);
    if (error == -ENOMEM && task_kill_is_pending(task_current()))
        return -EINTR;
    return error;
}

/* ---- The other threads ----------------------------------------------------------------------- */

/* => false: somebody else ends the process, or us, already */
static bool tell_others_to_end(struct process *process)
{
    struct thread *thread, *me = thread_current();
    spin_lock(&process->lock);
    bool may = !process->is_ending && !process->exec_thread && !task_kill_is_pending(me->task);
    if (may) {
        process->exec_thread = me;
        list_for_each (thread, &process->threads, link) {
            if (thread != me)
                task_kill(thread->task);
        }
    }
    spin_unlock(&process->lock);
    return may;
}

static int wait_for_others_to_end(struct process *process)
{
    struct waiter w;
    int error = 0;
    wait_begin(&process->thread_gone, &w, "other threads of process %lu to end", process->pid, 0);
    while (!error && READ_ONCE(process->n_threads) > 1)
        error = wait_sleep_killable(&w, 0);
    wait_end(&process->thread_gone, &w);
    return error;
}

/* The one that is left has the process's number from now on. */
static void become_first_thread(struct process *process)
{
    struct thread *me = thread_current();
    struct task *old = process->task;
    spin_lock(&process_tree_lock);
    spin_lock(&process->lock);
    process->exec_thread = NULL;
    me->tid = me->task->pid = process->pid;
    process->task = me->task;
    task_get(me->task);
    spin_unlock(&process->lock);
    spin_unlock(&process_tree_lock);
    task_put(old);
}

static void stay_old(struct process *process)
{
    spin_lock(&process->lock);
    process->exec_thread = NULL;
    spin_unlock(&process->lock);
}

/* The last steps that can fail. Afterwards the process has one thread. */
static int end_other_threads(struct exec *exec, struct process *process)
{
    if (!tell_others_to_end(process))
        return -EAGAIN;
    int error = wait_for_others_to_end(process);
    if (!error && READ_ONCE(process->files->refs) > 1) {
        exec->own_files = fd_table_copy(process->files);
        error = exec->own_files ? 0 : -ENOMEM;
    }
    if (!error)
        error = signal_process_exec(process);
    if (error) {
        stay_old(process);
        return error;
    }
    become_first_thread(process);
    return 0;
}

/* ---- Past the point of no return ------------------------------------------------------------- */

static void name_process(struct process *process, const struct exec *exec)
{
    const char *slash = strrchr(exec->path, '/');
    strlcpy(process->name, slash ? slash + 1 : exec->path, sizeof(process->name));
    strlcpy(task_current()->name, process->name, sizeof(process->name));
    strlcpy(process->exe_path, exec->file->path, sizeof(process->exe_path));
    process->has_execed = true;
    process->exit_signal = SIGCHLD;
}

static void swap_memory(struct process *process, struct exec *exec)
{
    futex_thread_exit(thread_current()); /* in the old memory */
    u64 pages = mm_rss_peak(exec->old_mm);
    spin_lock(&process_tree_lock);
    process->mm = exec->new_mm;
    process->usage.max_rss_pages = MAX(process->usage.max_rss_pages, pages);
    struct fd_table *shared = NULL;
    if (exec->own_files) {
        shared = process->files;
        process->files = exec->own_files;
    }
    name_process(process, exec);
    process->capabilities = CAPABILITIES_OF_ROOT;
    spin_unlock(&process_tree_lock);
    process_switch_mm(exec->new_mm);
    exec->new_mm = NULL;
    exec->own_files = NULL;
    mm_put(exec->old_mm);
    if (shared)
        fd_table_put(shared);
}

static void reset_registers(const struct exec *exec)
{
    struct thread *me = thread_current();
    bool irqs = irq_save_disable();
    fpu_state_init(me->task->fpu_area);
    fpu_restore(me->task->fpu_area);
    cpu_fs_base_write(0);
    cpu_user_gs_base_write(0);
    irq_restore(irqs);
    struct trap_frame *frame = me->frame;
    u64 vector = frame->vector, number = frame->error;
    *frame = exec->frame;
    frame->vector = vector;
    frame->error = number;
    me->set_child_tid = 0;
}

static void become_new_program(struct process *process, struct exec *exec)
{
    swap_memory(process, exec);
    process_vfork_done(process);
    fd_table_close_for_exec(process->files);
    reset_registers(exec);
}

/* ---- The call -------------------------------------------------------------------------------- */

static int prepare(struct exec *exec, struct inode *base, const char *base_path, u64 argv, u64 envp)
{
    int error = exec_strings_copy(&exec->strings, argv, envp);
    if (!error)
        error = find_program(exec, base, base_path);
    return error ? error : load_image(exec);
}

s64 process_exec(struct inode *base, const char *base_path, const char *path, u64 argv, u64 envp)
{
    struct process *process = process_current();
    struct exec *exec = kzalloc(sizeof(*exec));
    if (!exec)
        return -ENOMEM;
    exec->path = path;
    int error = prepare(exec, base, base_path, argv, envp);
    if (!error)
        error = end_other_threads(exec, process);
    if (!error)
        become_new_program(process, exec);
    if (exec->own_files)
        fd_table_put(exec->own_files);
    if (exec->new_mm)
        mm_put(exec->new_mm);
    if (exec->file)
        file_put(exec->file);
    exec_strings_free(&exec->strings);
    kfree(exec);
    return error;
}
