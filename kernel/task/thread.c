/*
 * Threads: made, counted, found, freed.
 */
#include "kernel/cpu/context.h"
#include "kernel/sync/atomic.h"
#include "kernel/task/process_internal.h"
#include "lib/errno.h"
#include "mm/core/frames.h"
#include "mm/core/slab.h"

#define XSAVE_ALIGN             64
#define FRAMES_PER_THREAD_LIMIT 16 /* of all memory: no more threads than this leaves room for */
#define RESERVED_THREADS        64 /* left to protected programs: the shell has to start `kill` */

static struct slab_cache *fpu_cache;
static u64 n_threads; /* of all programs; atomic */

void threads_init(void)
{
    fpu_cache = slab_cache_create("xsave area", ALIGN_UP(cpu_features.xsave_size, XSAVE_ALIGN),
                                  XSAVE_ALIGN);
}

int thread_count_one(void)
{
    const struct process *process = process_current();
    u64 limit = MIN(frames_total() / FRAMES_PER_THREAD_LIMIT, limit_current(LIMIT_NPROC));
    if (!process || process->is_protected)
        limit = limit > ~0ul - RESERVED_THREADS ? limit : limit + RESERVED_THREADS;
    if (atomic_add(&n_threads, 1) <= limit)
        return 0;
    atomic_sub(&n_threads, 1);
    return -EAGAIN;
}

void thread_uncount(void)
{
    atomic_sub(&n_threads, 1);
}

/* => whether the task could be made; it knows its thread and process then */
static bool make_task(struct thread *thread, void (*fn)(void *), void *arg)
{
    struct process *process = thread->process;
    struct task *task = task_create_stopped(process->name, fn, arg, -1);
    if (!task)
        return false;
    thread->task = task;
    task->fpu_area = slab_alloc_zeroed(fpu_cache);
    if (!task->fpu_area)
        return false;
    fpu_state_init(task->fpu_area);
    task->process = process;
    task->thread = thread;
    task->mm = process->mm;
    task->space = &process->mm->space;
    thread->tid = task->pid;
    return true;
}

struct thread *thread_create(struct process *process, struct thread *creator, void (*fn)(void *),
                             void *arg)
{
    struct thread *thread = kzalloc(sizeof(*thread));
    if (!thread)
        return NULL;
    thread->refs = 1;
    thread->process = process;
    process_get(process);
    list_init(&thread->link);
    if (make_task(thread, fn, arg) && signal_thread_create(thread, creator) == 0)
        return thread;
    thread_put(thread);
    return NULL;
}

bool thread_link(struct thread *thread)
{
    struct process *process = thread->process;
    spin_lock(&process->lock);
    bool may_live = !process->is_ending && !process->exec_thread;
    if (may_live) {
        list_add_tail(&process->threads, &thread->link);
        process->n_threads++;
    }
    spin_unlock(&process->lock);
    return may_live;
}

void thread_free_fpu_area(struct task *task)
{
    void *area = task->fpu_area;
    bool irqs = irq_save_disable();
    task->fpu_area = NULL;
    irq_restore(irqs);
    if (area)
        slab_free(fpu_cache, area);
}

void thread_put(struct thread *thread)
{
    if (atomic_sub(&thread->refs, 1) > 0)
        return;
    if (thread->signals)
        signal_thread_destroy(thread);
    if (thread->task) {
        thread_free_fpu_area(
            thread->task); /* of a task that never ran: one that did has done it itself */
        task_put(thread->task);
    }
    process_put(thread->process);
    kfree(thread);
}

static struct thread *find_in(struct process *process, u32 tid)
{
    struct thread *thread, *found = NULL;
    spin_lock(&process->lock);
    list_for_each (thread, &process->threads, link) {
        if (thread->tid == tid)
            found = thread;
    }
    if (found)
        atomic_add(&found->refs, 1);
    spin_unlock(&process->lock);
    return found;
}

struct search {
    u32 tid;
    struct thread *found;
};

static void look_in(struct process *process, void *ctx)
{
    struct search *search = ctx;
    if (!search->found)
        search->found = find_in(process, search->tid);
}

struct thread *thread_find(struct process *process, u32 tid)
{
    struct search search = {.tid = tid};
    if (process)
        return find_in(process, tid);
    process_for_each(look_in, &search);
    return search.found;
}
