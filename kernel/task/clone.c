/*
 * fork, vfork and clone: one function, and flags that say what parent and child share.
 *
 * A child is put together where nobody sees it; linking it into the tree (or, a thread, into its process) is the last
 * step that can fail, and the one that a signal may forbid: what is sent to a group reaches the child, or its parent before
 * the child is there.
 */
#include "kernel/cpu/context.h"
#include "kernel/cpu/trap.h"
#include "kernel/task/process_internal.h"
#include "kernel/task/signal.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "mm/fork.h"
#include "mm/user_memory.h"

#define CLONE_IO 0x80000000ul
#define CLONE_KNOWN                                                                     \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_PTRACE | CLONE_VFORK |   \
     CLONE_PARENT | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID | \
     CLONE_CHILD_CLEARTID | CLONE_DETACHED | CLONE_UNTRACED | CLONE_CHILD_SETTID | CLONE_IO)
#define CLONE_OF_A_THREAD (CLONE_VM | CLONE_SIGHAND | CLONE_FS | CLONE_FILES)

/* The files of a process are one table for all its threads, so CLONE_THREAD without CLONE_FS or CLONE_FILES is refused. */
static int check_flags(u64 flags)
{
    if (flags & ~(u64)CLONE_KNOWN) /* namespaces and process descriptors */
        return -EINVAL;
    if ((flags & CLONE_SIGHAND) && !(flags & CLONE_VM))
        return -EINVAL;
    if ((flags & CLONE_THREAD) && (flags & CLONE_OF_A_THREAD) != CLONE_OF_A_THREAD)
        return -EINVAL;
    if ((flags & CLONE_PARENT) &&
        !process_current()->parent) /* init's children would be nobody's */
        return -EINVAL;
    return 0;
}

/* ---- A process ------------------------------------------------------------------------------- */

static int give_memory(struct process *child, struct process *parent, u64 flags)
{
    if (flags & CLONE_VM) {
        mm_get(parent->mm);
        child->mm = parent->mm;
        return 0;
    }
    int error = mm_fork(parent->mm, &child->mm);
    if (!error)
        child->mm->owner = child;
    return error;
}

static int give_files(struct process *child, struct process *parent, u64 flags)
{
    if (flags & CLONE_FILES)
        fd_table_get(parent->files);
    if (flags & CLONE_FS)
        fs_context_get(parent->fs);
    child->files = flags & CLONE_FILES ? parent->files : fd_table_copy(parent->files);
    child->fs = flags & CLONE_FS ? parent->fs : fs_context_copy(parent->fs);
    return child->files && child->fs ? 0 : -ENOMEM;
}

/* => the child, in no list, or NULL with *error */
static struct process *create_child(struct process *parent, const struct clone_arguments *a,
                                    int *error)
{
    struct process *child = process_alloc(parent->name);
    *error = -ENOMEM;
    if (!child)
        return NULL;
    child->exit_signal = a->flags & CLONE_PARENT ? parent->exit_signal : a->exit_signal;
    child->is_vfork_child = a->flags & CLONE_VFORK;
    strlcpy(child->exe_path, parent->exe_path, sizeof(child->exe_path));
    spin_lock(&parent->lock);
    memcpy(child->limits, parent->limits, sizeof(child->limits));
    child->capabilities = parent->capabilities;
    spin_unlock(&parent->lock);
    *error = give_files(child, parent, a->flags);
    if (!*error)
        *error = signal_process_create(child, parent, a->flags & CLONE_SIGHAND);
    if (!*error)
        *error = give_memory(child, parent, a->flags);
    if (!*error)
        return child;
    process_put(child);
    return NULL;
}

/* => 0, or -ERESTARTNOINTR: a signal that may be for the child too is to be handled first */
static int link_child(struct process *child, struct thread *thread, u64 flags)
{
    struct process *me = process_current();
    child->pid = thread->tid;
    child->task = thread->task;
    (void)thread_link(thread); /* nobody can be ending it yet */
    spin_lock(&process_tree_lock);
    struct process *parent = flags & CLONE_PARENT ? me->parent : me;
    bool may_link = !task_signal_is_pending(task_current()) && parent;
    if (may_link) {
        child->pgid = me->pgid;
        child->sid = me->sid;
        task_get(child->task);
        process_get(child); /* the caller's of process_clone, until it has started */
        process_link_locked(child, parent);
    } else {
        child->task = NULL;
    }
    spin_unlock(&process_tree_lock);
    return may_link ? 0 : -ERESTARTNOINTR;
}

/* ---- A thread -------------------------------------------------------------------------------- */

