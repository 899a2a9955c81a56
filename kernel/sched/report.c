/*
 * What the scheduler has to say in a panic, in the log and to gdb: the current task, its locks, and
 * what every sleeping task waits for.
 */
#include "kernel/log/report.h"
#include "kernel/cpu/clock.h"
#include "kernel/cpu/trap.h"
#include "kernel/log/log.h"
#include "kernel/sched/run_queue.h"
#include "lib/format.h"
#include "mm/core/page_table.h"

#define NS_PER_US 1000ul

typedef report_line line_fn;

static const char *const state_names[] = {
    [TASK_NEW] = "new",           [TASK_RUNNABLE] = "runnable", [TASK_RUNNING] = "running",
    [TASK_SLEEPING] = "sleeping", [TASK_DEAD] = "dead",
};

static const char *state_name(const struct task *task)
{
    return task->state < ARRAY_SIZE(state_names) ? state_names[task->state] : "?";
}

/* The reason is a format for the two arguments; the task may wake up meanwhile, and wait for something else. */
void task_format_wait(const struct task *task, char *text, size_t size)
{
    const char *reason = READ_ONCE(task->wait_reason);
    u64 a = READ_ONCE(task->wait_args[0]), b = READ_ONCE(task->wait_args[1]);

    if (reason && READ_ONCE(task->wait_reason) ==
                      reason) /* else they may be another wait's: no strings, perhaps */
        format_to(text, size, reason, a, b);
    else
        format_to(text, size, "nothing that it named");
}

static void print_wait(struct task *task, void *ctx)
{
    line_fn line = *(line_fn *)ctx;
    char reason[128];

    if (READ_ONCE(task->state) != TASK_SLEEPING)
        return;
    task_format_wait(task, reason, sizeof(reason));
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

/* ---- Sections of reports -------------------------------------------------------------------- */

static void print_stack(const struct report *r, report_line line)
{
    u64 start = (u64)r->task->stack, end = start + KERNEL_STACK_BYTES;
    u64 rsp = r->has_registers ? r->frame->rsp : r->frame->rbp;

    if (!start)
        line("its stack is the one the CPU began with");
    else if (rsp > end || rsp < start - KERNEL_STACK_BYTES)
        line("kernel stack %#lx to %#lx", start, end);
    else
        line("kernel stack %#lx to %#lx, %lu of %lu bytes used", start, end, end - rsp,
             KERNEL_STACK_BYTES);
}

static void print_task(const struct report *r, report_line line)
{
    const struct task *task = r->task;

    if (!task) {
        line("no task: the kernel has none yet");
        return;
    }
    line("%u \"%s\", %s, on CPU %u, %s%s", task->pid, task->name,
         task->is_idle    ? "an idle task"
         : task->fpu_area ? "a thread of a program"
                          : "a kernel thread",
         task->cpu, state_name(task),
         task == task_current() && this_cpu()->irq_depth ? ", in an interrupt" : "");
    u64 user_ns, system_ns;
    task_times(task, &user_ns, &system_ns);
    line("user %lu us, system %lu us", user_ns / NS_PER_US, system_ns / NS_PER_US);
    if (!trap_from_user(r->frame))
        print_stack(r, line);
}

static void print_other_cpus(const struct report *r, report_line line)
{
    (void)r;
    for (unsigned i = 0; i < cpu_count(); i++) {
        const struct cpu *cpu = cpu_get(i);
        u64 offset = 0;

        if (!cpu || !cpu->current || cpu == this_cpu())
            continue;
        const char *name = symbol_find(cpu->stopped_rip, &offset);

        line("meanwhile CPU %u ran %u \"%s\"%s%s", i, cpu->current->pid, cpu->current->name,
             name              ? ", in "
             : cpu->is_stopped ? ""
                               : ", and does not stop",
             name ? name : "");
    }
}

static void print_held_locks(const struct report *r, report_line line)
{
    if (!LOCKORDER_IS_ON)
        line("not recorded in a release build");
    else if (r->task && lockorder_held_count(&r->task->held))
        lockorder_print(&r->task->held, line);
    else
        line("nothing");
}

struct holders {
    const void *lock;
    report_line line;
    unsigned n;
};

static void print_if_holder(struct task *task, void *ctx)
{
    struct holders *holders = ctx;

    if (!lockorder_list_has(&task->held, holders->lock))
        return;
    holders->line("held by %u \"%s\", %s:", task->pid, task->name, state_name(task));
    lockorder_print(&task->held, holders->line);
    holders->n++;
}

unsigned task_print_holders(const void *lock, report_line line)
{
    struct holders holders = {lock, line, 0};

    task_for_each_unlocked(print_if_holder, &holders);
    return holders.n;
}

/* Still in the wait that is reported: what it wrote before it slept belongs together. */
static bool sleeps_still(const struct task *task)
{
    return !atomic_load(&task->on_cpu) && READ_ONCE(task->state) == TASK_SLEEPING &&
           READ_ONCE(task->wait_since_ns) == task->hung_since_ns;
}

static void print_wanted(const struct report *r, report_line line)
{
    line("what it waits for:");
    const void *object = READ_ONCE(r->task->wait_object);
    wait_holder_fn holder = READ_ONCE(r->task->wait_holder);

    if (!sleeps_still(r->task))
        line("nothing any more: it has woken up");
    else if (holder)
        holder(object, line);
    else
        line("nobody knows who will end that");
}

static void print_waits(const struct report *r, report_line line)
{
    (void)r;
    line("who waits meanwhile:");
    sched_print_waits(line);
}

static struct report_section sections[] = {
    {REPORT_WHOSE, REPORT_OF_ALL, print_task, NULL},
    {REPORT_WHOSE, REPORT_OF_PANICS, print_other_cpus, NULL},
    {REPORT_HELD, REPORT_OF_ALL, print_held_locks, NULL},
    {REPORT_HELD, REPORT_KIND_BIT(REPORT_HUNG_TASK), print_wanted, NULL},
    {REPORT_HELD, REPORT_OF_PANICS, print_waits, NULL},
};

void sched_report_init(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(sections); i++)
        report_add_section(&sections[i]);
}
