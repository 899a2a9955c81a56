/*
 * What the scheduler has to say in a panic, in the log and to gdb: the current task, its locks, and
 * what every sleeping task waits for.
 */
#include "kernel/cpu/clock.h"
#include "kernel/log/log.h"
#include "kernel/sched/run_queue.h"
#include "lib/format.h"

#define NS_PER_US 1000ul

typedef void (*line_fn)(const char *fmt, ...);

static const char *const state_names[] = {
    [TASK_NEW] = "new",           [TASK_RUNNABLE] = "runnable", [TASK_RUNNING] = "running",
    [TASK_SLEEPING] = "sleeping", [TASK_DEAD] = "dead",
};

static const char *state_name(const struct task *task)
{
    return task->state < ARRAY_SIZE(state_names) ? state_names[task->state] : "?";
}

/* The reason is a format for the two arguments; read once, since the task may wake up meanwhile. */
static void format_reason(const struct task *task, char *text, size_t size)
{
    const char *reason = READ_ONCE(task->wait_reason);

    if (reason)
        format_to(text, size, reason, task->wait_args[0], task->wait_args[1]);
    else
        format_to(text, size, "nothing that it named");
}

static void print_wait(struct task *task, void *ctx)
{
    line_fn line = *(line_fn *)ctx;
    char reason[128];

    if (READ_ONCE(task->state) != TASK_SLEEPING)
        return;
    format_reason(task, reason, sizeof(reason));
    line("%u %s waits for %s, for %lu us (CPU %u%s)", task->pid, task->name, reason,
         (clock_ns() - task->wait_since_ns) / NS_PER_US, task->cpu,
         task->kill_pending ? ", killed" : "");
}

static void log_line(const char *fmt, ...)
{
    char text[256];
    va_list args;

    va_start(args, fmt);
    format_v(text, sizeof(text), fmt, args);
    va_end(args);
    log_info("%s", text);
}

void sched_print_waits(void (*line)(const char *fmt, ...))
{
    line_fn to = line ? line : log_line;

    if (panic_in_progress())
        task_for_each_unlocked(print_wait, &to);
    else
        task_for_each(print_wait, &to);
}

static void print_current_task(line_fn line)
{
    const struct task *me = task_current();

    if (!me) {
        line("none yet");
        return;
    }
    line("%u \"%s\" on CPU %u, %s, user %lu us, system %lu us%s", me->pid, me->name, cpu_index(),
         state_name(me), me->user_ns / NS_PER_US, me->system_ns / NS_PER_US,
         this_cpu()->irq_depth ? ", in an interrupt" : "");
    if (me->stack)
        line("stack %p, mm %p, fault %p", me->stack, (void *)me->mm, (void *)me->fault);
}

static void print_held_locks(line_fn line)
{
    const struct task *me = task_current();

    if (me)
        lockorder_print(&me->held, line);
}

static struct panic_section current_section = {.title = "Current task",
                                               .print = print_current_task};
static struct panic_section held_section = {.title = "Held locks", .print = print_held_locks};
static struct panic_section waits_section = {.title = "Waiting tasks", .print = sched_print_waits};

void sched_report_init(void)
{
    panic_add_section(&current_section);
    if (LOCKORDER_IS_ON)
        panic_add_section(&held_section);
    panic_add_section(&waits_section);
}