/* As on Linux, a bad address is nobody's error. */
static void store_tid(u64 addr, u32 tid)
{
    if (addr && copy_to_user(addr, &tid, sizeof(tid)))
        return;
}

/* The first code of every child: from the registers of its parent's call, with 0 as the result. */
static void child_main(void *arg)
{
    struct trap_frame frame = *(struct trap_frame *)arg;
    const struct thread *me = thread_current();
    kfree(arg);
    store_tid(me->set_child_tid, me->tid);
    irq_disable();
    trap_enter_user(&frame);
}

static struct trap_frame *child_frame(const struct thread *parent, u64 stack)
{
    struct trap_frame *frame = kmalloc(sizeof(*frame));
    if (!frame)
        return NULL;
    *frame = *parent->frame;
    frame->rax = 0;
    if (stack)
        frame->rsp = stack;
    return frame;
}

/* What the processor holds of the parent, in the middle of its call. */
static void copy_user_state(struct task *child, const struct clone_arguments *a)
{
    struct task *me = task_current();
    bool irqs = irq_save_disable();
    fpu_save(me->fpu_area);
    memcpy(child->fpu_area, me->fpu_area, cpu_features.xsave_size);
    irq_restore(irqs);
    child->fs_base = a->flags & CLONE_SETTLS ? a->tls : cpu_fs_base_read();
    child->gs_base = cpu_user_gs_base_read();
    child->allowed_cpus = me->allowed_cpus;
    strlcpy(child->name, me->name, sizeof(child->name));
}

static void set_tid_words(struct thread *child, const struct clone_arguments *a)
{
    if (a->flags & CLONE_CHILD_SETTID)
        child->set_child_tid = a->child_tid;
    if (a->flags & CLONE_CHILD_CLEARTID)
        child->clear_child_tid = a->child_tid;
    if (a->flags & CLONE_PARENT_SETTID)
        store_tid(a->parent_tid, child->tid);
    if ((a->flags & CLONE_VM) &&
        !(a->flags & CLONE_VFORK)) /* two must not use one alternate stack */
        child->signals->stack = (struct signal_stack){.flags = SS_DISABLE};
}

/* The new thread of `process`, ready to be linked; NULL when out of memory */
static struct thread *create_thread(struct process *process, const struct clone_arguments *a)
{
    struct thread *me = thread_current();
    struct trap_frame *frame = child_frame(me, a->stack);
    if (!frame)
        return NULL;
    struct thread *child = thread_create(process, me, child_main, frame);
    if (!child) {
        kfree(frame);
        return NULL;
    }
    copy_user_state(child->task, a);
    set_tid_words(child, a);
    return child;
}

/* It was never started, and nobody else knows it. */
static void discard_thread(struct thread *thread)
{
    if (!list_is_empty(&thread->link)) {
        list_del(&thread->link);
        thread->process->n_threads--;
    }
    kfree(thread->task->start_arg);
    thread_put(thread);
}

/* ---- The call -------------------------------------------------------------------------------- */

static void wait_for_vfork(struct process *child)
{
    struct waiter w;
    wait_begin(&child->vfork_done, &w, "vfork child %lu to exec or end", child->pid, 0);
    wait_may_last(&w);
    while (READ_ONCE(child->is_vfork_child) && wait_sleep_killable(&w, 0) == 0)
        ;
    wait_end(&child->vfork_done, &w);
}

static s64 clone_thread(const struct clone_arguments *a)
{
    struct thread *child = create_thread(process_current(), a);
    if (!child)
        return -ENOMEM;
    u32 tid = child->tid;
    if (!thread_link(child)) {
        discard_thread(child);
        return -ERESTARTNOINTR; /* we are being ended too */
    }
    task_start(child->task);
    return tid;
}

static s64 clone_process(const struct clone_arguments *a)
{
    int error;
    struct process *child = create_child(process_current(), a, &error);
    if (!child)
        return error;
    struct thread *thread = create_thread(child, a);
    error = thread ? link_child(child, thread, a->flags) : -ENOMEM;
    if (error) {
        if (thread)
            discard_thread(thread);
        process_put(child);
        return error;
    }
    u32 pid = child->pid;
    task_start(thread->task);
    if (a->flags & CLONE_VFORK)
        wait_for_vfork(child);
    process_put(child);
    return pid;
}

s64 process_clone(const struct clone_arguments *a)
{
    int error = check_flags(a->flags);
    if (!error && task_signal_is_pending(task_current()))
        error = -ERESTARTNOINTR;
    if (!error)
        error = thread_count_one();
    if (error)
        return error;
    s64 result = a->flags & CLONE_THREAD ? clone_thread(a) : clone_process(a);
    if (result < 0)
        thread_uncount();
    return result;
}
