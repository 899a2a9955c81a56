/*
 * Tasks: creation, the list of all, references, the end.
 *
 * References: one for whoever created the task, one for the task itself from task_start on. The
 * task's own is dropped together with its stack, a grace period after its last switch: so nobody
 * stands on the stack any more, and a waker that found the task in a queue just before its end
 * still has a struct to look at.
 */
#include "kernel/sched/task.h"

#include "kernel/cpu/clock.h"
#include "kernel/cpu/context.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/log/log.h"
#include "kernel/sched/grace.h"
#include "kernel/sched/run_queue.h"
#include "kernel/sched/wait.h"
#include "kernel/sync/atomic.h"
#include "lib/format.h"
#include "lib/string.h"
#include "mm/core/page_table.h"
#include "mm/core/slab.h"

#define PID_FIRST 2 /* 1 is left for init: its creator sets it before task_start */
#define PID_MAX   4194304

static LOCK_CLASS(run_lock_class, "task run_lock");
static LOCK_CLASS(task_list_class, "task list");

static struct spinlock list_lock = SPINLOCK_INIT(&task_list_class);
static struct list all_tasks = LIST_INIT(all_tasks); /* guarded by list_lock */
static u32 last_pid = PID_FIRST - 1;                 /* guarded by list_lock */

static struct wait_queue exit_queue = WAIT_QUEUE_INIT(exit_queue); /* joiners, by task */
static struct slab_cache *task_cache;

/* ---- The list ------------------------------------------------------------------------------ */

static struct task *find_locked(u32 pid)
{
    struct task *task;

    list_for_each (task, &all_tasks, all_link) {
        if (task->pid == pid)
            return task;
    }
    return NULL;
}

static bool (*pid_filter)(u32 pid);
static bool pids_have_wrapped; /* before that, every number is new; guarded by list_lock */

void task_set_pid_filter(bool (*is_used)(u32 pid))
{
    pid_filter = is_used;
}

/* The filter is asked without the lock: nobody else gets the same number meanwhile. */
static u32 new_pid(void)
{
    for (;;) {
        spin_lock(&list_lock);
        pids_have_wrapped |= last_pid == PID_MAX;
        last_pid = last_pid == PID_MAX ? PID_FIRST : last_pid + 1;
        u32 pid = last_pid;
        bool must_ask = pids_have_wrapped;
        bool is_used = must_ask && find_locked(pid);

        spin_unlock(&list_lock);
        if (!is_used && !(must_ask && pid_filter && pid_filter(pid)))
            return pid;
    }
}

struct task *task_find(u32 pid)
{
    spin_lock(&list_lock);
    struct task *task = find_locked(pid);

    if (task)
        task_get(task);
    spin_unlock(&list_lock);
    return task;
}

void task_for_each_unlocked(void (*fn)(struct task *task, void *ctx), void *ctx)
{
    struct task *task;

    list_for_each (task, &all_tasks, all_link)
        fn(task, ctx);
}

void task_for_each(void (*fn)(struct task *task, void *ctx), void *ctx)
{
    spin_lock(&list_lock);
    task_for_each_unlocked(fn, ctx);
    spin_unlock(&list_lock);
}

bool task_for_each_if_free(void (*fn)(struct task *task, void *ctx), void *ctx)
{
    bool irqs = irq_save_disable();
    bool is_free = spin_trylock(&list_lock);

    if (is_free) {
        task_for_each_unlocked(fn, ctx);
        spin_unlock(&list_lock);
    }
    irq_restore(irqs);
    return is_free;
}

/* ---- Beginning ----------------------------------------------------------------------------- */

static void task_init(struct task *task)
{
    memset(task, 0, sizeof(*task));
    task->ref_count = 1;
    task->death.free = task_free_dead;
    spin_init(&task->run_lock, &run_lock_class);
    list_init(&task->run_link);
    list_init(&task->all_link);
}

void task_init_idle(struct task *task)
{
    if (!task_cache)
        task_cache = slab_cache_create("task", sizeof(struct task), 64);
    task_init(task);
    format_to(task->name, sizeof(task->name), "idle/%u", cpu_index());
    task->is_idle = true;
    task->is_pinned = true;
    task->state = TASK_RUNNING;
    task->on_cpu = 1;
    task->cpu = cpu_index();
}

struct task *task_create_stopped(const char *name, void (*fn)(void *arg), void *arg, int cpu)
{
    struct task *task = slab_alloc(task_cache);

    if (!task)
        return NULL;
    task_init(task);
    task->stack = kernel_stack_alloc();
    if (!task->stack) {
        slab_free(task_cache, task);
        return NULL;
    }
    string_copy(task->name, name, sizeof(task->name));
    task->pid = new_pid();
    task->sync_id = task->pid;
    task->start_fn = fn;
    task->start_arg = arg;
    task->is_pinned = cpu >= 0;
    task->cpu = cpu >= 0 ? (u32)cpu : cpu_index();
    task->saved_rsp =
        context_prepare((char *)task->stack + KERNEL_STACK_BYTES, sched_task_entry, task);
    return task;
}

void task_start(struct task *task)
{
    ASSERT(task->state == TASK_NEW && sched_online_mask & (1ul << task->cpu));
    task_get(task);
    spin_lock(&list_lock);
    list_add_tail(&all_tasks, &task->all_link);
    spin_unlock(&list_lock);
    bool irqs = spin_lock_irq(&task->run_lock);

    run_queue_add(task, run_queue_place_new(task));
    spin_unlock_irq(&task->run_lock, irqs);
}

struct task *task_create(const char *name, void (*fn)(void *arg), void *arg, int cpu)
{
    struct task *task = task_create_stopped(name, fn, arg, cpu);

    if (task)
        task_start(task);
    return task;
}

/* ---- References and the end ---------------------------------------------------------------- */

void task_get(struct task *task)
{
    atomic_add(&task->ref_count, 1);
}

void task_put(struct task *task)
{
    s32 left = atomic_sub(&task->ref_count, 1);

    ASSERT(left >= 0);
    if (left)
        return;
    if (task->stack) /* never started */
        kernel_stack_free(task->stack);
    slab_free(task_cache, task);
}

/* In the grace thread: no CPU is on the stack, no waker looks at the struct without a reference. */
void task_free_dead(struct deferred *death)
{
    struct task *task = container_of(death, struct task, death);

    kernel_stack_free(task->stack);
    task->stack = NULL;
    task_put(task);
}

void task_exit(int code)
{
    struct task *me = task_current();

    ASSERT(!me->is_idle);
    if (me->on_exit)
        me->on_exit(me);
    spin_lock(&list_lock);
    list_del(&me->all_link);
    spin_unlock(&list_lock);
    me->exit_code = code;
    atomic_store(&me->has_exited, true);
    wait_wake_key(&exit_queue, me);
    sched_leave_for_good();
}

int task_join(struct task *task)
{
    struct waiter w;

    wait_begin_key(&exit_queue, &w, task, false, "the end of task %lu", task->pid, 0);
    wait_may_last(&w);
    while (!atomic_load(&task->has_exited))
        wait_sleep(&w);
    wait_end(&exit_queue, &w);
    int code = task->exit_code;

    task_put(task);
    return code;
}

/* A task in user mode on another CPU has to come into the kernel to see what was marked. */
static void leave_user_mode(const struct task *task)
{
    bool irqs = irq_save_disable();
    u32 cpu = READ_ONCE(task->cpu);

    if (READ_ONCE(task->on_cpu) && cpu != cpu_index())
        ipi_send(cpu, IPI_VECTOR_RESCHEDULE);
    irq_restore(irqs);
}

void task_kill(struct task *task)
{
    atomic_store(&task->kill_pending, 1);
    if (!sched_wake(task)) /* a sleep that is not killable finds its condition false and goes on */
        leave_user_mode(task);
}

void task_interrupt(struct task *task)
{
    atomic_store(&task->signal_pending, 1);
    if (!sched_wake(task)) /* as above */
        leave_user_mode(task);
}
